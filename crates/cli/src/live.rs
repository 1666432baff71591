//! `giveway live`: real frames between two interfaces, through a discipline and a shaper in each direction.

mod args;
mod disk;
mod in_kernel;
mod keep;
mod pcap;
mod preparing;
mod reserving;
mod serving;
mod socket;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_control::config::{BridgeConfig, Direction, LinkLimits};
use giveway_control::settings::{self, Setting, SettingsFile};
use giveway_control::{ControlApi, ControlError, Controller, building};
use giveway_live::bridge::Bridge;
use giveway_live::clock::{Clock, monotonic_ns};
use giveway_live::device::Ends;
use giveway_live::direction::Parts;
use giveway_live::privilege::{self, Confinement, Folder, Identity, Rights, Role};
use giveway_live::{DirectionSetup, headers, reservations};
use giveway_qdisc::{PortId, Span, Streams};
use giveway_watch::{json, summary, tui};

use crate::outputs::{Kind, READY, may_write};
use crate::{Outcome, show, terminal};

pub use args::Args;
use preparing::Prepared;
pub use socket::{Args as ControlArgs, control};

/// Time limit for sending the backlog at the end.
const PATIENCE: Span = Span::s(5);
/// Time limit for sending the backlog when an interface was removed: no frame passes until a service manager
/// restarts the program.
const PATIENCE_WHEN_REMOVED: Span = Span::s(2);

/// Opens an interface.
fn open(name: &str, ring: u32) -> Result<Ends, String> {
    let opened = match name.strip_prefix("tun:") {
        Some(name) => giveway_live::tun::open(name),
        None => giveway_live::packet::open(name, Some(ring as usize)),
    };
    opened.map_err(|error| format!("cannot open {name}: {error}"))
}

/// Reason why a bridge does not start.
enum StartError {
    /// A mistake in the arguments, or a failure of the system: a message for the user.
    Message(String),
    /// Like `Message`, but the user has the message already.
    Reported,
    /// The standard output cannot be written.
    Output(io::Error),
}

impl From<String> for StartError {
    fn from(message: String) -> StartError {
        StartError::Message(message)
    }
}

impl From<&str> for StartError {
    fn from(message: &str) -> StartError {
        StartError::Message(message.to_owned())
    }
}

impl From<ControlError> for StartError {
    fn from(error: ControlError) -> StartError {
        StartError::Message(error.to_string())
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::Output(error)
    }
}

/// Runs `giveway live`.
pub fn live(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    match try_live(args, out) {
        Ok(outcome) => Ok(outcome),
        Err(StartError::Message(sentence)) => Ok(wrong(&sentence)),
        Err(StartError::Reported) => Ok(Outcome::Wrong),
        Err(StartError::Output(error)) => Err(error),
    }
}

fn try_live(args: &Args, out: &mut dyn Write) -> Result<Outcome, StartError> {
    may_write_files(args)?;
    let flags = args.settings();
    let (file, filed) = args.settings.as_deref().map(SettingsFile::open).transpose()?.unzip();
    let filed = filed.unwrap_or_default();
    if let Some(requests) = in_kernel::requests(args, &filed, &flags)? {
        return Ok(in_kernel::live(args, requests, out)?);
    }
    if args.objects.is_some() {
        return Err(
            "--objects is only for disciplines in the kernel, as --qdisc bpf:efd: leave it out".into()
        );
    }
    let path = file.as_ref().map_or(Path::new(""), SettingsFile::path);
    let config = settings::resolve(path, &filed, &flags)?;
    if args.tui && !io::stdout().is_terminal() {
        return Err("--tui needs a terminal, but the standard output is not a terminal".into());
    }
    let reserving = args.reserving.settings(&config)?;
    let tun = [&args.inside, &args.outside].into_iter().find(|name| name.starts_with("tun:"));
    if let (Some(_), Some(name)) = (&reserving, tun) {
        return Err(reserving::not_ethernet(name).into());
    }
    let user = preparing::user(args)?;
    let mut prepared = preparing::prepare(args).ok_or(StartError::Reported)?;
    let (a, b) = (open(&args.inside, args.ring)?, open(&args.outside, args.ring)?);
    if a.ethernet != b.ethernet {
        return Err(StartError::Message(format!(
            "{} carries {} and {} carries {}: a bridge needs two interfaces of the same kind",
            a.name,
            kind(&a),
            b.name,
            kind(&b)
        )));
    }
    let limits = LinkLimits { ethernet: a.ethernet, longest: a.longest.max(b.longest) };
    config.within(&limits).map_err(|error| ControlError::Flag(error.into()))?;
    let signals = Signals::listen().map_err(|error| format!("cannot listen for signals: {error}"))?;
    let metrics = args.metrics.map(serving::listen).transpose()?;
    let every = Duration::from_nanos(args.record_every.as_ps() / 1000);
    let prepare =
        |dir| keep::Recording::prepare(dir, args.small_packet, every, args.record_later, user.as_ref());
    let (mut recording, folder) = args.record.as_deref().map(prepare).transpose()?.unzip();
    // Threads are confined when they start, so this comes before the first one.
    let identity = user.as_ref().map(|(identity, _)| *identity);
    confine(args, identity, folder);
    let trace = args.trace.as_deref().map(|file| Trace::begin(file, identity)).transpose()?;
    let tracer = trace.as_ref().map(|trace| trace.recording.tracer());
    let (service, mut flows, client) = match reserving {
        None => (None, [None, None], None),
        Some(_) if !a.ethernet => return Err(reserving::not_ethernet(&a.name).into()),
        Some((settings, links)) => {
            let (service, flows, client) = reservations::create(settings, links, [a.address, b.address]);
            (Some(service), flows, Some(client))
        }
    };
    let names = [(a.name.clone(), b.name.clone()), (b.name.clone(), a.name.clone())];
    if let Some(recording) = &recording {
        signal_hook::flag::register(signal_hook::consts::SIGUSR1, recording.begun())
            .map_err(|error| format!("cannot listen for SIGUSR1: {error}"))?;
    }
    let longest = a.longest.max(b.longest);
    let ethernet = a.ethernet;
    let streams = Streams::new(args.seed);
    let directions =
        [(Direction::Forward, &names[0]), (Direction::Reverse, &names[1])].map(|(side, (from, to))| {
            let side_config = config.of(side);
            (format!("{from} to {to}"), side_config.qdisc.to_string(), side_config.rate.as_bit())
        });
    let begin =
        |file| pcap::Capture::begin(file, args.pcap_limit, args.pcap_snap, ethernet, &directions, identity);
    let mut capture = args.pcap.as_deref().map(begin).transpose()?;
    let bridge = {
        let parts = |name: &'static str| {
            let side = if name == "forward" { Direction::Forward } else { Direction::Reverse };
            let side_config = config.of(side);
            let place = streams.within(name);
            Parts {
                id: PortId(0),
                rate: side_config.rate,
                build: building::builder(side_config.qdisc.clone(), place.clone(), tracer.clone(), name),
                emulation: side_config.emulation,
                counting: headers::Counting { overhead: args.overhead, mpu: args.mpu },
                ethernet,
                fragments: giveway_live::fragments::Settings {
                    cut: side_config.fragment,
                    join: side_config.reassemble,
                    ether_type: args.fragment_type,
                },
                longest_in: longest,
                longest_out: longest,
                buffers: building::buffers(side_config, &place),
                streams: place,
                xor_mod: args.reserving.flow_hash.0,
                reserved_flows: flows[side as usize].take(),
                probe: recording.as_mut().map(|recording| recording.probe(side_config, name)),
                tap: capture.as_mut().map(pcap::Capture::tap),
                clock: Clock::start(),
            }
        };
        Bridge::start(DirectionSetup::both(a, b, parts), !args.no_realtime)
    };
    let bridge = bridge.map_err(|error| error.to_string())?;
    let memory = if args.no_realtime { String::new() } else { privilege::lock_memory() };
    if let Some(service) = service {
        service.run(bridge.handles()).map_err(|error| format!("--reserve: {error}"))?;
    }
    let controller =
        Arc::new(Controller::new(bridge.handles(), names, config, limits, streams, tracer, client));
    serving::start(prepared.listener.take(), metrics, &controller);
    if let Some(recording) = &mut recording {
        recording.start(&controller).map_err(|error| format!("--record: {error}"))?;
    }
    announce(args, &controller, &memory);
    // Before privileges are dropped, since the file may be in a folder of root.
    say_ready(args);
    settle(args, user.as_ref(), file.as_ref());
    let reload = Reload { file, flags };
    let whole = watch(args, bridge, &controller, &signals, reload, &prepared, out)?;
    let kept = Kept { recording, capture, trace };
    let outcome = finish(args, whole, &controller, kept, out);
    // Removes the control socket and restores offloads before this process ends.
    drop(prepared);
    Ok(outcome?)
}

/// Checks that each output file is empty or new, was written by an earlier run, or may be replaced.
fn may_write_files(args: &Args) -> Result<(), String> {
    let files = [
        ("--pcap", &args.pcap, Kind::Capture),
        ("--trace", &args.trace, Kind::Trace),
        ("--ready", &args.ready, Kind::Ready),
    ];
    files.into_iter().try_for_each(|(flag, place, kind)| match place {
        Some(place) => may_write(place, kind, args.force).map_err(|error| format!("{flag}: {error}")),
        None => Ok(()),
    })
}

/// Writes the file of `--ready`: frames pass.
fn say_ready(args: &Args) {
    if let Some(ready) = &args.ready
        && let Err(error) = std::fs::write(ready, READY)
    {
        say(args, &format!("--ready {}: {error}", ready.display()));
    }
}

/// Sets the user of the threads, and the folders that they may open: those of outputs and that of the
/// settings file.
fn confine(args: &Args, user: Option<Identity>, record: Option<Folder>) {
    let mut folders: Vec<Folder> = record.into_iter().collect();
    if let Some(file) = &args.settings {
        // The folder of the name and the folder of the file: the name may be a link.
        let parent = |path: &Path| {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Folder::open(parent.unwrap_or(Path::new(".")), Rights::Read).ok()
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
        (Err(why), _) => show::sentence(&format!("not all privileges could be dropped: {why}")),
        (Ok(()), Some((_, name))) => say(args, &format!("runs as {name}, without privileges")),
        (Ok(()), None) => {}
    }
    if let Some(file) = file.filter(|file| !file.sees_replacement()) {
        say(
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
struct Kept {
    recording: Option<keep::Recording>,
    capture: Option<pcap::Capture>,
    trace: Option<Trace>,
}

/// A trace, and the switch that makes it wait when its disk is full.
struct Trace {
    recording: giveway_replay::Recording,
    patience: disk::Patience,
}

impl Trace {
    fn begin(file: &Path, user: Option<Identity>) -> Result<Trace, String> {
        let system_error = |error: io::Error| format!("--trace {}: {error}", file.display());
        let out = disk::PatientFile::create("--trace", file, user)?;
        let patience = out.patience();
        let settle = || {
            // The thread that watches reports errors of this kind once.
            let _ = privilege::settle(Role::Write);
        };
        let program = concat!("giveway live ", env!("CARGO_PKG_VERSION"));
        let recording =
            giveway_replay::Recording::start_after(out, program, giveway_replay::Options::default(), settle);
        let recording = recording.map_err(system_error)?;
        patience.set(true);
        Ok(Trace { recording, patience })
    }

    fn finish(self) -> Result<String, String> {
        // The program ends, so data that do not fit on the disk now are lost.
        self.patience.set(false);
        let cut = self.recording.tracer().cut();
        let written = self.recording.finish().map_err(|error| format!("--trace: {error}"))?;
        let cut =
            if cut > 0 { format!("; {cut} disciplines were not traced to the end") } else { String::new() };
        Ok(format!("traced {} operations{cut}", written.operations))
    }
}

/// Runs until a signal, a client or the time limit ends it.
fn watch(
    args: &Args,
    mut bridge: Bridge,
    controller: &Arc<Controller>,
    signals: &Signals,
    mut reload: Reload,
    prepared: &Prepared,
    out: &mut dyn Write,
) -> io::Result<(Vec<giveway_live::bridge::Ended>, bool)> {
    let end = args.duration.map(|span| monotonic_ns() + span.as_ps() / 1000);
    let (mut drawn, mut patience) = (0, PATIENCE);
    if args.tui {
        write!(out, "{ENTER}")?;
    }
    loop {
        pause(Duration::from_millis(50));
        prepared.tick();
        if args.tui && monotonic_ns() > drawn + REDRAW_NS {
            drawn = monotonic_ns();
            draw(controller, out)?;
        }
        bridge.watch().iter().for_each(|sentence| show::sentence(sentence));
        if !args.quiet {
            controller.problems().iter().for_each(|sentence| show::sentence(sentence));
        }
        if signals.reload() {
            let changed = reload.config().and_then(|config| controller.apply(config));
            say(args, &changed.unwrap_or_else(|error| format!("{error}; nothing was changed")));
        }
        if !bridge.removed().is_empty() {
            patience = PATIENCE_WHEN_REMOVED;
            break;
        }
        if signals.end() || controller.is_stopped() || end.is_some_and(|end| monotonic_ns() >= end) {
            break;
        }
    }
    let whole = bridge.is_whole();
    let ended = bridge.stop(patience);
    if args.tui {
        write!(out, "{LEAVE}")?;
    }
    Ok((ended, whole))
}

/// The settings that SIGHUP reads again.
struct Reload {
    file: Option<SettingsFile>,
    flags: Vec<Setting>,
}

impl Reload {
    fn config(&mut self) -> Result<BridgeConfig, ControlError> {
        let none = || ControlError::unavailable("SIGHUP: there is no --settings file to read again");
        let file = self.file.as_mut().ok_or_else(none)?;
        let filed = file.read_again()?;
        settings::resolve(file.path(), &filed, &self.flags)
    }
}

/// Escape codes for the alternate screen of the terminal without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Interval of redraws: half a second.
const REDRAW_NS: u64 = 500_000_000;

/// Draws the terminal view.
fn draw(controller: &Controller, out: &mut dyn Write) -> io::Result<()> {
    let (width, height) = terminal::size();
    let ascii = std::env::var("TERM").is_ok_and(|term| term == "linux" || term == "vt100");
    let lines = tui::screen(&controller.snapshots().unwrap_or_default(), width, height, tui::Style { ascii });
    // Each line is cleared behind its text, and the rest of the screen at the end: nothing flickers.
    let text: String = lines.iter().map(|line| format!("{line}\x1b[K\r\n")).collect();
    write!(out, "\x1b[H{}\x1b[J", text.trim_end_matches("\r\n"))?;
    out.flush()
}

/// Sleeps. No other function of this program does.
pub fn pause(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the live backend waits for a real clock, and nothing else does"
    )]
    std::thread::sleep(span);
}

/// Ends the outputs and prints the summary.
fn finish(
    args: &Args,
    (ended, whole): (Vec<giveway_live::bridge::Ended>, bool),
    controller: &Controller,
    kept: Kept,
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    let mut outcome = if whole { Outcome::Done } else { Outcome::Failed };
    let (statuses, probes): (Vec<_>, Vec<_>) =
        ended.into_iter().map(|ended| (ended.status, ended.probe)).unzip();
    let recorded = kept.recording.map(|recording| recording.finish(probes));
    let captured = kept.capture.map(pcap::Capture::finish);
    let traced = kept.trace.map(Trace::finish);
    for result in [recorded, captured, traced].into_iter().flatten() {
        match result {
            Ok(sentence) => say(args, &sentence),
            Err(sentence) => {
                show::sentence(&sentence);
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

/// Prints the configuration in a few lines.
fn announce(args: &Args, controller: &Controller, memory: &str) {
    if args.quiet {
        return;
    }
    for line in controller.describe() {
        show::sentence(&line);
    }
    if !memory.is_empty() {
        show::sentence(memory);
    }
    if terminal::watched() {
        show::sentence("Ctrl-C ends it");
    }
}

fn kind(ends: &Ends) -> &'static str {
    if ends.ethernet { "Ethernet frames" } else { "IP packets" }
}

fn wrong(sentence: &str) -> Outcome {
    show::sentence(sentence);
    Outcome::Wrong
}

fn say(args: &Args, sentence: &str) {
    if !args.quiet {
        show::sentence(sentence);
    }
}

/// Signals of users and service managers.
struct Signals {
    end: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let (end, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM] {
            // A second signal ends the process at once.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&end))?;
            signal_hook::flag::register(signal, Arc::clone(&end))?;
        }
        signal_hook::flag::register(SIGHUP, Arc::clone(&reload))?;
        Ok(Signals { end, reload })
    }

    fn end(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }
    fn reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }
}
