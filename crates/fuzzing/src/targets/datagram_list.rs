//! Any text is parsed as a list of datagrams, or rejected with a row; an accepted list runs. Its nodes are in
//! the file or in the scenario, never in both.

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
kind = "datagram_list"
file = "datagrams.csv"
"#;

/// Input: the CSV file.
pub fn run(input: &[u8]) {
    scratch::file("datagrams.csv", input);
    let by_file = accepted(SCENARIO);
    let by_scenario = accepted(&format!("{SCENARIO}from = \"home\"\nto = \"isp\"\n"));
    assert!(!(by_file && by_scenario), "nodes are either in the file or in the scenario");
}

/// Runs the scenario and returns true, or checks the reason for its rejection and returns false.
fn accepted(text: &str) -> bool {
    let draft = Draft::parse(text, scratch::folder());
    match draft.clone().finish() {
        Ok(scenario) => {
            moment::run(&draft, &scenario);
            true
        }
        Err(error) => {
            let reasons = ["datagrams.csv", "the file names no nodes", "names its nodes in its file"];
            let message = &error.diagnostics[0].message;
            assert!(reasons.iter().any(|reason| message.contains(reason)), "{:?}", error.diagnostics);
            false
        }
    }
}
