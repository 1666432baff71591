//! Exponential average of an arrival rate. Arrivals that are K old, the time constant, count 1/e.
//!
//! `r' = (1 - e^(-dt/K)) b/dt + e^(-dt/K) r`, for a packet of `b` bits that arrives `dt` after the previous
//! one: equation (3) of the CSFQ paper (Stoica, Shenker and Zhang 1998); equations (1), (2) and (10) of FPIP
//! (Zhang, Jiang and Dou 2007).
//!
//! Choices where the papers are silent:
//!
//! - **Packets of one instant.** The first term tends to `b/K` as `dt` goes to 0, and this limit is used: n
//!   packets of one instant raise the rate by n b/K, as if they had arrived shortly after one another. Public
//!   implementations of CSFQ add their lengths instead, and count the sum with the next later packet:
//!   [`SameInstant::Accumulate`].
//! - **The first packet** has no `dt`. It counts as `dt` = 0: `b/K`. With [`SameInstant::Accumulate`] its
//!   `dt` is the time since time 0, as in those implementations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::qdisc::Invalid;
use crate::units::{Span, Time};

/// Treatment of packets that arrive at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SameInstant {
    /// Each packet adds its bits divided by the time constant: the limit of the formula.
    #[default]
    Limit,
    /// Their bits are added up, and count with the next packet that arrives later.
    Accumulate,
}

/// Parameters of an exponential average.
#[derive(Clone, Copy, Debug)]
pub struct Averaging {
    /// Time constant K, in seconds.
    constant: f64,
    same_instant: SameInstant,
}

/// An averaged rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AveragedRate {
    /// Bits per second.
    pub rate: f64,
    /// Bytes of the last arrivals that do not count yet.
    pub pending: u32,
}

/// Effect of a time without packets on an average, and weight of the bits at its end.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Factor of the old rate.
    keep: f64,
    /// Bits per second that one bit adds; `None` if bits are added up.
    per_bit: Option<f64>,
}

impl Averaging {
    /// An average with the time constant `constant`, which errors call `parameter`.
    ///
    /// # Errors
    /// If the constant is zero.
    pub fn new(
        parameter: &'static str,
        constant: Span,
        same_instant: SameInstant,
    ) -> Result<Averaging, Invalid> {
        if constant.is_zero() {
            let message = "a rate needs some time to be averaged over: write for example \"100ms\"";
            return Err(Invalid::new(parameter, message));
        }
        Ok(Averaging { constant: constant.as_s(), same_instant })
    }

    /// The step from the last update, at `last`, to `now`.
    #[inline]
    pub fn step(&self, last: Option<Time>, now: Time) -> Step {
        let last = match self.same_instant {
            SameInstant::Limit => last,
            SameInstant::Accumulate => Some(last.unwrap_or(Time::ZERO)),
        };
        let gap = last.map_or(0.0, |last| now.since(last).as_s());
        if gap > 0.0 || self.same_instant == SameInstant::Limit { self.after(gap) } else { Step::NONE }
    }

    /// The step over `gap` seconds.
    #[inline]
    fn after(&self, gap: f64) -> Step {
        // The formula loses its digits for short gaps; its limit does not.
        const SHORT: f64 = 1e-9;
        let ratio = gap / self.constant;
        if ratio < SHORT {
            return Step { keep: 1.0 - ratio, per_bit: Some(1.0 / self.constant) };
        }
        let fresh = -libm::expm1(-ratio);
        Step { keep: 1.0 - fresh, per_bit: Some(fresh / gap) }
    }
}

impl Step {
    /// A step over no time, after which bits are added up.
    const NONE: Step = Step { keep: 1.0, per_bit: None };

    /// Applies a step to a rate. `bytes` is the length of the packet at its end, or 0.
    #[inline]
    pub fn apply(&self, average: &mut AveragedRate, bytes: u32) {
        match self.per_bit {
            Some(per_bit) => {
                let bits = 8.0 * (f64::from(average.pending) + f64::from(bytes));
                average.rate = bits * per_bit + self.keep * average.rate;
                average.pending = 0;
            }
            None => average.pending = average.pending.saturating_add(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn averaging(same_instant: SameInstant) -> Averaging {
        Averaging::new("window", Span::ms(100), same_instant).unwrap()
    }

    /// Rate after each of these packets, given by their times in microseconds and lengths in bytes.
    fn rates(averaging: &Averaging, packets: &[(u64, u32)]) -> Vec<f64> {
        let (mut average, mut last) = (AveragedRate::default(), None);
        let mut after = |(at, bytes): &(u64, u32)| {
            averaging.step(last, Time::us(*at)).apply(&mut average, *bytes);
            last = Some(Time::us(*at));
            average.rate
        };
        packets.iter().map(&mut after).collect()
    }

    /// Computed by hand for K = 100 ms, with a burst and a pause.
    #[test]
    fn the_worked_example_to_a_tenth_of_a_bit() {
        let packets = [
            (0, 1000),
            (10_000, 1000),
            (20_000, 1000),
            (30_000, 1000),
            (30_000, 1000),
            (50_000, 500),
            (150_000, 1000),
            (250_000, 1000),
        ];
        let expected =
            [80_000.0, 148_517.1, 210_513.9, 266_610.9, 346_610.9, 320_034.8, 168_303.9, 112_485.2];
        for (rate, expected) in rates(&averaging(SameInstant::Limit), &packets).into_iter().zip(expected) {
            assert!((rate - expected).abs() < 0.05, "{rate} instead of {expected}");
        }
    }

    #[test]
    fn a_burst_of_one_instant_raises_by_its_bits_over_the_constant() {
        let burst = [(5, 1000); 7];
        assert_eq!(rates(&averaging(SameInstant::Limit), &burst)[6], 7.0 * 80_000.0);
        // Added up, their bits count with the next later packet, over the time since their arrival.
        let added =
            rates(&averaging(SameInstant::Accumulate), &[(5, 1000), (5, 500), (5, 500), (1005, 1000)]);
        let first = -libm::expm1(-0.00005) * 8000.0 / 0.000_005;
        assert!((added[0] - first).abs() < 1e-6 && added[1..3] == [added[0]; 2], "{added:?}");
        let fresh = -libm::expm1(-0.01);
        assert!((added[3] - (fresh * 16_000.0 / 0.001 + (1.0 - fresh) * first)).abs() < 1e-6);
        // At time 0 there is no rate yet.
        assert_eq!(rates(&averaging(SameInstant::Accumulate), &[(0, 1000)]), [0.0]);
    }

    #[test]
    fn a_rate_decays_without_packets_and_keeps_its_precision() {
        let averaging = averaging(SameInstant::Limit);
        let mut average = AveragedRate { rate: 1e6, pending: 0 };
        averaging.step(Some(Time::ZERO), Time::ms(100)).apply(&mut average, 0);
        assert!((average.rate - 1e6 / std::f64::consts::E).abs() < 1e-6);
        // Gaps of a picosecond and of a very long time.
        for (apart, least, most) in [(1, 1e6, 1.080_001e6), (u64::MAX / 2, 0.0, 1.0)] {
            let mut average = AveragedRate { rate: 1e6, pending: 0 };
            averaging.step(Some(Time::ZERO), Time::from_ps(apart)).apply(&mut average, 1000);
            assert!((least..=most).contains(&average.rate), "{} after {apart} ps", average.rate);
        }
    }

    #[test]
    fn a_constant_of_zero_is_refused() {
        let error = Averaging::new("window", Span::ZERO, SameInstant::Limit).unwrap_err();
        assert!(error.to_string().starts_with("window: a rate needs some time"), "{error}");
    }

    proptest! {
        /// The average of a steady stream is its rate after ten time constants. An average is never negative,
        /// and never above the rate of all bits at one instant.
        #[test]
        fn a_steady_stream_has_its_rate(gap_us in 1..50_000u64, bytes in 40..1500u32) {
            let packets: Vec<(u64, u32)> = (0..=1_000_000 / gap_us + 20).map(|n| (n * gap_us, bytes)).collect();
            let expected = f64::from(bytes) * 8e6 / gap_us as f64;
            let last = *rates(&averaging(SameInstant::Limit), &packets).last().unwrap();
            prop_assert!((last / expected - 1.0).abs() < 1e-3, "{last} instead of {expected}");
        }

        /// A pause has the same effect in one step and in several.
        #[test]
        fn decay_is_the_same_in_one_step_or_several(cuts in prop::collection::vec(1..100_000u64, 1..20)) {
            let averaging = averaging(SameInstant::Limit);
            let mut cut = AveragedRate { rate: 1e7, pending: 0 };
            let mut whole = cut;
            let mut now = Time::ZERO;
            for us in cuts {
                averaging.step(Some(now), now + Span::us(us)).apply(&mut cut, 0);
                now += Span::us(us);
            }
            averaging.step(Some(Time::ZERO), now).apply(&mut whole, 0);
            prop_assert!((cut.rate - whole.rate).abs() <= 1e-9 * whole.rate);
        }
    }
}
