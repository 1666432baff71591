//! Departures and drops of a discipline under random operations, for comparisons of disciplines.

use giveway_qdisc::contract::{Event, Op, drive};
use giveway_qdisc::{Limit, LinkContext, Rate, Streams};
use proptest::prelude::*;

use crate::{Spec, fifo};

/// A link of 8 Mbit/s, which sends a packet of 1000 bytes in 1 ms.
pub fn context() -> LinkContext {
    LinkContext::new(Rate::mbit(8), Streams::new(1))
}

/// Random arrivals of one flow, and departures.
pub fn one_flow() -> impl Strategy<Value = Vec<Op>> {
    let op = (0..8u8, any::<u16>()).prop_map(|(kind, bytes)| match kind {
        0..5 => Op::Enqueue { flow: 0, bytes, class: 0, ecn: false },
        _ => Op::Dequeue,
    });
    prop::collection::vec(op, 1..300)
}

/// Random arrivals of up to 256 flows, departures and pauses.
pub fn any_flows() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (any::<u8>(), any::<u16>())
            .prop_map(|(flow, bytes)| Op::Enqueue { flow, bytes: bytes / 4 * 4, class: 0, ecn: false }),
        2 => Just(Op::Dequeue),
        1 => any::<u16>().prop_map(Op::Wait),
    ];
    prop::collection::vec(op, 1..300)
}

/// The operations with all arrivals in one flow of class 0.
pub fn in_one_flow(ops: &[Op]) -> Vec<Op> {
    let one = |op: &Op| match *op {
        Op::Enqueue { bytes, .. } => Op::Enqueue { flow: 1, bytes, class: 0, ecn: false },
        other => other,
    };
    ops.iter().map(one).collect()
}

/// Departures and drops on a link of 10 Mbit/s.
///
/// # Panics
/// If the spec cannot be built, or the discipline violates the contract.
pub fn events(spec: &Spec, ops: &[Op]) -> Vec<Event> {
    let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
    drive(&mut spec.build_numbered(&context).unwrap(), spec.properties(&context), ops).unwrap()
}

/// Departures and drops of `fifo` with this limit.
pub fn fifo_events(limit: Limit, ops: &[Op]) -> Vec<Event> {
    events(&Spec::fifo(fifo::Config { limit, ..fifo::Config::default() }), ops)
}

/// The error of a spec that cannot be built for a link of 10 Mbit/s.
///
/// # Panics
/// If it can be built.
pub fn build_error(spec: &str) -> giveway_qdisc::Invalid {
    let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
    let built = spec.parse::<Spec>().unwrap().build_numbered(&context);
    built.err().unwrap_or_else(|| panic!("{spec} can be built"))
}
