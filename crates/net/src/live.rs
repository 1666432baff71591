//! `giveway live`: forwards real frames between two interfaces, through a discipline and a shaper in each
//! direction.

mod background;
mod claim;
mod error;
mod filed;
mod in_kernel;
mod interfaces;
mod messages;
mod notify;
mod preparing;
mod reserving;
mod serving;
mod signals;
mod socket;
mod take_over;
mod view;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use giveway_bridge::capture::Capture;
use giveway_bridge::recording::Recording;
use giveway_bridge::trace::Trace;
use giveway_bridge::{Messages, pause};
use giveway_control::config::{BridgeConfig, Direction, LinkLimits};
use giveway_control::settings::{self, Setting, SettingsFile};
use giveway_control::{ControlError, Controller, building};
use giveway_live::bridge::Bridge;
use giveway_live::clock::{Clock, monotonic_ns, wall_ns};
use giveway_live::detour::Hooks;
use giveway_live::direction::Parts;
use giveway_live::privilege::outputs::Aside;
use giveway_live::privilege::{self, Confinement, Folder, Identity, Role};
use giveway_live::reservations::{self, ReservedFlows};
use giveway_live::{DirectionSetup, headers};
use giveway_program::commands::live::Args;
use giveway_program::{other, show, terminal};
use giveway_qdisc::{PortId, Span, Streams, Time};
use giveway_replay::Tracer;
use giveway_text::chain;
use giveway_watch::{json, summary};

use crate::error::NetError;
use crate::outcome::Outcome;
use crate::outputs::{Kind, may_write};

pub use error::BridgeError;
pub use filed::expand;
use interfaces::{Forwarder, Interfaces};
use messages::{announce_ready, remark};
use notify::Manager;
use preparing::Prepared;
use signals::Signals;
pub use socket::control;
use view::View;

/// Time limit for sending the backlog at the end.
const PATIENCE: Span = Span::s(5);
/// Time limit for sending the backlog after an interface was removed. It is short, because no frame passes
/// until a service manager restarts the program.
const PATIENCE_WHEN_REMOVED: Span = Span::s(2);

/// Runs `giveway live`.
///
/// # Errors
/// If the bridge cannot start, or the standard output cannot be written.
pub fn live(args: &Args, out: &mut dyn Write) -> Result<Outcome, NetError> {
    if args.background {
        return if args.tui { Err(background::without_terminal().into()) } else { background::start() };
    }
    may_write_files(args)?;
    let flags = filed::of_flags(args);
    let settings = args.settings.as_deref().map(SettingsFile::open).transpose();
    let (file, filed) = settings.map_err(BridgeError::from)?.unzip();
    let (filed, fixed) = settings::split(&filed.unwrap_or_default());
    if let Some(requests) = in_kernel::requests(args, &filed, &flags)? {
        return in_kernel::live(args, requests, out);
    }
    if args.objects.is_some() {
        let message = "--objects is only for disciplines in the kernel, as in --qdisc bpf:efd: leave it out";
        return Err(BridgeError::Usage(message.to_owned()).into());
    }
    let path = file.as_ref().map_or(Path::new(""), SettingsFile::path);
    let mut config = settings::resolve(path, &filed, &flags, None).map_err(BridgeError::from)?;
    if let Some(time) = args.mean_over.or(args.duration) {
        config.for_time(time).map_err(|error| BridgeError::Control(ControlError::Flag(error.into())))?;
    }
    if args.tui && !terminal::shows_output() {
        let message = "--tui needs a terminal, but the standard output is not a terminal";
        return Err(BridgeError::Usage(message.to_owned()).into());
    }
    bridge(args, config, Reload { file, flags, fixed }, out)
}

/// Runs a bridge in this program, from the checks of the interfaces to the final statistics.
fn bridge(
    args: &Args,
    config: BridgeConfig,
    reload: Reload,
    out: &mut dyn Write,
) -> Result<Outcome, NetError> {
    let mut manager = Manager::connect(args.take_over.is_some());
    let reserving = reserving::settings(&args.reserving, &config)?;
    let interfaces = Interfaces::of(args);
    if let (Some(_), Some(name)) = (&reserving, interfaces.tun()) {
        return Err(BridgeError::NotEthernet { interface: name.to_owned() }.into());
    }
    if let (Some(_), Interfaces::One(_)) = (&reserving, interfaces) {
        let message =
            "--reserve: control packets pass between hosts on both sides of a bridge: use --in and --out";
        return Err(BridgeError::Usage(message.to_owned()).into());
    }
    let user = preparing::user(args)?;
    let Some(mut prepared) = preparing::prepare(args, Forwarder::Program)? else {
        return Err(NetError::Reported(Outcome::Wrong));
    };
    let (a, b) = interfaces.open(args.ring)?;
    let limits = LinkLimits { ethernet: a.ethernet, longest: a.longest.max(b.longest) };
    config.within(&limits).map_err(|error| BridgeError::Control(ControlError::Flag(error.into())))?;
    let signals = Signals::listen()?;
    // A predecessor still listens at this address.
    let early = args.metrics.filter(|_| prepared.predecessor.is_none());
    let mut metrics = early.map(serving::listen).transpose()?;
    let every = Duration::from_nanos(args.record_every.as_ps() / 1000);
    let prepare = |dir| {
        let giveway = other::find(other::MAIN)?;
        let (small, later) = (args.small_packet, args.record_later);
        Recording::prepare(dir, &giveway, small, every, later, user.as_ref()).map_err(BridgeError::from)
    };
    let recording = args.record.as_deref().map(prepare).transpose()?;
    if let Some(recording) = &recording {
        signals::set_at_usr1(recording.begun())?;
    }
    // Threads are confined when they start, so this precedes the start of the first one.
    let identity = user.as_ref().map(|(identity, _)| *identity);
    confine(args, identity);
    let names = [(a.name.clone(), b.name.clone()), (b.name.clone(), a.name.clone())];
    // The other process still writes these files. They get their names back if it stays.
    let written = [("--pcap", args.pcap.as_deref()), ("--trace", args.trace.as_deref())];
    let mut earlier = Vec::new();
    for (flag, path) in written.into_iter().filter(|_| prepared.predecessor.is_some()) {
        let Some(path) = path else { continue };
        earlier.extend(Aside::rename(path, identity).map_err(BridgeError::path(flag, path))?);
    }
    let trace = args.trace.as_deref().map(|file| Trace::begin(file, identity, &messages()));
    let mut outputs = Outputs {
        recording,
        trace: trace.transpose().map_err(BridgeError::from)?,
        capture: begin_capture(args, &config, &names, a.ethernet, identity)?,
    };
    let tracer = outputs.trace.as_ref().map(Trace::tracer);
    let (service, flows, client) = match reserving {
        None => (None, [None, None], None),
        Some(_) if !a.ethernet => {
            return Err(BridgeError::NotEthernet { interface: a.name.clone() }.into());
        }
        Some((settings, links)) => {
            let (service, flows, client) = reservations::create(settings, links, [a.address, b.address]);
            (Some(service), flows, Some(client))
        }
    };
    let streams = Streams::new(args.seed);
    let parts = parts(args, &config, &limits, &streams, tracer.as_ref(), flows, &mut outputs);
    let directions = DirectionSetup::both(a, b, parts);
    let detour = interfaces.detour(Forwarder::Program)?;
    let started = match (&prepared.predecessor, &detour) {
        (None, None) => Bridge::start(directions, !args.no_realtime),
        _ => Bridge::start_waiting(directions, !args.no_realtime),
    };
    let mut bridge = started.map_err(BridgeError::Start)?;
    let memory = if args.no_realtime { String::new() } else { privilege::lock_memory() };
    if let Some(service) = service {
        service.run(bridge.handles()).map_err(BridgeError::flag("--reserve"))?;
    }
    let controller =
        Arc::new(Controller::new(bridge.handles(), names, config, limits, streams, tracer, client));
    let hooks = match detour {
        Some(detour) => {
            if prepared.predecessor.is_none() {
                // The network stack receives earlier frames itself.
                bridge.handles().iter().for_each(|handle| handle.begin_at(wall_ns()));
            }
            Some(detour.begin().map_err(BridgeError::from)?)
        }
        None => None,
    };
    if let Some(predecessor) = &mut prepared.predecessor {
        predecessor.hand_over(&mut bridge, &interfaces.real())?;
        // One that cannot be removed keeps its other name.
        earlier.drain(..).for_each(|file| drop(file.remove()));
        remark(args, "took over; the earlier process ends");
        prepared.succeed(args, || {
            manager.tick();
            bridge.watch().iter().for_each(|text| show::warning(text));
            !signals.end()
        });
        // No other process forwards the frames before the instant, and the wall clock may be set back later.
        bridge.handles().iter().for_each(|handle| handle.begin_at(0));
        // Frames pass already, so a problem does not end this process.
        metrics = args.metrics.and_then(|at| serving::listen(at).map_err(|error| show::error(&error)).ok());
    } else if hooks.is_some() {
        bridge.handles().iter().for_each(|handle| handle.release());
    }
    serving::start(prepared.listener.take(), metrics, &controller);
    if let Some(recording) = &mut outputs.recording {
        let started = recording.start(&controller, &messages());
        started.map_err(BridgeError::flag("--record"))?;
    }
    announce(args, &controller, &memory);
    manager.ready(&controller.describe().join("; "));
    // The control socket has its name. The file may be in a folder of root, so it is written before
    // privileges are dropped.
    announce_ready(args, identity);
    settle(args, user.as_ref(), reload.file.as_ref());
    let supervision = Supervision { signals, reload, manager, hooks };
    let ended = watch(args, bridge, &controller, supervision, &prepared, out)?;
    let outcome = finish(args, ended, &controller, outputs, out);
    // Removes the control socket and restores offloads before this process ends.
    drop(prepared);
    Ok(outcome?)
}

/// Checks that each output file is empty or new, was written by an earlier run, or may be replaced.
fn may_write_files(args: &Args) -> Result<(), BridgeError> {
    let files = [
        ("--pcap", &args.pcap, Kind::Capture),
        ("--trace", &args.trace, Kind::Trace),
        ("--ready", &args.ready, Kind::Ready),
    ];
    files.into_iter().try_for_each(|(flag, path, kind)| match path {
        Some(path) => {
            may_write(path, kind, args.force).map_err(|source| BridgeError::Occupied { flag, source })
        }
        None => Ok(()),
    })
}

/// Sets the user of the threads, and the folders of the settings file, in which they may read.
fn confine(args: &Args, user: Option<Identity>) {
    let mut folders = Vec::new();
    if let Some(file) = &args.settings {
        // The name may be a symbolic link, so its folder and the folder of its target are both included.
        let parent = |path: &Path| {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Folder::open(parent.unwrap_or(Path::new("."))).ok()
        };
        folders.extend(parent(file));
        folders.extend(file.canonicalize().ok().as_deref().and_then(parent));
    }
    privilege::confine(Confinement { user, folders });
}

/// Drops the privileges that the watching thread no longer needs, and reports those that could not be
/// dropped.
fn settle(args: &Args, user: Option<&(Identity, String)>, file: Option<&SettingsFile>) {
    match (privilege::settle(Role::Watch), user) {
        (Err(error), _) => {
            show::warning(&format!("not all privileges could be dropped: {}", chain(&error)));
        }
        (Ok(()), Some((_, name))) => remark(args, &format!("runs as {name}, without privileges")),
        (Ok(()), None) => {}
    }
    if let Some(file) = file.filter(|file| !file.sees_replacement()) {
        remark(
            args,
            &format!(
                "{}: SIGHUP reads changes of this file, but not another file that replaces it: its folder cannot be searched any more; \
                 change the file in place",
                file.path().display()
            ),
        );
    }
}

/// The outputs that are written while the bridge runs.
struct Outputs {
    recording: Option<Recording>,
    capture: Option<Capture>,
    trace: Option<Trace>,
}

/// Starts the capture, if there is one. The interfaces of the file are the directions.
fn begin_capture(
    args: &Args,
    config: &BridgeConfig,
    names: &[(String, String); 2],
    ethernet: bool,
    user: Option<Identity>,
) -> Result<Option<Capture>, BridgeError> {
    let Some(file) = &args.pcap else { return Ok(None) };
    let directions = Direction::ALL.map(|side| {
        let ((from, to), side_config) = (&names[side as usize], config.of(side));
        (format!("{from} to {to}"), side_config.qdisc.to_string(), side_config.rate.as_bit())
    });
    let (limit, snap) = (args.pcap_limit, args.pcap_snap);
    Ok(Some(Capture::begin(file, limit, snap, ethernet, &directions, user, &messages())?))
}

/// The messages of outputs, on the standard error.
fn messages() -> Messages {
    Arc::new(show::message)
}

/// A function that creates the parts of a direction from its name, "forward" first.
fn parts<'a>(
    args: &'a Args,
    config: &'a BridgeConfig,
    limits: &'a LinkLimits,
    streams: &'a Streams,
    tracer: Option<&'a Tracer>,
    mut flows: [Option<ReservedFlows>; 2],
    outputs: &'a mut Outputs,
) -> impl FnMut(&'static str) -> Parts + 'a {
    move |name| {
        let side = if name == "forward" { Direction::Forward } else { Direction::Reverse };
        let side_config = config.of(side);
        let own_streams = streams.within(name);
        let clock = Clock::start();
        Parts {
            id: PortId(0),
            rate: side_config.rate,
            build: building::builder(side_config.qdisc.clone(), own_streams.clone(), tracer.cloned(), name),
            emulation: side_config.emulation.clone(),
            start: args.starts_at.map_or(Time::ZERO, |ns| clock.of_monotonic(ns)),
            counting: headers::Counting { overhead: args.overhead, mpu: args.mpu },
            ethernet: limits.ethernet,
            fragments: giveway_live::fragments::Settings {
                cut: side_config.fragment,
                join: side_config.reassemble,
                ether_type: args.fragment_type,
            },
            longest_in: limits.longest,
            longest_out: limits.longest,
            buffers: building::buffers(side_config, &own_streams),
            streams: own_streams,
            xor_mod: args.reserving.flow_hash.0,
            reserved_flows: flows[side as usize].take(),
            probe: outputs.recording.as_mut().map(|recording| recording.probe(side_config, name)),
            tap: outputs.capture.as_mut().map(Capture::tap),
            clock,
        }
    }
}

/// Watches the bridge until a signal, a client, the time limit or a removed interface ends it. Returns the
/// ended directions, and true if none of them has failed.
fn watch(
    args: &Args,
    mut bridge: Bridge,
    controller: &Arc<Controller>,
    Supervision { signals, mut reload, mut manager, hooks }: Supervision,
    prepared: &Prepared,
    out: &mut dyn Write,
) -> io::Result<(Vec<giveway_live::bridge::Ended>, bool)> {
    let end = args.duration.map(|span| monotonic_ns() + span.as_ps() / 1000);
    let mut patience = PATIENCE;
    let mut handed_over = false;
    let mut view = if args.tui { Some(View::enter(out)?) } else { None };
    loop {
        pause(Duration::from_millis(50));
        prepared.tick();
        manager.tick();
        if let Some(view) = &mut view {
            view.update(controller, out)?;
        }
        bridge.watch().iter().for_each(|text| show::warning(text));
        if !args.quiet {
            controller.problems().iter().for_each(|text| show::warning(text));
        }
        if signals.reload() {
            let known = controller.config().clone();
            let changed = reload.config(&known).and_then(|config| controller.apply(config));
            remark(args, &changed.unwrap_or_else(|error| format!("{}; nothing was changed", chain(&error))));
        }
        if !bridge.removed().is_empty() {
            patience = PATIENCE_WHEN_REMOVED;
            break;
        }
        if let Some(process) = controller.successor() {
            remark(args, "another giveway live has taken over");
            // Before this process ends: the manager believes it, and not one that it has not started.
            manager.replaced_by(process);
            handed_over = true;
            break;
        }
        if signals.end() || controller.is_stopped() || end.is_some_and(|end| monotonic_ns() >= end) {
            break;
        }
    }
    // The service goes on with the process that took over.
    if !handed_over {
        manager.stopping();
    }
    let whole = bridge.is_whole();
    // New frames take the usual path while the backlog leaves.
    let hook_of_backlog = hooks.map(Hooks::end);
    let ended = bridge.stop(patience);
    drop(hook_of_backlog);
    if let Some(view) = view {
        view.leave(out)?;
    }
    Ok((ended, whole))
}

/// The ways in which a user or a service manager controls the program.
struct Supervision {
    signals: Signals,
    reload: Reload,
    manager: Manager,
    /// The hooks of a detour.
    hooks: Option<Hooks>,
}

/// The settings that SIGHUP applies again: the file, and the flags that take precedence.
struct Reload {
    file: Option<SettingsFile>,
    /// The settings among the flags.
    flags: Vec<Setting>,
    /// The flags of the file that cannot change while the bridge runs.
    fixed: Vec<Setting>,
}

impl Reload {
    /// The configuration that replaces `known`.
    fn config(&mut self, known: &BridgeConfig) -> Result<BridgeConfig, ControlError> {
        let none = || ControlError::unavailable("SIGHUP: there is no --settings file to read again");
        let file = self.file.as_mut().ok_or_else(none)?;
        let (filed, fixed) = settings::split(&file.read_again()?);
        let new = fixed.iter().find(|flag| !self.fixed.contains(flag));
        let gone = self.fixed.iter().find(|flag| !fixed.contains(flag));
        if let Some((name, _)) = new.or(gone) {
            let message =
                format!("{name} cannot change while the bridge runs: start it again, or use --take-over");
            return Err(ControlError::File { path: file.path().to_owned(), cause: message.into() });
        }
        settings::resolve(file.path(), &filed, &self.flags, Some(known))
    }
}

/// Completes the output files, and prints the summary or the JSON object.
fn finish(
    args: &Args,
    (ended, whole): (Vec<giveway_live::bridge::Ended>, bool),
    controller: &Controller,
    outputs: Outputs,
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    let mut outcome = if whole { Outcome::Done } else { Outcome::Failed };
    let (statuses, probes): (Vec<_>, Vec<_>) =
        ended.into_iter().map(|ended| (ended.status, ended.probe)).unzip();
    let recorded = outputs.recording.map(|recording| recording.finish(probes));
    let captured = outputs.capture.map(Capture::finish);
    let traced = outputs.trace.map(Trace::finish);
    for result in [recorded, captured, traced].into_iter().flatten() {
        match result {
            Ok(text) => remark(args, &text),
            Err(error) => {
                show::error(&error);
                outcome = Outcome::Failed;
            }
        }
    }
    let snapshots = controller.snapshots_of(statuses);
    if args.json {
        writeln!(out, "{}", json::render(&snapshots))?;
    } else {
        write!(out, "{}", summary::render(&snapshots))?;
    }
    Ok(outcome)
}

/// Prints the configuration of the bridge.
fn announce(args: &Args, controller: &Controller, memory: &str) {
    if args.quiet {
        return;
    }
    for line in controller.describe() {
        show::message(&line);
    }
    if !memory.is_empty() {
        show::message(memory);
    }
    if terminal::watched() {
        show::message("Ctrl-C ends it");
    }
}
