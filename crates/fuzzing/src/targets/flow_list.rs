//! Any text is parsed as a list of transfers, or rejected with a row; an accepted list runs.

use giveway_scenario::Draft;

use crate::{moment, scratch};

const SCENARIO: &str = r#"
duration = "100 ms"
[[link]]
from = "home"
to = "isp"
rate = "10 Mbit/s"
delay = "1 ms"
[[traffic]]
kind = "flow_list"
file = "flows.csv"
"#;

/// Input: the CSV file.
pub fn run(input: &[u8]) {
    scratch::file("flows.csv", input);
    let draft = Draft::parse(SCENARIO, scratch::folder());
    match draft.clone().finish() {
        Ok(scenario) => moment::run(&draft, &scenario),
        Err(error) => assert!(error.diagnostics[0].message.contains("flows.csv"), "{:?}", error.diagnostics),
    }
}
