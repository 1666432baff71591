//! `giveway plan bounds`: prints the theoretical delay bounds of flows with reservations.

use std::io::{self, Write};
use std::path::PathBuf;

use giveway_qdisc::Bytes;
use giveway_scenario::{Backend, Bound, LinkBounds, Scenario, StreamBounds};
use serde_json::{Value, json};

use crate::error::CliError;
use crate::scenario_args::ScenarioArgs;
use crate::terminal::{bold, width};
use crate::{Outcome, markdown};

/// Prints the delay bounds of flows with a reservation, for each discipline of a scenario, without running
/// it.
///
/// A bound is the longest time from the arrival of a packet at a link to its last bit on the wire, for any
/// traffic of the other flows. It holds for flows that send no more than their reservation plus a burst, and
/// for packets that are not dropped. The formulae hold for latency-rate servers (Stiliadis and Varma 1998),
/// with the corrections that `giveway reproduce trr` explains.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario file with a network, and traffic with `reserved = "RATE"`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Largest burst of each flow, as in 15kb; at least one packet [default: one packet]
    #[arg(long, value_name = "SIZE")]
    burst: Option<Bytes>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print one JSON object instead of text; delays are in seconds, rates in bit/s
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway plan bounds scenarios/disciplines/trr_sound.toml
  giveway plan bounds scenarios/disciplines/trr_sound.toml --burst 6kb
  giveway plan bounds scenarios/disciplines/trr_sound.toml --set 'disciplines=[\"vc\", \"wfq\", \"trr_sound width 1ms\"]'

Exit codes: 0 success, 2 the scenario is invalid or has no reservation.";

/// Length of the longest discipline next to which its bounds are printed.
const LONGEST_BESIDE: usize = 50;

/// Runs `giveway plan bounds`.
pub fn bound(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let scenario = args.scenario.read(&args.file)?;
    let links = links(&scenario, args.burst)?;
    if args.json {
        writeln!(out, "{}", to_json(&scenario, &links))?;
        return Ok(Outcome::Done);
    }
    for (at, link) in links.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        print(link, out)?;
    }
    Ok(Outcome::Done)
}

/// The bounds of each link.
///
/// # Errors
/// If the scenario has no reservations, or they cross no link with a discipline.
pub fn links(scenario: &Scenario, burst: Option<Bytes>) -> Result<Vec<LinkBounds>, CliError> {
    let Backend::Network(network) = &scenario.backend else {
        let message = "bounds exist only for networks, and this scenario has another backend";
        return Err(CliError::Usage(message.to_owned()));
    };
    let links = network.bounds(burst);
    if links.is_empty() {
        return Err(CliError::Usage(if network.traffic.iter().any(|stream| stream.reserved.as_bit() > 0) {
            "no reserved traffic crosses a link with a discipline: write qdisc = \"compare\" in the [[link]] of the bottleneck".to_owned()
        } else {
            let place = scenario.origin().place(&(0..0)).name;
            format!("{place} has no reservation: write for example reserved = \"2 Mbit/s\" in a [[traffic]]")
        }));
    }
    Ok(links)
}

/// The bounds as JSON.
pub fn to_json(scenario: &Scenario, links: &[LinkBounds]) -> Value {
    json!({ "scenario": scenario.title, "links": links.iter().map(link_as_json).collect::<Vec<_>>() })
}

fn print(link: &LinkBounds, out: &mut dyn Write) -> io::Result<()> {
    let LinkBounds { reserved, rate, .. } = link;
    let best_effort = match link.best_effort.0 {
        0 => String::new(),
        bytes => format!("; best effort in packets of up to {bytes} bytes"),
    };
    let head = format!("{}: {reserved} of {rate} reserved{best_effort}", link.link);
    write!(out, "{}", markdown::wrap(&head, width(), "", "  ").replacen(&link.link, &bold(&link.link), 1))?;
    let names: Vec<String> = link.disciplines.iter().map(|spec| spec.to_string()).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for stream in &link.streams {
        let StreamBounds { name, flows, reserved, packet, burst, .. } = stream;
        let (among, each) =
            if *flows > 1 { (format!(" ({flows} flows)"), " each") } else { (String::new(), "") };
        let burst = if burst == packet { String::new() } else { format!(", {} bytes at once", burst.0) };
        writeln!(
            out,
            "\n  {}{among}: {reserved}{each}, packets of up to {} bytes{burst}",
            bold(name),
            packet.0
        )?;
        for (discipline, bound) in names.iter().zip(&stream.bounds) {
            // A tree of classes takes a line of its own, and its bound the next one.
            let (head, indent) = if widest <= LONGEST_BESIDE {
                let head = format!("    {discipline:widest$}  ");
                let indent = " ".repeat(head.chars().count());
                (head, indent)
            } else {
                write!(out, "{}", markdown::wrap(discipline, width(), "    ", "      "))?;
                ("        ".to_owned(), "        ".to_owned())
            };
            write!(out, "{}", markdown::wrap(&in_words(bound), width(), &head, &indent))?;
        }
    }
    Ok(())
}

/// Formats a bound, or the reason why there is none.
fn in_words(bound: &Bound) -> String {
    match bound {
        Bound::Delay(seconds) => format!("{:.3} ms at most", seconds * 1e3),
        Bound::Nothing => "no bound that holds".to_owned(),
        Bound::Share(share) => {
            format!("no bound: with all flows backlogged, a flow gets {share}, less than its reservation")
        }
        Bound::Uncounted => {
            "no bound: every flow gets a turn, and the number of flows is not limited".to_owned()
        }
        Bound::Class(reason) => format!("no bound: {reason}"),
    }
}

fn link_as_json(link: &LinkBounds) -> Value {
    let names: Vec<String> = link.disciplines.iter().map(|spec| spec.to_string()).collect();
    let stream = |stream: &StreamBounds| {
        let bounds = names.iter().zip(&stream.bounds).map(|(name, bound)| {
            let (delay, reason) = match bound {
                Bound::Delay(seconds) => (Some(*seconds), None),
                none => (None, Some(in_words(none))),
            };
            json!({ "discipline": name, "delay_s": delay, "reason": reason })
        });
        json!({
            "name": stream.name,
            "flows": stream.flows,
            "reserved_bps": stream.reserved.as_bit(),
            "packet_bytes": stream.packet.0,
            "burst_bytes": stream.burst.0,
            "bounds": bounds.collect::<Vec<_>>(),
        })
    };
    json!({
        "link": link.link,
        "rate_bps": link.rate.as_bit(),
        "reserved_bps": link.reserved.as_bit(),
        "best_effort_bytes": link.best_effort.0,
        "flows": link.flows,
        "streams": link.streams.iter().map(stream).collect::<Vec<_>>(),
    })
}
