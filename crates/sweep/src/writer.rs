//! Collects rows into parts.

use std::time::Duration;

use giveway_record::dataset::{Measured, Reason, Row};
use giveway_trials::Due;

use crate::error::SweepError;
use crate::folder::SweepFolder;
use crate::rescue::rescue;
use crate::trial::Rows;

/// A part is written after this many rows at the latest.
const MAX_ROWS: usize = 2_000;

/// Collects rows into parts.
pub(crate) struct Writer {
    rows: Vec<Row<Measured>>,
    failures: Vec<Row<Reason>>,
    ran: u64,
    failed: u64,
    due: Due,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer { rows: Vec::new(), failures: Vec::new(), ran: 0, failed: 0, due: Due::default() }
    }

    /// The numbers of rows of finished and of failed trials.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.ran, self.failed)
    }

    /// The time until the next part is due.
    pub(crate) fn patience(&self) -> Duration {
        self.due.patience()
    }

    pub(crate) fn add(
        &mut self,
        folder: &mut SweepFolder,
        mut rows: Vec<Row<Measured>>,
        mut failed: Vec<Row<Reason>>,
    ) -> Result<(), SweepError> {
        self.ran += rows.len() as u64;
        self.failed += failed.len() as u64;
        self.rows.append(&mut rows);
        self.failures.append(&mut failed);
        if self.rows.len() + self.failures.len() >= MAX_ROWS || self.patience().is_zero() {
            return self.flush(folder);
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self, folder: &mut SweepFolder) -> Result<(), SweepError> {
        folder.add(&self.rows)?;
        self.rows.clear();
        folder.add_failed(&self.failures)?;
        self.failures.clear();
        self.due.written();
        Ok(())
    }

    /// Keeps what could not be written because of `why`, with further rows. Returns the error that names its
    /// place.
    pub(crate) fn rescue(&mut self, folder: &SweepFolder, further: Vec<Rows>, why: SweepError) -> SweepError {
        self.rows.extend(further.into_iter().flat_map(|(rows, _)| rows));
        rescue(folder, &self.rows, why)
    }
}
