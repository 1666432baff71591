//! `giveway bound`: what reservations are worth under each discipline, from theory.

use std::io::{self, Write};
use std::path::PathBuf;

use giveway_qdisc::Bytes;
use giveway_scenario::{Bound, Host, LinkBounds, StreamBounds};
use serde_json::{Value, json};

use crate::terminal::{bold, width};
use crate::{Outcome, check, markdown, show};

/// Tells how long a packet of a reserved flow can wait at most, for each discipline of a scenario, without running it.
///
/// For every link with a discipline that reserved traffic crosses: the longest time from the arrival of a packet to its last bit on the
/// wire, whatever everyone else sends. It holds for flows that keep to their reservation, all but a burst, and for packets that are not
/// dropped. Formulae: latency-rate servers (Stiliadis and Varma 1998), with the corrections that `giveway reproduce trr` shows.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A scenario on a network, with traffic that has `reserved = "RATE"`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How much of each flow may come at once, as in 15kb; at least a packet of it [default: one packet]
    #[arg(long, value_name = "SIZE")]
    burst: Option<Bytes>,
    /// Change something, as in link.0.rate=5mbit or 'disciplines=["drr", "trr_sound"]'; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print one JSON object instead of text; delays in seconds
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway bound scenarios/disciplines/trr_sound.toml
  giveway bound scenarios/disciplines/trr_sound.toml --burst 6kb
  giveway bound scenarios/disciplines/trr_sound.toml --set 'disciplines=[\"vc\", \"wfq\", \"trr_sound width 1ms\"]'

Exit codes: 0 all is well, 2 the scenario is wrong, or nothing is reserved in it.";

/// Does it.
pub fn bound(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let Some(scenario) = check::read(&args.file, &args.set) else { return Ok(Outcome::Wrong) };
    let Host::Network(network) = &scenario.host else {
        show::sentence("bounds are known for networks; this scenario has another host");
        return Ok(Outcome::Wrong);
    };
    let links = network.bounds(args.burst);
    if links.is_empty() {
        show::sentence(&if network.traffic.iter().any(|stream| stream.reserved.as_bit() > 0) {
            "what is reserved crosses no link with a discipline: write qdisc = \"compare\" in the [[link]] that is the bottleneck".to_owned()
        } else {
            format!(
                "nothing is reserved in {}: write for example reserved = \"2 Mbit/s\" in a [[traffic]]",
                args.file.display()
            )
        });
        return Ok(Outcome::Wrong);
    }
    if args.json {
        let links: Vec<Value> = links.iter().map(link_as_json).collect();
        writeln!(out, "{}", json!({ "scenario": scenario.title, "links": links }))?;
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
            let head = format!("    {discipline:widest$}  ");
            let indent = " ".repeat(head.chars().count());
            write!(out, "{}", markdown::wrap(&said(*bound), width(), &head, &indent))?;
        }
    }
    Ok(())
}

/// A bound in words.
fn said(bound: Bound) -> String {
    match bound {
        Bound::Delay(seconds) => format!("{:.3} ms at most", seconds * 1e3),
        Bound::Nothing => "no bound that holds".to_owned(),
        Bound::Share(share) => {
            format!("no bound: a flow's turns come to {share} when all send, less than is reserved")
        }
        Bound::Uncounted => {
            "no bound: every flow gets a turn, and flows come and go, so nobody knows how many there are"
                .to_owned()
        }
    }
}

fn link_as_json(link: &LinkBounds) -> Value {
    let names: Vec<String> = link.disciplines.iter().map(|spec| spec.to_string()).collect();
    let stream = |stream: &StreamBounds| {
        let bounds = names.iter().zip(&stream.bounds).map(|(name, bound)| {
            let (delay, why) = match bound {
                Bound::Delay(seconds) => (Some(*seconds), None),
                none => (None, Some(said(*none))),
            };
            json!({ "discipline": name, "delay_s": delay, "why": why })
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
