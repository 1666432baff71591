//! The report: one page in one file, from one run folder or several. It opens offline, prints, and offers a
//! dark mode.
//!
//! ```text
//! error.rs     errors
//! read.rs      a folder: manifest, summaries, and its tables column by column
//! series.rs    reduction of rows to what a screen can show: medians, pixel columns
//! difference.rs  what changed from one recording to another
//! charts.rs    the list of charts; charts/ contains a file for each
//! table.rs     the table of metrics, as on the terminal
//! answer.rs    the key figures as a table
//! page.rs      the page
//! ```
//!
//! A page is a template (`assets/`) with Vega-Lite and the data, which it contains once, as columns. A
//! browser draws the charts when it opens the page. The same folders give the same page, byte by byte,
//! because it contains no time of its creation.

mod answer;
mod charts;
mod difference;
mod error;
mod page;
mod read;
mod series;
mod table;

use std::path::Path;

use giveway_measure::{DelayRow, Trial};

pub(crate) use self::read::{Folder, Trust};
use crate::folder::{FolderError, RunFolder, replace};

pub use self::error::ReportError;

/// A report of one or several run folders.
pub struct Report {
    folders: Vec<Folder>,
    trust: Trust,
}

impl Report {
    /// Reads the folders of one or several runs, and checks every file in them.
    ///
    /// # Errors
    /// If one is not a run folder, has another format or no finished trial, is being written, or has a
    /// missing or damaged file.
    pub fn read(dirs: &[&Path]) -> Result<Report, ReportError> {
        let read = dirs.iter().map(|dir| Folder::read(dir, Trust::Checked));
        let mut folders = read.collect::<Result<Vec<_>, _>>()?;
        read::tell_apart(&mut folders);
        Ok(Report { folders, trust: Trust::Checked })
    }

    /// Reads a folder that this process has just written. Its trials are not checked again.
    ///
    /// # Errors
    /// If it has no finished trial, or a file cannot be read.
    pub fn of(folder: &RunFolder) -> Result<Report, ReportError> {
        Ok(Report { folders: vec![Folder::read(folder.path(), Trust::Own)?], trust: Trust::Own })
    }

    /// The changes from the first of two folders to the second, in sentences; empty unless there are two, of
    /// one discipline each.
    pub fn difference(&self) -> Vec<String> {
        match &self.folders[..] {
            [before, after] => difference::sentences(before, after),
            _ => Vec::new(),
        }
    }

    /// The page.
    ///
    /// # Errors
    /// If a table of a folder cannot be read, or another process started to write a folder.
    pub fn html(&self) -> Result<String, ReportError> {
        let page = page::html(&self.folders, self.difference());
        if self.trust == Trust::Checked {
            // Before an error is reported: another process may be writing the folder.
            self.folders.iter().try_for_each(Folder::still_there)?;
        }
        page
    }
}

/// The delays over time of a finished trial of a folder that this process writes.
///
/// # Errors
/// If the table cannot be read.
pub fn delays(folder: &RunFolder, trial: &Trial) -> Result<Vec<DelayRow>, ReportError> {
    read::delays_over_time(folder.dir(), &folder.inside(trial))
}

/// Writes a page atomically: the file is complete or unchanged.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, html: &str) -> Result<(), FolderError> {
    replace(path, html.as_bytes()).map(drop)
}
