//! Stochastic fairness queueing: flows are hashed into queues that take turns, so that fairness needs no
//! table of flows.
//!
//! # Principles
//! - A packet's bucket is a keyed hash of its flow. Each bucket in use has a queue, and the queues take turns
//!   by bytes.
//! - Flows share a queue by chance; with few flows and many buckets, hardly any do. `perturb` changes the key
//!   periodically, so that no two flows share for long.
//! - A queue sends while it has credit and pays afterwards, so the length of the next packet need not be
//!   known; an overdraft is deducted from its next turn.
//! - When the buffer is full, the queue with the most packets loses one: its last, or with `headdrop` its
//!   first. Among equally long queues it is the one whose length changed last, as in Linux.
//! - `depth` bounds each queue, `flows` the number of queues in use.
//!
//! # Deviations
//! - A perturbation here loses no packets and never reorders a flow. All packets of a flow are in one queue
//!   before it and in one queue after it; the queues are emptied into the new ones in the order of the round,
//!   each from its head. Linux drops what exceeds `depth` or finds no queue after a perturbation; here both
//!   bounds hold for arrivals only, and may be exceeded until what was queued has left. Flows that newly
//!   share a queue are queued there one after the other.
//! - The key depends on how many intervals have passed since the first packet, not on the calls in between,
//!   so every backend has the same keys.
//! - The options that put RED on each queue (`redflowlimit`, `min`, `max`, `avpkt`, `burst`, `probability`,
//!   `ecn`, `harddrop`) are left out.
//! - McKenney's paper serves packet by packet; the quantum in bytes is Linux's.
//!
//! # Cost
//! - No look-up but an array of buckets. Finding the longest queue is O(log queues) amortised over
//!   departures. A perturbation moves every packet once.
//! - 4 bytes per bucket, and 72 per queue in use.
//!
//! # References
//! - P. McKenney, "Stochastic Fairness Queueing", INFOCOM 1990. Linux: tc-sfq(8) for names and defaults.

use giveway_qdisc::blocks::{LongestQueue, Rank};
use giveway_qdisc::hash::mix;
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, List, Next, Packet, Packets, Place,
    Properties,
};
use giveway_qdisc::{LinkContext, Qdisc, Slots, Span, Time, check_limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Discipline, InLinux};

/// Parameters of `sfq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity of all queues together, in packets.
    pub limit: Packets,
    /// Largest number of packets in one queue.
    pub depth: Packets,
    /// Largest number of queues in use.
    pub flows: u32,
    /// Number of buckets that flows are hashed into: a power of two, at most 65536.
    pub divisor: u32,
    /// Bytes that a queue may send per turn. By default the largest packet of the link.
    pub quantum: Option<Bytes>,
    /// Lifetime of a key of the hash. Zero: unlimited. A number without a unit is in seconds, as in tc.
    #[schemars(extend("x-bare" = "s"))]
    pub perturb: Span,
    /// Drop the oldest packet of a full queue instead of its newest.
    pub headdrop: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Packets(127),
            depth: Packets(127),
            flows: 127,
            divisor: 1024,
            quantum: None,
            perturb: Span::ZERO,
            headdrop: false,
        }
    }
}

/// As many as buckets, of which tc has this many at most.
const MAX_FLOWS: u32 = 65_536;

impl Discipline for Config {
    const SUMMARY: &'static str = "stochastic fairness: flows hashed into queues that take turns";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Sfq<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Sfq<P>, Invalid> {
        check_limit("limit", Limit::Packets(self.limit.0), context.mtu)?;
        check_limit("depth", Limit::Packets(self.depth.0), context.mtu)?;
        if self.flows == 0 {
            return Err(Invalid::new("flows", "must be at least 1, for example 127"));
        }
        if self.flows > MAX_FLOWS {
            let message =
                format!("{} queues are too many: write at most {MAX_FLOWS}, as many as divisor", self.flows);
            return Err(Invalid::new("flows", message));
        }
        if !self.divisor.is_power_of_two() || self.divisor > 65536 {
            let message =
                format!("{} is not a power of two up to 65536: write for example 1024", self.divisor);
            return Err(Invalid::new("divisor", message));
        }
        let quantum = self.quantum.unwrap_or(context.mtu);
        let usable = i64::try_from(quantum.0).ok().filter(|bytes| (1..=i64::from(u32::MAX)).contains(bytes));
        let quantum = usable.ok_or_else(|| {
            Invalid::new("quantum", format!("{quantum} is not a valid quantum: write for example \"1500b\""))
        })?;
        let capacity = usize::try_from(self.limit.0).unwrap_or(usize::MAX).min(1 << 12);
        // After a perturbation there may be more queues than `flows`, though never more than buckets or
        // packets.
        let queues = capacity.min(self.divisor as usize);
        let secret = context.streams.rng().word();
        Ok(Sfq {
            config: self.clone(),
            quantum,
            secret,
            key: mix(0, secret),
            epoch: None,
            buckets: vec![None; self.divisor as usize],
            queues: Slots::with_capacity(queues),
            packets: Slots::with_capacity(capacity),
            round: List::default(),
            most: 0,
            changes: 0,
            longest: LongestQueue::with_capacity(queues),
            backlog: Backlog::ZERO,
        })
    }

    fn in_linux(&self) -> Option<InLinux> {
        Some(InLinux::named("sfq"))
    }

    fn filled(&self, context: &LinkContext) -> Config {
        Config { quantum: self.quantum.or(Some(context.mtu)), ..self.clone() }
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(Limit::Packets(self.limit.0))
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        vec![
            Config { limit: Packets(8), depth: Packets(3), divisor: 4, ..plain.clone() },
            Config {
                limit: Packets(8),
                depth: Packets(3),
                headdrop: true,
                perturb: Span::ms(20),
                ..plain.clone()
            },
            Config { flows: 3, perturb: Span::ms(10), quantum: Some(Bytes(200)), ..plain.clone() },
            Config { limit: Packets(10), divisor: 1, headdrop: true, ..plain },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(quantum) = self.quantum
            && quantum < context.mtu
        {
            warnings.push(format!(
                "a quantum of {quantum} is below the largest packet, {}: turns are wasted",
                context.mtu
            ));
        }
        if !self.perturb.is_zero() && self.perturb < Span::s(1) {
            warnings.push(format!(
                "perturb {}: the hash changes that often; tc-sfq(8) advises 60s",
                self.perturb
            ));
        }
        warnings
    }
}

/// The buckets and the queues in use.
pub struct Sfq<P> {
    config: Config,
    quantum: i64,
    /// Source of the keys.
    secret: u64,
    /// The key of the hash in this interval.
    key: u64,
    /// Times of the first call and of the next perturbation; `None` before the first call.
    epoch: Option<Epoch>,
    /// Queue of each bucket that is in use.
    buckets: Vec<Option<Place>>,
    queues: Slots<Queue>,
    packets: Slots<Packet<P>>,
    /// The queues in use, in order of their turns.
    round: List,
    /// Largest number of queues in use so far.
    most: u64,
    /// Number of changes of the length of any queue.
    changes: u64,
    /// Queues by their number of packets.
    longest: LongestQueue,
    backlog: Backlog,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    next: Time,
}

/// A queue in use.
#[derive(Debug)]
struct Queue {
    packets: List,
    bucket: u32,
    /// Bytes that it may still send in this turn; negative after an overdraft.
    credit: i64,
    /// Ticket for [`Rank`], lower at each change of a length: of equally long queues the one that changed
    /// last has the lowest ticket.
    ticket: u64,
}

const _: () = assert!(size_of::<Queue>() <= 32);

impl<P> Qdisc<P> for Sfq<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.perturb(cx.now());
        let bucket = self.bucket(pkt.meta.flow);
        match self.buckets[bucket as usize] {
            None if self.round.len() >= self.config.flows as usize => {
                return cx.drop(pkt, DropReason::Overlimit);
            }
            Some(place) if self.queues[place].packets.len() as u64 >= self.config.depth.0 => {
                if !self.config.headdrop {
                    return cx.drop(pkt, DropReason::FlowLimit);
                }
                // The packet is appended first, so that the queue keeps its turn even if it has no other
                // packet. Its length does not change.
                let ticket = self.queues[place].ticket;
                self.append(bucket, pkt);
                let oldest = self.take(place, true);
                self.queues[place].ticket = ticket;
                return cx.drop(oldest, DropReason::FlowLimit);
            }
            _ => {}
        }
        let place = self.append(bucket, pkt);
        if self.backlog.packets > self.config.limit.0 {
            self.push_out(place, cx);
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.perturb(cx.now());
        let Some(place) = self.turn() else { return Next::Empty };
        let pkt = self.take(place, true);
        if let Some(queue) = self.queues.get_mut(place) {
            queue.credit -= i64::from(pkt.bytes());
        }
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some(mut queue) = self.queues.pop_front(&mut self.round) {
            while let Some(pkt) = self.packets.pop_front(&mut queue.packets) {
                cx.drop(pkt, DropReason::Reset);
            }
        }
        self.buckets.fill(None);
        self.longest.clear();
        self.backlog = Backlog::ZERO;
        self.epoch = None;
        self.key = mix(0, self.secret);
    }

    /// The queues in use. The array of buckets does not depend on the traffic.
    fn flow_table(&self) -> FlowTable {
        FlowTable {
            flows: self.round.len() as u64,
            most: self.most,
            entry_bytes: Slots::<Queue>::bytes_per_slot() as u32,
            bytes: self.queues.bytes() + (self.buckets.len() * size_of::<Option<Place>>()) as u64,
        }
    }
}

impl<P> Sfq<P> {
    /// Changes the key at the end of its interval, and moves queued packets to their new buckets.
    #[inline]
    fn perturb(&mut self, now: Time) {
        let interval = self.config.perturb;
        if interval.is_zero() {
            return;
        }
        let epoch = self.epoch.get_or_insert(Epoch { start: now, next: now + interval });
        if now < epoch.next {
            return;
        }
        let passed = now.since(epoch.start).as_ps() / interval.as_ps();
        epoch.next = epoch.start + interval * (passed + 1);
        self.key = mix(passed, self.secret);
        self.rehash();
    }

    fn rehash(&mut self) {
        self.buckets.fill(None);
        self.backlog = Backlog::ZERO;
        let mut old = std::mem::take(&mut self.round);
        while let Some(mut queue) = self.queues.pop_front(&mut old) {
            while let Some(pkt) = self.packets.pop_front(&mut queue.packets) {
                let bucket = self.bucket(pkt.meta.flow);
                self.append(bucket, pkt);
            }
        }
    }

    #[inline]
    fn bucket(&self, flow: FlowKey) -> u32 {
        mix(flow.0, self.key) as u32 & (self.config.divisor - 1)
    }

    /// Puts a packet at the end of its bucket's queue. A queue that was not in use joins the end of the
    /// round.
    #[inline]
    fn append(&mut self, bucket: u32, pkt: Packet<P>) -> Place {
        let ticket = self.next_ticket();
        let Sfq { buckets, queues, round, quantum, .. } = self;
        let place = *buckets[bucket as usize].get_or_insert_with(|| {
            queues.push_back(round, Queue { packets: List::default(), bucket, credit: *quantum, ticket })
        });
        self.most = self.most.max(self.round.len() as u64);
        let queue = &mut self.queues[place];
        queue.ticket = ticket;
        self.backlog.add(pkt.bytes());
        self.packets.push_back(&mut queue.packets, pkt);
        self.longest.record_growth(place.index(), queue.rank());
        place
    }

    /// The queue whose turn it is.
    #[inline]
    fn turn(&mut self) -> Option<Place> {
        loop {
            let place = self.queues.front_place(&self.round)?;
            let queue = &mut self.queues[place];
            if queue.credit > 0 {
                return Some(place);
            }
            queue.credit += self.quantum;
            self.queues.rotate(&mut self.round);
        }
    }

    /// The ticket of a queue whose length changes now.
    #[inline]
    fn next_ticket(&mut self) -> u64 {
        self.changes += 1;
        u64::MAX - self.changes
    }

    /// Removes the first or the last packet of a queue. A queue without packets is no longer in use.
    #[inline]
    fn take(&mut self, place: Place, first: bool) -> Packet<P> {
        let ticket = self.next_ticket();
        self.queues[place].ticket = ticket;
        let list = &mut self.queues[place].packets;
        let pkt = if first { self.packets.pop_front(list) } else { self.packets.pop_back(list) };
        let pkt = pkt.expect("a queue in use holds a packet");
        self.backlog.sub(pkt.bytes());
        if list.is_empty() {
            let queue = self.queues.remove(&mut self.round, place);
            self.buckets[queue.bucket as usize] = None;
        }
        pkt
    }

    /// Drops a packet of the longest queue. `arrival` is the queue of the packet that just arrived.
    fn push_out(&mut self, arrival: Place, cx: &mut Cx<'_, P>) {
        let queues = &self.queues;
        let rank = |index| queues.place(index).map(|place| queues[place].rank());
        let longest = self.longest.longest(rank).expect("what exceeds the limit is queued");
        let place = self.queues.place(longest).expect("the longest queue is in use");
        let newest = !self.config.headdrop || self.queues[place].packets.len() == 1;
        let victim = self.take(place, self.config.headdrop);
        let why = if newest && place == arrival { DropReason::Overlimit } else { DropReason::Pushout };
        cx.drop(victim, why);
    }
}

impl Queue {
    #[inline]
    fn rank(&self) -> Rank {
        Rank { length: self.packets.len() as u64, ticket: self.ticket }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::{build_error, events, in_one_flow};
    use crate::testing::trace::{T1, trace};
    use crate::{Spec, fifo};
    use giveway_qdisc::contract::{Event, Op};
    use giveway_qdisc::{Outbox, Rate, Streams};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn flows_take_turns_and_overdraw() {
        // At 1.0 A has a credit of 500, sends A2 and has -500. At 1.4 A and B have two packets each, and A,
        // whose length changed last, loses one. At 2.0 A's credit rises to 0, and A moves behind C. B uses
        // its 500 for B1, so at 2.5 it moves behind A, and C1 leaves. At 3.5 A's credit rises to 500, and A
        // moves behind B, which has 500 for B2. Then A3 leaves, and so on in turn.
        assert_eq!(
            trace("sfq limit 4 quantum 500", 1000, T1),
            "A1[0-1] A2[1-2] B1[2-2.5] C1[2.5-3.5] B2[3.5-4] A3[4-5] B3[5-5.5] A6[5.5-6.5] | A5@1.3 A4@1.4"
        );
    }

    #[test]
    fn depth_bounds_a_queue() {
        let arrivals = "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 A4 1000; 0.4 B1 1000";
        assert_eq!(trace("sfq depth 2", 1000, arrivals), "A1[0-1] A2[1-2] A3[2-3] B1[3-4] | A4@0.3");
        assert_eq!(trace("sfq depth 2 headdrop", 1000, arrivals), "A1[0-1] A3[1-2] A4[2-3] B1[3-4] | A2@0.3");
        assert_eq!(trace("sfq flows 1", 1000, arrivals), "A1[0-1] A2[1-2] A3[2-3] A4[3-4] | B1@0.4");
    }

    /// The rule of Linux for equally long queues.
    #[test]
    fn of_equally_long_queues_the_last_that_changed_loses_a_packet() {
        let two_each = "0 X1 1000; 0.1 A1 1000; 0.2 A2 1000; 0.3 B1 1000; 0.4 B2 1000";
        assert_eq!(trace("sfq limit 3", 1000, two_each), "X1[0-1] A1[1-2] A2[2-3] B1[3-4] | B2@0.4");
        // The depth of A's queue is reached at A3: its oldest packet is dropped, and A's length has not
        // changed.
        let full = "0 X1 1000; 0.1 A1 1000; 0.2 A2 1000; 0.3 B1 1000; 0.4 B2 1000; 0.5 A3 1000; 0.6 C1 1000";
        assert_eq!(
            trace("sfq limit 4 depth 2 headdrop", 1000, full),
            "X1[0-1] A2[1-2] A3[2-3] B2[3-4] C1[4-5] | A1@0.5 B1@0.6"
        );
        let one_each = "0 X1 1000; 0.1 A1 1000; 0.2 B1 1000; 0.3 C1 1000";
        assert_eq!(trace("sfq limit 2", 1000, one_each), "X1[0-1] A1[1-2] B1[2-3] | C1@0.3");
    }

    #[test]
    fn flows_of_one_bucket_share_its_queue() {
        assert_eq!(trace("sfq limit 4 divisor 1", 1000, T1), trace("fifo limit 4p", 1000, T1));
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            6 => (0..12u8, any::<u16>()).prop_map(|(flow, bytes)| Op::Enqueue { flow, bytes, class: 0, ecn: false }),
            3 => Just(Op::Dequeue),
            2 => (0..8000u16).prop_map(Op::Wait),
        ];
        prop::collection::vec(op, 1..400)
    }

    fn built(config: &Config) -> Sfq<u64> {
        config.build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap()
    }

    proptest! {
        /// A perturbation keeps every packet and the order of every flow, for any `depth` and `flows`.
        #[test]
        fn perturbation_loses_no_packets(flows in prop::collection::vec(0..40u64, 1..127)) {
            let config = Config { perturb: Span::ms(10), divisor: 16, flows: 16, ..Config::default() };
            let mut sfq = built(&config);
            let mut out = Outbox::default();
            for (serial, flow) in (0u64..).zip(&flows) {
                sfq.enqueue(Packet::new(FlowKey(*flow), 100, serial), &mut Cx::new(Time::ms(1), &mut out));
            }
            prop_assert!(out.dropped.is_empty());
            let (key, backlog) = (sfq.key, sfq.backlog());
            let mut last: BTreeMap<FlowKey, u64> = BTreeMap::new();
            let mut sent = 0;
            while let Some(pkt) = sfq.dequeue(&mut Cx::new(Time::ms(35), &mut out)).packet() {
                prop_assert!(last.insert(pkt.meta.flow, pkt.payload).is_none_or(|before| before < pkt.payload));
                sent += 1;
            }
            prop_assert_ne!(sfq.key, key);
            prop_assert_eq!(sent, backlog.packets);
            prop_assert!(out.dropped.is_empty());
            prop_assert_eq!(sfq.key, mix(3, sfq.secret), "three intervals have passed, for any number of calls");
        }

        /// A queue is in use exactly while it holds packets of its bucket, and the limits hold.
        #[test]
        fn queues_are_in_use_while_they_hold_packets(ops in ops(), headdrop in any::<bool>()) {
            let config = Config {
                limit: Packets(12), depth: Packets(5), flows: 4, divisor: 8, headdrop, ..Config::default()
            };
            let mut sfq = built(&config);
            let mut out = Outbox::default();
            for (serial, op) in (0u64..).zip(ops) {
                let mut cx = Cx::new(Time::ZERO, &mut out);
                let longest = sfq.queues.iter(&sfq.round).map(|queue| queue.packets.len()).max().unwrap_or(0);
                match op {
                    Op::Enqueue { flow, .. } => sfq.enqueue(Packet::new(FlowKey(u64::from(flow)), 500, serial), &mut cx),
                    _ => drop(sfq.dequeue(&mut cx)),
                }
                prop_assert!(out.dropped.len() <= 1);
                for (victim, why) in out.dropped.drain(..) {
                    if why == DropReason::Pushout {
                        // What is left of its queue is one less than the longest was, or than it became by
                        // this arrival.
                        let bucket = sfq.bucket(victim.meta.flow);
                        let left = sfq.buckets[bucket as usize].map_or(0, |place| sfq.queues[place].packets.len());
                        prop_assert!(left + 1 >= longest);
                    }
                }
                prop_assert!(sfq.backlog.packets <= 12 && sfq.round.len() <= 4);
                prop_assert_eq!(sfq.buckets.iter().flatten().count(), sfq.round.len());
                for queue in sfq.queues.iter(&sfq.round) {
                    prop_assert!((1..=5).contains(&queue.packets.len()));
                    for pkt in sfq.packets.iter(&queue.packets) {
                        prop_assert_eq!(sfq.bucket(pkt.meta.flow), queue.bucket);
                    }
                }
            }
        }

        /// A single flow is served in the order of arrival, with and without perturbation.
        #[test]
        fn one_flow_is_a_fifo(ops in ops(), limit in 1..20u64, headdrop in any::<bool>(), perturb in 0..20u64) {
            let ops = in_one_flow(&ops);
            let sfq = Spec::sfq(Config { limit: Packets(limit), headdrop, perturb: Span::ms(perturb), ..Config::default() });
            let drop = if headdrop { fifo::Victim::Head } else { fifo::Victim::Tail };
            let fifo = Spec::fifo(fifo::Config { limit: Limit::Packets(limit), drop });
            let order = |events: Vec<Event>| -> Vec<(bool, u64)> {
                events.into_iter().map(|event| match event {
                    Event::Sent(serial, _) => (true, serial),
                    Event::Dropped(serial, ..) => (false, serial),
                }).collect()
            };
            prop_assert_eq!(order(events(&sfq, &ops)), order(events(&fifo, &ops)));
        }
    }

    #[test]
    fn invalid_parameters_are_refused() {
        assert_eq!(build_error("sfq divisor 1000").parameter, "divisor");
        assert_eq!(build_error("sfq flows 0").parameter, "flows");
        assert_eq!(build_error("sfq quantum 0").parameter, "quantum");
        assert_eq!(build_error("sfq limit 0").parameter, "limit");
        assert_eq!(build_error("sfq depth 0").parameter, "depth");
    }
}
