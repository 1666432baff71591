//! A faster fabric with cut-through: packets start to cross before their last cell has arrived. Each starts
//! at the exact time, and not a slot of the link later.
//!
//! The oracle is a switch with one output that counts ticks one by one and checks, cell by cell, that each
//! cell of a packet has arrived when the fabric needs it. It has no formula for the earliest time.

use std::collections::{BTreeMap, VecDeque};

use giveway_qdisc::Streams;
use giveway_switch::speed::Speedup;
use giveway_switch::traffic::SOURCES;
use giveway_switch::{Outcome, Plan, Times};
use proptest::prelude::*;
use serde_json::json;

/// A packet of the oracle.
#[derive(Clone, Copy, Debug)]
struct Packet {
    /// The slot of its first cell.
    first: u64,
    from: usize,
    cells: u64,
}

/// Times in ticks, by the size of packets.
type Ticks = BTreeMap<u64, Vec<u64>>;

/// Runs packets for output 0 until all of them have left.
fn run(arbiter: &str, ports: usize, packets: &[Packet]) -> Outcome {
    let list = SOURCES.iter().find(|source| source.name == "list").expect("list is registered");
    let listed: Vec<_> = packets
        .iter()
        .map(|packet| json!({ "slot": packet.first, "from": packet.from, "to": 0, "cells": packet.cells, "class": "long" }))
        .collect();
    let last = packets.iter().map(|packet| packet.first).max().unwrap_or(0);
    let cells: u64 = packets.iter().map(|packet| packet.cells).sum();
    let plan = Plan {
        ports,
        arbiter: arbiter.parse().expect("the arbiter is valid"),
        traffic: (list.from_json)(json!({ "packets": listed })).expect("the parameters are valid"),
        slots: last + 2 * cells + 30,
        warmup: 0,
        streams: Streams::new(1),
        folder: Default::default(),
    };
    let outcome = giveway_switch::run(&plan).expect("the plan is valid");
    assert_eq!(outcome.all.count, packets.len() as u64, "all packets have crossed");
    outcome
}

/// All times in ticks, each as often as it occurred.
fn ticks(times: &Times, slot_ticks: u64) -> Vec<u64> {
    let whole = |slots: f64| {
        let ticks = slots * slot_ticks as f64;
        assert!((ticks - ticks.round()).abs() < 1e-6, "{slots} slots are not a whole number of ticks");
        ticks.round() as u64
    };
    let counts = times.counts.iter();
    counts.flat_map(|(slots, count)| vec![whole(*slots); *count as usize]).collect()
}

/// The measurements of the switch, in ticks: waiting times, and times to the end of the output link.
fn measured(outcome: &Outcome, speedup: Speedup) -> (Ticks, Ticks) {
    let of = |which: fn(&giveway_switch::Packets) -> &Times| {
        outcome
            .kinds
            .iter()
            .map(|(kind, packets)| (u64::from(kind.cells), ticks(which(packets), speedup.slot_ticks())))
            .collect()
    };
    (of(|packets| &packets.wait), of(|packets| &packets.through))
}

/// Compares the measurements with the oracle: means and maxima exactly, each time within its range.
fn compare(outcome: &Outcome, speedup: Speedup, (waits, throughs): &(Ticks, Ticks)) {
    // From 2,048 ticks on, each doubling has 1,024 ranges.
    let counted = |ticks: &Ticks| -> Ticks {
        let end =
            |ticks: &u64| if *ticks < 2_048 { *ticks } else { ticks | ((1 << (ticks.ilog2() - 10)) - 1) };
        ticks.iter().map(|(cells, times)| (*cells, times.iter().map(end).collect())).collect()
    };
    assert_eq!(measured(outcome, speedup), (counted(waits), counted(throughs)));
    let slot_ticks = speedup.slot_ticks() as f64;
    for (kind, packets) in &outcome.kinds {
        for (times, want) in [(&packets.wait, waits), (&packets.through, throughs)] {
            let want = &want[&u64::from(kind.cells)];
            assert_eq!(times.max, want.last().map(|longest| *longest as f64 / slot_ticks));
            let mean = want.iter().sum::<u64>() as f64 / want.len() as f64 / slot_ticks;
            assert_eq!(times.mean, Some(mean));
        }
    }
}

/// The condition under which a packet may start to cross.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// Every cell must have arrived when the fabric needs it.
    CutThrough,
    /// All cells must have arrived, and time counts from the last one.
    StoreAndForward,
}

/// The oracle, tick by tick: waiting times, and times to the end of the output link.
fn slow(rule: Rule, speedup: Speedup, ports: usize, packets: &[Packet]) -> (Ticks, Ticks) {
    let (slot, fabric) = (speedup.slot_ticks(), speedup.fabric_ticks());
    let mut inputs = vec![VecDeque::new(); ports];
    let mut sorted = packets.to_vec();
    sorted.sort_by_key(|packet| packet.first);
    sorted.iter().for_each(|packet| inputs[packet.from].push_back(*packet));
    let (mut waits, mut throughs) = (Ticks::new(), Ticks::new());
    // The input whose turn is next, and the remaining cells of the packet that crosses.
    let (mut pointer, mut crossing) = (0, 0);
    let mut link_free = 0;
    let mut left = packets.len();
    for tick in 0.. {
        if left == 0 {
            break;
        }
        if tick % fabric != 0 {
            continue;
        }
        if crossing == 0 {
            let may = |packet: &Packet| {
                // Cell j arrives in slot `first + j` of the link, and would cross in slot j of the fabric
                // from now on.
                let arrived = |j: u64| match rule {
                    Rule::CutThrough => tick + j * fabric >= (packet.first + j) * slot,
                    Rule::StoreAndForward => tick >= (packet.first + j) * slot,
                };
                (0..packet.cells).all(arrived)
            };
            let turns = (0..ports).map(|step| (pointer + step) % ports);
            let next = turns.into_iter().find(|input| inputs[*input].front().is_some_and(may));
            let Some(packet) = next.and_then(|input| inputs[input].pop_front()) else { continue };
            pointer = (packet.from + 1) % ports;
            crossing = packet.cells;
            let arrived = match rule {
                Rule::CutThrough => packet.first * slot,
                Rule::StoreAndForward => (packet.first + packet.cells - 1) * slot,
            };
            // No packet is interrupted, and a link sends one packet after the other.
            let end = tick + packet.cells * fabric;
            link_free = link_free.max(end) + packet.cells * slot;
            waits.entry(packet.cells).or_default().push(tick - arrived);
            throughs.entry(packet.cells).or_default().push(link_free - arrived);
            left -= 1;
        }
        crossing -= 1;
    }
    for times in waits.values_mut().chain(throughs.values_mut()) {
        times.sort_unstable();
    }
    (waits, throughs)
}

/// Packets of nine cells at a speedup of 1.2. A slot of the link has 6 ticks and one of the fabric 5, so the
/// fabric gains a tick with each of the 8 cells after the first.
///
/// - A packet of slot 0 may start at tick 8, and the fabric starts a slot at tick 10. The packet waits for 10
///   ticks, and its last cell crosses from tick 50 on, two ticks after its arrival.
/// - A packet of slot 4, at tick 24, may start at tick 32, starts at 35 and waits for 11 ticks.
/// - A packet of slot 5, at tick 30, may start at tick 38, starts at 40 and waits for 10 ticks.
/// - A packet of slot 2, at tick 12, may start at tick 20, starts then and waits for 8 ticks.
///
/// Rounded up to slots of the link the waiting times would be 15, 16, 15 and 13.
#[test]
fn nine_cells_begin_at_the_earliest_slot() {
    for (slot, wait) in [(0, 10), (4, 11), (5, 10), (2, 8)] {
        for mode in
            ["islip speedup 1.2", "islip speedup 1.2 mode cell", "fifo speedup 1.2", "p_spf speedup 1.2"]
        {
            let outcome = run(mode, 2, &[Packet { first: slot, from: 0, cells: 9 }]);
            let all = &outcome.all;
            assert_eq!(all.wait.counts, [(f64::from(wait) / 6.0, 1)], "{mode}, slot {slot}");
            assert_eq!(all.wait.max, Some(f64::from(wait) / 6.0), "{mode}, slot {slot}");
            assert_eq!(all.delay.max, Some(f64::from(wait + 45) / 6.0), "{mode}, slot {slot}");
            assert_eq!(all.through.max, Some(f64::from(wait + 45 + 54) / 6.0), "{mode}, slot {slot}");
        }
    }
}

/// At a speedup of 2 a packet of 4 cells may start 3 half slots after its first cell, in the middle of a slot
/// of the link.
#[test]
fn half_slots_are_not_rounded() {
    let outcome = run("islip speedup 2", 2, &[Packet { first: 7, from: 1, cells: 4 }]);
    assert_eq!(outcome.all.wait.max, Some(1.5));
    let whole = run("islip speedup 2 input store_and_forward", 2, &[Packet { first: 7, from: 1, cells: 4 }]);
    assert_eq!(whole.all.wait.max, Some(0.0), "the packet begins when its last cell arrives");
}

fn speedups() -> impl Strategy<Value = Speedup> {
    let drawn =
        (1u64..40, 0u64..40).prop_map(|(under, more)| Speedup::new(under + more.min(3 * under), under));
    prop_oneof![
        Just(Speedup::new(147, 125)),
        Just(Speedup::new(6, 5)),
        Just(Speedup::new(2, 1)),
        Just(Speedup::new(1, 1)),
        drawn,
    ]
    .prop_map(|speedup| speedup.expect("the ratio is between 1 and 4"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Packets from several inputs wait for each other or cross at once. All times are equal to the oracle's.
    #[test]
    fn waiting_times_are_exact(
        speedup in speedups(),
        rule in prop_oneof![3 => Just(Rule::CutThrough), 1 => Just(Rule::StoreAndForward)],
        ports in 2usize..=4,
        senders in 1usize..=4,
        drawn in prop::collection::vec((0u64..12, 0usize..4, 1u64..=12), 1..25),
    ) {
        // Packets of a link arrive one after the other, each after a drawn gap.
        let mut free = [0; 4];
        let packets: Vec<Packet> = drawn
            .into_iter()
            .map(|(gap, from, cells)| {
                let from = from % senders.min(ports);
                let first = free[from] + gap;
                free[from] = first + cells;
                Packet { first, from, cells }
            })
            .collect();
        let input = match rule {
            Rule::CutThrough => "cut_through",
            Rule::StoreAndForward => "store_and_forward",
        };
        let outcome = run(&format!("islip iterations 1 speedup {speedup} input {input}"), ports, &packets);
        compare(&outcome, speedup, &slow(rule, speedup, ports, &packets));
    }

    /// Packets of one input for one output have the same times in all modes: with one queue per input, cell
    /// by cell, and with priority or preemption by short packets.
    #[test]
    fn waiting_times_of_one_input_do_not_depend_on_the_mode(
        speedup in speedups(),
        drawn in prop::collection::vec((0u64..12, 1u64..=12), 1..25),
    ) {
        let mut free = 0;
        let packets: Vec<Packet> = drawn
            .into_iter()
            .map(|(gap, cells)| {
                let first = free + gap;
                free = first + cells;
                Packet { first, from: 0, cells }
            })
            .collect();
        let want = slow(Rule::CutThrough, speedup, 2, &packets);
        for arbiter in ["fifo", "fifo mode cell", "islip mode cell", "islip mode spf", "p_spf", "mwm"] {
            let outcome = run(&format!("{arbiter} speedup {speedup}"), 2, &packets);
            compare(&outcome, speedup, &want);
        }
    }
}
