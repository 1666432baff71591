//! Any bytes are parsed as a workload, or rejected with a line. An accepted workload is written, read again,
//! and run.

use giveway_scenario::Draft;
use giveway_workload::Workload;

use crate::{moment, scratch};

const SCENARIO: &str = r#"
duration = "1 s"
[[link]]
from = "home"
to = "isp"
rate = "10 Mbit/s"
delay = "1 ms"
[[traffic]]
kind = "applications"
from = "home"
to = "isp"
file = "workload.jsonl"
"#;

/// Input: the workload file.
pub fn run(input: &[u8]) {
    let workload = match Workload::read(input) {
        Ok(workload) => workload,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut written = Vec::new();
    workload.write(&mut written).expect("memory can be written");
    assert_eq!(Workload::read(&written[..]).expect("the workload was just written"), workload);
    scratch::file("workload.jsonl", input);
    let draft = Draft::parse(SCENARIO, scratch::folder());
    match draft.clone().finish() {
        Ok(scenario) => moment::run(&draft, &scenario),
        Err(error) => assert!(!error.diagnostics.is_empty()),
    }
}
