//! The cost of results: a run without a folder, and with one. The second has all tables and the report.

use std::path::Path;

use giveway_runner::Session;
use giveway_scenario::{Draft, Scenario};
use giveway_trials::Silent;

use crate::workload::Workload;

/// The scenario: the first one of every user.
const FILE: &str = "scenarios/quickstart.toml";
const CHANGES: [&str; 3] = ["seeds=1", "tcp.preset=\"rfc\"", "phase=\"exact\""];

/// The workloads, from the repository in the current folder.
pub(crate) fn workloads() -> impl Iterator<Item = Workload> {
    [("run, web, without a folder", false), ("run, web, with a folder", true)].into_iter().map(
        |(name, keep)| {
            let draft = Draft::load(Path::new(FILE)).unwrap_or_else(|error| panic!("{FILE}: {error}"));
            let draft = CHANGES.iter().fold(draft, |draft, change| draft.set(change));
            let scenario = draft.finish().unwrap_or_else(|error| panic!("{FILE}: {error}"));
            Workload { name: name.to_owned(), run: Box::new(move || events(&scenario, keep)) }
        },
    )
}

/// Runs the scenario. Returns the number of its events.
fn events(scenario: &Scenario, keep: bool) -> u64 {
    let dir = tempfile::tempdir().expect("there is a folder for temporary files");
    let out = dir.path().join("out");
    let session = Session::new(1, &Silent, "giveway run".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    let ran = session.run(scenario, "quickstart", keep.then_some(&*out), &|_| None);
    assert_eq!(out.join("report.html").exists(), keep);
    ran.expect("nothing stops it").table.events
}
