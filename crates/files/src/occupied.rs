//! An output file that the user names replaces only a file of the same kind, so that a typing mistake does
//! not destroy another one.

use std::error::Error;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::input;

/// A file of another kind, which may not be replaced.
#[derive(Debug)]
pub struct Occupied {
    place: PathBuf,
    kind: &'static str,
}

impl fmt::Display for Occupied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Occupied { place, kind } = self;
        let place = place.display();
        write!(
            f,
            "{place} exists and is not {kind}. Nothing was changed. Name another file, or add --force to replace it"
        )
    }
}

impl Error for Occupied {}

/// Checks that a file may be written at `place`: there is no file, an empty one, or one of the same kind, or
/// `force` is true. `is_of_kind` gets up to `bytes` bytes from the beginning of the file; `kind` is the name
/// of the kind with its article. `replacing` gets the sentence about a file that `force` replaces. A place
/// that is not a regular file (a pipe, a device) always passes.
///
/// # Errors
/// If another file is there; the message names the remedies.
pub fn may_replace(
    place: &Path,
    kind: &'static str,
    (bytes, is_of_kind): (u64, impl FnOnce(&[u8]) -> bool),
    force: bool,
    replacing: impl FnOnce(&str),
) -> Result<(), Occupied> {
    let Ok(file) = input::open(place) else { return Ok(()) };
    let mut begin = Vec::new();
    let read = file.take(bytes).read_to_end(&mut begin);
    if read.is_ok() && (begin.is_empty() || is_of_kind(&begin)) {
        return Ok(());
    }
    if !force {
        return Err(Occupied { place: place.to_owned(), kind });
    }
    replacing(&format!("--force: replacing {}", place.display()));
    Ok(())
}
