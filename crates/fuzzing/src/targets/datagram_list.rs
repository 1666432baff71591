//! Any text is a list of datagrams or is refused with its row, and what is accepted runs. Its nodes stand in the file or in
//! the scenario, never in both.

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

/// The input is the CSV file.
pub fn run(input: &[u8]) {
    scratch::file("datagrams.csv", input);
    let by_file = accepted(SCENARIO);
    let by_scenario = accepted(&format!("{SCENARIO}from = \"home\"\nto = \"isp\"\n"));
    assert!(!(by_file && by_scenario), "nodes stand in one place");
}

/// Runs it, unless it is refused for what it should be.
fn accepted(text: &str) -> bool {
    let draft = Draft::parse(text, scratch::folder());
    match draft.clone().finish() {
        Ok(scenario) => {
            moment::run(&draft, &scenario);
            true
        }
        Err(wrong) => {
            let reasons = ["datagrams.csv", "the file names no nodes", "names its nodes in its file"];
            let message = &wrong.diagnostics[0].message;
            assert!(reasons.iter().any(|reason| message.contains(reason)), "{:?}", wrong.diagnostics);
            false
        }
    }
}
