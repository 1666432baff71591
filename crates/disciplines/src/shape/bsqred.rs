//! BSQRED: the sub-queues and the order of burst shaping queueing, with Adaptive RED's early drops.
//!
//! # Principles
//! - Packets wait and leave as in `bsq`: sub-queues by the hops beyond the next router, served in turn.
//! - When to drop is decided as in `ared`: by the average of all queued packets, before the buffer is full.
//! - The arriving packet is queued first. Then a random packet of the largest sub-queue is dropped. So the
//!   loss falls on the branch with the most packets, not on the branch of the arriving packet.
//! - A full buffer drops packets by the same rule, and RED's count of packets starts again.
//!
//! # Deviations
//! - The paper says that it "randomly picks up the packet to be dropped" without details. Its footnote
//!   contrasts that with the head of the largest sub-queue, so the draw is taken to be within the largest.
//!   `drop` contains the other readings: any packet at all, the head of the largest, and plain RED, which
//!   drops what arrives.
//! - The parameters and their derivation come from `ared`. The parameters of the tree come from `bsq`.
//! - Packets are not marked, since the paper drops them.
//!
//! # Cost
//! - The costs of `bsq` and of `ared`. A packet in the middle of a sub-queue is searched from the nearer end,
//!   so a random drop costs a quarter of that queue's length on average. `random_any` first examines branches
//!   one by one. In short buffers, the purpose of this discipline, both are negligible; with 100,000 packets
//!   queued a drop takes a tenth of a millisecond.
//!
//! # References
//! - V. Darlagiannis, M. Karsten, R. Steinmetz, "Burst Shaping Queueing", Workshop on Mobile Computing, 2003:
//!   section 5.2 and footnote 1.
//! - Floyd, Gummadi and Shenker 2001, "Adaptive RED".

use giveway_qdisc::blocks::red::{Detector, RedDecision};
use giveway_qdisc::blocks::{HopTree, Inner, Measure, Pick, ServiceOrder, Shape};
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, FlowTable, Invalid, Limit, LinkContext, Next, Packet, Properties, Qdisc,
    Rate, Rng, Share, Span, Time,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::thresholds::{Idle, Unit};
use crate::{Advice, Discipline, Needs};
use crate::{ared, bsq};

/// Parameters of `bsqred`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity of all sub-queues together; by default four times RED's `max`, in packets.
    pub limit: Option<Limit>,
    /// Number of hops beyond the neighbour that have sub-queues, 0 to 6; with 0 there is one queue.
    pub level: u8,
    /// The division of turns among branches.
    #[schemars(extend("x-hidden" = true))]
    pub inner: Inner,
    /// Weight turns by the rates of the downstream links, where they are known; otherwise all are equal.
    pub weighted: bool,
    /// The packet that is dropped, early or from a full buffer.
    pub drop: Victim,
    /// The size that makes a sub-queue the largest.
    pub measure: Measure,
    /// Number of nodes above which empty branches are forgotten.
    pub branches: u32,
    /// The delay that the queue may cause: the thresholds follow from it.
    pub target: Span,
    /// Length of an average packet.
    pub avpkt: Bytes,
    /// `max_p` in the beginning.
    pub probability: Share,
    /// Interval between adaptations of `max_p`.
    pub interval: Span,
    /// Largest increment of `max_p` when the average is too high.
    pub alpha: Share,
    /// Factor of `max_p` when the average is too low.
    pub beta: Share,
    /// `max_p` does not fall below this.
    pub bottom: Share,
    /// `max_p` does not rise above this.
    pub top: Share,
    /// Above `max` the probability rises to 1 at twice `max` instead of jumping there.
    pub gentle: bool,
    /// After a drop, no other one before the mean gap has passed.
    pub wait: bool,
}

/// The packet that is dropped, early or from a full buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Victim {
    /// A random packet of the largest sub-queue.
    RandomInLargest,
    /// A random packet of all sub-queues, the arriving one included.
    RandomAny,
    /// The oldest packet of the largest sub-queue.
    HeadOfLargest,
    /// The arriving packet.
    Arriving,
}

impl Default for Config {
    fn default() -> Config {
        let (tree, red) = (bsq::Config::default(), ared::Config::default());
        Config {
            limit: red.limit,
            level: tree.level,
            inner: tree.inner,
            weighted: tree.weighted,
            drop: Victim::RandomInLargest,
            measure: tree.measure,
            branches: tree.branches,
            target: red.target,
            avpkt: red.avpkt,
            probability: red.probability,
            interval: red.interval,
            alpha: red.alpha,
            beta: red.beta,
            bottom: red.bottom,
            top: red.top,
            gentle: red.gentle,
            wait: red.wait,
        }
    }
}

impl Config {
    /// Configuration of its Adaptive RED.
    fn red(&self) -> ared::Config {
        ared::Config {
            limit: self.limit,
            target: self.target,
            avpkt: self.avpkt,
            probability: self.probability,
            interval: self.interval,
            alpha: self.alpha,
            beta: self.beta,
            bottom: self.bottom,
            top: self.top,
            gentle: self.gentle,
            wait: self.wait,
            ..ared::Config::default()
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "burst shaping queueing with Adaptive RED: early drops from the largest sub-queue";
    const NEEDS: Needs = Needs::NextHops;
    type Qdisc<P: 'static> = Bsqred<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Bsqred<P>, Invalid> {
        let detector = self.red().detector(context)?;
        let limit = self.red().limit(context);
        let pick = match self.drop {
            Victim::RandomInLargest => Some(Pick::RandomInLargest),
            Victim::RandomAny => Some(Pick::Random),
            Victim::HeadOfLargest => Some(Pick::HeadOfLargest),
            Victim::Arriving => None,
        };
        let shape = Shape {
            depth: bsq::check_level(self.level)?,
            order: ServiceOrder::Corrected,
            inner: self.inner,
            weighted: self.weighted,
            most: context.mtu.0.min(u64::from(u32::MAX)) as u32,
            largest: matches!(self.drop, Victim::RandomInLargest | Victim::HeadOfLargest)
                .then_some(self.measure),
            branches: bsq::check_branches(self.branches)?,
        };
        Ok(Bsqred {
            limit,
            pick,
            detector,
            idle: Idle::new(context.rate, self.avpkt.0),
            tree: HopTree::new(shape, context.downstream.clone(), limit.initial_capacity()),
            rng: context.streams.rng(),
        })
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        Properties::plain(self.red().limit(context))
    }

    fn lookahead(&self) -> usize {
        usize::from(self.level)
    }

    fn variants() -> Vec<Config> {
        let tight = Config { target: Span::us(100), wait: false, ..Config::default() };
        vec![
            // The queue of the paper.
            Config { limit: Some(Limit::Bytes(20_000)), ..Config::default() },
            Config {
                limit: Some(Limit::Packets(12)),
                level: 2,
                drop: Victim::HeadOfLargest,
                ..tight.clone()
            },
            Config { drop: Victim::RandomAny, inner: Inner::Deficit, branches: 4, level: 6, ..tight.clone() },
            Config { drop: Victim::Arriving, gentle: false, inner: Inner::Srr, ..tight.clone() },
            Config { measure: Measure::Packets, limit: Some(Limit::Bytes(6000)), ..tight },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        self.red().warnings(context)
    }

    fn advice(&self, largest: Bytes, context: &LinkContext) -> Vec<Advice> {
        self.red().advice(largest, context)
    }
}

/// The tree and the detector.
pub struct Bsqred<P> {
    limit: Limit,
    /// Choice of the dropped packet; `None` for the arriving one.
    pick: Option<Pick>,
    detector: Detector,
    idle: Idle,
    tree: HopTree<P>,
    rng: Rng,
}

impl<P> Qdisc<P> for Bsqred<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let backlog = self.tree.backlog();
        let length = backlog.packets as f64;
        self.detector.observe(length, self.idle.take_missed(backlog, cx.now()), cx.now());
        let verdict = self.detector.decide(length, 1.0, || self.rng.uniform());
        let full = !self.limit.admits(backlog, pkt.bytes());
        if full {
            self.detector.on_overflow();
            if !self.limit.admits(Backlog::ZERO, pkt.bytes()) {
                return cx.drop(pkt, DropReason::TooLarge);
            }
        }
        let signal = verdict != RedDecision::Accept;
        match self.pick {
            None if full => cx.drop(pkt, DropReason::Overlimit),
            None if signal => cx.drop(pkt, DropReason::Early),
            None => drop(self.tree.push(pkt)),
            Some(pick) => {
                let arrival = self.tree.push(pkt);
                if full {
                    self.make_room(pick, arrival, cx);
                } else if signal {
                    let (_, victim) = self.tree.evict(pick, || self.rng.uniform());
                    cx.drop(victim, DropReason::Early);
                }
            }
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        // In this order a packet leaves whenever one is queued, so no later retry is necessary.
        let next = self.tree.pop(cx.now());
        if let Next::Packet(pkt) = &next {
            self.idle.on_departure(pkt.bytes(), cx.now());
        }
        next
    }

    fn backlog(&self) -> Backlog {
        self.tree.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.tree.reset(cx);
        self.detector.reset();
        self.idle.reset();
    }

    fn rate_changed(&mut self, rate: Rate, _: Time) {
        self.idle.rate_changed(rate);
    }

    fn flow_table(&self) -> FlowTable {
        self.tree.table()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit(Unit::Packets.average(), self.detector.average());
        visit("drop_probability", self.detector.base());
        visit("max_p", self.detector.max_p());
    }
}

impl<P> Bsqred<P> {
    /// Drops packets by the same rule until the backlog is within the limit.
    fn make_room(&mut self, pick: Pick, arrival: giveway_qdisc::Place, cx: &mut Cx<'_, P>) {
        while !self.limit.allows(self.tree.backlog()) {
            let (place, victim) = self.tree.evict(pick, || self.rng.uniform());
            let why = if place == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(victim, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::events::build_error;
    use giveway_qdisc::contract::{Event, Op, drive};
    use giveway_qdisc::{FlowKey, NextHops, Outbox, Rate, Streams, Time};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn context(seed: u64) -> LinkContext {
        LinkContext::new(Rate::kbit(12_500), Streams::new(seed))
    }

    /// A packet of 500 bytes towards a next hop.
    fn towards(hop: u16, name: &'static str) -> Packet<&'static str> {
        let mut pkt = Packet::new(FlowKey(u64::from(hop)), 500, name);
        pkt.meta.next_hops = NextHops::new([hop]);
        pkt
    }

    /// Four packets are queued, three of them towards 4. RED decides to drop when a packet towards 6 arrives:
    /// one of the three is dropped, each with the same probability.
    #[test]
    fn the_longest_branch_loses_a_packet() {
        let victims = |drop: Victim| {
            let config = Config { drop, ..Config::default() };
            let mut gone: BTreeMap<&str, u32> = BTreeMap::new();
            for seed in 0..300 {
                let mut queue: Bsqred<&str> = config.build(&context(seed)).unwrap();
                let mut out = Outbox::default();
                let mut cx = Cx::new(Time::ms(1), &mut out);
                for pkt in [towards(4, "a1"), towards(4, "a2"), towards(4, "a3"), towards(5, "b1")] {
                    queue.enqueue(pkt, &mut cx);
                }
                // An average far above twice max always signals congestion.
                let (curve, weight) =
                    (giveway_qdisc::blocks::red::Curve { min: 1.0, max: 2.0, gentle: false }, 1.0);
                queue.detector = Detector::new(curve, weight, 0.1, false, None);
                queue.enqueue(towards(6, "c1"), &mut cx);
                let left: Vec<&str> =
                    std::iter::from_fn(|| queue.dequeue(&mut cx).packet()).map(|pkt| pkt.payload).collect();
                let [(victim, DropReason::Early)] = &out.dropped[..] else { panic!("one packet goes early") };
                if victim.payload == "a2" {
                    assert_eq!(left, ["a1", "b1", "c1", "a3"]);
                }
                *gone.entry(victim.payload).or_default() += 1;
            }
            gone
        };
        let random = victims(Victim::RandomInLargest);
        assert_eq!(random.keys().copied().collect::<Vec<_>>(), ["a1", "a2", "a3"]);
        assert!(random.values().all(|times| (70..130).contains(times)), "{random:?}");
        let any = victims(Victim::RandomAny);
        assert!(any.len() == 5 && any.values().all(|times| (35..85).contains(times)), "{any:?}");
        assert_eq!(victims(Victim::HeadOfLargest), BTreeMap::from([("a1", 300)]));
        assert_eq!(victims(Victim::Arriving), BTreeMap::from([("c1", 300)]));
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            6 => (0..16u8, any::<u16>()).prop_map(|(flow, bytes)| Op::Enqueue { flow, bytes, class: 0, ecn: false }),
            2 => Just(Op::Dequeue),
            1 => (0..3000u16).prop_map(Op::Wait),
        ];
        prop::collection::vec(op, 1..400)
    }

    proptest! {
        /// With one queue and `drop arriving` it is Adaptive RED.
        #[test]
        fn without_branches_it_is_ared(ops in ops(), limit in 2..60u64, target in 0..3000u64, wait in any::<bool>()) {
            let no = if wait { "" } else { "no" };
            let more = format!("limit {limit}p target {target}us {no}wait");
            let run = |text: &str| -> Vec<Event> {
                let (spec, context): (Spec, _) = (text.parse().unwrap(), context(7));
                drive(&mut spec.build_numbered(&context).unwrap(), spec.properties(&context), &ops).unwrap()
            };
            prop_assert_eq!(run(&format!("bsqred level 0 drop arriving {more}")), run(&format!("ared {more}")));
        }

        /// Dropped packets are of a largest sub-queue, there are no early drops below min, and the backlog
        /// stays within the limit.
        #[test]
        fn victims_are_in_a_largest_sub_queue(
            arrivals in prop::collection::vec((any::<bool>(), 0..5u16, 40..1500u32), 1..400),
            seed in any::<u64>(),
            by_packets in any::<bool>(),
            head in any::<bool>(),
        ) {
            let config = Config {
                limit: Some(Limit::Packets(30)),
                target: Span::us(10),
                wait: false,
                probability: Share::new(0.5).unwrap(),
                measure: if by_packets { Measure::Packets } else { Measure::Bytes },
                drop: if head { Victim::HeadOfLargest } else { Victim::RandomInLargest },
                ..Config::default()
            };
            // On a slow link the weight is so large that the average follows a few packets.
            let slow = LinkContext::new(Rate::kbit(8), Streams::new(seed));
            let mut queue: Bsqred<u64> = config.build(&slow).unwrap();
            let mut out = Outbox::default();
            let mut waiting: BTreeMap<u64, (u16, u32)> = BTreeMap::new();
            let mut now = Time::ms(1);
            for (serial, (arrives, hop, bytes)) in (0u64..).zip(arrivals) {
                now += Span::us(10);
                let mut cx = Cx::new(now, &mut out);
                if !arrives {
                    if let Some(left) = queue.dequeue(&mut cx).packet() {
                        waiting.remove(&left.payload);
                    }
                    continue;
                }
                let full = waiting.len() == 30;
                let mut pkt = Packet::new(FlowKey(u64::from(hop)), bytes, serial);
                pkt.meta.next_hops = NextHops::new((hop > 0).then_some(hop));
                waiting.insert(serial, (hop, bytes));
                queue.enqueue(pkt, &mut cx);
                for (victim, why) in out.dropped.drain(..) {
                    let size = |hop: u16| -> u64 {
                        let its = waiting.values().filter(|(other, _)| *other == hop);
                        its.map(|(_, bytes)| if by_packets { 1 } else { u64::from(*bytes) }).sum()
                    };
                    let (of, _) = waiting[&victim.payload];
                    prop_assert!((0..5).all(|other| size(other) <= size(of)));
                    prop_assert_eq!(why == DropReason::Early, !full);
                    prop_assert!(full || queue.detector.average() >= 5.0);
                    waiting.remove(&victim.payload);
                }
                prop_assert_eq!(queue.backlog().packets, waiting.len() as u64);
            }
        }
    }

    #[test]
    fn invalid_parameters_are_refused_and_unusual_ones_reported() {
        assert_eq!(build_error("bsqred level 7").parameter, "level");
        assert_eq!(build_error("bsqred limit 0p").parameter, "limit");
        assert_eq!(build_error("bsqred avpkt 0b").parameter, "avpkt");
        assert_eq!(build_error("bsqred branches 0").parameter, "branches");
        let warnings = |text: &str| text.parse::<Spec>().unwrap().warnings(&context(1));
        assert!(warnings("bsqred").is_empty());
        assert!(warnings("bsqred limit 20p")[0].starts_with("limit: 20p are fewer"));
    }
}
