//! The error of a command. `main` prints it.

use std::io;
use std::path::PathBuf;

use giveway_files::Occupied;
use giveway_kernel::KernelError;
use giveway_live::LiveError;
use giveway_program::show;

use crate::key::KeyError;
use crate::live::BridgeError;
use crate::outcome::Outcome;
use crate::reserve::ReserveError;

/// Reason why a command does not start or fails. Its causes are in `source()`.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The command line is wrong, or a prerequisite is missing. The message says what to type.
    #[error("{0}")]
    Usage(String),
    /// An output file is of another kind.
    #[error(transparent)]
    Occupied(#[from] Occupied),
    /// A discipline in the kernel cannot be used.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A bridge cannot start.
    #[error(transparent)]
    Bridge(#[from] BridgeError),
    /// The interface of a reservation cannot be used. The text of the error ends with its remedy, so it is
    /// not repeated as a cause.
    #[error("--via: {0}")]
    Via(LiveError),
    /// The key file of a reservation cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A reservation cannot be requested, refreshed or ended.
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    /// An output file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The standard output cannot be written.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
    /// The message was shown already.
    #[error("the message was printed")]
    Reported(Outcome),
}

impl NetError {
    /// The outcome of a command that fails with this error. It determines the exit code.
    pub fn outcome(&self) -> Outcome {
        match self {
            NetError::Kernel(error) if error.is_prerequisite() => Outcome::Wrong,
            NetError::Kernel(_)
            | NetError::Write { .. }
            | NetError::Output(_)
            | NetError::Reserve(ReserveError::Receive { .. }) => Outcome::Failed,
            NetError::Reported(outcome) => *outcome,
            NetError::Usage(_)
            | NetError::Occupied(_)
            | NetError::Bridge(_)
            | NetError::Via(_)
            | NetError::Key(_)
            | NetError::Reserve(ReserveError::Signals { .. }) => Outcome::Wrong,
        }
    }

    /// Prints the error with its causes on the standard error, unless it was shown already.
    pub fn show(&self) {
        if !matches!(self, NetError::Reported(_)) {
            show::error(self);
        }
    }
}
