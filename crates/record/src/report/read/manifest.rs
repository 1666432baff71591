//! The manifest of a run folder, as it is read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use giveway_measure::{Contest, Fingerprint, Trial};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::folder::Recommendation;
use crate::seal::Digest;

/// The content of `manifest.json`.
#[derive(Deserialize)]
pub(crate) struct Manifest {
    pub giveway: String,
    pub commit: Option<String>,
    pub scenario_hash: Fingerprint,
    pub scenario: String,
    pub title: String,
    pub description: String,
    pub disciplines: Vec<IgnoredAny>,
    pub seeds: Vec<u64>,
    pub measured: Measured,
    pub machine: String,
    pub created_by: String,
    pub created: Option<String>,
    pub complete: bool,
    pub findings: Option<Vec<String>>,
    pub recommendation: Option<Recommendation>,
    pub fingerprint: Option<String>,
    pub trials: Vec<TrialEntry>,
    /// The files at the top, by name.
    pub files: BTreeMap<String, Digest>,
}

/// The measured ports and sources, and the measurement interval.
#[derive(Deserialize)]
pub(crate) struct Measured {
    pub from_s: f64,
    pub until_s: f64,
    pub ports: Vec<String>,
    /// Titles of ports by name.
    pub port_titles: Option<BTreeMap<String, String>>,
    pub sources: Vec<String>,
    pub contest: Option<Contest>,
    pub small_packet_bytes: u64,
    /// The length of a slot of a switch.
    pub slot_s: Option<f64>,
}

impl Measured {
    /// The title of a port.
    pub fn title<'a>(&'a self, port: &'a str) -> &'a str {
        self.port_titles.as_ref().and_then(|titles| titles.get(port)).map_or(port, String::as_str)
    }
}

#[derive(Deserialize)]
pub(crate) struct TrialEntry {
    #[serde(flatten)]
    pub trial: Trial,
    pub folder: PathBuf,
    pub summary_sha256: String,
}

/// The fields that are read before the rest of a manifest, which depends on the format.
#[derive(Deserialize)]
pub(in crate::report) struct Stamp {
    pub giveway: String,
    #[serde(default = "first_format")]
    pub format: u64,
    #[serde(default)]
    pub created_by: String,
}

fn first_format() -> u64 {
    1
}
