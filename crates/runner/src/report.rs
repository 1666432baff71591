//! The report of one run folder, or of several side by side.

use std::path::Path;

use giveway_record::report::{self, Report, ReportError};

use crate::outputs::{Kind, may_write};
use crate::{Frontend, Outcome, Refusal};

/// Reads run folders and writes their report, side by side where there are several.
///
/// # Errors
/// A sentence when a folder cannot be read, or the report cannot be written at `place`.
pub fn write_report(
    dirs: &[&Path],
    place: &Path,
    force: bool,
    frontend: &dyn Frontend,
) -> Result<(), Refusal> {
    may_write(place, Kind::Page, force, frontend).map_err(|sentence| (sentence, Outcome::Wrong))?;
    let html = Report::read(dirs).and_then(|report| report.html()).map_err(|error| {
        let outcome = if let ReportError::Busy { .. } = error { Outcome::Failed } else { Outcome::Wrong };
        (error.to_string(), outcome)
    })?;
    report::write(place, &html).map_err(|error| (error.to_string(), Outcome::Failed))
}
