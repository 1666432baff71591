//! `giveway check`: checks scenarios without running them.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use giveway_scenario::{Backend, Draft, Scenario};

use crate::error::CliError;
use crate::{Outcome, show};

/// Checks scenarios without running them.
///
/// Prints every mistake with its line and a correction, and warns of configurations that lead to misleading
/// results.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change a key of the scenario, as in link.0.rate=5mbit or traffic.upload.flows=3; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  giveway check scenarios/quickstart.toml
  giveway check scenarios/*.toml
  giveway check scenarios/quickstart.toml --set 'disciplines=[\"fifo\", \"fq_codel\"]'

Exit codes: 0 success, 2 a scenario is invalid.";

/// Runs `giveway check`.
pub fn check(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let mut outcome = Outcome::Done;
    for file in &args.files {
        match read(file, &args.set) {
            Ok(scenario) => {
                show::diagnostics(scenario.origin(), &scenario.warnings);
                writeln!(out, "{}: {}", file.display(), summary(&scenario))?;
                for offered in offered(&scenario) {
                    writeln!(out, "  {offered}")?;
                }
            }
            // The other files are checked, too.
            Err(error) => {
                error.show();
                outcome = outcome.max(error.outcome());
            }
        }
    }
    Ok(outcome)
}

/// Reads a scenario and applies the changes of `--set`.
///
/// # Errors
/// If the file cannot be read, or the scenario is invalid.
pub fn read(file: &Path, sets: &[String]) -> Result<Scenario, CliError> {
    refuse_captures(file)?;
    let draft = Draft::load(file)?;
    let draft = sets.iter().fold(draft, |draft, set| draft.set(set));
    Ok(draft.finish().map_err(Box::new)?)
}

/// Names the command for a capture at the place of a scenario.
fn refuse_captures(file: &Path) -> Result<(), CliError> {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|file| file.take(16).read_to_end(&mut head));
    if read.is_ok() && giveway_capture::looks_like_capture(&head) {
        let name = file.display();
        return Err(CliError::Usage(format!(
            "{name} is a capture, not a scenario: write giveway compare {name} --rate 10mbit"
        )));
    }
    Ok(())
}

/// Reads a scenario like [`read`]. `short` shortens it to a quick check; `seeds` replaces its seeds by 1 to
/// that number.
pub fn read_as(file: &Path, sets: &[String], short: bool, seeds: Option<u32>) -> Result<Scenario, CliError> {
    let mut scenario = read(file, sets)?;
    if short {
        scenario = scenario.short().map_err(Box::new)?;
    }
    Ok(match seeds {
        Some(count) => scenario.with_seeds(count),
        None => scenario,
    })
}

/// The load of each traffic with an empirical distribution of sizes, as a sentence.
fn offered(scenario: &Scenario) -> impl Iterator<Item = String> + '_ {
    let traffic = match &scenario.backend {
        Backend::Network(network) => network.traffic.as_slice(),
        Backend::Switch(_) | Backend::Live(_) => &[],
    };
    traffic.iter().filter_map(|stream| {
        stream.offered.as_ref().map(|offered| format!("traffic \"{}\": {offered}", stream.name))
    })
}

fn summary(scenario: &Scenario) -> String {
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let parts: Vec<String> = match &scenario.backend {
        Backend::Network(network) => vec![
            count(network.nodes.len(), "node"),
            count(network.ports.len(), "port"),
            count(network.disciplines.len(), "discipline"),
        ],
        Backend::Switch(crossbar) => vec![
            format!("a switch of {0} x {0} ports", crossbar.ports),
            count(crossbar.arbiters.len(), "arbiter"),
        ],
        Backend::Live(live) => vec![
            format!("a test bed of {} and {}", count(live.near.len(), "host"), live.far.len()),
            count(live.compared.len(), "discipline"),
        ],
    };
    let duration = match &scenario.backend {
        Backend::Network(_) | Backend::Live(_) => scenario.duration.to_string(),
        Backend::Switch(crossbar) => format!("{} slots", crossbar.slots),
    };
    format!("ok: {}, {} of {}", parts.join(", "), count(scenario.trials().len(), "run"), duration)
}
