//! `giveway live --qdisc bpf:efd`: the discipline stands in the kernel, and so does the wire between the
//! interfaces.
//!
//! - Each direction's discipline is a BPF qdisc at the root of the interface at which it leaves; the kernel
//!   hands what comes in at one interface to the other. No frame comes here: this program loads, watches,
//!   tells what the kernel counts, and takes away.
//! - Both directions are on one side, the kernel's or this program's.
//! - What needs to see packets cannot be: a line with delay and loss, records, captures, traces. Each is
//!   refused by name.
//! - When this program ends, the wire is parted first, what is queued leaves, and then the disciplines go.
//!   When it is killed, both stay and traffic goes on; the next start takes them away.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use giveway_control::config::{self, UNLIMITED};
use giveway_control::settings::Setting;
use giveway_control::{ControlApi, ControlError};
use giveway_kernel::KernelError;
use giveway_kernel::attach::{self, Attached, LoadRequest, Source};
use giveway_kernel::redirect;
use giveway_kernel_plan::plan::{Kind, Plan};
use giveway_live::clock::monotonic_ns;
use giveway_live::privilege::{self, Confinement};
use giveway_qdisc::{Backlog, DropReason, PortCounters, Rate, Span, units};
use giveway_watch::{Backend, Direction, Drops, Snapshot, Status, json, summary};

use super::preparing::{self, Prepared};
use super::{Args, Signals, pause, say, say_ready, serving, wrong};
use crate::{Outcome, show, terminal};

const PREFIX: &str = "bpf:";
/// Ethernet's header, which the kernel counts.
const FRAME: i32 = 14;
/// How often it is looked whether all is still in its place.
const LOOK_NS: u64 = 2_000_000_000;
/// How often signals are looked for.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client waits for `tc` and `bpftool`: less than its connection lives.
const ANSWER: Duration = Duration::from_millis(1500);
/// So many questions may wait.
const QUESTIONS: usize = 8;
/// How long queued frames are sent at the end.
const PATIENCE_NS: u64 = 5_000_000_000;

/// What one direction is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// The discipline, without its prefix.
    text: String,
    rate: Option<Rate>,
}

/// What both directions are to do in the kernel; nothing where they are to be here.
///
/// # Errors
/// A sentence on what cannot be there.
pub fn asked(args: &Args, filed: &[Setting], flags: &[Setting]) -> Result<Option<[Wish; 2]>, String> {
    let all: Vec<&Setting> = filed.iter().chain(flags).collect();
    let last = |name: &str| {
        let mut found = all.iter().rev().filter(|(other, _)| other.replace('_', "-") == name);
        found.next().map(|(_, value)| value.trim())
    };
    let there = last("qdisc").unwrap_or("fq_codel");
    let spelled = [there, last("qdisc-reverse").unwrap_or(there)];
    let texts = spelled.map(|text| text.strip_prefix(PREFIX));
    let (there, back) = match texts {
        [None, None] => return Ok(None),
        [Some(there), Some(back)] => (there, back),
        _ => {
            let [there, back] = spelled;
            return Err(format!(
                "--qdisc is {there} and --qdisc-reverse {back}: either both directions are in the kernel or none; write for example \
                 --qdisc-reverse bpf:fifo"
            ));
        }
    };
    refuse(args, &all)?;
    let rate = |name: &str| match last(name) {
        None | Some("unlimited") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|error| format!("--{name}: {error}")),
    };
    let wish = |text: &str, rate| Wish { text: text.to_owned(), rate };
    Ok(Some([wish(there, rate("rate")?), wish(back, rate("rate-reverse")?)]))
}

/// What cannot be where no packet comes to this program.
fn refuse(args: &Args, all: &[&Setting]) -> Result<(), String> {
    const OURS: &str = "or take a discipline that runs here, as --qdisc efd";
    let own = ["rate", "rate-reverse", "qdisc", "qdisc-reverse"];
    if let Some((name, _)) = all.iter().find(|(name, _)| !own.contains(&name.replace('_', "-").as_str())) {
        return Err(format!(
            "--{}: in the kernel there is no line behind a discipline, only the interface: leave it out, {OURS}",
            name.replace('_', "-")
        ));
    }
    let see = [
        ("--record", args.record.is_some()),
        ("--pcap", args.pcap.is_some()),
        ("--trace", args.trace.is_some()),
        ("--tui", args.tui),
        ("--reserve", args.reserving.reserve),
    ];
    if let Some((flag, _)) = see.into_iter().find(|(_, said)| *said) {
        let instead = match flag {
            "--tui" => "giveway kernel show says what the kernel counts",
            "--reserve" => "bpf:trr has rates by the marks of packets, see giveway kernel load --help",
            _ => "leave it out",
        };
        return Err(format!("{flag}: in the kernel no packet passes this program: {instead}, {OURS}"));
    }
    if args.mpu != 0 {
        return Err(format!(
            "--mpu: the kernel's disciplines count what each packet has: leave it out, {OURS}"
        ));
    }
    if let Some(name) = [&args.inside, &args.outside].into_iter().find(|name| name.starts_with("tun:")) {
        return Err(format!(
            "{name}: a TUN interface of this program has nobody behind it in the kernel: name two real ones, {OURS}"
        ));
    }
    Ok(())
}

/// One direction.
struct Way {
    direction: Direction,
    from: String,
    to: String,
    text: String,
    plan: Plan,
    attached: Attached,
}

/// Both, from the outside.
struct Keeper {
    ways: [Way; 2],
    rates: std::sync::Mutex<[u64; 2]>,
    began: u64,
}

/// Loads, joins, watches, parts, unloads.
pub fn live(args: &Args, wishes: [Wish; 2], out: &mut dyn Write) -> io::Result<Outcome> {
    let user = match preparing::user(args) {
        Ok(user) => user,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    let Some(prepared) = preparing::prepare(args) else { return Ok(Outcome::Wrong) };
    // The threads that serve clients become that user. The watching one loads and unloads, and stays root.
    let user = user.map(|(identity, _)| identity);
    privilege::confine(Confinement { user, folders: Vec::new() });
    match carry(args, wishes, prepared, out) {
        Ok(outcome) => Ok(outcome),
        Err(LiveError::Kernel(error)) => {
            show::sentence(&error.to_string());
            Ok(if error.is_prerequisite() { Outcome::Wrong } else { Outcome::Failed })
        }
        Err(LiveError::Sentence(sentence)) => Ok(wrong(&sentence)),
        Err(LiveError::Output(error)) => Err(error),
    }
}

/// Why it does not work.
enum LiveError {
    Kernel(KernelError),
    Sentence(String),
    Output(io::Error),
}

impl From<KernelError> for LiveError {
    fn from(error: KernelError) -> LiveError {
        LiveError::Kernel(error)
    }
}
impl From<String> for LiveError {
    fn from(sentence: String) -> LiveError {
        LiveError::Sentence(sentence)
    }
}
impl From<io::Error> for LiveError {
    fn from(error: io::Error) -> LiveError {
        LiveError::Output(error)
    }
}

fn carry(
    args: &Args,
    wishes: [Wish; 2],
    mut prepared: Prepared,
    out: &mut dyn Write,
) -> Result<Outcome, LiveError> {
    let ends = [args.inside.as_str(), args.outside.as_str()];
    let more = args.overhead as i32 - FRAME;
    let plan = |wish: &Wish, to: &str| -> Result<Plan, KernelError> {
        // The default quantum is the largest packet, as it is counted.
        let largest = attach::largest_packet(to)?.saturating_add_signed(more.into());
        Ok(Plan::new(&wish.text, wish.rate, None, largest)?)
    };
    let plans = [plan(&wishes[0], ends[1])?, plan(&wishes[1], ends[0])?];
    attach::ready()?;
    let signals = Signals::listen().map_err(|error| format!("cannot listen for signals: {error}"))?;
    let metrics = args.metrics.map(serving::listen).transpose()?;
    let load = |plan: &Plan, device: &str| {
        let source = args.objects.as_deref().map_or(Source::Compiled, Source::Folder);
        attach::load(&LoadRequest {
            device,
            plan,
            reservations: &[],
            source,
            overhead: more,
            keep: true,
            replace: false,
        })
    };
    let forward = load(&plans[0], ends[1])?;
    let undo = |error: KernelError, devices: &[&str]| {
        // The first trouble is the one to tell.
        devices.iter().for_each(|device| drop(attach::unload(device)));
        LiveError::Kernel(error)
    };
    let back = load(&plans[1], ends[0]).map_err(|error| undo(error, &ends[1..]))?;
    let joined = redirect::join(ends).map_err(|error| undo(error, &ends))?;
    let rates = [&plans[0], &plans[1]].map(|plan| plan.params.rate);
    let [there, here] = plans;
    let way = |direction, (from, to): (&str, &str), plan: Plan, attached| {
        let (from, to, text) = (from.to_owned(), to.to_owned(), format!("{PREFIX}{}", plan.text()));
        Way { direction, from, to, text, plan, attached }
    };
    let ways = [
        way(Direction::Forward, (ends[0], ends[1]), there, forward),
        way(Direction::Reverse, (ends[1], ends[0]), here, back),
    ];
    let keeper = Keeper { ways, rates: rates.into(), began: monotonic_ns() };
    let (questions, asked) = mpsc::sync_channel(QUESTIONS);
    let stopped = Arc::new(AtomicBool::new(false));
    let front = Arc::new(Front { questions, stopped: Arc::clone(&stopped) });
    serving::start(prepared.listener.take(), metrics, &front);
    let kept = privilege::limit_to_loading();
    if !args.quiet {
        keeper.describe().iter().for_each(|line| show::sentence(line));
        if terminal::watched() {
            show::sentence("Ctrl-C ends it");
        }
    }
    say_ready(args);
    if let Err(why) = kept {
        say(args, &format!("not all privileges could be given up: {why}"));
    }
    let whole = watch(args, &keeper, &signals, &asked, &stopped, &prepared);
    let parted = redirect::part(&joined);
    if whole {
        drain(&keeper);
    }
    let snapshots = keeper.snapshots();
    let mut outcome = if whole { Outcome::Done } else { Outcome::Failed };
    let mut told = |error: String| {
        show::sentence(&error);
        outcome = Outcome::Failed;
    };
    if let Err(error) = parted {
        told(error.to_string());
    }
    for way in &keeper.ways {
        match attach::unload(&way.to) {
            Ok(None) => {}
            Ok(Some(missing)) => told(missing),
            Err(error) => told(error.to_string()),
        }
    }
    match snapshots {
        Ok(snapshots) if args.json => writeln!(out, "{}", json::render(&snapshots))?,
        Ok(snapshots) => write!(out, "{}", summary::render(&snapshots))?,
        Err(error) => told(error.to_string()),
    }
    Ok(outcome)
}

/// Until somebody wants it to end; false when something was taken away from under it.
fn watch(
    args: &Args,
    keeper: &Keeper,
    signals: &Signals,
    asked: &mpsc::Receiver<Question>,
    stopped: &AtomicBool,
    prepared: &Prepared,
) -> bool {
    let end = args.duration.map(|span| monotonic_ns() + span.as_ps() / 1000);
    let mut looked = monotonic_ns();
    loop {
        // `front` lives as long as the serving threads do; without them nobody asks, and the time passes all
        // the same.
        match asked.recv_timeout(PAUSE) {
            Ok(question) => question.answer(keeper),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => pause(PAUSE),
        }
        prepared.tick();
        if signals.reload() {
            say(
                args,
                "SIGHUP: a discipline in the kernel is told its rate by giveway control, and the rest when it begins",
            );
        }
        if signals.end() || stopped.load(Ordering::Relaxed) || end.is_some_and(|end| monotonic_ns() >= end) {
            return true;
        }
        if monotonic_ns() > looked + LOOK_NS {
            looked = monotonic_ns();
            if let Some(way) = keeper.ways.iter().find(|way| !attach::is_attached(&way.attached)) {
                show::sentence(&format!(
                    "{} has no {} any more: somebody took it away, and the rest is taken away, too",
                    way.to, way.attached.name
                ));
                return false;
            }
        }
    }
}

/// What is queued leaves, as long as that takes and patience lasts.
fn drain(keeper: &Keeper) {
    let until = monotonic_ns() + PATIENCE_NS;
    while monotonic_ns() < until {
        let packets = |of: &Snapshot| of.status.backlog.packets;
        let backlog = keeper.snapshots().map_or(0, |snapshots| snapshots.iter().map(packets).sum());
        if backlog == 0 {
            return;
        }
        pause(Duration::from_millis(50));
    }
}

/// Counters of a direction from those that the kernel has, by name. Names that are not counters of every discipline are
/// gauges.
fn status(counters: &[(String, u64)]) -> Status {
    let number =
        |name: &str| counters.iter().find(|(other, _)| other == name).map_or(0, |(_, number)| *number);
    let amount = |what: &str| Backlog {
        packets: number(&format!("{what}_packets")),
        bytes: number(&format!("{what}_bytes")),
    };
    let is_gauge = |name: &str| {
        let amounts = ["arrived", "sent", "dropped", "held"];
        let is_amount = |what: &&str| name.strip_prefix(*what).is_some_and(|rest| rest.starts_with('_'));
        !amounts.iter().any(is_amount) && !DropReason::ALL.iter().any(|reason| reason.name() == name)
    };
    let all = amount("dropped");
    let mut dropped = Drops::default();
    for why in DropReason::ALL {
        let packets = number(why.name());
        // The kernel counts the bytes of all drops together: each reason gets a share in proportion to its packets.
        let bytes = u128::from(all.bytes) * u128::from(packets) / u128::from(all.packets.max(1));
        dropped.set(why, Backlog { packets, bytes: bytes as u64 });
    }
    let gauges = counters.iter().filter(|(name, _)| is_gauge(name));
    Status {
        counters: PortCounters { arrived: amount("arrived"), sent: amount("sent"), dropped: all, marked: 0 },
        dropped,
        backlog: amount("held"),
        gauges: gauges.map(|(name, number)| (name.clone().into(), *number as f64)).collect(),
        ..Status::default()
    }
}

impl Keeper {
    /// Snapshots of both directions. The kernel has no sojourn times, and no counters of a link emulation.
    fn snapshots(&self) -> Result<Vec<Snapshot>, KernelError> {
        let one = |(at, way): (usize, &Way)| {
            let mut status = status(&attach::counters(&way.attached)?);
            status.rate = self.rate(at);
            status.uptime = self.uptime();
            status.scheduling = format!("in the kernel, as {}", way.attached.name);
            Ok(Snapshot {
                from: way.from.clone(),
                to: way.to.clone(),
                direction: way.direction,
                spec: way.text.clone(),
                kind: way.plan.kind.name().to_owned(),
                handle: "1:".to_owned(),
                backend: Backend::Kernel,
                status,
                ..Snapshot::default()
            })
        };
        self.ways.iter().enumerate().map(one).collect()
    }

    fn rate(&self, at: usize) -> Rate {
        match self.rates.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[at] {
            0 => UNLIMITED,
            rate => Rate::bit(rate),
        }
    }

    fn uptime(&self) -> Span {
        Span::ns(monotonic_ns() - self.began)
    }

    fn describe(&self) -> Vec<String> {
        let line = |(at, way): (usize, &Way)| {
            let Way { from, to, text, attached, .. } = way;
            format!(
                "{from} to {to}: {}, {text}; in the kernel, as {}",
                config::rate(self.rate(at)),
                attached.name
            )
        };
        self.ways.iter().enumerate().map(line).collect()
    }

    fn set_rate(&self, at: usize, value: &str) -> Result<String, ControlError> {
        let rate: Option<Rate> = match value {
            "unlimited" => None,
            text => Some(text.parse().map_err(|error: units::UnitError| ControlError::unavailable(error))?),
        };
        let way = &self.ways[at];
        if way.plan.kind == Kind::Trr {
            return Err(ControlError::unavailable(
                "the calendar of trr is built for one rate: stop the bridge, and start it with another rate",
            ));
        }
        let mut plan = way.plan.clone();
        plan.params.rate = rate.map_or(0, Rate::as_bit);
        attach::set_params(&way.attached, &plan).map_err(ControlError::unavailable)?;
        self.rates.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[at] = plan.params.rate;
        Ok(format!("the rate from {} to {} is {}", way.from, way.to, config::rate(self.rate(at))))
    }
}

impl Keeper {
    fn set(&self, name: &str, value: &str) -> Result<String, ControlError> {
        match name {
            "rate" => self.set_rate(0, value),
            "rate-reverse" => self.set_rate(1, value),
            _ => Err(ControlError::unavailable(format!(
                "{name}: with disciplines in the kernel, only rate and rate-reverse can change while the bridge runs"
            ))),
        }
    }
}

/// What the threads that serve clients ask the watching thread, the only one that may run `tc` and `bpftool`.
enum Question {
    Set(String, String, mpsc::Sender<Result<String, ControlError>>),
    Snapshots(mpsc::Sender<Result<Vec<Snapshot>, ControlError>>),
}

impl Question {
    fn answer(self, keeper: &Keeper) {
        // A client may have gone meanwhile: then nobody hears the answer.
        let _ = match self {
            Question::Set(name, value, to) => to.send(keeper.set(&name, &value)).is_ok(),
            Question::Snapshots(to) => to.send(keeper.snapshots().map_err(ControlError::unavailable)).is_ok(),
        };
    }
}

/// The bridge as the serving threads see it: they have no privileges and run no programs.
struct Front {
    questions: mpsc::SyncSender<Question>,
    stopped: Arc<AtomicBool>,
}

impl Front {
    fn ask<T>(&self, question: impl FnOnce(mpsc::Sender<T>) -> Question) -> Result<T, ControlError> {
        let (to, answer) = mpsc::channel();
        let busy = || ControlError::unavailable("tc or bpftool took too long to answer: try again");
        self.questions.try_send(question(to)).map_err(|_| busy())?;
        answer.recv_timeout(ANSWER).map_err(|_| busy())
    }
}

impl ControlApi for Front {
    fn snapshots(&self) -> Result<Vec<Snapshot>, ControlError> {
        self.ask(Question::Snapshots)?
    }

    fn reservations(&self) -> Result<String, ControlError> {
        Err(ControlError::unavailable(
            "a discipline in the kernel reserves rates by the marks of packets; they are in a map: bpftool map dump pinned \
             /sys/fs/bpf/giveway/IF/reservations",
        ))
    }

    fn set(&self, name: &str, value: &str) -> Result<String, ControlError> {
        self.ask(|to| Question::Set(name.to_owned(), value.to_owned(), to))?
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_kernel_are_a_status() {
        let all = [
            ("arrived_packets", 9),
            ("arrived_bytes", 900),
            ("held_packets", 2),
            ("pushout", 3),
            ("overlimit", 0),
            ("flow_table", 4),
        ];
        let counters: Vec<(String, u64)> =
            all.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        let status = status(&counters);
        let arrived = status.counters.arrived;
        assert_eq!((arrived.packets, arrived.bytes, status.backlog.packets), (9, 900, 2));
        let drops: Vec<_> = status.dropped.iter().filter(|(_, lost)| lost.packets > 0).collect();
        assert_eq!(drops, [(DropReason::Pushout, Backlog { packets: 3, bytes: 0 })]);
        assert_eq!(status.gauges, [("flow_table".into(), 4.0)]);
    }
}
