//! Errors of the outputs of a bridge.

use std::io;
use std::path::Path;

use crate::recording::WriteError;

/// Reason why an output cannot be started or completed. Its causes are in `source()`.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file or the folder of a flag cannot be used, or its thread cannot be started.
    #[error("{flag}")]
    Flag {
        /// The flag and its path.
        flag: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The folder of a recording belongs to another user. The message says what to type.
    #[error("{0}")]
    Foreign(String),
    /// A recording cannot be written.
    #[error("--record: {0}")]
    Recording(WriteError),
    /// A thread of an output ended with a panic.
    #[error("{0} failed")]
    Thread(&'static str),
}

impl OutputError {
    /// Adds a flag and its path to an error of the system.
    pub fn path(flag: &str, path: &Path) -> impl Fn(io::Error) -> OutputError + use<> {
        let flag = format!("{flag} {}", path.display());
        move |source| OutputError::Flag { flag: flag.clone(), source }
    }
}
