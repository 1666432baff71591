//! The maxima of the measurement interval include the backlog at its beginning.

use std::collections::BTreeMap;

use giveway_qdisc::Streams;
use giveway_switch::Plan;
use giveway_switch::traffic::SOURCES;
use serde_json::json;

/// The named numbers of a run with a backlog at the beginning of the measurement interval. Two inputs receive
/// a packet of one cell for output 0 in each of the slots 0 to 9. One cell per slot can leave, so half of the
/// cells remain when the interval starts with slot 10. No packet arrives in the interval.
fn numbers(arbiter: &str, class: &str) -> BTreeMap<String, f64> {
    let list = SOURCES.iter().find(|source| source.name == "list").expect("list is registered");
    let packets: Vec<_> = (0..10)
        .flat_map(|slot| {
            [0, 1].map(|from| json!({ "slot": slot, "from": from, "to": 0, "cells": 1, "class": class }))
        })
        .collect();
    let plan = Plan {
        ports: 2,
        arbiter: arbiter.parse().expect("the arbiter is valid"),
        traffic: (list.from_json)(json!({ "packets": packets })).expect("the parameters are valid"),
        slots: 40,
        warmup: 10,
        streams: Streams::new(1),
        folder: Default::default(),
    };
    let outcome = giveway_switch::run(&plan).expect("the plan is valid");
    outcome.numbers().into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

#[test]
fn maxima_of_inputs_include_the_initial_backlog() {
    for arbiter in ["islip mode cell", "islip mode packet", "fifo", "p_spf", "p_spf mode spf"] {
        let numbers = numbers(arbiter, "long");
        // Ten cells remain, five at each input if the arbiter serves the inputs in turns. The cell that
        // crosses in slot 9 may still be in its queue when the interval begins.
        assert!((10.0..=12.0).contains(&(2.0 * numbers["input_max_cells"])), "{arbiter}: {numbers:?}");
        assert!((10.0..=12.0).contains(&(2.0 * numbers["queue_max_cells"])), "{arbiter}: {numbers:?}");
    }
}

#[test]
fn maxima_of_short_queues_include_the_initial_backlog() {
    for arbiter in ["p_spf", "p_spf mode spf"] {
        let numbers = numbers(arbiter, "short");
        assert!((5.0..=6.0).contains(&numbers["short_max_packets"]), "{arbiter}: {numbers:?}");
    }
}

#[test]
fn maxima_of_outputs_include_the_initial_backlog() {
    // Two cells per slot cross and one leaves.
    for arbiter in ["oq", "cioq", "islip speedup 2"] {
        let numbers = numbers(arbiter, "long");
        assert!((9.0..=11.0).contains(&numbers["output_max_cells"]), "{arbiter}: {numbers:?}");
    }
    let numbers = numbers("p_spf mode spf speedup 2", "short");
    assert!((9.0..=11.0).contains(&numbers["output_short_max_packets"]), "{numbers:?}");
}
