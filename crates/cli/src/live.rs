//! `giveway live`: real frames between two interfaces, through a discipline and a shaper each way.

mod control;
mod in_kernel;
mod keep;
mod metrics;
mod operator;
mod pcap;
mod reserving;
mod seeing;
mod settings;

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{ArgAction, value_parser};
use live::bridge::Bridge;
use live::checks;
use live::clock::{Clock, monotonic_ns};
use live::device::Ends;
use live::direction::Parts;
use live::privilege::{self, Role};
use live::{Way, look, reservations};
use qdisc::{Bytes, PortId, Span, Streams};

use crate::{Outcome, show, terminal};

pub use control::{Args as ControlArgs, control};
use operator::Operator;
pub use reserving::address;
use settings::Side;

/// Carries real frames between two interfaces, through a discipline and a shaper each way.
///
/// A transparent bridge: what comes in at --in leaves at --out, and back, unchanged but for marks of congestion. Each
/// direction has its own rate and discipline. The machines on both sides notice nothing but the queue.
///
/// It needs root (or four capabilities, which it names when they are missing), gives all of them up once its sockets are
/// open, and goes back to plain forwarding when something inside it fails. Ctrl-C or SIGTERM sends what is queued and
/// ends; SIGHUP reads --settings again.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The interface on one side, as in `ip link`; tun:NAME makes a TUN interface of that name
    #[arg(long = "in", value_name = "IF")]
    inside: String,
    /// The interface on the other side
    #[arg(long = "out", value_name = "IF")]
    outside: String,
    /// The rate from --in to --out, as in 20mbit or "20 Mbit/s"; or unlimited [default: unlimited]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// The rate from --out to --in [default: unlimited]
    #[arg(long, value_name = "RATE")]
    rate_back: Option<String>,
    /// The discipline from --in to --out, as in "fq_codel limit 1000p"; see `giveway list` [default: fq_codel]. With bpf:, as in
    /// "bpf:efd limit 300p", it stands in the kernel; see `giveway kernel list`
    #[arg(long, value_name = "SPEC")]
    qdisc: Option<String>,
    /// The discipline from --out to --in [default: that of --qdisc]
    #[arg(long, value_name = "SPEC")]
    qdisc_back: Option<String>,
    /// Delay behind the link, as in 20ms; it counts from the last bit of a frame
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// Delay of the other direction [default: none]
    #[arg(long, value_name = "TIME")]
    delay_back: Option<String>,
    /// At most so much more delay, uniformly; frames do not overtake each other
    #[arg(long, value_name = "TIME")]
    jitter: Option<String>,
    /// Jitter of the other direction
    #[arg(long, value_name = "TIME")]
    jitter_back: Option<String>,
    /// The share of frames that is lost behind the link, as in 0.1%
    #[arg(long, value_name = "SHARE")]
    loss: Option<String>,
    /// Loss of the other direction
    #[arg(long, value_name = "SHARE")]
    loss_back: Option<String>,
    /// Cut IP frames from --in to --out into fragments of so many bytes behind the Ethernet header, 68 to 9000, or none; the TRR paper has
    /// 500 and 800. Another giveway with --reassemble must stand behind --out
    #[arg(long, value_name = "BYTES")]
    fragment: Option<String>,
    /// Cut those of the other direction; then one with --reassemble-back stands behind --in
    #[arg(long, value_name = "BYTES")]
    fragment_back: Option<String>,
    /// Put together what comes in at --in in fragments of another giveway
    #[arg(long, num_args = 0..=1, default_missing_value = "yes", require_equals = true, value_name = "YES/NO")]
    reassemble: Option<String>,
    /// Put together what comes in at --out in fragments
    #[arg(long, num_args = 0..=1, default_missing_value = "yes", require_equals = true, value_name = "YES/NO")]
    reassemble_back: Option<String>,
    /// Read any of the above from a TOML file (rate = "20mbit", qdisc-back = "fifo"); flags win. SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Bytes that each packet takes on the link beside its IP length, as in tc: 14 for an Ethernet header
    #[arg(long, value_name = "BYTES", default_value_t = 14, value_parser = value_parser!(u32).range(0..=1024))]
    overhead: u32,
    /// What each packet takes on the link at least
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = value_parser!(u32).range(0..=1600))]
    mpu: u32,
    /// The EtherType of fragments, the same on both ends
    #[arg(long, value_name = "TYPE", default_value = "0x88b6", value_parser = settings::fragment_type)]
    fragment_type: u16,
    /// How many frames the kernel may have ready for us
    #[arg(long, value_name = "FRAMES", default_value_t = 4096, value_parser = value_parser!(u32).range(64..=262_144))]
    ring: u32,
    /// Take what bpf: loads from here, where `giveway kernel build` put it (giveway_efd.o), instead of compiling it
    #[arg(long, value_name = "DIR")]
    objects: Option<PathBuf>,
    /// The seed of everything random: loss, jitter, keys of flows, disciplines
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Turn offloads off that put several packets into one (tso, gso, gro), on both interfaces; they stay off afterwards
    #[arg(long)]
    fix_offloads: bool,
    /// Ordinary scheduling: other programs may make frames late
    #[arg(long)]
    no_realtime: bool,
    /// Ends by itself after this time
    #[arg(long, value_name = "TIME")]
    duration: Option<Span>,
    /// Listens there for `giveway control`
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Keep the tables that a simulation keeps, for each direction in a folder of its own, DIR/forward and DIR/back
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Show on the terminal, twice a second: queues, waiting times, drops and marks, the largest flows, use of the link
    #[arg(long)]
    tui: bool,
    /// Serve OpenMetrics over HTTP there, for Prometheus and its like, as in 127.0.0.1:9100
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// Write frames to a pcapng file as they leave; dropped ones too, with a comment that says why
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// The most that the capture may have
    #[arg(long, value_name = "SIZE", default_value = "100mb")]
    pcap_limit: Bytes,
    /// Bytes kept of each frame; 0 for all
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = value_parser!(u32).range(0..=65_535))]
    pcap_snap: u32,
    /// Write every operation of the disciplines to this file, for `giveway replay-check`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Measure only from SIGUSR1 on: what comes before is warm-up
    #[arg(long, requires = "record")]
    record_later: bool,
    /// Packets up to this length are small in what --record keeps
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = value_parser!(u32).range(1..=65_535))]
    small_packet: u32,
    /// Write a line into this file (or named pipe) once frames pass
    #[arg(long, value_name = "FILE")]
    ready: Option<PathBuf>,
    /// Print one JSON object at the end instead of a table
    #[arg(long)]
    json: bool,
    /// Only errors
    #[arg(long, short, action = ArgAction::SetTrue)]
    quiet: bool,
    #[command(flatten)]
    reserving: reserving::Reserving,
}

const EXAMPLES: &str = "\
Examples:
  sudo giveway live --in eth0 --out eth1 --rate 20mbit
  sudo giveway live --in eth0 --out eth1 --rate 2mbit --qdisc \"efd limit 300p\" --rate-back 16mbit
  sudo giveway live --in eth0 --out eth1 --rate 10mbit --delay 20ms --loss 0.1% --jitter 2ms
  sudo giveway live --in eth0 --out eth1 --rate 1mbit --fragment 500 --reassemble-back
  sudo giveway live --in eth0 --out eth1 --rate 20mbit --qdisc \"bpf:efd limit 300p\"
  sudo giveway live --in tun:gw0 --out tun:gw1 --rate 5mbit --control /run/giveway.sock
  sudo giveway control /run/giveway.sock set rate 8mbit
  sudo giveway live --in eth0 --out eth1 --rate 10mbit --qdisc trr_sound --reserve    # see giveway reserve --help

Exit codes: 0 all is well, 1 a direction failed (and traffic passed on), 2 it could not begin.";

/// How long queued frames are sent at the end.
const PATIENCE: Span = Span::s(5);

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
    let flags = match settings::of_flags(args) {
        Ok(flags) => flags,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    match in_kernel::asked(args, &flags) {
        Ok(None) => {}
        Ok(Some(wishes)) => return in_kernel::live(args, wishes, out),
        Err(sentence) => return Ok(wrong(&sentence)),
    }
    if args.objects.is_some() {
        return Ok(wrong("--objects is for disciplines in the kernel, as --qdisc bpf:efd: leave it out"));
    }
    let wishes = match settings::wishes(args.settings.as_deref(), &flags) {
        Ok(wishes) => wishes,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    if args.tui && !io::stdout().is_terminal() {
        return Ok(wrong("--tui needs a terminal, and the standard output is none"));
    }
    let reserving = match args.reserving.settings(&wishes) {
        Ok(reserving) => reserving,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    let tun = [&args.inside, &args.outside].into_iter().find(|name| name.starts_with("tun:"));
    if let (Some(_), Some(name)) = (&reserving, tun) {
        return Ok(wrong(&reserving::not_ethernet(name)));
    }
    if !look_around(args) {
        return Ok(Outcome::Wrong);
    }
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
    let reach = settings::Reach { ethernet: a.ethernet, longest: a.longest.max(b.longest) };
    if let Err(sentence) = wishes.within(&reach) {
        return Ok(wrong(&format!("--{sentence}")));
    }
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return Ok(wrong(&format!("cannot listen for signals: {error}"))),
    };
    let listener = match args.control.as_deref().map(control::listen).transpose() {
        Ok(listener) => listener,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    let metrics = match args.metrics.map(metrics::listen).transpose() {
        Ok(listener) => listener,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    let trace = match args.trace.as_deref().map(trace).transpose() {
        Ok(trace) => trace,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    let tracer = trace.as_ref().map(replay::Recording::tracer);
    let (office, mut gates, clerk) = match reserving {
        None => (None, [None, None], None),
        Some(_) if !a.ethernet => return Ok(wrong(&reserving::not_ethernet(&a.name))),
        Some((settings, links)) => {
            let (office, gates, clerk) = reservations::open(settings, links, [a.address, b.address]);
            (Some(office), gates, Some(clerk))
        }
    };
    let names = [(a.name.clone(), b.name.clone()), (b.name.clone(), a.name.clone())];
    let begin = |dir| keep::Recording::begin(dir, args.small_packet, args.record_later);
    let recording = match args.record.as_deref().map(begin).transpose() {
        Ok(recording) => recording,
        Err(sentence) => return Ok(wrong(&sentence)),
    };
    if let Some(recording) = &recording
        && let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGUSR1, recording.begun())
    {
        return Ok(wrong(&format!("cannot listen for SIGUSR1: {error}")));
    }
    let longest = a.longest.max(b.longest);
    let ethernet = a.ethernet;
    let streams = Streams::new(args.seed);
    let ways = [(Side::Forward, &names[0]), (Side::Back, &names[1])].map(|(side, (from, to))| {
        let wish = wishes.of(side);
        (format!("{from} to {to}"), wish.qdisc.to_string(), wish.rate.as_bit())
    });
    let mut capture = None;
    if let Some(file) = &args.pcap {
        match pcap::Capture::begin(file, args.pcap_limit, args.pcap_snap, ethernet, &ways) {
            Ok(begun) => capture = Some(begun),
            Err(sentence) => return Ok(wrong(&sentence)),
        }
    }
    let bridge = {
        let parts = |name: &'static str| {
            let side = if name == "forward" { Side::Forward } else { Side::Back };
            let wish = wishes.of(side);
            let place = streams.within(name);
            Parts {
                id: PortId(0),
                rate: wish.rate,
                build: settings::builder(wish.qdisc.clone(), place.clone(), tracer.clone(), name),
                line: wish.line,
                counting: look::Counting { overhead: args.overhead, mpu: args.mpu },
                ethernet,
                fragments: live::fragments::Settings {
                    cut: wish.fragment,
                    join: wish.reassemble,
                    ether_type: args.fragment_type,
                },
                longest_in: longest,
                longest_out: longest,
                rooms: settings::rooms(wish, &place),
                streams: place,
                xor_mod: args.reserving.flow_hash.0,
                gate: gates[side as usize].take(),
                probe: recording.as_ref().map(|recording| recording.probe(wish, name)),
                tap: capture.as_mut().map(pcap::Capture::tap),
                clock: Clock::start(),
            }
        };
        Bridge::start(Way::both(a, b, parts), !args.no_realtime)
    };
    let bridge = match bridge {
        Ok(bridge) => bridge,
        Err(error) => return Ok(wrong(&error.to_string())),
    };
    let memory = if args.no_realtime { String::new() } else { privilege::lock_memory() };
    if let Some(Err(error)) = office.map(|office| office.run(bridge.handles())) {
        return Ok(wrong(&format!("--reserve: {error}")));
    }
    let operator = Arc::new(Operator::new(bridge.handles(), names, wishes, reach, streams, tracer, clerk));
    if let Some(listener) = listener {
        control::serve(listener, &operator);
    }
    if let Some(listener) = metrics {
        metrics::serve(listener, &operator);
    }
    if let Err(why) = privilege::settle(Role::Watch) {
        say(args, &format!("not all privileges could be given up: {why}"));
    }
    announce(args, &operator, &memory);
    if let Some(ready) = &args.ready
        && let Err(error) = std::fs::write(ready, "ready\n")
    {
        say(args, &format!("--ready {}: {error}", ready.display()));
    }
    let whole = watch(args, bridge, &operator, &signals, &flags, out)?;
    let kept = Kept { recording, capture, trace };
    finish(args, whole, &operator, kept, out)
}

/// What is written while it runs, and ends with it.
struct Kept {
    recording: Option<keep::Recording>,
    capture: Option<pcap::Capture>,
    trace: Option<replay::Recording>,
}

/// A trace that begins.
fn trace(file: &Path) -> Result<replay::Recording, String> {
    let told = |error: io::Error| format!("--trace {}: {error}", file.display());
    let out = std::fs::File::create(file).map_err(told)?;
    let settle = || {
        let _ = privilege::settle(Role::Watch);
    };
    let program = concat!("giveway live ", env!("CARGO_PKG_VERSION"));
    replay::Recording::start_after(out, program, replay::Options::default(), settle).map_err(told)
}

/// Runs until somebody wants it to end.
fn watch(
    args: &Args,
    mut bridge: Bridge,
    operator: &Arc<Operator>,
    signals: &Signals,
    flags: &[(String, String)],
    out: &mut dyn Write,
) -> io::Result<(Vec<live::bridge::Ended>, bool)> {
    let end = args.duration.map(|span| monotonic_ns() + span.as_ps() / 1000);
    let mut drawn = 0;
    if args.tui {
        write!(out, "{ENTER}")?;
    }
    loop {
        pause(Duration::from_millis(50));
        if args.tui && monotonic_ns() > drawn + REDRAW_NS {
            drawn = monotonic_ns();
            draw(operator, out)?;
        }
        bridge.watch().iter().for_each(|sentence| show::sentence(sentence));
        if !args.quiet {
            operator.complaints().iter().for_each(|sentence| show::sentence(sentence));
        }
        if signals.reload() {
            let told = match &args.settings {
                None => "SIGHUP: there is no --settings file to read again".to_owned(),
                Some(file) => match settings::wishes(Some(file), flags) {
                    Ok(wishes) => operator
                        .become_as(wishes)
                        .unwrap_or_else(|sentence| format!("{sentence}; nothing was changed")),
                    Err(sentence) => format!("{sentence}; nothing was changed"),
                },
            };
            say(args, &told);
        }
        if signals.end() || operator.is_stopped() || end.is_some_and(|end| monotonic_ns() >= end) {
            break;
        }
    }
    let whole = bridge.is_whole();
    let ended = bridge.stop(PATIENCE);
    if args.tui {
        write!(out, "{LEAVE}")?;
    }
    Ok((ended, whole))
}

/// The other screen of the terminal, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Twice a second.
const REDRAW_NS: u64 = 500_000_000;

/// Draws what is going on.
fn draw(operator: &Operator, out: &mut dyn Write) -> io::Result<()> {
    let (width, height) = terminal::size();
    let ascii = std::env::var("TERM").is_ok_and(|term| term == "linux" || term == "vt100");
    let lines = watch::tui::screen(&seeing::snapshots(operator), width, height, watch::Look { ascii });
    // Each line is cleared behind its text, and the rest of the screen at the end: nothing flickers.
    let text: String = lines.iter().map(|line| format!("{line}\x1b[K\r\n")).collect();
    write!(out, "\x1b[H{}\x1b[J", text.trim_end_matches("\r\n"))?;
    out.flush()
}

/// Answers whoever connects, one after the other, in a thread that lives as long as the process; without privileges, unless it runs
/// programs.
fn answer_each<S>(
    name: &str,
    runs_programs: bool,
    mut accept: impl FnMut() -> io::Result<S> + Send + 'static,
    answer: impl Fn(S) -> io::Result<()> + Send + 'static,
) {
    let answering = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        if !runs_programs {
            let _ = privilege::settle(Role::Watch);
        }
        loop {
            if let Ok(stream) = accept() {
                // Whoever does not read its answer misses it.
                let _ = answer(stream);
            }
        }
    });
    if let Err(error) = answering {
        show::sentence(&format!("{name}: nobody answers: {error}"));
    }
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
    operator: &Operator,
    kept: Kept,
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    let mut outcome = if whole { Outcome::Done } else { Outcome::Failed };
    let (statuses, probes): (Vec<_>, Vec<_>) =
        ended.into_iter().map(|ended| (ended.status, ended.probe)).unzip();
    let recorded = kept.recording.map(|recording| recording.finish(probes, operator));
    let captured = kept.capture.map(pcap::Capture::finish);
    let traced = kept.trace.map(|trace| {
        let cut = trace.tracer().cut();
        let told = trace.finish().map_err(|error| format!("--trace: {error}"))?;
        let cut =
            if cut > 0 { format!("; {cut} disciplines were not traced to the end") } else { String::new() };
        Ok(format!("traced {} operations{cut}", told.operations))
    });
    for told in [recorded, captured, traced].into_iter().flatten() {
        match told {
            Ok(sentence) => say(args, &sentence),
            Err(sentence) => {
                show::sentence(&sentence);
                outcome = Outcome::Failed;
            }
        }
    }
    if let Some(socket) = &args.control {
        // It may be gone already.
        let _ = std::fs::remove_file(socket);
    }
    if args.json {
        writeln!(out, "{}", operator.json(&statuses))?;
    } else {
        write!(out, "{}", operator.summary(&statuses))?;
    }
    Ok(outcome)
}

/// Looks for what would ruin it; false when it cannot begin.
fn look_around(args: &Args) -> bool {
    let own = |name: &str| !name.starts_with("tun:");
    let (a, b) = (args.inside.as_str(), args.outside.as_str());
    if args.fix_offloads {
        for name in [a, b].into_iter().filter(|name| own(name)) {
            match checks::fix_offloads(name) {
                Ok(off) if !off.is_empty() => say(args, &format!("{name}: turned {} off", off.join(", "))),
                Ok(_) => {}
                Err(sentence) => show::sentence(&sentence),
            }
        }
    }
    let mut found = checks::check(Some(a).filter(|name| own(name)), Some(b).filter(|name| own(name)));
    found.extend(checks::check_ring(args.ring as usize));
    for finding in &found {
        if finding.fatal || !args.quiet {
            show::sentence(&finding.what);
            if !finding.remedy.is_empty() {
                show::sentence(&format!("  {}", finding.remedy));
            }
        }
    }
    !found.iter().any(|finding| finding.fatal)
}

/// What runs, in a few lines.
fn announce(args: &Args, operator: &Operator, memory: &str) {
    if args.quiet {
        return;
    }
    for line in operator.describe() {
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
