//! The error of a command. `main` prints it.

use std::io;

use giveway_papers::PaperError;
use giveway_program::other::OtherError;
use giveway_record::FolderError;
use giveway_runner::{Outcome, RunnerError};
use giveway_scenario::{LoadError, ScenarioError};
use giveway_sweep::SweepError;
use giveway_testbed::TestbedError;
use giveway_text::harmless;
use giveway_trials::ReuseError;

use crate::show::{self, Most};

/// Reason why a command does not start or fails. Its causes are in `source()`.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line is wrong, or a prerequisite is missing. The message says what to type.
    #[error("{0}")]
    Usage(String),
    /// A program that the command needs is not installed. The message says what to type.
    #[error("{0}")]
    Unavailable(String),
    /// A run cannot start, or its results cannot be kept.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// A file of results cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The trials of another folder cannot be taken.
    #[error("--reuse: {0}")]
    Reuse(#[from] ReuseError),
    /// A sweep cannot start, or its results cannot be kept.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// A paper cannot be read.
    #[error(transparent)]
    Paper(#[from] PaperError),
    /// The program for real interfaces cannot be started.
    #[error(transparent)]
    Other(#[from] OtherError),
    /// The machine cannot run a test bed.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A scenario file cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A scenario is invalid. Mistakes are shown with their lines, as many as the second field says.
    #[error("{0}")]
    Scenario(Box<ScenarioError>, Most),
    /// The standard output cannot be written.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
    /// The user has the message already.
    #[error("the message was printed")]
    Reported(Outcome),
}

impl CliError {
    /// The outcome of a command that fails with this error. It determines the exit code.
    pub fn outcome(&self) -> Outcome {
        match self {
            CliError::Usage(_)
            | CliError::Paper(_)
            | CliError::Other(_)
            | CliError::Testbed(_)
            | CliError::Load(_)
            | CliError::Reuse(_)
            | CliError::Scenario(..) => Outcome::Wrong,
            CliError::Unavailable(_) => Outcome::Failed,
            CliError::Sweep(error) if error.is_refusal() => Outcome::Wrong,
            CliError::Sweep(_) => Outcome::Failed,
            CliError::Runner(error) => error.outcome(),
            CliError::Folder(error) => giveway_runner::outputs::outcome(error),
            CliError::Output(_) => Outcome::Failed,
            CliError::Reported(outcome) => *outcome,
        }
    }

    /// The error with its causes, without colours, for a terminal.
    pub fn text(&self) -> String {
        let text = match self {
            CliError::Scenario(error, _) => error.to_string(),
            other => giveway_record::chain(other),
        };
        harmless(&text).into_owned()
    }

    /// Prints the error with its causes on the standard error, unless the user has the message already.
    pub fn show(&self) {
        match self {
            CliError::Reported(_) | CliError::Runner(RunnerError::Reported(_)) => {}
            CliError::Scenario(error, most) => {
                show::diagnostics(&error.origin, &error.diagnostics, *most);
            }
            // The scenario is made of flags, so it has few mistakes.
            CliError::Runner(RunnerError::Scenario(error)) => {
                show::diagnostics(&error.origin, &error.diagnostics, Most::All);
            }
            other => show::error(other),
        }
    }
}
