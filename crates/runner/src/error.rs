//! The errors of runs.

use std::io;

use giveway_record::FolderError;
use giveway_record::report::ReportError;
use giveway_scenario::ScenarioError;

use crate::Outcome;

/// An error of the runner. Its causes are in [`source`](std::error::Error::source);
/// [`chain`](giveway_record::chain) has all of them in one line.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The request cannot be carried out. The message suggests a valid one.
    #[error("{0}")]
    Usage(String),
    /// The scenario does not have what a flag needs.
    #[error("{0}")]
    Unsupported(String),
    /// A file or folder cannot be opened, read or written.
    #[error("{action}")]
    Io {
        /// The failed action, with the path.
        action: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A run folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A report cannot be made of a run folder.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The scenario of a comparison is invalid.
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
    /// The caller cannot show the results.
    #[error("cannot write the output")]
    Output(#[source] io::Error),
    /// The front end has shown the message already.
    #[error("the message was printed")]
    Reported(Outcome),
}

impl RunnerError {
    /// The outcome of a command that fails with this error.
    pub fn outcome(&self) -> Outcome {
        match self {
            RunnerError::Usage(_) | RunnerError::Scenario(_) => Outcome::Wrong,
            RunnerError::Folder(error) => outcome_of_folder(error),
            RunnerError::Report(ReportError::Busy { .. }) => Outcome::Failed,
            RunnerError::Report(_) => Outcome::Wrong,
            RunnerError::Reported(outcome) => *outcome,
            RunnerError::Unsupported(_) | RunnerError::Io { .. } | RunnerError::Output(_) => Outcome::Failed,
        }
    }

    /// Adds the failed action to an error of the operating system.
    pub fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> RunnerError {
        let action = action.into();
        move |source| RunnerError::Io { action, source }
    }
}

/// The outcome of a command that cannot use a run folder: wrong if another request could use it, failed
/// otherwise.
pub fn outcome_of_folder(error: &FolderError) -> Outcome {
    if error.is_refusal() { Outcome::Wrong } else { Outcome::Failed }
}

#[cfg(test)]
mod tests {
    use giveway_record::chain;

    use super::*;

    #[test]
    fn causes_follow_the_message_once() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let error = RunnerError::io("cannot write a.pcapng")(denied());
        assert_eq!(chain(&error), "cannot write a.pcapng: permission denied");
        let folder = FolderError::Write { path: "runs".into(), source: denied() };
        assert_eq!(chain(&RunnerError::from(folder)), "cannot write runs: permission denied");
    }
}
