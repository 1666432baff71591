//! Any text is a scenario or is refused with places inside the text, and what is accepted runs.

use giveway_scenario::{Draft, Scenario, ScenarioError, Severity};

use crate::moment;

/// No scenario of a fuzzer is to find a file by a relative name.
pub(super) const FOLDER: &str = "/nonexistent";
/// Longer texts are slow and find nothing new.
const LONGEST: usize = 16 << 10;
/// The most `--set` changes that are applied.
const CHANGES: usize = 8;

/// The input is a scenario file. Lines that begin with `#set ` are `--set` changes to it.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // Whoever names a device as a file waits for it, as everywhere.
    if text.len() > LONGEST || text.contains("/dev") || text.contains("/proc") {
        return;
    }
    let changes = text.lines().filter_map(|line| line.strip_prefix("#set ")).take(CHANGES);
    check(changes.fold(Draft::parse(text, FOLDER), Draft::set));
}

/// Reads a draft, and what is accepted is written, read again, and run.
pub(super) fn check(draft: Draft) {
    let scenario = match draft.clone().finish() {
        Ok(scenario) => scenario,
        Err(wrong) => return refused(&wrong),
    };
    let again = Scenario::parse(&scenario.text(), FOLDER);
    let again = again.unwrap_or_else(|wrong| {
        panic!(
            "what was accepted is refused when it is written:\n{}\n{:?}",
            scenario.text(),
            wrong.diagnostics
        )
    });
    assert_eq!(again.trials(), scenario.trials());
    assert_eq!((again.duration, again.warmup), (scenario.duration, scenario.warmup));
    moment::run(&draft, &scenario);
}

/// Every complaint has words, and a place that can be shown.
fn refused(wrong: &ScenarioError) {
    let errors = wrong.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    assert!(errors.count() > 0, "it is refused and nothing is wrong");
    for found in &wrong.diagnostics {
        assert!(!found.message.is_empty());
        let place = wrong.origin.place(&found.span);
        assert!(place.text.get(place.span.clone()).is_some(), "{}: {:?}", found.message, found.span);
    }
}
