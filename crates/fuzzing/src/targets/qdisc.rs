//! A discipline with any parameters keeps the contract, or is rejected when it is built.

use giveway_disciplines::Spec;
use giveway_qdisc::contract::{drive, ops_from_bytes};
use giveway_qdisc::{LinkContext, Rate, Streams};

/// Largest number of operations: more take longer and find no new errors.
const MAX: usize = 400;

/// Input: a line with the discipline, one byte that selects the link, then operations.
pub fn run(input: &[u8]) {
    let line = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (text, rest) = input.split_at(line);
    let Ok(Ok(spec)) = std::str::from_utf8(text).map(str::parse::<Spec>) else { return };
    let [_, link, operations @ ..] = rest else { return };
    let rate = [Rate::kbit(64), Rate::mbit(10), Rate::gbit(1), Rate::gbit(400)][usize::from(link % 4)];
    let context = LinkContext::new(rate, Streams::new(u64::from(link / 4)).within("fuzz"));
    let Ok(mut qdisc) = spec.build_numbered(&context) else { return };
    let mut operations = ops_from_bytes(operations);
    operations.truncate(MAX);
    if let Err(violation) = drive(&mut qdisc, spec.properties(&context), &operations) {
        panic!("{spec} at {rate}: {}", violation.0);
    }
}
