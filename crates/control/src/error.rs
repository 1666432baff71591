//! The error of the control plane.

use std::error::Error;
use std::path::PathBuf;

/// The cause of an error: an error of a library, or a message.
type Cause = Box<dyn Error + Send + Sync>;

/// An error of the control plane. Its text tells the user what to change.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A setting has an unknown name, an invalid value, or a value that the interfaces do not support.
    #[error("{name}: {cause}")]
    Setting {
        /// Name of the setting.
        name: String,
        /// The mistake.
        #[source]
        cause: Cause,
    },
    /// A name does not belong to a setting.
    #[error("unknown setting \"{name}\"; {help}")]
    UnknownSetting {
        /// The name as it was written.
        name: String,
        /// A similar name, and all names.
        help: String,
    },
    /// A mistake in a command-line flag.
    #[error("--{0}")]
    Flag(#[source] Box<ControlError>),
    /// A file cannot be read or written, or its contents are invalid.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system, or the mistake in the file.
        #[source]
        cause: Cause,
    },
    /// A text is not valid: a settings file, a state file, or a line of the control socket.
    #[error("{0}")]
    Invalid(#[source] Cause),
    /// The bridge cannot carry out a request.
    #[error("{0}")]
    Unavailable(#[source] Cause),
    /// The lock of an interface cannot be taken.
    #[error("{interface}: {reason}: {cause}")]
    Lock {
        /// The interface.
        interface: String,
        /// The operation that failed.
        reason: &'static str,
        /// The error of the system.
        #[source]
        cause: Cause,
    },
    /// Another process has the lock of an interface. The text names the process, and a command that ends it.
    #[error("{0}")]
    Locked(String),
}

impl ControlError {
    /// A mistake in the value of a setting.
    pub(crate) fn setting(name: &str, cause: impl Into<Cause>) -> ControlError {
        ControlError::Setting { name: name.to_owned(), cause: cause.into() }
    }

    /// A text that is not valid.
    pub(crate) fn invalid(cause: impl Into<Cause>) -> ControlError {
        ControlError::Invalid(cause.into())
    }

    /// A request that cannot be carried out.
    pub fn unavailable(cause: impl Into<Cause>) -> ControlError {
        ControlError::Unavailable(cause.into())
    }
}
