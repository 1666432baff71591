//! Any `--set` changes of a valid scenario are applied, or rejected with a position inside them.

use giveway_scenario::Draft;

use super::scenario::{FOLDER, check};

const NETWORK: &str = include_str!("../../../../scenarios/quickstart.toml");
const SWITCH: &str = include_str!("../../../../scenarios/switch/classics.toml");
const BED: &str = include_str!("../../../../scenarios/testbed/quickstart.toml");

/// Largest number of changes.
const CHANGES: usize = 8;
/// Largest length of a change, in bytes.
const LONGEST: usize = 1000;

/// Input: one byte that selects a scenario, then a change on each line.
pub fn run(input: &[u8]) {
    let Some((which, changes)) = input.split_first() else { return };
    let Ok(changes) = std::str::from_utf8(changes) else { return };
    if changes.contains("/dev") || changes.contains("/proc") {
        return;
    }
    let text = [NETWORK, SWITCH, BED][usize::from(which % 3)];
    let changes = changes.split('\n').filter(|change| change.len() <= LONGEST).take(CHANGES);
    check(changes.fold(Draft::parse(text, FOLDER), Draft::set));
}
