//! The error of a command, printed once, in `main`.

use std::io;

use giveway_kernel::KernelError;
use giveway_papers::PaperError;
use giveway_record::FolderError;
use giveway_runner::{Outcome, RunnerError};
use giveway_scenario::ScenarioError;

/// Reason why a command does not start or does not end. Its causes are in `source()`.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line is wrong, or a prerequisite is missing. The message says what to type.
    #[error("{0}")]
    Usage(String),
    /// A run cannot start or end.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// A file of results cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A paper cannot be read.
    #[error(transparent)]
    Paper(#[from] PaperError),
    /// A discipline in the kernel cannot be used.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A scenario is invalid. It is shown with the lines of its mistakes.
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
    /// The standard output cannot be written.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
    /// The user has the message already.
    #[error("the message was printed")]
    Reported(Outcome),
}

impl CliError {
    /// The end of the command.
    pub fn outcome(&self) -> Outcome {
        match self {
            CliError::Usage(_) | CliError::Paper(_) | CliError::Scenario(_) => Outcome::Wrong,
            CliError::Runner(error) => error.outcome(),
            CliError::Folder(error) => giveway_runner::outputs::outcome(error),
            CliError::Kernel(error) if error.is_prerequisite() => Outcome::Wrong,
            CliError::Kernel(_) | CliError::Output(_) => Outcome::Failed,
            CliError::Reported(outcome) => *outcome,
        }
    }
}
