//! Errors of a test bed, with messages that name the remedy.

use std::io;
use std::path::PathBuf;

/// An error of a test bed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The machine lacks a privilege, a program or a part of the kernel. Nothing was started.
    #[error("{what}: {help}")]
    Missing {
        /// The missing privilege, program or kernel feature, as a clause: `the program tc is not installed`.
        what: String,
        /// The remedy, usually a command to type.
        help: String,
    },
    /// A discipline cannot be loaded into the kernel.
    #[error(transparent)]
    Kernel(#[from] giveway_kernel::KernelError),
    /// A command failed.
    #[error("{command} failed: {output}")]
    Command {
        /// The command line.
        command: String,
        /// Its standard error.
        output: String,
    },
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// The action, as an infinitive: `open /run/netns/x`.
        doing: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The router (`giveway live`) did not start, or ended with an error.
    #[error("the router {what}; its last output:\n{output}")]
    Router {
        /// The failure: `did not start`.
        what: String,
        /// Its standard error.
        output: String,
    },
    /// A result of the router cannot be read.
    #[error("cannot read {path}, which the router wrote: {why}", path = path.display())]
    Result {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl TestbedError {
    /// True if the machine lacks something, so that every other run would fail, too.
    pub fn is_missing(&self) -> bool {
        match self {
            TestbedError::Missing { .. } => true,
            TestbedError::Kernel(error) => error.is_prerequisite(),
            _ => false,
        }
    }

    pub(crate) fn missing(what: impl Into<String>, help: impl Into<String>) -> TestbedError {
        TestbedError::Missing { what: what.into(), help: help.into() }
    }

    /// Converts an error of the system, for `map_err`.
    pub(crate) fn system<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> TestbedError {
        let doing = doing.into();
        move |error| TestbedError::System { doing, source: error.into() }
    }
}
