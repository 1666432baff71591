//! A test bed: the hosts of a scenario as real hosts on one machine, loaded with real TCP and UDP.
//!
//! ```text
//! space.rs    network namespaces, interfaces, addresses; and that nothing of it is left
//! load.rs     the simulator's sources of traffic, over sockets
//! router.rs   what stands in the middle: our router, or the kernel's, with a discipline of its own or one of ours
//! against.rs  what came out, beside what a simulation of the same says
//! ```
//!
//! [`run`] does one cell: it builds the space, starts the router, drives the load, and removes everything. What the ends
//! measured (flows) goes to a [`Recorder`], what the router measured (queues) is put beside it: the same record as of any host.
//!
//! This crate knows scenarios and the simulator's sources, not what happens inside the router: that is another program.

#![forbid(unsafe_code)]

pub mod against;
mod command;
mod lateness;
pub mod load;
pub mod router;
pub mod space;
mod trouble;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use qdisc::{Probe, Span};
use record::{Layout, Metrics, Record, Recorder};
use scenario::{BpfQueue, Cell, Contender, Live};

pub use self::lateness::{LATE, Lateness};
use self::load::Load;
use self::router::{Router, Start};
use self::space::Space;
pub use self::trouble::Trouble;

/// How cells are run.
#[derive(Clone, Debug)]
pub struct Bed {
    /// The program `giveway`, whose `live` is the router.
    pub program: PathBuf,
    /// How often a run is tried while the machine is too busy.
    pub attempts: u32,
    /// Where what our router records is kept, a folder for each run.
    pub keep: Option<PathBuf>,
    /// Where objects of ours for the kernel are, where they are not compiled here.
    pub objects: Option<PathBuf>,
}

/// A run, and how it went.
#[derive(Debug)]
pub struct Ran {
    /// What was measured.
    pub record: Record,
    /// What the sources and the router have to say.
    pub remarks: Vec<String>,
    /// How late the sources were woken.
    pub lateness: Lateness,
    /// How late our router sent, one frame in a hundred or more; `None` where it was not ours.
    pub router_late: Option<Span>,
    /// The attempt that this is, from 1. If this was late, too, then so were all.
    pub attempt: u32,
}

/// Whether a test bed can be built here.
///
/// # Errors
/// The first thing that is missing, and what to type.
pub fn ready() -> Result<(), Trouble> {
    if !nix::unistd::geteuid().is_root() {
        let help = "network namespaces need it: type sudo giveway testbed ...";
        return Err(Trouble::missing("this is not root", help));
    }
    for (program, argument, package) in [("ip", "-V", "iproute2"), ("ethtool", "--version", "ethtool")] {
        if !command::exists(program, argument) {
            let what = format!("there is no program {program}");
            return Err(Trouble::missing(what, format!("apt-get install {package}")));
        }
    }
    Ok(())
}

/// Whether the kernel has the congestion controls of a scenario.
///
/// # Errors
/// The one that it lacks, and those that it has.
pub fn has_tcp(live: &Live) -> Result<(), Trouble> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = std::fs::read_to_string(path).map_err(Trouble::system(format!("read {path}")))?;
    let there: Vec<&str> = text.split_whitespace().collect();
    let wanted = live.network.traffic.iter().map(|stream| stream.tcp.congestion.name());
    match wanted.into_iter().find(|name| !there.contains(name)) {
        Some(name) => Err(Trouble::missing(
            format!("this kernel has no congestion control {name}"),
            format!("write one of those that it has: {}", there.join(", ")),
        )),
        None => Ok(()),
    }
}

/// Whether the kernel takes disciplines of ours, where a scenario has them there: the first that it does not take, and why.
pub fn lacks_bpf(live: &Live) -> Option<(&BpfQueue, kernel::Trouble)> {
    let first = live.compared.iter().find_map(|contender| match contender {
        Contender::Bpf(queue) => Some(&**queue),
        _ => None,
    })?;
    Some((first, kernel::attach::ready().err()?))
}

impl Bed {
    /// Runs a cell of a scenario, again while the machine is too busy. `layout` is what a record of the scenario is like. Now and
    /// then `go_on` is told how much of it is done, 0 to 1; when it answers false there is no result.
    ///
    /// # Errors
    /// What the machine refuses.
    ///
    /// # Panics
    /// When the cell is of another scenario.
    pub fn run(
        &self,
        live: &Live,
        cell: &Cell,
        layout: &Layout,
        go_on: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<Option<Ran>, Trouble> {
        let ran = in_time(self.attempts, Ran::too_late, || self.attempt(live, cell, layout, go_on))?;
        Ok(ran.map(|(ran, attempt)| Ran { attempt, ..ran }))
    }

    fn attempt(
        &self,
        live: &Live,
        cell: &Cell,
        layout: &Layout,
        go_on: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<Option<Ran>, Trouble> {
        let contender = &live.compared[cell.discipline];
        let scratch = tempfile::tempdir().map_err(Trouble::system("make a folder for temporary files"))?;
        let keep = self.keep.as_ref().map(|dir| dir.join(folder_name(cell)));
        if let Some(keep) = keep.as_ref().filter(|keep| keep.exists()) {
            // Of an earlier attempt.
            std::fs::remove_dir_all(keep).map_err(Trouble::system(format!("remove {}", keep.display())))?;
        }
        let space = Space::build(live, router::middle(live, contender), &self.program)?;
        let router = Router::start(&Start {
            space: &space,
            live,
            contender,
            seed: cell.seed,
            small_packet: layout.small_packet_bytes,
            program: &self.program,
            scratch: scratch.path(),
            keep: keep.as_deref(),
            objects: self.objects.as_deref(),
        })?;
        // No packet is seen here, so no port is measured; but goodput is that of flows over the bottleneck, as in a simulation.
        let crossed = layout.crossed.as_ref().zip(layout.bottleneck()).map(|(all, port)| all.only(port));
        let mut recorder = Recorder::<()>::new(Layout { measured: Vec::new(), crossed, ..layout.clone() });
        // The traffic is the same whoever's turn it is.
        let of_network = Cell { discipline: 0, ..cell.clone() };
        let driven = thread::scope(|scope| {
            let driving = scope.spawn(|| {
                let plan = live.network.plan(&of_network);
                let load =
                    Load { sources: plan.sources, until: plan.until, measured_from: plan.measured.start };
                let warmed_up = layout.from.as_s() / layout.until.as_s();
                let measures = AtomicBool::new(false);
                load.drive(&space, &mut |report| recorder.flow(report), &|share| {
                    if share >= warmed_up && !measures.swap(true, Ordering::Relaxed) {
                        router.measure();
                    }
                    go_on(share)
                })
            });
            driving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let Some(driven) = driven else { return Ok(None) };
        let told = router.stop(&space)?;
        drop(space);
        let mut record = recorder.finish();
        record.summary.events = driven.events;
        if let Some(summary) = &told.summary {
            record.summary.metrics = joined(&record.summary.metrics, &summary.metrics);
        }
        record.layout = layout.clone();
        let named = |(source, remark): (u16, String)| {
            format!("{}: {remark}", live.network.traffic[usize::from(source)].name)
        };
        let remarks = driven.remarks.into_iter().map(named).chain(told.remarks).collect();
        let (lateness, router_late) = (driven.lateness, told.late_p99);
        Ok(Some(Ran { record, remarks, lateness, router_late, attempt: 1 }))
    }
}

impl Ran {
    /// Whether the machine was too busy for it to count.
    pub fn too_late(&self) -> bool {
        self.lateness.too_much() || self.router_late.is_some_and(|late| late > LATE)
    }
}

/// Tries until one was not late, at most so often; which attempt it was, from 1. Nothing when it was stopped.
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

/// `efd-limit-300p-seed-1`: what is kept of a run's router.
fn folder_name(cell: &Cell) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("{}-seed-{}", cell.name.chars().map(plain).collect::<String>(), cell.seed)
}

/// What the ends measured, and where they could not, what the router did.
fn joined(ends: &Metrics, router: &Metrics) -> Metrics {
    let mut all = Metrics::default();
    for (name, value) in ends.iter() {
        all.push(name, value.or_else(|| router.value(name)));
    }
    // The router does not know whose packets they are.
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
    fn late_runs_are_done_again_but_not_for_ever() {
        // What each attempt would be: 1 late, 0 in time.
        let tries = |most: u32, runs: &[Option<u32>]| {
            let mut left = runs.iter();
            in_time(most, |late| *late == 1, || left.next().copied().ok_or("one too many"))
        };
        assert_eq!(tries(3, &[Some(0)]), Ok(Some((0, 1))));
        assert_eq!(tries(3, &[Some(1), Some(0)]), Ok(Some((0, 2))));
        // The last one is kept, late as it is.
        assert_eq!(tries(2, &[Some(1), Some(1)]), Ok(Some((1, 2))));
        assert_eq!(tries(3, &[Some(1), None]), Ok(None));
        assert_eq!(tries(3, &[Some(1)]), Err("one too many"));
    }

    #[test]
    fn ends_and_router_each_tell_what_they_saw() {
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
