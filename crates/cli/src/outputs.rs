//! Output files that the user names, with messages on the standard error.

use std::path::Path;

use crate::frontend::Terminal;

pub use giveway_runner::outputs::{Kind, READY, outcome};

/// Checks that a file may be written at `place`: see [`giveway_runner::outputs::may_write`].
///
/// # Errors
/// A sentence on what is there and what to type.
pub fn may_write(place: &Path, kind: Kind, force: bool) -> Result<(), String> {
    giveway_runner::outputs::may_write(place, kind, force, &Terminal { quiet: false })
}
