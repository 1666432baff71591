//! PIP: a controller of the queue's length that answers with odds, from the length's distance from a reference and from its
//! change ("proportional integral based series compensation and position feedback compensation").
//!
//! `p' = p + dt/T (q - q0) + (tau/T - Kh) (q - q_before)`: section 2.2.4 of FPIP (Zhang, Jiang and Dou 2007), after a poster of
//! SIGCOMM 2003 by Zhang, Liu and Dou; `dt` is the time between two arrivals. T = 200, tau = 0.4, Kh = 0.0014, q0 = 50 packets
//! (section 3.1).
//!
//! What the paper leaves open, and what is chosen here:
//!
//! - **Units.** The numbers fit if T is in packet-seconds, tau in seconds and Kh per packet. Since `dt` is the time between
//!   arrivals, the sum is an integral over time, whatever the rate of packets. A queue of 100 packets so raises the odds by
//!   0.25 per second, and a jump by 50 packets raises them by 0.03.
//! - **The length** is what an arrival finds, in packets.
//! - **Odds stay between 0 and 1** after each step. The paper does not say so; without it an idle link drives them far below 0,
//!   and the next congestion goes unseen for as long (`clamp`).
//! - **A long pause** counts whole, with the length at its end, as printed; `most` bounds it.
//! - The first arrival has no pause before it, and found an empty queue before.

use crate::qdisc::{Backlog, Invalid};
use crate::units::{Bytes, Limit, Span, Time};

/// The controller's constants.
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
    /// Whether the odds are kept between 0 and 1.
    pub clamp: bool,
    /// The longest pause that counts; none: all do.
    pub most: Option<Span>,
}

impl Default for Gains {
    /// The paper's, and odds that stay odds.
    fn default() -> Gains {
        Gains { t: 200.0, tau: 0.4, kh: 0.0014, target: 50.0, clamp: true, most: None }
    }
}

impl Gains {
    /// The constants as their users write them: parameters `t`, `tau`, `kh` and `max_dt`.
    ///
    /// # Errors
    /// Constants that are no numbers of a controller: `t` not above 0, `kh` negative.
    pub fn checked(self) -> Result<Gains, Invalid> {
        if !(self.t > 0.0 && self.t.is_finite()) {
            let message = format!("{} is no integral time: the paper has 200 (packet-seconds)", self.t);
            return Err(Invalid::new("t", message));
        }
        if !(self.kh >= 0.0 && self.kh.is_finite()) {
            let message = format!("{} is no gain: the paper has 0.0014 (per packet)", self.kh);
            return Err(Invalid::new("kh", message));
        }
        Ok(self)
    }

    /// What is unusual about them, in a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.tau / self.t <= self.kh {
            warnings.push(format!(
                "tau: {} s over t {} is not above kh {}: a growing queue lowers the odds",
                self.tau, self.t, self.kh
            ));
        }
        if !self.clamp {
            warnings.push(
                "noclamp: odds fall far below 0 while the link is idle, and the next congestion is not seen for as long"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// How long a queue is, in packets: counted, or its bytes in packets of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Packets are counted, whatever their lengths.
    Packets,
    /// Bytes are counted, in packets of so many.
    Average(f64),
}

impl Length {
    /// How a queue is measured whose reference is written so, and the reference in packets.
    ///
    /// # Errors
    /// When a packet has no bytes.
    pub fn new(target: Limit, avpkt: Bytes) -> Result<(Length, f64), Invalid> {
        if avpkt.0 == 0 {
            return Err(Invalid::new("avpkt", "no packet has 0 bytes: 1000b is a good value"));
        }
        let average = avpkt.0 as f64;
        Ok(match target {
            Limit::Packets(packets) => (Length::Packets, packets as f64),
            Limit::Bytes(bytes) => (Length::Average(average), bytes as f64 / average),
        })
    }

    /// The length of what is held.
    #[inline]
    pub fn of(self, held: Backlog) -> f64 {
        match self {
            Length::Packets => held.packets as f64,
            Length::Average(bytes) => held.bytes as f64 / bytes,
        }
    }
}

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct Pip {
    gains: Gains,
    odds: f64,
    /// The length that the arrival before found.
    before: f64,
    last: Option<Time>,
}

impl Pip {
    /// A controller that has seen nothing yet.
    pub fn new(gains: Gains) -> Pip {
        Pip { gains, odds: 0.0, before: 0.0, last: None }
    }

    /// The same with odds and a length from earlier.
    pub fn resumed(self, odds: f64, before: f64, last: Time) -> Pip {
        Pip { odds, before, last: Some(last), ..self }
    }

    /// An arrival finds `length` packets: the odds from now on.
    #[inline]
    pub fn arrival(&mut self, length: f64, now: Time) -> f64 {
        let Gains { t, tau, kh, target, clamp, most } = self.gains;
        let pause = self.last.map_or(Span::ZERO, |last| now.since(last));
        let pause = most.map_or(pause, |most| pause.min(most)).as_s();
        self.odds += pause / t * (length - target) + (tau / t - kh) * (length - self.before);
        if clamp {
            self.odds = self.odds.clamp(0.0, 1.0);
        }
        (self.before, self.last) = (length, Some(now));
        self.odds
    }

    /// The odds.
    pub fn odds(&self) -> f64 {
        self.odds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pip(odds: f64, before: f64) -> Pip {
        Pip::new(Gains::default()).resumed(odds, before, Time::ZERO)
    }

    #[test]
    fn the_worked_example() {
        // .30 + (.001/200) 22 + .0006 2
        let odds = pip(0.3, 70.0).arrival(72.0, Time::ms(1));
        assert!((odds - 0.30131).abs() < 1e-12, "{odds}");
    }

    #[test]
    fn a_queue_of_a_hundred_packets_raises_the_odds_by_a_quarter_each_second() {
        for arrivals in [10, 1000] {
            let mut pip = pip(0.1, 100.0);
            (1..=arrivals).for_each(|n| {
                pip.arrival(100.0, Time::us(n * 1_000_000 / arrivals));
            });
            assert!((pip.odds() - 0.35).abs() < 1e-9, "{} after {arrivals} arrivals", pip.odds());
        }
        // A jump by 50 packets of its own: 0.03.
        assert!((pip(0.1, 50.0).arrival(100.0, Time::ZERO) - 0.13).abs() < 1e-12);
        // At the reference nothing moves.
        assert_eq!(pip(0.1, 50.0).arrival(50.0, Time::s(3)), 0.1);
    }

    /// Ten idle seconds, then a queue of 100 packets: without the clamp congestion is not seen for ten seconds more.
    #[test]
    fn without_the_clamp_an_idle_link_hides_the_next_congestion() {
        let seen_after = |clamp: bool| {
            let mut pip = Pip::new(Gains { clamp, ..Gains::default() }).resumed(0.0, 0.0, Time::ZERO);
            let after_idle = pip.arrival(0.0, Time::s(10));
            let seconds = (11..60).find(|second| pip.arrival(100.0, Time::s(*second)) > 0.0);
            (after_idle, seconds.unwrap() - 10)
        };
        assert_eq!(seen_after(true), (0.0, 1));
        let (odds, seconds) = seen_after(false);
        assert_eq!((odds, seconds), (-2.5, 10));
    }

    #[test]
    fn a_pause_can_be_bounded() {
        let mut pip = Pip::new(Gains { most: Some(Span::ms(100)), ..Gains::default() });
        pip.arrival(150.0, Time::ZERO);
        assert!((pip.arrival(150.0, Time::s(60)) - (0.09 + 0.05)).abs() < 1e-12);
    }

    proptest! {
        /// Odds stay odds, and a queue that is never shorter never has smaller odds, until a clamp comes between them.
        #[test]
        fn longer_queues_have_larger_odds(
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
