//! The flags of every command that reads a scenario, and the reading itself.

use std::io::Read;
use std::path::Path;

use giveway_evaluate::MAX_FIRST_SEED;
use giveway_files::input;
use giveway_scenario::{Draft, Scenario};

use crate::error::CliError;
use crate::show::{self, Most};

/// Flags about a scenario.
#[derive(clap::Args)]
pub struct ScenarioArgs {
    /// Change a key of the scenario, as in link.0.rate=5mbit or traffic.upload.flows=3; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print all errors and warnings of the scenario [default: the first three]
    #[arg(long)]
    all_errors: bool,
}

impl ScenarioArgs {
    /// The number of messages about a scenario that are printed.
    pub fn most(&self) -> Most {
        if self.all_errors { Most::All } else { Most::Few }
    }

    /// Prints the warnings of a scenario.
    pub fn warn(&self, scenario: &Scenario) {
        show::diagnostics(scenario.origin(), &scenario.warnings, self.most());
    }

    /// Reads a scenario and applies the changes of `--set`.
    ///
    /// # Errors
    /// If the file cannot be read, or the scenario is invalid.
    pub fn read(&self, file: &Path) -> Result<Scenario, CliError> {
        refuse_captures(file)?;
        let draft = Draft::load(file)?;
        let draft = self.set.iter().fold(draft, |draft, set| draft.set(set));
        draft.finish().map_err(|error| CliError::Scenario(Box::new(error), self.most()))
    }

    /// Reads a scenario like [`read`](ScenarioArgs::read). `short` shortens it to a quick check; `seeds`
    /// replaces its seeds by 1 to that number.
    ///
    /// # Errors
    /// If the file cannot be read, or the scenario is invalid.
    pub fn read_as(&self, file: &Path, short: bool, seeds: Option<u32>) -> Result<Scenario, CliError> {
        let mut scenario = self.read(file)?;
        if short {
            scenario = scenario.short().map_err(|error| CliError::Scenario(Box::new(error), self.most()))?;
        }
        Ok(match seeds {
            Some(count) => scenario.with_seeds(count),
            None => scenario,
        })
    }
}

/// Parses a number of seeds.
pub fn seeds(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| (1..=Scenario::MAX_SEEDS).contains(count));
    count.ok_or_else(|| format!("write a whole number from 1 to {}, as in --seeds 10", Scenario::MAX_SEEDS))
}

/// Parses the first seed.
pub fn first_seed(text: &str) -> Result<u64, String> {
    let first = text.parse().ok().filter(|first| (1..=MAX_FIRST_SEED).contains(first));
    first.ok_or_else(|| format!("write a whole number from 1 to {MAX_FIRST_SEED}, as in --first-seed 101"))
}

/// Names the command for a capture at the place of a scenario.
fn refuse_captures(file: &Path) -> Result<(), CliError> {
    let mut head = Vec::new();
    let read = input::open(file).and_then(|file| file.take(16).read_to_end(&mut head));
    if read.is_ok() && giveway_capture::looks_like_capture(&head) {
        let name = file.display();
        return Err(CliError::Usage(format!(
            "{name} is a capture, not a scenario: write giveway compare {name} --rate 10mbit"
        )));
    }
    Ok(())
}
