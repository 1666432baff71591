//! Errors of reports.

use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::folder::{FORMAT, MANIFEST};
use crate::seal::Damage;

/// Why a folder has no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// There is no such folder.
    #[error("there is no folder {path}", path = .0.display())]
    Nothing(PathBuf),
    /// It is not the folder of a run.
    #[error(
        "{path} is no run folder: it has no {MANIFEST}; `giveway run SCENARIO --out {path}` makes one",
        path = .0.display()
    )]
    NoRun(PathBuf),
    /// It was written in another format.
    #[error(
        "{path} was written by {wrote}, in format {found}; this one reads format {FORMAT}. {again}",
        path = path.display()
    )]
    Format {
        /// The folder.
        path: PathBuf,
        /// Which Giveway wrote it.
        wrote: String,
        /// The number of its format; 1 where it does not say.
        found: u64,
        /// How to make it again.
        again: String,
    },
    /// No run of it is finished.
    #[error("{path} is unfinished: none of its {planned} runs is there. {again}", path = path.display())]
    Unfinished {
        /// The folder.
        path: PathBuf,
        /// How many runs it is to have.
        planned: usize,
        /// How to finish it.
        again: String,
    },
    /// A process is writing it.
    #[error("{path} is being written by {holder}: ask again when that has ended", path = path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
        /// Who that is, and since when.
        holder: String,
    },
    /// A file is not what was written: a report of it would be wrong.
    #[error("{damage}. {again}")]
    Damaged {
        /// Which file, and what is wrong with it.
        damage: Damage,
        /// How to make it again.
        again: String,
    },
    /// A file is not there, or not what it should be.
    #[error("cannot read {path}: {why}", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

pub(super) fn file_error(path: &Path, why: impl ToString) -> ReportError {
    ReportError::File { path: path.to_owned(), why: why.to_string() }
}

pub(super) fn table_error(path: &Path, why: &ParquetError) -> ReportError {
    file_error(path, why)
}
