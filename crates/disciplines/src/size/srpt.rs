//! Shortest remaining processing time: the flow with the least left to send goes first. Senders provide the
//! remainder.
//!
//! # Principles
//! - Service of the flow that ends soonest minimises the mean flow completion time. It needs an oracle:
//!   senders write the remainder of the flow into their packets. LAS, EFD and Run2C estimate this number, so
//!   SRPT is their reference.
//! - Flows compete, not packets. Within a flow the remainder falls from packet to packet, so the packet with
//!   the smallest one is the flow's last: sending it first would reverse every flow. The remainder of a flow
//!   is the value in its earliest packet: all bytes that must still pass this link. The flow with the
//!   smallest remainder sends that packet.
//! - When the queue is full, the flow with the most left loses its last packet.
//! - There is state for queued flows only.
//! - Flows without a remainder come last, and take turns.
//!
//! # Deviations
//! - pFabric ranks a flow by the smallest remainder of its packets, and sends the earliest. Then a flow that
//!   is queued whole ranks by its last packet, whatever its size, and two of them are not distinguished. Here
//!   the earliest packet counts.
//! - Among flows with an equal remainder, the one that has had it longest goes first, until it ends. Flows
//!   without a remainder always tie, and so do flows with 4 GiB or more left and flows without an end, for
//!   packets carry no larger number: they take turns, packet by packet.
//! - pFabric's senders start at the rate of the link and hardly react to loss. Here the scenario defines the
//!   senders.
//!
//! # Cost
//! - A table look-up per packet in and one when a flow empties, and O(log flows) per packet out, for its flow
//!   moves up.
//! - 88 bytes per flow that has packets.
//!
//! # References
//! - L. Schrage, "A Proof of the Optimality of the Shortest Remaining Processing Time Discipline", Operations
//!   Research 16(3), 1968.
//! - M. Alizadeh et al., "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013: section 4.1 for
//!   the switch, and for why the earliest packet of the best flow.

use giveway_qdisc::blocks::{FlowMap, Ranked};
use giveway_qdisc::{
    Backlog, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, LinkContext, List, Meta, Next, Packet,
    Place, Properties, Qdisc,
};
use giveway_qdisc::{Slots, check_limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Discipline, Needs};

/// Parameters of `srpt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity for all flows together, in packets or in bytes.
    pub limit: Limit,
}

impl Default for Config {
    fn default() -> Config {
        Config { limit: Limit::Packets(300) }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "shortest remaining processing time: the flow with the least left to send, which its sender provides";
    const NEEDS: Needs = Needs::Sizes;
    type Qdisc<P: 'static> = Srpt<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Srpt<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let capacity = self.limit.initial_capacity();
        Ok(Srpt {
            limit: self.limit,
            by_key: FlowMap::with_capacity(capacity),
            flows: Ranked::with_capacity(capacity),
            packets: Slots::with_capacity(capacity),
            backlog: Backlog::ZERO,
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        vec![Config { limit: Limit::Packets(5) }, Config { limit: Limit::Bytes(6000) }]
    }
}

/// Flows that have packets.
pub struct Srpt<P> {
    limit: Limit,
    /// Place of each flow with packets.
    by_key: FlowMap<Place>,
    /// Flows by their remainder.
    flows: Ranked<Flow>,
    packets: Slots<Packet<P>>,
    backlog: Backlog,
}

/// A flow that has packets.
#[derive(Debug)]
struct Flow {
    key: FlowKey,
    queue: List,
}

const _: () = assert!(Ranked::<Flow>::bytes_per_item() == 56);

/// Rank of a flow without a remainder: behind all others.
const UNKNOWN: u64 = u32::MAX as u64 + 1;
/// The remainder of the flow that a packet carries, in bytes.
#[inline]
fn rank(meta: &Meta) -> u64 {
    if meta.remaining == 0 { UNKNOWN } else { u64::from(meta.remaining) }
}

impl<P> Qdisc<P> for Srpt<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if !self.limit.admits(Backlog::ZERO, pkt.bytes()) {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        let flow = self.append(pkt);
        if !self.limit.allows(self.backlog) {
            self.push_out(flow, cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        let Some((_, place)) = self.flows.best() else { return Next::Empty };
        let flow = self.flows.get_mut(place).expect("the best flow is in the queue");
        let pkt = self.packets.pop_front(&mut flow.queue).expect("a flow in the queue holds a packet");
        self.backlog.sub(pkt.bytes());
        match self.packets.front(&flow.queue).map(|next| rank(&next.meta)) {
            Some(left) => self.flows.rerank(place, left),
            None => self.forget(place),
        }
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some((_, mut flow)) = self.flows.pop() {
            while let Some(pkt) = self.packets.pop_front(&mut flow.queue) {
                cx.drop(pkt, DropReason::Reset);
            }
        }
        self.by_key.clear();
        self.backlog = Backlog::ZERO;
    }

    fn flow_table(&self) -> FlowTable {
        self.by_key.table().with(Ranked::<Flow>::bytes_per_item(), self.flows.bytes())
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let left = |end: Option<(u64, Place)>| end.map_or(0.0, |(rank, _)| rank as f64);
        visit("least_left_bytes", left(self.flows.best()));
        visit("most_left_bytes", left(self.flows.worst()));
    }
}

impl<P> Srpt<P> {
    /// Puts a packet at the end of its flow. The first packet of a flow determines its remainder.
    #[inline]
    fn append(&mut self, pkt: Packet<P>) -> Place {
        let Srpt { by_key, flows, packets, .. } = self;
        let (key, left) = (pkt.meta.flow, rank(&pkt.meta));
        let place = *by_key.entry(key, || flows.push(left, Flow { key, queue: List::default() }));
        let flow = flows.get_mut(place).expect("a flow with a packet queued has an entry");
        self.backlog.add(pkt.bytes());
        packets.push_back(&mut flow.queue, pkt);
        place
    }

    /// Removes a flow without packets.
    #[inline]
    fn forget(&mut self, place: Place) {
        let (_, flow) = self.flows.remove(place);
        self.by_key.remove(flow.key);
    }

    /// Drops the last packet of the flow with the largest remainder until the backlog is within the limit.
    /// `arrival` is the flow of the packet that just arrived.
    fn push_out(&mut self, arrival: Place, cx: &mut Cx<'_, P>) {
        while !self.limit.allows(self.backlog) {
            let (_, place) = self.flows.worst().expect("what exceeds the limit is queued");
            let flow = self.flows.get_mut(place).expect("the worst flow is in the queue");
            let victim = self.packets.pop_back(&mut flow.queue).expect("a flow in the queue holds a packet");
            self.backlog.sub(victim.bytes());
            if flow.queue.is_empty() {
                self.forget(place);
            }
            // The arriving packet is the last of its flow, and without it the backlog is within the limit.
            let why = if place == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(victim, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trace::trace_on;
    use giveway_qdisc::{Outbox, Rate, Streams, Time};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn built<P: 'static>(limit: Limit) -> Srpt<P> {
        Config { limit }.build(&LinkContext::new(Rate::mbit(8), Streams::new(1))).unwrap()
    }

    /// Flow A has 4,000 bytes in all, B 1,500, C 500; the senders of D and E provide no remainder.
    fn trace(limit: &str, arrivals: &str) -> String {
        let dress = |meta: &mut Meta| {
            let size = [4000, 1500, 500].get(usize::from(meta.class)).copied().unwrap_or(meta.offset);
            meta.remaining = size - meta.offset;
        };
        trace_on(Box::new(built(limit.parse().unwrap())), 1000, arrivals, dress)
    }

    #[test]
    fn the_flow_with_the_smallest_remainder_is_served_first() {
        // When the link is free at 1.0, the remainders are 3,000 of A, 1,500 of B and 500 of C.
        assert_eq!(
            trace(
                "300p",
                "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 B1 1000; 0.4 B2 500; 0.5 C1 500; 1.8 A4 1000"
            ),
            "A1[0-1] C1[1-1.5] B1[1.5-2.5] B2[2.5-3] A2[3-4] A3[4-5] A4[5-6] |"
        );
        // A's remainder is 1,000 when B arrives with 1,500.
        assert_eq!(
            trace("300p", "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 2.5 B1 1000; 2.6 A4 1000"),
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] B1[4-5] |"
        );
    }

    #[test]
    fn the_flow_with_the_largest_remainder_loses_packets() {
        // The remainders are 3,000 of A, 1,500 of B and 500 of C; D has none.
        assert_eq!(
            trace("2p", "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 B1 1000; 0.4 C1 500; 0.5 D1 100"),
            "A1[0-1] C1[1-1.5] B1[1.5-2.5] | A3@0.3 A2@0.4 D1@0.5"
        );
        assert_eq!(
            trace("2000b", "0 A1 1000; 0.1 A2 1000; 0.2 A3 900; 0.3 B1 1200; 0.4 C1 2100"),
            "A1[0-1] B1[1-2.2] | A3@0.3 A2@0.3 C1@0.4"
        );
    }

    #[test]
    fn flows_without_a_remainder_are_served_last_in_turns() {
        assert_eq!(
            trace(
                "300p",
                "0 A1 1000; 0.1 D1 100; 0.2 D2 100; 0.3 D3 100; 0.4 E1 100; 0.5 E2 100; 0.6 A2 1000"
            ),
            "A1[0-1] A2[1-2] D1[2-2.1] E1[2.1-2.2] D2[2.2-2.3] E2[2.3-2.4] D3[2.4-2.5] |"
        );
    }

    /// Remainder of a flow, the operation since which it has this remainder, its key, and the remainder and
    /// number of each of its packets.
    type Listed = (u64, u64, u64, VecDeque<(u64, u64)>);

    /// The rule with lists, as a reference.
    struct Reference {
        flows: Vec<Listed>,
    }

    impl Reference {
        fn enqueue(&mut self, number: u64, flow: u64, left: u64, serial: u64) {
            match self.flows.iter_mut().find(|each| each.2 == flow) {
                Some(known) => known.3.push_back((left, serial)),
                None => self.flows.push((left, number, flow, VecDeque::from([(left, serial)]))),
            }
            self.flows.sort();
        }
        fn dequeue(&mut self, number: u64) -> Option<u64> {
            let best = self.flows.first_mut()?;
            let (_, serial) = best.3.pop_front().unwrap();
            if let Some((left, _)) = best.3.front() {
                (best.0, best.1) = (*left, number);
            }
            self.settle();
            Some(serial)
        }
        fn push_out(&mut self) -> u64 {
            let (_, serial) = self.flows.last_mut().unwrap().3.pop_back().unwrap();
            self.settle();
            serial
        }
        fn settle(&mut self) {
            self.flows.retain(|each| !each.3.is_empty());
            self.flows.sort();
        }
    }

    proptest! {
        /// The departures and drops equal the reference's for any remainders that senders provide, and the
        /// packets of a flow stay in order.
        #[test]
        fn equals_the_reference(ops in prop::collection::vec((0..8u8, 0..6u64, 0..8u32), 1..400), limit in 1..20u64) {
            let mut srpt = built(Limit::Packets(limit));
            let mut reference = Reference { flows: Vec::new() };
            let mut out = Outbox::default();
            let mut last = [0; 6];
            for (serial, (kind, flow, left)) in (1u64..).zip(ops) {
                let mut cx = Cx::new(Time::ZERO, &mut out);
                if kind < 5 {
                    let mut pkt = Packet::new(FlowKey(flow), 100, serial);
                    pkt.meta.remaining = if left == 7 { u32::MAX } else { left };
                    let rank = rank(&pkt.meta);
                    srpt.enqueue(pkt, &mut cx);
                    reference.enqueue(serial, flow, rank, serial);
                    let queued: u64 = reference.flows.iter().map(|each| each.3.len() as u64).sum();
                    let dropped = (queued > limit).then(|| reference.push_out());
                    prop_assert_eq!(out.dropped.drain(..).map(|(pkt, _)| pkt.payload).next(), dropped);
                } else {
                    let sent = srpt.dequeue(&mut cx).packet().map(|pkt| (pkt.meta.flow.0 as usize, pkt.payload));
                    prop_assert_eq!(sent.map(|(_, serial)| serial), reference.dequeue(serial));
                    if let Some((flow, serial)) = sent {
                        prop_assert!(last[flow] < serial);
                        last[flow] = serial;
                    }
                }
                prop_assert_eq!(srpt.by_key.len(), reference.flows.len(), "the table has only the queued flows");
                prop_assert_eq!(srpt.flows.len(), reference.flows.len());
            }
        }

        /// Flows that are present at the start end in the order of their sizes, which minimises their mean
        /// completion time.
        #[test]
        fn flows_end_in_the_order_of_their_sizes(
            sizes in Just((1..12).collect::<Vec<u64>>()).prop_shuffle(),
            turns in prop::collection::vec(0..11usize, 0..100),
        ) {
            let mut srpt = built(Limit::Packets(1000));
            let mut out = Outbox::default();
            let mut cx = Cx::new(Time::ZERO, &mut out);
            let mut sent = [0; 11];
            let whole = (0..11).flat_map(|flow| [flow; 11]);
            // Their packets arrive in any order, but the first of each flow arrives before the link starts.
            for flow in turns.into_iter().chain(whole) {
                if sent[flow] < sizes[flow] {
                    let mut pkt = Packet::new(FlowKey(sizes[flow]), 1000, ());
                    pkt.meta.remaining = (sizes[flow] - sent[flow]) as u32 * 1000;
                    sent[flow] += 1;
                    srpt.enqueue(pkt, &mut cx);
                }
            }
            let left: Vec<u64> =
                std::iter::from_fn(|| srpt.dequeue(&mut cx).packet()).map(|pkt| pkt.meta.flow.0).collect();
            let by_size: Vec<u64> = (1..12).flat_map(|size| std::iter::repeat_n(size, size as usize)).collect();
            prop_assert_eq!(left, by_size);
        }
    }
}
