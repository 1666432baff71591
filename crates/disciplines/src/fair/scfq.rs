//! Self-clocked fair queueing: packets leave in the order in which a fair link would finish them, and the
//! packet on the wire defines virtual time.
//!
//! # Principles
//! - Each packet carries a tag: where its flow's last packet ended, or now, whichever is later, plus its
//!   length over the weight of its class. The lowest tag leaves next; of equal tags the earliest arrival.
//! - Virtual time is the tag of the packet on the wire. Weighted fair queueing would simulate a fluid link to
//!   compute it; here the queue clocks itself.
//! - Over any time in which two flows have packets queued, their service per weight differs by at most one
//!   packet of each. With equal lengths and weights it is a round robin.
//! - When the link becomes idle, virtual time starts again from zero, and no flow is ahead of another.
//! - The reaction to a full buffer is not part of the schedule, but as important. `drop tail` refuses the
//!   arriving packet, so a flow that sends little has the losses of a fifo. `drop max_tag` drops the highest
//!   tag, which is the flow furthest ahead of its share. `drop longest` drops the last packet of the flow
//!   with the most bytes queued.
//!
//! # Deviations
//! - A flow whose last packet is dropped continues from the start of that packet.
//! - A flow is forgotten with its last queued packet. The tag of that packet is then virtual time, so the
//!   flow would start from there in any case. So the table is never larger than the queue.
//! - Weights are whole numbers by class, not rates by flow, so that tags are exact: lengths are counted in a
//!   unit that every weight divides.
//! - The EFD paper states that its SCFQ behaves like a fifo without a suitable buffer policy, but not which
//!   policy it used. So `tail` is the default, and the others are for comparison.
//! - Only the abstract of the paper was available.
//!
//! # Cost
//! - One table look-up per packet in and one when a flow empties, and O(log n) for n packets queued at either
//!   end of the queue or in its middle. `drop longest` adds O(log flows), amortised over departures.
//! - 80 bytes per flow that has packets; 32 more per packet than a fifo. `drop longest` adds 24 per flow.
//!
//! # References
//! - S. J. Golestani, "A Self-Clocked Fair Queueing Scheme for Broadband Applications", INFOCOM 1994.
//! - J. Chen, M. Heusse, G. Urvoy-Keller, "EFD: An Efficient Low-Overhead Scheduler", NETWORKING 2011:
//!   section 5.4 for its losses with small buffers.

use giveway_qdisc::blocks::{FlowMap, LongestQueue, Rank, Ranked, Weights};
use giveway_qdisc::{
    Backlog, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, LinkContext, List, Next, Packet, Place,
    Properties, Qdisc,
};
use giveway_qdisc::{Slots, check_limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::common::admission::refusal;

/// Parameters of `scfq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity for all flows together, in packets or in bytes.
    pub limit: Limit,
    /// The weight of a flow of class 0, 1, 2 and so on; classes beyond the list have weight 1.
    pub weights: Vec<u32>,
    /// The packet that is dropped when the buffer is full.
    pub drop: Victim,
}

/// The packet that a full buffer drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Victim {
    /// The arriving packet.
    Tail,
    /// The packet with the highest tag.
    MaxTag,
    /// The newest packet of the flow with the most bytes.
    Longest,
}

impl Default for Config {
    fn default() -> Config {
        Config { limit: Limit::Packets(300), weights: Vec::new(), drop: Victim::Tail }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "self-clocked fair queueing: the earliest virtual finish first, flows weighted by class";
    type Qdisc<P: 'static> = Scfq<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Scfq<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let capacity = self.limit.initial_capacity();
        Ok(Scfq {
            limit: self.limit,
            weights: Weights::new("weights", &self.weights)?,
            victim: self.drop,
            by_key: FlowMap::with_capacity(capacity),
            flows: Slots::with_capacity(capacity),
            backlogged: List::default(),
            comers: 0,
            longest: LongestQueue::with_capacity(if self.drop == Victim::Longest { capacity } else { 0 }),
            queue: Ranked::with_capacity(capacity),
            now: 0,
            backlog: Backlog::ZERO,
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        vec![
            Config { limit: Limit::Packets(5), ..plain.clone() },
            Config { limit: Limit::Packets(20), drop: Victim::MaxTag, weights: vec![4, 1, 6] },
            Config { limit: Limit::Bytes(6000), drop: Victim::MaxTag, ..plain.clone() },
            Config { limit: Limit::Bytes(6000), drop: Victim::Longest, ..plain },
        ]
    }
}

/// The queue and the flows in it.
pub struct Scfq<P> {
    limit: Limit,
    weights: Weights,
    victim: Victim,
    /// Place of each flow with packets.
    by_key: FlowMap<Place>,
    flows: Slots<Flow>,
    /// All flows with packets.
    backlogged: List,
    /// Counts the flows that became backlogged.
    comers: u64,
    /// Flows by queued bytes, for `drop longest`.
    longest: LongestQueue,
    /// Packets by tag.
    queue: Ranked<Tagged<P>>,
    /// Virtual time: the tag of the packet that left last.
    now: u64,
    backlog: Backlog,
}

/// A flow that has packets.
#[derive(Debug)]
struct Flow {
    key: FlowKey,
    /// Number of the flow in the order in which flows became backlogged.
    since: u64,
    /// Its backlog, in bytes.
    bytes: u64,
    /// Its backlog, in packets.
    packets: u32,
    /// Its last packet; none while the entry is created.
    last: Option<Place>,
}

const _: () = assert!(Slots::<Flow>::bytes_per_slot() == 48);

/// A packet in the queue.
struct Tagged<P> {
    pkt: Packet<P>,
    flow: Place,
    /// The previous packet of its flow, if it was queued at the arrival.
    before: Option<Place>,
}

/// Virtual time starts again from zero long before it would overflow.
const FAR: u64 = 1 << 62;

impl<P> Qdisc<P> for Scfq<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let refuses_arrivals = self.victim == Victim::Tail;
        if let Some(why) = refusal(pkt.bytes(), self.limit, self.backlog, refuses_arrivals) {
            return cx.drop(pkt, why);
        }
        let place = self.append(pkt);
        if !self.limit.allows(self.backlog) {
            self.push_out(place, cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        let Some((tag, Tagged { pkt, flow: place, .. })) = self.queue.pop() else {
            // The end of a busy period. No flow has packets, so there is no tag to forget.
            self.now = 0;
            return Next::Empty;
        };
        self.backlog.sub(pkt.bytes());
        self.now = tag;
        let flow = &mut self.flows[place];
        flow.bytes -= u64::from(pkt.bytes());
        flow.packets -= 1;
        if flow.packets == 0 {
            self.forget(place);
        }
        if self.now > FAR {
            self.start_again();
        }
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some((_, Tagged { pkt, .. })) = self.queue.pop() {
            cx.drop(pkt, DropReason::Reset);
        }
        while self.flows.pop_front(&mut self.backlogged).is_some() {}
        self.by_key.clear();
        self.longest.clear();
        (self.now, self.backlog) = (0, Backlog::ZERO);
    }

    fn flow_table(&self) -> FlowTable {
        self.by_key.table().with(Slots::<Flow>::bytes_per_slot(), self.flows.bytes())
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("virtual_time_bytes", self.weights.bytes(self.now));
    }
}

impl<P> Scfq<P> {
    /// Tags a packet and enqueues it.
    #[inline]
    fn append(&mut self, pkt: Packet<P>) -> Place {
        let Scfq { by_key, flows, backlogged, comers, .. } = self;
        let (key, bytes) = (pkt.meta.flow, pkt.bytes());
        let flow_at = *by_key.entry(key, || {
            *comers += 1;
            flows.push_back(backlogged, Flow { key, since: *comers, bytes: 0, packets: 0, last: None })
        });
        let flow = &mut flows[flow_at];
        // The end of the flow's last packet. That is still queued, so its end is later than virtual time.
        let start = flow.last.map_or(self.now, |last| self.queue.rank(last));
        flow.bytes += u64::from(bytes);
        flow.packets += 1;
        let tag = start + self.weights.cost(&pkt.meta);
        let place = self.queue.push(tag, Tagged { pkt, flow: flow_at, before: flow.last });
        flow.last = Some(place);
        if self.victim == Victim::Longest {
            self.longest.record_growth(flow_at.index(), flow.rank());
        }
        self.backlog.add(bytes);
        place
    }

    /// Removes a flow without packets.
    #[inline]
    fn forget(&mut self, flow: Place) {
        let gone = self.flows.remove(&mut self.backlogged, flow);
        self.by_key.remove(gone.key);
    }

    /// Drops the last packets of flows until the backlog is within the limit. `arrival` is the place of the
    /// packet that just arrived.
    fn push_out(&mut self, arrival: Place, cx: &mut Cx<'_, P>) {
        while !self.limit.allows(self.backlog) {
            let place = self.victim().expect("what exceeds the limit is queued");
            let (_, Tagged { pkt, flow: flow_at, before }) = self.queue.remove(place);
            self.backlog.sub(pkt.bytes());
            let flow = &mut self.flows[flow_at];
            flow.bytes -= u64::from(pkt.bytes());
            flow.packets -= 1;
            // The flow's next packet starts at the start of the dropped packet.
            flow.last = before;
            if flow.packets == 0 {
                self.forget(flow_at);
            }
            // Without the arriving packet the backlog is within the limit, so it is the last one dropped, if
            // at all.
            let why = if place == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(pkt, why);
        }
    }

    /// The packet that a full buffer drops: always the last of its flow.
    fn victim(&mut self) -> Option<Place> {
        match self.victim {
            Victim::MaxTag | Victim::Tail => self.queue.worst().map(|(_, place)| place),
            Victim::Longest => {
                let flows = &self.flows;
                let rank = |index| flows.place(index).map(|place| flows[place].rank());
                let longest = self.longest.longest(rank)?;
                flows[flows.place(longest)?].last
            }
        }
    }

    /// Moves virtual time back to zero, and all tags by as much.
    #[cold]
    fn start_again(&mut self) {
        let past = std::mem::take(&mut self.now);
        self.queue.lower(past);
    }
}

impl Flow {
    /// Rank of a flow; of flows with equal backlog the one that became backlogged first ranks higher.
    #[inline]
    fn rank(&self) -> Rank {
        Rank { length: self.bytes, ticket: self.since }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::events::{events, fifo_events, one_flow};
    use crate::testing::trace::{T1, furthest_apart, trace};
    use giveway_qdisc::{Outbox, Rate, Streams, Time};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_earliest_finish_leaves_first() {
        // Tags: A2 2000, A3 3000, A4 4000, B1 max(1000, 0) + 500, B2 2000 (after A2, which came first), A6
        // 5000, B3 2500.
        assert_eq!(
            trace("scfq limit 4p", 1000, T1),
            "A1[0-1] B1[1-1.5] A2[1.5-2.5] B2[2.5-3] B3[3-3.5] A3[3.5-4.5] A4[4.5-5.5] A6[5.5-6.5] | A5@1.3 C1@1.4"
        );
    }

    #[test]
    fn the_flow_furthest_ahead_loses_packets() {
        // As above until C1 arrives (tag 2500): it pushes out A4, so A6 has the tag 4000. B3 has 2500, after
        // C1.
        let expected = "A1[0-1] B1[1-1.5] A2[1.5-2.5] B2[2.5-3] C1[3-4] B3[4-4.5] A3[4.5-5.5] A6[5.5-6.5] | A5@1.3 A4@1.4";
        assert_eq!(trace("scfq limit 4p drop max_tag", 1000, T1), expected);
        assert_eq!(trace("scfq limit 4p drop longest", 1000, T1), expected, "A has most bytes queued, too");
        // B's packet is the larger one, but B has ten times the weight: its tag is lower.
        let arrivals = "0 A1 100; 0.1 A2 100; 0.2 B1 1500; 0.3 A3 100";
        assert_eq!(
            trace("scfq limit 2p weights [1 10] drop max_tag", 100, arrivals),
            "A1[0-1] A2[1-2] B1[2-17] | A3@0.3"
        );
        assert_eq!(
            trace("scfq limit 2p weights [1 10] drop longest", 100, arrivals),
            "A1[0-1] A2[1-2] A3[2-3] | B1@0.3"
        );
    }

    #[test]
    fn shares_are_proportional_to_weights() {
        assert_eq!(
            trace("scfq weights [1 2]", 100, "0 A1 100, A2 100, A3 100, B1 100, B2 100, B3 100, B4 100"),
            "B1[0-1] A1[1-2] B2[2-3] B3[3-4] A2[4-5] B4[5-6] A3[6-7] |"
        );
        let context = LinkContext::new(Rate::mbit(8), Streams::new(1));
        let error = "scfq weights [1 0]".parse::<Spec>().unwrap().build_numbered(&context).err().unwrap();
        assert_eq!(error.to_string(), "weights: a weight of 0 never sends: write at least 1");
    }

    /// The algorithm with lists as a reference. It keeps tags until the link is idle.
    #[derive(Default)]
    struct Reference {
        /// Tag, arrival, flow and length; always sorted.
        queue: Vec<(u64, u64, u64, u64)>,
        finish: BTreeMap<u64, u64>,
        /// The packet with which each flow became backlogged.
        since: BTreeMap<u64, u64>,
        now: u64,
    }

    impl Reference {
        fn enqueue(
            &mut self,
            arrival: u64,
            flow: u64,
            bytes: u64,
            limit: usize,
            drop: Victim,
        ) -> Option<u64> {
            if drop == Victim::Tail && self.queue.len() == limit {
                return Some(arrival);
            }
            if self.queue.iter().all(|each| each.2 != flow) {
                self.since.insert(flow, arrival);
            }
            let finish = self.finish.entry(flow).or_default();
            *finish = self.now.max(*finish) + bytes;
            self.queue.push((*finish, arrival, flow, bytes));
            self.queue.sort_unstable();
            if self.queue.len() <= limit {
                return None;
            }
            let position = match drop {
                Victim::Tail | Victim::MaxTag => self.queue.len() - 1,
                Victim::Longest => {
                    let backlog = |flow| {
                        self.queue.iter().filter(|each| each.2 == flow).map(|each| each.3).sum::<u64>()
                    };
                    let key = |flow| (backlog(flow), std::cmp::Reverse(self.since[&flow]));
                    (0..self.queue.len()).max_by_key(|at| (key(self.queue[*at].2), *at)).unwrap()
                }
            };
            let (_, victim, flow, bytes) = self.queue.remove(position);
            *self.finish.get_mut(&flow).unwrap() -= bytes;
            Some(victim)
        }
        fn dequeue(&mut self) -> Option<u64> {
            if self.queue.is_empty() {
                self.now = 0;
                self.finish.clear();
                return None;
            }
            let (tag, arrival, ..) = self.queue.remove(0);
            assert!(tag >= self.now, "virtual time never goes back");
            self.now = tag;
            Some(arrival)
        }
    }

    proptest! {
        /// Neither the removal of a flow with its last packet nor a restart of virtual time has an effect:
        /// departures and drops equal the reference's. The table contains the queued flows only.
        #[test]
        fn equals_the_reference(
            ops in prop::collection::vec((0..20u8, 0..6u64, 40..1500u32), 1..400),
            limit in 1..20u64,
            drop in prop_oneof![Just(Victim::Tail), Just(Victim::MaxTag), Just(Victim::Longest)],
        ) {
            let config = Config { limit: Limit::Packets(limit), drop, ..Config::default() };
            let mut scfq = config.build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap();
            let mut reference = Reference::default();
            let mut out = Outbox::default();
            for (serial, (kind, flow, bytes)) in (0u64..).zip(ops) {
                let mut cx = Cx::new(Time::ZERO, &mut out);
                match kind {
                    0..10 => {
                        scfq.enqueue(Packet::new(FlowKey(flow), bytes, serial), &mut cx);
                        let dropped = reference.enqueue(serial, flow, u64::from(bytes), limit as usize, drop);
                        prop_assert_eq!(out.dropped.drain(..).map(|(pkt, _)| pkt.payload).next(), dropped);
                    }
                    10..19 => {
                        prop_assert_eq!(scfq.dequeue(&mut cx).packet().map(|pkt| pkt.payload), reference.dequeue());
                    }
                    _ => scfq.start_again(),
                }
                let mut queued: Vec<u64> = reference.queue.iter().map(|each| each.2).collect();
                queued.sort_unstable();
                queued.dedup();
                let mut table: Vec<u64> = scfq.by_key.iter().map(|(key, _)| key.0).collect();
                table.sort_unstable();
                prop_assert_eq!(table, queued);
            }
        }

        /// The published bound: while two flows have packets queued, their bytes sent per weight differ by at
        /// most a packet of each.
        #[test]
        fn shares_are_fair(packets in prop::collection::vec((0..4u8, 40..1500u32), 1..280), ahead in 1..200usize) {
            for (spec, weights) in [("scfq", [1, 1, 1, 1]), ("scfq weights [4 1 6]", [4, 1, 6, 1])] {
                let (apart, allowed) = furthest_apart(spec, &packets, ahead, weights);
                prop_assert!(apart <= allowed + 1e-6, "{}: {} bytes apart, {} allowed", spec, apart, allowed);
            }
        }

        /// With equal lengths it is a round robin: between two packets of a flow, each other backlogged flow
        /// sends one.
        #[test]
        fn equal_lengths_make_it_a_round_robin(flows in 2..8u64, each in 1..20u64, bytes in 40..1500u32) {
            let mut scfq = Config::default().build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap();
            let mut out = Outbox::default();
            let mut cx = Cx::new(Time::ZERO, &mut out);
            for flow in 0..flows {
                (0..each).for_each(|_| scfq.enqueue(Packet::new(FlowKey(flow), bytes, flow), &mut cx));
            }
            let left: Vec<u64> = std::iter::from_fn(|| scfq.dequeue(&mut cx).packet()).map(|pkt| pkt.payload).collect();
            let rounds: Vec<u64> = (0..each).flat_map(|_| 0..flows).collect();
            prop_assert_eq!(left, rounds);
        }

        /// With a single flow it behaves as `fifo`.
        #[test]
        fn one_flow_makes_it_a_fifo(ops in one_flow(), limit in 1..20u64) {
            let limit = Limit::Packets(limit);
            let fifo = fifo_events(limit, &ops);
            for drop in [Victim::Tail, Victim::MaxTag, Victim::Longest] {
                prop_assert_eq!(events(&Spec::scfq(Config { limit, drop, ..Config::default() }), &ops), fifo.clone());
            }
        }
    }
}
