//! `giveway list`: lists the entries of all registries, each with a one-line summary.

use std::io::{self, Write};

use giveway_disciplines::Family;
use serde_json::{Value, json};

use crate::error::CliError;
use crate::registries::{self, Place, Registry, RegistryKind, Thing};
use crate::{Outcome, terminal};

/// Lists disciplines, congestion controls, sources of traffic, arbiters of a switch, and the traffic of a
/// switch.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only one kind [default: all kinds]
    kind: Option<RegistryKind>,
    /// Print one JSON array instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway list
  giveway list disciplines
  giveway explain fifo    # principles, cost, references and parameters";

/// Runs `giveway list`.
pub fn list(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let registries = registries::all();
    let names = registries.iter().flat_map(|registry| &registry.things).map(|thing| thing.name.len());
    let widest = names.max().unwrap_or(0);
    if args.json {
        let wanted = registries.iter().filter(|registry| args.kind.is_none_or(|only| only == registry.kind));
        let entries: Vec<Value> = wanted.flat_map(to_json).collect();
        writeln!(out, "{}", Value::from(entries))?;
        return Ok(Outcome::Done);
    }
    let wanted = |registry: &&Registry| args.kind.is_none_or(|only| only == registry.kind);
    for (at, registry) in registries.iter().filter(wanted).enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", terminal::bold(registry.title))?;
        if registry.kind == RegistryKind::Disciplines {
            by_place(&registry.things, widest, out)?;
            continue;
        }
        for thing in &registry.things {
            writeln!(out, "  {:widest$}  {}", thing.name, thing.summary)?;
        }
    }
    Ok(Outcome::Done)
}

/// Prints disciplines by the place where they run, and each with its family.
fn by_place(things: &[Thing], widest: usize, out: &mut dyn Write) -> io::Result<()> {
    let family = |thing: &Thing| thing.family.map_or("", |family| family.name);
    let wide = things.iter().map(|thing| family(thing).len()).max().unwrap_or(0);
    for belongs in Place::ORDER {
        let mut first = true;
        for thing in things {
            let Some(place) = thing.place.filter(belongs) else { continue };
            if first {
                writeln!(out, "\n{}", terminal::bold(place.heading()))?;
            }
            first = false;
            let needs = match place {
                Place::More { needs, .. } => format!("; needs {needs}"),
                Place::Linux | Place::Here | Place::Reserved => String::new(),
            };
            writeln!(out, "  {:widest$}  {:wide$}  {}{needs}", thing.name, family(thing), thing.summary)?;
        }
    }
    writeln!(out, "\nFamilies")?;
    let mut last = None;
    for Family { name, summary } in things.iter().filter_map(|thing| thing.family) {
        if last.replace(name) != Some(name) {
            writeln!(out, "  {name:widest$}  {summary}")?;
        }
    }
    Ok(())
}

/// The entries of a registry for programs.
fn to_json(registry: &Registry) -> Vec<Value> {
    let one = |thing: &Thing| {
        json!({
            "kind": registry.title,
            "name": thing.name,
            "family": thing.family.map(|family| family.name),
            "place": thing.place.as_ref().map(Place::word),
            "summary": thing.summary,
        })
    };
    registry.things.iter().map(one).collect()
}
