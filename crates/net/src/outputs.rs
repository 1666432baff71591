//! The kinds of output files that the user names.

use std::path::Path;

use giveway_files::{Occupied, may_replace};
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

/// Checks that a file may be written at `place` ([`may_replace`]), with messages on the standard error.
///
/// # Errors
/// If another file is there; the message names the remedies.
pub fn may_write(place: &Path, kind: Kind, force: bool) -> Result<(), Occupied> {
    let is_of_kind = |begin: &[u8]| match kind {
        Kind::Ready => begin == kind.begin(),
        Kind::Capture | Kind::Trace | Kind::Object => begin.starts_with(kind.begin()),
    };
    // One more, since a file with the text "ready" ends behind it.
    let longest = kind.begin().len() as u64 + 1;
    may_replace(place, kind.name(), (longest, is_of_kind), force, show::message)
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
