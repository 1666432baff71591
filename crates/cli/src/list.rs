//! `giveway list`: lists the entries of all registries, each with a one-line summary.

use std::io::Write;

use giveway_disciplines::Family;
use serde_json::{Value, json};

use crate::error::CliError;
use crate::registries::{self, Registry, RegistryKind};
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

/// The meaning of the second column of disciplines.
const PLACES: &str = "\
tc: a qdisc of mainline Linux, too; here: of Giveway only; reserved: needs reservations; future: needs the sizes of flows; labels: needs
labels of an edge router; hops: needs the hops after the next router";

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
        let mut family = None;
        for thing in &registry.things {
            if thing.family != family {
                family = thing.family;
                if let Some(Family { name, summary }) = family {
                    writeln!(out, "\n{}: {summary}", terminal::bold(name))?;
                }
            }
            let place = if thing.place.is_empty() { String::new() } else { format!("{:8}  ", thing.place) };
            writeln!(out, "  {:widest$}  {place}{}", thing.name, thing.summary)?;
        }
        if registry.kind == RegistryKind::Disciplines {
            writeln!(out, "\n{PLACES}")?;
        }
    }
    Ok(Outcome::Done)
}

/// The entries of a registry for programs.
fn to_json(registry: &Registry) -> Vec<Value> {
    let one = |thing: &registries::Thing| {
        json!({
            "kind": registry.title,
            "name": thing.name,
            "family": thing.family.map(|family| family.name),
            "place": (!thing.place.is_empty()).then_some(thing.place),
            "summary": thing.summary,
        })
    };
    registry.things.iter().map(one).collect()
}
