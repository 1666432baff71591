//! What stands in the middle: our router, or the kernel's forwarding with a discipline of its own.
//!
//! Ours is the program `giveway live`, started inside the line's namespace and ended by SIGTERM; what it recorded of either direction
//! is a folder with the tables of a run. It begins to measure when it is told, by SIGUSR1, that the warm-up is over. The kernel's is a
//! stand-in: `tc` puts its discipline in front of each interface, only the ends measure, and the delays are those of a wire of ours.
//! A discipline of ours in the kernel stands where one of the kernel's would, and shapes by itself; what it counts within the measured
//! part is in the result, under the names that a router of ours has and as `kernel.NAME`.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kernel::attach::{self, Attached, Order, Source};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use qdisc::{DropReason, Rate, Span};
use record::{Fingerprint, Metrics, Summary};
use scenario::{BpfQueue, Contender, Direction, KernelQueue, Live, Queue};
use serde_json::Value;

use crate::command::{exists, run, run_with};
use crate::space::{Corner, LEFT, Middle, RIGHT, Space, WIRE_LEFT, WIRE_RIGHT};
use crate::trouble::Trouble;

/// Who stands in the middle for a run.
pub enum Router {
    /// The kernel, and where the scenario has delays a wire of ours behind it.
    Kernel(Option<Box<Ours>>),
    /// The kernel with a discipline of ours, and the same wire.
    Bpf(Box<Bpf>),
    /// Our program.
    Ours(Box<Ours>),
}

/// A discipline of ours that runs in the kernel.
pub struct Bpf {
    there: Attached,
    wire: Option<Ours>,
    /// What it had counted when the warm-up was over, once somebody has asked.
    before: Mutex<Option<JoinHandle<Result<Counters, kernel::Trouble>>>>,
}

/// What it counts, by name.
type Counters = Vec<(String, u64)>;

/// A router of ours that runs.
pub struct Ours {
    child: Child,
    /// Where it records, if it does.
    record: Option<PathBuf>,
    /// What it says in the end, as JSON.
    account: File,
    /// What it says besides.
    said: File,
}

/// What is known when the run is over.
#[derive(Debug, Default)]
pub struct Told {
    /// What our router measured.
    pub summary: Option<Summary>,
    /// How late our router sent: the 99th percentile of the worse direction.
    pub late_p99: Option<Span>,
    /// What there is to say.
    pub remarks: Vec<String>,
}

/// How long our router may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(5);
/// A frame is that much longer than the IP packet in it, and the kernel counts frames.
const FRAME: i32 = 14;
/// Disciplines that the kernel may have and that can be asked for here, each with what `tc` does not do without.
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

/// What must be in the middle of the test bed for a contender.
pub fn middle(live: &Live, contender: &Contender) -> Middle {
    let late = !(live.forth.delay + live.back.delay).is_zero();
    match contender {
        Contender::Kernel(_) | Contender::Bpf(_) if late => Middle::RoutedLate,
        Contender::Kernel(_) | Contender::Bpf(_) => Middle::Routed,
        Contender::Ours(_) => Middle::Bridged,
    }
}

/// What a run is to stand in the middle of.
pub struct Start<'a> {
    /// The test bed.
    pub space: &'a Space,
    /// The scenario.
    pub live: &'a Live,
    /// Whose turn it is.
    pub contender: &'a Contender,
    /// Of the run.
    pub seed: u64,
    /// Packets up to this length are small, in bytes.
    pub small_packet: u32,
    /// The program `giveway`.
    pub program: &'a Path,
    /// An empty folder for what nobody keeps.
    pub scratch: &'a Path,
    /// A folder for what our router records, if it is kept.
    pub keep: Option<&'a Path>,
    /// Where objects for the kernel are, where they are not compiled here.
    pub objects: Option<&'a Path>,
}

impl Router {
    /// Starts it; when this returns, packets pass.
    ///
    /// # Errors
    /// What the kernel lacks, or why our program does not start.
    pub fn start(start: &Start<'_>) -> Result<Router, Trouble> {
        let wire = || {
            let late = middle(start.live, start.contender) == Middle::RoutedLate;
            late.then(|| Ours::start(start, &wire(start.live), None)).transpose()
        };
        match start.contender {
            Contender::Kernel(queue) => {
                back(start)?;
                shape(start.space, RIGHT, &start.live.forth, queue)?;
                Ok(Router::Kernel(wire()?.map(Box::new)))
            }
            Contender::Bpf(queue) => {
                back(start)?;
                let there = bpf(start, queue)?;
                Ok(Router::Bpf(Box::new(Bpf { there, wire: wire()?, before: Mutex::default() })))
            }
            Contender::Ours(at) => {
                let record = start.keep.map_or_else(|| start.scratch.join("record"), Path::to_owned);
                let ours = Ours::start(start, &ours(start.live, *at), Some(record))?;
                Ok(Router::Ours(Box::new(ours)))
            }
        }
    }

    /// The warm-up is over.
    pub fn measure(&self) {
        match self {
            Router::Kernel(_) => {}
            // Asking takes longer than the sources can wait.
            Router::Bpf(bpf) => {
                let there = bpf.there.clone();
                let asked = thread::spawn(move || attach::counters(&there));
                *bpf.before.lock().expect("nobody panics while holding it") = Some(asked);
            }
            // One that is not there any more is found when it is to end.
            Router::Ours(ours) => {
                let _ = kill(Pid::from_raw(ours.child.id() as i32), Signal::SIGUSR1);
            }
        }
    }

    /// Ends it, and asks what it has to say.
    ///
    /// # Errors
    /// When it did not end well, or what it wrote cannot be read.
    pub fn stop(self, space: &Space) -> Result<Told, Trouble> {
        match self {
            Router::Kernel(wire) => {
                let told = wire.map_or_else(|| Ok(Told::default()), |wire| wire.stop())?;
                let line = space.name(Corner::Line);
                let counts = [("there", RIGHT), ("back", LEFT)].map(|(way, device)| {
                    let dropped = dropped(&run(&["tc", "-s", "-n", &line, "qdisc", "show", "dev", device])?);
                    Ok(format!("the kernel dropped {dropped} packets on the way {way}"))
                });
                let counts: Result<Vec<String>, Trouble> = counts.into_iter().collect();
                Ok(Told { remarks: [counts?, told.remarks].concat(), ..told })
            }
            Router::Bpf(bpf) => bpf.stop(space),
            Router::Ours(ours) => ours.stop(),
        }
    }
}

impl Bpf {
    fn stop(self, space: &Space) -> Result<Told, Trouble> {
        let Bpf { there, wire, before } = self;
        let before = before.into_inner().expect("nobody panicked while holding it");
        let before =
            before.map(|asked| asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let after = attach::counters(&there)?;
        let metrics = counted(&before.transpose()?.unwrap_or_default(), &after);
        let told = wire.map_or_else(|| Ok(Told::default()), Ours::stop)?;
        space.within(Corner::Line, || attach::unload(RIGHT))??;
        let summary = Summary { fingerprint: Fingerprint::EMPTY, events: 0, metrics };
        Ok(Told { summary: Some(summary), ..told })
    }
}

/// What a discipline of ours in the kernel counted from one moment to another.
fn counted(before: &Counters, after: &Counters) -> Metrics {
    // These say how it is, not how much there was.
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
    // None of them marks.
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

/// Packets that the outermost discipline of a device dropped, from what `tc -s` says.
fn dropped(text: &str) -> u64 {
    let counts = text.split("(dropped ").nth(1).and_then(|rest| rest.split(',').next());
    counts.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Puts a discipline of ours in front of the bottleneck.
fn bpf(start: &Start<'_>, queue: &BpfQueue) -> Result<Attached, Trouble> {
    let order = Order {
        device: RIGHT,
        plan: &queue.plan,
        reservations: &[],
        source: start.objects.map_or(Source::Compiled, Source::Folder),
        // Counts packets without their frame, as the scenario does.
        overhead: -FRAME,
        keep: true,
        replace: false,
    };
    Ok(start.space.within(Corner::Line, || attach::load(&order))??)
}

/// Puts a discipline of the kernel in front of the way back.
fn back(start: &Start<'_>) -> Result<(), Trouble> {
    if !exists("tc", "-V") {
        return Err(Trouble::missing("there is no program tc", "apt-get install iproute2"));
    }
    let Live { back, .. } = start.live;
    match &back.queue {
        // What a link has that says nothing, and what the kernel has, too.
        usual if usual.is_usual() => {
            let long = KernelQueue { kind: "pfifo".into(), arguments: vec!["limit".into(), "1000".into()] };
            shape(start.space, LEFT, back, &long)
        }
        Queue::Fixed(_) | Queue::Compare => Err(Trouble::missing(
            "the way back has a discipline of ours, which is not the kernel's",
            "leave its qdisc out where something in the kernel is compared",
        )),
    }
}

fn shape(space: &Space, device: &str, way: &Direction, queue: &KernelQueue) -> Result<(), Trouble> {
    let line = space.name(Corner::Line);
    let rate = format!("{}bit", way.rate.as_bit());
    let burst = burst(way.rate).to_string();
    // Counts packets without their frame, as the scenario does.
    let overhead = format!("-{FRAME}");
    let stab = ["stab", "overhead", &overhead, "linklayer", "ethernet"];
    let tc = |words: &[&str]| run(&[&["tc", "-n", &line][..], words].concat());
    let own: Vec<&str> = queue.arguments.iter().map(String::as_str).collect();
    // What follows the name of drr is for the queues in it: itself it takes nothing.
    let (own, leaf) = if queue.kind == "drr" { (Vec::new(), own) } else { (own, Vec::new()) };
    let root = ["qdisc", "replace", "dev", device, "root", "handle", "1:"];
    let made = if queue.shapes() {
        let shaper = ["tbf", "rate", &rate, "burst", &burst];
        tc(&[&root[..], &stab, &shaper, &own].concat()).map(drop)
    } else {
        let class = ["class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb"];
        let shaper = ["rate", &rate, "ceil", &rate, "burst", &burst, "cburst", &burst, "quantum", "1514"];
        let inner = ["qdisc", "add", "dev", device, "parent", "1:1", "handle", "2:", &queue.kind];
        tc(&[&root[..], &stab, &["htb", "default", "1"]].concat())
            .and_then(|_| tc(&[&class[..], &shaper].concat()))
            .and_then(|_| tc(&[&inner[..], &own].concat()))
            .and_then(|_| match queue.kind.as_str() {
                "drr" => run_with(&["tc", "-n", &line, "-batch", "-"], &drr(device, &leaf.join(" "))),
                _ => Ok(String::new()),
            })
            .map(drop)
    };
    made.map_err(|trouble| match trouble {
        Trouble::Command { said, .. }
            if said.contains("kind is unknown") || said.contains("Unknown qdisc") =>
        {
            Trouble::missing(
                format!("this kernel has no discipline {}", queue.kind),
                format!("write one of those that it has: {}", available(space).join(", ")),
            )
        }
        Trouble::Command { command, said } if said.contains("What is") || said.contains("llegal") => {
            Trouble::missing(
                format!("tc does not understand {:?}: {said}", queue.to_string()),
                format!(
                    "what follows the name is tc's own, see man tc-{}; it was told: {command}",
                    queue.kind
                ),
            )
        }
        other => other,
    })
}

/// Classes of the kernel's drr, which has none by itself. Two flows that share one share its turns.
const CLASSES: u32 = 64;

/// What `tc -batch` is told so that drr has a queue per flow: classes, each with a pfifo, and a filter that hashes flows into them.
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

/// How much may leave at once: two full frames, or what passes in a quarter of a millisecond.
fn burst(rate: Rate) -> u64 {
    (rate.bytes_per_s() / 4000.0).max(3028.0) as u64
}

/// The disciplines that can be asked for and that this kernel has: it is asked for each, on an interface of ours.
fn available(space: &Space) -> Vec<&'static str> {
    let line = space.name(Corner::Line);
    let has = |(kind, own): &(&'static str, &[&str])| {
        let add = ["tc", "-n", &line, "qdisc", "replace", "dev", "lo", "root", kind];
        run(&[&add[..], own].concat()).is_ok().then_some(*kind)
    };
    KNOWN.iter().filter_map(has).collect()
}

/// What our program is asked for: where, and with which flags.
struct Asked {
    corner: Corner,
    ends: (&'static str, &'static str),
    flags: Vec<(&'static str, String)>,
}

/// A discipline of ours at the bottleneck, and the delays behind it.
fn ours(live: &Live, at: usize) -> Asked {
    let spec = &live.network.disciplines[at];
    let of =
        |way: &Direction| (way.rate.to_string(), way.queue.spec(spec).to_string(), way.delay.to_string());
    let ((rate, qdisc, delay), back) = (of(&live.forth), of(&live.back));
    let flags = vec![
        ("--rate", rate),
        ("--qdisc", qdisc),
        ("--delay", delay),
        ("--rate-reverse", back.0),
        ("--qdisc-reverse", back.1),
        ("--delay-reverse", back.2),
    ];
    Asked { corner: Corner::Line, ends: (LEFT, RIGHT), flags }
}

/// Only the delays: nothing ever waits in front of a link without limits.
fn wire(live: &Live) -> Asked {
    let flags = [("--delay", &live.forth), ("--delay-reverse", &live.back)];
    let flags = flags.map(|(flag, way)| (flag, way.delay.to_string()));
    Asked { corner: Corner::Wire, ends: (WIRE_LEFT, WIRE_RIGHT), flags: flags.to_vec() }
}

/// What the account of our router says that a run should not be without: how late it was, and what it lost elsewhere than in
/// its queues.
fn read_account(account: &Value) -> (Option<Span>, Vec<String>) {
    let directions = || account["directions"].as_array().into_iter().flatten();
    let late = directions().filter_map(|way| way["lateness_s"]["p99"].as_f64());
    let late = late.reduce(f64::max).map(Span::from_s_f64);
    let name = |way: &Value| way["direction"].as_str().unwrap_or("?").to_owned();
    let losses = directions().flat_map(|way| {
        let lost = way["lost"].as_object().into_iter().flatten();
        let lost =
            lost.filter_map(|(place, count)| Some((place, count.as_u64().filter(|count| *count > 0)?)));
        lost.map(move |(place, count)| format!("the router lost {count} frames, {} ({place})", name(way)))
    });
    let plain = directions().filter(|way| way["plain"].is_string());
    let plain = plain.map(|way| format!("the router fell back to plain forwarding, {}", name(way)));
    (late, losses.chain(plain).collect())
}

/// The summary of the only run in a run folder.
fn summary_in(folder: &Path) -> Result<Summary, Trouble> {
    let cells = folder.join("cells");
    let wrong = |path: &Path, why: String| Trouble::Result { path: path.to_owned(), why };
    // cells/DISCIPLINE/SEED/summary.json
    let mut path = cells.clone();
    for _ in 0..2 {
        let entries = fs::read_dir(&path).map_err(|error| wrong(&path, error.to_string()))?;
        let mut inside = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        path = inside.next().ok_or_else(|| wrong(&cells, "there is no run in it".to_owned()))?;
    }
    path.push("summary.json");
    let text = fs::read_to_string(&path).map_err(|error| wrong(&path, error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(&path, error.to_string()))
}

impl Ours {
    /// Starts `giveway live` in the test bed; when this returns, frames pass.
    fn start(start: &Start<'_>, asked: &Asked, record: Option<PathBuf>) -> Result<Ours, Trouble> {
        let Start { space, seed, program, scratch, .. } = start;
        let ready = scratch.join("ready");
        let pipe = |name: &str| {
            let path = scratch.join(name);
            let written = File::create(&path).and_then(|written| Ok((written, File::open(&path)?)));
            written.map_err(Trouble::system(format!("write {}", path.display())))
        };
        let ((output, account), (errors, said)) = (pipe("account")?, pipe("said")?);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &space.name(asked.corner)]).arg(program);
        command.args(["live", "--in", asked.ends.0, "--out", asked.ends.1]);
        for (flag, value) in &asked.flags {
            command.args([*flag, value]);
        }
        // Rates of a scenario count IP packets, without their frame.
        command.args(["--overhead", "0", "--seed", &seed.to_string(), "--quiet", "--json"]);
        command.arg("--ready").arg(&ready);
        if let Some(record) = &record {
            command.arg("--record-later").arg("--record").arg(record);
            command.args(["--small-packet", &start.small_packet.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = command.spawn().map_err(Trouble::system(format!("start {}", program.display())))?;
        let mut ours = Ours { child, record, account, said };
        if ours.wait(|ours| ready.exists() || ours.ended())? && !ours.ended() {
            return Ok(ours);
        }
        Err(ours.trouble("did not start"))
    }

    fn stop(mut self) -> Result<Told, Trouble> {
        let process = Pid::from_raw(self.child.id() as i32);
        // One that has ended already is told apart below.
        let _ = kill(process, Signal::SIGTERM);
        if !self.wait(Ours::ended)? {
            return Err(self.trouble("did not end"));
        }
        let status = self.child.wait().map_err(Trouble::system("wait for the router"))?;
        if !status.success() {
            return Err(self.trouble("failed"));
        }
        let summary = self.record.as_ref().map(|record| summary_in(&record.join("forward"))).transpose()?;
        let Ok(account) = serde_json::from_reader::<_, Value>(&self.account) else {
            return Err(self.trouble("gave no account"));
        };
        let (late_p99, remarks) = read_account(&account);
        Ok(Told { summary, late_p99, remarks })
    }

    fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until something is so; false when that takes too long.
    fn wait(&mut self, mut until: impl FnMut(&mut Ours) -> bool) -> Result<bool, Trouble> {
        let mut waited = Duration::ZERO;
        while !until(self) {
            if waited > PATIENCE {
                return Ok(false);
            }
            nap();
            waited += STEP;
        }
        Ok(true)
    }

    fn trouble(&mut self, what: &str) -> Trouble {
        let mut said = String::new();
        // What cannot be read is not told.
        let _ = self.said.rewind().and_then(|()| self.said.read_to_string(&mut said));
        Trouble::Router { what: what.to_owned(), said: said.trim_end().to_owned() }
    }
}

impl Drop for Ours {
    /// A run that was broken off leaves no router behind.
    fn drop(&mut self) {
        if !self.ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a test bed lives in real time, and waits here for another process"
)]
fn nap() {
    std::thread::sleep(STEP);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_what_tc_says() {
        let text = "qdisc htb 1: root refcnt 2 r2q 10 default 0x1\n Sent 99 bytes 3 pkt (dropped 17, overlimits 5 requeues 0)\n";
        assert_eq!(dropped(text), 17);
        assert_eq!(dropped("qdisc noqueue 0: root refcnt 2\n"), 0);
    }

    #[test]
    fn the_kernel_s_counters_are_those_of_the_measured_part() {
        let counters = |all: &[(&str, u64)]| -> Counters {
            all.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
        };
        let names =
            ["sent_packets", "dropped_packets", "held_packets", "flow_table_most", "overlimit", "pushout"];
        let at = |numbers: [u64; 6]| counters(&names.into_iter().zip(numbers).collect::<Vec<_>>());
        let metrics = counted(&at([10, 3, 9, 7, 3, 0]), &at([110, 5, 4, 8, 3, 2]));
        let told: Vec<(&str, f64)> = metrics.iter().map(|(name, value)| (name, value.unwrap())).collect();
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
        assert_eq!(told, expected);
    }

    #[test]
    fn the_account_says_what_was_late_and_lost() {
        let way = |name: &str, p99: f64, ring: u64| {
            let lost = serde_json::json!({"ring": ring, "line": 0});
            serde_json::json!({"direction": name, "lateness_s": {"p99": p99}, "lost": lost, "plain": null})
        };
        let account = serde_json::json!({"directions": [way("forward", 0.0001, 0), way("back", 0.002, 7)]});
        let (late, remarks) = read_account(&account);
        assert_eq!(late, Some(Span::ms(2)));
        assert_eq!(remarks, ["the router lost 7 frames, back (ring)"]);
        assert_eq!(read_account(&serde_json::json!({})), (None, Vec::new()));
    }

    #[test]
    fn the_kernel_s_drr_has_a_queue_per_flow() {
        let told = drr("right", "limit 100");
        assert_eq!(told.lines().count(), 129);
        assert!(told.starts_with("class add dev right parent 2: classid 2:1 drr quantum 1500\nqdisc add dev right parent 2:1 pfifo limit 100\n"));
        assert!(told.contains("classid 2:40 ") && told.ends_with("divisor 64 baseclass 2:1\n"));
    }

    #[test]
    fn bursts_are_two_frames_or_a_quarter_of_a_millisecond() {
        assert_eq!(burst(Rate::mbit(10)), 3028);
        assert_eq!(burst(Rate::mbit(1000)), 31_250);
    }
}
