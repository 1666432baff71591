//! PIE: drops arriving packets with a probability that a controller moves every few milliseconds, so that the
//! delay stays at a target.
//!
//! # Principles
//! - The controlled quantity is delay; the probability rises with its distance from `target` (`alpha`) and
//!   with its trend (`beta`).
//! - A small probability moves in small steps: the gains are scaled down while the probability is low, so
//!   that the loop is as stable with one flow as with hundreds.
//! - Drops happen at arrival, at random; the queue itself is a plain FIFO.
//! - A burst after a quiet time passes: there are no drops for `max_burst` after congestion starts.
//! - There are no drops while both delay and probability are small, or while the queue is short.
//! - With `ecn` packets are marked as long as the probability is below `ecn_prob`; above that they are
//!   dropped.
//! - Parameters can be changed while packets are queued: the probability and what is left of the burst
//!   allowance stay. When the limit is lowered, the oldest packets above it are dropped, as `tc qdisc change`
//!   does.
//!
//! # Deviations
//! - There is no timer. Each call first makes the updates that are due, one by one, with the queue as it was
//!   between the calls, so that the result is the same as with a timer. Once the probability no longer
//!   changes, the rest is skipped; after 4,096 updates (a minute) without a call it is skipped in any case.
//! - The first update is due one `tupdate` after the first call.
//! - A short queue has up to two packets of the link's MTU, not two average packets. The kernel uses the MTU,
//!   too, but its limit is less than two.
//! - The probability of the kernel's `pie` follows rules that RFC 8033 does not have: without delay it falls
//!   by a 64th per update instead of 2 %, above 250 ms it rises by 2 % more, and it is not limited to 1.
//!   Otherwise its updates are identical (`cargo xtask test-kernel --oracle`).
//! - Delay is the delay of the packet that left last, and zero when nothing is queued: RFC 8033, section 4.3
//!   leaves the choice between time stamps and the departure rate, the kernel's default is the former.
//!   `dq_rate_estimator` takes the latter.
//! - PIE is always on; RFC 8033, section 5.3 allows to switch it off below a third of the buffer.
//! - `max_burst`, `ecn_prob` and `derandomise` are constants in the kernel's `pie`.
//!
//! # Cost
//! - A comparison per call, some ten floating-point operations per `tupdate`, a draw per arrival under
//!   congestion.
//!
//! # References
//! - Pan, Natarajan, Baker, White 2017: RFC 8033, sections 4.1, 4.2, 4.3 and 4.4 for drops, probability,
//!   delay and bursts; RFC 8033, section 5.1 for ECN; RFC 8033, section 5.2 for the departure rate; RFC 8033,
//!   section 5.4 for derandomisation; RFC 8033, section 5.5 for the cap on steps.
//! - tc-pie(8) for names and defaults; its `alpha` and `beta` are sixteenths of the RFC's, per second.

use std::any::Any;

use giveway_qdisc::blocks::Queue;
use giveway_qdisc::blocks::pie::{self, Controller, Law};
use giveway_qdisc::{
    Backlog, Cx, DropReason, Invalid, Limit, LinkContext, Next, Packet, Packets, Properties, Qdisc, Rng,
    Share, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::taking::same;
use crate::common::warnings::{low_limit, low_target, no_alpha};
use crate::{Discipline, InLinux};

/// Parameters of `pie`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity in packets; packets beyond it are dropped.
    pub limit: Packets,
    /// Target of the delay.
    pub target: Span,
    /// Interval between updates of the probability.
    pub tupdate: Span,
    /// Gain of the delay's distance from the target, in sixteenths per second.
    pub alpha: u32,
    /// Gain of the delay's change between two updates, in sixteenths per second.
    pub beta: u32,
    /// Mark packets instead of dropping them if their sender supports ECN.
    pub ecn: bool,
    /// Probability from which on packets are dropped even if their sender supports ECN.
    pub ecn_prob: Share,
    /// Scale the probability with the length of the packet, so that large packets are likelier to be dropped.
    pub bytemode: bool,
    /// Delay is estimated from the departure rate and the queue's length instead of time stamps.
    pub dq_rate_estimator: bool,
    /// Length of a burst after a quiet time that passes without drops.
    pub max_burst: Span,
    /// Spread drops evenly: no drop before the sum of the probabilities since the last one reaches 0.85, and
    /// a certain drop at 8.5.
    pub derandomise: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Packets(1000),
            target: Span::ms(15),
            tupdate: Span::ms(15),
            alpha: 2,
            beta: 20,
            ecn: false,
            ecn_prob: Share::new(0.1).expect("10 % is a share"),
            bytemode: false,
            dq_rate_estimator: false,
            max_burst: Span::ms(150),
            derandomise: true,
        }
    }
}

impl Config {
    fn law(&self, context: &LinkContext) -> Result<Law, Invalid> {
        let law = Law {
            alpha: pie::gain("alpha", self.alpha)?,
            beta: pie::gain("beta", self.beta)?,
            target: self.target,
            tupdate: self.tupdate,
            max_burst: self.max_burst,
            mark_below: self.ecn.then_some(self.ecn_prob),
            bytemode: self.bytemode,
            by_rate: self.dq_rate_estimator,
            derandomise: self.derandomise,
            mtu: context.mtu.0,
        };
        law.checked()
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "PIE: random drops at arrival, with a probability controlled by delay (RFC 8033)";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Pie<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Pie<P>, Invalid> {
        check_limit("limit", Limit::Packets(self.limit.0), context.mtu)?;
        let law = self.law(context)?;
        Ok(Pie {
            limit: self.limit.0,
            controller: Controller::new(&law),
            law,
            rng: context.streams.rng(),
            origin: None,
            queue: Queue::new(Limit::Packets(self.limit.0)),
        })
    }

    fn in_linux(&self) -> Option<InLinux> {
        // Constants in the kernel.
        let fixed = |config: &Config| (config.max_burst, config.derandomise, config.ecn_prob);
        (fixed(self) == fixed(&Config::default())).then_some(InLinux::named("pie"))
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(Limit::Packets(self.limit.0)).marking(self.ecn)
    }

    fn variants() -> Vec<Config> {
        let quick = Config {
            target: Span::us(100),
            tupdate: Span::us(100),
            max_burst: Span::ZERO,
            alpha: 32,
            beta: 32,
            ..Config::default()
        };
        vec![
            Config { limit: Packets(5), ..Config::default() },
            quick.clone(),
            Config { ecn: true, bytemode: true, derandomise: false, ..quick.clone() },
            Config { dq_rate_estimator: true, ..quick },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let (target, bytes) = (self.target, self.limit.0.saturating_mul(context.mtu.0));
        let warnings = [
            low_target(target, "PIE never drops from so short a queue", context),
            low_limit(self.limit, bytes, target, "the queue overflows before PIE acts", context),
            no_alpha(self.alpha == 0),
        ];
        warnings.into_iter().flatten().collect()
    }
}

/// The discipline `pie`: one queue and its controller.
pub struct Pie<P> {
    limit: u64,
    law: Law,
    rng: Rng,
    controller: Controller,
    /// Time of the first call, from which updates are counted.
    origin: Option<Time>,
    queue: Queue<P>,
}

impl<P: 'static> Qdisc<P> for Pie<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.catch_up(cx.now());
        let Pie { law, controller, rng, queue, .. } = self;
        if queue.backlog().packets >= self.limit {
            controller.on_overflow();
            return cx.drop(pkt, DropReason::Overlimit);
        }
        if controller.wants_drop(law, pkt.bytes(), queue.backlog().bytes, || rng.uniform())
            && !(controller.may_mark(law) && cx.mark(&mut pkt))
        {
            return cx.drop(pkt, DropReason::Early);
        }
        queue.push(pkt);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.catch_up(cx.now());
        let Some(pkt) = self.queue.pop() else { return Next::Empty };
        let queued = (!self.queue.is_empty()).then_some(self.queue.backlog().bytes);
        self.controller.on_departure(&self.law, (pkt.bytes(), pkt.meta.arrived), queued, cx.now());
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.controller = Controller::new(&self.law);
        self.origin = None;
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("drop_probability", self.controller.probability());
        visit("delay_s", self.delay().as_s());
        visit("burst_allowance_s", self.controller.burst().as_s());
    }

    /// The queue and the controller, whose next update is when it was due.
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = same::<P, Pie<P>>(old) else { return };
        old.catch_up(cx.now());
        self.controller = old.controller.under(&self.law);
        self.origin = old.origin;
        std::mem::swap(&mut self.rng, &mut old.rng);
        std::mem::swap(&mut self.queue, &mut old.queue);
        self.queue.shorten_from_the_head(Limit::Packets(self.limit), cx);
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

impl<P> Pie<P> {
    /// The present delay, as an update uses it.
    fn delay(&self) -> Span {
        self.controller.delay(&self.law, self.queue.backlog().bytes)
    }

    /// Makes the updates that a timer would have made since the last call.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let origin = *self.origin.get_or_insert(now);
        self.controller.catch_up(&self.law, origin, self.queue.backlog().bytes, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::context;
    use crate::testing::trace::{T1, trace};
    use giveway_qdisc::{Ecn, FlowKey, Outbox, Rate, Streams};
    use proptest::prelude::*;

    fn built(config: &Config) -> Pie<u32> {
        config.build(&context()).unwrap()
    }

    fn offer(q: &mut Pie<u32>, bytes: u32, ecn: Ecn, now: Time) -> (usize, Option<DropReason>) {
        let mut out = Outbox::default();
        let mut pkt = Packet::new(FlowKey(0), bytes, 0);
        pkt.meta.arrived = now;
        pkt.meta.ecn = ecn;
        q.enqueue(pkt, &mut Cx::new(now, &mut out));
        (out.marked.len(), out.dropped.pop().map(|(_, why)| why))
    }

    /// Sets the probability and the delay at the last update, without a burst allowance.
    fn start_at(q: &mut Pie<u32>, probability: f64, delay_old: Span) {
        q.controller = Controller::starting_at(&q.law, probability, delay_old).on_the_clock_of(&q.controller);
    }

    fn take(q: &mut Pie<u32>, now: Time) {
        let _ = q.dequeue(&mut Cx::new(now, &mut Outbox::default()));
    }

    /// Offers packets of 1,000 bytes at `percent` of the link's rate, which is one packet per millisecond.
    /// Returns the probability at the end of each millisecond, and the drops.
    fn load(
        q: &mut Pie<u32>,
        percent: u64,
        from_ms: u64,
        until_ms: u64,
        ecn: Ecn,
    ) -> (Vec<f64>, Vec<u64>, usize) {
        let (mut probabilities, mut drops, mut marks) = (Vec::new(), Vec::new(), 0);
        for ms in from_ms..until_ms {
            for _ in ms * percent / 100..(ms + 1) * percent / 100 {
                let (marked, dropped) = offer(q, 1000, ecn, Time::ms(ms));
                marks += marked;
                drops.extend(dropped.map(|_| ms));
            }
            take(q, Time::ms(ms));
            probabilities.push(q.controller.probability());
        }
        (probabilities, drops, marks)
    }

    #[test]
    fn is_a_fifo_while_there_is_no_delay() {
        assert_eq!(trace("pie limit 4p", 1000, T1), trace("fifo limit 4p", 1000, T1));
    }

    #[test]
    fn a_small_delay_with_a_small_probability_causes_no_drops() {
        let drops = |probability, delay_old| {
            let mut q = built(&Config { derandomise: false, ..Config::default() });
            for _ in 0..50 {
                offer(&mut q, 1000, Ecn::NotCapable, Time::ZERO);
            }
            start_at(&mut q, probability, delay_old);
            (0..200).filter(|_| offer(&mut q, 1000, Ecn::NotCapable, Time::ZERO).1.is_some()).count()
        };
        assert_eq!(drops(0.19, Span::ms(7)), 0);
        assert!(drops(0.2, Span::ms(7)) > 0);
        assert!(drops(0.19, Span::ms(8)) > 0);
    }

    #[test]
    fn a_burst_passes_and_then_packets_are_dropped() {
        // At four times the link's rate the delay exceeds 7.5 ms after ten milliseconds, and stays above.
        let mut q = built(&Config { limit: Packets(100_000), ..Config::default() });
        let (probabilities, drops, _) = load(&mut q, 400, 0, 600, Ecn::NotCapable);
        let first = probabilities.iter().position(|probability| *probability > 0.0).unwrap() as u64;
        assert!(probabilities.is_sorted() && probabilities[599] > 0.1);
        // The first update with a probability above zero used 15 of the 150 ms.
        assert!(drops[0] >= first + 135, "{first} {}", drops[0]);

        let mut hasty =
            built(&Config { limit: Packets(100_000), max_burst: Span::ZERO, ..Config::default() });
        let (_, early, _) = load(&mut hasty, 400, 0, 600, Ecn::NotCapable);
        assert!(early[0] < drops[0]);
    }

    /// Unresponsive traffic at a quarter above the link's rate: one packet of five is dropped, and the delay
    /// stays at the target.
    #[test]
    fn the_delay_settles_at_the_target() {
        let settled = |derandomise| {
            let mut q = built(&Config { derandomise, ..Config::default() });
            load(&mut q, 125, 0, 60_000, Ecn::NotCapable);
            let (mut delay, mut probability) = (0.0, 0.0);
            for ms in 60_000..70_000 {
                load(&mut q, 125, ms, ms + 1, Ecn::NotCapable);
                delay += q.delay().as_s() / 10_000.0;
                probability += q.controller.probability() / 10_000.0;
            }
            (delay, probability)
        };
        let (delay, probability) = settled(false);
        assert!((delay - 0.015).abs() < 0.001, "{delay}");
        assert!((probability - 0.2).abs() < 0.01, "{probability}");
        // Derandomised, the packets after each drop always pass, so the same drop rate needs a higher
        // probability.
        let (even, higher) = settled(true);
        assert!((even - 0.015).abs() < 0.001, "{even}");
        assert!(higher > 0.25, "{higher}");
    }

    #[test]
    fn capable_packets_are_marked_up_to_ten_per_cent() {
        let mut q = built(&Config { ecn: true, limit: Packets(100_000), ..Config::default() });
        let (probabilities, drops, marks) = load(&mut q, 200, 0, 3000, Ecn::Ect0);
        let ten = probabilities.iter().position(|probability| *probability >= 0.1).unwrap() as u64;
        assert!(marks > 0 && drops[0] >= ten, "{marks} {} {ten}", drops[0]);
        let mut incapable = built(&Config { ecn: true, limit: Packets(100_000), ..Config::default() });
        let (_, dropped, none) = load(&mut incapable, 200, 0, 3000, Ecn::NotCapable);
        assert!(none == 0 && dropped[0] < ten);
    }

    #[test]
    fn a_queue_of_two_packets_causes_no_drops() {
        let mut q = built(&Config::default());
        start_at(&mut q, 1.0, Span::ms(100));
        let fates: Vec<_> = (0..5).map(|_| offer(&mut q, 1000, Ecn::NotCapable, Time::ZERO).1).collect();
        // Three thousand bytes are two of the link's largest packets.
        assert_eq!(fates, [None, None, None, None, Some(DropReason::Early)]);
    }

    #[test]
    fn derandomised_drops_are_spread() {
        // At 6 % the first fourteen packets always pass, and a gap of 141 packets never occurs.
        let gaps = |derandomise| {
            let mut q = built(&Config { derandomise, max_burst: Span::ZERO, ..Config::default() });
            for _ in 0..50 {
                offer(&mut q, 1000, Ecn::NotCapable, Time::ZERO);
            }
            start_at(&mut q, 0.06, Span::ms(15));
            let (mut gaps, mut since) = (Vec::new(), 0);
            for _ in 0..300_000 {
                since += 1;
                match offer(&mut q, 1000, Ecn::NotCapable, Time::ZERO).1 {
                    Some(_) => {
                        gaps.push(since);
                        since = 0;
                    }
                    None => take(&mut q, Time::ZERO),
                }
            }
            let mean = f64::from(gaps.iter().sum::<i32>()) / gaps.len() as f64;
            (gaps.iter().copied().min().unwrap(), gaps.iter().copied().max().unwrap(), mean)
        };
        let (least, most, mean) = gaps(true);
        assert!(least == 15 && most <= 142, "{least} {most}");
        assert!((mean - (14.0 + 1.0 / 0.06)).abs() < 0.5, "{mean}");
        let (smallest, _, usual) = gaps(false);
        assert!(smallest == 1 && (usual - 1.0 / 0.06).abs() < 0.5, "{smallest} {usual}");
    }

    #[test]
    fn with_bytemode_the_probability_depends_on_the_size() {
        let rate = |bytes| {
            let mut q = built(&Config { bytemode: true, derandomise: false, ..Config::default() });
            for _ in 0..50 {
                offer(&mut q, bytes, Ecn::NotCapable, Time::ZERO);
            }
            start_at(&mut q, 0.3, Span::ms(15));
            let mut drops = 0;
            for _ in 0..100_000 {
                match offer(&mut q, bytes, Ecn::NotCapable, Time::ZERO).1 {
                    Some(_) => drops += 1,
                    None => take(&mut q, Time::ZERO),
                }
            }
            f64::from(drops) / 1e5
        };
        assert!((rate(1500) - 0.3).abs() < 0.01);
        assert!((rate(150) - 0.03).abs() < 0.005);
    }

    #[test]
    fn the_departure_rate_gives_the_same_delay() {
        let mut q = built(&Config { dq_rate_estimator: true, limit: Packets(100_000), ..Config::default() });
        load(&mut q, 150, 0, 200, Ecn::NotCapable);
        // A packet of 1,000 bytes per millisecond; a measurement is 17 of them for 2^14 bytes.
        assert_eq!(q.controller.delay(&q.law, 1 << 14), Span::ms(17));
        let expected = q.queue.backlog().bytes as f64 / 1e6 * 17_000.0 / 16_384.0;
        assert!((q.delay().as_s() - expected).abs() < 1e-9);
    }

    #[test]
    fn idle_time_is_replayed_exactly_and_in_bounds() {
        let mut polled = built(&Config::default());
        load(&mut polled, 50, 0, 2000, Ecn::NotCapable);
        assert_eq!((polled.backlog().packets, polled.delay()), (0, Span::ZERO));
        start_at(&mut polled, 0.8, Span::ms(40));
        let mut paused = built(&Config::default());
        (paused.controller, paused.origin) = (polled.controller, polled.origin);
        // One queue is called every millisecond for a minute, the other once.
        for ms in 2000..62_000 {
            take(&mut polled, Time::ms(ms));
        }
        take(&mut paused, Time::ms(61_999));
        assert_eq!(paused.controller, polled.controller);
        assert_eq!((paused.controller.probability(), paused.controller.burst()), (0.0, Span::ms(150)));

        // A pause of years does not cost more.
        take(&mut paused, Time::s(10_000_000));
    }

    #[test]
    fn usual_mistakes_cause_warnings() {
        let warnings = |spec: &str, rate| {
            spec.parse::<crate::Spec>().unwrap().warnings(&LinkContext::new(rate, Streams::new(1)))
        };
        assert!(warnings("pie", Rate::mbit(10)).is_empty());
        assert!(warnings("pie", Rate::mbit(1))[0].starts_with("target: 15ms is less than two packets"));
        assert!(warnings("pie limit 10", Rate::mbit(10))[0].starts_with("limit: 10p drain in 12ms"));
        assert!(warnings("pie alpha 0", Rate::mbit(10))[0].starts_with("alpha: "));
        for (wrong, parameter) in [
            (Config { tupdate: Span::ZERO, ..Config::default() }, "tupdate"),
            (Config { beta: 33, ..Config::default() }, "beta"),
            (Config { limit: Packets(0), ..Config::default() }, "limit"),
        ] {
            assert_eq!(wrong.build::<u64>(&context()).map(|_| ()).unwrap_err().parameter, parameter);
        }
    }

    proptest! {
        /// The updates do not depend on the times of the calls between them.
        #[test]
        fn the_frequency_of_calls_has_no_effect(gaps in prop::collection::vec((1..200_000u64, any::<bool>()), 1..80)) {
            let quick = Config { target: Span::ms(1), max_burst: Span::ms(30), ..Config::default() };
            let (mut rare, mut often) = (built(&quick), built(&quick));
            let mut now = Time::ZERO;
            // The first call, which starts the clock of updates, is at the same time for both.
            for q in [&mut rare, &mut often] {
                offer(q, 1000, Ecn::NotCapable, now);
            }
            for (us, arrives) in gaps {
                let until = now + Span::us(us);
                while now + Span::us(900) < until {
                    now += Span::us(900);
                    often.catch_up(now);
                }
                now = until;
                for q in [&mut rare, &mut often] {
                    if arrives {
                        for _ in 0..3 {
                            offer(q, 1000, Ecn::NotCapable, now);
                        }
                    } else {
                        take(q, now);
                    }
                }
                prop_assert_eq!((rare.controller, rare.backlog()), (often.controller, often.backlog()));
            }
        }
    }
}
