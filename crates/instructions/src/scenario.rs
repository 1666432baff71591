//! Scenarios in their short form: the first discipline with the first seed, with the usual measurements.

use std::path::Path;

use giveway_scenario::{Draft, Scenario};

use crate::workload::Workload;

/// The scenario in which congestion controls are compared.
const SENDERS: &str = "scenarios/bench/dumbbell-1g.toml";
/// Keys of [`SENDERS`] for each row of a congestion control, and for the preset of Linux.
const CONTROLS: [&str; 9] = [
    "tcp.congestion=\"reno\"",
    "tcp.congestion=\"bbr\"",
    "tcp.congestion=\"bbr version 3\"",
    "tcp.congestion=\"dctcp\"",
    "tcp.congestion=\"prague\"",
    "tcp.congestion=\"vegas\"",
    "tcp.congestion=\"copa\"",
    "tcp.congestion=\"ledbat\"",
    "tcp.preset=\"linux\"",
];

const RFC: &str = "tcp.preset=\"rfc\"";
const EXACT: &str = "phase=\"exact\"";

/// Name and file of each scenario, and the keys that are changed. All have the TCP of the RFCs and exact
/// phases, so that the counts of different versions stay comparable. The last two show the cost of a rate
/// that varies: a hundred changes a second, and none.
const SCENARIOS: [(&str, &str, &[&str]); 6] = [
    ("simulator, dumbbell", "scenarios/bench/dumbbell-1g.toml", &[]),
    ("simulator, transfers", "scenarios/bench/transfers.toml", &[]),
    ("simulator, list of EFD", "papers/efd/transfers.toml", &[]),
    ("simulator, web", "scenarios/quickstart.toml", &[RFC, EXACT]),
    (
        "simulator, varying rate",
        "scenarios/links/step.toml",
        &[
            RFC,
            EXACT,
            "disciplines=[\"fq_codel\"]",
            "link.0.rate={ steps = [[\"0s\", \"50mbit\"], [\"10ms\", \"51mbit\"], [\"20ms\", \"0bit\"]], loop = true }",
        ],
    ),
    (
        "simulator, constant rate in its place",
        "scenarios/links/step.toml",
        &[RFC, EXACT, "disciplines=[\"fq_codel\"]", "link.0.rate=\"50500kbit\""],
    ),
];

/// The workloads, from the repository in the current folder.
pub(crate) fn workloads() -> impl Iterator<Item = Workload> {
    let scenarios = SCENARIOS.into_iter().map(|(name, file, changes)| {
        let scenario = read(file, changes);
        let run = Box::new(move || packets(&scenario));
        Workload { name: name.to_owned(), run }
    });
    let controls = CONTROLS.into_iter().map(|change| {
        let (key, value) = change.split_once('=').expect("a change has a value");
        let name = format!("simulator, {} {}", key.replace('.', " "), value.trim_matches('"'));
        let scenario = read(SENDERS, &[change]);
        let run = Box::new(move || packets(&scenario));
        Workload { name, run }
    });
    scenarios.chain(controls)
}

fn read(file: &str, changes: &[&str]) -> Scenario {
    let draft = Draft::load(Path::new(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let draft = changes.iter().fold(draft, |draft, change| draft.set(change));
    let scenario = draft.finish().and_then(|scenario| scenario.short());
    scenario.unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Runs the scenario. Returns the number of packets that arrived at its measured ports.
fn packets(scenario: &Scenario) -> u64 {
    let trials = scenario.trials();
    let (record, _) =
        giveway_observe::observe(scenario, &trials[0], false, &|_| true).expect("nothing stops it");
    record.links.iter().filter_map(|link| link.arrived).map(|arrived| arrived.packets).sum()
}
