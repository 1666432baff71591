//! `giveway list`: what there is, with one line each.

use std::io::{self, Write};

use clap::ValueEnum;

use crate::{Outcome, terminal};

/// Lists disciplines, congestion controls and sources of traffic.
#[derive(clap::Args)]
#[command(after_help = "giveway explain NAME tells more about one of them.")]
pub struct Args {
    /// Only these
    what: Option<What>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Queue disciplines
    Disciplines,
    /// TCP congestion controls
    Congestion,
    /// Sources of traffic
    Traffic,
}

/// Does it.
pub fn list(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let wanted = |what| args.what.is_none_or(|only| only == what);
    let disciplines = disciplines::ALL.iter().map(|entry| (entry.name, entry.summary));
    let congestion = sim::tcp::CONTROLLERS.iter().map(|entry| (entry.name, entry.summary));
    let traffic = sim::SOURCES.iter().map(|entry| (entry.name, entry.summary));
    let groups = [
        (What::Disciplines, "Queue disciplines", disciplines.collect::<Vec<_>>()),
        (What::Congestion, "TCP congestion controls", congestion.collect()),
        (What::Traffic, "Sources of traffic", traffic.collect()),
    ];
    let widest = groups.iter().flat_map(|(_, _, group)| group).map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut first = true;
    for (_, title, group) in groups.iter().filter(|(what, ..)| wanted(*what)) {
        if !first {
            writeln!(out)?;
        }
        first = false;
        writeln!(out, "{}", terminal::bold(title))?;
        for (name, summary) in group {
            writeln!(out, "  {name:widest$}  {summary}")?;
        }
    }
    Ok(Outcome::Done)
}
