//! `giveway check`: whether scenarios can run.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use giveway_scenario::{Draft, Host, Scenario};

use crate::{Outcome, show};

/// Checks scenarios without running them.
///
/// Tells everything that is wrong, each mistake with its line, and warns of known traps.
#[derive(clap::Args)]
#[command(after_help = "Example: giveway check scenarios/*.toml")]
pub struct Args {
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change something, as in link.0.rate=5mbit or traffic.upload.flows=3; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Does it.
pub fn check(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let mut outcome = Outcome::Done;
    for file in &args.files {
        match read(file, &args.set) {
            Some(scenario) => {
                show::diagnostics(scenario.origin(), &scenario.warnings);
                writeln!(out, "{}: {}", file.display(), summary(&scenario))?;
            }
            None => outcome = Outcome::Wrong,
        }
    }
    Ok(outcome)
}

/// Reads a scenario with flags applied; tells what is wrong if anything is.
pub fn read(file: &Path, sets: &[String]) -> Option<Scenario> {
    let draft = match Draft::load(file) {
        Ok(draft) => draft,
        Err(error) => {
            show::sentence(&format!("cannot read {}: {error}", file.display()));
            return None;
        }
    };
    let draft = sets.iter().fold(draft, |draft, set| draft.set(set));
    draft.finish().map_err(|wrong| show::wrong(&wrong)).ok()
}

/// The same, as a quick check if `short`, and with seeds 1 to `seeds` if there is a number.
pub fn read_as(file: &Path, sets: &[String], short: bool, seeds: Option<u32>) -> Option<Scenario> {
    let mut scenario = read(file, sets)?;
    if short {
        scenario = scenario.short().map_err(|wrong| show::wrong(&wrong)).ok()?;
    }
    Some(match seeds {
        Some(count) => scenario.with_seeds(count),
        None => scenario,
    })
}

fn summary(scenario: &Scenario) -> String {
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let parts: Vec<String> = match &scenario.host {
        Host::Network(network) => vec![
            count(network.nodes.len(), "node"),
            count(network.ports.len(), "port"),
            count(network.disciplines.len(), "discipline"),
        ],
        Host::Switch(crossbar) => vec![
            format!("a switch of {0} x {0} ports", crossbar.ports),
            count(crossbar.schedulers.len(), "scheduler"),
        ],
        Host::Live(live) => vec![
            format!("a test bed of {} and {}", count(live.near.len(), "host"), live.far.len()),
            count(live.compared.len(), "discipline"),
        ],
    };
    let duration = match &scenario.host {
        Host::Network(_) | Host::Live(_) => scenario.duration.to_string(),
        Host::Switch(crossbar) => format!("{} slots", crossbar.slots),
    };
    format!("right: {}, {} of {}", parts.join(", "), count(scenario.trials().len(), "run"), duration)
}
