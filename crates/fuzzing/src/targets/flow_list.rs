//! Any text is a list of transfers or is refused with its row, and what is accepted runs.

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

/// The input is the CSV file.
pub fn run(input: &[u8]) {
    scratch::file("flows.csv", input);
    let draft = Draft::parse(SCENARIO, scratch::folder());
    match draft.clone().finish() {
        Ok(scenario) => moment::run(&draft, &scenario),
        Err(wrong) => assert!(wrong.diagnostics[0].message.contains("flows.csv"), "{:?}", wrong.diagnostics),
    }
}
