//! HyStart++: the first slow start ends where the round trip grows, before the buffer overflows. RFC 9406.
//!
//! # Principles
//! - Round by round, the smallest round trip of the first eight samples is held against that of the round before. Where
//!   it grew by an eighth (at least 4, at most 16 ms), a queue is building: conservative slow start begins, which grows a
//!   quarter as fast.
//! - Five rounds of that, and the window is the threshold. Where the round trip falls below what began it, the growth was
//!   jitter, and slow start goes on.
//!
//! # Deviations
//! - Growth per acknowledgement stays that of the controller (L = 2, RFC 3465); the RFC allows up to 8 segments.
//! - Linux exits at once where the round trip grew, and also by the length of an acknowledgement train.
//!
//! # Cost
//! - Some comparisons per acknowledgement in the first slow start, none after it.
//!
//! # References
//! - RFC 9406 sections 4.2 and 4.3, with their constants.

use qdisc::Span;

use super::controller::Ack;

/// Section 4.3.
const MIN_RTT_THRESH: Span = Span::ms(4);
const MAX_RTT_THRESH: Span = Span::ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_ROUNDS: u32 = 5;
/// How much slower conservative slow start grows.
pub(crate) const CSS_GROWTH_DIVISOR: u64 = 4;

/// How the window may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// As slow start does.
    Slow,
    /// A quarter of that.
    Conservative,
    /// No further: the window is the threshold.
    Over,
}

/// What it remembers of the rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HyStart {
    /// The round ends when this is acknowledged (windowEnd).
    round_end: u64,
    /// Smallest round trip of the last round and of this one.
    last: Option<Span>,
    current: Option<Span>,
    samples: u32,
    conservative: Option<Conservative>,
}

#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The round trip that began it (cssBaselineMinRtt).
    baseline: Span,
    rounds: u32,
}

impl HyStart {
    /// Data was acknowledged in the first slow start.
    pub fn acked(&mut self, ack: &Ack) -> Phase {
        if let Some(rtt) = ack.sample {
            self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        self.judge();
        if ack.una >= self.round_end {
            self.round_end = ack.next;
            (self.last, self.current, self.samples) = (self.current, None, 0);
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds >= CSS_ROUNDS {
                    return Phase::Over;
                }
            }
        }
        if self.conservative.is_some() { Phase::Conservative } else { Phase::Slow }
    }

    fn judge(&mut self) {
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
    use qdisc::Time;

    /// A round of ten acknowledgements with this round trip; what each allowed.
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

    /// 100 ms, 100 ms, 113 ms: an eighth is 12.5 ms. The first of ten acknowledgements ends the round before, the eighth
    /// after it tells, so two are left; the fifth end of a round from there ends it all.
    #[test]
    fn a_growing_round_trip_ends_it() {
        let mut hystart = HyStart::default();
        assert!(round(&mut hystart, 0, Span::ms(100)).iter().all(|phase| *phase == Phase::Slow));
        assert!(round(&mut hystart, 1, Span::ms(100)).iter().all(|phase| *phase == Phase::Slow));
        let third = round(&mut hystart, 2, Span::ms(113));
        assert_eq!(third.iter().filter(|phase| **phase == Phase::Conservative).count(), 2, "{third:?}");
        for number in 3..7 {
            let phases = round(&mut hystart, number, Span::ms(115));
            assert!(phases.iter().all(|phase| *phase == Phase::Conservative), "{number}: {phases:?}");
        }
        // The round in which it began counts.
        assert_eq!(round(&mut hystart, 7, Span::ms(115))[0], Phase::Over);
    }

    /// 112 ms is less than an eighth more; of 20 ms 4 ms are asked for, of a second 16.
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
    fn jitter_does_not() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 0, Span::ms(100));
        round(&mut hystart, 1, Span::ms(100));
        round(&mut hystart, 2, Span::ms(120));
        let phases = round(&mut hystart, 3, Span::ms(100));
        assert_eq!(phases.last(), Some(&Phase::Slow), "{phases:?}");
    }
}
