//! Traces of flows with reservations, for the tests of the disciplines that guarantee rates.

use giveway_qdisc::blocks::Ticks;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Meta, Outbox, Packet, Qdisc, Rate, Span, Streams, Time};
use proptest::prelude::*;

use crate::Spec;
use crate::testing::trace::{name_of, number_of, trace_on};

/// The rates of flows A, B, C and D in [`MIXED`](crate::testing::trace::MIXED), in bytes per ms at a link of
/// 100.
const RATES: [u64; 4] = [40, 20, 20, 20];

/// The trace of the sorted and round-robin disciplines, with its reservations.
pub fn reserved_trace(spec: &str, arrivals: &str) -> String {
    reserved_trace_with(spec, 100, &RATES, arrivals)
}

/// A trace at a link of `bytes_per_ms`. Flow A has reserved the first of the rates, in bytes per ms, and so
/// on; the other flows have none.
pub fn reserved_trace_with(spec: &str, bytes_per_ms: u64, rates: &[u64], arrivals: &str) -> String {
    let context = LinkContext::new(Rate::bit(bytes_per_ms * 8000), Streams::new(1));
    let qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
    trace_on(qdisc, bytes_per_ms, arrivals, |meta| reserve(meta, rates))
}

/// Gives a packet the reservation of its class.
pub fn reserve(meta: &mut Meta, rates: &[u64]) {
    meta.reserved = Rate::bit(rates.get(usize::from(meta.class)).copied().unwrap_or(0) * 8000);
}

/// Stamps that a small output array wraps round: (time in ms, flow, packets), for the rates 100, 50, 75 and
/// 75 at a link of 300.
const W: &[(f64, char, u32)] = &[(0.0, 'A', 4), (0.0, 'D', 1), (1.0, 'B', 2), (1.0, 'C', 2)];

/// A flow that arrives while slow ones are backlogged, for the rates 100, 6, 60 and 5.
const X: &[(f64, char, u32)] = &[(0.0, 'A', 4), (0.0, 'B', 1), (2.5, 'D', 1), (3.5, 'C', 1)];

/// A slow flow's stamp that is further ahead than 101 slots, 150, next to 20 packets whose stamps are 3, 6
/// and so on.
const WRAP: &[(f64, char, u32)] = &[(0.0, 'A', 20), (0.0, 'B', 1)];

/// The order in which the trace W of the specification leaves.
pub fn trace_w(spec: &str) -> String {
    order(spec, &[100, 50, 75, 75], W)
}

/// The order in which the trace X of the specification leaves.
pub fn trace_x(spec: &str) -> String {
    order(spec, &[100, 6, 60, 5], X)
}

/// Number of A's 20 packets that leave before B's.
pub fn before_the_wrapped(spec: &str) -> usize {
    let order = order(spec, &[100, 2], WRAP);
    order.split(' ').position(|name| name == "B1").expect("it leaves")
}

/// The order of departures of packets of 300 bytes at a link of one packet per ms. Unlike in the other
/// traces, and as in the specification, a packet that arrives when the link finishes a packet may be the next
/// one.
fn order(spec: &str, rates: &[u64], arrivals: &[(f64, char, u32)]) -> String {
    let context = LinkContext::new(Rate::bit(300 * 8000), Streams::new(1));
    let mut qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
    let mut out = Outbox::default();
    let mut sent = [0; 26];
    let mut names = Vec::new();
    let mut rest = arrivals.iter().peekable();
    for ms in 0..100u64 {
        while let Some((at, flow, packets)) = rest.next_if(|(at, ..)| *at <= ms as f64) {
            let now = Time::us((at * 1000.0) as u64);
            let class = *flow as u16 - 'A' as u16;
            for _ in 0..*packets {
                sent[usize::from(class)] += 1;
                let name = format!("{flow}{}", sent[usize::from(class)]);
                let mut pkt = Packet::new(FlowKey(u64::from(class)), 300, number_of(&name));
                pkt.meta.class = class;
                reserve(&mut pkt.meta, rates);
                qdisc.enqueue(pkt, &mut Cx::new(now, &mut out));
            }
        }
        let left = qdisc.dequeue(&mut Cx::new(Time::ms(ms), &mut out)).packet();
        names.extend(left.map(|pkt| name_of(pkt.payload)));
    }
    assert!(out.dropped.is_empty() && rest.next().is_none());
    names.join(" ")
}

/// Number of packets of each flow among the first departures. Four flows with rates 100, 50, 75 and 75 at a
/// link of 300 have 400 packets of 300 bytes queued each.
pub fn first_departures(spec: &str, departures: usize) -> [u32; 4] {
    let context = LinkContext::new(Rate::bit(300 * 8000), Streams::new(1));
    let mut qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
    let mut out = Outbox::default();
    for _ in 0..400 {
        for class in 0..4 {
            let mut pkt = Packet::new(FlowKey(u64::from(class)), 300, 0);
            pkt.meta.class = class;
            reserve(&mut pkt.meta, &[100, 50, 75, 75]);
            qdisc.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut out));
        }
    }
    let mut got = [0; 4];
    for unit in 0..departures {
        let pkt = qdisc.dequeue(&mut Cx::new(Time::ms(unit as u64), &mut out)).packet();
        got[usize::from(pkt.expect("much is queued").meta.class)] += 1;
    }
    got
}

/// The definition of a discipline, as lists without indexes.
pub trait Model {
    /// Adds an arriving packet: its flow, numbered in the order of the first packets; its own number; its
    /// time at the rate of its flow.
    fn arrives(&mut self, flow: usize, serial: u32, cost: Ticks, now: Time);
    /// Removes the packet that leaves, and returns its number.
    fn leaves(&mut self, now: Time) -> Option<u32>;
}

/// Arrivals and departures of five flows: microseconds since the previous operation, true for an arrival, the
/// flow, and the length in hundreds of bytes.
pub fn operations() -> impl Strategy<Value = Vec<(u64, bool, u16, u32)>> {
    // Many operations are at the same time or at whole milliseconds, so that there are ties.
    let gap = prop_oneof![4 => Just(0u64), 2 => (1..4u64).prop_map(|ms| 1000 * ms), 1 => 1..3000u64];
    let arrives = prop_oneof![3 => Just(true), 2 => Just(false)];
    prop::collection::vec((gap, arrives, 0..5u16, 1..10u32), 1..250)
}

/// Compares each departure of a discipline with its model.
pub fn follows(
    spec: &str,
    model: &mut impl Model,
    ops: &[(u64, bool, u16, u32)],
) -> Result<(), TestCaseError> {
    let rates = [100, 6, 60, 5, 50];
    let context = LinkContext::new(Rate::kbit(2400), Streams::new(1));
    let mut qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
    let mut out = Outbox::default();
    let mut known: Vec<u16> = Vec::new();
    let mut now = Time::ZERO;
    for (serial, (us, arrives, flow, hundreds)) in (0u32..).zip(ops) {
        now += Span::us(*us);
        let mut cx = Cx::new(now, &mut out);
        if *arrives {
            let mut pkt = Packet::new(FlowKey(u64::from(*flow)), 100 * hundreds, u64::from(serial));
            pkt.meta.class = *flow;
            reserve(&mut pkt.meta, &rates);
            let number = known.iter().position(|known| known == flow).unwrap_or_else(|| {
                known.push(*flow);
                known.len() - 1
            });
            model.arrives(number, serial, Ticks::to_send(100 * hundreds, pkt.meta.reserved), now);
            qdisc.enqueue(pkt, &mut cx);
        } else {
            let expected = model.leaves(now).map(u64::from);
            prop_assert_eq!(qdisc.dequeue(&mut cx).packet().map(|pkt| pkt.payload), expected);
        }
    }
    Ok(())
}
