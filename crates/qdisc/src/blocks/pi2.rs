//! The controller of PI2: a probability that follows the delay of a queue, without a table of gains.
//!
//! `p' = p' + alpha (delay - target) + beta (delay - delay_before)`, once per `tupdate`: dualpi2_update() in
//! RFC 9332, appendix A.1, after De Schepper, Bondarenko, Tsang and Briscoe 2016, "PI2: A Linearized AQM for
//! both Classic and Scalable TCP". Owners use p' for three probabilities:
//!
//! - p'^2 for classic traffic, whose rate falls with the root of the signals;
//! - k p' for scalable traffic, whose rate falls with the signals themselves;
//! - so classic and scalable flows get about the same rate, and constant gains are stable at every rate.
//!
//! Choices where the RFC is silent:
//!
//! - **There is no timer.** A call first makes the updates that are due, one by one, with the delays that a
//!   timer would have seen: the oldest packet of the queue waits longer at each of them. After 4,096 updates
//!   (a minute) without a call the rest is skipped.
//! - **The first update** is due one `tupdate` after the first call.
//! - **The probability is limited** to 0 to `most`.

use crate::qdisc::Invalid;
use crate::units::{Span, Time};

/// Parameters of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Integral gain in Hz: the rise of p' at an update per second of delay above the target.
    pub alpha: f64,
    /// Proportional gain in Hz: the rise of p' at an update per second of delay more than at the update
    /// before.
    pub beta: f64,
    /// Delay at which p' stays.
    pub target: Span,
    /// Interval between updates.
    pub tupdate: Span,
    /// Largest p', at most 1.
    pub most: f64,
}

/// Largest gain, in Hz. Round-trip times of a microsecond have smaller ones.
const MAX_GAIN: f64 = 1e6;
/// Largest number of updates between two calls; further ones are skipped.
const MAX_UPDATES: u64 = 4096;

impl Law {
    /// Checks the parameters `tupdate`, `alpha` and `beta`.
    ///
    /// # Errors
    /// If `tupdate` is zero, or a gain is not between 0 and a million.
    pub fn checked(self) -> Result<Law, Invalid> {
        if self.tupdate.is_zero() {
            return Err(Invalid::new("tupdate", "must be above 0, for example \"16ms\""));
        }
        for (parameter, gain, example) in [("alpha", self.alpha, "0.16"), ("beta", self.beta, "3.2")] {
            if !(0.0..=MAX_GAIN).contains(&gain) {
                let message =
                    format!("{gain} is not between 0 and 1000000 (Hz): write for example {example}");
                return Err(Invalid::new(parameter, message));
            }
        }
        Ok(self)
    }

    /// One update with the present delay.
    fn update(&self, before: State, delay: Span) -> State {
        // RFC 9332, appendix A.1, dualpi2_update(): p' = p' + alpha * (curq - target) + beta * (curq -
        // prevq).
        let step = self.alpha * seconds(delay, self.target) + self.beta * seconds(delay, before.delay);
        State { probability: (before.probability + step).clamp(0.0, self.most), delay }
    }

    /// True if further updates without a call between them do not change the probability.
    fn is_settled(&self, before: State, after: State, idle: bool) -> bool {
        // A waiting packet waits longer at each update, so the probability stays at its upper limit.
        let full = after.probability == self.most && after.delay >= self.target;
        full || (idle && before == after)
    }
}

/// State that an update changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct State {
    /// p'.
    probability: f64,
    /// prevq: the delay at the last update.
    delay: Span,
}

/// `a` - `b` in seconds; exact in the subtraction, so that equal spans give zero.
fn seconds(a: Span, b: Span) -> f64 {
    if a >= b { (a - b).as_s() } else { -(b - a).as_s() }
}

/// The controller: its parameters and its state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controller {
    law: Law,
    state: State,
    /// Time of the next update; `None` before the first call.
    update_at: Option<Time>,
}

impl Controller {
    /// A controller with p' = 0.
    pub fn new(law: Law) -> Controller {
        Controller { law, state: State::default(), update_at: None }
    }

    /// Continues another controller under this one's law, from the next update on.
    pub fn take_over(&mut self, old: &Controller) {
        let probability = old.state.probability.min(self.law.most);
        *self = Controller { law: self.law, state: State { probability, ..old.state }, ..*old };
    }

    /// A controller with p' = `probability`, and a delay at the target before, for tests.
    pub fn starting_at(law: Law, probability: f64) -> Controller {
        Controller { state: State { probability, delay: law.target }, ..Controller::new(law) }
    }

    /// Makes the updates that a timer would have made since the last call. `oldest` is called if an update is
    /// due, and returns the arrival of the packet that has waited longest; `None` if no packet is queued.
    #[inline]
    pub fn catch_up(&mut self, now: Time, oldest: impl FnOnce() -> Option<Time>) {
        match self.update_at {
            Some(due) if now < due => {}
            Some(due) => self.update_at = Some(self.update_from(due, now, oldest())),
            None => self.update_at = Some(now + self.law.tupdate),
        }
    }

    /// Forgets everything but the parameters.
    pub fn reset(&mut self) {
        *self = Controller::new(self.law);
    }

    /// The base probability p'.
    #[inline]
    pub fn probability(&self) -> f64 {
        self.state.probability
    }

    /// The delay at the last update.
    pub fn delay(&self) -> Span {
        self.state.delay
    }

    /// Makes the updates from `due` to `now`, and returns the time of the next, on the grid of `tupdate`.
    #[cold]
    fn update_from(&mut self, due: Time, now: Time, oldest: Option<Time>) -> Time {
        let last = now.since(due).as_ps() / self.law.tupdate.as_ps();
        let waited = |update: u64| {
            oldest.map_or(Span::ZERO, |arrived| (due + self.law.tupdate * update).since(arrived))
        };
        for update in 0..=last.min(MAX_UPDATES) {
            let before = self.state;
            self.state = self.law.update(before, waited(update));
            if self.law.is_settled(before, self.state, oldest.is_none()) {
                break;
            }
        }
        self.state.delay = waited(last);
        due + self.law.tupdate * (last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAW: Law = Law { alpha: 0.16, beta: 3.2, target: Span::ms(15), tupdate: Span::ms(16), most: 1.0 };

    /// Updates with these delays in milliseconds, and p' after each.
    fn series(law: Law, delays: &[u64]) -> Vec<f64> {
        let mut state = State::default();
        let after = delays.iter().map(|ms| {
            state = law.update(state, Span::ms(*ms));
            state.probability
        });
        after.collect()
    }

    /// The first updates, by hand. At 20 ms: 0.16 x 0.005 + 3.2 x 0.020 = 0.0648. At 30 ms: 0.16 x 0.015 +
    /// 3.2 x 0.010 = 0.0344 more. At 30 ms again: 0.0024 more. At 10 ms: 0.16 x 0.005 + 3.2 x 0.020 = 0.0648
    /// less.
    #[test]
    fn the_probability_step_by_step() {
        for (p, by_hand) in series(LAW, &[20, 30, 30, 10]).iter().zip([0.0648, 0.0992, 0.1016, 0.0368]) {
            assert!((p - by_hand).abs() < 1e-12, "{p} {by_hand}");
        }
    }

    #[test]
    fn the_probability_stays_at_the_target_and_within_its_limits() {
        let settled = series(LAW, &[15, 15, 15, 15]);
        assert_eq!(settled[0], settled[3], "at the target nothing changes");
        assert_eq!(series(LAW, &[5, 0, 0]), [3.2 * 0.005 - 0.16 * 0.01, 0.0, 0.0]);
        assert_eq!(series(LAW, &[10_000]), [1.0]);
        assert_eq!(series(Law { most: 0.5, ..LAW }, &[10_000, 10_000]), [0.5, 0.5]);
    }

    /// A packet that arrives at 0 ms waits while nothing is called: at 16, 32 and 48 ms it has waited so
    /// long.
    #[test]
    fn missed_updates_see_the_oldest_packet_wait() {
        let mut controller = Controller::new(LAW);
        controller.catch_up(Time::ZERO, || None);
        controller.catch_up(Time::ms(50), || Some(Time::ZERO));
        assert_eq!(controller.probability(), series(LAW, &[16, 32, 48])[2]);
        assert_eq!(controller.update_at, Some(Time::ms(64)));
    }

    #[test]
    fn long_pauses_are_bounded_and_exact() {
        for oldest in [None, Some(Time::ZERO)] {
            let mut stepped = Controller::starting_at(LAW, 0.9);
            stepped.update_at = Some(Time::ms(16));
            let mut paused = stepped;
            for ms in 16..200_000 {
                stepped.catch_up(Time::ms(ms), || oldest);
            }
            paused.catch_up(Time::ms(199_999), || oldest);
            assert_eq!(paused, stepped);
            assert_eq!(paused.probability(), if oldest.is_some() { 1.0 } else { 0.0 });
            // A pause of years does not cost more.
            paused.catch_up(Time::s(10_000_000), || oldest);
            assert!(paused.update_at.is_some_and(|due| due > Time::s(10_000_000)));
        }
    }

    #[test]
    fn wrong_gains_are_refused() {
        let wrong = |law: Law| law.checked().unwrap_err().parameter;
        assert_eq!(wrong(Law { tupdate: Span::ZERO, ..LAW }), "tupdate");
        assert_eq!(wrong(Law { alpha: -0.1, ..LAW }), "alpha");
        assert_eq!(wrong(Law { beta: f64::NAN, ..LAW }), "beta");
        assert_eq!(LAW.checked(), Ok(LAW));
    }

    proptest! {
        /// The updates do not depend on the number of calls between them.
        #[test]
        fn the_frequency_of_calls_has_no_effect(gaps in prop::collection::vec((1..300_000u64, any::<bool>()), 1..60)) {
            let (mut rare, mut often) = (Controller::new(LAW), Controller::new(LAW));
            let (mut now, mut oldest) = (Time::ZERO, None);
            for controller in [&mut rare, &mut often] {
                controller.catch_up(now, || oldest);
            }
            for (us, queued) in gaps {
                let until = now + Span::us(us);
                while now < until {
                    now = (now + Span::us(900)).min(until);
                    often.catch_up(now, || oldest);
                }
                rare.catch_up(now, || oldest);
                prop_assert_eq!(rare, often);
                oldest = queued.then_some(now);
            }
        }
    }
}
