//! The assertions of the fuzz target, tested without a fuzzer on random bytes and on changed traces.

use crate::support::{context, trace_of};
use giveway_qdisc::{Rate, Streams};
use proptest::prelude::*;

fn seed() -> Vec<u8> {
    let context = context(Rate::mbit(10), 1);
    let spec = "codel limit 20p target 50us interval 500us ecn".parse().unwrap();
    trace_of((&spec, &context), (&spec, &context), 200)
}

proptest! {
    #[test]
    fn any_bytes(input in prop::collection::vec(any::<u8>(), 0..300)) {
        crate::byte_input::trace(&input);
    }
}

/// Changed bytes with wrong checks, and the same bytes as operations with correct checks.
#[test]
fn changed_traces() {
    let seed = seed();
    let mut rng = Streams::new(5).within("changes").rng();
    for _ in 0..2000 {
        let mut input = seed.clone();
        for _ in 0..rng.below(4) {
            let at = rng.below(input.len() as u64) as usize;
            input[at] = rng.word() as u8;
        }
        crate::byte_input::trace(&input);
        let from = rng.below(input.len() as u64) as usize;
        crate::byte_input::trace(&input[from..]);
    }
}
