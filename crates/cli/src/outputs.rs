//! Output files that the user names, with messages on the standard error.

use std::path::Path;

use crate::frontend::Terminal;

use giveway_runner::RunnerError;
pub use giveway_runner::outputs::{Kind, READY};

/// Checks that a file may be written at `place`: see [`giveway_runner::outputs::may_write`].
///
/// # Errors
/// When another file is there; the message says what to type.
pub fn may_write(place: &Path, kind: Kind, force: bool) -> Result<(), RunnerError> {
    giveway_runner::outputs::may_write(place, kind, force, &Terminal { quiet: false })
}
