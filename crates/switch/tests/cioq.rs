//! Combined input and output queueing compared with output queueing: every cell has the same delay in both.

use giveway_qdisc::Streams;
use giveway_switch::traffic::{SOURCES, TrafficContext, TrafficSpec};
use giveway_switch::{Outcome, Plan};
use proptest::prelude::*;
use serde_json::json;

/// Slots in which cells arrive.
const SLOTS: u64 = 10_000;
/// Slots after these, enough for every cell to leave.
const AFTER: u64 = 3_000;

/// Traffic by its name and parameters.
fn traffic(name: &str, parameters: serde_json::Value) -> TrafficSpec {
    let source = SOURCES.iter().find(|source| source.name == name).expect("the source is registered");
    (source.from_json)(parameters).expect("the parameters are valid")
}

/// Independent cells in the first [`SLOTS`] slots, as a list, so that both switches can send all of them.
fn cells(ports: usize, load: f64, pattern: &str) -> TrafficSpec {
    let context = TrafficContext { ports, streams: Streams::new(5), folder: Default::default() };
    let parameters = json!({ "load": load, "pattern": pattern });
    let mut offered = traffic("bernoulli", parameters).build(&context).expect("the parameters are valid");
    let mut packets = Vec::new();
    for (from, source) in offered.sources.iter_mut().enumerate() {
        while let Some(arrival) = source.next().filter(|arrival| arrival.first < SLOTS) {
            packets.push(json!({ "slot": arrival.first, "from": from, "to": arrival.to, "cells": 1 }));
        }
    }
    traffic("list", json!({ "packets": packets }))
}

/// Runs an arbiter, as it is written in scenarios, until all packets have left.
fn run(arbiter: &str, ports: usize, traffic: &TrafficSpec) -> Outcome {
    run_slots(arbiter, ports, traffic, SLOTS + AFTER)
}

fn run_slots(arbiter: &str, ports: usize, traffic: &TrafficSpec, slots: u64) -> Outcome {
    let plan = Plan {
        ports,
        arbiter: arbiter.parse().expect("the arbiter is valid"),
        traffic: traffic.clone(),
        slots,
        warmup: 0,
        streams: Streams::new(5),
        folder: Default::default(),
    };
    let outcome = giveway_switch::run(&plan).expect("the plan is valid");
    assert_eq!(outcome.backlog, 0, "{arbiter}: all packets have crossed");
    let left: u64 = outcome.all.through.counts.iter().map(|(_, count)| count).sum();
    assert_eq!(left, outcome.all.count, "{arbiter}: all packets have left");
    outcome
}

/// Chuang, Goel, McKeown and Prabhakar 1999: with a speedup of 2 every cell leaves when output queueing would
/// send it. Both measure from the start of the slot of arrival to the end of the output link, so there is no
/// constant difference.
#[test]
fn delays_are_those_of_output_queueing() {
    for ports in [2, 4, 8, 16] {
        for (load, pattern) in [(0.5, "uniform"), (0.9, "uniform"), (0.9, "diagonal"), (1.0, "log_diagonal")]
        {
            let traffic = cells(ports, load, pattern);
            let (cioq, oq) = (run("cioq", ports, &traffic), run("oq", ports, &traffic));
            assert_eq!(cioq.all.through, oq.all.through, "{ports} ports, {pattern} at {load}");
            assert!(oq.all.count > SLOTS / 2, "{} cells", oq.all.count);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Delays equal output queueing for any arrivals, also if the traffic is not admissible.
    #[test]
    fn delays_are_those_of_output_queueing_for_any_arrivals(
        ports in 2u16..=6,
        arrivals in prop::collection::vec((0u64..40, 0u16..6, prop_oneof![Just(0u16), 0u16..6]), 1..160),
    ) {
        let mut taken = std::collections::BTreeSet::new();
        let mut packets = Vec::new();
        for (slot, from, to) in arrivals {
            // At most one cell per slot and input.
            if from < ports && to < ports && taken.insert((slot, from)) {
                packets.push(json!({ "slot": slot, "from": from, "to": to, "cells": 1 }));
            }
        }
        let traffic = traffic("list", json!({ "packets": packets }));
        let sent = |arbiter: &str| run_slots(arbiter, ports.into(), &traffic, 300);
        let (cioq, oq) = (sent("cioq"), sent("oq"));
        prop_assert_eq!(cioq.all.through, oq.all.through);
    }
}

/// A switch without speedup is input-queued: at a load of 0.9 its delays are longer by a tenth or more.
/// Delays at a speedup of 1.5 are between output queueing and no speedup.
#[test]
fn delays_grow_with_less_speedup() {
    for pattern in ["uniform", "diagonal"] {
        let traffic = cells(8, 0.9, pattern);
        let mean = |arbiter: &str| run(arbiter, 8, &traffic).all.through.mean.expect("cells have left");
        let means = ["oq", "cioq speedup 1.5", "cioq speedup 1"].map(mean);
        assert!(means[0] <= means[1] && means[1] < means[2], "{pattern}: {means:?}");
        assert!(means[2] > 1.05 * means[0], "{pattern}: {means:?}");
    }
}

/// Cells of larger packets arrive and leave one by one; cells of two packets for one output alternate.
#[test]
fn packets_are_complete_with_their_last_cell() {
    let packet =
        |slot: u64, from: u16, cells: u32| json!({ "slot": slot, "from": from, "to": 0, "cells": cells });
    let traffic = traffic("list", json!({ "packets": [packet(0, 0, 3), packet(0, 1, 2)] }));
    let outcome = run("cioq", 2, &traffic);
    let through: Vec<f64> =
        outcome.kinds.iter().map(|(_, of)| of.through.mean.expect("packets have left")).collect();
    // Cells of slots 0, 0, 1, 1, 2 are sent in slots 1 to 5; of two cells the second is the fourth of all.
    assert_eq!(through, [5.0, 6.0]);
}
