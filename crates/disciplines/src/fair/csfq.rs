//! Core-Stateless Fair Queueing: edges write each flow's rate on its packets; cores drop by this rate and one
//! fair rate, alpha.
//!
//! # Principles
//! - A packet of a flow of rate r is dropped with probability 1 - alpha / r: at most alpha remains of every
//!   flow. The core needs only the label, not the flow.
//! - Alpha follows from the measured rates: while more arrives than the link carries, it is scaled by
//!   capacity over accepted rate, once per `update`; while less arrives, it is the largest label seen.
//! - No packet is dropped early before the queue has once been as long as `threshold`: alpha is unknown until
//!   then, which 0 represents.
//! - An overflow of the buffer means that alpha is too high: each lost packet lowers it by `overflow_step`,
//!   `overflow_budget` times.
//! - An accepted packet leaves with a label of at most alpha, for the next router.
//! - A packet without a label is labelled here first (`edge`), as routers do at the border of a network.
//!
//! # Deviations
//! - **The budget's reload.** The budget bounds how far overflow lowers alpha, by not more than a quarter at
//!   a time. Public implementations reload it only when the link becomes congested (`reload transition`).
//!   Once it is spent at a link that stays congested, nothing lowers alpha again: lost packets do not count
//!   as accepted, so what is accepted is exactly the capacity. `reload window` reloads it with every window,
//!   and is the default.
//! - `overflow_budget` 29 allows 30 steps, as the comparison of public implementations does.
//! - Packets lost by overflow change neither of the two averages, as in that comparison.
//! - Edges forget flows that were silent for 5 s; the paper has no such rule, and public implementations a
//!   fixed array.
//! - Weights of flows are left out.
//! - The capacity follows a link whose rate varies; alpha follows it by its own estimate.
//!
//! # Cost
//! - Core: two exponentials per packet (one where both constants are equal), a draw when the label is above
//!   alpha. No state per flow. Edge: a look-up and an exponential, 64 bytes per flow of the last five
//!   seconds.
//!
//! # References
//! - I. Stoica, S. Shenker, H. Zhang, "Core-Stateless Fair Queueing: Achieving Approximately Fair Bandwidth
//!   Allocations in High Speed Networks", SIGCOMM 1998: sections 3.2 (edge), 3.3 (core), 3.4 (buffer
//!   overflow).
//! - H. Zhang, J. Jiang, W. Dou 2007 (FPIP), section 3.1: 300 KB, threshold 50 KB, or 30 and 25 KB.

use giveway_qdisc::blocks::{AveragedRate, Averaging, Buffer, Edge, Memory, SameInstant};
use giveway_qdisc::{
    Backlog, Cx, DropReason, FlowTable, Invalid, Label, Limit, LinkContext, Next, Packet, Properties, Qdisc,
    Rate, Rng, Share, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fpip_edge::MEMORY;
use crate::pip::above_limit;
use crate::{Discipline, Needs};

/// Parameters of `csfq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity; packets beyond it are dropped.
    pub limit: Limit,
    /// Length of the queue above which packets are dropped early.
    pub threshold: Limit,
    /// Label packets without a label here.
    pub edge: bool,
    /// The time that rates of flows are averaged over, at the edge (K).
    pub window: Span,
    /// The time that the arriving and the accepted rate are averaged over, in the core (K_alpha).
    pub core_window: Span,
    /// Interval between estimates of alpha (K_c).
    pub update: Span,
    /// The contribution of packets of one instant to a rate.
    pub same_instant: SameInstant,
    /// Share by which each packet lost to a full buffer lowers alpha.
    pub overflow_step: Share,
    /// Largest number of such steps, less one, between two reloads of the budget.
    pub overflow_budget: u32,
    /// Time at which the budget is reloaded.
    pub reload: Reload,
    /// Time between visits of the edge's table that forget flows. Zero: never.
    pub sweep: Span,
    /// Silence after which a visit forgets a flow.
    pub idle: Span,
    /// Largest number of flows in the edge's table.
    pub flows: u32,
}

/// Time from which overflow may lower alpha again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reload {
    /// At the start of congestion of the link.
    Transition,
    /// At the start of congestion, and with every window.
    Window,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Bytes(300_000),
            threshold: Limit::Bytes(50_000),
            edge: true,
            window: Span::ms(100),
            core_window: Span::ms(100),
            update: Span::ms(100),
            same_instant: SameInstant::Limit,
            overflow_step: Share::new(0.01).expect("1 % is a share"),
            overflow_budget: 29,
            reload: Reload::Window,
            sweep: MEMORY.sweep,
            idle: MEMORY.idle,
            flows: MEMORY.flows as u32,
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "core-stateless fair queueing: drops by the rate that an edge wrote on the packet";
    const NEEDS: Needs = Needs::Labels;
    type Qdisc<P: 'static> = Csfq<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Csfq<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let memory = Memory::checked(self.sweep, self.idle, self.flows)?;
        let flows = Averaging::new("window", self.window, self.same_instant)?;
        let core = Core {
            capacity: context.rate.as_bit() as f64,
            averaging: Averaging::new("core_window", self.core_window, self.same_instant)?,
            update: self.update,
            overflow_step: self.overflow_step.get(),
            overflow_budget: i64::from(self.overflow_budget),
            reload: self.reload,
            state: State::default(),
        };
        Ok(Csfq {
            edge: self.edge.then(|| Edge::new(flows, memory)),
            core,
            threshold: self.threshold,
            rng: context.streams.rng(),
            queue: Buffer::new(self.limit),
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let quick = Config { update: Span::ms(1), core_window: Span::ms(1), ..Config::default() };
        vec![
            Config { limit: Limit::Packets(5), threshold: Limit::Packets(2), ..quick.clone() },
            Config { limit: Limit::Bytes(6000), threshold: Limit::Bytes(1500), edge: false, ..quick.clone() },
            Config {
                limit: Limit::Packets(20),
                threshold: Limit::Packets(5),
                reload: Reload::Transition,
                same_instant: SameInstant::Accumulate,
                flows: 3,
                ..quick
            },
        ]
    }

    fn warnings(&self, _: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::from_iter(above_limit("threshold", self.threshold, self.limit));
        if self.reload == Reload::Transition {
            warnings.push(
                "reload: with transition a congested link can stay with a full buffer and too high a fair rate"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// An edge, where it is one; a core; and the queue.
pub struct Csfq<P> {
    edge: Option<Edge>,
    core: Core,
    threshold: Limit,
    rng: Rng,
    queue: Buffer<P>,
}

/// The core: state for all flows together.
#[derive(Clone, Debug)]
struct Core {
    /// C, bit/s.
    capacity: f64,
    averaging: Averaging,
    /// K_c.
    update: Span,
    overflow_step: f64,
    overflow_budget: i64,
    reload: Reload,
    state: State,
}

/// The variable state.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The fair rate, bit/s; 0: not known.
    alpha: f64,
    /// A, what arrives.
    arriving: AveragedRate,
    /// F, what is accepted.
    accepted: AveragedRate,
    /// Time of the last update of both.
    last: Option<Time>,
    /// The largest label since the last estimate of alpha.
    largest: f64,
    congested: bool,
    /// Start of the window.
    begun: Time,
    /// k: the remaining number of times that overflow may lower alpha, less one.
    budget: i64,
}

impl<P> Qdisc<P> for Csfq<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let (now, bytes) = (cx.now(), pkt.bytes());
        if let Some(edge) = &mut self.edge
            && !pkt.meta.label.is_set()
        {
            pkt.meta.label = edge.label(pkt.meta.flow, bytes, 0, now);
        }
        let label = pkt.meta.label;
        let probability = self.core.probability(label);
        if probability > 0.0 && self.rng.uniform() < probability {
            self.core.estimate(label, bytes, 0, self.is_long(), now);
            return cx.drop(pkt, DropReason::Early);
        }
        if !self.queue.admits(bytes) {
            self.core.on_overflow();
            self.queue.push(pkt, cx);
            return;
        }
        let alpha = self.core.state.alpha;
        if alpha > 0.0 {
            pkt.meta.label = label.lowered(Rate::bit(alpha as u64));
        }
        self.queue.push(pkt, cx);
        self.core.estimate(label, bytes, bytes, self.is_long(), now);
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        self.queue.pop().map_or(Next::Empty, Next::Packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.core.state = State::default();
        self.edge.iter_mut().for_each(Edge::clear);
    }

    fn rate_changed(&mut self, rate: Rate, _: Time) {
        self.core.capacity = rate.as_bit() as f64;
    }

    fn flow_table(&self) -> FlowTable {
        self.edge.as_ref().map_or_else(FlowTable::default, Edge::table)
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let state = &self.core.state;
        visit("fair_share_bps", state.alpha);
        visit("arriving_bps", state.arriving.rate);
        visit("accepted_bps", state.accepted.rate);
    }
}

impl<P> Csfq<P> {
    /// True if the queue is so long that packets are dropped early.
    fn is_long(&self) -> bool {
        match self.threshold {
            Limit::Packets(packets) => self.queue.backlog().packets >= packets,
            Limit::Bytes(bytes) => self.queue.backlog().bytes >= bytes,
        }
    }
}

impl Core {
    /// Probability that a packet with this label is dropped.
    fn probability(&self, label: Label) -> f64 {
        let (alpha, rate) = (self.state.alpha, label.rate().as_bit() as f64);
        if alpha > 0.0 && rate > 0.0 { (1.0 - alpha / rate).max(0.0) } else { 0.0 }
    }

    /// A packet was lost to a full buffer.
    fn on_overflow(&mut self) {
        if self.state.budget >= 0 {
            self.state.alpha *= 1.0 - self.overflow_step;
            self.state.budget -= 1;
        }
    }

    /// Counts a packet of which `accepted` bytes were accepted, and estimates alpha. `is_long` is true if the
    /// queue is at its threshold.
    fn estimate(&mut self, label: Label, bytes: u32, accepted: u32, is_long: bool, now: Time) {
        let state = &mut self.state;
        let step = self.averaging.step(state.last, now);
        step.apply(&mut state.arriving, bytes);
        step.apply(&mut state.accepted, accepted);
        state.last = Some(now);

        let label = label.rate().as_bit() as f64;
        if state.alpha == 0.0 {
            if !is_long {
                state.largest = state.largest.max(label);
                return;
            }
            state.alpha = if state.largest > 0.0 { state.largest } else { self.capacity / 2.0 };
            state.largest = 0.0;
        }
        let over = now >= state.begun + self.update;
        if state.arriving.rate >= self.capacity {
            if !state.congested {
                state.congested = true;
                state.begun = now;
                state.budget = self.overflow_budget;
            } else if over {
                // The accepted rate may decay to 0 while all packets are dropped: then alpha becomes the
                // capacity.
                let scaled = state.alpha * self.capacity / state.accepted.rate.max(1.0);
                state.alpha = scaled.min(self.capacity);
                state.begun = now;
                if self.reload == Reload::Window {
                    state.budget = self.overflow_budget;
                }
            }
        } else if state.congested {
            state.congested = false;
            state.begun = now;
            state.largest = 0.0;
        } else if !over {
            state.largest = state.largest.max(label);
        } else {
            state.alpha = if is_long { state.largest } else { 0.0 };
            state.begun = now;
            if is_long {
                state.largest = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::events::{any_flows, events};
    use crate::testing::rates::{Flow, Outcome, offer, offer_from};
    use crate::testing::trace::{T1, trace};
    use giveway_qdisc::{FlowKey, Outbox, Streams};
    use proptest::prelude::*;

    const LINK: Rate = Rate::mbit(10);

    fn built(spec: &str) -> Csfq<u64> {
        let Spec::csfq(config) = spec.parse().unwrap() else { panic!("{spec} is csfq") };
        config.build(&LinkContext::new(LINK, Streams::new(1))).unwrap()
    }

    fn rate(mbit: u64) -> Label {
        Label::of(Rate::mbit(mbit))
    }

    /// The twenty senders of FPIP's figure 3(a): 0.5, 1, 1.5 ... 10 Mbit/s, 500 bytes each.
    fn twenty() -> Vec<Flow> {
        (1..=20).map(|i| Flow { kbit: 500 * i, bytes: 500 }).collect()
    }

    /// While alpha is unknown there are no early drops.
    #[test]
    fn is_a_fifo_until_it_is_congested() {
        assert_eq!(trace("csfq limit 4p threshold 5p", 1000, T1), trace("fifo limit 4p", 1000, T1));
    }

    #[test]
    fn a_window_scales_alpha_by_capacity_over_accepted_rate() {
        let mut core = built("csfq").core;
        core.state = State {
            alpha: 1e6,
            arriving: AveragedRate { rate: 30e6, pending: 0 },
            accepted: AveragedRate { rate: 19.5e6, pending: 0 },
            last: Some(Time::ms(200)),
            congested: true,
            begun: Time::ms(100),
            ..State::default()
        };
        // At the same instant and without bytes, so that the rates do not change.
        core.estimate(rate(2), 0, 0, true, Time::ms(200));
        assert!((core.state.alpha - 0.512_82e6).abs() < 5.0, "{}", core.state.alpha);
        assert_eq!(core.state.begun, Time::ms(200));
        // The next change comes at the end of the next window.
        core.estimate(rate(2), 0, 0, true, Time::ms(299));
        assert!((core.state.alpha - 0.512_82e6).abs() < 5.0);
    }

    #[test]
    fn overflow_lowers_alpha_thirty_times_at_most() {
        let mut core = built("csfq").core;
        (core.state.alpha, core.state.budget) = (1.0, core.overflow_budget);
        (0..29).for_each(|_| core.on_overflow());
        assert!((core.state.alpha - 0.747_17).abs() < 5e-6, "{}", core.state.alpha);
        (0..50).for_each(|_| core.on_overflow());
        assert!((core.state.alpha - 0.739_70).abs() < 5e-6, "{}", core.state.alpha);
    }

    #[test]
    fn alpha_begins_as_the_largest_label_or_as_half_of_the_link() {
        let mut core = built("csfq").core;
        core.estimate(rate(2), 500, 500, false, Time::ms(1));
        core.estimate(rate(3), 500, 500, false, Time::ms(2));
        assert_eq!(core.state.alpha, 0.0, "the queue is short: alpha is unknown");
        core.estimate(rate(1), 500, 500, true, Time::ms(3));
        assert_eq!(core.state.alpha, 3e6);
        let mut unlabelled = built("csfq").core;
        unlabelled.estimate(Label::NONE, 500, 500, true, Time::ms(1));
        assert_eq!(unlabelled.state.alpha, 5e6);
    }

    #[test]
    fn labels_are_lowered_and_packets_without_a_label_are_not_dropped_early() {
        let mut csfq = built("csfq noedge");
        csfq.core.state.alpha = 1.5e6;
        let mut out = Outbox::default();
        let mut left = Vec::new();
        for (serial, label) in
            [rate(1), Label::NONE, Label::SHORT, rate(2)].into_iter().cycle().take(400).enumerate()
        {
            let mut pkt = Packet::new(FlowKey(1), 500, serial as u64);
            pkt.meta.label = label;
            let mut cx = Cx::new(Time::ms(1), &mut out);
            csfq.enqueue(pkt, &mut cx);
            left.extend(csfq.dequeue(&mut cx).packet().map(|pkt| pkt.meta.label));
        }
        let count = |label| left.iter().filter(|other| **other == label).count();
        assert_eq!([rate(1), Label::NONE, Label::SHORT].map(count), [100; 3]);
        let lowered = count(Label::of(Rate::kbit(1500)));
        assert!((60..=90).contains(&lowered), "{lowered} of 100 where three quarters are expected");
        assert_eq!(out.dropped.len(), 100 - lowered);
    }

    /// Twenty senders of 105 Mbit/s in all at 10 Mbit/s: each gets half a megabit, whatever it sends.
    #[test]
    fn unresponsive_senders_get_equal_shares() {
        let outcome = offer("csfq", LINK, &twenty(), 12);
        assert!(outcome.jain() > 0.99, "{outcome:?}");
        assert!((outcome.gauge("fair_share_bps") / 0.5e6 - 1.0).abs() < 0.1, "{outcome:?}");
        assert!(outcome.utilization > 0.999, "{outcome:?}");
        // Without labels it behaves as `fifo`.
        let blind = offer("csfq noedge", LINK, &twenty(), 12);
        assert!(blind.jain() < 0.85, "{blind:?}");
    }

    /// The overflow budget, once spent at a link that stays congested: alpha stays too high, the buffer full,
    /// and the shares uneven as long as no sender stops. Senders start one after the other, the
    /// fastest first.
    #[test]
    fn reloaded_on_transition_alpha_can_stick() {
        let mut flows = twenty();
        flows.reverse();
        let starts: Vec<Span> = (0..20).map(|n| Span::ms(50 * n)).collect();
        let outcome = |spec: &str| -> Outcome { offer_from(spec, LINK, &flows, &starts, 22) };
        let stuck = outcome("csfq reload transition");
        let free = outcome("csfq reload window");
        assert!(stuck.gauge("fair_share_bps") > 0.8e6, "{stuck:?}");
        assert!(stuck.queue_packets * 500.0 > 290_000.0, "{stuck:?}");
        // The full buffer causes the same loss rate for senders within their fair share.
        assert!(stuck.got[19] < 0.3 && free.got[19] > 0.4, "{stuck:?}");
        assert!((free.gauge("fair_share_bps") / 0.5e6 - 1.0).abs() < 0.1 && free.jain() > 0.98, "{free:?}");
    }

    /// With alpha set too high by hand and a full buffer, alpha falls if the budget is reloaded by window.
    #[test]
    fn an_alpha_that_is_too_high_falls_within_two_seconds_where_the_budget_is_reloaded() {
        let after = |spec: &str| {
            let mut csfq = built(spec);
            csfq.core.state =
                State { alpha: 1.4e6, congested: true, budget: -1, begun: Time::ms(1), ..State::default() };
            let mut out = Outbox::default();
            let (mut now, mut free) = (Time::ms(1), Time::ms(1));
            (0..600).for_each(|serial| {
                csfq.queue.push(Packet::new(FlowKey(0), 500, serial), &mut Cx::new(now, &mut out));
            });
            let mut rng = Streams::new(9).rng();
            while now < Time::s(2) {
                // 105 Mbit/s in packets of 500 bytes. The sender of each is random, in proportion to its
                // rate.
                let which = loop {
                    let which = rng.below(20) + 1;
                    if rng.below(20) < which {
                        break which;
                    }
                };
                csfq.enqueue(Packet::new(FlowKey(which), 500, 0), &mut Cx::new(now, &mut out));
                while free <= now {
                    let _ = csfq.dequeue(&mut Cx::new(now, &mut out));
                    free += LINK.time_for(500);
                }
                out.dropped.clear();
                now += Rate::mbit(105).time_for(500);
            }
            csfq.core.state.alpha
        };
        let (stuck, free) = (after("csfq reload transition"), after("csfq reload window"));
        assert!(stuck >= 1.2e6, "{stuck}");
        assert!((free / 0.5e6 - 1.0).abs() < 0.1, "{free}");
    }

    proptest! {
        /// Without labels there are no drops by alpha, so the order and the drops are the same as
        /// with `fifo`.
        #[test]
        fn without_labels_it_is_a_fifo(ops in any_flows()) {
            let run = |spec: &str| events(&spec.parse().unwrap(), &ops);
            prop_assert_eq!(run("csfq noedge limit 20p threshold 5p"), run("fifo limit 20p"));
        }
    }

    #[test]
    fn mistakes_are_reported() {
        let context = LinkContext::new(LINK, Streams::new(1));
        let wrong =
            |text: &str| text.parse::<Spec>().unwrap().build_numbered(&context).err().unwrap().to_string();
        assert!(wrong("csfq window 0ms").starts_with("window: a rate needs some time"));
        assert!(wrong("csfq core_window 0ms").starts_with("core_window: a rate needs some time"));
        assert!(wrong("csfq flows 0").starts_with("flows: 0 is not between"));
        let warned = |text: &str| text.parse::<Spec>().unwrap().warnings(&context).join("; ");
        assert_eq!(warned("csfq"), "");
        assert!(warned("csfq limit 30kb").contains("threshold: the queue never is as long as"));
        assert!(warned("csfq reload transition").contains("too high a fair rate"));
    }
}
