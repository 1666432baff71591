//! Any text is parsed as a scenario, or rejected with positions inside the text; an accepted scenario runs.

use giveway_scenario::{Draft, Scenario, ScenarioError, Severity};

use crate::moment;

/// Folder for relative paths of a scenario. It does not exist, so they name no file.
pub(super) const FOLDER: &str = "/nonexistent";
/// Largest length of a text, in bytes. Longer ones are slow and find no new errors.
const LONGEST: usize = 16 << 10;
/// Largest number of `--set` changes.
const CHANGES: usize = 8;

/// Input: a scenario file. Lines that start with `#set ` are `--set` changes to it.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // Reading a device such as /dev/stdin could block.
    if text.len() > LONGEST || text.contains("/dev") || text.contains("/proc") {
        return;
    }
    let changes = text.lines().filter_map(|line| line.strip_prefix("#set ")).take(CHANGES);
    check(changes.fold(Draft::parse(text, FOLDER), Draft::set));
}

/// Parses a draft. An accepted scenario is written as text, parsed again and run.
pub(super) fn check(draft: Draft) {
    let scenario = match draft.clone().finish() {
        Ok(scenario) => scenario,
        Err(error) => return check_error(&error),
    };
    let again = Scenario::parse(&scenario.text(), FOLDER);
    let again = again.unwrap_or_else(|error| {
        panic!(
            "an accepted scenario is rejected after it was written:\n{}\n{:?}",
            scenario.text(),
            error.diagnostics
        )
    });
    assert_eq!(again.trials(), scenario.trials());
    assert_eq!((again.duration, again.warmup), (scenario.duration, scenario.warmup));
    moment::run(&draft, &scenario);
}

/// Checks that every diagnostic states a message and a valid position.
fn check_error(error: &ScenarioError) {
    let errors = error.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    assert!(errors.count() > 0, "a rejected scenario has an error");
    for found in &error.diagnostics {
        assert!(!found.message.is_empty());
        let place = error.origin.place(&found.span);
        assert!(place.text.get(place.span.clone()).is_some(), "{}: {:?}", found.message, found.span);
    }
}
