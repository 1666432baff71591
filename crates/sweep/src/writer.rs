//! Collects rows into parts.

use std::time::{Duration, Instant};

use giveway_record::dataset::{Measured, Reason, Row};

use crate::error::SweepError;
use crate::folder::SweepFolder;
use crate::rescue::rescue;
use crate::trial::Rows;

/// A part is written after this many rows at the latest.
const MAX_ROWS: usize = 2_000;

/// A part is written after this time, or after [`SHARE`] of the time so far, so that a long sweep has few
/// parts.
const OFTEN: Duration = Duration::from_secs(2);
const SHARE: u32 = 20;

/// The most of those is a minute, which a kill would lose.
const SELDOM: Duration = Duration::from_secs(60);

/// Collects rows into parts.
pub(crate) struct Writer {
    rows: Vec<Row<Measured>>,
    failures: Vec<Row<Reason>>,
    ran: u64,
    failed: u64,
    began: Instant,
    written: Instant,
}

impl Writer {
    #[expect(clippy::disallowed_methods, reason = "the time decides when a part is written, and no result")]
    pub(crate) fn new() -> Writer {
        let now = Instant::now();
        Writer { rows: Vec::new(), failures: Vec::new(), ran: 0, failed: 0, began: now, written: now }
    }

    /// The numbers of rows of finished and of failed trials.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.ran, self.failed)
    }

    /// The time until the next part is due.
    pub(crate) fn patience(&self) -> Duration {
        (self.began.elapsed() / SHARE).clamp(OFTEN, SELDOM).saturating_sub(self.written.elapsed())
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

    #[expect(clippy::disallowed_methods, reason = "the time decides when a part is written, and no result")]
    pub(crate) fn flush(&mut self, folder: &mut SweepFolder) -> Result<(), SweepError> {
        folder.add(&self.rows)?;
        self.rows.clear();
        folder.add_failed(&self.failures)?;
        self.failures.clear();
        self.written = Instant::now();
        Ok(())
    }

    /// Keeps what could not be written because of `why`, with further rows. Returns the error that names its
    /// place.
    pub(crate) fn rescue(&mut self, folder: &SweepFolder, further: Vec<Rows>, why: SweepError) -> SweepError {
        self.rows.extend(further.into_iter().flat_map(|(rows, _)| rows));
        rescue(folder, &self.rows, why)
    }
}
