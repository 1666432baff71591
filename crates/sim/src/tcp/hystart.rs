//! HyStart: ends the first slow start when the round-trip time grows, before the buffer overflows. Two rules:
//! HyStart++ (RFC 9406), and HyStart as its authors published it, with the constants of Linux.
//!
//! # Principles
//! - HyStart++: in each round the smallest of at least eight round-trip samples is compared with the smallest
//!   of the round before. If it grew by an eighth (at least 4, at most 16 ms), a queue is building:
//!   conservative slow start begins, which grows a quarter as fast.
//! - After five rounds of conservative slow start the window becomes the threshold. If the round-trip time
//!   falls below the one that began it, the growth was jitter, and slow start resumes.
//! - Classic: slow start ends at once when the smallest of eight samples of a round is an eighth (at least 4,
//!   at most 16 ms) above the smallest round-trip time ever, or when a train of acknowledgements, none more
//!   than 2 ms after the other, lasts for half of it.
//!
//! # Deviations
//! - Growth per acknowledgement remains the controller's (L = 2, RFC 3465); RFC 9406 allows up to 8 segments.
//!
//! # Cost
//! - A few comparisons per acknowledgement in the first slow start, none after it.
//!
//! # References
//! - RFC 9406, sections 4.2 and 4.3, with their constants.
//! - Ha and Rhee, "Hybrid slow start for high-bandwidth and long-distance networks", PFLDnet 2008; the
//!   constants of the classic rule are the parameters of Linux's module `tcp_cubic`.

use giveway_qdisc::{Span, Time};

use super::controller::Ack;
use super::slow_start::HyStartRule;

// The constants of RFC 9406, section 4.3.
const MIN_RTT_THRESH: Span = Span::ms(4);
const MAX_RTT_THRESH: Span = Span::ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_ROUNDS: u32 = 5;
/// Divisor of the growth in conservative slow start: RFC 9406, section 4.3.
const CSS_GROWTH_DIVISOR: u8 = 4;

/// Growth that an acknowledgement allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The full growth of slow start.
    Slow,
    /// The growth of slow start divided by [`CSS_GROWTH_DIVISOR`].
    Conservative,
    /// Slow start ends after this acknowledgement: the window becomes the threshold.
    Over,
}

// The parameters `hystart_low_window`, `hystart_ack_delta_us` and the samples of Linux's module `tcp_cubic`.
const LOW_WINDOW: u64 = 16;
const TRAIN_GAP: Span = Span::ms(2);

/// State of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HyStart {
    Plus(Plus),
    Classic(Classic),
}

impl HyStart {
    /// The state of a rule at the start of a connection.
    pub fn new(rule: HyStartRule) -> Option<Box<HyStart>> {
        match rule {
            HyStartRule::Off => None,
            HyStartRule::Plus => Some(Box::new(HyStart::Plus(Plus::default()))),
            HyStartRule::Classic => Some(Box::new(HyStart::Classic(Classic::default()))),
        }
    }

    /// The growth that an acknowledgement in the first slow start may cause, out of `growth`, and whether
    /// slow start ends after it. `segments` is the window in segments.
    pub fn grow<G: std::ops::Div<Output = G> + From<u8>>(
        &mut self,
        ack: &Ack,
        segments: u64,
        growth: G,
    ) -> (G, bool) {
        let phase = match self {
            HyStart::Plus(plus) => plus.on_ack(ack),
            HyStart::Classic(classic) => classic.on_ack(ack, segments),
        };
        match (self, phase) {
            (_, Phase::Slow) => (growth, false),
            (HyStart::Plus(_), phase) => (growth / G::from(CSS_GROWTH_DIVISOR), phase == Phase::Over),
            (HyStart::Classic(_), _) => (growth, true),
        }
    }
}

/// The classic rule: the current round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Classic {
    /// The round ends when this sequence number is acknowledged.
    round_end: u64,
    /// Start of the round.
    begun: Time,
    /// The last acknowledgement of the train that started with the round.
    train: Time,
    /// Smallest round-trip time of this round.
    current: Option<Span>,
    /// Samples in this round.
    samples: u32,
    /// Smallest round-trip time of the connection.
    least: Option<Span>,
}

impl Classic {
    fn on_ack(&mut self, ack: &Ack, segments: u64) -> Phase {
        let Some(rtt) = ack.sample else { return Phase::Slow };
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        // A round ends when the data is acknowledged that was the newest at its start.
        if ack.una > self.round_end {
            self.round_end = ack.next;
            (self.begun, self.train, self.current, self.samples) = (ack.now, ack.now, None, 0);
        }
        if segments < LOW_WINDOW {
            return Phase::Slow;
        }
        // Acknowledgements in close succession are those of one train. A train that lasts for half the
        // smallest round-trip time fills the path in one direction.
        if ack.now.since(self.train) <= TRAIN_GAP {
            self.train = ack.now;
            if ack.now.since(self.begun) > least / 2 {
                return Phase::Over;
            }
        }
        let current = self.current.map_or(rtt, |current| current.min(rtt));
        self.current = Some(current);
        self.samples += 1;
        let threshold = (least / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        if self.samples > N_RTT_SAMPLE && current > least + threshold { Phase::Over } else { Phase::Slow }
    }
}

/// HyStart++: the current round and the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plus {
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
    /// The round-trip time that started it (cssBaselineMinRtt).
    baseline: Span,
    /// Rounds that ended since.
    rounds: u32,
}

impl Plus {
    /// Handles an acknowledgement of new data in the first slow start.
    fn on_ack(&mut self, ack: &Ack) -> Phase {
        if let Some(rtt) = ack.sample {
            self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        // RFC 9406, section 4.2: each acknowledgement compares, once the round has enough samples; it does
        // not wait for the end of the round.
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
                // RFC 9406, section 4.2: the growth was jitter, and slow start resumes.
                if current < baseline {
                    self.conservative = None;
                }
            }
            None => {
                let Some(last) = self.last else { return };
                // RFC 9406, section 4.2: an eighth of the round-trip time, at least 4 ms, since less is
                // jitter, and at most 16 ms, so that a long path does not queue for longer.
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
    fn round(hystart: &mut Plus, number: u64, rtt: Span) -> Vec<Phase> {
        let acks = (1..=10).map(|ack| {
            let una = number * 10 + ack;
            let (bytes, flight) = (1000, 10_000);
            hystart.on_ack(&Ack {
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
        let mut hystart = Plus::default();
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
            let mut hystart = Plus::default();
            round(&mut hystart, 0, Span::ms(before));
            round(&mut hystart, 1, Span::ms(before));
            let ended = round(&mut hystart, 2, Span::ms(after)).contains(&Phase::Conservative);
            assert_eq!(ended, ends, "{before} ms, {after} ms");
        }
    }

    #[test]
    fn jitter_does_not_end_slow_start() {
        let mut hystart = Plus::default();
        round(&mut hystart, 0, Span::ms(100));
        round(&mut hystart, 1, Span::ms(100));
        round(&mut hystart, 2, Span::ms(120));
        let phases = round(&mut hystart, 3, Span::ms(100));
        assert_eq!(phases.last(), Some(&Phase::Slow), "{phases:?}");
    }
}
