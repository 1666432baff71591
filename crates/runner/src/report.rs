//! The report of one run folder, or of several side by side.

use std::path::Path;

use giveway_record::report::{self, Report};

use crate::RunnerError;
use crate::outputs::{Kind, may_write};
use giveway_trials::Frontend;

/// Reads run folders, and writes one report of all of them. Returns sentences on what changed from the first
/// of two folders to the second.
///
/// # Errors
/// When a folder cannot be read, or the report cannot be written at `place`.
pub fn write_report(
    dirs: &[&Path],
    place: &Path,
    force: bool,
    frontend: &dyn Frontend,
) -> Result<Vec<String>, RunnerError> {
    may_write(place, Kind::Page, force, frontend)?;
    let read = Report::read(dirs)?;
    report::write(place, &read.html()?)?;
    Ok(read.difference())
}

/// Writes a page at `place`, unless another file is there.
///
/// # Errors
/// When the page cannot be written, or `place` has another file and `force` is false.
pub fn write_page(html: &str, place: &Path, force: bool, frontend: &dyn Frontend) -> Result<(), RunnerError> {
    may_write(place, Kind::Page, force, frontend)?;
    Ok(report::write(place, html)?)
}
