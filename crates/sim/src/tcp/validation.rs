//! Validation of the congestion window: a window that the application does not fill says nothing about the
//! path, so it must not stay for ever.
//!
//! # Principles
//! - RFC 5681: after a timeout's time without a packet the window is at most the initial one. The sender has
//!   that rule itself.
//! - RFC 2861, which Linux has: the window halves for each timeout's time without a packet, down to the
//!   initial one. After such a time in which the application did not fill it, it falls half way to what was
//!   used. The threshold keeps three quarters of the window.
//! - RFC 7661: the window stays, and does not grow, while less than half of it is acknowledged in a round
//!   trip. A loss then reduces what was used and not what was allowed. After five minutes it halves.
//!
//! # Deviations
//! - RFC 7661 reduces the window once more at the end of a recovery, by half of what was retransmitted in it.
//!   That is left out.
//! - Its pipeACK is the largest sample of the last three round trips, and at least of the last second, in
//!   eight parts of that time.
//!
//! # References
//! - Handley, Padhye and Floyd 2000: RFC 2861. Fairhurst, Sathiaseelan and Secchi 2015: RFC 7661.

use giveway_qdisc::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule for a window that the application does not fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum WindowValidation {
    /// The window falls to the initial one after an idle time: RFC 5681, section 4.1.
    #[default]
    Rfc5681,
    /// The window decays while it is not used, as in Linux: RFC 2861.
    Rfc2861,
    /// The window stays, and losses count from what was used: RFC 7661.
    Rfc7661,
}

/// The state of a rule other than the first.
#[derive(Debug)]
pub(super) enum Validation {
    Decay(Decay),
    Preserve(Preserve),
}

/// A new window and the minimum threshold, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reduced {
    pub window: u64,
    pub threshold: u64,
}

/// State of RFC 2861.
#[derive(Debug)]
pub(super) struct Decay {
    /// The maximum number of bytes in flight since `since`.
    used: u64,
    /// The last time at which the window was full, or has decayed.
    since: Time,
}

/// State of RFC 7661.
#[derive(Debug)]
pub(super) struct Preserve {
    /// The current sample: it started when this was acknowledged, and ends when `until` is.
    from: u64,
    until: u64,
    /// The largest sample in each part of the sampling period, with the start of the part; the newest first.
    parts: [(Time, u64); PARTS],
    /// The start of the phase in which the window is not validated; never while it is.
    since: Time,
}

/// Parts of the sampling period.
const PARTS: usize = 8;
/// The longest time for which a window is preserved: RFC 7661, section 4.
const PRESERVED: Span = Span::s(300);

impl Validation {
    /// `None` for the rule without state.
    pub fn new(rule: WindowValidation) -> Option<Validation> {
        match rule {
            WindowValidation::Rfc5681 => None,
            WindowValidation::Rfc2861 => Some(Validation::Decay(Decay { used: 0, since: Time::ZERO })),
            WindowValidation::Rfc7661 => Some(Validation::Preserve(Preserve {
                from: 0,
                until: 0,
                parts: [(Time::ZERO, 0); PARTS],
                since: Time::NEVER,
            })),
        }
    }

    /// All that may leave has left. `limited` is true if the window ended that, `flight` is in the network,
    /// and `initial` is the initial window.
    pub fn on_send(
        &mut self,
        limited: bool,
        flight: u64,
        (window, initial): (u64, u64),
        timeout: Span,
        now: Time,
    ) -> Option<Reduced> {
        match self {
            Validation::Decay(decay) => decay.on_send(limited, flight, (window, initial), timeout, now),
            Validation::Preserve(preserve) => preserve.on_send(window, initial, now),
        }
    }

    /// A segment is about to leave after `idle` without one, longer than a timeout, with nothing in the
    /// network.
    pub fn on_idle(
        &mut self,
        idle: Span,
        (window, initial): (u64, u64),
        timeout: Span,
        now: Time,
    ) -> Option<Reduced> {
        match self {
            Validation::Decay(decay) => {
                (decay.used, decay.since) = (0, now);
                // RFC 2861: the window halves for each timeout that has passed, and the threshold keeps three
                // quarters of it, so that slow start leads back quickly.
                let halvings = (idle.as_ps() / timeout.as_ps().max(1)).min(63);
                let window_left = (window >> halvings).max(initial.min(window));
                Some(Reduced { window: window_left, threshold: window / 4 * 3 })
            }
            Validation::Preserve(_) => None,
        }
    }

    /// An acknowledgement arrived.
    pub fn on_ack(&mut self, una: u64, next: u64, rtt: Span, now: Time) {
        if let Validation::Preserve(preserve) = self {
            preserve.on_ack(una, next, rtt, now);
        }
    }

    /// True if the window may grow.
    pub fn is_validated(&self, window: u64) -> bool {
        match self {
            Validation::Decay(_) => true,
            Validation::Preserve(preserve) => preserve.is_validated(window),
        }
    }

    /// The bytes from which a loss reduces the window, with `flight` in the network; `None` for the usual
    /// ones.
    pub fn lost(&self, flight: u64, window: u64) -> Option<u64> {
        match self {
            Validation::Preserve(preserve) if !preserve.is_validated(window) => {
                // RFC 7661, section 4.4.1: a window that was never used says nothing about the path, so the
                // loss reduces what was.
                Some(preserve.pipe_ack().unwrap_or(0).max(flight))
            }
            _ => None,
        }
    }
}

impl Decay {
    fn on_send(
        &mut self,
        limited: bool,
        flight: u64,
        (window, initial): (u64, u64),
        timeout: Span,
        now: Time,
    ) -> Option<Reduced> {
        if limited || self.since == Time::ZERO {
            (self.used, self.since) = (0, now);
            return None;
        }
        self.used = self.used.max(flight);
        if now.since(self.since) < timeout {
            return None;
        }
        // RFC 2861: half way to what was used. The initial window is allowed in any case.
        let used = self.used.max(initial);
        (self.used, self.since) = (0, now);
        (used < window).then_some(Reduced { window: (window + used) / 2, threshold: window / 4 * 3 })
    }
}

impl Preserve {
    fn on_ack(&mut self, una: u64, next: u64, rtt: Span, now: Time) {
        if una < self.until {
            return;
        }
        let sample = una - self.from;
        let first = self.until == 0;
        // A sample is what one flight of data acknowledges: RFC 7661, section 4.2.
        (self.from, self.until) = (una, next.max(una + 1));
        if first {
            return;
        }
        // The largest sample of the period counts, so that one slow round trip does not end the validation.
        let part = (rtt * 3).max(Span::s(1)) / PARTS as u64;
        if self.parts[0].1 == 0 || now.since(self.parts[0].0) >= part {
            self.parts.rotate_right(1);
            self.parts[0] = (now, sample);
        } else {
            self.parts[0].1 = self.parts[0].1.max(sample);
        }
        let period = part * PARTS as u64;
        for (at, most) in &mut self.parts {
            if now.since(*at) > period {
                *most = 0;
            }
        }
    }

    /// The maximum that was acknowledged in a round trip; `None` before the first sample.
    fn pipe_ack(&self) -> Option<u64> {
        self.parts.iter().map(|(_, most)| *most).max().filter(|most| *most > 0)
    }

    fn is_validated(&self, window: u64) -> bool {
        // RFC 7661, section 4.3: the window is validated if half of it was acknowledged in a round trip.
        self.pipe_ack().is_none_or(|pipe_ack| pipe_ack >= window / 2)
    }

    fn on_send(&mut self, window: u64, initial: u64, now: Time) -> Option<Reduced> {
        if self.is_validated(window) {
            self.since = Time::NEVER;
            return None;
        }
        if self.since == Time::NEVER {
            self.since = now;
        }
        if now.since(self.since) < PRESERVED {
            return None;
        }
        self.since = now;
        // RFC 7661, section 4.4.3: at the end of the period half of the window is left.
        Some(Reduced { window: (window / 2).max(initial), threshold: window / 4 * 3 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Span = Span::ms(200);

    fn new(rule: WindowValidation) -> Validation {
        Validation::new(rule).unwrap()
    }

    /// RFC 2861: after each timeout's time the window goes half way to what was used.
    #[test]
    fn a_window_that_is_not_used_decays() {
        let mut validation = new(WindowValidation::Rfc2861);
        let windows = (100_000, 10_000);
        assert_eq!(validation.on_send(true, 100_000, windows, TIMEOUT, Time::ms(1000)), None);
        assert_eq!(validation.on_send(false, 40_000, windows, TIMEOUT, Time::ms(1100)), None);
        assert_eq!(validation.on_send(false, 20_000, windows, TIMEOUT, Time::ms(1150)), None);
        let reduced = validation.on_send(false, 30_000, windows, TIMEOUT, Time::ms(1200));
        assert_eq!(reduced, Some(Reduced { window: 70_000, threshold: 75_000 }));
        assert_eq!(validation.on_send(false, 30_000, (70_000, 10_000), TIMEOUT, Time::ms(1300)), None);
    }

    /// Three timeouts' time halve the window three times, but not below the initial one.
    #[test]
    fn an_idle_time_halves_the_window() {
        let mut validation = new(WindowValidation::Rfc2861);
        let idle = |validation: &mut Validation, ms| {
            validation.on_idle(Span::ms(ms), (100_000, 10_000), TIMEOUT, Time::s(9)).unwrap().window
        };
        assert_eq!(
            [250, 450, 700, 5000].map(|ms| idle(&mut validation, ms)),
            [50_000, 25_000, 12_500, 10_000]
        );
    }

    /// An application that uses a tenth of its window: the window neither grows nor falls, and a loss counts
    /// from what was used.
    #[test]
    fn a_preserved_window_does_not_count_in_a_loss() {
        let mut validation = new(WindowValidation::Rfc7661);
        assert!(validation.is_validated(100_000), "nothing is known yet");
        let mut una = 1;
        for round in 0..20 {
            validation.on_ack(una, una + 10_000, Span::ms(50), Time::ms(1000 + 50 * round));
            assert_eq!(
                validation.on_send(false, 10_000, (100_000, 10_000), TIMEOUT, Time::ms(1000 + 50 * round)),
                None
            );
            una += 10_000;
        }
        assert!(!validation.is_validated(100_000) && validation.is_validated(20_000));
        assert_eq!(validation.lost(4_000, 100_000), Some(10_000));
        assert_eq!(validation.lost(4_000, 20_000), None);
        let later = Time::ms(1000) + Span::s(301);
        let reduced = validation.on_send(false, 10_000, (100_000, 10_000), TIMEOUT, later);
        assert_eq!(reduced, Some(Reduced { window: 50_000, threshold: 75_000 }));
    }
}
