//! Traces of flows with reservations, for the tests of the disciplines that guarantee rates.

use qdisc::{Cx, FlowKey, Meta, Outbox, Packet, Qdisc, Rate, Site, Streams, Time};

use crate::Spec;
use crate::trace::trace_on;

/// The rates of flows A, B, C and D in [`MIXED`](crate::trace::MIXED), in bytes per ms at a link of 100.
const RATES: [u64; 4] = [40, 20, 20, 20];

/// The trace of the sorted and round-robin disciplines, with its reservations.
pub fn reserved_trace(spec: &str, arrivals: &str) -> String {
    reserved_trace_with(spec, 100, &RATES, arrivals)
}

/// A trace at a link of `bytes_per_ms`; the flows A, B and so on have reserved so many bytes per ms each, the others nothing.
pub fn reserved_trace_with(spec: &str, bytes_per_ms: u64, rates: &[u64], arrivals: &str) -> String {
    let site = Site::new(Rate::bit(bytes_per_ms * 8000), Streams::new(1));
    let qdisc = spec.parse::<Spec>().unwrap().build::<String>(&site).unwrap();
    trace_on(qdisc, bytes_per_ms, arrivals, |meta| reserve(meta, rates))
}

/// Gives a packet the reservation of its class.
pub fn reserve(meta: &mut Meta, rates: &[u64]) {
    meta.reserved = Rate::bit(rates.get(usize::from(meta.class)).copied().unwrap_or(0) * 8000);
}

/// Stamps that a small output array wraps round; at a link of 300, for the rates 100, 50, 75 and 75.
pub const W: &str = "0 A1 300, A2 300, A3 300, A4 300, D1 300; 1 B1 300, B2 300, C1 300, C2 300";

/// A flow that comes while slow ones wait; at a link of 300, for the rates 100, 6, 60 and 5.
pub const X: &str = "0 A1 300, A2 300, A3 300, A4 300, B1 300; 2.5 D1 300; 3.5 C1 300";

/// The order in which [`W`] leaves.
pub fn trace_w(spec: &str) -> String {
    order(&reserved_trace_with(spec, 300, &[100, 50, 75, 75], W))
}

/// The order in which [`X`] leaves.
pub fn trace_x(spec: &str) -> String {
    order(&reserved_trace_with(spec, 300, &[100, 6, 60, 5], X))
}

/// Only the names: every packet takes one unit.
fn order(trace: &str) -> String {
    let (sent, dropped) = trace.split_once('|').expect("a trace has two parts");
    assert_eq!(dropped, "", "nothing is lost");
    let names: Vec<&str> =
        sent.split_whitespace().map(|each| each.split('[').next().expect("a name")).collect();
    names.join(" ")
}

/// How many of the first departures are of each of four flows with rates 100, 50, 75 and 75 at a link of 300, which have 400 packets
/// of 300 queued each.
pub fn first_departures(spec: &str, departures: usize) -> [u32; 4] {
    let site = Site::new(Rate::bit(300 * 8000), Streams::new(1));
    let mut qdisc = spec.parse::<Spec>().unwrap().build::<()>(&site).unwrap();
    let mut out = Outbox::default();
    for _ in 0..400 {
        for class in 0..4 {
            let mut pkt = Packet::new(FlowKey(u64::from(class)), 300, ());
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
