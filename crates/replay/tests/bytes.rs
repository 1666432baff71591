//! The path of the fuzz target, run on random bytes and on traces that were changed: it holds without a
//! fuzzer, too.

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

/// Changed bytes, behind checks that are wrong then; and the operations alone, behind checks that are right.
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
