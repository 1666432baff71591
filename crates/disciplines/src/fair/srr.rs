//! Smoothed round robin: every flow has turns, and heavier flows have more of them, spread out instead of in
//! a row.
//!
//! # Principles
//! - Weights are written in binary. A sequence in which the highest bit comes with every second term, the
//!   next with every fourth, and so on, selects the bit whose turn it is; every flow whose weight has that
//!   bit gets one visit. So a flow of weight 5 has five visits in a sequence, and they lie far apart.
//! - A visit adds a quantum of bytes to a flow's credit, and lasts while the credit covers its next packet.
//!   The flow keeps the rest while it has packets queued, as in `drr`.
//! - There is no sorting and no search: terms without flows, and flows without packets, are skipped in one
//!   step.
//! - The flows share the buffer. When it is full, the longest queue loses a packet.
//!
//! # Deviations
//! - Flows are not announced. A flow gets its row, behind all others, with its first packet, and keeps it
//!   when its queue is empty: a flow that returns in the middle of a term has its old place. When there are
//!   more than `flows` rows, the rows of flows without queued packets are forgotten, all at once.
//! - Weights depend on the class, and may change when a flow becomes backlogged.
//! - When the highest bit in use changes, the paper scales the place in the sequence. Here the sequence
//!   always has 48 orders and terms without flows are skipped, which is equivalent, except that a flow that
//!   leaves and comes back between two departures does not move it.
//! - ns-2 has a quantum of 1,000 bytes. Here it is the link's largest packet.
//!
//! # Cost
//! - One table look-up per packet in, and a few steps per packet out for any number of flows and weights; a
//!   quantum below the packet size costs further turns. Finding the longest queue is O(log flows) amortised
//!   over departures, and costs nothing while the buffer is not full.
//! - 48 bytes per row, 32 in the table, and a few bits for each bit of its weight.
//!
//! # References
//! - C. Guo, "SRR: An O(1) Time Complexity Packet Scheduler for Flows in Multi-Service Packet Networks",
//!   SIGCOMM 2001; IEEE/ACM Transactions on Networking 12(6), 2004.

use std::num::NonZeroU32;

use giveway_qdisc::blocks::{FlowMap, LongestQueue, Memory, Rank, Turn, Turns};
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, LinkContext, List, Next, Packet,
    Properties, Qdisc, Slots, Span, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::common::admission::refusal;
use crate::drr::{Victim, quantum};

/// Parameters of `srr`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity for all flows together, in packets or in bytes.
    pub limit: Limit,
    /// Bytes that a visit allows. By default the largest packet of the link.
    pub quantum: Option<Bytes>,
    /// The weight of a flow of class 0, 1, 2 and so on; classes beyond the list have weight 1.
    pub weights: Vec<u32>,
    /// The packet that is dropped when the buffer is full.
    pub drop: Victim,
    /// Largest number of flows with rows, unless more flows have packets queued.
    pub flows: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Packets(1000),
            quantum: None,
            weights: Vec::new(),
            drop: Victim::Longest,
            flows: 4096,
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "smoothed round robin: turns by weight, spread out";
    type Qdisc<P: 'static> = Srr<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Srr<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        if self.weights.contains(&0) {
            return Err(Invalid::new("weights", "must be at least 1: a flow with weight 0 never sends"));
        }
        if self.flows == 0 {
            return Err(Invalid::new("flows", "must be at least 1, for example 4096"));
        }
        Memory::checked(Span::ZERO, Span::ZERO, self.flows)?;
        let capacity = self.limit.initial_capacity();
        let rows = (self.flows as usize).min(1 << 12);
        Ok(Srr {
            limit: self.limit,
            victim: self.drop,
            quantum: u64::from(quantum("quantum", self.quantum.unwrap_or(context.mtu))?),
            weights: self.weights.clone(),
            remembered: self.flows as usize,
            full: self.flows as usize,
            row_of: FlowMap::with_capacity(rows),
            rows: Vec::with_capacity(rows),
            turns: Turns::default(),
            turn: Turn::default(),
            visit: None,
            packets: Slots::with_capacity(capacity),
            longest: LongestQueue::with_capacity(rows),
            backlog: Backlog::ZERO,
        })
    }

    fn filled(&self, context: &LinkContext) -> Config {
        Config { quantum: self.quantum.or(Some(context.mtu)), ..self.clone() }
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        let quantum = |bytes| Some(Bytes(bytes));
        vec![
            Config { limit: Limit::Packets(5), weights: vec![4, 1, 6], flows: 2, ..plain.clone() },
            Config { limit: Limit::Bytes(6000), quantum: quantum(250), flows: 6, ..plain.clone() },
            Config { limit: Limit::Bytes(6000), drop: Victim::Head, weights: vec![3, 5], ..plain.clone() },
            Config { limit: Limit::Packets(5), drop: Victim::Tail, weights: vec![u32::MAX, 1], ..plain },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        match self.quantum {
            Some(quantum) if quantum < context.mtu => vec![format!(
                "a quantum of {quantum} is below the largest packet, {}: a flow needs several turns for one packet",
                context.mtu
            )],
            _ => Vec::new(),
        }
    }
}

/// The rows, and the row that is being visited.
pub struct Srr<P> {
    limit: Limit,
    victim: Victim,
    quantum: u64,
    weights: Vec<u32>,
    /// Number of rows up to which rows of flows without packets are kept.
    remembered: usize,
    /// Number of rows at which those without packets are removed.
    full: usize,
    /// The row of each flow, plus one.
    row_of: FlowMap<NonZeroU32>,
    rows: Vec<FlowRow>,
    /// The rows that have packets.
    turns: Turns,
    turn: Turn,
    /// The row that is being visited.
    visit: Option<u32>,
    packets: Slots<Packet<P>>,
    longest: LongestQueue,
    backlog: Backlog,
}

/// A flow's row.
#[derive(Debug)]
struct FlowRow {
    key: FlowKey,
    queue: List,
    weight: u32,
    /// Its backlog, in bytes.
    bytes: u64,
    /// Bytes that it may send before its next visit.
    deficit: u64,
}

const _: () = assert!(size_of::<FlowRow>() <= 48);

impl<P> Qdisc<P> for Srr<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let refuses_arrivals = self.victim == Victim::Tail;
        if let Some(why) = refusal(pkt.bytes(), self.limit, self.backlog, refuses_arrivals) {
            return cx.drop(pkt, why);
        }
        let row = self.append(pkt);
        if !self.limit.allows(self.backlog) {
            self.push_out(row, cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        let Some(row) = self.whose_turn() else { return Next::Empty };
        let pkt = self.take(row, true);
        let row = &mut self.rows[row as usize];
        // The flow lost the rest of its credit with its last packet.
        row.deficit = row.deficit.saturating_sub(u64::from(pkt.bytes()));
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for mut row in self.rows.drain(..) {
            while let Some(pkt) = self.packets.pop_front(&mut row.queue) {
                cx.drop(pkt, DropReason::Reset);
            }
        }
        self.row_of.clear();
        self.turns.clear();
        self.longest.clear();
        self.full = self.remembered;
        self.turn = Turn::default();
        self.visit = None;
        self.backlog = Backlog::ZERO;
    }

    fn flow_table(&self) -> FlowTable {
        self.row_of.table().with(
            size_of::<FlowRow>(),
            self.turns.bytes() + (self.rows.capacity() * size_of::<FlowRow>()) as u64,
        )
    }
}

impl<P> Srr<P> {
    /// Appends a packet to its flow's queue. A new flow gets a row behind all others.
    #[inline]
    fn append(&mut self, pkt: Packet<P>) -> u32 {
        let (key, class, bytes) = (pkt.meta.flow, usize::from(pkt.meta.class), pkt.bytes());
        let at = match self.row_of.get(key) {
            Some(row) => row.get() - 1,
            None => self.join(key),
        };
        let row = &mut self.rows[at as usize];
        if row.queue.is_empty() {
            row.weight = self.weights.get(class).copied().unwrap_or(1);
            self.turns.wake(at, u64::from(row.weight));
        }
        self.packets.push_back(&mut row.queue, pkt);
        row.bytes += u64::from(bytes);
        self.backlog.add(bytes);
        if self.victim != Victim::Tail {
            self.longest.record_growth(at, row.rank(at));
        }
        at
    }

    fn join(&mut self, key: FlowKey) -> u32 {
        if self.rows.len() >= self.full {
            self.forget();
        }
        let at = self.rows.len() as u32;
        self.rows.push(FlowRow { key, queue: List::default(), weight: 1, bytes: 0, deficit: 0 });
        self.row_of.entry(key, || NonZeroU32::MIN.saturating_add(at));
        at
    }

    /// Removes the rows of flows without queued packets. The next call is at twice the remaining number of
    /// rows, so that no sender can cause a call per packet.
    #[cold]
    fn forget(&mut self) {
        let waits = |row: &FlowRow| !row.queue.is_empty();
        let before = |place: u32| {
            let rows = &self.rows[..(place as usize).min(self.rows.len())];
            rows.iter().filter(|row| waits(row)).count() as u32
        };
        self.turn = self.turn.renumbered(before);
        self.visit = self.visit.map(before);
        self.rows.retain(waits);
        self.row_of.clear();
        self.turns.clear();
        self.longest.clear();
        for (at, row) in (0..).zip(&self.rows) {
            self.row_of.entry(row.key, || NonZeroU32::MIN.saturating_add(at));
            self.turns.wake(at, u64::from(row.weight));
            if self.victim != Victim::Tail {
                self.longest.record_growth(at, row.rank(at));
            }
        }
        self.full = self.remembered.max(2 * self.rows.len());
    }

    /// The row that is visited, with enough credit for its next packet.
    #[inline]
    fn whose_turn(&mut self) -> Option<u32> {
        loop {
            let at = match self.visit {
                Some(at) => at,
                None => {
                    let (at, turn) = self.turns.next(self.turn, Turns::ANY)?;
                    self.turn = turn;
                    self.visit = Some(at);
                    self.rows[at as usize].deficit += self.quantum;
                    at
                }
            };
            let row = &self.rows[at as usize];
            let next = self.packets.front(&row.queue).expect("a row that is visited holds a packet");
            if u64::from(next.bytes()) <= row.deficit {
                return Some(at);
            }
            self.visit = None;
        }
    }

    /// Removes the first or the last packet of a row. A row without packets has no turns.
    #[inline]
    fn take(&mut self, at: u32, first: bool) -> Packet<P> {
        let row = &mut self.rows[at as usize];
        let pkt = if first {
            self.packets.pop_front(&mut row.queue)
        } else {
            self.packets.pop_back(&mut row.queue)
        };
        let pkt = pkt.expect("the row holds a packet");
        row.bytes -= u64::from(pkt.bytes());
        self.backlog.sub(pkt.bytes());
        if row.queue.is_empty() {
            row.deficit = 0;
            self.turns.sleep(at, u64::from(row.weight));
            if self.visit == Some(at) {
                self.visit = None;
            }
        }
        pkt
    }

    /// Drops packets of the longest queue until the backlog is within the limit. `arrival` is the row of the
    /// packet that just arrived.
    fn push_out(&mut self, arrival: u32, cx: &mut Cx<'_, P>) {
        while !self.limit.allows(self.backlog) {
            let rows = &self.rows;
            let longest = self.longest.longest(|at| {
                let row = rows.get(at as usize)?;
                (!row.queue.is_empty()).then(|| row.rank(at))
            });
            let at = longest.expect("what exceeds the limit is queued");
            // The arriving packet is the last of its flow, and without it the backlog is within the limit.
            let newest = self.victim == Victim::Longest || self.rows[at as usize].queue.len() == 1;
            let victim = self.take(at, self.victim == Victim::Head);
            let why = if newest && at == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(victim, why);
        }
    }
}

impl FlowRow {
    /// Rank by bytes; of equal rows the first ranks higher.
    #[inline]
    fn rank(&self, at: u32) -> Rank {
        Rank { length: self.bytes, ticket: u64::from(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::events::{build_error, events, fifo_events, in_one_flow};
    use crate::testing::trace::{MIXED, trace};
    use giveway_qdisc::contract::Op;
    use giveway_qdisc::{Outbox, Rate, Streams, Time};
    use proptest::prelude::*;

    #[test]
    fn packets_of_several_lengths() {
        assert_eq!(
            trace("srr quantum 200b weights [2]", 100, MIXED),
            "A1[0-1] A2[1-2] B1[2-3] B2[3-4] C1[4-6] D1[6-7] A3[7-8] A4[8-9] B3[9-10] C2[10-11] |"
        );
    }

    /// The order of lectures on smoothed round robin: f1 | f2 f3 f4 | f1 | f1 f4 f5 | f1 | f2 f3 f4 | f1.
    #[test]
    fn weights_five_two_two_three_one() {
        let arrivals: Vec<String> = [('A', 5), ('B', 2), ('C', 2), ('D', 3), ('E', 1)]
            .into_iter()
            .flat_map(|(flow, weight)| (1..=2 * weight).map(move |n| format!("{flow}{n} 100")))
            .collect();
        let served =
            trace("srr quantum 100b weights [5 2 2 3 1]", 100, &format!("0 {}", arrivals.join(", ")));
        let flows: String =
            served.split('[').filter_map(|part| part.split(' ').next_back()?.chars().next()).collect();
        assert_eq!(&flows[..26], "ABCDAADEABCDAABCDAADEABCDA");
    }

    #[test]
    fn a_full_buffer_drops_from_the_longest_queue() {
        let arrivals = "0 A1 500, A2 500, A3 500, B1 500, B2 500, C1 500";
        assert_eq!(trace("srr limit 5p", 500, arrivals), "A1[0-1] A2[1-2] B1[2-3] B2[3-4] C1[4-5] | A3@0");
        assert_eq!(
            trace("srr limit 5p quantum 500b drop head", 500, arrivals),
            "A2[0-1] B1[1-2] C1[2-3] A3[3-4] B2[4-5] | A1@0"
        );
        assert_eq!(
            trace("srr limit 5p quantum 500b drop tail", 500, arrivals),
            "A1[0-1] B1[1-2] A2[2-3] B2[3-4] A3[4-5] | C1@0"
        );
    }

    /// Number and length of each packet.
    type Queue = Vec<(u64, u64)>;

    /// The algorithm in its simplest form: rows that are searched, and a sequence that is walked term by
    /// term.
    struct Tale {
        quantum: u64,
        weights: Vec<u32>,
        limit: u64,
        drop: Victim,
        /// Flow, weight, deficit, and its packets by number and length.
        rows: Vec<(u8, u64, u64, Queue)>,
        /// The term of a sequence of order 6, and the first row that it has still to visit.
        term: u64,
        row: usize,
        visit: Option<usize>,
    }

    impl Tale {
        fn enqueue(&mut self, flow: u8, serial: u64, bytes: u64) -> Option<u64> {
            let backlog: usize = self.rows.iter().map(|row| row.3.len()).sum();
            if backlog as u64 == self.limit && self.drop == Victim::Tail {
                return Some(serial);
            }
            let found = self.rows.iter().position(|row| row.0 == flow);
            let at = found.unwrap_or_else(|| {
                self.rows.push((flow, 0, 0, Vec::new()));
                self.rows.len() - 1
            });
            if self.rows[at].3.is_empty() {
                self.rows[at].1 = u64::from(self.weights.get(usize::from(flow)).copied().unwrap_or(1));
            }
            self.rows[at].3.push((serial, bytes));
            if (backlog as u64) < self.limit {
                return None;
            }
            let sum = |at: &usize| self.rows[*at].3.iter().map(|(_, bytes)| *bytes).sum::<u64>();
            let most = (0..self.rows.len()).map(|at| sum(&at)).max().unwrap();
            let longest = (0..self.rows.len()).find(|at| sum(at) == most).unwrap();
            let queue = &mut self.rows[longest].3;
            let (victim, _) = if self.drop == Victim::Head { queue.remove(0) } else { queue.pop().unwrap() };
            self.settle(longest);
            Some(victim)
        }
        fn settle(&mut self, at: usize) {
            if self.rows[at].3.is_empty() {
                self.rows[at].2 = 0;
                self.visit = self.visit.filter(|visit| *visit != at);
            }
        }
        fn dequeue(&mut self) -> Option<u64> {
            if self.rows.iter().all(|row| row.3.is_empty()) {
                return None;
            }
            loop {
                let Some(at) = self.visit else {
                    let bit = 1u64 << 5 >> self.term.trailing_zeros();
                    let waits = |at: &usize| !self.rows[*at].3.is_empty() && self.rows[*at].1 & bit != 0;
                    self.visit = (self.row..self.rows.len()).find(waits);
                    match self.visit {
                        Some(at) => {
                            self.rows[at].2 += self.quantum;
                            self.row = at + 1;
                        }
                        None => (self.term, self.row) = (self.term % 63 + 1, 0),
                    }
                    continue;
                };
                let (serial, bytes) = self.rows[at].3[0];
                if bytes <= self.rows[at].2 {
                    self.rows[at].2 -= bytes;
                    self.rows[at].3.remove(0);
                    self.settle(at);
                    return Some(serial);
                }
                self.visit = None;
            }
        }
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            3 => (0..6u8, 1..8u16).prop_map(|(flow, n)| Op::Enqueue { flow, bytes: n * 200, class: flow, ecn: false }),
            2 => Just(Op::Dequeue),
        ];
        prop::collection::vec(op, 1..300)
    }

    fn built<P: 'static>(config: &Config) -> Srr<P> {
        config.build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap()
    }

    fn packet(flow: u8, bytes: u32, serial: u64) -> Packet<u64> {
        let mut pkt = Packet::new(FlowKey(u64::from(flow)), bytes, serial);
        pkt.meta.class = u16::from(flow);
        pkt
    }

    proptest! {
        /// The discipline and the simple reference have the same departures and drops.
        #[test]
        fn equals_the_reference(
            ops in ops(),
            limit in 1..16u64,
            quantum in 1..20u64,
            weights in prop::collection::vec(1..40u32, 0..6),
            drop in prop::sample::select(&[Victim::Longest, Victim::Head, Victim::Tail]),
        ) {
            let config = Config {
                limit: Limit::Packets(limit), quantum: Some(Bytes(quantum * 100)), weights: weights.clone(), drop, flows: 100,
            };
            let mut srr = built(&config);
            // Before the first term, the last one is complete.
            let mut tale = Tale {
                quantum: quantum * 100, weights, limit, drop, rows: Vec::new(), term: 63, row: usize::MAX, visit: None,
            };
            let mut out = Outbox::default();
            for (serial, op) in (0u64..).zip(ops) {
                let mut cx = Cx::new(Time::ZERO, &mut out);
                match op {
                    Op::Enqueue { flow, bytes, .. } => {
                        srr.enqueue(packet(flow, u32::from(bytes), serial), &mut cx);
                        let dropped: Vec<u64> = out.dropped.drain(..).map(|(victim, _)| victim.payload).collect();
                        prop_assert_eq!(dropped, Vec::from_iter(tale.enqueue(flow, serial, u64::from(bytes))));
                    }
                    _ => prop_assert_eq!(srr.dequeue(&mut cx).packet().map(|pkt| pkt.payload), tale.dequeue()),
                }
            }
        }

        /// In one sequence each flow that always has packets gets as many visits as its weight.
        #[test]
        fn a_sequence_has_as_many_visits_as_weights(weights in prop::collection::vec(1..16u32, 1..6)) {
            let config = Config { weights: weights.clone(), quantum: Some(Bytes(500)), ..Config::default() };
            let mut srr = built(&config);
            let mut out = Outbox::default();
            let mut cx = Cx::new(Time::ZERO, &mut out);
            for flow in 0..weights.len() as u8 {
                (0..40).for_each(|serial| srr.enqueue(packet(flow, 500, serial), &mut cx));
            }
            let mut got = vec![0; weights.len()];
            for _ in 0..weights.iter().sum() {
                got[srr.dequeue(&mut cx).packet().unwrap().meta.flow.0 as usize] += 1;
            }
            prop_assert_eq!(got, weights);
        }

        /// Removed rows have no packets, so the order of departures does not change.
        #[test]
        fn forgetting_rows_changes_no_order(ops in ops(), weights in prop::collection::vec(1..9u32, 0..6), quantum in 1..20u64) {
            let config = Config { weights, quantum: Some(Bytes(quantum * 100)), ..Config::default() };
            let [mut whole, mut forgetful] = [built(&config), built(&config)];
            let mut out = Outbox::default();
            let mut cx = Cx::new(Time::ZERO, &mut out);
            for (serial, op) in (0u64..).zip(ops) {
                for srr in [&mut whole, &mut forgetful] {
                    match op {
                        Op::Enqueue { flow, bytes, .. } => srr.enqueue(packet(flow, u32::from(bytes), serial), &mut cx),
                        _ => drop(srr.dequeue(&mut cx)),
                    }
                }
            }
            forgetful.forget();
            prop_assert!(forgetful.rows.iter().all(|row| !row.queue.is_empty()));
            while let Some(left) = whole.dequeue(&mut cx).packet() {
                prop_assert_eq!(forgetful.dequeue(&mut cx).packet().map(|pkt| pkt.payload), Some(left.payload));
            }
            prop_assert_eq!(forgetful.backlog(), Backlog::ZERO);
        }

        /// A single flow is served in the order of arrival.
        #[test]
        fn one_flow_is_a_fifo(ops in ops(), limit in 1..20u64, quantum in 1..3000u64, weight in 1..100u32) {
            let ops = in_one_flow(&ops);
            let limit = Limit::Packets(limit);
            let srr = Spec::srr(Config {
                limit, quantum: Some(Bytes(quantum)), weights: vec![weight], ..Config::default()
            });
            prop_assert_eq!(events(&srr, &ops), fifo_events(limit, &ops));
        }
    }

    #[test]
    fn invalid_parameters_are_refused() {
        assert_eq!(build_error("srr weights [1 0]").parameter, "weights");
        assert_eq!(build_error("srr quantum 0b").parameter, "quantum");
        assert_eq!(build_error("srr flows 0").parameter, "flows");
        assert_eq!(build_error("srr limit 0p").parameter, "limit");
    }
}
