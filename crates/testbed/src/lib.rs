//! A test bed: the hosts of a scenario as real hosts on one machine, loaded with real TCP and UDP.
//!
//! ```text
//! topology.rs  network namespaces, interfaces and addresses, and their removal
//! load.rs      the traffic sources of the simulator, over sockets
//! pcap.rs      the capture of a run, by tcpdump at the near hosts
//! router.rs    the router: `giveway live`, or the kernel with a discipline of Linux or Giveway
//! timing.rs    measures how late threads of this machine wake up
//! against.rs   compares the results with a simulation of the same scenario
//! ```
//!
//! [`Bed::run`] runs one trial: it creates the topology, starts the router, sends the load, and removes
//! everything. A [`Recorder`] gets the measurements of the hosts (flows); the measurements of the router
//! (queues) are added to its record, which then has the form of any other backend.
//!
//! This crate depends on scenarios and on the simulator's sources, not on the data path: the router is
//! another program.
//!
//! ```
//! // A test bed needs root and some programs; the error names the first one that is missing, and the remedy.
//! if let Err(error) = giveway_testbed::ready() {
//!     println!("{error}");
//! }
//! ```

#![forbid(unsafe_code)]

pub mod against;
mod background;
mod command;
mod error;
mod lateness;
pub mod load;
pub mod pcap;
pub mod router;
pub mod timing;
pub mod topology;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use giveway_measure::{Layout, Metrics, Record, Recorder};
use giveway_qdisc::{Probe, Rate, Span, Time};
use giveway_scenario::{BpfQueue, Contender, Live, Trial};

pub use self::error::TestbedError;
pub use self::lateness::{LATE, Lateness};
use self::load::Load;
use self::pcap::Pcap;
use self::router::{Router, Start};
use self::topology::Topology;

/// Time between the starts of the router and of the load, if the link varies: both start together.
const LEAD: Span = Span::s(2);

/// Configuration of a test bed.
#[derive(Clone, Debug)]
pub struct Bed {
    /// The program `giveway-net`, whose `live` is the router.
    pub program: PathBuf,
    /// Largest number of attempts of a run while the machine is too busy.
    pub attempts: u32,
    /// Folder in which the records of `giveway live` are kept, one folder for each run.
    pub keep: Option<PathBuf>,
    /// Folder with compiled kernel objects; `None` to compile them.
    pub objects: Option<PathBuf>,
    /// File for the packets at the interface of the near hosts, of the last run.
    pub pcap: Option<PathBuf>,
    /// File for the operations of the disciplines of `giveway live`, of the last run.
    pub trace: Option<PathBuf>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Ran {
    /// Measurements.
    pub record: Record,
    /// Remarks of the sources and of the router.
    pub remarks: Vec<String>,
    /// Wake-up latencies of the sources.
    pub lateness: Lateness,
    /// The 99th percentile of the lateness of `giveway live`; `None` if the kernel was the router.
    pub router_late: Option<Span>,
    /// Number of the attempt, from 1. If this one was late, all were.
    pub attempt: u32,
}

/// Checks that a test bed can be built on this machine.
///
/// # Errors
/// The first thing that is missing, and the command that installs it.
pub fn ready() -> Result<(), TestbedError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(TestbedError::missing("network namespaces need root", "type sudo giveway testbed ..."));
    }
    for (program, argument, package) in [("ip", "-V", "iproute2"), ("ethtool", "--version", "ethtool")] {
        if !command::exists(program, argument) {
            let what = format!("the program {program} is not installed");
            return Err(TestbedError::missing(what, format!("apt-get install {package}")));
        }
    }
    Ok(())
}

/// Checks that the kernel has the congestion controls of a scenario.
///
/// # Errors
/// The one that is missing, and those that the kernel has.
pub fn has_tcp(live: &Live) -> Result<(), TestbedError> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = std::fs::read_to_string(path).map_err(TestbedError::system(format!("read {path}")))?;
    let there: Vec<&str> = text.split_whitespace().collect();
    let wanted = live.network.traffic.iter().map(|stream| stream.tcp.congestion.name());
    match wanted.into_iter().find(|name| !there.contains(name)) {
        Some(name) => Err(TestbedError::missing(
            format!("this kernel has no congestion control {name}"),
            format!("write one of those that it has: {}", there.join(", ")),
        )),
        None => Ok(()),
    }
}

/// Returns the first Giveway discipline that a scenario loads into the kernel, with the reason why this
/// kernel cannot load it; `None` if there is no such discipline, or the kernel can load it.
pub fn lacks_bpf(live: &Live) -> Option<(&BpfQueue, giveway_kernel::KernelError)> {
    let first = live.compared.iter().find_map(|contender| match contender {
        Contender::Bpf(queue) => Some(&**queue),
        _ => None,
    })?;
    Some((first, giveway_kernel::attach::ready().err()?))
}

impl Bed {
    /// Runs a trial of a scenario, and repeats it while the machine is too busy. `layout` is the layout of
    /// its record. `keep_running` gets the progress, 0 to 1; if it returns false, the run stops without a
    /// result.
    ///
    /// # Errors
    /// The first error of the machine.
    ///
    /// # Panics
    /// If the trial belongs to another scenario.
    pub fn run(
        &self,
        live: &Live,
        trial: &Trial,
        layout: &Layout,
        keep_running: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<Option<Ran>, TestbedError> {
        let ran = in_time(self.attempts, Ran::too_late, || self.attempt(live, trial, layout, keep_running))?;
        Ok(ran.map(|(ran, attempt)| Ran { attempt, ..ran }))
    }

    fn attempt(
        &self,
        live: &Live,
        trial: &Trial,
        layout: &Layout,
        keep_running: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<Option<Ran>, TestbedError> {
        let contender = &live.compared[trial.discipline];
        let scratch =
            tempfile::tempdir().map_err(TestbedError::system("make a folder for temporary files"))?;
        let keep = self.keep.as_ref().map(|dir| dir.join(folder_name(trial)));
        if let Some(keep) = keep.as_ref().filter(|keep| keep.exists()) {
            // Left by an earlier attempt.
            std::fs::remove_dir_all(keep)
                .map_err(TestbedError::system(format!("remove {}", keep.display())))?;
        }
        let topology = Topology::build(live, router::router_kind(live, contender), &self.program)?;
        let starts_at = live.varies().then(|| load::Clock::in_a_while(LEAD));
        let router = Router::start(&Start {
            topology: &topology,
            live,
            contender,
            seed: trial.seed,
            small_packet: layout.small_packet_bytes,
            starts_at,
            duration: layout.until.since(Time::ZERO),
            program: &self.program,
            scratch: scratch.path(),
            keep: keep.as_deref(),
            objects: self.objects.as_deref(),
            trace: self.trace.as_deref(),
        })?;
        let start = |file| Pcap::start(&topology, scratch.path()).map(|pcap| (pcap, file));
        let pcap = self.pcap.as_ref().map(start).transpose()?;
        // The hosts see no packets of the bottleneck, so no port is measured; goodput is that of its flows,
        // as in a simulation.
        let crossed = layout.crossed.as_ref().zip(layout.bottleneck()).map(|(all, port)| all.only(port));
        let mut recorder = Recorder::<()>::new(Layout { measured: Vec::new(), crossed, ..layout.clone() });
        // The traffic does not depend on the contender.
        let of_network = Trial { discipline: 0, ..trial.clone() };
        let driven = thread::scope(|scope| {
            let driving = scope.spawn(|| {
                let plan = live.network.plan(&of_network);
                let (until, measured_from) = (plan.until, plan.measured.start);
                let load = Load { sources: plan.sources, until, measured_from, starts_at };
                let warmed_up = layout.from.as_s() / layout.until.as_s();
                let measures = AtomicBool::new(false);
                load.drive(&topology, &mut |report| recorder.on_flow(report), &|share| {
                    if share >= warmed_up && !measures.swap(true, Ordering::Relaxed) {
                        router.measure();
                    }
                    keep_running(share)
                })
            });
            driving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let Some(driven) = driven else { return Ok(None) };
        let missed = pcap.map(|(pcap, file)| pcap.stop(file)).transpose()?.unwrap_or(0);
        let result = router.stop(&topology)?;
        drop(topology);
        let mut record = recorder.finish();
        record.summary.events = driven.events;
        if let Some(summary) = &result.summary {
            record.summary.metrics = joined(&record.summary.metrics, &summary.metrics);
            if live.forward.varies
                && let Some(rate) = layout.rates.iter().find(|(port, _)| *port == live.forward.port)
            {
                relative_to_offer(&mut record.summary.metrics, live.forward.rate, rate.1);
            }
        }
        record.layout = layout.clone();
        let named = |(source, remark): (u16, String)| {
            format!("{}: {remark}", live.network.traffic[usize::from(source)].name)
        };
        let late_start = (driven.late_start > Span::ms(1)).then(|| {
            let late = driven.late_start;
            format!("the load began {late} after the link had begun to vary: the router started too slowly")
        });
        let missed =
            (missed > 0).then(|| format!("the capture lacks {missed} packets: the machine is too slow"));
        let remarks = driven
            .remarks
            .into_iter()
            .map(named)
            .chain(result.remarks)
            .chain(missed)
            .chain(late_start)
            .collect();
        let (lateness, router_late) = (driven.lateness, result.late_p99);
        Ok(Some(Ran { record, remarks, lateness, router_late, attempt: 1 }))
    }
}

impl Ran {
    /// True if the machine was too busy for the run to count.
    pub fn too_late(&self) -> bool {
        self.lateness.too_much() || self.router_late.is_some_and(|late| late > LATE)
    }
}

/// Makes the use of a link that varies relative to what the link offered in the measurement interval, as in a
/// simulation. The router measures it relative to the mean over the run.
fn relative_to_offer(metrics: &mut Metrics, mean: Rate, offered: Rate) {
    let scaled = |(name, value): (&str, Option<f64>)| {
        let factor = if name == "utilization" { mean.bytes_per_s() / offered.bytes_per_s() } else { 1.0 };
        (name.to_owned(), value.map(|value| value * factor))
    };
    let all: Vec<(String, Option<f64>)> = metrics.iter().map(scaled).collect();
    *metrics = Metrics::default();
    all.into_iter().for_each(|(name, value)| metrics.push(name, value));
}

/// Repeats a run until it is not late, at most `most` times. Returns the number of the attempt, from 1;
/// `None` if it was stopped.
fn in_time<T, E>(
    most: u32,
    late: impl Fn(&T) -> bool,
    mut attempt: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<(T, u32)>, E> {
    for number in 1.. {
        match attempt()? {
            Some(ran) if late(&ran) && number < most => {}
            Some(ran) => return Ok(Some((ran, number))),
            None => break,
        }
    }
    Ok(None)
}

/// Folder name of a run: `efd-limit-300p-seed-1`.
fn folder_name(trial: &Trial) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("{}-seed-{}", trial.name.chars().map(plain).collect::<String>(), trial.seed)
}

/// The metrics of the hosts, completed by the router's.
fn joined(ends: &Metrics, router: &Metrics) -> Metrics {
    let mut all = Metrics::default();
    for (name, value) in ends.iter() {
        all.push(name, value.or_else(|| router.value(name)));
    }
    // The router cannot assign packets to sources.
    let more = router.iter().filter(|(name, _)| ends.entry(name).is_none() && !name.starts_with("src."));
    for (name, value) in more {
        all.push(name, value);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_runs_are_repeated_up_to_the_number_of_attempts() {
        // The result of each attempt: 1 for late, 0 for in time.
        let tries = |most: u32, runs: &[Option<u32>]| {
            let mut left = runs.iter();
            in_time(most, |late| *late == 1, || left.next().copied().ok_or("one too many"))
        };
        assert_eq!(tries(3, &[Some(0)]), Ok(Some((0, 1))));
        assert_eq!(tries(3, &[Some(1), Some(0)]), Ok(Some((0, 2))));
        // The last one is kept, although it is late.
        assert_eq!(tries(2, &[Some(1), Some(1)]), Ok(Some((1, 2))));
        assert_eq!(tries(3, &[Some(1), None]), Ok(None));
        assert_eq!(tries(3, &[Some(1)]), Err("one too many"));
    }

    #[test]
    fn metrics_of_hosts_and_router_are_joined() {
        let metrics = |all: &[(&str, Option<f64>)]| {
            let mut metrics = Metrics::default();
            all.iter().for_each(|(name, value)| metrics.push(*name, *value));
            metrics
        };
        let ends = metrics(&[("utilization", None), ("goodput_bps", Some(8.0)), ("fct_p50_s", Some(0.5))]);
        let router = metrics(&[
            ("utilization", Some(0.9)),
            ("fct_p50_s", None),
            ("drops_flowlimit", Some(3.0)),
            ("src.all.drops", Some(3.0)),
        ]);
        let all = joined(&ends, &router);
        assert_eq!(all.value("utilization"), Some(0.9));
        assert_eq!(all.value("goodput_bps"), Some(8.0));
        assert_eq!(all.value("fct_p50_s"), Some(0.5));
        assert_eq!(all.value("drops_flowlimit"), Some(3.0));
        assert_eq!(all.entry("src.all.drops"), None);
    }
}
