//! Trials that are finished: their summaries, and the check of their files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use giveway_measure::{Fingerprint, Summary, Trial};
use serde::{Deserialize, Serialize};

use crate::seal::{self, Damage, Digest};

/// What there is of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    /// It was finished earlier, for this scenario and by this version, and not a bit of it has changed.
    Finished(Summary),
    /// Nothing.
    Missing,
    /// Another version of Giveway ran it: this one.
    Outdated(String),
    /// Something is wrong with one of its files.
    Damaged(Damage),
}

/// What `summary.json` of a trial holds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Finished {
    pub giveway: String,
    /// [`FORMAT`]; folders of the first format did not say.
    #[serde(default)]
    pub format: u64,
    pub scenario_hash: Fingerprint,
    #[serde(flatten)]
    pub trial: Trial,
    #[serde(flatten)]
    pub summary: Summary,
    /// The tables beside it, by name.
    #[serde(default)]
    pub tables: BTreeMap<String, Digest>,
}

/// A summary and its digest, if not a bit of it has changed.
pub(crate) fn read_summary(place: &Path) -> Result<(Finished, String), Damage> {
    let bytes = fs::read(place).map_err(|error| Damage::unreadable(place, &error))?;
    let (text, digest) = seal::open(&bytes).map_err(|why| Damage::new(place, why))?;
    let found = serde_json::from_str(text).map_err(|error| Damage::new(place, error))?;
    Ok((found, digest.to_owned()))
}

/// Whether the tables beside a summary are those that it lists.
pub(crate) fn check_tables(dir: &Path, summary: &Finished) -> Result<(), Damage> {
    summary.tables.iter().try_for_each(|(name, digest)| digest.check(&dir.join(name)))
}
