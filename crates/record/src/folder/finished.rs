//! Trials that are finished: their summaries, and the check of their files.

use std::collections::BTreeMap;
use std::path::Path;

use giveway_files::Dir;
use giveway_measure::{Fingerprint, Summary, Trial};
use serde::{Deserialize, Serialize};

use super::files::SUMMARY;
use crate::seal::{self, Damage, Digest};

/// The state of a trial in a run folder.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    /// It is finished, for this scenario and version, and no bit of it has changed.
    Finished(Summary),
    /// It does not exist.
    Missing,
    /// It was made by another version of Giveway, which is this one.
    Outdated(String),
    /// One of its files is damaged.
    Damaged(Damage),
}

/// The content of `summary.json` of a trial.
#[derive(Serialize, Deserialize)]
pub(crate) struct Finished {
    pub giveway: String,
    /// The number of the format; the first format has none.
    #[serde(default)]
    pub format: u64,
    pub scenario_hash: Fingerprint,
    #[serde(flatten)]
    pub trial: Trial,
    #[serde(flatten)]
    pub summary: Summary,
    /// The tables next to it, by name.
    #[serde(default)]
    pub tables: BTreeMap<String, Digest>,
}

/// Reads the summary in the folder of a trial, and its digest, and checks that no bit has changed.
pub(crate) fn read_summary(dir: &Dir, trial: &Path) -> Result<(Finished, String), Damage> {
    let inside = trial.join(SUMMARY);
    let place = &dir.path().join(&inside);
    let bytes = dir.read(inside).map_err(|error| Damage::unreadable(place, &error))?;
    seal::open_sealed(&bytes, place)
}

/// Checks that the tables next to a summary match its digests.
pub(crate) fn check_tables(dir: &Dir, trial: &Path, summary: &Finished) -> Result<(), Damage> {
    summary.tables.iter().try_for_each(|(name, digest)| digest.check_in(dir, trial.join(name)))
}
