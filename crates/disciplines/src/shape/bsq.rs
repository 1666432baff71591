//! Burst shaping queueing: packets that separate at the next router leave in turn, so that its links do not
//! get bursts.
//!
//! # Principles
//! - A router knows the next hop of a packet, and the hops after it. So a link has a tree of sub-queues. The
//!   root is the neighbour, and a child is a next hop beyond its parent; `level` is the depth of the tree. A
//!   packet waits at the node where its route ends or where the tree does.
//! - Each node serves its own queue and its branches in turn, one packet at a time. An empty one has no turn.
//!   So packets of other links break up a run of packets for one link of the next router.
//! - Faster links get more turns: the weight of a branch is its link's rate over the slowest rate next to it,
//!   where rates are known. Otherwise, and for a node's own queue, it is 1. The turns of a branch are spread,
//!   since turns in a row would be the bursts that this discipline prevents.
//! - The sub-queues share the buffer. When it is full, the oldest packet of the largest sub-queue is dropped.
//! - There is state for nearby links, not for flows. Packets on the same route keep their order.
//!
//! # Deviations
//! - The paper's listing of departures, read literally, examines one place per call and returns nothing if it
//!   is empty: the link idles although packets are queued. `order literal` does that. `order double` is
//!   another reading: it also advances twice after a branch that had a packet, and so skips every second
//!   branch. By default an empty place costs no turn. When a literal order finds nothing, the link tries
//!   again after the time of its largest packet or at the next arrival. The paper does not specify this; its
//!   simulator tries at arrivals only. Literal orders have no weights.
//! - Weights are rounded to a sixteenth. The paper names link bandwidths as a parameter but gives no rule.
//!   `inner smooth` counts packets; `inner deficit` and `inner srr` count bytes. The authors tried the latter
//!   and rejected it.
//! - The largest sub-queue is the largest of one node alone, by bytes. Among equal ones it is the oldest
//!   node, and the root before all others. `measure packets` counts packets. `descend` goes from the root to
//!   the largest part of each node instead. The dropped packet may be the arriving one.
//! - `drop` selects other packets, and `order fifo` serves in the order of arrival with the same drops. They
//!   separate the effect of the order from the effect of the drops.
//! - Branches stay, as in the paper, but not without limit: above `branches` nodes, empty ones are forgotten.
//!   Literal orders, which examine empty places, then serve differently.
//! - When routes change, queued packets stay where they are, so a flow may be reordered.
//!
//! # Cost
//! - One table look-up for each arriving packet, and one more for each level beyond the fourth. A few steps
//!   per level for each departure, however many branches are empty. A sub-queue that becomes empty or
//!   backlogged costs a few steps, and so does each node above it that changes with it.
//! - Sub-queues are compared only from the time when the buffer is full until it is empty. The largest of up
//!   to 64 is then known at once while all packets have one length, and with `measure packets`. Otherwise the
//!   search costs O(log sub-queues), amortised over departures. `descend` and `drop random` examine all
//!   sub-queues for each drop, and the latter a quarter of one sub-queue on average.
//! - About 260 bytes per node of the tree, and 300 more for a node with branches.
//!
//! # References
//! - V. Darlagiannis, M. Karsten, R. Steinmetz, "Burst Shaping Queueing", Workshop on Mobile Computing, 2003:
//!   section 4, figures 4 and 5.
//! - C. Guo, "SRR", SIGCOMM 2001: the spread of turns.

use giveway_qdisc::blocks::{HopTree, Inner, Measure, Pick, ServiceOrder, Shape};
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, FlowTable, Invalid, Limit, LinkContext, Next, NextHops, Packet,
    Properties, Qdisc, Rate, Rng, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Discipline, Needs};

/// Parameters of `bsq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity of all sub-queues together, in packets or in bytes.
    pub limit: Limit,
    /// Number of hops beyond the neighbour that have sub-queues, 0 to 6; with 0 there is one queue.
    pub level: u8,
    /// The order in which sub-queues are served.
    #[schemars(extend("x-hidden" = true))]
    pub order: ServiceOrder,
    /// The division of turns among branches.
    #[schemars(extend("x-hidden" = true))]
    pub inner: Inner,
    /// Weight turns by the rates of the downstream links, where they are known; otherwise all are equal.
    pub weighted: bool,
    /// The packet that is dropped when the buffer is full.
    pub drop: Victim,
    /// The size that makes a sub-queue the largest.
    pub measure: Measure,
    /// With `drop head`, select the queue by descending from the root to the largest part of each node: its
    /// own queue, or a branch with everything below it.
    #[schemars(extend("x-hidden" = true))]
    pub descend: bool,
    /// Number of nodes above which empty branches are forgotten.
    pub branches: u32,
}

/// The packet that a full buffer drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Victim {
    /// The oldest packet of the largest sub-queue.
    Head,
    /// The arriving packet.
    Tail,
    /// The oldest packet of the sub-queue that would be served next.
    Front,
    /// A random packet, the arriving one included.
    Random,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Packets(1000),
            level: 1,
            order: ServiceOrder::Corrected,
            inner: Inner::Smooth,
            weighted: true,
            drop: Victim::Head,
            measure: Measure::Bytes,
            descend: false,
            branches: 1024,
        }
    }
}

impl Config {
    /// True if a packet leaves whenever one is queued.
    fn finds(&self) -> bool {
        matches!(self.order, ServiceOrder::Corrected | ServiceOrder::Fifo)
    }
}

/// Checks the number of hops of the lookahead.
pub(crate) fn check_level(level: u8) -> Result<usize, Invalid> {
    match usize::from(level) {
        level if level <= NextHops::MAX => Ok(level),
        level => Err(Invalid::new(
            "level",
            format!("must be at most {}, not {level}: packets carry {} hops", NextHops::MAX, NextHops::MAX),
        )),
    }
}

/// Checks that the tree has room for a root and a branch.
pub(crate) fn check_branches(branches: u32) -> Result<usize, Invalid> {
    match branches {
        0 | 1 => Err(Invalid::new("branches", "must be at least 2 (a root and a branch), for example 1024")),
        branches => Ok(branches as usize),
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "burst shaping queueing: sub-queues by the hops beyond the next router, served in turn";
    const NEEDS: Needs = Needs::NextHops;
    type Qdisc<P: 'static> = Bsq<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Bsq<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let pick = match self.drop {
            Victim::Head if self.descend => Some(Pick::HeadOfHeaviest),
            Victim::Head => Some(Pick::HeadOfLargest),
            Victim::Tail => None,
            Victim::Front => Some(Pick::Next),
            Victim::Random => Some(Pick::Random),
        };
        let shape = Shape {
            depth: check_level(self.level)?,
            order: self.order,
            inner: self.inner,
            weighted: self.weighted,
            most: context.mtu.0.min(u64::from(u32::MAX)) as u32,
            largest: (self.drop == Victim::Head).then_some(self.measure),
            branches: check_branches(self.branches)?,
        };
        Ok(Bsq {
            limit: self.limit,
            pick,
            // Above zero, so that the next attempt is in the future.
            mtu: context.mtu,
            look_again: context.rate.time_for(context.mtu.0).max(Span::from_ps(1)),
            tree: HopTree::new(shape, context.downstream.clone(), self.limit.initial_capacity()),
            rng: context.streams.rng(),
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties { work_conserving: self.finds(), ..Properties::plain(self.limit) }
    }

    fn lookahead(&self) -> usize {
        usize::from(self.level)
    }

    fn variants() -> Vec<Config> {
        let plain = Config { limit: Limit::Packets(8), ..Config::default() };
        let bytes = Config { limit: Limit::Bytes(12_000), level: 3, ..Config::default() };
        vec![
            plain.clone(),
            // The paper's queue.
            Config { limit: Limit::Bytes(20_000), ..plain.clone() },
            Config { level: 0, ..plain.clone() },
            Config { level: 6, branches: 4, ..plain.clone() },
            Config { order: ServiceOrder::Literal, ..plain.clone() },
            Config { order: ServiceOrder::Double, drop: Victim::Front, branches: 4, ..plain.clone() },
            Config { inner: Inner::Deficit, ..bytes.clone() },
            Config { inner: Inner::Srr, drop: Victim::Front, branches: 4, ..bytes.clone() },
            Config { descend: true, weighted: false, ..bytes.clone() },
            Config { drop: Victim::Tail, measure: Measure::Packets, ..bytes },
            Config { drop: Victim::Random, measure: Measure::Packets, level: 2, ..plain.clone() },
            Config { drop: Victim::Front, ..plain.clone() },
            Config { order: ServiceOrder::Fifo, ..plain.clone() },
            Config { order: ServiceOrder::Fifo, measure: Measure::Packets, ..plain.clone() },
            Config { order: ServiceOrder::Fifo, drop: Victim::Random, ..plain },
        ]
    }

    fn warnings(&self, _: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.finds() {
            warnings.push(
                "order: the literal orders can leave the link idle with packets in the queue; use them for demonstrations only".into(),
            );
        }
        if self.descend && self.drop != Victim::Head {
            warnings.push("descend: has an effect only with \"drop head\"".into());
        }
        warnings
    }
}

/// The tree, and the choice of the dropped packet.
pub struct Bsq<P> {
    limit: Limit,
    /// `None` drops the arriving packet.
    pick: Option<Pick>,
    /// Time until the next attempt after one that found no packet.
    look_again: Span,
    mtu: Bytes,
    tree: HopTree<P>,
    rng: Rng,
}

impl<P> Qdisc<P> for Bsq<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if !self.limit.admits(Backlog::ZERO, pkt.bytes()) {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        let Some(pick) = self.pick else {
            if !self.limit.admits(self.tree.backlog(), pkt.bytes()) {
                return cx.drop(pkt, DropReason::Overlimit);
            }
            self.tree.push(pkt);
            return;
        };
        let arrival = self.tree.push(pkt);
        while !self.limit.allows(self.tree.backlog()) {
            let (place, victim) = self.tree.evict(pick, || self.rng.uniform());
            let why = if place == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(victim, why);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.tree.pop(cx.now() + self.look_again)
    }

    fn backlog(&self) -> Backlog {
        self.tree.backlog()
    }

    fn rate_changed(&mut self, rate: Rate, _: Time) {
        self.look_again = rate.time_for(self.mtu.0).max(Span::from_ps(1));
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.tree.reset(cx);
    }

    fn flow_table(&self) -> FlowTable {
        self.tree.table()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::events::build_error;
    use crate::testing::trace::trace_on;
    use giveway_qdisc::contract::{Event, Op, drive};
    use giveway_qdisc::{Bytes, Downstream, Meta, Rate, Streams};
    use proptest::prelude::*;

    /// The link from node 1 to node 3, beyond which are 4, 5 and 6. Its largest packet has 500 bytes.
    fn context() -> LinkContext {
        let links = [((3, 4), Rate::mbit(4)), ((3, 5), Rate::mbit(4)), ((3, 6), Rate::mbit(4))];
        let downstream = Downstream::new(3, links);
        LinkContext {
            mtu: Bytes(500),
            downstream,
            ..LinkContext::new(Rate::bit(500 * 8000), Streams::new(1))
        }
    }

    /// A has the next hop 4, B 5, C 6; Z is addressed to node 3.
    fn towards(meta: &mut Meta) {
        meta.next_hops = NextHops::new((meta.class < 3).then_some(4 + meta.class));
    }

    /// At 500 bytes per millisecond.
    fn traced(spec: &str, arrivals: &str) -> String {
        trace_on(spec.parse::<Spec>().unwrap().build_numbered(&context()).unwrap(), 500, arrivals, towards)
    }

    const NINE: &str = "0 A1 500, A2 500, A3 500, B1 500, B2 500, Z1 500, C1 500, A4 500";

    #[test]
    fn next_hops_take_turns() {
        assert_eq!(traced("bsq", NINE), "Z1[0-1] A1[1-2] B1[2-3] C1[3-4] A2[4-5] B2[5-6] A3[6-7] A4[7-8] |");
        assert_eq!(traced("bsq level 0", NINE), traced("fifo", NINE));
    }

    #[test]
    fn the_head_of_the_largest_sub_queue_is_dropped() {
        let full = traced("bsq limit 2500b", NINE);
        assert_eq!(full, "Z1[0-1] A4[1-2] B1[2-3] C1[3-4] B2[4-5] | A1@0 A2@0 A3@0");
        assert_eq!(traced("bsq limit 5p measure packets", NINE), full);
        // Each branch has one queue, so the largest part of the root is the same.
        assert_eq!(traced("bsq limit 5p descend", NINE), full);
    }

    #[test]
    fn order_and_drop_are_independent() {
        let with = |more: &str| traced(&format!("bsq limit 2500b {more}"), NINE);
        assert_eq!(with("drop tail"), "A1[0-1] B1[1-2] A2[2-3] B2[3-4] A3[4-5] | Z1@0 C1@0 A4@0");
        // The sub-queue that is served next is that of Z1 as soon as Z1 arrives, and then that of A.
        assert_eq!(with("drop front"), "A3[0-1] B1[1-2] C1[2-3] A4[3-4] B2[4-5] | Z1@0 A1@0 A2@0");
        assert_eq!(with("order fifo"), "B1[0-1] B2[1-2] Z1[2-3] C1[3-4] A4[4-5] | A1@0 A2@0 A3@0");
        assert_eq!(with("order fifo drop tail"), traced("fifo limit 2500b", NINE));
        assert_eq!(with("order fifo drop front"), traced("fifo limit 2500b drop head", NINE));
    }

    /// The link tries again after the time of a packet, which is a millisecond.
    #[test]
    fn the_literal_listing_leaves_the_link_idle() {
        assert_eq!(
            traced("bsq order literal", NINE),
            "Z1[0-1] A1[1-2] B1[2-3] C1[3-4] A2[5-6] B2[6-7] A3[9-10] A4[13-14] |"
        );
        assert_eq!(
            traced("bsq order double", NINE),
            "Z1[0-1] A1[1-2] C1[2-3] A2[3-4] A3[6-7] A4[9-10] B1[13-14] B2[16-17] |"
        );
    }

    /// After a change of the route, queued packets stay in their sub-queue: none is lost, but the flow may be
    /// reordered.
    #[test]
    fn a_changed_route_loses_no_packets() {
        let mut bsq = Config::default().build::<u64>(&context()).unwrap();
        let mut out = giveway_qdisc::Outbox::default();
        let mut cx = Cx::new(giveway_qdisc::Time::ZERO, &mut out);
        for number in 0..6 {
            let mut pkt = Packet::new(giveway_qdisc::FlowKey(1), 500, number);
            pkt.meta.next_hops = NextHops::new([if number < 3 { 4 } else { 5 }]);
            bsq.enqueue(pkt, &mut cx);
        }
        let left: Vec<u64> =
            std::iter::from_fn(|| bsq.dequeue(&mut cx).packet()).map(|pkt| pkt.payload).collect();
        assert_eq!(left, [0, 3, 1, 4, 2, 5]);
        assert!(out.dropped.is_empty());
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            3 => (0..16u8, any::<u16>())
                .prop_map(|(flow, bytes)| Op::Enqueue { flow, bytes, class: 0, ecn: false }),
            2 => Just(Op::Dequeue),
        ];
        prop::collection::vec(op, 1..300)
    }

    fn events(text: &str, ops: &[Op]) -> Vec<Event> {
        let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
        let spec: Spec = text.parse().unwrap();
        drive(&mut spec.build_numbered(&context).unwrap(), spec.properties(&context), ops).unwrap()
    }

    fn limit() -> impl Strategy<Value = String> {
        prop_oneof![
            (1..20u64).prop_map(|most| format!("{most}p")),
            (1500..20_000u64).prop_map(|most| format!("{most}b"))
        ]
    }

    proptest! {
        /// With level 0 there is one queue, and its oldest packet is the head of both the largest and the
        /// next sub-queue.
        #[test]
        fn level_0_is_a_fifo_that_drops_its_head(
            ops in ops(),
            limit in limit(),
            drop in prop::sample::select(&["head", "front"]),
            order in prop::sample::select(&["corrected", "literal", "double", "fifo"]),
        ) {
            let bsq = events(&format!("bsq level 0 limit {limit} drop {drop} order {order}"), &ops);
            prop_assert_eq!(bsq, events(&format!("fifo limit {limit} drop head"), &ops));
        }

        /// With `order fifo` the tree has an effect only if `drop` uses the largest sub-queue.
        #[test]
        fn order_fifo_is_a_fifo(
            ops in ops(),
            limit in limit(),
            level in 0..7u8,
            (ours, its) in prop::sample::select(&[("tail", "tail"), ("front", "head")]),
        ) {
            let bsq = events(&format!("bsq order fifo level {level} limit {limit} drop {ours}"), &ops);
            prop_assert_eq!(bsq, events(&format!("fifo limit {limit} drop {its}"), &ops));
        }

        /// With `drop tail` and packets of one length, the drops do not depend on the order of service.
        #[test]
        fn with_drop_tail_the_order_changes_no_loss(ops in ops(), limit in 1..20u64, level in 0..7u8) {
            let equal = |op: &Op| match *op {
                Op::Enqueue { flow, .. } => Op::Enqueue { flow, bytes: 460, class: 0, ecn: false },
                other => other,
            };
            let ops: Vec<Op> = ops.iter().map(equal).collect();
            let dropped = |text: &str| {
                let mut events = events(text, &ops);
                events.retain(|event| matches!(event, Event::Dropped(..)));
                events
            };
            let fifo = dropped(&format!("fifo limit {limit}p"));
            prop_assert_eq!(dropped(&format!("bsq level {level} limit {limit}p drop tail")), fifo);
        }
    }

    #[test]
    fn invalid_parameters_are_refused_and_unusual_ones_reported() {
        assert_eq!(
            build_error("bsq level 7").to_string(),
            "level: must be at most 6, not 7: packets carry 6 hops"
        );
        assert!(build_error("bsq branches 1").to_string().starts_with("branches: "));
        assert!(build_error("bsq limit 0p").to_string().starts_with("limit: "));
        let warnings = |text: &str| text.parse::<Spec>().unwrap().warnings(&context());
        assert!(warnings("bsq").is_empty());
        assert!(warnings("bsq order double")[0].starts_with("order: "));
        assert!(warnings("bsq drop tail descend")[0].starts_with("descend: "));
        assert_eq!("bsq level 4".parse::<Spec>().unwrap().lookahead(), 4);
    }
}
