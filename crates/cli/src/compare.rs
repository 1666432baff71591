//! `giveway compare`: replays a capture over a simulated link, with each of several disciplines.

mod show;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ValueEnum, value_parser};
use giveway_capture::Moment;
use giveway_compare::{
    Advice, AdviceOptions, Bootstrap, Live, Mode, Overhead, Request, Source, Target, User, pairs,
};
use giveway_qdisc::{Rate, Span};
use giveway_runner::{Outcome, scenario_name};
use giveway_sim::tcp::Congestion;
use giveway_trials::{Reuse, processors};
use giveway_workload::Local;
use serde_json::json;

use crate::error::CliError;
use crate::frontend::Terminal;
use crate::run::{remark, session};
use crate::show::message;
use crate::stop;

/// Compares disciplines on the traffic of your own link: replays a capture over a simulated link of any rate.
///
/// With --mode flows, the default, the requests, responses and think times of the applications are extracted
/// from the capture and transferred again over simulated TCP, which reacts to the queue. With --mode replay,
/// packets arrive at their captured times and senders do not react to delay or loss.
///
/// Prints a table for each direction and findings: which discipline helps, by how much, and what it costs.
/// Only headers, lengths and times of the capture are used.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// pcap or pcapng files, which may be compressed with gzip, zstd or lz4; "-" is the standard input.
    /// Several files are merged by time
    #[arg(value_name = "CAPTURE", required_unless_present = "live")]
    captures: Vec<PathBuf>,
    /// Instead of reading a file, capture on this interface for the time of --for, with tcpdump. Ctrl-C ends
    /// the capture early. Needs root. Through sudo, Giveway becomes the user who called sudo as soon as
    /// tcpdump captures, and so do tcpdump and the files of --keep and --out; as root without sudo, only
    /// tcpdump gives up root
    #[arg(long, value_name = "INTERFACE", conflicts_with = "captures", requires = "length")]
    live: Option<String>,
    /// Length of the capture of --live, as in 90s or 5m
    #[arg(long = "for", value_name = "TIME", requires = "live", value_parser = length)]
    length: Option<Duration>,
    /// Keep the packets of --live in this pcapng file
    #[arg(long, value_name = "FILE", requires = "live")]
    keep: Option<PathBuf>,
    /// Use packets from this time on: "90s" or "10m" after the first packet, "20:15" or "20:15:30" of its day
    /// in UTC, or "2026-11-26T20:15:00Z"
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
    /// Use packets until this time, in the format of --from
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Rate of the link in both directions, as in 10mbit. Several rates, separated by commas, are compared
    /// one after the other [default: none; the highest rate that lasts in the capture is offered as a
    /// guess]
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    rate: Vec<Rate>,
    /// Upstream rate, away from the local side [default: same as --rate]
    #[arg(long, value_name = "RATE")]
    rate_up: Option<Rate>,
    /// Downstream rate, towards the local side [default: same as --rate]
    #[arg(long, value_name = "RATE")]
    rate_down: Option<Rate>,
    /// Round-trip time of every connection without queueing [default: measured in the capture for each
    /// connection]
    #[arg(long, value_name = "TIME")]
    rtt: Option<Span>,
    /// Behaviour of the senders
    #[arg(long, value_enum, default_value_t = Senders::Flows)]
    mode: Senders,
    /// Congestion control of every TCP connection, as in "bbr"; a capture does not show it [default: cubic]
    #[arg(long, value_name = "SPEC")]
    congestion: Option<Congestion>,
    /// A discipline with its parameters in both directions, as in "fifo limit 100p", or "all"; may be
    /// repeated. The first is the baseline of the findings: the queue that the line has now [default: "fifo
    /// limit 100p", about the buffer of a modem, then fq_codel, cake, pie, drr and efd]
    #[arg(long, value_name = "SPEC")]
    qdisc: Vec<String>,
    /// A discipline upstream; --qdisc-down says the one downstream. The first pair is the baseline of the
    /// findings, as in --qdisc-up "fifo limit 60p" --qdisc-down "fifo limit 400p"
    #[arg(long, value_name = "SPEC")]
    qdisc_up: Vec<String>,
    /// The discipline downstream for each --qdisc-up, in the same order
    #[arg(long, value_name = "SPEC")]
    qdisc_down: Vec<String>,
    /// Local side of the link: address prefixes or MAC addresses, separated by commas; or gateway=MAC, if
    /// every host that is not behind this gateway is local [default: a guess, which is printed with its
    /// reason]
    #[arg(long, value_name = "LOCAL")]
    link: Option<Local>,
    /// Keep results, time series and a report in this folder. Trials that the folder already has are not
    /// repeated. A folder with other contents is refused
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the packets of the queues to a pcapng file, with drops and marks as comments, for Wireshark and
    /// similar programs. Several disciplines get a file each, as in FILE-fifo.pcapng
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Equipment that the recommendation is for
    #[arg(long, value_enum, default_value_t = On::Tc, help_heading = "Recommendation")]
    target: On,
    /// Interface towards the provider, in the commands of the recommendation. With --target giveway the
    /// commands are then for this machine as the router, otherwise for a bridge [default: the word WAN]
    #[arg(long, value_name = "IF", help_heading = "Recommendation")]
    wan: Option<String>,
    /// Rate of the shaper in the recommendation, in percent of the line's
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = value_parser!(u8).range(10..=100))]
    #[arg(help_heading = "Recommendation")]
    shape: u8,
    /// Bytes that the line adds to packets, as a word of tc-cake(8): docsis for cable, pppoe-ptm or
    /// bridged-ptm for VDSL, ethernet for fibre. The commands of the recommendation count them [default:
    /// none; a guess is printed if the capture shows it]
    #[arg(long, value_name = "WORD", help_heading = "Recommendation")]
    overhead: Option<Overhead>,
    /// Number of seeds. Each seed delays the start of connections by different small random times, so that
    /// differences can be distinguished from chance [default: 5 for flows, 1 for replay]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Replay another draw of stretches of the capture with each seed, as many as the whole has, so that
    /// intervals include how much the traffic varies. TIME is the length of a stretch, a tenth of the capture
    /// if it is left out; "off" replays all of it with each seed [default: a tenth, with 10 seeds, for a
    /// capture of at least two minutes and 30 connections, none of which has a fifth of the data; otherwise
    /// off]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true)]
    bootstrap: Option<Option<Bootstrap>>,
    /// Compare a capture of at least 6 hours as a whole, and not its busy and its idle hours apart
    #[arg(long)]
    whole: bool,
    /// Take finished trials from this folder of a run, a sweep or a card; may be repeated. A trial is found
    /// if everything that its result depends on is the same. They have
    /// metrics and no time series, so they suit no run folder and no capture
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "export"])]
    reuse: Vec<PathBuf>,
    /// Trials at a time [default: one for each processor]
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Replace the folder of --out and the files of --export, whatever they contain. Each removed file is
    /// named; files in the folder that Giveway does not write stay
    #[arg(long)]
    force: bool,
    /// Print one JSON object instead of tables; times are in seconds, rates in bit/s
    #[arg(long)]
    json: bool,
    /// Print no progress and no warnings
    #[arg(long, short)]
    quiet: bool,
    /// Also print the number of simulated events and the processor time
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway compare examples/home-uplink.pcapng --rate-up 2mbit --rate-down 16mbit --out runs/home
  giveway compare evening.pcapng --rate 10mbit
  giveway compare day.pcap0 day.pcap1 --rate 10mbit --from 20:15 --until 21:45
  tcpdump -i eth0 -s 96 -w - | giveway compare - --rate 10mbit
  sudo giveway compare --live eth0 --for 5m --keep evening.pcapng --rate 10mbit
  giveway compare evening.pcapng --rate 1mbit,4mbit,16mbit --qdisc \"fifo limit 100p\" --qdisc \"fq_codel target 20ms\"
  giveway compare evening.pcapng --rate 10mbit --bootstrap=30s
  giveway compare evening.pcapng --rate 10mbit --mode replay --link 192.168.0.0/16 --export queues.pcapng
  giveway compare evening.pcapng --rate 10mbit --link gateway=02:00:00:00:00:01

Exit codes: 0 success, 1 a run failed, 2 wrong usage or an unreadable capture, 130 interrupted.";

/// Equipment for the recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// Linux with tc
    Tc,
    /// OpenWrt with sqm-scripts
    Openwrt,
    /// A machine with Giveway, as a bridge or in the kernel
    Giveway,
    /// Whatever the best discipline needs
    Any,
}

impl From<On> for Target {
    fn from(on: On) -> Target {
        match on {
            On::Tc => Target::Tc,
            On::Openwrt => Target::Openwrt,
            On::Giveway => Target::Giveway,
            On::Any => Target::Any,
        }
    }
}

/// Behaviour of the simulated senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Senders {
    /// Applications transfer the captured data over TCP, which reacts to the link
    Flows,
    /// Packets arrive at their captured times; no sender reacts
    Replay,
}

impl From<Senders> for Mode {
    fn from(senders: Senders) -> Mode {
        match senders {
            Senders::Flows => Mode::Flows,
            Senders::Replay => Mode::Replay,
        }
    }
}

/// Runs `giveway compare`.
pub fn compare(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let frontend = Terminal { quiet: args.quiet };
    // Ctrl-C ends a capture from the standard input, and the packets until then are compared.
    stop::listen();
    let comparison = request(args)?.begin(&frontend)?;
    let jobs = args.jobs.map_or_else(processors, usize::from);
    let session = session(jobs, &frontend).reusing(Reuse::of(&args.reuse, &frontend)?);
    let (name, mode, capture) = (scenario_name(source(args).first()), args.mode.into(), comparison.capture());
    let mut links = Vec::new();
    let several = comparison.links() > 1;
    let mut sweep = show::Sweep::default();
    let mut busy: Vec<Option<Advice>> = Vec::new();
    // What the answer rests on comes after it.
    let mut details = Vec::new();
    let compared = comparison.run(session, &mut |link, capture, results, reported| {
        if args.json {
            links.push(json!({
                "rate_upstream_bps": link.up.as_bit(),
                "rate_downstream_bps": link.down.as_bit(),
                "hours": link.hours.as_ref().map(|hours| &hours.words),
                "findings": reported.findings,
                "recommendation": reported.advice.as_ref().map(Advice::to_json),
                "table": results.table.to_json(&name, results.cpu_s),
            }));
        } else {
            show::tables(results, link, capture, (mode, &reported.situation), &mut details)?;
            show::findings(&reported.findings, mode, &mut details)?;
        }
        sweep.add(link, &results.table, reported.advice.as_ref());
        if link.hours.as_ref().is_some_and(|hours| hours.name == "busy") {
            busy.push(reported.advice.clone());
        }
        if let (Some(advice), false, false) = (&reported.advice, args.json, several) {
            show::advice(advice, out)?;
        }
        remark(results, args.quiet, args.verbose);
        Ok(())
    })?;
    if let (Some(place), false) = (&compared.side_by_side, args.quiet) {
        message(&format!("all rates side by side: {}", place.display()));
    }
    if args.json {
        let whole = json!({ "capture": capture.to_json(&source(args)), "links": links });
        writeln!(out, "{whole}")?;
    } else if several {
        sweep.show(out)?;
        // The commands are those of the busy hours, in which the queue is.
        match busy.as_slice() {
            [Some(advice)] => show::advice(advice, out)?,
            _ => show::hint(out)?,
        }
    }
    out.write_all(&details)?;
    if !args.json && args.out.is_none() && !args.quiet {
        message("--out DIR keeps all results, with a report to open in a browser");
    }
    Ok(compared.outcome)
}

fn source(args: &Args) -> Source {
    let live = args.live.as_ref().zip(args.length).map(|(interface, duration)| Live {
        interface: interface.clone(),
        duration,
        keep: args.keep.clone(),
        user: User::of_sudo(&|name| std::env::var(name).ok()),
    });
    Source { files: args.captures.clone(), live, force: args.force, from: args.from, until: args.until }
}

/// The length of a capture.
fn length(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(Moment::After(time)) if time > 0 => Ok(Duration::from_nanos(time)),
        _ => Err("write a length of time, for example 90s or 5m".to_owned()),
    }
}

/// Converts the flags to a request.
fn request(args: &Args) -> Result<Request, CliError> {
    Ok(Request {
        capture: source(args),
        mode: args.mode.into(),
        pairs: pairs(&args.qdisc, &args.qdisc_up, &args.qdisc_down)?,
        rates: rates(args).map_err(CliError::Usage)?,
        rtt: args.rtt,
        congestion: args.congestion.clone(),
        local: args.link.clone(),
        advice: AdviceOptions {
            target: args.target.into(),
            wan: args.wan.clone(),
            shaped: f64::from(args.shape) / 100.0,
            overhead: args.overhead,
        },
        seeds: args.seeds,
        bootstrap: args
            .bootstrap
            .map_or(Bootstrap::WhereItSuits, |length| length.unwrap_or(Bootstrap::Tenth)),
        whole: args.whole,
        out: args.out.clone(),
        export: args.export.clone(),
        force: args.force,
    })
}

/// The upstream and downstream rate of each link. Without any, the capture offers a guess.
fn rates(args: &Args) -> Result<Vec<(Rate, Rate)>, String> {
    let of = |rate: Option<Rate>| match (args.rate.as_slice(), rate) {
        ([], None) => Vec::new(),
        ([], Some(rate)) => vec![rate],
        (rates, None) => rates.to_vec(),
        (rates, Some(rate)) => vec![rate; rates.len()],
    };
    let (up, down) = match (&args.rate[..], args.rate_up, args.rate_down) {
        ([], Some(_), None) => {
            return Err("--rate-down is missing: add for example --rate-down 16mbit".to_owned());
        }
        ([], None, Some(_)) => return Err("--rate-up is missing: add for example --rate-up 2mbit".to_owned()),
        (_, up, down) => (of(up), of(down)),
    };
    Ok(up.into_iter().zip(down).collect())
}
