//! `giveway live --qdisc bpf:efd`: the disciplines run in the kernel, and the kernel forwards between the
//! interfaces.
//!
//! - The discipline of each direction is a BPF qdisc at the root of its outgoing interface, and the kernel
//!   redirects frames from one interface to the other. With one interface (`--wan`), the frames that it
//!   receives get a virtual interface as their queue. This program processes no frames: it loads, supervises
//!   and unloads, and reports the counters of the kernel.
//! - Either both directions are in the kernel, or both are in this program.
//! - Features that process frames are refused by name: link emulation, records, captures and traces.
//! - At the end, the redirection is removed first, then the backlog leaves, and then the qdiscs are removed.
//!   If the program is killed, both stay and traffic continues; the next start removes them.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use giveway_bridge::kernel::requests::{Request, RequestSender};
use giveway_bridge::kernel::{AttachedDirection, KernelBridge};
use giveway_bridge::pause;
use giveway_control::settings::Setting;
use giveway_kernel::KernelError;
use giveway_kernel::attach::{self, LoadRequest, Source};
use giveway_kernel::route::Route;
use giveway_kernel_plan::plan::Plan;
use giveway_live::clock::monotonic_ns;
use giveway_live::privilege::{self, Confinement, Identity};
use giveway_program::{show, terminal};
use giveway_qdisc::Rate;
use giveway_text::chain;
use giveway_watch::{Direction, Snapshot, json, summary};

use super::error::BridgeError;
use super::interfaces::{Forwarder, Interfaces};
use super::messages::{announce_ready, remark};
use super::preparing::{self, Prepared};
use super::serving;
use super::signals::Signals;
use crate::error::NetError;
use crate::outcome::Outcome;
use giveway_program::commands::live::Args;

/// Prefix of the spec of a discipline that runs in the kernel.
const PREFIX: &str = "bpf:";
/// Length of an Ethernet header in bytes, which the kernel counts.
const FRAME: i32 = 14;
/// Interval between checks that the qdiscs are still attached, in nanoseconds.
const CHECK_NS: u64 = 2_000_000_000;
/// The remedy for a feature that needs this program to process frames.
const INSTEAD: &str = "or choose a discipline that runs in this program, as in --qdisc efd";
/// Interval between checks for signals.
const PAUSE: Duration = Duration::from_millis(50);
/// Largest number of queued requests of clients.
const REQUESTS: usize = 8;
/// Time limit for the backlog to leave at the end, in nanoseconds.
const PATIENCE_NS: u64 = 5_000_000_000;

/// The requested discipline and rate of a direction.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionRequest {
    /// Spec of the discipline, without its prefix.
    text: String,
    rate: Option<Rate>,
}

/// The requests of both directions; `None` if the disciplines run in this program.
///
/// # Errors
/// A setting that needs a program that processes frames.
pub fn requests(
    args: &Args,
    filed: &[Setting],
    flags: &[Setting],
) -> Result<Option<[DirectionRequest; 2]>, BridgeError> {
    let all: Vec<&Setting> = filed.iter().chain(flags).collect();
    let last = |name: &str| {
        let mut found = all.iter().rev().filter(|(other, _)| other.replace('_', "-") == name);
        found.next().map(|(_, value)| value.trim())
    };
    let forward = last("qdisc").unwrap_or("fq_codel");
    let specs = [forward, last("qdisc-reverse").unwrap_or(forward)];
    let texts = specs.map(|text| text.strip_prefix(PREFIX));
    let (forward, reverse) = match texts {
        [None, None] => return Ok(None),
        [Some(forward), Some(reverse)] => (forward, reverse),
        _ => {
            let [forward, reverse] = specs;
            return Err(BridgeError::Usage(format!(
                "--qdisc is {forward} and --qdisc-reverse {reverse}: either both directions are in the kernel or none; write for example \
                 --qdisc-reverse bpf:fifo"
            )));
        }
    };
    refuse(args, &all).map_err(BridgeError::Usage)?;
    let rate = |name: &'static str| match last(name) {
        None | Some("unlimited") => Ok(None),
        Some(text) if text.starts_with('{') => Err(BridgeError::Usage(format!(
            "--{name}: the rate of a discipline in the kernel is constant: write one, {INSTEAD}"
        ))),
        Some(text) => text.parse().map(Some).map_err(|source| BridgeError::Rate { name, source }),
    };
    let request = |text: &str, rate| DirectionRequest { text: text.to_owned(), rate };
    Ok(Some([request(forward, rate("rate")?), request(reverse, rate("rate-reverse")?)]))
}

/// Refuses settings that need a program that processes frames.
fn refuse(args: &Args, all: &[&Setting]) -> Result<(), String> {
    let own = ["rate", "rate-reverse", "qdisc", "qdisc-reverse"];
    if let Some((name, _)) = all.iter().find(|(name, _)| !own.contains(&name.replace('_', "-").as_str())) {
        return Err(format!(
            "--{}: disciplines in the kernel have no link emulation and no fragmentation: leave it out, {INSTEAD}",
            name.replace('_', "-")
        ));
    }
    let needs_frames = [
        ("--record", args.record.is_some()),
        ("--pcap", args.pcap.is_some()),
        ("--trace", args.trace.is_some()),
        ("--tui", args.tui),
        ("--reserve", args.reserving.reserve),
    ];
    if let Some((flag, _)) = needs_frames.into_iter().find(|(_, is_set)| *is_set) {
        let instead = match flag {
            "--tui" => "giveway kernel show prints the counters of the kernel",
            "--reserve" => "bpf:trr reserves rates by the marks of packets, see giveway kernel load --help",
            _ => "leave it out",
        };
        return Err(format!(
            "{flag}: with disciplines in the kernel, this program sees no packets: {instead}, {INSTEAD}"
        ));
    }
    if args.take_over.is_some() {
        return Err(
            "--take-over: the kernel forwards on without this program: end the running one with kill -9, and start this \
             one without --take-over"
                .to_owned(),
        );
    }
    if args.mpu != 0 {
        return Err(format!(
            "--mpu: disciplines in the kernel have no minimum packet size: leave it out, {INSTEAD}"
        ));
    }
    if let Some(name) = Interfaces::of(args).tun() {
        return Err(format!(
            "{name}: the kernel cannot forward to a TUN interface of this program: name two other interfaces, {INSTEAD}"
        ));
    }
    Ok(())
}

/// Runs a bridge in the kernel.
///
/// # Errors
/// If the bridge cannot start, or the standard output cannot be written.
pub fn live(args: &Args, requests: [DirectionRequest; 2], out: &mut dyn Write) -> Result<Outcome, NetError> {
    let user = preparing::user(args)?;
    let Some(prepared) = preparing::prepare(args, Forwarder::Kernel)? else {
        return Err(NetError::Reported(Outcome::Wrong));
    };
    // Only the threads that serve clients change their user: the watching thread must load and unload.
    let user = user.map(|(identity, _)| identity);
    privilege::confine(Confinement { user, folders: Vec::new() });
    bridge(args, requests, prepared, user, out)
}

/// Loads the disciplines, watches them, and unloads them at the end.
fn bridge(
    args: &Args,
    requests: [DirectionRequest; 2],
    mut prepared: Prepared,
    user: Option<Identity>,
    out: &mut dyn Write,
) -> Result<Outcome, NetError> {
    let more = args.overhead as i32 - FRAME;
    let plan = |request: &DirectionRequest, to: &str| -> Result<Plan, KernelError> {
        // The default quantum is the largest packet, as it is counted.
        let largest = attach::largest_packet(to)?.saturating_add_signed(more.into());
        Ok(Plan::new(&request.text, request.rate, None, largest)?)
    };
    // The interfaces that determine the largest packet: a virtual one does not exist yet.
    let interfaces = Interfaces::of(args);
    let known = match interfaces {
        Interfaces::Two([inside, outside]) => [outside, inside],
        Interfaces::One(wan) => [wan, wan],
    };
    let plans = [plan(&requests[0], known[0])?, plan(&requests[1], known[1])?];
    attach::ready()?;
    let route = match interfaces {
        Interfaces::Two(ends) => Route::between(ends),
        Interfaces::One(wan) => Route::through(wan)?,
    };
    let queues = route.queues();
    let undo = |error: NetError, devices: &[&str]| {
        // An error of unloading would hide the first error, so it is ignored.
        devices.iter().for_each(|device| drop(attach::unload(device)));
        let _ = route.remove();
        error
    };
    let signals = Signals::listen().map_err(|error| undo(error.into(), &[]))?;
    let metrics = args.metrics.map(serving::listen).transpose().map_err(|error| undo(error.into(), &[]))?;
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
    let forward = load(&plans[0], queues[0]).map_err(|error| undo(error.into(), &[]))?;
    let reverse = load(&plans[1], queues[1]).map_err(|error| undo(error.into(), &queues[..1]))?;
    let begun = route.begin().map_err(|error| undo(error.into(), &queues))?;
    let rates = [&plans[0], &plans[1]].map(|plan| plan.params.rate);
    let [forward_plan, reverse_plan] = plans;
    let [inside, outside] = interfaces.sides();
    let direction = |direction, (from, to): (&str, &str), plan: Plan, attached| {
        let (from, to, text) = (from.to_owned(), to.to_owned(), format!("{PREFIX}{}", plan.text()));
        AttachedDirection { direction, from, to, text, plan, attached }
    };
    let directions = [
        direction(Direction::Forward, (&inside, queues[0]), forward_plan, forward),
        direction(Direction::Reverse, (&outside, queues[1]), reverse_plan, reverse),
    ];
    let bridge = KernelBridge { directions, rates: rates.into(), began: monotonic_ns() };
    let (requests, received) = mpsc::sync_channel(REQUESTS);
    let stopped = Arc::new(AtomicBool::new(false));
    let sender = Arc::new(RequestSender { requests, stopped: Arc::clone(&stopped) });
    serving::start(prepared.listener.take(), metrics, &sender);
    let kept = privilege::limit_to_loading();
    if !args.quiet {
        bridge.describe().iter().for_each(|line| show::message(line));
        if terminal::watched() {
            show::message("Ctrl-C ends it");
        }
    }
    announce_ready(args, user);
    if let Err(error) = kept {
        remark(args, &format!("not all privileges could be dropped: {}", chain(&error)));
    }
    let whole = watch(args, &bridge, &signals, &received, &stopped, &prepared);
    let removed = begun.end();
    if whole {
        drain(&bridge);
    }
    let snapshots = bridge.snapshots();
    let mut outcome = if whole { Outcome::Done } else { Outcome::Failed };
    let mut report = |error: String| {
        show::message(&error);
        outcome = Outcome::Failed;
    };
    if let Err(error) = removed {
        report(chain(&error));
    }
    for direction in &bridge.directions {
        match attach::unload(&direction.to) {
            Ok(None) => {}
            Ok(Some(missing)) => report(missing),
            Err(error) => report(chain(&error)),
        }
    }
    if let Err(error) = route.remove() {
        report(chain(&error));
    }
    match snapshots {
        Ok(snapshots) if args.json => writeln!(out, "{}", json::render(&snapshots))?,
        Ok(snapshots) => write!(out, "{}", summary::render(&snapshots))?,
        Err(error) => report(chain(&error)),
    }
    Ok(outcome)
}

/// Watches the bridge until a signal, a client or the time limit ends it. Returns false if another program
/// removed a qdisc.
fn watch(
    args: &Args,
    bridge: &KernelBridge,
    signals: &Signals,
    received: &mpsc::Receiver<Request>,
    stopped: &AtomicBool,
    prepared: &Prepared,
) -> bool {
    let end = args.duration.map(|span| monotonic_ns() + span.as_ps() / 1000);
    let mut checked = monotonic_ns();
    loop {
        // Without serving threads the channel is disconnected, and `recv_timeout` does not wait.
        match received.recv_timeout(PAUSE) {
            Ok(request) => request.answer(bridge),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => pause(PAUSE),
        }
        prepared.tick();
        if signals.reload() {
            remark(
                args,
                "SIGHUP: disciplines in the kernel take only a new rate while they run: giveway live control SOCKET set rate RATE",
            );
        }
        if signals.end() || stopped.load(Ordering::Relaxed) || end.is_some_and(|end| monotonic_ns() >= end) {
            return true;
        }
        if monotonic_ns() > checked + CHECK_NS {
            checked = monotonic_ns();
            if let Some(direction) =
                bridge.directions.iter().find(|direction| !attach::is_attached(&direction.attached))
            {
                show::message(&format!(
                    "another program removed {1} from {0}: the bridge ends, and the rest is removed, too",
                    direction.to, direction.attached.name
                ));
                return false;
            }
        }
    }
}

/// Waits until the backlog has left, for a limited time.
fn drain(bridge: &KernelBridge) {
    let until = monotonic_ns() + PATIENCE_NS;
    while monotonic_ns() < until {
        let packets = |of: &Snapshot| of.status.backlog.packets;
        let backlog = bridge.snapshots().map_or(0, |snapshots| snapshots.iter().map(packets).sum());
        if backlog == 0 {
            return;
        }
        pause(Duration::from_millis(50));
    }
}
