//! Output files that the user names, with messages on the standard error.

use std::path::Path;

use giveway_runner::RunnerError;
pub use giveway_runner::outputs::Kind;

use crate::frontend::Terminal;

/// Checks that a file may be written at `place`, as [`giveway_runner::outputs::may_write`] does, with
/// messages on the standard error.
///
/// # Errors
/// If the path has another file. The message says what to type.
pub fn may_write(place: &Path, kind: Kind, force: bool) -> Result<(), RunnerError> {
    giveway_runner::outputs::may_write(place, kind, force, &Terminal { quiet: false })
}
