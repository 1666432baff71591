//! Start-time fair queueing: packets leave in the order in which a perfectly fair link would start them.
//!
//! # Principles
//! - Every packet has a start and a finish in virtual time, counted in bytes per unit of weight. It starts
//!   where its flow's last packet finished, or now, whichever is later; it finishes its length over its
//!   weight later.
//! - Virtual time is the start of the packet on the wire. So it needs no computation, and is correct at any
//!   rate of the link, which the discipline does not use.
//! - The earliest start leaves next. A flow that was silent starts now: the silence brings neither an
//!   advantage nor a disadvantage.
//! - Over any time in which two flows have packets queued, their service per weight differs by at most one
//!   packet of each.
//! - When the queue is full, the latest start is dropped, and its flow continues from there.
//!
//! # Deviations
//! - The paper has no buffer limit. The latest start belongs to the flow furthest ahead of its share.
//! - Weights are whole numbers by class, not rates by flow, so that virtual time is exact: lengths are
//!   counted in a unit that every weight divides.
//! - A flow is remembered until virtual time has passed its finish; later it makes no difference. Passed
//!   entries are removed when the table has about doubled. Flows that send one packet each can hold virtual
//!   time still and leave an entry each, without end: when nearly `flows` are left, all without a queued
//!   packet are forgotten. Each may then start earlier than it should, by what its last packet cost.
//!
//! # Cost
//! - Two table look-ups per packet. O(1) for a packet that arrives behind all others, otherwise O(log n) for
//!   n such packets queued.
//! - 64 bytes per flow that is queued or whose finish is ahead, in a table that is half full, which may hold
//!   as many that are passed; 8 to 24 more per packet than a fifo.
//!
//! # References
//! - P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queuing: A Scheduling Algorithm for Integrated Services
//!   Packet Switching Networks", SIGCOMM 1996: section 2 for the algorithm, theorem 1 for its fairness.
//! - A. Sivaraman et al., "Programmable Packet Scheduling at Line Rate", SIGCOMM 2016: figure 1, the same as
//!   a rank.

use giveway_qdisc::blocks::{FlowMap, Memory, RankedPackets, Weights};
use giveway_qdisc::{
    Backlog, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, LinkContext, Next, Packet, Properties,
    Qdisc, Span, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;

/// Parameters of `stfq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity, in packets or in bytes.
    pub limit: Limit,
    /// The weight of a flow of class 0, 1, 2 and so on; classes beyond the list have weight 1.
    pub weights: Vec<u32>,
    /// Largest number of flows in the table, unless more flows have packets queued.
    pub flows: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { limit: Limit::Packets(300), weights: Vec::new(), flows: Memory::default().flows as u32 }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "start-time fair queueing: the earliest virtual start first, flows weighted by class";
    type Qdisc<P: 'static> = Stfq<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Stfq<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let remembered = Memory::checked(Span::ZERO, Span::ZERO, self.flows)?.flows;
        let capacity = self.limit.initial_capacity();
        Ok(Stfq {
            limit: self.limit,
            weights: Weights::new("weights", &self.weights)?,
            remembered,
            flows: FlowMap::with_capacity(capacity),
            full: FEW.min(remembered),
            queue: RankedPackets::with_capacity(capacity),
            now: 0,
            finished: 0,
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        vec![
            Config { limit: Limit::Packets(5), flows: 2, ..plain.clone() },
            Config { limit: Limit::Bytes(6000), weights: vec![4, 1, 6], ..plain },
        ]
    }

    fn warnings(&self, _: &LinkContext) -> Vec<String> {
        match self.limit {
            Limit::Packets(limit) if u64::from(self.flows) < limit => vec![format!(
                "{} flows are fewer than limit {} can hold: flows are forgotten although they are ahead of their share",
                self.flows, self.limit
            )],
            _ => Vec::new(),
        }
    }
}

/// The queue and the table.
pub struct Stfq<P> {
    limit: Limit,
    weights: Weights,
    /// Largest number of flows without packets that are remembered.
    remembered: usize,
    /// Flows with packets queued, flows whose finish is later than virtual time, and passed flows not yet
    /// removed.
    flows: FlowMap<Flow>,
    /// Number of entries at which passed entries are removed.
    full: usize,
    /// Packets by their start.
    queue: RankedPackets<P>,
    /// Virtual time: the start of the packet that left last.
    now: u64,
    /// The latest finish of a packet that left: virtual time while the link is idle.
    finished: u64,
}

/// A flow that has sent.
#[derive(Debug)]
struct Flow {
    /// Finish of its last packet, in virtual time.
    finish: u64,
    /// Number of its queued packets.
    queued: u32,
}

/// Number of entries up to which passed entries stay.
const FEW: usize = 64;
/// Virtual time starts again from zero long before it would overflow.
const FAR: u64 = 1 << 62;

impl<P> Qdisc<P> for Stfq<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if !self.limit.admits(Backlog::ZERO, pkt.bytes()) {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        let start = self.count_in(&pkt);
        let Stfq { limit, flows, queue, .. } = self;
        queue.push_within(*limit, start, pkt, cx, |start, victim| {
            count_out(flows, victim.meta.flow, Some(start))
        });
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        let Some((start, pkt)) = self.queue.pop() else {
            // The end of a busy period: all flows are even again.
            self.now = self.finished;
            return Next::Empty;
        };
        self.now = start;
        self.finished = self.finished.max(start + self.weights.cost(&pkt.meta));
        count_out(&mut self.flows, pkt.meta.flow, None);
        if self.now > FAR {
            self.start_again();
        }
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.flows.clear();
        (self.now, self.finished) = (0, 0);
    }

    fn flow_table(&self) -> FlowTable {
        self.flows.table()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("virtual_time_bytes", self.weights.bytes(self.now));
    }
}

impl<P> Stfq<P> {
    /// Start of a packet, in virtual time.
    #[inline]
    fn count_in(&mut self, pkt: &Packet<P>) -> u64 {
        if self.flows.len() >= self.full && self.flows.get(pkt.meta.flow).is_none() {
            self.make_room();
        }
        let flow = self.flows.entry(pkt.meta.flow, || Flow { finish: 0, queued: 0 });
        let start = flow.finish.max(self.now);
        flow.finish = start + self.weights.cost(&pkt.meta);
        flow.queued += 1;
        start
    }

    /// Removes the flows that virtual time has passed; if too many are left, all without queued packets.
    #[cold]
    fn make_room(&mut self) {
        let now = self.now;
        self.flows.retain(|_, flow| flow.queued > 0 || flow.finish > now);
        // Otherwise a nearly full table would be searched for every new flow.
        if self.flows.len() > self.remembered / 4 * 3 {
            self.flows.retain(|_, flow| flow.queued > 0);
        }
        // A search visits the whole table, which has twice as many slots as the largest number of flows so
        // far. So the next search comes after a quarter of that number of new flows.
        let (left, most) = (self.flows.len(), self.flows.table().most as usize);
        let next = (2 * left).max(most / 2).max(FEW).min(self.remembered);
        self.full = next.max(left + most.div_ceil(4));
    }

    /// Moves virtual time back to zero, and all starts and finishes by the same amount.
    #[cold]
    fn start_again(&mut self) {
        let past = std::mem::take(&mut self.now);
        self.finished -= past;
        self.queue.lower(past);
        self.flows.retain(|_, flow| {
            flow.finish = flow.finish.saturating_sub(past);
            true
        });
    }
}

/// Records that a packet of this flow is no longer queued. A packet that was pushed out was the flow's last
/// one; the next packet then starts at its start, `unsent`.
#[inline]
fn count_out(flows: &mut FlowMap<Flow>, flow: FlowKey, unsent: Option<u64>) {
    let entry = flows.get_mut(flow).expect("a flow with a packet queued is never forgotten");
    entry.finish = unsent.unwrap_or(entry.finish);
    entry.queued -= 1;
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
    fn the_earliest_start_leaves_first() {
        // Starts: A2 1000, A3 2000, A4 3000, B1 0, B2 500, A5 4000 (dropped), C1 0 (virtual time is B1's
        // start; A4 is dropped), A6 3000, B3 1000 (after A2, which came first).
        assert_eq!(
            trace("stfq limit 4p", 1000, T1),
            "A1[0-1] B1[1-1.5] C1[1.5-2.5] B2[2.5-3] A2[3-4] B3[4-4.5] A3[4.5-5.5] A6[5.5-6.5] | A5@1.3 A4@1.4"
        );
    }

    /// Unlike with LAS, B, which is new at 3.5, starts at virtual time, A4's start; then A and B alternate.
    #[test]
    fn a_silent_flow_starts_now() {
        let arrivals =
            "0 A1 1000, A2 1000, A3 1000, A4 1000, A5 1000, A6 1000; 3.5 B1 1000, B2 1000, B3 1000";
        assert_eq!(
            trace("stfq", 1000, arrivals),
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] B1[4-5] A5[5-6] B2[6-7] A6[7-8] B3[8-9] |"
        );
        assert_eq!(
            trace("las", 1000, arrivals),
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] B1[4-5] B2[5-6] B3[6-7] A5[7-8] A6[8-9] |"
        );
    }

    #[test]
    fn shares_are_proportional_to_weights() {
        assert_eq!(
            trace("stfq weights [1 2]", 100, "0 A1 100, A2 100, A3 100, B1 100, B2 100, B3 100, B4 100"),
            "A1[0-1] B1[1-2] B2[2-3] A2[3-4] B3[4-5] B4[5-6] A3[6-7] |"
        );
    }

    /// Flows of one packet each start at the current virtual time, so it does not advance, and each flow
    /// leaves an entry with a later finish. The number of entries is bounded.
    #[test]
    fn the_table_is_bounded_while_virtual_time_stands_still() {
        let config = Config { flows: 1000, ..Config::default() };
        let mut stfq = config.build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap();
        let mut out = Outbox::default();
        let mut cx = Cx::new(Time::ZERO, &mut out);
        (0..10).for_each(|_| stfq.enqueue(Packet::new(FlowKey(0), 1000, 0), &mut cx));
        assert_eq!(stfq.dequeue(&mut cx).packet().map(|pkt| pkt.payload), Some(0));
        for flow in 1..50_000 {
            stfq.enqueue(Packet::new(FlowKey(flow), 1000, flow), &mut cx);
            assert_eq!(
                stfq.dequeue(&mut cx).packet().map(|pkt| pkt.payload),
                Some(flow),
                "new flows go first"
            );
        }
        assert_eq!(stfq.now, 0);
        assert_eq!(stfq.flow_table().most, 1000);
        assert!(stfq.flows.get(FlowKey(0)).is_some(), "a queued flow is not removed");
    }

    /// Entries that virtual time has passed are removed, so the table has few more flows than the queue.
    #[test]
    fn passed_flows_are_forgotten() {
        let mut stfq = Config::default().build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap();
        let mut out = Outbox::default();
        let mut cx = Cx::new(Time::ZERO, &mut out);
        for flow in 0..10_000 {
            stfq.enqueue(Packet::new(FlowKey(flow), 1000, ()), &mut cx);
            assert!(stfq.dequeue(&mut cx).packet().is_some() && stfq.dequeue(&mut cx).packet().is_none());
        }
        assert!(stfq.flow_table().most <= FEW as u64, "{:?}", stfq.flow_table());
        // Many entries are removed at once, and searches stay rare, since the table does not shrink.
        (0..300).for_each(|flow| stfq.enqueue(Packet::new(FlowKey(flow), 1000, ()), &mut cx));
        while stfq.dequeue(&mut cx).packet().is_some() {}
        stfq.make_room();
        assert_eq!(stfq.flow_table().flows, 0);
        assert!(stfq.full >= 300 / 4, "{}", stfq.full);
    }

    /// The paper's algorithm with lists, as a reference. It never removes a flow.
    #[derive(Default)]
    struct Reference {
        /// Start, arrival, flow and length; always sorted.
        queue: Vec<(u64, u64, u64, u64)>,
        finish: BTreeMap<u64, u64>,
        now: u64,
        finished: u64,
    }

    impl Reference {
        fn enqueue(&mut self, arrival: u64, flow: u64, bytes: u64, limit: usize) -> Option<u64> {
            let finish = self.finish.entry(flow).or_default();
            let start = self.now.max(*finish);
            *finish = start + bytes;
            self.queue.push((start, arrival, flow, bytes));
            self.queue.sort_unstable();
            if self.queue.len() <= limit {
                return None;
            }
            let (start, victim, flow, _) = self.queue.pop().unwrap();
            *self.finish.get_mut(&flow).unwrap() = start;
            Some(victim)
        }
        fn dequeue(&mut self) -> Option<u64> {
            if self.queue.is_empty() {
                self.now = self.finished;
                return None;
            }
            let (start, arrival, _, bytes) = self.queue.remove(0);
            assert!(start >= self.now, "virtual time never goes back");
            self.now = start;
            self.finished = self.finished.max(start + bytes);
            Some(arrival)
        }
    }

    proptest! {
        /// Departures and drops equal the reference's, which never removes a flow, wherever virtual time
        /// restarts and passed entries are removed.
        #[test]
        fn equals_the_reference(ops in prop::collection::vec((0..20u8, 0..6u64, 40..1500u32), 1..400), limit in 1..20u64) {
            let config = Config { limit: Limit::Packets(limit), ..Config::default() };
            let mut stfq = config.build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap();
            let mut reference = Reference::default();
            let mut out = Outbox::default();
            for (serial, (kind, flow, bytes)) in (0u64..).zip(ops) {
                let mut cx = Cx::new(Time::ZERO, &mut out);
                match kind {
                    0..10 => {
                        stfq.enqueue(Packet::new(FlowKey(flow), bytes, serial), &mut cx);
                        let dropped = reference.enqueue(serial, flow, u64::from(bytes), limit as usize);
                        prop_assert_eq!(out.dropped.drain(..).map(|(pkt, _)| pkt.payload).next(), dropped);
                    }
                    10..18 => {
                        prop_assert_eq!(stfq.dequeue(&mut cx).packet().map(|pkt| pkt.payload), reference.dequeue());
                    }
                    18 => stfq.start_again(),
                    _ => stfq.make_room(),
                }
            }
        }

        /// The published bound: while two flows have packets queued, their bytes sent per weight differ by at
        /// most a packet of each.
        #[test]
        fn shares_are_fair(packets in prop::collection::vec((0..4u8, 40..1500u32), 1..280), ahead in 1..200usize) {
            for (spec, weights) in [("stfq", [1, 1, 1, 1]), ("stfq weights [4 1 6]", [4, 1, 6, 1])] {
                let (apart, allowed) = furthest_apart(spec, &packets, ahead, weights);
                prop_assert!(apart <= allowed + 1e-6, "{}: {} bytes apart, {} allowed", spec, apart, allowed);
            }
        }

        /// With a single flow it behaves as `fifo`.
        #[test]
        fn one_flow_makes_it_a_fifo(ops in one_flow(), limit in 1..20u64) {
            let limit = Limit::Packets(limit);
            let stfq = Spec::stfq(Config { limit, ..Config::default() });
            prop_assert_eq!(events(&stfq, &ops), fifo_events(limit, &ops));
        }
    }
}
