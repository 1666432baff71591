//! The router of a test bed: `giveway live`, or the kernel's forwarding.
//!
//! `giveway live` runs in the namespace of the router and ends with SIGTERM. It records each direction into a
//! folder with the tables of a run, and starts to measure at SIGUSR1, the end of the warm-up. With the kernel
//! as router, `tc` sets a discipline on each interface; only the hosts measure, and a second `giveway live`
//! adds the delays. A Giveway discipline in the kernel (BPF) is set like one of the kernel's, and shapes by
//! itself. Its counters over the measurement interval are in the result, under the names of a live router and
//! as `kernel.NAME`.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

use giveway_files::{Dir, Kind};
use giveway_kernel::attach::{self, Attached, LoadRequest, Source};
use giveway_measure::{Fingerprint, Metrics, Summary};
use giveway_qdisc::{DropReason, Rate, Span};
use giveway_scenario::{BpfQueue, Contender, Direction, KernelQueue, Live};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::background::Background;
use crate::command::{exists, run, run_with};
use crate::error::TestbedError;
use crate::topology::{DELAY_LEFT, DELAY_RIGHT, LEFT, Namespace, RIGHT, RouterKind, Topology};

/// The router of a run.
pub enum Router {
    /// The kernel, with a bridge that adds the delays of the scenario, if it has any.
    Kernel(Option<Box<LiveRouter>>),
    /// The kernel with a Giveway discipline (BPF), and such a bridge.
    Bpf(Box<Bpf>),
    /// `giveway live`.
    Live(Box<LiveRouter>),
}

/// A Giveway discipline in the kernel.
pub struct Bpf {
    attached: Attached,
    /// The bridge that adds delay, if the scenario has any.
    delay: Option<LiveRouter>,
    /// A thread that reads the counters at the end of the warm-up.
    before: Mutex<Option<JoinHandle<Result<Counters, giveway_kernel::KernelError>>>>,
}

/// Counters by name.
type Counters = Vec<(String, u64)>;

/// A running `giveway live`.
pub struct LiveRouter {
    program: Background,
    /// Folder of its record, if it records.
    record: Option<PathBuf>,
    /// Folder to which the record is copied at the end, if it is kept.
    keep: Option<PathBuf>,
    /// Its standard output: a JSON summary at the end.
    json_output: File,
    /// Its standard error.
    messages: File,
}

/// The result of a router.
#[derive(Debug, Default)]
pub struct RouterResult {
    /// Measurements of the router.
    pub summary: Option<Summary>,
    /// The 99th percentile of the lateness of transmissions, of the worse direction.
    pub late_p99: Option<Span>,
    /// Remarks for the user.
    pub remarks: Vec<String>,
}

/// Length of the Ethernet header, in bytes: the kernel counts frames, scenarios count IP packets.
const FRAME: i32 = 14;
/// Disciplines that a kernel may have, each with the arguments that `tc` requires.
const KNOWN: [(&str, &[&str]); 15] = [
    ("tbf", &["rate", "1mbit", "burst", "3028", "limit", "10000"]),
    ("bfifo", &[]),
    ("pfifo", &[]),
    ("fq_codel", &[]),
    ("codel", &[]),
    ("fq", &[]),
    ("sfq", &[]),
    ("drr", &[]),
    ("red", &["limit", "100000", "avpkt", "1000"]),
    ("pie", &[]),
    ("fq_pie", &[]),
    ("cake", &[]),
    ("choke", &["limit", "100", "bandwidth", "10mbit"]),
    ("sfb", &[]),
    ("hhf", &[]),
];

/// The kind of router that a contender needs.
pub fn router_kind(live: &Live, contender: &Contender) -> RouterKind {
    let delays = !(live.forward.delay + live.reverse.delay).is_zero();
    let late = delays || [&live.forward, &live.reverse].iter().any(|one| one.wire().next().is_some());
    match contender {
        Contender::Kernel(_) | Contender::Bpf(_) if late => RouterKind::RoutedWithDelay,
        Contender::Kernel(_) | Contender::Bpf(_) => RouterKind::Routed,
        Contender::Ours(_) => RouterKind::Bridged,
    }
}

/// Parameters of [`Router::start`].
pub struct Start<'a> {
    /// The test bed.
    pub topology: &'a Topology,
    /// The scenario.
    pub live: &'a Live,
    /// The contender of this run.
    pub contender: &'a Contender,
    /// Seed of the run.
    pub seed: u64,
    /// Packets up to this length are small, in bytes.
    pub small_packet: u32,
    /// Time of the monotonic clock at which what varies starts, in nanoseconds; `None` if nothing varies.
    pub starts_at: Option<u64>,
    /// Duration of the run.
    pub duration: Span,
    /// The program `giveway-net`.
    pub program: &'a Path,
    /// An empty folder for temporary files.
    pub scratch: &'a Path,
    /// Folder for the record of `giveway live`, if it is kept.
    pub keep: Option<&'a Path>,
    /// Folder with compiled kernel objects; `None` to compile them.
    pub objects: Option<&'a Path>,
    /// File for the operations of the disciplines of `giveway live`.
    pub trace: Option<&'a Path>,
}

impl Router {
    /// Starts the router. When this returns, packets pass.
    ///
    /// # Errors
    /// The missing part of the kernel, or the reason why `giveway live` does not start.
    pub fn start(start: &Start<'_>) -> Result<Router, TestbedError> {
        let delay = || {
            let late = router_kind(start.live, start.contender) == RouterKind::RoutedWithDelay;
            let bridge = || delay_bridge(start.live, start.contender);
            late.then(|| LiveRouter::start(start, &bridge(), None)).transpose()
        };
        match start.contender {
            Contender::Kernel(queue) => {
                shape_reverse(start)?;
                shape(start.topology, RIGHT, &start.live.forward, queue)?;
                Ok(Router::Kernel(delay()?.map(Box::new)))
            }
            Contender::Bpf(queue) => {
                shape_reverse(start)?;
                let attached = bpf(start, queue)?;
                Ok(Router::Bpf(Box::new(Bpf { attached, delay: delay()?, before: Mutex::default() })))
            }
            Contender::Ours(at) => {
                // The router gives up the rights that it needs to write elsewhere.
                let record = start.scratch.join("record");
                let started = LiveRouter::start(start, &live_router(start.live, *at), Some(record))?;
                Ok(Router::Live(Box::new(LiveRouter { keep: start.keep.map(Path::to_owned), ..started })))
            }
        }
    }

    /// Starts the measurement interval.
    pub fn measure(&self) {
        match self {
            Router::Kernel(_) => {}
            // Reading the counters takes longer than the sources can wait.
            Router::Bpf(bpf) => {
                let attached = bpf.attached.clone();
                let options = thread::spawn(move || attach::counters(&attached));
                *bpf.before.lock().expect("no thread panics while it holds the lock") = Some(options);
            }
            // A router that has ended is noticed in `stop`.
            Router::Live(live_router) => live_router.program.signal(Signal::SIGUSR1),
        }
    }

    /// Stops the router and returns its result.
    ///
    /// # Errors
    /// If the router ended with an error, or its result cannot be read.
    pub fn stop(self, topology: &Topology) -> Result<RouterResult, TestbedError> {
        match self {
            Router::Kernel(delay) => {
                let result = delay.map_or_else(|| Ok(RouterResult::default()), |delay| delay.stop())?;
                let namespace = topology.name(Namespace::Router);
                let counts = [("forward", RIGHT), ("reverse", LEFT)].map(|(direction, device)| {
                    let dropped =
                        dropped(&run(&["tc", "-s", "-n", &namespace, "qdisc", "show", "dev", device])?);
                    Ok(format!("the kernel dropped {dropped} packets, {direction}"))
                });
                let counts: Result<Vec<String>, TestbedError> = counts.into_iter().collect();
                Ok(RouterResult { remarks: [counts?, result.remarks].concat(), ..result })
            }
            Router::Bpf(bpf) => bpf.stop(topology),
            Router::Live(live_router) => live_router.stop(),
        }
    }
}

impl Bpf {
    fn stop(self, topology: &Topology) -> Result<RouterResult, TestbedError> {
        let Bpf { attached, delay, before } = self;
        let before = before.into_inner().expect("no thread panics while it holds the lock");
        let before =
            before.map(|options| options.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let after = attach::counters(&attached)?;
        let metrics = counted(&before.transpose()?.unwrap_or_default(), &after);
        let result = delay.map_or_else(|| Ok(RouterResult::default()), LiveRouter::stop)?;
        topology.within(Namespace::Router, || attach::unload(RIGHT))??;
        let summary = Summary { fingerprint: Fingerprint::EMPTY, events: 0, metrics };
        Ok(RouterResult { summary: Some(summary), ..result })
    }
}

/// Metrics of a kernel discipline between two readings of its counters.
fn counted(before: &Counters, after: &Counters) -> Metrics {
    // Gauges: their value at the end counts, not their growth.
    const STATES: [&str; 7] = [
        "held_packets",
        "held_bytes",
        "high_packets",
        "low_packets",
        "flow_table",
        "flow_table_most",
        "reserved_bit",
    ];
    let of = |counters: &Counters, name: &str| {
        counters.iter().find(|(other, _)| other == name).map_or(0, |(_, number)| *number)
    };
    let grew = |name: &str| of(after, name).saturating_sub(of(before, name));
    let mut metrics = Metrics::default();
    metrics.push("drops", Some(grew("dropped_packets") as f64));
    // No kernel discipline of Giveway marks packets.
    metrics.push("marks", Some(0.0));
    let reasons = DropReason::ALL.map(DropReason::name);
    for reason in reasons.iter().filter(|reason| grew(reason) > 0) {
        metrics.push(format!("drops_{reason}"), Some(grew(reason) as f64));
    }
    metrics.push("flow_table_max", Some(of(after, "flow_table_most") as f64));
    for (name, _) in after.iter().filter(|(name, _)| !reasons.contains(&name.as_str())) {
        let value = if STATES.contains(&name.as_str()) { of(after, name) } else { grew(name) };
        metrics.push(format!("kernel.{name}"), Some(value as f64));
    }
    metrics
}

/// Packets that the root discipline of a device dropped, from the output of `tc -s`.
fn dropped(text: &str) -> u64 {
    let counts = text.split("(dropped ").nth(1).and_then(|rest| rest.split(',').next());
    counts.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Loads a Giveway discipline in front of the bottleneck.
fn bpf(start: &Start<'_>, queue: &BpfQueue) -> Result<Attached, TestbedError> {
    let request = LoadRequest {
        device: RIGHT,
        plan: &queue.plan,
        reservations: &[],
        source: start.objects.map_or(Source::Compiled, Source::Folder),
        // Packets are counted without the Ethernet header, as in the scenario.
        overhead: -FRAME,
        keep: true,
        replace: false,
    };
    Ok(start.topology.within(Namespace::Router, || attach::load(&request))??)
}

/// Sets a discipline of the kernel for the reverse direction.
fn shape_reverse(start: &Start<'_>) -> Result<(), TestbedError> {
    if !exists("tc", "-V") {
        return Err(TestbedError::missing("the program tc is not installed", "apt-get install iproute2"));
    }
    let queue = start.live.reverse_in_kernel().expect("a scenario without one is refused");
    shape(start.topology, LEFT, &start.live.reverse, &queue)
}

fn shape(
    topology: &Topology,
    device: &str,
    direction: &Direction,
    queue: &KernelQueue,
) -> Result<(), TestbedError> {
    let namespace = topology.name(Namespace::Router);
    let rate = format!("{}bit", direction.rate.as_bit());
    // Packets are counted without the Ethernet header, as in the scenario.
    let overhead = format!("-{FRAME}");
    let stab = ["stab", "overhead", &overhead, "linklayer", "ethernet"];
    let tc = |words: &[&str]| run(&[&["tc", "-n", &namespace][..], words].concat());
    let own: Vec<&str> = queue.arguments.iter().map(String::as_str).collect();
    // drr takes no arguments itself: they are for its leaf queues.
    let (own, leaf) = if queue.kind == "drr" { (Vec::new(), own) } else { (own, Vec::new()) };
    let root = ["qdisc", "replace", "dev", device, "root", "handle", "1:"];
    let made = if queue.shapes() {
        let burst = burst(direction.rate).max(TBF_BURST).to_string();
        let shaper = ["tbf", "rate", &rate, "burst", &burst];
        tc(&[&root[..], &stab, &shaper, &own].concat()).map(drop)
    } else {
        let burst = burst(direction.rate).to_string();
        let class = ["class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb"];
        let shaper = ["rate", &rate, "ceil", &rate, "burst", &burst, "cburst", &burst, "quantum", "1514"];
        let inner = ["qdisc", "add", "dev", device, "parent", "1:1", "handle", "2:", &queue.kind];
        tc(&[&root[..], &stab, &["htb", "default", "1"]].concat())
            .and_then(|_| tc(&[&class[..], &shaper].concat()))
            .and_then(|_| tc(&[&inner[..], &own].concat()))
            .and_then(|_| match queue.kind.as_str() {
                "drr" => run_with(&["tc", "-n", &namespace, "-batch", "-"], &drr(device, &leaf.join(" "))),
                _ => Ok(String::new()),
            })
            .map(drop)
    };
    made.map_err(|error| match error {
        TestbedError::Command { output, .. }
            if output.contains("kind is unknown") || output.contains("Unknown qdisc") =>
        {
            TestbedError::missing(
                format!("this kernel has no discipline {}", queue.kind),
                format!("write one of those that it has: {}", available(topology).join(", ")),
            )
        }
        TestbedError::Command { command, output }
            if output.contains("What is") || output.contains("llegal") =>
        {
            TestbedError::missing(
                format!("tc does not understand {:?}: {output}", queue.to_string()),
                format!("the parameters follow tc, see man tc-{}; the command was: {command}", queue.kind),
            )
        }
        other => other,
    })
}

/// Number of classes of the kernel's drr, which has none by default. Flows of one class share its turns.
const CLASSES: u32 = 64;

/// Input of `tc -batch` that gives drr a queue per flow: classes, each with a pfifo, and a filter that hashes
/// flows into them.
fn drr(device: &str, leaf: &str) -> String {
    let class = |number: u32| {
        format!(
            "class add dev {device} parent 2: classid 2:{number:x} drr quantum 1500\n\
             qdisc add dev {device} parent 2:{number:x} pfifo {leaf}\n"
        )
    };
    let filter = format!(
        "filter add dev {device} parent 2: protocol ip pref 1 handle 1 flow hash keys src,dst,proto,proto-src,proto-dst divisor {CLASSES} \
         baseclass 2:1\n"
    );
    (1..=CLASSES).map(class).chain([filter]).collect()
}

/// Burst size of the shaper, in bytes: a quarter of a millisecond, which hides that its timer is late. With
/// a longer one several packets would leave an empty queue at once, as they leave no line.
fn burst(rate: Rate) -> u64 {
    (rate.bytes_per_s() / 4000.0).max(1.0) as u64
}

/// Smallest burst of `tbf`, which sends no packet that is longer: two full frames, in bytes.
const TBF_BURST: u64 = 3028;

/// The disciplines of [`KNOWN`] that this kernel has: each is tried on an interface of the test bed.
fn available(topology: &Topology) -> Vec<&'static str> {
    let namespace = topology.name(Namespace::Router);
    let has = |(kind, own): &(&'static str, &[&str])| {
        let add = ["tc", "-n", &namespace, "qdisc", "replace", "dev", "lo", "root", kind];
        run(&[&add[..], own].concat()).is_ok().then_some(*kind)
    };
    KNOWN.iter().filter_map(has).collect()
}

/// Namespace, interfaces and flags of a `giveway live`.
struct LiveOptions {
    namespace: Namespace,
    ends: (&'static str, &'static str),
    /// Each with its value, as in `--rate=5mbit`.
    flags: Vec<String>,
}

/// The discipline at the bottleneck, and the delays behind it.
fn live_router(live: &Live, at: usize) -> LiveOptions {
    let spec = &live.network.disciplines[at];
    let mut flags = Vec::new();
    for (direction, suffix) in [(&live.forward, ""), (&live.reverse, "-reverse")] {
        let varying = direction.settings.iter().find(|(name, _)| *name == "rate");
        let rate = varying.map_or_else(|| direction.rate.to_string(), |(_, value)| value.clone());
        flags.push(format!("--rate{suffix}={rate}"));
        flags.push(format!("--qdisc{suffix}={}", direction.queue.spec(spec)));
        flags.extend(wire(direction, suffix));
    }
    LiveOptions { namespace: Namespace::Router, ends: (LEFT, RIGHT), flags }
}

/// The wires behind the disciplines of the kernel. `htb` passes a packet on at the beginning of its
/// transmission, and a line after it; so behind `htb` there is a line of the same rate. The other ones have
/// no rate here, and no queue builds up. The bridge is on the far side: packets of the reverse direction
/// cross it before their discipline, so with a rate it would have their queue.
fn delay_bridge(live: &Live, contender: &Contender) -> LiveOptions {
    let mut flags = [wire(&live.forward, ""), wire(&live.reverse, "-reverse")].concat();
    if matches!(contender, Contender::Kernel(queue) if !queue.shapes()) {
        flags.push(format!("--rate={}", live.forward.rate));
    }
    LiveOptions { namespace: Namespace::Delay, ends: (DELAY_LEFT, DELAY_RIGHT), flags }
}

/// The flags of the wire behind a link.
fn wire(direction: &Direction, suffix: &str) -> Vec<String> {
    let flag = |name: &str, value: &str| format!("--{name}{suffix}={value}");
    let varies = direction.wire().any(|(name, _)| *name == "delay");
    let constant = (!varies).then(|| flag("delay", &direction.delay.to_string()));
    constant.into_iter().chain(direction.wire().map(|(name, value)| flag(name, value))).collect()
}

/// Reads the lateness, and losses outside the queues, from the JSON summary of `giveway live`.
fn read_lateness_and_losses(summary: &Value) -> (Option<Span>, Vec<String>) {
    let directions = || summary["directions"].as_array().into_iter().flatten();
    let late = directions().filter_map(|direction| direction["lateness_s"]["p99"].as_f64());
    let late = late.reduce(f64::max).map(Span::from_s_f64);
    let name = |direction: &Value| direction["direction"].as_str().unwrap_or("?").to_owned();
    let losses = directions().flat_map(|direction| {
        let lost = direction["lost"].as_object().into_iter().flatten();
        let lost =
            lost.filter_map(|(place, count)| Some((place, count.as_u64().filter(|count| *count > 0)?)));
        lost.map(move |(place, count)| {
            format!("the router lost {count} frames, {} ({place})", name(direction))
        })
    });
    let plain = directions().filter(|direction| direction["plain"].is_string());
    let plain =
        plain.map(|direction| format!("the router fell back to plain forwarding, {}", name(direction)));
    (late, losses.chain(plain).collect())
}

/// Reads the summary of the only run in a run folder.
fn summary_in(folder: &Path) -> Result<Summary, TestbedError> {
    let trials = folder.join("trials");
    let wrong = |path: &Path, why: String| TestbedError::Result { path: path.to_owned(), why };
    // trials/DISCIPLINE/SEED/summary.json
    let mut path = trials.clone();
    for _ in 0..2 {
        let entries = fs::read_dir(&path).map_err(|error| wrong(&path, error.to_string()))?;
        let mut inside = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        path = inside.next().ok_or_else(|| wrong(&trials, "there is no run in this folder".to_owned()))?;
    }
    path.push("summary.json");
    let text = fs::read_to_string(&path).map_err(|error| wrong(&path, error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(&path, error.to_string()))
}

/// Copies a folder into another one, in place of what has the same names there.
fn copy(from: &Dir, to: &Dir) -> io::Result<()> {
    for (name, kind) in from.entries()? {
        match kind {
            Kind::Folder => {
                to.remove_all(&name)?;
                copy(&from.enter(&name)?, &to.make(&name, 0o777)?)?;
            }
            _ => drop(io::copy(&mut from.file(&name)?, &mut to.new_file(&name, 0o666)?)?),
        }
    }
    Ok(())
}

impl LiveRouter {
    /// Starts `giveway live` in the test bed. When this returns, frames pass.
    fn start(
        start: &Start<'_>,
        options: &LiveOptions,
        record: Option<PathBuf>,
    ) -> Result<LiveRouter, TestbedError> {
        let Start { topology, seed, program, scratch, .. } = start;
        let ready = scratch.join("ready");
        let pipe = |name: &str| {
            let path = scratch.join(name);
            let written = File::create(&path).and_then(|written| Ok((written, File::open(&path)?)));
            written.map_err(TestbedError::system(format!("write {}", path.display())))
        };
        let ((stdout, json_output), (stderr, messages)) = (pipe("output")?, pipe("messages")?);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &topology.name(options.namespace)]).arg(program);
        command.args(["live", "--in", options.ends.0, "--out", options.ends.1]);
        command.args(&options.flags);
        if let Some(ns) = start.starts_at {
            command.args(["--starts-at", &ns.to_string()]);
            command.args(["--mean-over", &start.duration.to_string()]);
        }
        // Rates of a scenario count IP packets without the Ethernet header.
        command.args(["--overhead", "0", "--seed", &seed.to_string(), "--quiet", "--json"]);
        command.arg("--ready").arg(&ready);
        if let Some(record) = &record {
            command.arg("--record-later").arg("--record").arg(record);
            command.args(["--small-packet", &start.small_packet.to_string()]);
            if let Some(trace) = start.trace {
                command.arg("--trace").arg(trace);
            }
        }
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let child = command.spawn().map_err(TestbedError::system(format!("start {}", program.display())))?;
        let program = Background::new(child);
        let mut live_router = LiveRouter { program, record, keep: None, json_output, messages };
        if live_router.program.starts(|| ready.exists()) {
            return Ok(live_router);
        }
        Err(live_router.error("did not start"))
    }

    fn stop(mut self) -> Result<RouterResult, TestbedError> {
        // If it has ended already, the checks below report it.
        self.program.signal(Signal::SIGTERM);
        if !self.program.ends() {
            return Err(self.error("did not end"));
        }
        let status = self.program.status().map_err(TestbedError::system("wait for the router"))?;
        if !status.success() {
            return Err(self.error("failed"));
        }
        if let (Some(record), Some(keep)) = (&self.record, &self.keep) {
            let copied = Dir::open(record).and_then(|from| copy(&from, &Dir::create(keep)?));
            copied.map_err(TestbedError::system(format!("keep the recording in {}", keep.display())))?;
        }
        let summary = self.record.as_ref().map(|record| summary_in(&record.join("forward"))).transpose()?;
        let Ok(summary_json) = serde_json::from_reader::<_, Value>(&self.json_output) else {
            return Err(self.error("printed no summary"));
        };
        let (late_p99, remarks) = read_lateness_and_losses(&summary_json);
        Ok(RouterResult { summary, late_p99, remarks })
    }

    fn error(&mut self, what: &str) -> TestbedError {
        let mut output = String::new();
        // An error of reading is less important than the error that is being reported.
        let _ = self.messages.rewind().and_then(|()| self.messages.read_to_string(&mut output));
        TestbedError::Router { what: what.to_owned(), output: output.trim_end().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_output_of_tc() {
        let text = "qdisc htb 1: root refcnt 2 r2q 10 default 0x1\n Sent 99 bytes 3 pkt (dropped 17, overlimits 5 requeues 0)\n";
        assert_eq!(dropped(text), 17);
        assert_eq!(dropped("qdisc noqueue 0: root refcnt 2\n"), 0);
    }

    #[test]
    fn kernel_counters_are_those_of_the_measurement_interval() {
        let counters = |all: &[(&str, u64)]| -> Counters {
            all.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
        };
        let names =
            ["sent_packets", "dropped_packets", "held_packets", "flow_table_most", "overlimit", "pushout"];
        let at = |numbers: [u64; 6]| counters(&names.into_iter().zip(numbers).collect::<Vec<_>>());
        let metrics = counted(&at([10, 3, 9, 7, 3, 0]), &at([110, 5, 4, 8, 3, 2]));
        let actual: Vec<(&str, f64)> = metrics.iter().map(|(name, value)| (name, value.unwrap())).collect();
        let expected = [
            ("drops", 2.0),
            ("marks", 0.0),
            ("drops_pushout", 2.0),
            ("flow_table_max", 8.0),
            ("kernel.sent_packets", 100.0),
            ("kernel.dropped_packets", 2.0),
            ("kernel.held_packets", 4.0),
            ("kernel.flow_table_most", 8.0),
        ];
        assert_eq!(actual, expected);
    }

    #[test]
    fn lateness_and_losses_are_read_from_the_summary() {
        let direction = |name: &str, p99: f64, ring: u64| {
            let lost = serde_json::json!({"ring": ring, "link_emulation": 0});
            serde_json::json!({"direction": name, "lateness_s": {"p99": p99}, "lost": lost, "plain": null})
        };
        let summary = serde_json::json!({"directions": [direction("forward", 0.0001, 0), direction("reverse", 0.002, 7)]});
        let (late, remarks) = read_lateness_and_losses(&summary);
        assert_eq!(late, Some(Span::ms(2)));
        assert_eq!(remarks, ["the router lost 7 frames, reverse (ring)"]);
        assert_eq!(read_lateness_and_losses(&serde_json::json!({})), (None, Vec::new()));
    }

    #[test]
    fn the_queue_of_the_reverse_direction_is_in_the_kernel() {
        let scenario = "backend = \"live\"\nduration = \"1 s\"\ndisciplines = [\"kernel:pfifo\", \"kernel:tbf\"]\n\
                        [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"2 Mbit/s\"\ndelay = \"5 ms\"\nqdisc = \"compare\"\n\
                        [[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";
        let scenario = giveway_scenario::Scenario::parse(scenario, ".").unwrap();
        let live = scenario.live().unwrap();
        let flags = |at: usize| delay_bridge(live, &live.compared[at]).flags.join(" ");
        assert_eq!(flags(0), "--delay=5ms --delay-reverse=5ms --rate=2mbit");
        assert_eq!(flags(1), "--delay=5ms --delay-reverse=5ms");
    }

    #[test]
    fn drr_of_the_kernel_has_a_queue_per_flow() {
        let commands = drr("right", "limit 100");
        assert_eq!(commands.lines().count(), 129);
        assert!(commands.starts_with("class add dev right parent 2: classid 2:1 drr quantum 1500\nqdisc add dev right parent 2:1 pfifo limit 100\n"));
        assert!(commands.contains("classid 2:40 ") && commands.ends_with("divisor 64 baseclass 2:1\n"));
    }

    #[test]
    fn bursts_are_a_quarter_of_a_millisecond() {
        assert_eq!(burst(Rate::mbit(10)), 312);
        assert_eq!(burst(Rate::mbit(1000)), 31_250);
    }
}
