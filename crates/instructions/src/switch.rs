//! The switch with P-SPF, at a load of 0.9 in bursts. A slot counts as a packet per port.

use std::path::PathBuf;

use giveway_qdisc::Streams;
use giveway_switch::traffic::SOURCES;
use giveway_switch::{Plan, Sim};
use serde_json::json;

use crate::workload::Workload;

/// Arbiter, number of ports, and number of slots.
const CASES: [(&str, usize, u64); 2] = [("p_spf", 16, 20_000), ("p_spf", 64, 4_000)];
/// Slots before the measurement.
const WARM: u64 = 2_000;

/// The workloads.
pub(crate) fn workloads() -> impl Iterator<Item = Workload> {
    CASES.into_iter().map(|(arbiter, ports, slots)| {
        let onoff = SOURCES.iter().find(|source| source.name == "onoff").expect("onoff is registered");
        let plan = Plan {
            ports,
            arbiter: arbiter.parse().expect("the arbiter is valid"),
            traffic: (onoff.from_json)(json!({ "load": 0.9 })).expect("onoff needs only a load"),
            slots: WARM + slots,
            warmup: 0,
            streams: Streams::new(1),
            folder: PathBuf::new(),
        };
        let mut sim = Sim::new(&plan).expect("the plan is valid");
        sim.step_to(WARM);
        let run = move || {
            sim.step_to(WARM + slots);
            slots
        };
        Workload { name: format!("switch, {arbiter} {ports}, slot"), run: Box::new(run) }
    })
}
