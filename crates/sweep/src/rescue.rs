//! Keeps finished trials that the folder of their sweep cannot take: its disk is full, or its share is lost.
//!
//! They go to a new folder of a sweep among the temporary files of this machine, from which `--reuse` takes
//! them.

use std::path::PathBuf;

use giveway_record::dataset::{Measured, Row};

use crate::error::{Rescued, SweepError};
use crate::folder::SweepFolder;

/// Keeps rows that could not be written because of `why`. Returns the error that names their place.
pub(crate) fn rescue(folder: &SweepFolder, rows: &[Row<Measured>], why: SweepError) -> SweepError {
    let SweepError::Folder(source) = why else { return why };
    if rows.is_empty() {
        return SweepError::Folder(source);
    }
    let rescued = Rescued { trials: rows.len() as u64, folder: keep(folder, rows).ok() };
    SweepError::Unwritten { source: Box::new(source), rescued }
}

fn keep(folder: &SweepFolder, rows: &[Row<Measured>]) -> Result<PathBuf, SweepError> {
    let made = tempfile::Builder::new()
        .prefix("giveway-rescued-")
        .tempdir()
        .map_err(|source| giveway_record::FolderError::Write { path: std::env::temp_dir(), source })?;
    folder.another(made.path())?.add(rows)?;
    Ok(made.keep())
}
