//! `giveway list`: lists the entries of all registries, each with a one-line summary.

use std::io::Write;

use giveway_disciplines::Family;

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
            writeln!(out, "  {:widest$}  {}", thing.name, thing.summary)?;
        }
    }
    Ok(Outcome::Done)
}
