//! What can go wrong on a machine, in sentences that say what to type.

use std::io;
use std::path::PathBuf;

/// Why there is no test bed, or no result.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The machine lacks something: a privilege, a program, a part of the kernel. Nothing was begun.
    #[error("{what}: {help}")]
    Missing {
        /// What is not there.
        what: String,
        /// What to type.
        help: String,
    },
    /// A discipline of ours cannot be put into the kernel.
    #[error(transparent)]
    Kernel(#[from] kernel::Trouble),
    /// A command failed that should not.
    #[error("{command} failed: {said}")]
    Command {
        /// As it was typed.
        command: String,
        /// What it said.
        said: String,
    },
    /// A system call failed that should not.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// Our router did not start, or did not end well.
    #[error("the router {what}; its last words:\n{said}")]
    Router {
        /// What it did.
        what: String,
        /// What it had to say.
        said: String,
    },
    /// Its result cannot be read.
    #[error("cannot read {path}, which the router wrote: {why}", path = path.display())]
    Result {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Trouble {
    /// Whether the machine lacks something, which it will lack for every other run, too.
    pub fn is_lack(&self) -> bool {
        match self {
            Trouble::Missing { .. } => true,
            Trouble::Kernel(trouble) => trouble.is_wrong(),
            _ => false,
        }
    }

    pub(crate) fn missing(what: impl Into<String>, help: impl Into<String>) -> Trouble {
        Trouble::Missing { what: what.into(), help: help.into() }
    }

    /// Turns an error of the system into a trouble, for `map_err`.
    pub(crate) fn system<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Trouble {
        let doing = doing.into();
        move |error| Trouble::System { doing, source: error.into() }
    }
}
