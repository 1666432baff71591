//! Errors of reports.

use std::error::Error;
use std::path::{Path, PathBuf};

use crate::folder::{FORMAT, MANIFEST};
use crate::seal::Damage;

/// An error that prevents a report. Its causes are in `source()`.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder does not exist.
    #[error("the folder {path} does not exist", path = .0.display())]
    Nothing(PathBuf),
    /// The folder is not a run folder.
    #[error(
        "{path} is not a run folder: it has no {MANIFEST}. `giveway run SCENARIO --out {path}` makes one",
        path = .0.display()
    )]
    NoRun(PathBuf),
    /// The folder has another format.
    #[error(
        "{path} was written by {wrote} in format {found}, and this version reads format {FORMAT}. {again}",
        path = path.display()
    )]
    Format {
        /// The folder.
        path: PathBuf,
        /// The version of Giveway that wrote the folder.
        wrote: String,
        /// The number of its format; 1 if the manifest has none.
        found: u64,
        /// The command that makes the folder again.
        again: String,
    },
    /// No trial of the folder is finished.
    #[error("{path} is unfinished: none of its {planned} trials is finished. {again}", path = path.display())]
    Unfinished {
        /// The folder.
        path: PathBuf,
        /// Number of trials that it will have.
        planned: usize,
        /// The command that finishes it.
        again: String,
    },
    /// Another process is writing the folder.
    #[error("{path} is being written by {holder}. Try again when that process has ended", path = path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
        /// The process, and the time since when it writes.
        holder: String,
    },
    /// A file is damaged, so that a report would be wrong.
    #[error("{damage}. {again}")]
    Damaged {
        /// The damaged file, and the damage.
        damage: Damage,
        /// The command that makes the folder again.
        again: String,
    },
    /// A file is missing or cannot be read.
    #[error("cannot read {path}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// The error of a file that cannot be read.
pub(super) fn file_error(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> ReportError {
    ReportError::File { path: path.to_owned(), source: source.into() }
}
