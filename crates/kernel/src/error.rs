//! Errors of everything that changes the kernel.

use std::io;
use std::path::PathBuf;

/// The reason why the kernel could not be changed or read, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A program is not installed.
    #[error("{program} is not installed: {purpose}; on Debian: apt-get install {package}")]
    Missing {
        /// Name of the program, or of the header file.
        program: &'static str,
        /// Purpose of the program in Giveway, as a sentence.
        purpose: &'static str,
        /// Debian's package that has it.
        package: &'static str,
    },
    /// The machine or the command line lacks a precondition, which the sentence names.
    #[error("{0}")]
    Precondition(String),
    /// The kernel's discipline does not have a parameter that the user wrote.
    #[error(transparent)]
    Plan(#[from] giveway_kernel_plan::PlanError),
    /// A program failed.
    #[error("{command} failed: {output}")]
    Failed {
        /// Its command line.
        command: String,
        /// The last lines of its output.
        output: String,
    },
    /// A file of Giveway cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
}

impl KernelError {
    /// True if the user can remove the cause: something is missing, or the command is wrong. False if a step
    /// failed.
    pub fn is_prerequisite(&self) -> bool {
        matches!(self, KernelError::Missing { .. } | KernelError::Precondition(_) | KernelError::Plan(_))
    }

    pub(crate) fn precondition(sentence: impl Into<String>) -> KernelError {
        KernelError::Precondition(sentence.into())
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> KernelError {
        let path = path.into();
        move |error| KernelError::File { path, error }
    }
}
