//! PI2: one queue for classic and scalable traffic, with drops or marks at arrival, whose base probability a
//! controller moves so that the delay stays at a target.
//!
//! # Principles
//! - The controller moves a base probability p', by the distance of the delay from `target` (`alpha`) and by
//!   its change (`beta`), once per `tupdate`.
//! - Classic packets are dropped or marked with the square of p', since the rate of Reno and CUBIC falls
//!   about with the root of their signals. So the loop is linear in p', and constant gains are stable at
//!   every load: PIE's table of gains is not needed.
//! - Packets with ECT(1) or CE are scalable. They are marked with `coupling_factor` times p', since the rate
//!   of DCTCP and Prague falls with the signals themselves. So both kinds of flows get about the same rate.
//! - Packets of senders without ECN are dropped, those with ECT(0) are marked, with the same probability.
//! - From the base probability on at which every scalable packet would be marked there is an overload: marks
//!   do not help, and all kinds of packets are dropped with the square of p'.
//! - While fewer than two packets of the link's MTU are queued, there are no drops and no marks.
//! - All packets share one queue, so scalable traffic has the delay of classic traffic; `dualpi2` separates
//!   them.
//! - Parameters can be changed while packets are queued: p' stays. When the limit is lowered, the newest
//!   packets above it are dropped.
//!
//! # Deviations
//! - There is no timer. Each call first makes the updates that are due, with the delays that a timer would
//!   have seen. After 4,096 updates (a minute) without a call the rest is skipped.
//! - The delay is the time that the head of the queue has waited, as in RFC 9332.
//! - Defaults come from RFC 9332 (target 15 ms, update every 16 ms, gains 0.16 and 3.2); the paper has 20 ms,
//!   32 ms, 0.3125 and 3.125.
//! - The paper limits the probability of classic drops to 25 %, and lets the queue grow to its limit under
//!   overload. Here overload switches to drops, as in RFC 9332.
//! - The exception for a short queue is PIE's (RFC 8033, section 4.1).
//! - The rate of the link has no effect, since delays are measured. After a change of the rate the delay
//!   changes, and p' follows it within some updates.
//!
//! # Cost
//! - A comparison per call, some floating-point operations per `tupdate`, a draw per arrival under
//!   congestion.
//!
//! # References
//! - De Schepper, Bondarenko, Tsang, Briscoe 2016: "PI2: A Linearized AQM for both Classic and Scalable TCP",
//!   CoNEXT 2016.
//! - De Schepper, Briscoe, White 2023: RFC 9332, section 2.1 for the coupling, and appendix A for the
//!   controller and the overload.
//! - tc-dualpi2(8) for names and defaults.

use std::any::Any;

use giveway_qdisc::blocks::Queue;
use giveway_qdisc::blocks::pi2::{Controller, Law};
use giveway_qdisc::{
    Backlog, Cx, DropReason, Ecn, Invalid, Limit, LinkContext, Next, Packet, Packets, Properties, Qdisc, Rng,
    Span, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::common::taking::same;
use crate::common::warnings::{low_limit, low_target, no_alpha};

/// Parameters of `pi2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity in packets; packets beyond it are dropped.
    pub limit: Packets,
    /// Target of the delay.
    pub target: Span,
    /// Interval between updates of the probability.
    pub tupdate: Span,
    /// Gain of the delay's distance from the target, in Hz.
    pub alpha: f64,
    /// Gain of the delay's change between two updates, in Hz.
    pub beta: f64,
    /// Ratio of the probability of marks for scalable packets to the base probability, 1 to 255.
    pub coupling_factor: u32,
    /// Mark packets instead of dropping them if their sender supports ECN. Without it every packet is
    /// classic.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Packets(10_000),
            target: Span::ms(15),
            tupdate: Span::ms(16),
            alpha: 0.16,
            beta: 3.2,
            coupling_factor: 2,
            ecn: true,
        }
    }
}

impl Config {
    /// The law of the controller.
    fn law(&self) -> Law {
        let Config { alpha, beta, target, tupdate, .. } = *self;
        Law { alpha, beta, target, tupdate, most: 1.0 }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "PI2: drops or marks at arrival; scalable senders get marks linearly, others by the square";
    type Qdisc<P: 'static> = Pi2<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Pi2<P>, Invalid> {
        let limit = Limit::Packets(self.limit.0);
        check_limit("limit", limit, context.mtu)?;
        Ok(Pi2 {
            limit: self.limit.0,
            ecn: self.ecn,
            coupling: coupling(self.coupling_factor)?,
            untouched: 2 * context.mtu.0,
            controller: Controller::new(self.law().checked()?),
            rng: context.streams.rng(),
            queue: Queue::new(limit),
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(Limit::Packets(self.limit.0)).marking(self.ecn)
    }

    fn variants() -> Vec<Config> {
        let quick = Config {
            target: Span::us(100),
            tupdate: Span::us(100),
            alpha: 100.0,
            beta: 1000.0,
            ..Config::default()
        };
        vec![
            Config { limit: Packets(5), ..Config::default() },
            quick.clone(),
            Config { ecn: false, coupling_factor: 1, ..quick },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        law_warnings(&self.law(), self.limit, context)
    }
}

/// The coupling factor as a number, also for `dualpi2`.
///
/// # Errors
/// If it is not between 1 and 255, as in tc.
pub(crate) fn coupling(factor: u32) -> Result<f64, Invalid> {
    if (1..=255).contains(&factor) {
        return Ok(f64::from(factor));
    }
    Err(Invalid::new("coupling_factor", format!("{factor} is not between 1 and 255: write for example 2")))
}

/// True with a probability, also for `dualpi2`. Nothing is drawn while the probability is zero.
#[inline]
pub(crate) fn happens(probability: f64, rng: &mut Rng) -> bool {
    probability > 0.0 && rng.uniform() < probability
}

/// Warnings about usual mistakes in the parameters of the controller, also for `dualpi2`.
pub(crate) fn law_warnings(law: &Law, limit: Packets, context: &LinkContext) -> Vec<String> {
    let bytes = limit.0.saturating_mul(context.mtu.0);
    let warnings = [
        low_target(law.target, "a shorter queue is never marked", context),
        low_limit(limit, bytes, law.target, "the queue overflows before PI2 acts", context),
        no_alpha(law.alpha == 0.0),
    ];
    warnings.into_iter().flatten().collect()
}

/// The discipline `pi2`: one queue and the controller.
pub struct Pi2<P> {
    limit: u64,
    ecn: bool,
    /// k.
    coupling: f64,
    /// Bytes below which there are no drops and no marks.
    untouched: u64,
    controller: Controller,
    rng: Rng,
    queue: Queue<P>,
}

impl<P: 'static> Qdisc<P> for Pi2<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.catch_up(cx);
        if self.queue.backlog().packets >= self.limit {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        if !self.passes(&mut pkt, cx) {
            return cx.drop(pkt, DropReason::Early);
        }
        self.queue.push(pkt);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.catch_up(cx);
        self.queue.pop().map_or(Next::Empty, Next::Packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.controller.reset();
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let base = self.controller.probability();
        visit("base_probability", base);
        visit("classic_probability", base * base);
        visit("scalable_probability", (self.coupling * base).min(1.0));
        visit("delay_s", self.controller.delay().as_s());
    }

    /// The queue and the controller, whose next update is when it was due.
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = same::<P, Pi2<P>>(old) else { return };
        old.catch_up(cx);
        self.controller.take_over(&old.controller);
        std::mem::swap(&mut self.rng, &mut old.rng);
        std::mem::swap(&mut self.queue, &mut old.queue);
        self.queue.shorten(Limit::Packets(self.limit), cx);
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

impl<P> Pi2<P> {
    #[inline]
    fn catch_up(&mut self, cx: &Cx<'_, P>) {
        let queue = &self.queue;
        self.controller.catch_up(cx.now(), || queue.iter().next().map(|head| head.meta.arrived));
    }

    /// Decides on an arriving packet, and marks it; false if it is to be dropped.
    fn passes(&mut self, pkt: &mut Packet<P>, cx: &mut Cx<'_, P>) -> bool {
        if self.queue.backlog().bytes + u64::from(pkt.bytes()) < self.untouched {
            return true;
        }
        let base = self.controller.probability();
        // RFC 9332, section 2.1: p_C = (p_CL / k)^2, with p_CL = k p' for scalable packets.
        let (classic, coupled) = (base * base, self.coupling * base);
        // RFC 9332, appendix A.2: once p_CL reaches 100 %, overload disables ECN.
        let overload = coupled >= 1.0;
        let scalable = self.ecn && matches!(pkt.meta.ecn, Ecn::Ect1 | Ecn::Marked);
        match (scalable, overload) {
            (true, false) => !happens(coupled, &mut self.rng) || cx.mark(pkt),
            (true, true) => !happens(classic, &mut self.rng) && cx.mark(pkt),
            (false, _) => !happens(classic, &mut self.rng) || (self.ecn && !overload && cx.mark(pkt)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::events::{build_error, context};
    use crate::testing::trace::{T1, trace};
    use giveway_qdisc::{FlowKey, Outbox, Rate, Streams, Time};

    /// A controller that does not move.
    const FIXED: Law = Law { alpha: 0.0, beta: 0.0, target: Span::ms(15), tupdate: Span::ms(16), most: 1.0 };

    fn built(config: &Config) -> Pi2<u32> {
        config.build(&context()).unwrap()
    }

    /// Offers a packet of 1,000 bytes; true if it was marked, and true if it was dropped.
    fn offer(q: &mut Pi2<u32>, ecn: Ecn, now: Time) -> (bool, bool) {
        let mut out = Outbox::default();
        let mut pkt = Packet::new(FlowKey(0), 1000, 0);
        pkt.meta.ecn = ecn;
        pkt.meta.arrived = now;
        q.enqueue(pkt, &mut Cx::new(now, &mut out));
        (!out.marked.is_empty(), !out.dropped.is_empty())
    }

    fn take(q: &mut Pi2<u32>, now: Time) {
        let _ = q.dequeue(&mut Cx::new(now, &mut Outbox::default()));
    }

    /// Shares of packets with this ECN field that are marked and dropped with a fixed base probability.
    fn fates(config: &Config, base: f64, ecn: Ecn) -> (f64, f64) {
        let mut q = built(config);
        (0..50).for_each(|_| q.queue.push(Packet::new(FlowKey(0), 1000, 0)));
        q.controller = Controller::starting_at(FIXED, base);
        let (mut marks, mut drops) = (0.0, 0.0);
        for _ in 0..100_000 {
            let (marked, dropped) = offer(&mut q, ecn, Time::ZERO);
            marks += f64::from(u8::from(marked)) / 1e5;
            drops += f64::from(u8::from(dropped)) / 1e5;
            if !dropped {
                take(&mut q, Time::ZERO);
            }
        }
        (marks, drops)
    }

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 0.006
    }

    #[test]
    fn is_a_fifo_while_there_is_no_delay() {
        assert_eq!(trace("pi2 limit 4p", 1000, T1), trace("fifo limit 4p", 1000, T1));
    }

    /// RFC 9332, section 2.1: p_C = (p_CL / k)^2. With p' = 0.3 and k = 2, p_CL = 0.6 and p_C = 0.09.
    #[test]
    fn classic_signals_are_the_square_of_coupled_marks() {
        for (base, k) in [(0.3, 2), (0.1, 4), (0.5, 1)] {
            let config = Config { coupling_factor: k, ..Config::default() };
            let (linear, lost) = fates(&config, base, Ecn::Ect1);
            assert!(near(linear, f64::from(k) * base) && lost == 0.0, "{linear} {lost}");
            let squared = (linear / f64::from(k)) * (linear / f64::from(k));
            let (marks, drops) = fates(&config, base, Ecn::Ect0);
            assert!(near(marks, squared) && drops == 0.0, "{marks} {drops}");
            let (marks, drops) = fates(&config, base, Ecn::NotCapable);
            assert!(marks == 0.0 && near(drops, squared), "{marks} {drops}");
        }
    }

    #[test]
    fn overload_and_noecn_drop_packets_of_every_kind_by_the_square() {
        let (overload, noecn) = (Config::default(), Config { ecn: false, ..Config::default() });
        for (config, base) in [(&overload, 0.6), (&noecn, 0.3)] {
            for ecn in [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1] {
                let (marks, drops) = fates(config, base, ecn);
                assert!(near(drops, base * base), "{ecn:?} {drops}");
                // Of an overload, the scalable packets that are left are marked.
                let left = if config.ecn && ecn == Ecn::Ect1 { 1.0 - drops } else { 0.0 };
                assert!(near(marks, left), "{ecn:?} {marks}");
            }
        }
    }

    #[test]
    fn fewer_than_two_packets_are_left_alone() {
        let mut q = built(&Config::default());
        q.controller = Controller::starting_at(FIXED, 1.0);
        let drops: Vec<bool> = (0..4).map(|_| offer(&mut q, Ecn::NotCapable, Time::ZERO).1).collect();
        // The third packet of 1,000 bytes makes 3,000, two of the link's largest packets.
        assert_eq!(drops, [false, false, true, true]);
    }

    /// Unresponsive traffic at a quarter above the link's rate: one packet of five is dropped, so p' is the
    /// root of 0.2, and the delay stays at the target.
    #[test]
    fn the_delay_settles_at_the_target() {
        let mut q = built(&Config::default());
        let (mut delay, mut base) = (0.0, 0.0);
        for ms in 0..40_000u64 {
            for _ in ms * 125 / 100..(ms + 1) * 125 / 100 {
                offer(&mut q, Ecn::NotCapable, Time::ms(ms));
            }
            take(&mut q, Time::ms(ms));
            if ms >= 30_000 {
                delay += q.controller.delay().as_s() / 10_000.0;
                base += q.controller.probability() / 10_000.0;
            }
        }
        assert!((delay - 0.015).abs() < 0.001, "{delay}");
        assert!((base - libm::sqrt(0.2)).abs() < 0.01, "{base}");
    }

    #[test]
    fn nonsense_is_refused_and_mistakes_cause_warnings() {
        for (parameters, parameter) in [
            ("limit 0p", "limit"),
            ("tupdate 0s", "tupdate"),
            ("alpha -1", "alpha"),
            ("coupling_factor 0", "coupling_factor"),
        ] {
            assert_eq!(build_error(&format!("pi2 {parameters}")).parameter, parameter);
        }
        let warnings = |spec: &str, rate| {
            spec.parse::<Spec>().unwrap().warnings(&LinkContext::new(rate, Streams::new(1)))
        };
        assert!(warnings("pi2", Rate::mbit(10)).is_empty());
        assert!(warnings("pi2", Rate::mbit(1))[0].starts_with("target: 15ms is less than two packets"));
        assert!(warnings("pi2 limit 10p", Rate::mbit(100))[0].starts_with("limit: 10p drain in"));
        assert!(warnings("pi2 alpha 0", Rate::mbit(10))[0].starts_with("alpha: "));
    }
}
