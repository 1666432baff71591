//! PIP: a controller that derives a drop probability from the distance of the queue length to a reference,
//! and from its change ("proportional integral based series compensation and position feedback
//! compensation").
//!
//! `p' = p + dt/T (q - q0) + (tau/T - Kh) (q - q_before)`: section 2.2.4 of FPIP (Zhang, Jiang and Dou 2007),
//! after a poster of SIGCOMM 2003 by Zhang, Liu and Dou; `dt` is the time between two arrivals. T = 200, tau
//! = 0.4, Kh = 0.0014, q0 = 50 packets (section 3.1).
//!
//! Choices where the paper is silent:
//!
//! - **Units.** The numbers fit if T is in packet-seconds, tau in seconds and Kh per packet. Since `dt` is
//!   the time between arrivals, the sum is an integral over time, whatever the rate of packets. So a queue of
//!   100 packets raises the probability by 0.25 per second, and a jump by 50 packets raises it by 0.03.
//! - **The length** is the queue length at an arrival, in packets.
//! - **The probability is limited to 0 to 1** after each step (`clamp`). Without the limit, an idle link
//!   drives it far below 0, and the next congestion goes unnoticed for as long.
//! - **A long pause** counts in full, with the length at its end, as in the equation; `most` bounds it.
//! - **The first arrival** has a pause of zero, and a queue length of zero before it.

use crate::backlog::Backlog;
use crate::qdisc::Invalid;
use crate::units::{Bytes, Limit, Span, Time};

/// Constants of the controller.
#[derive(Clone, Copy, Debug)]
pub struct Gains {
    /// T, packet-seconds.
    pub t: f64,
    /// tau, seconds.
    pub tau: f64,
    /// K_h, per packet.
    pub kh: f64,
    /// q_0, packets.
    pub target: f64,
    /// True if the probability is limited to 0 to 1.
    pub clamp: bool,
    /// Upper bound for `dt`, if any.
    pub most: Option<Span>,
}

impl Default for Gains {
    /// The constants of the paper, with a probability that is limited to 0 to 1.
    fn default() -> Gains {
        Gains { t: 200.0, tau: 0.4, kh: 0.0014, target: 50.0, clamp: true, most: None }
    }
}

impl Gains {
    /// Checks the parameters `t` and `kh`.
    ///
    /// # Errors
    /// If `t` is not above 0, or `kh` is negative.
    pub fn checked(self) -> Result<Gains, Invalid> {
        if !(self.t > 0.0 && self.t.is_finite()) {
            let message = format!(
                "{} is not an integral time: write for example 200 (packet-seconds), as in the paper",
                self.t
            );
            return Err(Invalid::new("t", message));
        }
        if !(self.kh >= 0.0 && self.kh.is_finite()) {
            let message =
                format!("{} is not a gain: write for example 0.0014 (per packet), as in the paper", self.kh);
            return Err(Invalid::new("kh", message));
        }
        Ok(self)
    }

    /// Warnings about unusual constants, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.tau / self.t <= self.kh {
            warnings.push(format!(
                "tau: {} s over t {} is not above kh {}: a growing queue lowers the drop probability",
                self.tau, self.t, self.kh
            ));
        }
        if !self.clamp {
            warnings.push(
                "noclamp: the drop probability falls far below 0 while the link is idle, and the next congestion goes unnoticed for as long"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// Measure of a queue length, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// The number of packets.
    Packets,
    /// The number of bytes, divided by this average packet size.
    Average(f64),
}

impl Length {
    /// The measure for a reference `target`, and the reference in packets.
    ///
    /// # Errors
    /// If `avpkt` is zero.
    pub fn new(target: Limit, avpkt: Bytes) -> Result<(Length, f64), Invalid> {
        if avpkt.0 == 0 {
            return Err(Invalid::new(
                "avpkt",
                "0 bytes are too few for a packet: write for example \"1000b\"",
            ));
        }
        let average = avpkt.0 as f64;
        Ok(match target {
            Limit::Packets(packets) => (Length::Packets, packets as f64),
            Limit::Bytes(bytes) => (Length::Average(average), bytes as f64 / average),
        })
    }

    /// Length of a backlog.
    #[inline]
    pub fn of(self, backlog: Backlog) -> f64 {
        match self {
            Length::Packets => backlog.packets as f64,
            Length::Average(bytes) => backlog.bytes as f64 / bytes,
        }
    }
}

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct Pip {
    gains: Gains,
    probability: f64,
    /// Queue length at the previous arrival.
    before: f64,
    last: Option<Time>,
}

impl Pip {
    /// A controller before its first arrival.
    pub fn new(gains: Gains) -> Pip {
        Pip { gains, probability: 0.0, before: 0.0, last: None }
    }

    /// The controller as it was after an arrival at `last`, with this probability and queue length.
    pub fn resumed(self, probability: f64, before: f64, last: Time) -> Pip {
        Pip { probability, before, last: Some(last), ..self }
    }

    /// Updates the probability for an arrival at a queue of `length` packets, and returns it.
    #[inline]
    pub fn arrival(&mut self, length: f64, now: Time) -> f64 {
        let Gains { t, tau, kh, target, clamp, most } = self.gains;
        let pause = self.last.map_or(Span::ZERO, |last| now.since(last));
        let pause = most.map_or(pause, |most| pause.min(most)).as_s();
        self.probability += pause / t * (length - target) + (tau / t - kh) * (length - self.before);
        if clamp {
            self.probability = self.probability.clamp(0.0, 1.0);
        }
        (self.before, self.last) = (length, Some(now));
        self.probability
    }

    /// The drop probability.
    pub fn probability(&self) -> f64 {
        self.probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pip(probability: f64, before: f64) -> Pip {
        Pip::new(Gains::default()).resumed(probability, before, Time::ZERO)
    }

    #[test]
    fn the_worked_example() {
        // .30 + (.001/200) 22 + .0006 2
        let probability = pip(0.3, 70.0).arrival(72.0, Time::ms(1));
        assert!((probability - 0.30131).abs() < 1e-12, "{probability}");
    }

    #[test]
    fn a_queue_of_a_hundred_packets_raises_the_probability_by_a_quarter_each_second() {
        for arrivals in [10, 1000] {
            let mut pip = pip(0.1, 100.0);
            (1..=arrivals).for_each(|n| {
                pip.arrival(100.0, Time::us(n * 1_000_000 / arrivals));
            });
            assert!(
                (pip.probability() - 0.35).abs() < 1e-9,
                "{} after {arrivals} arrivals",
                pip.probability()
            );
        }
        // A jump by 50 packets alone adds 0.03.
        assert!((pip(0.1, 50.0).arrival(100.0, Time::ZERO) - 0.13).abs() < 1e-12);
        // At the reference the probability is constant.
        assert_eq!(pip(0.1, 50.0).arrival(50.0, Time::s(3)), 0.1);
    }

    /// Ten idle seconds, then a queue of 100 packets: without the clamp the probability stays below 0 for ten
    /// more seconds.
    #[test]
    fn without_the_clamp_an_idle_link_hides_the_next_congestion() {
        let seen_after = |clamp: bool| {
            let mut pip = Pip::new(Gains { clamp, ..Gains::default() }).resumed(0.0, 0.0, Time::ZERO);
            let after_idle = pip.arrival(0.0, Time::s(10));
            let seconds = (11..60).find(|second| pip.arrival(100.0, Time::s(*second)) > 0.0);
            (after_idle, seconds.unwrap() - 10)
        };
        assert_eq!(seen_after(true), (0.0, 1));
        let (probability, seconds) = seen_after(false);
        assert_eq!((probability, seconds), (-2.5, 10));
    }

    #[test]
    fn a_pause_can_be_bounded() {
        let mut pip = Pip::new(Gains { most: Some(Span::ms(100)), ..Gains::default() });
        pip.arrival(150.0, Time::ZERO);
        assert!((pip.arrival(150.0, Time::s(60)) - (0.09 + 0.05)).abs() < 1e-12);
    }

    proptest! {
        /// The probability stays between 0 and 1, and of two queues the one that is never shorter never has
        /// the smaller probability, until one of them is clamped.
        #[test]
        fn longer_queues_have_larger_probabilities(
            arrivals in prop::collection::vec((0..300u32, 0..200u32, 0..100_000u64), 1..200),
        ) {
            let (mut short, mut long) = (pip(0.5, 0.0), pip(0.5, 0.0));
            let (mut now, mut clamped) = (Time::ZERO, false);
            for (length, more, us) in arrivals {
                now += Span::us(us);
                let low = short.arrival(f64::from(length), now);
                let high = long.arrival(f64::from(length + more), now);
                prop_assert!((0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high));
                clamped |= low == 0.0 || high == 1.0 || high == 0.0 || low == 1.0;
                prop_assert!(clamped || high >= low - 1e-9, "{low} above {high}");
            }
        }
    }
}
