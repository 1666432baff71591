//! Small cases, slot by slot, to be checked by hand against section 3 of the P-SPF paper and the iSLIP
//! article.

use giveway_qdisc::Streams;
use giveway_switch::traffic::{SOURCES, TrafficSpec};
use giveway_switch::{Plan, Sim};

/// Packets as (slot, from, to, cells).
fn packets(packets: &[(u64, u16, u16, u32)]) -> TrafficSpec {
    let listed: Vec<serde_json::Value> = packets
        .iter()
        .map(|(slot, from, to, cells)| serde_json::json!({ "slot": slot, "from": from, "to": to, "cells": cells }))
        .collect();
    let list = SOURCES.iter().find(|source| source.name == "list").unwrap();
    (list.from_json)(serde_json::json!({ "packets": listed })).unwrap()
}

fn trace(arbiter: &str, ports: usize, slots: u64, traffic: &[(u64, u16, u16, u32)]) -> String {
    let plan = Plan {
        ports,
        arbiter: arbiter.parse().unwrap(),
        traffic: packets(traffic),
        slots,
        warmup: 0,
        streams: Streams::new(1),
        folder: std::path::PathBuf::new(),
    };
    let mut sim = Sim::new(&plan).unwrap();
    let lines: Vec<String> = (0..slots).map(|_| sim.trace_slot().to_string()).collect();
    lines.join("\n")
}

/// Figure 2 of the paper: long packets cross 1>1 and 2>0 when a short one arrives for 1>0. Both stop for a
/// slot, and output 1 idles although no other packet uses it.
#[test]
fn a_short_packet_breaks_two_connections() {
    insta::assert_snapshot!(trace("p_spf", 3, 8, &[(0, 0, 1, 2), (0, 1, 1, 3), (0, 2, 0, 6), (3, 1, 0, 1)]));
}

/// In parallel phases input 0 is free in slot 3 and matches its long packet with output 1, while a short
/// packet of input 1 crosses to that output. The new match holds both ports and sends its first cell in slot
/// 4.
#[test]
fn parallel_phases_hold_a_new_match() {
    let packets = [(3, 0, 1, 2), (3, 1, 1, 1)];
    insta::assert_snapshot!(trace("p_spf", 2, 6, &packets));
    insta::assert_snapshot!(trace("p_spf phases sequential", 2, 6, &packets));
}

/// Three inputs request output 0. Pointers slip apart, and each input gets its turn.
#[test]
fn islip_pointers_slip() {
    let all: Vec<(u64, u16, u16, u32)> = (0..3).flat_map(|from| [(0, from, 0, 1), (0, from, 1, 1)]).collect();
    insta::assert_snapshot!(trace("islip iterations 1", 3, 4, &all));
}
