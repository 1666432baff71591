//! Errors of a measurement.

use std::io;

/// An error of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum SendersError {
    /// A line of the input is not understood.
    #[error("{what}")]
    Line {
        /// The word, and the expected words.
        what: String,
    },
    /// A command failed.
    #[error("{command} failed: {output}")]
    Command {
        /// The command line.
        command: String,
        /// Its standard error.
        output: String,
    },
    /// A system call failed.
    #[error("cannot {doing}")]
    System {
        /// The action, as an infinitive.
        doing: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The measurement contradicts itself, so its numbers are worthless.
    #[error("{what}")]
    Inconsistent {
        /// The contradiction.
        what: String,
    },
}

impl SendersError {
    /// Turns an error of the system into this error.
    pub(crate) fn system<E: Into<io::Error>>(doing: &str) -> impl FnOnce(E) -> SendersError {
        let doing = doing.to_owned();
        move |source| SendersError::System { doing, source: source.into() }
    }
}
