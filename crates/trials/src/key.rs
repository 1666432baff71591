//! The key of a trial.
//!
//! A trial is a pure function of its scenario, its discipline, its seed and the version of the program. Its
//! key is a hash of these, so a result under the key of a trial is the result of that trial, in any folder.
//!
//! The hash covers the part of the scenario that decides results ([`Scenario::identity`]): neither titles nor
//! the other disciplines and seeds. It covers the contents of the files that the scenario names, and not
//! their paths, so a folder may be moved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use giveway_record::Digest;
use giveway_scenario::Scenario;
use sha2::{Digest as _, Sha256};

/// The key of a trial: the first 128 bits of a SHA-256.
pub type Key = u128;

/// The version of the program that results depend on: of the simulation, or of a test bed.
pub fn version(scenario: &Scenario) -> &'static str {
    if scenario.live().is_some() { giveway_sources::TESTBED } else { giveway_sources::SIMULATION }
}

/// The hash of everything that the trials of a scenario depend on, except discipline and seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity([u8; 32]);

impl Identity {
    /// The identity of a scenario for this program. `files` keeps the digests of files that were read before.
    pub fn of(scenario: &Scenario, files: &Digests) -> Identity {
        let mut hash = Sha256::new();
        hash.update(version(scenario).as_bytes());
        hash.update(scenario.identity().as_bytes());
        for file in scenario.files() {
            hash.update(files.of(&file).as_bytes());
        }
        Identity(hash.finalize().into())
    }

    /// The identity of trials that a text describes, besides their discipline and seed.
    pub fn of_text(text: &str) -> Identity {
        Identity(Sha256::digest(text.as_bytes()).into())
    }

    /// The identity of the same trials with a further fact that decides their results, such as a discipline
    /// that no specification describes.
    pub fn with(self, what: &[u8]) -> Identity {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(what);
        Identity(hash.finalize().into())
    }

    /// The key of the trial with this discipline and this seed.
    pub fn key(&self, qdisc: &str, seed: u64) -> Key {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(seed.to_le_bytes());
        hash.update(qdisc.as_bytes());
        let digest = hash.finalize();
        let (first, _) = digest.split_at(16);
        first.iter().fold(0, |key, byte| (key << 8) | u128::from(*byte))
    }
}

/// The digests of files that scenarios name, each of which is read once.
#[derive(Debug, Default)]
pub struct Digests(Mutex<BTreeMap<PathBuf, String>>);

impl Digests {
    /// The SHA-256 of a file as hexadecimal digits. The text of the error, if the file cannot be read: it was
    /// read a moment ago, and the trials report that it is missing now.
    pub fn of(&self, file: &Path) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digest) = known.get(file) {
            return digest.clone();
        }
        let digest = Digest::of_file(file).map_or_else(|error| error.to_string(), |digest| digest.sha256);
        known.insert(file.to_owned(), digest.clone());
        digest
    }
}

/// The text of a scenario, and the digests of the files that it names: everything that its results depend on,
/// for the folder of a run.
pub fn identity_text(scenario: &Scenario) -> String {
    let mut text = scenario.text();
    let digests = Digests::default();
    for file in scenario.files() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        text.push_str(&format!("# {name} has the SHA-256 {}\n", digests.of(&file)));
    }
    text
}

#[cfg(test)]
mod tests {
    use giveway_scenario::Draft;

    use super::*;

    const TEXT: &str = r#"
duration = "5s"
disciplines = ["fifo limit 100p", "fq_codel"]
seeds = [1, 2]
link = [{ from = "a", to = "b", rate = "10mbit", delay = "5ms", qdisc = "compare" }]
traffic = [{ name = "upload", kind = "bulk", from = "a", to = "b" }]
"#;

    fn identity(text: &str) -> Identity {
        Identity::of(&Draft::parse(text, "").finish().unwrap(), &Digests::default())
    }

    #[test]
    fn what_decides_a_result_is_in_its_key_and_nothing_else() {
        let one = identity(TEXT);
        for same in [
            "seeds = [1, 2]|seeds = [7]",
            "\"fq_codel\"|\"pie\"",
            "duration|title = \"x\"\nduration",
            "10mbit|10 Mbit/s",
            "5s|5000ms",
            "from = \"a\", to = \"b\", rate|to = \"b\", from = \"a\", rate",
        ] {
            let (from, to) = same.split_once('|').unwrap();
            assert_eq!(identity(&TEXT.replace(from, to)), one, "{same}");
        }
        for other in ["10mbit|11mbit", "5ms|6ms", "5s|6s"] {
            let (from, to) = other.split_once('|').unwrap();
            assert_ne!(identity(&TEXT.replace(from, to)), one, "{other}");
        }
        let keys = [one.key("fifo", 1), one.key("fifo", 2), one.key("pie", 1), one.with(b"x").key("fifo", 1)];
        let mut unique = keys.to_vec();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), keys.len());
    }
}
