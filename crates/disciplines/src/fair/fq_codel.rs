//! FQ-CoDel: a queue per flow, served in turns by bytes, new flows first, and CoDel in each of them.
//!
//! # Principles
//! - A hash assigns each flow to a queue. Flows share a queue only if their hashes collide.
//! - Turns are counted in bytes (deficit round robin), so shares are equal for packets of any size.
//! - A flow whose queue was empty has one turn before the older flows. So a flow that sends less than its
//!   share (DNS, voice, the first packets of a page) is served before bulk transfers.
//! - An emptied flow does not become new again at once: it first must wait for a turn as an old flow, so that
//!   flows with short gaps cannot starve the others.
//! - CoDel runs separately in each queue, so that only flows that fill a queue get drops or marks.
//! - When the buffer is full, the flow with the most bytes loses up to half its packets from the head, in a
//!   batch.
//! - Parameters can be changed while packets are queued: queues keep their places, credits and states of
//!   CoDel. When a limit is lowered, the packets that would leave next are dropped, as `tc qdisc change`
//!   does. With another number of `flows` the queued packets leave as before, and ahead of later arrivals.
//!
//! # Deviations
//! - CoDel's exception for a backlog of one MTU considers the flow's own queue, as the RFC's CoDel per queue
//!   does; the kernel compares the backlog of all flows together, and so may drop a flow's only packet.
//! - An emptied new flow always becomes an old flow, and a batch is half the packets of the largest flow,
//!   both as in the RFC. In the kernel an emptied new flow is removed at once if there is no old flow, and a
//!   batch is half the bytes.
//! - `memory_limit` counts the bytes of packets; the kernel counts the true size of its buffers.
//! - `quantum` counts IP lengths. The default is the MTU and an Ethernet header of 14 bytes, as in `tc`.
//! - A batch of drops does not raise CoDel's count. It does in later kernels; RFC 8290 does not require it.
//!
//! # Cost
//! - O(1) per packet, in one cache line of its bucket. The largest flow is found in O(log buckets) amortised
//!   over departures, by upper bounds for groups of buckets, which cost a comparison per packet.
//! - 64 bytes per bucket, and about half a byte for the bounds: 65 KB with 1,024 buckets.
//!
//! # References
//! - Høiland-Jørgensen et al. 2018: RFC 8290, sections 4.1 (enqueue), 4.2 (dequeue) and 5.2 (parameters).
//! - tc-fq_codel(8) for names and defaults. McKenney 1990 (stochastic fairness), Shreedhar and Varghese 1995
//!   (DRR).

use std::any::Any;

use giveway_qdisc::blocks::codel::{Codel as State, Law};
use giveway_qdisc::blocks::{Fattest, NewAndOld};
use giveway_qdisc::hash::bucket;
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, LinkContext, List, Next, Packet,
    Packets, Properties, Qdisc, Slots, Span,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::codel::{law, law_warnings};
use crate::common::taking::same;
use crate::common::warnings::{low_limit, low_quantum};
use crate::{Discipline, InLinux};

/// Parameters of `fq_codel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity of all queues together, in packets.
    pub limit: Packets,
    /// Capacity of all queues together, in bytes.
    pub memory_limit: Bytes,
    /// Number of queues that flows are hashed into.
    pub flows: u32,
    /// Bytes that a queue sends per turn; by default the MTU and an Ethernet header.
    pub quantum: Option<Bytes>,
    /// The acceptable standing delay of a queue.
    pub target: Span,
    /// Time above the target before the first drop.
    pub interval: Span,
    /// Mark packets instead of dropping them if their sender supports ECN.
    pub ecn: bool,
    /// Sojourn time above which packets are always marked if their sender supports ECN.
    pub ce_threshold: Option<Span>,
    /// Largest number of packets that are dropped at once when the buffer is full.
    pub drop_batch: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Packets(10_240),
            memory_limit: Bytes(32 << 20),
            flows: 1024,
            quantum: None,
            target: Span::ms(5),
            interval: Span::ms(100),
            ecn: true,
            ce_threshold: None,
            drop_batch: 64,
        }
    }
}

/// Ethernet's header, which `tc` counts into the default quantum.
const HEADER: u64 = 14;
/// The kernel's lower limit. With a smaller quantum a packet needs so many turns that a call of `dequeue`
/// takes long.
const MIN_QUANTUM: u64 = 256;
/// The kernel's own bounds.
const MAX_FLOWS: u32 = 65_536;
const MAX_QUANTUM: u64 = 1 << 20;

impl Config {
    fn quantum(&self, context: &LinkContext) -> Bytes {
        self.quantum.unwrap_or(Bytes(context.mtu.0 + HEADER))
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "a queue per flow in turns, new flows first, CoDel in each (RFC 8290)";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = FqCodel<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<FqCodel<P>, Invalid> {
        let law = law(self.limit, self.target, self.interval, self.ecn, self.ce_threshold, context)?;
        giveway_qdisc::check_limit("memory_limit", Limit::Bytes(self.memory_limit.0), context.mtu)?;
        let quantum = self.quantum(context).0;
        if !(MIN_QUANTUM..=MAX_QUANTUM).contains(&quantum) {
            return Err(Invalid::new(
                "quantum",
                format!(
                    "{quantum} bytes are not between {MIN_QUANTUM} and {MAX_QUANTUM}; 300 or 1514 are usual"
                ),
            ));
        }
        if !(1..=MAX_FLOWS).contains(&self.flows) {
            return Err(Invalid::new("flows", format!("{} is not between 1 and {MAX_FLOWS}", self.flows)));
        }
        if self.drop_batch == 0 {
            return Err(Invalid::new("drop_batch", "must be at least 1"));
        }
        let flows = self.flows as usize;
        Ok(FqCodel {
            limit: self.limit.0,
            memory_limit: self.memory_limit.0,
            quantum: quantum as i32,
            drop_batch: self.drop_batch,
            law,
            perturbation: context.streams.rng().word(),
            flows: vec![Flow::default(); flows],
            fattest: Fattest::new(flows),
            turns: NewAndOld::with_capacity(flows),
            packets: Slots::with_capacity((self.limit.0 as usize).saturating_add(1)),
            backlog: Backlog::ZERO,
        })
    }

    fn in_linux(&self) -> Option<InLinux> {
        Some(InLinux { sqm: Some("simplest.qos"), ..InLinux::named("fq_codel") })
    }

    fn filled(&self, context: &LinkContext) -> Config {
        Config { quantum: Some(self.quantum(context)), ..self.clone() }
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(Limit::Packets(self.limit.0)).marking(self.ecn || self.ce_threshold.is_some())
    }

    fn variants() -> Vec<Config> {
        let quick = Config { target: Span::us(50), interval: Span::us(500), ..Config::default() };
        vec![
            Config { limit: Packets(5), ..Config::default() },
            Config { limit: Packets(40), flows: 4, quantum: Some(Bytes(300)), ..quick.clone() },
            Config { memory_limit: Bytes(6000), drop_batch: 2, ..Config::default() },
            Config { flows: 1, ecn: false, ..quick },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = law_warnings(self.target, self.interval, self.ce_threshold, context);
        let most = Bytes(self.memory_limit.0.min(self.limit.0.saturating_mul(context.mtu.0)));
        let effect = "the buffer overflows before CoDel acts";
        warnings.extend(low_quantum(self.quantum(context), context));
        warnings.extend(low_limit(most, most.0, self.target, effect, context));
        warnings
    }
}

/// The discipline `fq_codel`: a queue for each bucket, and the lists of new and old queues.
pub struct FqCodel<P> {
    limit: u64,
    memory_limit: u64,
    /// Bytes per turn.
    quantum: i32,
    drop_batch: u32,
    law: Law,
    /// Key of the hash, so that collisions differ from one instance to the next.
    perturbation: u64,
    flows: Vec<Flow>,
    fattest: Fattest,
    turns: NewAndOld,
    packets: Slots<Packet<P>>,
    backlog: Backlog,
}

/// One bucket, in its own cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Flow {
    queue: List,
    state: State,
    /// Bytes queued.
    bytes: u64,
    /// Byte credits: bytes that it may still send in this turn.
    deficit: i32,
    /// True if the bucket is in one of the lists.
    listed: bool,
}

const _: () = assert!(size_of::<Flow>() == 64);

impl<P: 'static> Qdisc<P> for FqCodel<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let bucket = self.bucket(pkt.meta.flow);
        let flow = &mut self.flows[bucket];
        self.backlog.add(pkt.bytes());
        flow.bytes += u64::from(pkt.bytes());
        self.fattest.record_growth(bucket, flow.bytes);
        self.packets.push_back(&mut flow.queue, pkt);
        // RFC 8290, section 4.1: a queue that is in neither list joins the end of the new queues, with a
        // quantum of credits.
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.turns.join(bucket);
        }
        while self.exceeds() {
            self.drop_from_the_fattest(cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        // RFC 8290, section 4.2: new queues come first.
        while let Some((bucket, is_new)) = self.turns.turn() {
            // RFC 8290, section 4.2: a queue with negative credits gets one more
            // quantum and moves to the end of the old queues.
            if self.flows[bucket].deficit <= 0 {
                self.flows[bucket].deficit += self.quantum;
                self.turns.end_turn(is_new);
                continue;
            }
            match self.send(bucket, cx) {
                Some(pkt) => {
                    // RFC 8290, section 4.2: the length of the packet is subtracted from the credits. They
                    // may become negative, so a queue may send a packet that is longer than its rest.
                    self.flows[bucket].deficit -= pkt.bytes() as i32;
                    return Next::Packet(pkt);
                }
                // RFC 8290, section 4.2: an empty new queue moves to the old queues. If it left the lists,
                // its next packet would make it new again, and it could starve the old queues. An empty old
                // queue leaves the lists, so it becomes new with its next packet.
                None => self.flows[bucket].listed = !self.turns.found_empty(is_new),
            }
        }
        Next::Empty
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for flow in &mut self.flows {
            while let Some(pkt) = self.packets.pop_front(&mut flow.queue) {
                cx.drop(pkt, DropReason::Reset);
            }
            *flow = Flow::default();
        }
        self.fattest.clear();
        self.turns.clear();
        self.backlog = Backlog::ZERO;
    }

    /// The queues in use count as flows. The memory includes all queues, which always exist.
    fn flow_table(&self) -> FlowTable {
        self.turns.flow_table(self.flows.len(), size_of::<Flow>())
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("new_flows", self.turns.new_ones().len() as f64);
        visit("old_flows", self.turns.old_ones().len() as f64);
    }

    /// All queues with their states, credits and turns, if there are as many.
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = same::<P, FqCodel<P>>(old) else { return };
        if self.flows.len() != old.flows.len() {
            return;
        }
        self.perturbation = old.perturbation;
        std::mem::swap(&mut self.flows, &mut old.flows);
        std::mem::swap(&mut self.fattest, &mut old.fattest);
        std::mem::swap(&mut self.turns, &mut old.turns);
        std::mem::swap(&mut self.packets, &mut old.packets);
        std::mem::swap(&mut self.backlog, &mut old.backlog);
        while self.exceeds() {
            let next = self.dequeue(cx).packet().expect("a full buffer holds packets");
            cx.drop(next, DropReason::Overlimit);
        }
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

impl<P> FqCodel<P> {
    /// True if the backlog is above a limit.
    #[inline]
    fn exceeds(&self) -> bool {
        self.backlog.packets > self.limit || self.backlog.bytes > self.memory_limit
    }

    fn bucket(&self, flow: FlowKey) -> usize {
        // RFC 8290, section 4.1: a hash of the flow with a random key of the instance selects the queue.
        bucket(flow.0, self.perturbation, self.flows.len())
    }

    /// Drops half the packets of the queue with the most bytes, from its head, and at most a batch.
    #[cold]
    #[inline(never)]
    fn drop_from_the_fattest(&mut self, cx: &mut Cx<'_, P>) {
        let FqCodel { flows, fattest, packets, backlog, .. } = self;
        // Packets may have a length of 0. If all have, any queue with packets is the fattest.
        let fattest = fattest.first(|bucket| flows[bucket].bytes);
        let bucket = fattest.or_else(|| flows.iter().position(|flow| !flow.queue.is_empty()));
        let Flow { queue, bytes, .. } = &mut flows[bucket.expect("a full buffer holds packets")];
        // RFC 8290, section 4.1: half the packets of the queue with the most bytes are dropped from its head,
        // and at most 64 by default, so that a call does not take long.
        let batch = (queue.len() / 2).clamp(1, self.drop_batch as usize);
        for _ in 0..batch {
            let pkt = packets.pop_front(queue).expect("the fattest queue of a full buffer holds packets");
            backlog.sub(pkt.bytes());
            *bytes -= u64::from(pkt.bytes());
            cx.drop(pkt, DropReason::Pushout);
        }
    }

    /// Dequeues a packet of one queue, after the drops of CoDel, which runs in each queue: RFC 8290, section
    /// 4.2.
    #[inline]
    fn send(&mut self, bucket: usize, cx: &mut Cx<'_, P>) -> Option<Packet<P>> {
        let FqCodel { flows, packets, backlog, law, .. } = self;
        let Flow { queue, state, bytes, .. } = &mut flows[bucket];
        state.dequeue(law, cx, || {
            let pkt = packets.pop_front(queue)?;
            backlog.sub(pkt.bytes());
            *bytes -= u64::from(pkt.bytes());
            Some((pkt, *bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::context;
    use crate::testing::trace::{T1, trace, trace_on};
    use giveway_qdisc::{Ecn, Outbox, Rate, Streams, Time};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn built(config: &Config) -> FqCodel<u32> {
        config.build(&context()).unwrap()
    }

    /// Deterministic and small: packets without a port.
    fn offer(q: &mut FqCodel<u32>, flow: u64, bytes: u32, name: u32, now: Time) -> Vec<u32> {
        let mut out = Outbox::default();
        let mut pkt = Packet::new(FlowKey(flow), bytes, name);
        pkt.meta.arrived = now;
        q.enqueue(pkt, &mut Cx::new(now, &mut out));
        out.dropped.into_iter().map(|(victim, _)| victim.payload).collect()
    }

    fn take(q: &mut FqCodel<u32>, now: Time) -> Option<u32> {
        let mut out = Outbox::default();
        q.dequeue(&mut Cx::new(now, &mut out)).packet().map(|pkt| pkt.payload)
    }

    /// A's first packet finds an idle link. A is served until 1.0, when it has used its 1,000 bytes. The new
    /// flows B and C are served before A's next turn.
    #[test]
    fn new_flows_go_before_old_ones() {
        assert_eq!(
            trace(
                "fq_codel quantum 1000",
                1000,
                "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 B1 500; 0.4 C1 500"
            ),
            "A1[0-1] B1[1-1.5] C1[1.5-2] A2[2-3] A3[3-4] |"
        );
    }

    /// Quantum 1,000, four packets in the buffer.
    ///
    /// At 1.0 A's turn ends, and the new flow B is served before A. At 1.3 A5 is the fifth packet: A, with A2
    /// to A5, is the fattest flow, and half of its four packets are dropped from its head. At 2.0 B's turn
    /// ends, and C is new. From 3.0 on no flow is new: A4 leaves, then B3. At 4.5 both B and C are empty, so
    /// the rest is A's.
    #[test]
    fn the_fattest_flow_loses_packets_from_its_head() {
        assert_eq!(
            trace("fq_codel limit 4p quantum 1000", 1000, T1),
            "A1[0-1] B1[1-1.5] B2[1.5-2] C1[2-3] A4[3-4] B3[4-4.5] A5[4.5-5.5] A6[5.5-6.5] | A2@1.3 A3@1.3"
        );
    }

    #[test]
    fn turns_are_counted_in_bytes() {
        // All at once: A has large packets, B small ones; both get 1,000 bytes per turn.
        let arrivals = "0 A1 1000, A2 1000, A3 1000, B1 250, B2 250, B3 250, B4 250, B5 250, B6 250";
        assert_eq!(
            trace("fq_codel quantum 1000", 1000, arrivals),
            "A1[0-1] B1[1-1.25] B2[1.25-1.5] B3[1.5-1.75] B4[1.75-2] A2[2-3] B5[3-3.25] B6[3.25-3.5] A3[3.5-4.5] |"
        );
    }

    /// An emptied new flow moves to the old flows. B1 is served before A and C, whose first turns have ended.
    /// At 1.1 B is found empty and moves behind both, so B2, which arrives while A2 is sent, is served after
    /// C2.
    #[test]
    fn a_flow_cannot_stay_new_by_pausing() {
        assert_eq!(
            trace(
                "fq_codel quantum 500",
                1000,
                "0 A1 500, A2 500, A3 500, C1 500, C2 500, C3 500, B1 100; 1.2 B2 100"
            ),
            "A1[0-0.5] C1[0.5-1] B1[1-1.1] A2[1.1-1.6] C2[1.6-2.1] B2[2.1-2.2] A3[2.2-2.7] C3[2.7-3.2] |"
        );
    }

    /// A backend that does not count headers gives an empty frame a length of 0.
    #[test]
    fn packets_of_length_zero_are_dropped_like_others() {
        let mut q = built(&Config { limit: Packets(4), ..Config::default() });
        for name in 0..4 {
            assert!(offer(&mut q, 1, 0, name, Time::ms(1)).is_empty());
        }
        assert_eq!(offer(&mut q, 1, 0, 4, Time::ms(1)), [0, 1]);
    }

    #[test]
    fn a_batch_is_half_the_queue_and_at_most_its_bound() {
        let mut q = built(&Config { limit: Packets(20), ..Config::default() });
        for name in 0..20 {
            assert!(offer(&mut q, 1, 100, name, Time::ms(1)).is_empty());
        }
        assert_eq!(offer(&mut q, 2, 100, 20, Time::ms(1)), (0..10).collect::<Vec<_>>());
        let mut bounded = built(&Config { limit: Packets(20), drop_batch: 3, ..Config::default() });
        for name in 0..20 {
            offer(&mut bounded, 1, 100, name, Time::ms(1));
        }
        assert_eq!(offer(&mut bounded, 2, 100, 20, Time::ms(1)), vec![0, 1, 2]);
    }

    #[test]
    fn the_fattest_flow_has_the_most_bytes_not_the_most_packets() {
        let mut q = built(&Config { memory_limit: Bytes(5000), ..Config::default() });
        for name in 0..20 {
            offer(&mut q, 1, 100, name, Time::ms(1));
        }
        offer(&mut q, 2, 1500, 20, Time::ms(1));
        offer(&mut q, 2, 1400, 21, Time::ms(1));
        assert_eq!(q.backlog.bytes, 4900);
        // One flow has 2,000 bytes in twenty packets, the other 2,900 in two; the latter loses one of its
        // two.
        assert_eq!(offer(&mut q, 3, 200, 22, Time::ms(1)), vec![20]);
    }

    /// CoDel runs in each queue: a bulk flow gets drops, a thin flow next to it does not.
    #[test]
    fn only_a_flow_with_a_standing_queue_gets_drops() {
        let arrivals: Vec<String> = (0..600)
            .map(|ms| {
                if ms % 10 == 0 {
                    format!("{ms} A{ms} 1000, A{ms}x 1000, B{ms} 100")
                } else {
                    format!("{ms} A{ms} 1000, A{ms}x 1000")
                }
            })
            .collect();
        let out = trace("fq_codel", 1000, &arrivals.join("; "));
        let (_, drops) = out.split_once('|').unwrap();
        assert!(drops.contains("A") && !drops.contains("B"), "{drops}");
        // ECN is on by default: ECN-capable senders lose no packets.
        let qdisc = "fq_codel".parse::<crate::Spec>().unwrap().build_numbered(&context()).unwrap();
        let marked = trace_on(qdisc, 1000, &arrivals.join("; "), |meta| meta.ecn = Ecn::Ect0);
        assert!(marked.ends_with('|'));
    }

    #[test]
    fn collisions_differ_from_one_instance_to_the_next() {
        let buckets = |seed| {
            let place = LinkContext::new(Rate::mbit(8), Streams::new(seed));
            let q: FqCodel<u32> = Config::default().build(&place).unwrap();
            (0..1000).map(|flow| q.bucket(FlowKey(flow))).collect::<Vec<_>>()
        };
        assert_eq!(buckets(1), buckets(1));
        assert_ne!(buckets(1), buckets(2));
        // A thousand consecutive keys are distributed as at random: 1,024 (1 - e^-0.977) = 638.6 buckets,
        // standard deviation 10.
        let used: std::collections::BTreeSet<usize> = buckets(1).into_iter().collect();
        assert!((598..=679).contains(&used.len()), "{}", used.len());
    }

    #[test]
    fn usual_mistakes_cause_warnings() {
        let warnings = |spec: &str, rate| {
            spec.parse::<crate::Spec>().unwrap().warnings(&LinkContext::new(rate, Streams::new(1)))
        };
        assert!(warnings("fq_codel", Rate::mbit(10)).is_empty());
        assert!(
            warnings("fq_codel quantum 300", Rate::mbit(10))[0].starts_with("quantum: 300b is less than")
        );
        assert!(warnings("fq_codel limit 10", Rate::gbit(1))[0].starts_with("limit: 15000b drain in 120us"));
        assert!(warnings("fq_codel", Rate::kbit(500))[0].starts_with("target: "));
        for (wrong, parameter) in [
            (Config { quantum: Some(Bytes(100)), ..Config::default() }, "quantum"),
            (Config { flows: 0, ..Config::default() }, "flows"),
            (Config { drop_batch: 0, ..Config::default() }, "drop_batch"),
            (Config { memory_limit: Bytes(100), ..Config::default() }, "memory_limit"),
        ] {
            assert_eq!(wrong.build::<u64>(&context()).map(|_| ()).unwrap_err().parameter, parameter);
        }
    }

    proptest! {
        /// While two flows have packets queued, their service differs by at most a turn and a packet.
        #[test]
        fn shares_are_equal(
            sizes in prop::collection::vec((256..1500u32, 256..1500u32), 50..200), quantum in 256..3000u64,
        ) {
            let mut q = built(&Config { quantum: Some(Bytes(quantum)), target: Span::s(100), ..Config::default() });
            let mut bytes = BTreeMap::new();
            for (i, (a, b)) in sizes.iter().enumerate() {
                for (flow, size) in [(0u32, *a), (1, *b)] {
                    let name = 2 * i as u32 + flow;
                    bytes.insert(name, i64::from(size));
                    offer(&mut q, u64::from(flow), size, name, Time::ms(1));
                }
            }
            prop_assume!(q.bucket(FlowKey(0)) != q.bucket(FlowKey(1)));
            let mut sent = [0i64; 2];
            let mut left = [sizes.len(); 2];
            while left.iter().all(|left| *left > 0) {
                let name = take(&mut q, Time::ms(1)).expect("both still have packets");
                let flow = (name % 2) as usize;
                sent[flow] += bytes[&name];
                left[flow] -= 1;
                prop_assert!((sent[0] - sent[1]).unsigned_abs() <= quantum + 2 * 1500);
            }
        }

        /// A full buffer drops half the packets, at most a batch, of the bucket with the most bytes; of
        /// several such buckets that hold packets, the first one. Packets may be empty.
        #[test]
        fn the_first_of_the_fattest_loses(
            ops in prop::collection::vec((0..60u64, 0..4u32, 0..3u8), 1..400),
            limit in 1..60u64,
            in_bytes in any::<bool>(),
        ) {
            let config = Config { flows: 40, target: Span::s(100), drop_batch: 3, ..Config::default() };
            let mut q = built(&if in_bytes {
                Config { memory_limit: Bytes(1500 + limit), ..config }
            } else {
                Config { limit: Packets(limit), ..config }
            });
            let mut model = vec![Vec::new(); 40];
            for (name, (key, bytes, op)) in (0..).zip(ops) {
                let bytes = if in_bytes { 100 * bytes } else { bytes };
                if op == 0 {
                    let taken = take(&mut q, Time::ms(1));
                    model.iter_mut().for_each(|queue| queue.retain(|(each, _)| Some(*each) != taken));
                    continue;
                }
                model[q.bucket(FlowKey(key))].push((name, u64::from(bytes)));
                let mut expected = Vec::new();
                while model.iter().map(Vec::len).sum::<usize>() as u64 > q.limit
                    || model.iter().flatten().map(|(_, bytes)| bytes).sum::<u64>() > q.memory_limit
                {
                    let sum = |queue: &[(u32, u64)]| queue.iter().map(|(_, bytes)| *bytes).sum::<u64>();
                    let most = model.iter().map(|queue| sum(queue)).max().unwrap();
                    let fattest = |queue: &Vec<_>| sum(queue) == most && !queue.is_empty();
                    let first = model.iter().position(fattest).unwrap();
                    let batch = (model[first].len() / 2).clamp(1, 3);
                    expected.extend(model[first].drain(..batch).map(|(name, _)| name));
                }
                prop_assert_eq!(offer(&mut q, key, bytes, name, Time::ms(1)), expected);
            }
        }

        /// Each bucket with packets is in exactly one list, and a drained scheduler has no flows.
        #[test]
        fn lists_are_consistent(ops in prop::collection::vec((0..40u64, 40..1500u32, any::<bool>()), 1..400)) {
            let mut q = built(&Config {
                limit: Packets(30), flows: 16, target: Span::us(10), interval: Span::us(100), ..Config::default()
            });
            let mut now = Time::ms(1);
            for (name, (key, bytes, arrives)) in ops.into_iter().enumerate() {
                now += Span::us(50);
                if arrives {
                    offer(&mut q, key, bytes, name as u32, now);
                } else {
                    take(&mut q, now);
                }
                let mut listed: Vec<u32> = q.turns.new_ones().iter().chain(q.turns.old_ones()).copied().collect();
                listed.sort_unstable();
                let before = listed.len();
                listed.dedup();
                prop_assert_eq!(listed.len(), before, "a bucket is listed once");
                for (i, flow) in q.flows.iter().enumerate() {
                    prop_assert_eq!(flow.listed, listed.contains(&(i as u32)));
                    prop_assert!(flow.listed || flow.queue.is_empty());
                    let sum: u64 = q.packets.iter(&flow.queue).map(|pkt| u64::from(pkt.bytes())).sum();
                    prop_assert_eq!(sum, flow.bytes);
                    prop_assert!(flow.deficit <= q.quantum && flow.deficit > -1500);
                }
                prop_assert_eq!(Qdisc::<u32>::flow_table(&q).flows as usize, before);
            }
            while take(&mut q, now).is_some() {}
            prop_assert_eq!(Qdisc::<u32>::flow_table(&q).flows, 0);
        }
    }
}
