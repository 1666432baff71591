//! A run folder that was opened for reading.

use std::path::Path;

use giveway_measure::{Summary, Table, Trial};

use crate::folder::Recommendation;
use crate::frames::{self, Frame, FrameError};
use crate::report::{Folder, ReportError, Trust};

/// A run folder, of which every file was checked. A process that writes the folder later is not noticed.
pub struct Opened {
    folder: Folder,
}

impl Opened {
    /// Opens a run folder, and checks every file in it.
    ///
    /// # Errors
    /// As [`Report::read`](crate::report::Report::read).
    pub fn read(dir: &Path) -> Result<Opened, ReportError> {
        Ok(Opened { folder: Folder::read(dir, Trust::Checked)? })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The name of the scenario.
    pub fn scenario_name(&self) -> &str {
        &self.folder.manifest.scenario
    }

    /// The title of the scenario.
    pub fn title(&self) -> &str {
        &self.folder.manifest.title
    }

    /// The text of the scenario.
    pub fn scenario(&self) -> &str {
        &self.folder.scenario
    }

    /// The version of Giveway that made the folder.
    pub fn version(&self) -> &str {
        &self.folder.manifest.giveway
    }

    /// The finished trials with their results.
    ///
    /// # Errors
    /// If a summary was damaged since the folder was opened.
    pub fn summaries(&self) -> Result<Vec<(Trial, Summary)>, ReportError> {
        self.folder.summaries()
    }

    /// The command that made the folder.
    pub fn created_by(&self) -> &str {
        &self.folder.manifest.created_by
    }

    /// Sentences about the results; `None` if the folder does not keep its own.
    pub fn findings(&self) -> Option<&[String]> {
        self.folder.manifest.findings.as_deref()
    }

    /// The recommendation of a comparison.
    pub fn recommendation(&self) -> Option<&Recommendation> {
        self.folder.manifest.recommendation.as_ref()
    }

    /// True if no trial is missing.
    pub fn complete(&self) -> bool {
        self.folder.manifest.complete
    }

    /// The number of finished trials, and of planned ones.
    pub fn runs(&self) -> (usize, usize) {
        self.folder.runs()
    }

    /// The means of all metrics.
    pub fn table(&self) -> &Table {
        &self.folder.table
    }

    /// The measured ports; the first is the bottleneck of the tables.
    pub fn ports(&self) -> &[String] {
        &self.folder.manifest.measured.ports
    }

    /// The table `name` of all runs: [`frames::names`].
    ///
    /// # Errors
    /// If there is no such table, or its file cannot be read.
    pub fn frame(&self, name: &str) -> Result<Frame, FrameError> {
        frames::of_folder(name, self.folder.dir())
    }
}
