//! PIE: drops arriving packets with a probability that a controller moves every few milliseconds, so that the
//! delay stays at a target.
//!
//! # Principles
//! - The controlled quantity is delay; the probability rises with its distance from `target` (`alpha`) and
//!   with its trend (`beta`).
//! - A small probability moves in small steps: the gains are scaled down while the probability is low, so
//!   that the loop is as stable with one flow as with hundreds.
//! - Drops happen at arrival, at random; the queue itself is a plain FIFO.
//! - A burst after a quiet time passes: there are no drops for `max_burst` after congestion begins.
//! - There are no drops while both delay and probability are small, or while the queue is short.
//! - With `ecn` packets are marked as long as the probability is below `ecn_prob`; above that they are
//!   dropped.
//!
//! # Deviations
//! - There is no timer. Each call first makes the updates that are due, one by one, with the queue as it was
//!   between the calls, so that the result is that of a timer. Once the probability no longer changes, the
//!   rest is skipped; after 4,096 updates (a minute) without a call it is skipped in any case.
//! - The first update is due one `tupdate` after the first call.
//! - A short queue has up to two packets of the link's MTU, not two average packets. The kernel uses the MTU,
//!   too, but its limit is less than two.
//! - The probability of the kernel's `pie` follows rules that RFC 8033 does not have: without delay it falls
//!   by a 64th per update instead of 2 %, above 250 ms it rises by 2 % more, and it is not limited to 1.
//!   Otherwise its updates are identical (`cargo xtask test-kernel --oracle`).
//! - Delay is that of the packet that left last, and zero when nothing is queued: RFC 8033, section 4.3
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

use giveway_qdisc::blocks::Queue;
use giveway_qdisc::{
    Backlog, Cx, DropReason, Invalid, Limit, LinkContext, Next, Packet, Packets, Properties, Qdisc, Rng,
    Share, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;

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

/// tc's gains are these parts of the RFC's.
const GAIN_PARTS: f64 = 16.0;
/// tc-pie(8): the gains lie between 0 and 32.
const MOST_GAIN: u32 = 32;

impl Discipline for Config {
    const SUMMARY: &'static str =
        "PIE: random drops at arrival, with a probability controlled by delay (RFC 8033)";
    type Qdisc<P: 'static> = Pie<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Pie<P>, Invalid> {
        check_limit("limit", Limit::Packets(self.limit.0), context.mtu)?;
        if self.tupdate.is_zero() {
            return Err(Invalid::new("tupdate", "must be above 0, for example \"15ms\""));
        }
        for (parameter, gain) in [("alpha", self.alpha), ("beta", self.beta)] {
            if gain > MOST_GAIN {
                return Err(Invalid::new(
                    parameter,
                    format!("{gain} is not between 0 and {MOST_GAIN} (sixteenths)"),
                ));
            }
        }
        Ok(Pie {
            law: Law {
                alpha: f64::from(self.alpha) / GAIN_PARTS,
                beta: f64::from(self.beta) / GAIN_PARTS,
                target: self.target,
                tupdate: self.tupdate,
                max_burst: self.max_burst,
            },
            config: self.clone(),
            mtu: context.mtu.0,
            rng: context.streams.rng(),
            state: State::new(self.max_burst),
            update_at: None,
            sojourn: Span::ZERO,
            departures: Departures::default(),
            accumulated: 0.0,
            queue: Queue::new(Limit::Packets(self.limit.0)),
        })
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
        let mut warnings = Vec::new();
        let untouched = context.rate.time_for(2 * context.mtu.0);
        if self.target < untouched {
            warnings.push(format!(
                "target: {} is less than two packets of {} bytes take at {} ({untouched}), and PIE never drops from so short a queue",
                self.target, context.mtu.0, context.rate
            ));
        }
        let drains = context.rate.time_for(self.limit.0.saturating_mul(context.mtu.0));
        if drains < self.target {
            warnings.push(format!(
                "limit: {} drain in {drains} at {}, below the target of {}: the queue overflows before PIE acts",
                self.limit, context.rate, self.target
            ));
        }
        if self.alpha == 0 {
            warnings.push("alpha: with 0 the delay does not return to target".into());
        }
        warnings
    }
}

/// The controller's parameters, in the RFC's units.
#[derive(Clone, Copy, Debug)]
struct Law {
    /// Per second.
    alpha: f64,
    /// Per second.
    beta: f64,
    /// QDELAY_REF.
    target: Span,
    /// T_UPDATE.
    tupdate: Span,
    /// MAX_BURST.
    max_burst: Span,
}

/// State that an update changes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    /// `drop_prob_`.
    probability: f64,
    /// `qdelay_old_`: the delay at the last update.
    delay_old: Span,
    /// `burst_allowance_`: time for which drops are still suppressed.
    burst: Span,
}

impl State {
    fn new(max_burst: Span) -> State {
        State { probability: 0.0, delay_old: Span::ZERO, burst: max_burst }
    }
}

/// Probabilities, and the divisor of steps below each: the table of RFC 8033, section 4.2.
const TUNING: [(f64, f64); 6] =
    [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];
/// RFC 8033, section 4.2: factor of the probability at an update without any delay.
const DECAY: f64 = 0.98;
/// RFC 8033, section 5.5: the largest step while the probability is at least 10 %.
const MOST_STEP: (f64, f64) = (0.1, 0.02);
/// Largest number of updates between two calls; further ones are skipped.
const MOST_UPDATES: u32 = 4096;
/// RFC 8033, section 4.1: with a delay below half the target and below this probability nothing is dropped.
const LOW_PROBABILITY: f64 = 0.2;
/// RFC 8033, section 5.4: the sums of probabilities below which no packet is dropped, and from which one is.
const DERANDOMISE: (f64, f64) = (0.85, 8.5);

impl Law {
    /// One update of the probability with the present delay: RFC 8033, section 4.2.
    fn update(&self, before: State, delay: Span) -> State {
        // RFC 8033, section 4.2: p = alpha * (current_qdelay - QDELAY_REF) + beta * (current_qdelay -
        // qdelay_old).
        let step = self.alpha * seconds(delay, self.target) + self.beta * seconds(delay, before.delay_old);
        // RFC 8033, section 4.2: the gains shrink with the probability, so that the loop stays stable.
        let scale =
            TUNING.iter().find(|(below, _)| before.probability < *below).map_or(1.0, |(_, scale)| *scale);
        let mut step = step / scale;
        // RFC 8033, section 5.5: above 10 %, a step raises the probability by at most 2 percentage points.
        if before.probability >= MOST_STEP.0 {
            step = step.min(MOST_STEP.1);
        }
        let mut probability = before.probability + step;
        // RFC 8033, section 4.2: without delay the probability decays exponentially.
        if delay.is_zero() && before.delay_old.is_zero() {
            probability *= DECAY;
        }
        let probability = probability.clamp(0.0, 1.0);

        // RFC 8033, section 4.4: once congestion is over (probability 0 and both delays below half the
        // target), a new burst gets the whole allowance; until then the allowance runs out with time.
        let half = self.target / 2;
        let quiet = probability == 0.0 && delay < half && before.delay_old < half;
        let burst = if quiet { self.max_burst } else { before.burst.saturating_sub(self.tupdate) };
        State { probability, delay_old: delay, burst }
    }
}

/// `a` - `b` in seconds; exact in the subtraction, so that equal spans give zero.
fn seconds(a: Span, b: Span) -> f64 {
    if a >= b { (a - b).as_s() } else { -(b - a).as_s() }
}

/// The departure rate of RFC 8033, section 5.2: the time to send [`Departures::THRESHOLD`] bytes while at
/// least that much is queued.
#[derive(Clone, Copy, Debug, Default)]
struct Departures {
    /// Start of the running measurement, and bytes sent since then.
    running: Option<(Time, u64)>,
    /// `avg_dq_time_`, averaged; zero before the first measurement.
    average: Span,
}

impl Departures {
    /// DQ_THRESHOLD.
    const THRESHOLD: u64 = 1 << 14;

    /// Records the departure of a packet of `bytes` bytes that leaves `queued` bytes in the queue.
    fn sent(&mut self, bytes: u32, queued: u64, now: Time) {
        if let Some((since, sent)) = &mut self.running {
            *sent += u64::from(bytes);
            if *sent >= Departures::THRESHOLD {
                let took = now.since(*since);
                // Weight of the newest measurement: DQ_THRESHOLD / 2^16.
                self.average =
                    if self.average.is_zero() { took } else { took / 4 + self.average.scale(3, 4) };
                self.running = None;
            }
        }
        if self.running.is_none() && queued >= Departures::THRESHOLD {
            self.running = Some((now, 0));
        }
    }

    /// Time to send `queued` bytes.
    fn delay(&self, queued: u64) -> Span {
        self.average.scale(queued, Departures::THRESHOLD)
    }
}

/// The discipline `pie`: one queue and the state of the controller.
pub struct Pie<P> {
    config: Config,
    law: Law,
    mtu: u64,
    rng: Rng,
    state: State,
    /// Time of the next update; `None` before the first call.
    update_at: Option<Time>,
    /// Sojourn time of the packet that left last; zero for an empty queue.
    sojourn: Span,
    departures: Departures,
    /// `accu_prob_`: the sum of the probabilities since the last drop.
    accumulated: f64,
    queue: Queue<P>,
}

impl<P> Qdisc<P> for Pie<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.catch_up(cx.now());
        if self.queue.backlog().packets >= self.config.limit.0 {
            // RFC 8033, section 5.4: the sum counts the probabilities since the last drop.
            self.accumulated = 0.0;
            return cx.drop(pkt, DropReason::Overlimit);
        }
        if self.wants_drop(pkt.bytes()) {
            // RFC 8033, section 5.1: packets of ECN-capable senders are marked below a threshold of the
            // probability and dropped above it.
            let may_mark = self.config.ecn && self.state.probability < self.config.ecn_prob.get();
            if !(may_mark && cx.mark(&mut pkt)) {
                return cx.drop(pkt, DropReason::Early);
            }
        }
        self.queue.push(pkt);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.catch_up(cx.now());
        let Some(pkt) = self.queue.pop() else { return Next::Empty };
        if self.config.dq_rate_estimator {
            self.departures.sent(pkt.bytes(), self.queue.backlog().bytes, cx.now());
        }
        let empty = self.queue.is_empty();
        // RFC 8033, section 4.3: the delay is that of the head when it leaves, by its time stamp.
        self.sojourn = if empty { Span::ZERO } else { cx.now().since(pkt.meta.arrived) };
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.state = State::new(self.law.max_burst);
        self.update_at = None;
        self.sojourn = Span::ZERO;
        self.departures = Departures::default();
        self.accumulated = 0.0;
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("drop_probability", self.state.probability);
        visit("delay_s", self.delay().as_s());
        visit("burst_allowance_s", self.state.burst.as_s());
    }
}

impl<P> Pie<P> {
    /// The present delay, as an update uses it.
    fn delay(&self) -> Span {
        if self.config.dq_rate_estimator {
            self.departures.delay(self.queue.backlog().bytes)
        } else {
            self.sojourn
        }
    }

    /// Makes the updates that a timer would have made since the last call.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        match self.update_at {
            Some(due) if now < due => {}
            Some(due) => self.update_at = Some(self.update_from(due, now)),
            None => self.update_at = Some(now + self.law.tupdate),
        }
    }

    /// Makes the updates from `due` to `now`, and returns the time of the next. Between calls the delay does
    /// not change.
    #[cold]
    fn update_from(&mut self, mut due: Time, now: Time) -> Time {
        let delay = self.delay();
        for _ in 0..MOST_UPDATES {
            if now < due {
                return due;
            }
            let before = self.state;
            self.state = self.law.update(before, delay);
            due += self.law.tupdate;
            if self.state == before {
                break;
            }
        }
        // Further updates change nothing. The next one stays on the grid of `tupdate`.
        let behind = now.since(due).as_ps() / self.law.tupdate.as_ps() + 1;
        if now < due { due } else { due + self.law.tupdate * behind }
    }

    /// Decides on an arriving packet, by chance and the exceptions: RFC 8033, section 4.1.
    fn wants_drop(&mut self, bytes: u32) -> bool {
        // RFC 8033, section 4.1: no drop while the delay is below half the target and the probability below
        // 20 %, or with at most two packets queued. RFC 8033, section 4.4: none while the burst allowance
        // lasts.
        let calm = self.state.delay_old < self.law.target / 2 && self.state.probability < LOW_PROBABILITY;
        if !self.state.burst.is_zero() || calm || self.queue.backlog().bytes <= 2 * self.mtu {
            return false;
        }
        let probability = if self.config.bytemode {
            self.state.probability * f64::from(bytes) / self.mtu as f64
        } else {
            self.state.probability
        };
        if !self.config.derandomise {
            return self.rng.uniform() < probability;
        }
        if self.state.probability == 0.0 {
            self.accumulated = 0.0;
        }
        let drop = against(&mut self.accumulated, probability, || self.rng.uniform());
        if drop {
            self.accumulated = 0.0;
        }
        drop
    }
}

/// RFC 8033, section 5.4: no drop before the probabilities sum up to 0.85, and a certain one from 8.5 on.
fn against(accumulated: &mut f64, probability: f64, draw: impl FnOnce() -> f64) -> bool {
    *accumulated += probability;
    let (least, most) = DERANDOMISE;
    *accumulated >= most || (*accumulated >= least && draw() < probability)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::context;
    use crate::testing::trace::{T1, trace};
    use giveway_qdisc::{Ecn, FlowKey, Outbox, Rate, Streams};
    use proptest::prelude::*;

    const LAW: Law = Law {
        alpha: 0.125,
        beta: 1.25,
        target: Span::ms(15),
        tupdate: Span::ms(15),
        max_burst: Span::ms(150),
    };

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
            probabilities.push(q.state.probability);
        }
        (probabilities, drops, marks)
    }

    #[test]
    fn is_a_fifo_while_there_is_no_delay() {
        assert_eq!(trace("pie limit 4p", 1000, T1), trace("fifo limit 4p", 1000, T1));
    }

    /// The first updates at a delay of 35 ms, by hand: 20 ms above the target, and 35 ms above the last
    /// delay, then no further. Steps (0.125 x 0.020 + 1.25 x 0.035)/2048, then 0.0025/128 until 1e-4 is
    /// reached, then 0.0025/32.
    #[test]
    fn the_probability_step_by_step() {
        let mut state = State::new(Span::ZERO);
        let mut series = Vec::new();
        for _ in 0..8 {
            state = LAW.update(state, Span::ms(35));
            series.push(state.probability * 1e6);
        }
        let expected = [22.583, 42.114, 61.646, 81.177, 100.708, 178.833, 256.958, 335.083];
        for (probability, right) in series.iter().zip(expected) {
            assert!((probability - right).abs() < 5e-4, "{series:?}");
        }
    }

    #[test]
    fn steps_are_capped_above_ten_per_cent() {
        let at = |probability| State { probability, delay_old: Span::ms(15), burst: Span::ZERO };
        let after = |probability| LAW.update(at(probability), Span::ms(215)).probability;
        // 0.125 x 0.2 + 1.25 x 0.2 = 0.275; halved below 10 %.
        assert!((after(0.05) - 0.1875).abs() < 1e-12);
        assert!((after(0.1) - 0.12).abs() < 1e-12);
        assert_eq!(after(0.99), 1.0);
    }

    #[test]
    fn the_burst_allowance_is_restored_after_two_quiet_updates() {
        let after_trouble = State { probability: 0.0, delay_old: Span::ms(20), burst: Span::ZERO };
        let once = LAW.update(after_trouble, Span::ms(7));
        assert_eq!((once.probability, once.burst), (0.0, Span::ZERO));
        assert_eq!(LAW.update(once, Span::ms(7)).burst, Span::ms(150));
        assert_eq!(
            LAW.update(once, Span::from_ps(7_500_000_000)).burst,
            Span::ZERO,
            "half the target is not quiet"
        );
    }

    #[test]
    fn a_small_delay_with_a_small_probability_causes_no_drops() {
        let drops = |probability, delay_old| {
            let mut q = built(&Config { derandomise: false, ..Config::default() });
            for _ in 0..50 {
                offer(&mut q, 1000, Ecn::NotCapable, Time::ZERO);
            }
            q.state = State { probability, delay_old, burst: Span::ZERO };
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
                probability += q.state.probability / 10_000.0;
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
        q.state = State { probability: 1.0, delay_old: Span::ms(100), burst: Span::ZERO };
        let fates: Vec<_> = (0..5).map(|_| offer(&mut q, 1000, Ecn::NotCapable, Time::ZERO).1).collect();
        // Three thousand bytes are two of the link's largest packets.
        assert_eq!(fates, [None, None, None, None, Some(DropReason::Early)]);
    }

    #[test]
    fn derandomised_drops_are_spread() {
        let drops =
            |mut accumulated: f64, probability, draw: f64| against(&mut accumulated, probability, || draw);
        assert!(!drops(0.0, 0.84, 0.0));
        assert!(drops(0.8, 0.05, 0.049));
        assert!(!drops(0.8, 0.05, 0.05));
        assert!(drops(8.4, 0.1, 0.99));
        // At 6 % the first fourteen packets always pass, and a gap of 141 packets never occurs.
        let gaps = |derandomise| {
            let mut q = built(&Config { derandomise, max_burst: Span::ZERO, ..Config::default() });
            for _ in 0..50 {
                offer(&mut q, 1000, Ecn::NotCapable, Time::ZERO);
            }
            q.state = State { probability: 0.06, delay_old: Span::ms(15), burst: Span::ZERO };
            q.accumulated = 0.0;
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
            q.state = State { probability: 0.3, delay_old: Span::ms(15), burst: Span::ZERO };
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
        assert_eq!(q.departures.average, Span::ms(17));
        let expected = q.queue.backlog().bytes as f64 / 1e6 * 17_000.0 / 16_384.0;
        assert!((q.delay().as_s() - expected).abs() < 1e-9);
    }

    #[test]
    fn idle_time_is_replayed_exactly_and_in_bounds() {
        let mut polled = built(&Config::default());
        load(&mut polled, 50, 0, 2000, Ecn::NotCapable);
        assert_eq!((polled.backlog().packets, polled.delay()), (0, Span::ZERO));
        polled.state = State { probability: 0.8, delay_old: Span::ms(40), burst: Span::ZERO };
        let mut paused = built(&Config::default());
        (paused.state, paused.update_at) = (polled.state, polled.update_at);
        // One queue is called every millisecond for a minute, the other once.
        for ms in 2000..62_000 {
            take(&mut polled, Time::ms(ms));
        }
        take(&mut paused, Time::ms(61_999));
        assert_eq!((paused.state, paused.update_at), (polled.state, polled.update_at));
        assert_eq!(paused.state, State::new(Span::ms(150)), "after a minute the state is the initial one");

        // The probability falls from 1 to 0 in fewer updates than the largest number.
        let mut state = State { probability: 1.0, delay_old: Span::ZERO, burst: Span::ZERO };
        let mut updates = 0;
        while LAW.update(state, Span::ZERO) != state {
            state = LAW.update(state, Span::ZERO);
            updates += 1;
        }
        assert!(updates < MOST_UPDATES / 4, "{updates}");
        // A pause of years does not cost more.
        take(&mut paused, Time::s(10_000_000));
        assert!(paused.update_at.is_some_and(|due| due > Time::s(10_000_000)));
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

    /// The rules of RFC 8033, sections 4.2 and 5.5, one statement each. Delays are whole microseconds,
    /// because a rounding error of one bit can select another row of the table.
    fn rfc(drop_prob: &mut f64, qdelay_old: &mut i64, current_qdelay: i64, target: i64) {
        let seconds = |us: i64| us as f64 / 1e6;
        let mut p = 0.125 * seconds(current_qdelay - target) + 1.25 * seconds(current_qdelay - *qdelay_old);
        if *drop_prob < 0.000001 {
            p /= 2048.0;
        } else if *drop_prob < 0.00001 {
            p /= 512.0;
        } else if *drop_prob < 0.0001 {
            p /= 128.0;
        } else if *drop_prob < 0.001 {
            p /= 32.0;
        } else if *drop_prob < 0.01 {
            p /= 8.0;
        } else if *drop_prob < 0.1 {
            p /= 2.0;
        }
        if *drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        *drop_prob += p;
        if current_qdelay == 0 && *qdelay_old == 0 {
            *drop_prob *= 0.98;
        }
        *drop_prob = drop_prob.clamp(0.0, 1.0);
        *qdelay_old = current_qdelay;
    }

    proptest! {
        /// For random delays the probability equals that of the RFC's rules, bit by bit.
        #[test]
        fn the_probability_is_that_of_the_rfc(delays in prop::collection::vec((0..200_000u64, 1..30u32), 1..60)) {
            let mut state = State::new(Span::ms(150));
            let (mut drop_prob, mut qdelay_old) = (0.0, 0);
            for (us, times) in delays {
                // Most cases are short delays, at which the rules differ.
                let us = if us % 3 == 0 { 0 } else { us % 60_000 };
                for _ in 0..times {
                    state = LAW.update(state, Span::us(us));
                    rfc(&mut drop_prob, &mut qdelay_old, us as i64, 15_000);
                    prop_assert_eq!(state.probability, drop_prob);
                    prop_assert!((0.0..=1.0).contains(&state.probability));
                    prop_assert!(state.burst <= Span::ms(150));
                }
            }
        }

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
                prop_assert_eq!((rare.state, rare.update_at, rare.backlog()), (often.state, often.update_at, often.backlog()));
            }
        }
    }
}
