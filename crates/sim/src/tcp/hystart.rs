//! HyStart++: ends the first slow start when the round-trip time grows, before the buffer overflows. RFC
//! 9406.
//!
//! # Principles
//! - In each round the smallest of at least eight round-trip samples is compared with that of the round
//!   before. If it grew by an eighth (at least 4, at most 16 ms), a queue is building: conservative slow
//!   start begins, which grows a quarter as fast.
//! - After five rounds of conservative slow start the window becomes the threshold. If the round-trip time
//!   falls below the one that began it, the growth was jitter, and slow start resumes.
//!
//! # Deviations
//! - Growth per acknowledgement stays that of the controller (L = 2, RFC 3465); the RFC allows up to 8
//!   segments.
//! - Linux ends slow start at once when the round-trip time grows, and also by the length of an
//!   acknowledgement train.
//!
//! # Cost
//! - A few comparisons per acknowledgement in the first slow start, none after it.
//!
//! # References
//! - RFC 9406, sections 4.2 and 4.3, with their constants.

use giveway_qdisc::Span;

use super::controller::Ack;

// The constants of RFC 9406, section 4.3.
const MIN_RTT_THRESH: Span = Span::ms(4);
const MAX_RTT_THRESH: Span = Span::ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_ROUNDS: u32 = 5;
/// Divisor of the growth in conservative slow start: RFC 9406, section 4.3.
pub(crate) const CSS_GROWTH_DIVISOR: u64 = 4;

/// Growth that an acknowledgement allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The full growth of slow start.
    Slow,
    /// The growth of slow start divided by [`CSS_GROWTH_DIVISOR`].
    Conservative,
    /// Slow start ends after this acknowledgement: the window becomes the threshold.
    Over,
}

/// State of the current round and of the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HyStart {
    /// The round ends when this sequence number is acknowledged (windowEnd).
    round_end: u64,
    /// Smallest round-trip time of the last round (lastRoundMinRTT).
    last: Option<Span>,
    /// Smallest round-trip time of this round (currentRoundMinRTT).
    current: Option<Span>,
    /// Samples in this round (rttSampleCount).
    samples: u32,
    /// Conservative slow start, if it has begun.
    conservative: Option<Conservative>,
}

#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The round-trip time that began it (cssBaselineMinRtt).
    baseline: Span,
    /// Rounds that ended since.
    rounds: u32,
}

impl HyStart {
    /// Handles an acknowledgement of new data in the first slow start.
    pub fn acked(&mut self, ack: &Ack) -> Phase {
        if let Some(rtt) = ack.sample {
            self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        self.compare();
        if ack.una >= self.round_end {
            self.round_end = ack.next;
            (self.last, self.current, self.samples) = (self.current, None, 0);
            // RFC 9406, section 4.2: the first round counts even if conservative slow start began in its
            // middle.
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds >= CSS_ROUNDS {
                    return Phase::Over;
                }
            }
        }
        if self.conservative.is_some() { Phase::Conservative } else { Phase::Slow }
    }

    /// Enters or leaves conservative slow start: RFC 9406, section 4.2.
    fn compare(&mut self) {
        let (Some(current), true) = (self.current, self.samples >= N_RTT_SAMPLE) else { return };
        match self.conservative {
            Some(Conservative { baseline, .. }) => {
                if current < baseline {
                    self.conservative = None;
                }
            }
            None => {
                let Some(last) = self.last else { return };
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last + threshold {
                    self.conservative = Some(Conservative { baseline: current, rounds: 0 });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Time;

    /// The phases that a round of ten acknowledgements with this round-trip time returns.
    fn round(hystart: &mut HyStart, number: u64, rtt: Span) -> Vec<Phase> {
        let acks = (1..=10).map(|ack| {
            let una = number * 10 + ack;
            let (bytes, flight) = (1000, 10_000);
            hystart.acked(&Ack {
                now: Time::ZERO,
                bytes,
                rtt,
                sample: Some(rtt),
                una,
                next: una + 10,
                flight,
                cwnd_limited: true,
            })
        });
        acks.collect()
    }

    /// 100 ms, 100 ms, 113 ms: an eighth is 12.5 ms. The first of ten acknowledgements ends the round before,
    /// and the eighth decides, so the last two are conservative. Slow start ends with the fifth round from
    /// there.
    #[test]
    fn a_growing_round_trip_ends_slow_start() {
        let mut hystart = HyStart::default();
        assert!(round(&mut hystart, 0, Span::ms(100)).iter().all(|phase| *phase == Phase::Slow));
        assert!(round(&mut hystart, 1, Span::ms(100)).iter().all(|phase| *phase == Phase::Slow));
        let third = round(&mut hystart, 2, Span::ms(113));
        assert_eq!(third.iter().filter(|phase| **phase == Phase::Conservative).count(), 2, "{third:?}");
        for number in 3..7 {
            let phases = round(&mut hystart, number, Span::ms(115));
            assert!(phases.iter().all(|phase| *phase == Phase::Conservative), "{number}: {phases:?}");
        }
        // The round in which conservative slow start began counts.
        assert_eq!(round(&mut hystart, 7, Span::ms(115))[0], Phase::Over);
    }

    /// 112 ms is less than an eighth above 100 ms. The threshold is 4 ms at 20 ms, and 16 ms at a second.
    #[test]
    fn the_threshold_is_an_eighth_within_its_bounds() {
        for (before, after, ends) in [
            (100, 112, false),
            (100, 113, true),
            (20, 23, false),
            (20, 24, true),
            (1000, 1015, false),
            (1000, 1016, true),
        ] {
            let mut hystart = HyStart::default();
            round(&mut hystart, 0, Span::ms(before));
            round(&mut hystart, 1, Span::ms(before));
            let ended = round(&mut hystart, 2, Span::ms(after)).contains(&Phase::Conservative);
            assert_eq!(ended, ends, "{before} ms, {after} ms");
        }
    }

    #[test]
    fn jitter_does_not_end_slow_start() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 0, Span::ms(100));
        round(&mut hystart, 1, Span::ms(100));
        round(&mut hystart, 2, Span::ms(120));
        let phases = round(&mut hystart, 3, Span::ms(100));
        assert_eq!(phases.last(), Some(&Phase::Slow), "{phases:?}");
    }
}
