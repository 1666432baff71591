//! The file with the fingerprints of scenarios.

use std::collections::BTreeMap;

use crate::repository::{Done, Repository};

pub(super) const GOLDEN: &str = "xtask/golden.toml";

/// The fingerprints of the file, by name of the scenario.
pub(super) fn golden(repository: &Repository) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(repository.root.join(GOLDEN));
    let text = text.map_err(|error| format!("{GOLDEN}: {error}; write it with cargo xtask golden"))?;
    toml::from_str(&text).map_err(|error| format!("{GOLDEN}: {error}"))
}

/// Compares the fingerprints of all scenarios with the file.
pub(super) fn compare(repository: &Repository, ran: &BTreeMap<String, String>) -> Done {
    let golden = golden(repository)?;
    let mut wrong = Vec::new();
    for (name, run) in ran {
        match golden.get(name) {
            None => wrong.push(format!("{name}: is new")),
            Some(before) if before != run => {
                wrong.push(format!("{name}: was {before}, is {run}"));
            }
            Some(_) => {}
        }
    }
    wrong
        .extend(golden.keys().filter(|name| !ran.contains_key(*name)).map(|name| format!("{name}: is gone")));
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} scenarios have other fingerprints; if that is intended, run cargo xtask golden\n{}",
        wrong.len(),
        wrong.join("\n")
    ))
}
