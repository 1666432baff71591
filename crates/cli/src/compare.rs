//! `giveway compare`: a capture over a link of another rate, with each of several disciplines.

mod show;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{ValueEnum, value_parser};
use giveway_qdisc::{Rate, Span};
use giveway_runner::compare::{Error, Mode, Request, specs};
use giveway_runner::{Outcome, scenario_name};
use giveway_workload::Local;
use serde_json::json;

use crate::frontend::Terminal;
use crate::run::{remark, session};
use crate::show::{sentence, wrong};

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
    #[arg(long, value_enum, default_value_t = Senders::Flows)]
    mode: Senders,
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

/// What the simulated senders do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Senders {
    /// What the applications did: connections react to the link
    Flows,
    /// The packets, at their times: nobody reacts
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
pub fn compare(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let refused = |(message, outcome): (String, Outcome)| {
        sentence(&message);
        Ok(outcome)
    };
    let frontend = Terminal { quiet: args.quiet };
    let comparison = match request(args).and_then(|request| request.begin(&frontend)) {
        Ok(comparison) => comparison,
        Err(refusal) => return refused(refusal),
    };
    let session = match session(args.jobs, &frontend) {
        Ok(session) => session,
        Err(message) => return refused((message, Outcome::Failed)),
    };
    let (name, mode, capture) = (scenario_name(&args.capture), args.mode.into(), comparison.capture());
    let mut links = Vec::new();
    let ran = comparison.run(session, &mut |link, results| {
        if args.json {
            links.push(json!({
                "rate_up_bps": link.up.as_bit(),
                "rate_down_bps": link.down.as_bit(),
                "findings": results.findings,
                "table": results.table.to_json(&name, results.cpu_s),
            }));
        } else {
            show::tables(results, link, capture, mode, out)?;
            show::findings(&results.findings, mode, out)?;
        }
        remark(results, args.json, args.quiet);
        Ok(())
    });
    let compared = match ran {
        Ok(compared) => compared,
        Err(Error::Reported(outcome)) => return Ok(outcome),
        Err(Error::Refused(refusal)) => return refused(refusal),
        Err(Error::Scenario(diagnostics)) => {
            wrong(&diagnostics);
            return Ok(Outcome::Wrong);
        }
        Err(Error::Output(error)) => return Err(error),
    };
    if let (Some(place), false) = (&compared.side_by_side, args.quiet) {
        sentence(&format!("all rates side by side: {}", place.display()));
    }
    if args.json {
        let whole = json!({ "capture": capture.to_json(&args.capture), "links": links });
        writeln!(out, "{whole}")?;
    } else if args.out.is_none() && !args.quiet {
        sentence("--out DIR keeps all results, with a report to open in a browser");
    }
    Ok(compared.outcome)
}

/// The request that the flags make.
fn request(args: &Args) -> Result<Request, (String, Outcome)> {
    let wrong = |message: String| (message, Outcome::Wrong);
    Ok(Request {
        capture: args.capture.clone(),
        mode: args.mode.into(),
        specs: specs(&args.qdisc).map_err(wrong)?,
        rates: rates(args).map_err(wrong)?,
        rtt: args.rtt,
        local: args.link.clone(),
        seeds: args.seeds,
        out: args.out.clone(),
        export: args.export.clone(),
        force: args.force,
    })
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
    Ok(up.into_iter().zip(down).collect())
}
