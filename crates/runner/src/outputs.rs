//! The kinds of output files that the user names.

use std::path::Path;

use giveway_files::may_replace;
use giveway_record::Existing;

use crate::RunnerError;
use giveway_trials::Frontend;

pub use crate::error::outcome_of_folder as outcome;

/// The kinds of files that Giveway writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A capture, as `--export` writes it.
    Capture,
    /// A trace of operations, as `--trace-port` writes it.
    Trace,
    /// A report.
    Page,
    /// The verdicts of `reproduce`.
    Claims,
    /// A comparison of a test bed with its simulation, as text.
    AgainstText,
    /// A comparison of a test bed with its simulation, as JSON.
    AgainstJson,
    /// The timing of a machine, as `testbed --measure-timing` writes it.
    Timing,
}

/// The bytes of a file that are read to recognise it. The mark of a report is within its first kilobyte.
const LOOKED_AT: u64 = 4096;

impl Kind {
    /// The name of the kind in messages, with its article.
    fn name(self) -> &'static str {
        match self {
            Kind::Capture => "a capture in the format pcapng",
            Kind::Trace => "a trace of operations",
            Kind::Page => "a report of Giveway",
            Kind::Claims => "a list of claims with their verdicts",
            Kind::AgainstText | Kind::AgainstJson => "a comparison of a test bed with its simulation",
            Kind::Timing => "a measurement of how late threads wake up",
        }
    }

    /// True if a file that starts with `bytes` is of this kind.
    fn begins(self, bytes: &[u8]) -> bool {
        // The block type of a section header, the same in both byte orders (draft-ietf-opsawg-pcapng, section
        // 4.1).
        const PCAPNG: &[u8] = &[0x0a, 0x0d, 0x0d, 0x0a];
        let text = String::from_utf8_lossy(bytes);
        // The beginning of our JSON, without white space.
        let json = |begin: &str| {
            let plain = |text: &str| text.split_whitespace().collect::<String>();
            plain(&text).starts_with(begin)
        };
        match self {
            Kind::Capture => bytes.starts_with(PCAPNG),
            Kind::Trace => bytes.starts_with(&giveway_replay::format::MAGIC),
            Kind::Page => {
                text.starts_with("<!DOCTYPE html>")
                    && text.contains("<meta name=\"generator\" content=\"Giveway ")
            }
            Kind::Claims => json("{\"paper\":"),
            Kind::AgainstText => text.starts_with("# Simulation against reality\n"),
            Kind::AgainstJson => json("[{\"qdisc\":") || json("[]"),
            Kind::Timing => text.starts_with("# How late threads wake up"),
        }
    }
}

/// Checks that a file may be written at `place` ([`may_replace`]). The front end shows the name of a file
/// that `force` replaces.
///
/// # Errors
/// [`RunnerError::Usage`] if another file is there; the message names the remedies.
pub fn may_write(place: &Path, kind: Kind, force: bool, frontend: &dyn Frontend) -> Result<(), RunnerError> {
    let is_of_kind = |begin: &[u8]| kind.begins(begin);
    let checked =
        may_replace(place, kind.name(), (LOOKED_AT, is_of_kind), force, |text| frontend.message(text));
    checked.map_err(|occupied| RunnerError::Usage(occupied.to_string()))
}

/// A function that shows the name of a thing that `force` removes.
pub fn removing(frontend: &dyn Frontend) -> impl Fn(&str) {
    move |thing| frontend.message(&format!("--force: removing {thing}"))
}

/// The rule for an existing folder: it is kept; with `force`, everything that Giveway wrote there is removed.
/// `removing` is called with the name of each thing before it is removed.
pub fn existing(force: bool, removing: &dyn Fn(&str)) -> Existing<'_> {
    if force { Existing::Replace(removing) } else { Existing::Keep }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_trials::Silent;

    const KINDS: [Kind; 7] = [
        Kind::Capture,
        Kind::Trace,
        Kind::Page,
        Kind::Claims,
        Kind::AgainstText,
        Kind::AgainstJson,
        Kind::Timing,
    ];

    fn example(kind: Kind) -> Vec<u8> {
        match kind {
            Kind::Capture => {
                let mut file = Vec::new();
                giveway_capture::Writer::new(&mut file, "a test").unwrap().finish().unwrap();
                file
            }
            Kind::Trace => giveway_replay::format::MAGIC.to_vec(),
            Kind::Page => {
                let page = giveway_document::Document::default();
                page.html().into_bytes()
            }
            Kind::Claims => format!("{:#}\n", serde_json::json!({"paper": "efd", "claims": []})).into_bytes(),
            Kind::AgainstText => giveway_testbed::against::markdown("about", &[]).into_bytes(),
            Kind::AgainstJson => format!("{:#}\n", giveway_testbed::against::json(&[])).into_bytes(),
            Kind::Timing => {
                let timing = giveway_testbed::timing::Timing::measure(1, &mut |_| true).unwrap().unwrap();
                timing.csv(giveway_testbed::timing::MachineLoad::Idle, "").into_bytes()
            }
        }
    }

    #[test]
    fn a_file_is_replaced_by_its_own_kind_only() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("file");
        for kind in KINDS {
            assert!(may_write(&place, kind, false, &Silent).is_ok(), "there is no file");
        }
        for kind in KINDS {
            for there in KINDS {
                std::fs::write(&place, example(there)).unwrap();
                let checked = may_write(&place, kind, false, &Silent);
                assert_eq!(checked.is_ok(), kind == there, "{kind:?} over {there:?}: {checked:?}");
            }
            for text in
                ["title = \"my scenario\"\n", "<!DOCTYPE html><html>", "{\"mine\": 1}", "[1]", "# Notes\n"]
            {
                std::fs::write(&place, text).unwrap();
                let error = may_write(&place, kind, false, &Silent).unwrap_err().to_string();
                assert!(error.contains("Nothing was changed") && error.contains("--force"), "{error}");
                assert!(may_write(&place, kind, true, &Silent).is_ok());
            }
            std::fs::write(&place, "").unwrap();
            assert!(may_write(&place, kind, false, &Silent).is_ok(), "an empty file");
        }
    }
}
