//! Output files that the user names. An existing file is replaced only if it is of the same kind, or with
//! `--force`, so that a typing mistake does not destroy another file.

use std::io::Read;
use std::path::{Path, PathBuf};

use giveway_files::input;
use giveway_program::show;

/// The kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A capture, as `live --pcap` writes it.
    Capture,
    /// A trace of operations, as `live --trace` writes it.
    Trace,
    /// The file that `live --ready` writes.
    Ready,
    /// An object file, as `kernel build` writes it.
    Object,
}

/// The content of a file of [`Kind::Ready`].
pub const READY: &str = "ready\n";

/// A file with other contents, which may not be replaced.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} exists and is not {kind}. Nothing was changed. Name another file, or add --force to replace it",
    place.display()
)]
pub struct Occupied {
    place: PathBuf,
    kind: &'static str,
}

impl Kind {
    /// The name of the kind in messages, with its article.
    fn name(self) -> &'static str {
        match self {
            Kind::Capture => "a capture in the format pcapng",
            Kind::Trace => "a trace of operations",
            Kind::Ready => "a file with the text \"ready\"",
            Kind::Object => "an object file (ELF)",
        }
    }

    /// The bytes at the beginning of a file of this kind.
    fn begin(self) -> &'static [u8] {
        match self {
            // The block type of a section header, the same in both byte orders (draft-ietf-opsawg-pcapng,
            // section 4.1).
            Kind::Capture => &[0x0a, 0x0d, 0x0d, 0x0a],
            Kind::Trace => &giveway_replay::format::MAGIC,
            Kind::Ready => READY.as_bytes(),
            Kind::Object => b"\x7fELF",
        }
    }
}

/// Checks that a file may be written at `place`: there is no file, or one of the same kind, or `force` is
/// true. Then the name of the file that is replaced is shown. An empty file counts as every kind. A place
/// that is not a regular file (a pipe, a device) always passes.
///
/// # Errors
/// If another file is there; the message names the remedies.
pub fn may_write(place: &Path, kind: Kind, force: bool) -> Result<(), Occupied> {
    let Ok(file) = input::open(place) else { return Ok(()) };
    // One more, since a file with the text "ready" has nothing behind it.
    let longest = kind.begin().len() as u64 + 1;
    let mut begin = Vec::new();
    let read = file.take(longest).read_to_end(&mut begin);
    let is_of_kind = match kind {
        Kind::Ready => begin == kind.begin(),
        Kind::Capture | Kind::Trace | Kind::Object => begin.starts_with(kind.begin()),
    };
    if read.is_ok() && (begin.is_empty() || is_of_kind) {
        return Ok(());
    }
    if force {
        show::message(&format!("--force: replacing {}", place.display()));
        return Ok(());
    }
    Err(Occupied { place: place.to_owned(), kind: kind.name() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_of_the_same_kind_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("file");
        let kinds = [Kind::Capture, Kind::Trace, Kind::Ready, Kind::Object];
        for kind in kinds {
            let _ = std::fs::remove_file(&place);
            assert!(may_write(&place, kind, false).is_ok(), "there is no file");
            for (content, of) in [(&b""[..], None)].into_iter().chain(kinds.map(|of| (of.begin(), Some(of))))
            {
                std::fs::write(&place, content).unwrap();
                let may = may_write(&place, kind, false);
                assert_eq!(may.is_ok(), of.is_none_or(|of| of == kind), "{kind:?} in place of {of:?}");
                assert!(may_write(&place, kind, true).is_ok());
            }
        }
        std::fs::write(&place, "ready\nor not").unwrap();
        let message = may_write(&place, Kind::Ready, false).unwrap_err().to_string();
        assert!(message.contains("is not a file with the text \"ready\". Nothing was changed"), "{message}");
    }
}
