//! PIE: a drop probability for arriving packets that a controller moves, so that the delay of a queue stays
//! at a target (RFC 8033).
//!
//! [`Controller`] is the state of one queue; [`Law`] has the parameters of all queues of a discipline. The
//! caller owns the queue. It calls [`Controller::catch_up`] first at each call that concerns the queue, asks
//! [`Controller::wants_drop`] about an arrival, and reports departures.
//!
//! There is no timer. A call first makes the updates that are due, one by one, with the queue as it was
//! between the calls, so that the result is the same as with a timer. Once the probability no longer changes,
//! the rest is skipped; after 4,096 updates (a minute) without a call it is skipped in any case. Several
//! queues have one grid of updates.

use crate::qdisc::Invalid;
use crate::units::{Share, Span, Time};

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Gain of the delay's distance from the target, per second.
    pub alpha: f64,
    /// Gain of the delay's change between two updates, per second.
    pub beta: f64,
    /// QDELAY_REF: the target of the delay.
    pub target: Span,
    /// T_UPDATE: the interval between updates.
    pub tupdate: Span,
    /// MAX_BURST: time after a quiet time during which nothing is dropped.
    pub max_burst: Span,
    /// The probability below which packets are marked if their sender supports ECN; `None` to drop always.
    pub mark_below: Option<Share>,
    /// True if the probability is scaled with the length of the packet.
    pub bytemode: bool,
    /// True if the delay follows from the departure rate, false if from time stamps.
    pub by_rate: bool,
    /// True if drops are spread evenly: RFC 8033, section 5.4.
    pub derandomise: bool,
    /// The largest packet of the link, bytes.
    pub mtu: u64,
}

/// tc's gains are these parts of the RFC's.
const GAIN_PARTS: f64 = 16.0;
/// tc-pie(8): the gains lie between 0 and 32.
const MAX_GAIN: u32 = 32;

/// A gain from tc's unit, sixteenths per second.
///
/// # Errors
/// If it is above 32, which is tc's bound.
pub fn gain(parameter: &'static str, sixteenths: u32) -> Result<f64, Invalid> {
    if sixteenths > MAX_GAIN {
        let message = format!("{sixteenths} is not between 0 and {MAX_GAIN} (sixteenths)");
        return Err(Invalid::new(parameter, message));
    }
    Ok(f64::from(sixteenths) / GAIN_PARTS)
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
const MAX_STEP: (f64, f64) = (0.1, 0.02);
/// Largest number of updates between two calls; further ones are skipped.
const MAX_UPDATES: u32 = 4096;
/// RFC 8033, section 4.1: with a delay below half the target and below this probability nothing is dropped.
const LOW_PROBABILITY: f64 = 0.2;
/// RFC 8033, section 5.4: the sums of probabilities below which no packet is dropped, and from which one is.
const DERANDOMISE: (f64, f64) = (0.85, 8.5);

impl Law {
    /// The usual `max_burst`: RFC 8033, section 4.4.
    pub const MAX_BURST: Span = Span::ms(150);

    /// Checks the parameter `tupdate`.
    ///
    /// # Errors
    /// If it is zero.
    pub fn checked(self) -> Result<Law, Invalid> {
        if self.tupdate.is_zero() {
            return Err(Invalid::new("tupdate", "must be above 0, for example \"15ms\""));
        }
        Ok(self)
    }

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
        if before.probability >= MAX_STEP.0 {
            step = step.min(MAX_STEP.1);
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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
    fn on_departure(&mut self, bytes: u32, queued: u64, now: Time) {
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

/// The controller of one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controller {
    state: State,
    /// Time of the next update; `None` before the first call.
    update_at: Option<Time>,
    /// Sojourn time of the packet that left last; zero for an empty queue.
    sojourn: Span,
    departures: Departures,
    /// `accu_prob_`: the sum of the probabilities since the last drop.
    accumulated: f64,
}

impl Controller {
    /// The controller of an empty queue.
    pub fn new(law: &Law) -> Controller {
        Controller {
            state: State::new(law.max_burst),
            update_at: None,
            sojourn: Span::ZERO,
            departures: Departures::default(),
            accumulated: 0.0,
        }
    }

    /// This controller under another law. Its burst allowance is at most the law's.
    pub fn under(self, law: &Law) -> Controller {
        let burst = self.state.burst.min(law.max_burst);
        Controller { state: State { burst, ..self.state }, ..self }
    }

    /// A controller without a burst allowance, with this probability and this delay at the last update, for
    /// tests.
    pub fn starting_at(law: &Law, probability: f64, delay_old: Span) -> Controller {
        let state = State { probability, delay_old, burst: Span::ZERO };
        Controller { state, ..Controller::new(law) }
    }

    /// This controller with the clock of another one, for tests.
    pub fn on_the_clock_of(self, other: &Controller) -> Controller {
        Controller { update_at: other.update_at, ..self }
    }

    /// The drop probability.
    #[inline]
    pub fn probability(&self) -> f64 {
        self.state.probability
    }

    /// Time for which drops are still suppressed.
    pub fn burst(&self) -> Span {
        self.state.burst
    }

    /// The present delay of a queue with `queued` bytes, as an update uses it.
    #[inline]
    pub fn delay(&self, law: &Law, queued: u64) -> Span {
        if law.by_rate { self.departures.delay(queued) } else { self.sojourn }
    }

    /// Makes the updates that a timer would have made since the last call. `queued` is the number of bytes in
    /// the queue since then. Updates are due at `origin` and every `tupdate` after it; a queue that has not
    /// been called before needed none.
    #[inline]
    pub fn catch_up(&mut self, law: &Law, origin: Time, queued: u64, now: Time) {
        match self.update_at {
            Some(due) if now < due => {}
            Some(due) => self.update_at = Some(self.update_from(law, due, queued, now)),
            None => self.update_at = Some(law.next_on_grid(origin, now)),
        }
    }

    /// Makes the updates from `due` to `now`, and returns the time of the next. Between calls the delay does
    /// not change.
    #[cold]
    fn update_from(&mut self, law: &Law, mut due: Time, queued: u64, now: Time) -> Time {
        let delay = self.delay(law, queued);
        for _ in 0..MAX_UPDATES {
            if now < due {
                return due;
            }
            let before = self.state;
            self.state = law.update(before, delay);
            due += law.tupdate;
            if self.state == before {
                break;
            }
        }
        // Further updates change nothing.
        if now < due { due } else { law.next_on_grid(due, now) }
    }

    /// Decides on an arriving packet, by chance and the exceptions: RFC 8033, section 4.1. `draw` returns a
    /// uniform number in 0 to 1; it is called only if the decision is random.
    #[inline]
    pub fn wants_drop(&mut self, law: &Law, bytes: u32, queued: u64, draw: impl FnOnce() -> f64) -> bool {
        // RFC 8033, section 4.1: no drop while the delay is below half the target and the probability below
        // 20 %, or with at most two packets queued. RFC 8033, section 4.4: none while the burst allowance
        // lasts.
        let calm = self.state.delay_old < law.target / 2 && self.state.probability < LOW_PROBABILITY;
        if !self.state.burst.is_zero() || calm || queued <= 2 * law.mtu {
            return false;
        }
        let probability = if law.bytemode {
            self.state.probability * f64::from(bytes) / law.mtu as f64
        } else {
            self.state.probability
        };
        if !law.derandomise {
            return draw() < probability;
        }
        if self.state.probability == 0.0 {
            self.accumulated = 0.0;
        }
        let drop = against(&mut self.accumulated, probability, draw);
        if drop {
            self.accumulated = 0.0;
        }
        drop
    }

    /// True if a packet is marked instead of dropped: RFC 8033, section 5.1.
    #[inline]
    pub fn may_mark(&self, law: &Law) -> bool {
        law.mark_below.is_some_and(|most| self.state.probability < most.get())
    }

    /// A full buffer dropped a packet of the queue. RFC 8033, section 5.4: the sum counts the probabilities
    /// since the last drop.
    #[inline]
    pub fn on_overflow(&mut self) {
        self.accumulated = 0.0;
    }

    /// Records the departure of a packet of `bytes` bytes, which arrived at `arrived` and leaves `queued`
    /// bytes in the queue, or an empty queue.
    #[inline]
    pub fn on_departure(&mut self, law: &Law, (bytes, arrived): (u32, Time), queued: Option<u64>, now: Time) {
        if law.by_rate {
            self.departures.on_departure(bytes, queued.unwrap_or(0), now);
        }
        // RFC 8033, section 4.3: the delay is that of the head when it leaves, by its time stamp.
        self.sojourn = if queued.is_none() { Span::ZERO } else { now.since(arrived) };
    }
}

impl Law {
    /// The first time of the grid after `now`.
    fn next_on_grid(&self, origin: Time, now: Time) -> Time {
        origin + self.tupdate * (now.since(origin).as_ps() / self.tupdate.as_ps() + 1)
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
    use proptest::prelude::*;

    const LAW: Law = Law {
        alpha: 0.125,
        beta: 1.25,
        target: Span::ms(15),
        tupdate: Span::ms(15),
        max_burst: Span::ms(150),
        mark_below: None,
        bytemode: false,
        by_rate: false,
        derandomise: true,
        mtu: 1500,
    };

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
    fn drops_are_spread_by_their_sum() {
        let drops =
            |mut accumulated: f64, probability, draw: f64| against(&mut accumulated, probability, || draw);
        assert!(!drops(0.0, 0.84, 0.0));
        assert!(drops(0.8, 0.05, 0.049));
        assert!(!drops(0.8, 0.05, 0.05));
        assert!(drops(8.4, 0.1, 0.99));
    }

    /// The delay is the head's when it leaves; with the estimator of rates it is the time to send what
    /// is queued.
    #[test]
    fn the_delay_has_two_definitions() {
        let mut stamps = Controller::new(&LAW);
        stamps.on_departure(&LAW, (1000, Time::ms(3)), Some(5000), Time::ms(10));
        assert_eq!(stamps.delay(&LAW, 5000), Span::ms(7));
        stamps.on_departure(&LAW, (1000, Time::ms(3)), None, Time::ms(11));
        assert_eq!(stamps.delay(&LAW, 0), Span::ZERO);

        let law = Law { by_rate: true, ..LAW };
        let mut rates = Controller::new(&law);
        // The measurement begins with 16,384 bytes in the queue, and ends after as many have left.
        for ms in 0..=17 {
            rates.on_departure(&law, (1000, Time::ZERO), Some(40_000 - 1000 * ms), Time::ms(ms));
        }
        assert_eq!(rates.delay(&law, 16_384), Span::ms(17));
        assert_eq!(rates.delay(&law, 8192), Span::from_ps(8_500_000_000));
    }

    /// Without delay the probability falls to zero in fewer updates than the largest number between two
    /// calls.
    #[test]
    fn idle_time_is_replayed_in_bounds() {
        let mut state = State { probability: 1.0, delay_old: Span::ZERO, burst: Span::ZERO };
        let mut updates = 0;
        while LAW.update(state, Span::ZERO) != state {
            state = LAW.update(state, Span::ZERO);
            updates += 1;
        }
        assert!(updates < MAX_UPDATES / 4, "{updates}");
        let mut paused = Controller::starting_at(&LAW, 0.8, Span::ms(40));
        paused.catch_up(&LAW, Time::ZERO, 0, Time::ms(1));
        paused.catch_up(&LAW, Time::ZERO, 0, Time::s(10_000_000));
        assert_eq!(paused.state, State::new(Span::ms(150)), "after a minute the state is the initial one");
        assert_eq!(paused.update_at, Some(Time::ms(15) + Span::ms(15) * 666_666_666));
    }

    /// A queue that is called for the first time has its updates on the common grid.
    #[test]
    fn queues_share_a_grid() {
        let first = |now| {
            let mut controller = Controller::new(&LAW);
            controller.catch_up(&LAW, Time::ms(7), 0, now);
            controller.update_at.unwrap()
        };
        assert_eq!([7, 8, 21, 22].map(|ms| first(Time::ms(ms))), [22, 22, 22, 37].map(Time::ms));
    }

    #[test]
    fn wrong_parameters_are_refused() {
        assert_eq!(Law { tupdate: Span::ZERO, ..LAW }.checked().unwrap_err().parameter, "tupdate");
        assert_eq!(LAW.checked(), Ok(LAW));
        assert_eq!((gain("alpha", 2), gain("beta", 20)), (Ok(0.125), Ok(1.25)));
        assert_eq!(
            gain("beta", 33).unwrap_err().to_string(),
            "beta: 33 is not between 0 and 32 (sixteenths)"
        );
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
        /// For random delays the probability follows the RFC's rules, bit by bit.
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
    }
}
