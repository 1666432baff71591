//! No arbiter allocates during a run: all buffers are allocated when it is built.

use crate::support::{Paper, Shape, build, variants};
use giveway_switch::Spec;
use giveway_switch::arbiter::Matching;
use giveway_switch::options::Queueing;
use giveway_switch::registry::ALL;

/// Allocations in 200 slots of a switch of 32 ports, from the first slot on.
fn allocations(spec: &Spec, filled: u64, busy: u64) -> u64 {
    let shape = Shape { ports: 32, filled, busy, seed: 7 };
    let slots: Vec<Paper<1>> = shape.slots(spec.queueing(), 200);
    let mut arbiter = build::<1>(spec, shape.ports, 7);
    let mut matching = Matching::new();
    let before = giveway_counting::calls();
    let mut pairs = 0;
    for paper in &slots {
        paper.ask(&mut *arbiter, &mut matching);
        pairs += matching.pairs().len();
    }
    let counted = giveway_counting::calls() - before;
    // With output and combined queueing no arbiter is called.
    let called = !matches!(spec.queueing(), Queueing::Output | Queueing::Combined);
    assert!(pairs > 0 || !called, "{spec} must match pairs");
    counted
}

#[test]
fn arbiters_do_not_allocate() {
    // The counter works: building an arbiter allocates.
    let before = giveway_counting::calls();
    drop(build::<1>(&ALL[0].default(), 32, 7));
    assert!(giveway_counting::calls() > before);

    for entry in ALL {
        for spec in variants(entry, 32) {
            for (filled, busy) in [(100, 0), (20, 0), (60, 80)] {
                let counted = allocations(&spec, filled, busy);
                assert_eq!(counted, 0, "{spec}, {filled} % of the queues filled, {busy} % of the ports busy");
            }
        }
    }
}
