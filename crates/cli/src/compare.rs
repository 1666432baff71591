//! `giveway compare`: a capture through one port, with each of several disciplines.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use capture::Reader;
use clap::value_parser;
use disciplines::Spec;
use qdisc::{Rate, Span};
use scenario::Scenario;

use crate::run::{Session, name};
use crate::{Outcome, show};

/// Replays a capture through one link, with each of several disciplines.
///
/// Packets arrive when they were captured, with the lengths that they had on the wire, at a port of the given rate. The
/// senders do not react: what is lost is not sent again, and nobody slows down. So this shows what a discipline does
/// to this traffic, not how the traffic would have been with it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A pcap or pcapng file, compressed with gzip or not
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Rate of the link, such as 10mbit
    #[arg(long, value_name = "RATE")]
    rate: Rate,
    /// A discipline, as tc would write it; may be repeated [default: fifo, drr, fq_codel, efd]
    #[arg(long, value_name = "SPEC")]
    qdisc: Vec<String>,
    /// Keep everything in this folder, and resume what is there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How many disciplines at a time; by default as many as there are processors
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// No progress and no warnings
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway compare evening.pcapng --rate 10mbit
  giveway compare evening.pcapng --rate 1mbit --qdisc \"fifo limit 100p\" --qdisc \"fq_codel target 20ms\"

Exit codes: 0 all is well, 1 a run failed, 2 wrong usage or an unreadable capture, 130 interrupted.";

/// What is compared when nothing is said. The fifo has what a home router's modem has, about.
const DEFAULT: [&str; 4] = ["fifo limit 100p", "drr limit 100p", "fq_codel", "efd limit 100p"];

/// Does it.
pub fn compare(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let told = specs(&args.qdisc).and_then(|specs| {
        if args.rate.as_bit() == 0 {
            return Err("--rate: a link of 0 sends nothing; write for example --rate 10mbit".into());
        }
        Ok((specs, measure(&args.capture)?))
    });
    let (specs, measured) = match told {
        Ok(told) => told,
        Err(sentence) => {
            show::sentence(&sentence);
            return Ok(Outcome::Wrong);
        }
    };
    if !args.quiet {
        measured.tell(&args.capture);
    }
    let text = scenario_text(&args.capture, args.rate, &specs, &measured);
    let scenario = match Scenario::parse(&text, ".") {
        Ok(scenario) => scenario,
        Err(wrong) => {
            show::wrong(&wrong);
            return Ok(Outcome::Wrong);
        }
    };
    let name = name(&args.capture);
    let asked = format!("giveway compare {name} --rate {}", args.rate);
    match Session::new(args.jobs.unwrap_or(0), args.json, args.quiet, asked) {
        Ok(session) => session.scenario(&scenario, &name, args.out.as_deref(), out),
        Err(sentence) => {
            show::sentence(&sentence);
            Ok(Outcome::Failed)
        }
    }
}

/// The disciplines that were asked for.
fn specs(asked: &[String]) -> Result<Vec<Spec>, String> {
    let default = || DEFAULT.map(str::to_owned).to_vec();
    let texts = if asked.is_empty() { default() } else { asked.to_vec() };
    let read = |text: &String| text.parse::<Spec>().map_err(|error| format!("--qdisc \"{text}\": {error}"));
    texts.iter().map(read).collect()
}

/// What is in a capture.
struct Measured {
    packets: u64,
    bytes: u64,
    /// From the first packet to the last.
    span: Span,
    /// What ended the reading early.
    damage: Option<String>,
}

/// Reads a capture once, for its length and size.
fn measure(path: &Path) -> Result<Measured, String> {
    let reader = Reader::open(path).map_err(|error| format!("{} {error}", path.display()))?;
    let mut measured = Measured { packets: 0, bytes: 0, span: Span::ZERO, damage: None };
    let (mut first, mut last) = (None, 0);
    for packet in reader {
        match packet {
            Ok(packet) if packet.ip.is_some() => {
                first.get_or_insert(packet.time);
                last = last.max(packet.time);
                measured.packets += 1;
                measured.bytes += u64::from(packet.bytes);
            }
            Ok(_) => {}
            Err(error) => measured.damage = Some(error.to_string()),
        }
    }
    let Some(first) = first else {
        let why = measured.damage.unwrap_or_else(|| "holds no IP packet".into());
        return Err(format!("{} {why}", path.display()));
    };
    // Beyond a few months the clock of a run would not reach.
    let days = last.saturating_sub(first) / 86_400_000_000_000;
    if days > 200 {
        return Err(format!("{} spans {days} days; a replay takes at most 200", path.display()));
    }
    measured.span = Span::ns(last.saturating_sub(first));
    Ok(measured)
}

impl Measured {
    fn tell(&self, path: &Path) {
        let seconds = self.span.as_s();
        show::sentence(&format!(
            "{}: {} packets, {:.1} MB in {seconds:.1} s; senders do not react in a replay",
            path.display(),
            self.packets,
            self.bytes as f64 / 1e6,
        ));
        if let Some(damage) = &self.damage {
            show::sentence(&format!("{} {damage}; what comes before is used", path.display()));
        }
    }
}

/// The comparison as a scenario: anybody can run it again.
fn scenario_text(capture: &Path, rate: Rate, specs: &[Spec], measured: &Measured) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let specs: Vec<String> = specs.iter().map(|spec| quoted(&spec.to_string())).collect();
    // A second longer than the capture, so that its last packets can leave.
    let duration = measured.span + Span::s(1);
    format!(
        "title = {title}\n\
         duration = \"{duration}\"\n\
         warmup = \"0s\"\n\
         seeds = 1\n\
         disciplines = [{specs}]\n\n\
         [[link]]\nfrom = \"capture\"\nto = \"beyond\"\nrate = \"{rate}\"\ndelay = \"0s\"\nqdisc = \"compare\"\n\n\
         [[traffic]]\nkind = \"capture\"\nname = \"capture\"\nfrom = \"capture\"\nto = \"beyond\"\nfile = {file}\n",
        title = quoted(&format!("{} at {rate}", name(capture))),
        specs = specs.join(", "),
        file = quoted(&capture.to_string_lossy()),
    )
}
