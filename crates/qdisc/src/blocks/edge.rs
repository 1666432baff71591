//! An edge router: it distinguishes short from long flows, measures the rate of each long flow, and writes
//! the rate on its packets, so that core routers need no state per flow.
//!
//! CSFQ (1998) measures every flow; FPIP (2007, section 2.2.1) only those that have sent more than a
//! threshold, since most flows are short and most bytes are in long ones. A threshold of 0 is CSFQ.
//!
//! Choices where the papers are silent:
//!
//! - **The packet that crosses the threshold** belongs to a long flow: it is counted before the comparison
//!   ("once the counter exceeds").
//! - **The rate at the crossing** starts at 0, and its first interval is the time since the previous packet
//!   of the flow. So the time of the last packet is kept for short flows, too.
//! - **The end of a flow.** A sweep every second removes flows that have been idle for 5 s. A later packet
//!   starts a new, short flow.
//! - **The number of flows** has a bound; at the bound, the flows that have been idle longest are removed
//!   ([`RecentFlows`]).

use std::num::NonZeroU32;

use super::{AveragedRate, Averaging, Memory, RecentFlows};
use crate::label::Label;
use crate::packet::FlowKey;
use crate::qdisc::FlowTable;
use crate::units::{Rate, Time};

/// The flows of an edge router.
#[derive(Debug)]
pub struct Edge {
    averaging: Averaging,
    flows: RecentFlows<Flow>,
}

/// A recent flow.
#[derive(Debug)]
struct Flow {
    /// Rate in bit/s; 0 while the flow is short.
    rate: f64,
    /// Bytes of the last arrivals that do not count yet.
    pending: u32,
    /// Bytes sent plus one, saturating.
    sent: NonZeroU32,
}

/// Two flows share a cache line.
const _: () = assert!(RecentFlows::<Flow>::bytes_per_slot() == 32);

impl Flow {
    const NEW: Flow = Flow { rate: 0.0, pending: 0, sent: NonZeroU32::MIN };
}

impl Edge {
    /// An edge router without flows.
    pub fn new(averaging: Averaging, memory: Memory) -> Edge {
        Edge { averaging, flows: RecentFlows::new(memory, |_| false) }
    }

    /// Label of a packet that arrives now. A flow is long if it has sent more than `threshold` bytes.
    #[inline]
    pub fn label(&mut self, flow: FlowKey, bytes: u32, threshold: u32, now: Time) -> Label {
        self.flows.sweep(now);
        let (before, flow) = self.flows.seen_since(flow, now, || Flow::NEW);
        flow.sent = flow.sent.saturating_add(bytes);
        if flow.sent.get() - 1 <= threshold {
            return Label::SHORT;
        }
        let mut average = AveragedRate { rate: flow.rate, pending: flow.pending };
        self.averaging.step(before, now).apply(&mut average, bytes);
        (flow.rate, flow.pending) = (average.rate, average.pending);
        Label::of(Rate::bit(average.rate as u64))
    }

    /// Size of the state.
    pub fn table(&self) -> FlowTable {
        self.flows.table()
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        self.flows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::SameInstant;
    use crate::units::Span;

    fn edge(idle: Span) -> Edge {
        let averaging = Averaging::new("window", Span::ms(100), SameInstant::Limit).unwrap();
        Edge::new(averaging, Memory { sweep: Span::s(1), idle, flows: 1000 })
    }

    /// Computed by hand with a threshold of 24,000 bits and K = 100 ms.
    #[test]
    fn short_until_the_threshold_is_crossed_then_the_rate() {
        let mut edge = edge(Span::s(5));
        let packets =
            [(0, 1000), (10, 1000), (20, 1000), (30, 1000), (40, 1000), (50, 500), (150, 1000), (160, 1000)];
        let labels = packets.map(|(ms, bytes)| edge.label(FlowKey(1), bytes, 3000, Time::ms(ms)));
        assert_eq!(labels[..3], [Label::SHORT; 3]);
        let rates = labels[3..].iter().map(|label| label.rate().as_bit()).collect::<Vec<_>>();
        assert_eq!(rates, [76_130, 145_015, 169_280, 112_844, 178_235]);
    }

    #[test]
    fn ten_packets_of_a_kilobyte_are_short_at_the_default_threshold() {
        let mut edge = edge(Span::s(5));
        let labels: Vec<Label> = (0..12).map(|n| edge.label(FlowKey(1), 1000, 10_000, Time::ms(n))).collect();
        assert!(labels[..10].iter().all(|label| *label == Label::SHORT));
        assert!(labels[10..].iter().all(|label| label.rate().as_bit() > 0));
    }

    #[test]
    fn without_a_threshold_every_packet_has_a_rate() {
        let mut edge = edge(Span::s(5));
        assert_eq!(edge.label(FlowKey(1), 1000, 0, Time::ms(5)).rate(), Rate::bit(80_000));
        assert_eq!(edge.label(FlowKey(1), 1000, 0, Time::ms(5)).rate(), Rate::bit(160_000));
    }

    #[test]
    fn a_flow_that_was_idle_starts_as_a_short_flow() {
        let mut edge = edge(Span::s(5));
        let mut at = |ms| edge.label(FlowKey(1), 1000, 1500, Time::ms(ms));
        assert_eq!(at(0), Label::SHORT);
        assert!(at(100).rate().as_bit() > 0);
        // Sweeps are at whole seconds: at 5 s the flow was idle for 4.9 s only, so it is in the table at 5.5
        // s.
        assert!(at(5_500).rate().as_bit() > 0);
        assert_eq!(at(11_500), Label::SHORT);
        assert_eq!(edge.table().flows, 1);
    }
}
