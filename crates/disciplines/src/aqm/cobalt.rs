//! COBALT: CoDel for senders that respond to drops, and BLUE for those that do not, in one queue.
//!
//! # Principles
//! - CoDel drops from the head when the sojourn time has been above `target` for an `interval`, and then at
//!   times that are `interval` / sqrt(count) apart, as in `codel`.
//! - When the delay is low again the count steps down at the same pace, instead of being reset. So the AQM
//!   needs no memory of when it last dropped, and congestion that returns soon meets the old rate of drops.
//! - If the link stands still during congestion, the signals of that time are made up for at its end: packets
//!   are dropped one after another, until the schedule has caught up or one packet is left. A mark, or a
//!   packet that is sent, ends this. `codel` makes up for them as well, but after each packet below the
//!   target it waits for an `interval`, so it is more seldom in the state in which signals are due. A gap of
//!   a second can cost `cobalt` the whole queue: at 3 Mbit/s on a link that stops for every second second,
//!   two downloads got 0.86 Mbit/s, and 1.17 with `codel`. `cake` of Linux 7.2 makes up for the same signals
//!   (`cargo xtask test-kernel --oracle`).
//! - BLUE has a drop probability, which rises by `increment` when the queue overflows and falls by
//!   `decrement` when it is empty, each at most once per `target`. A flood that no drop slows down is
//!   thinned until it fits the link, so the queue is not full all the time.
//! - The last packet of the queue is never dropped. With `ecn` CoDel marks a packet instead of dropping it,
//!   if its sender supports ECN. BLUE always drops.
//! - Parameters can be changed while packets are queued: the count and BLUE's probability stay. When the
//!   limit is lowered, the newest packets above it are dropped.
//!
//! # Deviations
//! - The square root is exact, in integers; Linux and the paper iterate towards it.
//! - The probability has 16 bits, in Linux 32; the default steps are exact in both.
//! - COBALT is part of `cake` in Linux, which has no separate discipline for it. The names and defaults of
//!   `limit`, `target`, `interval`, `ecn` and `ce_threshold` come from `codel`; `increment` and `decrement`
//!   come from `cake`. An arriving packet is dropped if the queue is full; `cake` drops from the head.
//! - The queue is found empty when the link asks for a packet, which is once per idle period.
//!
//! # Cost
//! - As `codel`; a draw per packet while BLUE's probability is above zero. 24 bytes of state.
//!
//! # References
//! - Høiland-Jørgensen, Täht, Morton 2018: "Piece of CAKE: A Comprehensive Queue Management Solution for Home
//!   Gateways", LANMAN 2018.
//! - Palmei, Gupta, Imputato, Morton, Tahiliani, Avallone, Täht 2019: "Design and Evaluation of COBALT Queue
//!   Discipline", LANMAN 2019.
//! - Feng, Shin, Kandlur, Saha 2002: "The BLUE Active Queue Management Algorithms".
//! - Nichols et al. 2018: RFC 8289 (CoDel). tc-codel(8) for names and defaults.

use std::any::Any;

use giveway_qdisc::blocks::Queue;
use giveway_qdisc::blocks::cobalt::{Cobalt as State, Law, Probability};
use giveway_qdisc::{
    Backlog, Cx, DropReason, Invalid, Limit, LinkContext, Next, Packet, Packets, Properties, Qdisc, Rng,
    Share, Span, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::codel::law_warnings;
use crate::common::taking::same;

/// Parameters of `cobalt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity in packets; packets beyond it are dropped.
    pub limit: Packets,
    /// The acceptable standing delay.
    pub target: Span,
    /// Time above the target before the first drop: about the longest usual round-trip time.
    pub interval: Span,
    /// Mark packets instead of dropping them if their sender supports ECN.
    pub ecn: bool,
    /// Sojourn time above which packets are always marked if their sender supports ECN.
    pub ce_threshold: Option<Span>,
    /// Step of BLUE's drop probability when the queue overflows, in parts of 1/65536.
    pub increment: Share,
    /// Step of BLUE's drop probability when the queue is empty, in parts of 1/65536.
    pub decrement: Share,
}

impl Default for Config {
    fn default() -> Config {
        let share = |part: f64| Share::new(part).expect("the constant is a share");
        Config {
            limit: Packets(1000),
            target: Span::ms(5),
            interval: Span::ms(100),
            ecn: false,
            ce_threshold: None,
            increment: share(Probability::INCREMENT.get()),
            decrement: share(Probability::DECREMENT.get()),
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "COBALT: CoDel, and BLUE against senders that do not respond to drops";
    type Qdisc<P: 'static> = Cobalt<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Cobalt<P>, Invalid> {
        let limit = Limit::Packets(self.limit.0);
        check_limit("limit", limit, context.mtu)?;
        if self.interval.is_zero() {
            return Err(Invalid::new("interval", "must be above 0, for example \"100ms\""));
        }
        Ok(Cobalt {
            limit: self.limit.0,
            ce_threshold: self.ce_threshold,
            law: Law {
                target: self.target,
                interval: self.interval,
                ecn: self.ecn,
                at_once: false,
                increment: Probability::of(self.increment),
                decrement: Probability::of(self.decrement),
            },
            state: State::default(),
            rng: context.streams.rng(),
            queue: Queue::new(limit),
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(Limit::Packets(self.limit.0)).marking(self.ecn || self.ce_threshold.is_some())
    }

    fn variants() -> Vec<Config> {
        let quick = Config { target: Span::us(50), interval: Span::us(500), ..Config::default() };
        vec![
            Config { limit: Packets(5), ..Config::default() },
            quick.clone(),
            Config { ecn: true, ce_threshold: Some(Span::ms(1)), ..quick.clone() },
            Config {
                limit: Packets(3),
                increment: Share::new(0.25).expect("a quarter is a share"),
                decrement: Share::new(0.1).expect("a tenth is a share"),
                ..quick
            },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = law_warnings(self.target, self.interval, self.ce_threshold, context);
        for (parameter, share) in [("increment", self.increment), ("decrement", self.decrement)] {
            if share.get() > 0.0 && Probability::of(share) == Probability::default() {
                warnings.push(format!(
                    "{parameter}: {} is less than half of 1/65536, the smallest step: the probability never moves",
                    share.get()
                ));
            }
        }
        warnings
    }
}

/// The discipline `cobalt`: one queue and the state of COBALT.
pub struct Cobalt<P> {
    limit: u64,
    ce_threshold: Option<Span>,
    law: Law,
    state: State,
    rng: Rng,
    queue: Queue<P>,
}

impl<P: 'static> Qdisc<P> for Cobalt<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if self.queue.backlog().packets >= self.limit {
            self.state.on_overflow(&self.law, cx.now());
            return cx.drop(pkt, DropReason::Overlimit);
        }
        self.queue.push(pkt);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let Cobalt { law, state, rng, queue, ce_threshold, .. } = self;
        loop {
            let Some(mut pkt) = queue.pop() else {
                state.on_empty(law, cx.now());
                return Next::Empty;
            };
            // The last packet may be marked, and is not dropped.
            if state.drops(law, law.target, &mut pkt, cx, rng) && !queue.is_empty() {
                cx.drop(pkt, DropReason::Congested);
                continue;
            }
            if ce_threshold.is_some_and(|most| cx.now().since(pkt.meta.arrived) > most) {
                cx.mark(&mut pkt);
            }
            return Next::Packet(pkt);
        }
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.state = State::default();
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("count", f64::from(self.state.count()));
        visit("dropping", f64::from(u8::from(self.state.is_dropping())));
        visit("blue_probability", self.state.probability().get());
    }

    /// The queue, and the states of CoDel and BLUE.
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = same::<P, Cobalt<P>>(old) else { return };
        self.state = std::mem::take(&mut old.state);
        std::mem::swap(&mut self.rng, &mut old.rng);
        std::mem::swap(&mut self.queue, &mut old.queue);
        self.queue.shorten(Limit::Packets(self.limit), cx);
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::{build_error, context};
    use crate::testing::trace::trace;
    use giveway_qdisc::{FlowKey, Outbox, Time};

    /// Two packets arrive per millisecond, and the link sends one. The head waits for longer than 5 ms from
    /// about 10 ms on. The first drop comes an interval later.
    #[test]
    fn the_head_is_dropped_after_an_interval_above_the_target() {
        let arrivals: Vec<String> = (0..250).map(|ms| format!("{ms} A{ms} 1000, B{ms} 1000")).collect();
        let out = trace("cobalt", 1000, &arrivals.join("; "));
        let (_, drops) = out.split_once("| ").unwrap();
        let times: Vec<f64> =
            drops.split(' ').map(|drop| drop.split_once('@').unwrap().1.parse().unwrap()).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((110.0..113.0).contains(&times[0]), "{times:?}");
        // 100 / sqrt(2) = 70.7 ms and 100 / sqrt(3) = 57.7 ms, at the next departure.
        assert_eq!(gaps[..2], [71.0, 58.0], "{times:?}");
    }

    /// Five seconds at twice the rate of the link, then a gap. Signals are 100 / sqrt(count) ms apart, also
    /// in the gap, and the first call after it makes up for them.
    #[test]
    fn signals_that_come_due_in_a_gap_are_made_up_for() {
        let after_gap = |gap_ms: u64| {
            let spec = "cobalt limit 100000p".parse::<crate::Spec>().unwrap();
            let mut qdisc = spec.build_numbered(&context()).unwrap();
            let mut out = Outbox::default();
            for half_ms in 0..10_000 {
                let now = Time::us(500 * half_ms);
                let mut pkt = Packet::new(FlowKey(1), 1000, half_ms);
                pkt.meta.arrived = now;
                qdisc.enqueue(pkt, &mut Cx::new(now, &mut out));
                if half_ms % 2 == 0 {
                    let _ = qdisc.dequeue(&mut Cx::new(now, &mut out));
                }
            }
            let (mut count, queued, before) = (0.0, qdisc.backlog().packets, out.dropped.len());
            qdisc.gauges(&mut |name, value| count = if name == "count" { value } else { count });
            let _ = qdisc.dequeue(&mut Cx::new(Time::ms(5000 + gap_ms), &mut out));
            (count, queued, (out.dropped.len() - before) as f64)
        };
        let (count, _, dropped) = after_gap(2000);
        assert!(count > 300.0, "{count}");
        let (mut due, mut ms) = (0.0, 0.0);
        while ms < 2000.0 {
            due += 1.0;
            ms += 100.0 / libm::sqrt(count + due);
        }
        // The time since the last signal before the gap is less than one interval.
        assert!((dropped - due).abs() <= 1.0, "{dropped} drops, and {due} signals were due");
        let (_, queued, dropped) = after_gap(60_000);
        assert_eq!(dropped, (queued - 1) as f64, "the last packet stays");
    }

    /// A flood at three times the rate of the link, which no drop slows down. CoDel's drops become frequent
    /// only slowly; BLUE's probability rises by 1/256 each 5 ms, and after some seconds the queue is not
    /// full.
    #[test]
    fn blue_thins_a_flood() {
        let longest = |spec: &str| {
            let mut qdisc = spec.parse::<crate::Spec>().unwrap().build_numbered(&context()).unwrap();
            let mut out = Outbox::default();
            let mut full = 0;
            for ms in 0..20_000 {
                let now = Time::ms(ms);
                for _ in 0..3 {
                    let mut pkt = Packet::new(FlowKey(1), 1000, 0);
                    pkt.meta.arrived = now;
                    qdisc.enqueue(pkt, &mut Cx::new(now, &mut out));
                }
                let _ = qdisc.dequeue(&mut Cx::new(now, &mut out));
                let refused = out.dropped.drain(..).filter(|(_, why)| *why == DropReason::Overlimit).count();
                full += if ms >= 10_000 { refused } else { 0 };
            }
            full
        };
        let (with, without) = (longest("cobalt limit 100p"), longest("cobalt limit 100p increment 0"));
        assert!(with < 600, "{with} of 30,000 packets find the queue full");
        assert!(without > 10 * with, "without BLUE: {without}");
    }

    #[test]
    fn mistakes_are_refused() {
        assert_eq!(build_error("cobalt interval 0s").parameter, "interval");
        assert_eq!(build_error("cobalt limit 0p").parameter, "limit");
        let spec = "cobalt increment 0.000001".parse::<crate::Spec>().unwrap();
        assert!(spec.warnings(&context())[0].starts_with("increment: 0.000001 is less than"));
    }
}
