//! The report: one page in one file, from one run folder or several. It opens offline, prints, and has a dark mode.
//!
//! ```text
//! read.rs      a folder: manifest, summaries, and its tables column by column
//! series.rs    from many rows to what a screen can show: thinning, medians, pixel columns, rounding
//! charts.rs    which charts there are, and what each says; charts/ has a file per chart
//! table.rs     the table of metrics, as on the terminal
//! page.rs      puts the page together
//! ```
//!
//! A page is a template (`assets/`) with Vega-Lite inside it; the data are in it once, as columns. Charts are
//! drawn when it is opened. The same folders give the same page, byte by byte: it has no clock.

mod charts;
mod page;
mod read;
mod series;
mod table;

use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::folder::{Damage, FORMAT, FolderError, MANIFEST, RunFolder, replace};
use read::{Folder, Trust};

/// What a report is made of: run folders that were read.
pub struct Report {
    folders: Vec<Folder>,
    trust: Trust,
}

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

impl Report {
    /// Reads the folders of one or several runs, and checks every file in them.
    ///
    /// # Errors
    /// When one is no run folder, or was written by another Giveway, has no finished run, is being written, or has a file
    /// that is missing or damaged.
    pub fn read(dirs: &[&Path]) -> Result<Report, ReportError> {
        let read = dirs.iter().map(|dir| Folder::read(dir, Trust::Checked));
        let mut folders = read.collect::<Result<Vec<_>, _>>()?;
        read::tell_apart(&mut folders);
        Ok(Report { folders, trust: Trust::Checked })
    }

    /// Reads a folder that this process has just written. Its cells are not checked again.
    ///
    /// # Errors
    /// When it has no finished run, or a file of it cannot be read.
    pub fn of(folder: &RunFolder) -> Result<Report, ReportError> {
        Ok(Report { folders: vec![Folder::read(folder.path(), Trust::Own)?], trust: Trust::Own })
    }

    /// The page.
    ///
    /// # Errors
    /// When a table of a folder cannot be read, or somebody began to write a folder in the meantime.
    pub fn html(&self) -> Result<String, ReportError> {
        let page = page::html(&self.folders);
        if self.trust == Trust::Checked {
            // Before what went wrong is told: it may be somebody at work.
            self.folders.iter().try_for_each(Folder::still_there)?;
        }
        page
    }
}

/// Writes a page, whole or not at all.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, html: &str) -> Result<(), FolderError> {
    replace(path, html.as_bytes()).map(drop)
}

fn file_error(path: &Path, why: impl ToString) -> ReportError {
    ReportError::File { path: path.to_owned(), why: why.to_string() }
}

fn table_error(path: &Path, why: &ParquetError) -> ReportError {
    file_error(path, why)
}
