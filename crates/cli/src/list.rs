//! `giveway list`: what there is, with one line each.

use std::io::{self, Write};

use giveway_disciplines::Family;

use crate::registries::{self, Registry, What};
use crate::{Outcome, terminal};

/// Lists disciplines, congestion controls, sources of traffic, and what a switch has.
#[derive(clap::Args)]
#[command(after_help = "giveway explain NAME tells more about one of them.")]
pub struct Args {
    /// Only these
    what: Option<What>,
}

/// Does it.
pub fn list(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let registries = registries::all();
    let names = registries.iter().flat_map(|registry| &registry.things).map(|thing| thing.name.len());
    let widest = names.max().unwrap_or(0);
    let wanted = |registry: &&Registry| args.what.is_none_or(|only| only == registry.what);
    for (at, registry) in registries.iter().filter(wanted).enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", terminal::bold(registry.title))?;
        for thing in &registry.things {
            writeln!(out, "  {:widest$}  {}", thing.name, thing.summary)?;
        }
    }
    Ok(Outcome::Done)
}
        let mut family = None;
            if thing.family != family {
                family = thing.family;
                if let Some(Family { name, summary }) = family {
                    writeln!(out, "\n{}: {summary}", terminal::bold(name))?;
                }
            }
