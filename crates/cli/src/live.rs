//! `giveway live`: real frames between two interfaces, through a discipline and a shaper each way.

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

use control::config::{BridgeConfig, Direction, LinkLimits};
use control::settings::{self, Setting, SettingsFile};
use control::{ControlApi, Controller, building};
use live::bridge::Bridge;
use live::clock::{Clock, monotonic_ns};
use live::device::Ends;
use live::direction::Parts;
use live::privilege::{self, Confinement, Folder, Identity, Rights, Role};
use live::{DirectionSetup, headers, reservations};
use qdisc::{PortId, Span, Streams};

use crate::outputs::{Kind, READY, may_write};
use crate::{Outcome, show, terminal};

pub use args::Args;
pub use control::reservations::address;
use preparing::Prepared;
pub use socket::{Args as ControlArgs, control};

/// How long queued frames are sent at the end.
const PATIENCE: Span = Span::s(5);
/// How long queued frames are sent when an interface was removed. Nothing passes until a service manager starts the program again.
const PATIENCE_WHEN_REMOVED: Span = Span::s(2);

/// Both interfaces, opened.
fn open(name: &str, ring: u32) -> Result<Ends, String> {
    let opened = match name.strip_prefix("tun:") {
        Some(name) => live::tun::open(name),
        None => live::packet::open(name, Some(ring as usize)),
    };
    opened.map_err(|error| format!("cannot open {name}: {error}"))
}

/// Does it.
pub fn live(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    if let Err(sentence) = may_write_files(args) {
        return Ok(wrong(&sentence));
    }
    let flags = args.settings();
    let (file, filed) = match args.settings.as_deref().map(SettingsFile::open).transpose() {
        Ok(opened) => opened.unzip(),
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    let filed = filed.unwrap_or_default();
    match in_kernel::asked(args, &filed, &flags) {
        Ok(None) => {}
        Ok(Some(ways)) => return in_kernel::live(args, ways, out),
        Err(sentence) => return Ok(wrong(&sentence)),
    }
    if args.objects.is_some() {
        return Ok(wrong("--objects is for disciplines in the kernel, as --qdisc bpf:efd: leave it out"));
    }
    let place = file.as_ref().map_or(String::new(), SettingsFile::place);
    let config = match settings::resolve(&place, &filed, &flags) {
        Ok(config) => config,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    if args.tui && !io::stdout().is_terminal() {
        return Ok(wrong("--tui needs a terminal, and the standard output is none"));
    }
    let reserving = match args.reserving.settings(&config) {
        Ok(reserving) => reserving,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    let tun = [&args.inside, &args.outside].into_iter().find(|name| name.starts_with("tun:"));
    if let (Some(_), Some(name)) = (&reserving, tun) {
        return Ok(wrong(&reserving::not_ethernet(name)));
    }
    let user = match preparing::user(args) {
        Ok(user) => user,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    let Some(mut prepared) = preparing::prepare(args) else { return Ok(Outcome::Wrong) };
    let opened = open(&args.inside, args.ring).and_then(|a| Ok((a, open(&args.outside, args.ring)?)));
    let (a, b) = match opened {
        Ok(ends) => ends,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    if a.ethernet != b.ethernet {
        return Ok(wrong(&format!(
            "{} carries {} and {} carries {}: a bridge needs two of a kind",
            a.name,
            kind(&a),
            b.name,
            kind(&b)
        )));
    }
    let reach = LinkLimits { ethernet: a.ethernet, longest: a.longest.max(b.longest) };
    if let Err(sentence) = config.within(&reach) {
        return Ok(wrong(&format!("--{sentence}")));
    }
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return Ok(wrong(&format!("cannot listen for signals: {error}"))),
    };
    let metrics = match args.metrics.map(serving::listen).transpose() {
        Ok(listener) => listener,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    let every = Duration::from_nanos(args.record_every.as_ps() / 1000);
    let prepare =
        |dir| keep::Recording::prepare(dir, args.small_packet, every, args.record_later, user.as_ref());
    let (mut recording, folder) = match args.record.as_deref().map(prepare).transpose() {
        Ok(prepared) => prepared.unzip(),
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    // Before the first thread starts.
    let identity = user.as_ref().map(|(identity, _)| *identity);
    confine(args, identity, folder);
    let trace = match args.trace.as_deref().map(|file| Trace::begin(file, identity)).transpose() {
        Ok(trace) => trace,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    let tracer = trace.as_ref().map(|trace| trace.recording.tracer());
    let (service, mut flows, client) = match reserving {
        None => (None, [None, None], None),
        Some(_) if !a.ethernet => return Ok(wrong(&reserving::not_ethernet(&a.name))),
        Some((settings, links)) => {
            let (service, flows, client) = reservations::create(settings, links, [a.address, b.address]);
            (Some(service), flows, Some(client))
        }
    };
    let names = [(a.name.clone(), b.name.clone()), (b.name.clone(), a.name.clone())];
    if let Some(recording) = &recording
        && let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGUSR1, recording.begun())
    {
        return Ok(wrong(&format!("cannot listen for SIGUSR1: {error}")));
    }
    let longest = a.longest.max(b.longest);
    let ethernet = a.ethernet;
    let streams = Streams::new(args.seed);
    let ways =
        [(Direction::Forward, &names[0]), (Direction::Reverse, &names[1])].map(|(side, (from, to))| {
            let way = config.of(side);
            (format!("{from} to {to}"), way.qdisc.to_string(), way.rate.as_bit())
        });
    let mut capture = None;
    if let Some(file) = &args.pcap {
        match pcap::Capture::begin(file, args.pcap_limit, args.pcap_snap, ethernet, &ways, identity) {
            Ok(begun) => capture = Some(begun),
            Err(sentence) => return Ok(wrong(&sentence)),
        }
    }
    let bridge = {
        let parts = |name: &'static str| {
            let side = if name == "forward" { Direction::Forward } else { Direction::Reverse };
            let way = config.of(side);
            let place = streams.within(name);
            Parts {
                id: PortId(0),
                rate: way.rate,
                build: building::builder(way.qdisc.clone(), place.clone(), tracer.clone(), name),
                emulation: way.emulation,
                counting: headers::Counting { overhead: args.overhead, mpu: args.mpu },
                ethernet,
                fragments: live::fragments::Settings {
                    cut: way.fragment,
                    join: way.reassemble,
                    ether_type: args.fragment_type,
                },
                longest_in: longest,
                longest_out: longest,
                buffers: building::buffers(way, &place),
                streams: place,
                xor_mod: args.reserving.flow_hash.0,
                reserved_flows: flows[side as usize].take(),
                probe: recording.as_mut().map(|recording| recording.probe(way, name)),
                tap: capture.as_mut().map(pcap::Capture::tap),
                clock: Clock::start(),
            }
        };
        Bridge::start(DirectionSetup::both(a, b, parts), !args.no_realtime)
    };
    let bridge = match bridge {
        Ok(bridge) => bridge,
        Err(error) => return Ok(wrong(&error.to_string())),
    };
    let memory = if args.no_realtime { String::new() } else { privilege::lock_memory() };
    if let Some(Err(error)) = service.map(|service| service.run(bridge.handles())) {
        return Ok(wrong(&format!("--reserve: {error}")));
    }
    let controller =
        Arc::new(Controller::new(bridge.handles(), names, config, reach, streams, tracer, client));
    serving::start(prepared.listener.take(), metrics, &controller);
    if let Some(Err(error)) = recording.as_mut().map(|recording| recording.start(&controller)) {
        return Ok(wrong(&format!("--record: {error}")));
    }
    announce(args, &controller, &memory);
    // Frames pass, and whoever gives up privileges may not write everywhere.
    say_ready(args);
    settle(args, user.as_ref(), file.as_ref());
    let reload = Reload { file, flags };
    let whole = watch(args, bridge, &controller, &signals, reload, &prepared, out)?;
    let kept = Kept { recording, capture, trace };
    let outcome = finish(args, whole, &controller, kept, out);
    // The socket goes, and offloads come back, before this process ends.
    drop(prepared);
    outcome
}

/// Checks that each file that is named holds nothing, or what an earlier start wrote there, or may be replaced.
fn may_write_files(args: &Args) -> Result<(), String> {
    let files = [
        ("--pcap", &args.pcap, Kind::Capture),
        ("--trace", &args.trace, Kind::Trace),
        ("--ready", &args.ready, Kind::Ready),
    ];
    files.into_iter().try_for_each(|(flag, place, kind)| match place {
        Some(place) => may_write(place, kind, args.force).map_err(|sentence| format!("{flag}: {sentence}")),
        None => Ok(()),
    })
}

/// Says that frames pass, for `--ready`.
fn say_ready(args: &Args) {
    if let Some(ready) = &args.ready
        && let Err(error) = std::fs::write(ready, READY)
    {
        say(args, &format!("--ready {}: {error}", ready.display()));
    }
}

/// Says what threads become and may open: the folders that are written, and that of the settings.
fn confine(args: &Args, user: Option<Identity>, record: Option<Folder>) {
    let mut folders: Vec<Folder> = record.into_iter().collect();
    if let Some(file) = &args.settings {
        // Where the name is, and where the file is: the name may be a link.
        let parent = |path: &Path| {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Folder::open(parent.unwrap_or(Path::new(".")), Rights::Read).ok()
        };
        folders.extend(parent(file));
        folders.extend(file.canonicalize().ok().as_deref().and_then(parent));
    }
    privilege::confine(Confinement { user, folders });
}

/// Gives up what the watching thread does not need any more, and says what could not be given up.
fn settle(args: &Args, user: Option<&(Identity, String)>, file: Option<&SettingsFile>) {
    match (privilege::settle(Role::Watch), user) {
        (Err(why), _) => show::sentence(&format!("not all privileges could be given up: {why}")),
        (Ok(()), Some((_, name))) => say(args, &format!("runs as {name}, without privileges")),
        (Ok(()), None) => {}
    }
    if let Some(file) = file.filter(|file| !file.sees_replacement()) {
        say(
            args,
            &format!(
                "{}: SIGHUP reads changes of this file, but not another file that replaces it: its folder cannot be searched any more; \
                 change the file in place",
                file.place()
            ),
        );
    }
}

/// What is written while it runs, and ends with it.
struct Kept {
    recording: Option<keep::Recording>,
    capture: Option<pcap::Capture>,
    trace: Option<Trace>,
}

/// A trace, and whether it waits for room on its disk.
struct Trace {
    recording: replay::Recording,
    patience: disk::Patience,
}

impl Trace {
    fn begin(file: &Path, user: Option<Identity>) -> Result<Trace, String> {
        let told = |error: io::Error| format!("--trace {}: {error}", file.display());
        let out = disk::PatientFile::create("--trace", file, user)?;
        let patience = out.patience();
        let settle = || {
            // Told once, by the thread that watches.
            let _ = privilege::settle(Role::Write);
        };
        let program = concat!("giveway live ", env!("CARGO_PKG_VERSION"));
        let recording = replay::Recording::start_after(out, program, replay::Options::default(), settle);
        let recording = recording.map_err(told)?;
        patience.set(true);
        Ok(Trace { recording, patience })
    }

    fn finish(self) -> Result<String, String> {
        // Whatever finds no room now is lost: the program ends.
        self.patience.set(false);
        let cut = self.recording.tracer().cut();
        let told = self.recording.finish().map_err(|error| format!("--trace: {error}"))?;
        let cut =
            if cut > 0 { format!("; {cut} disciplines were not traced to the end") } else { String::new() };
        Ok(format!("traced {} operations{cut}", told.operations))
    }
}

/// Runs until somebody wants it to end.
fn watch(
    args: &Args,
    mut bridge: Bridge,
    controller: &Arc<Controller>,
    signals: &Signals,
    mut reload: Reload,
    prepared: &Prepared,
    out: &mut dyn Write,
) -> io::Result<(Vec<live::bridge::Ended>, bool)> {
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
            controller.complaints().iter().for_each(|sentence| show::sentence(sentence));
        }
        if signals.reload() {
            let told = reload.config().and_then(|config| controller.become_as(config));
            let told = told.unwrap_or_else(|sentence| format!("{sentence}; nothing was changed"));
            say(args, &told);
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

/// What SIGHUP reads again.
struct Reload {
    file: Option<SettingsFile>,
    flags: Vec<Setting>,
}

impl Reload {
    fn config(&mut self) -> Result<BridgeConfig, String> {
        let file = self.file.as_mut().ok_or("SIGHUP: there is no --settings file to read again")?;
        let filed = file.read_again()?;
        settings::resolve(&file.place(), &filed, &self.flags)
    }
}

/// The other screen of the terminal, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Twice a second.
const REDRAW_NS: u64 = 500_000_000;

/// Draws what is going on.
fn draw(controller: &Controller, out: &mut dyn Write) -> io::Result<()> {
    let (width, height) = terminal::size();
    let ascii = std::env::var("TERM").is_ok_and(|term| term == "linux" || term == "vt100");
    let lines = watch::tui::screen(&controller.snapshots(), width, height, watch::Look { ascii });
    // Each line is cleared behind its text, and the rest of the screen at the end: nothing flickers.
    let text: String = lines.iter().map(|line| format!("{line}\x1b[K\r\n")).collect();
    write!(out, "\x1b[H{}\x1b[J", text.trim_end_matches("\r\n"))?;
    out.flush()
}

/// Waits. The one place where this program does.
pub fn pause(span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the live host waits for a clock, and nothing else does")]
    std::thread::sleep(span);
}

/// The end: what came of it.
fn finish(
    args: &Args,
    (ended, whole): (Vec<live::bridge::Ended>, bool),
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
    for told in [recorded, captured, traced].into_iter().flatten() {
        match told {
            Ok(sentence) => say(args, &sentence),
            Err(sentence) => {
                show::sentence(&sentence);
                outcome = Outcome::Failed;
            }
        }
    }
    if args.json {
        writeln!(out, "{}", controller.json(&statuses))?;
    } else {
        write!(out, "{}", controller.summary(&statuses))?;
    }
    Ok(outcome)
}

/// What runs, in a few lines.
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

/// What people and service managers send.
struct Signals {
    end: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let (end, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM] {
            // The second one does not ask.
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
