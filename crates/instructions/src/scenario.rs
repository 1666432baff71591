//! Scenarios in their short form: the first discipline with the first seed, with the usual measurements.

use std::path::Path;

use giveway_scenario::{Draft, Scenario};

use crate::workload::Workload;

/// Name and file of each scenario.
const SCENARIOS: [(&str, &str); 4] = [
    ("simulator, dumbbell", "scenarios/bench/dumbbell-1g.toml"),
    ("simulator, transfers", "scenarios/bench/transfers.toml"),
    ("simulator, list of EFD", "papers/efd/transfers.toml"),
    ("simulator, web", "scenarios/quickstart.toml"),
];

/// The workloads, from the repository in the current folder.
pub(crate) fn workloads() -> impl Iterator<Item = Workload> {
    SCENARIOS.into_iter().map(|(name, file)| {
        let scenario = read(file);
        let run = Box::new(move || packets(&scenario));
        Workload { name: name.to_owned(), run }
    })
}

fn read(file: &str) -> Scenario {
    let draft = Draft::load(Path::new(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let scenario = draft.finish().and_then(|scenario| scenario.short());
    scenario.unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Runs the scenario. Returns the number of packets that arrived at its measured ports.
fn packets(scenario: &Scenario) -> u64 {
    let trials = scenario.trials();
    let (record, _) =
        giveway_papers::observe(scenario, &trials[0], false, &|_| true).expect("nothing stops it");
    record.links.iter().filter_map(|link| link.arrived).map(|arrived| arrived.packets).sum()
}
