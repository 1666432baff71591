//! `giveway compare`: a capture over a link of another rate, with each of several disciplines.

mod findings;
mod link;
mod reading;
mod show;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{ValueEnum, value_parser};
use disciplines::{ALL, Spec};
use qdisc::{Rate, Site, Span, Streams};
use record::Table;
use scenario::Scenario;
use serde_json::json;
use workload::Local;

use crate::Outcome;
use crate::run::{Session, name};
use crate::show::{sentence, wrong};
use link::Link;
use reading::Read;

/// Which discipline would help my link? Takes what the applications in a capture did and does it again over a link of
/// the given rate, once with each discipline.
///
/// With --mode flows, the default, connections are run again with TCP: each request, response and think time as in the
/// capture, at whatever pace the link and the discipline allow. With --mode replay, packets arrive when they were
/// captured and nobody reacts to losses: exact for the queue, blind for the senders.
///
/// The capture is read once; nothing in it but headers, lengths and times is used.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A pcap or pcapng file, compressed with gzip or not
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Rate of the link, both ways, such as 10mbit; several, with commas between them, are compared one after the other
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    rate: Vec<Rate>,
    /// Rate upwards, away from the local side, where it is not --rate
    #[arg(long, value_name = "RATE")]
    rate_up: Option<Rate>,
    /// Rate downwards, towards the local side, where it is not --rate
    #[arg(long, value_name = "RATE")]
    rate_down: Option<Rate>,
    /// Round-trip time of every connection without queues [default: what the capture shows for each]
    #[arg(long, value_name = "TIME")]
    rtt: Option<Span>,
    /// What is done again
    #[arg(long, value_enum, default_value_t = Mode::Flows)]
    mode: Mode,
    /// A discipline, as tc would write it, or "all"; may be repeated [default: fifo, fq_codel, pie, drr, efd]
    #[arg(long, value_name = "SPEC")]
    qdisc: Vec<String>,
    /// The local side: prefixes or MAC addresses, with commas between them, or "beyond MAC" for all that is not behind
    /// that gateway [default: a guess, which is told]
    #[arg(long, value_name = "LOCAL")]
    link: Option<Local>,
    /// Keep everything in this folder, with the report, and resume what is there. A folder that holds something else is
    /// refused
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write what the queues did to a pcapng file, for Wireshark and its like; several disciplines get a file each
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// How many runs of each discipline; connections begin a little later in each, so that differences can be told from
    /// chance [default: 5 for flows, 1 for replay]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// How many runs at a time; by default as many as there are processors
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Replace what is at --out or --export although it is something else. Names each thing that it removes, and leaves what
    /// Giveway does not write
    #[arg(long)]
    force: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// No progress and no warnings
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway compare examples/home-uplink.pcapng --rate-up 2mbit --rate-down 16mbit --out runs/home
  giveway compare evening.pcapng --rate 10mbit
  giveway compare evening.pcapng --rate 1mbit,4mbit,16mbit --qdisc \"fifo limit 100p\" --qdisc \"fq_codel target 20ms\"
  giveway compare evening.pcapng --rate 10mbit --mode replay --link 192.168.0.0/16 --export queues.pcapng

Exit codes: 0 all is well, 1 a run failed, 2 wrong usage or an unreadable capture, 130 interrupted.";

/// What is done again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// What the applications did: connections react to the link
    Flows,
    /// The packets, at their times: nobody reacts
    Replay,
}

/// What is compared when nothing is said. The fifo has what a home router's modem has, about.
const DEFAULT: [&str; 5] = ["fifo limit 100p", "fq_codel", "pie", "drr limit 100p", "efd limit 100p"];

/// No path is longer than this: to a satellite and back twice is two seconds.
const LONGEST_RTT: Span = Span::s(10);

/// Does it.
pub fn compare(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    match prepare(args) {
        Ok(prepared) => prepared.run(args, out),
        Err((message, outcome)) => {
            sentence(&message);
            Ok(outcome)
        }
    }
}

/// Everything that is needed to begin.
struct Prepared {
    specs: Vec<Spec>,
    links: Vec<Link>,
    read: Read,
    place: link::Place,
}

type Refused = (String, Outcome);

/// Checks what was asked before the capture is read, which may take a while.
fn prepare(args: &Args) -> Result<Prepared, Refused> {
    let refused = |message: String| (message, Outcome::Wrong);
    let specs = specs(&args.qdisc).map_err(refused)?;
    let rates = rates(args).map_err(refused)?;
    if let Some(rtt) = args.rtt.filter(|rtt| *rtt > LONGEST_RTT) {
        let message = format!("--rtt: no path has a round trip of {rtt}; write for example --rtt 30ms");
        return Err(refused(message));
    }
    if args.rtt.is_some() && args.mode == Mode::Replay {
        let message =
            "--rtt: a replay has no round trips, nobody reacts in it; leave it out, or --mode replay";
        return Err(refused(message.to_owned()));
    }
    let links: Vec<Link> = rates.into_iter().map(|(up, down)| Link { up, down, rtt: args.rtt }).collect();
    let place = link::Place::new(args.out.as_deref(), &links, args.force)?;
    let read = Read::capture(&args.capture, args.link.as_ref(), args.quiet).map_err(refused)?;
    if !args.quiet {
        read.tell(&args.capture);
    }
    read.check(args.mode).map_err(refused)?;
    Ok(Prepared { specs, links, read, place })
}

impl Prepared {
    fn run(&self, args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
        let file = name(&args.capture);
        let session = Session::new(args.jobs.unwrap_or(0), args.json, args.quiet);
        let mut session = match session {
            Ok(session) => session.replacing(args.force),
            Err(message) => {
                sentence(&message);
                return Ok(Outcome::Failed);
            }
        };
        let files = self.place.files();
        if args.mode == Mode::Flows {
            session = match link::keep(&self.read.workload, files) {
                Ok(workload) => session.keeping(link::WORKLOAD, workload),
                Err(message) => {
                    sentence(&message);
                    return Ok(Outcome::Failed);
                }
            };
        }
        let seeds = args.seeds.unwrap_or(if args.mode == Mode::Flows { 5 } else { 1 });
        let mut outcome = Outcome::Done;
        let mut told = Vec::new();
        let mut kept_in = Vec::new();
        for link in &self.links {
            let folder = self.place.folder(link, self.links.len());
            let text = link.scenario(&file, &args.capture, args.mode, &self.specs, seeds, &self.read);
            let scenario = match Scenario::parse(&text, files) {
                Ok(scenario) => scenario,
                Err(diagnostics) => {
                    wrong(&diagnostics);
                    return Ok(Outcome::Wrong);
                }
            };
            let export = |file: &PathBuf| if self.links.len() > 1 { link.file(file) } else { file.clone() };
            session = session.exporting(args.export.as_ref().map(export));
            let find = |table: &Table| Some(findings::of(table, args.mode));
            let done = match session.work(&scenario, &file, folder.as_deref(), &find) {
                Ok(done) => done,
                Err(worst) => return Ok(outcome.max(worst)),
            };
            if args.json {
                told.push(json!({
                    "rate_up_bps": link.up.as_bit(),
                    "rate_down_bps": link.down.as_bit(),
                    "findings": done.findings,
                    "table": done.table.to_json(&file, done.cpu_s),
                }));
            } else {
                show::tables(&done, link, &self.read, args.mode, out)?;
                show::findings(&done.findings, args.mode, out)?;
            }
            session.remark(&done);
            outcome = outcome.max(done.outcome);
            kept_in.extend(folder.filter(|_| done.finished > 0));
            if crate::stop::asked() {
                break;
            }
        }
        if let (Some(out), 2..) = (&args.out, kept_in.len()) {
            let place = out.join(record::REPORT);
            let dirs: Vec<&Path> = kept_in.iter().map(PathBuf::as_path).collect();
            match crate::report::of_folders(&dirs, &place, args.force) {
                Ok(()) if args.quiet => {}
                Ok(()) => sentence(&format!("all rates side by side: {}", shown(&place))),
                Err(message) => {
                    sentence(&message);
                    outcome = outcome.max(Outcome::Failed);
                }
            }
        }
        if args.json {
            let whole = json!({ "capture": self.read.to_json(&args.capture), "links": told });
            writeln!(out, "{whole}")?;
        } else if args.out.is_none() && !args.quiet {
            sentence("with --out DIR it is all kept, with a report to open in a browser");
        }
        Ok(outcome)
    }
}

/// The rates, up and down, of every link that was asked for.
fn rates(args: &Args) -> Result<Vec<(Rate, Rate)>, String> {
    let of = |rate: Option<Rate>| match (args.rate.as_slice(), rate) {
        ([], None) => Err("how fast is the link? Write for example --rate 10mbit".to_owned()),
        ([], Some(rate)) => Ok(vec![rate]),
        (rates, None) => Ok(rates.to_vec()),
        (rates, Some(rate)) => Ok(vec![rate; rates.len()]),
    };
    let (up, down) = match (&args.rate[..], args.rate_up, args.rate_down) {
        ([], Some(_), None) => return Err("and downwards? Add for example --rate-down 16mbit".to_owned()),
        ([], None, Some(_)) => return Err("and upwards? Add for example --rate-up 2mbit".to_owned()),
        (_, up, down) => (of(up)?, of(down)?),
    };
    let pairs: Vec<(Rate, Rate)> = up.into_iter().zip(down).collect();
    if pairs.iter().any(|(up, down)| up.as_bit() == 0 || down.as_bit() == 0) {
        return Err("--rate: a link of 0 sends nothing; write for example --rate 10mbit".to_owned());
    }
    Ok(pairs)
}

/// The disciplines that were asked for.
fn specs(asked: &[String]) -> Result<Vec<Spec>, String> {
    let mut specs: Vec<Spec> = Vec::new();
    let texts = match asked {
        [] => DEFAULT.map(str::to_owned).to_vec(),
        some => some.to_vec(),
    };
    for text in &texts {
        if text == "all" {
            specs.extend(all());
            continue;
        }
        specs.push(text.parse().map_err(|error| format!("--qdisc \"{text}\": {error}"))?);
    }
    let mut seen: Vec<String> = Vec::new();
    specs.retain(|spec| {
        let text = spec.to_string();
        let new = !seen.contains(&text);
        seen.push(text);
        new
    });
    Ok(specs)
}

/// Every discipline that can stand in front of a link as it is: the default's parameters where it is among them, and no
/// shapers, which would be a second link.
fn all() -> impl Iterator<Item = Spec> {
    let tuned = |name: &str| {
        let mut known = DEFAULT.iter().map(|text| text.parse::<Spec>().expect("a default is right"));
        known.find(|spec| spec.name() == name)
    };
    let site = Site::new(Rate::mbit(10), Streams::new(0));
    ALL.iter()
        .map(move |entry| tuned(entry.name).unwrap_or_else(entry.default))
        .filter(move |spec| spec.build::<()>(&site).is_ok() && spec.nature(&site).work_conserving)
}

/// A folder or file, as it is told.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
