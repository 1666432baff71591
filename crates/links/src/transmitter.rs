//! The transmitter of a link whose rate varies.

use std::collections::VecDeque;

use giveway_qdisc::{Rate, Span, Time};

use crate::profile::{Course, Profile};

/// One byte in bit/s times picoseconds.
const BYTE: u128 = 8 * 1_000_000_000_000;
/// The length up to which a packet fits 64 bits in this unit.
const SMALL: u32 = 1 << 21;
/// The time over which the rate of opportunities is measured.
const WINDOW: Span = Span::ms(100);

/// Computes when transmissions begin and end on a link whose rate follows a [`Profile`]. One packet is
/// transmitted at a time.
#[derive(Debug)]
pub struct Transmitter {
    course: Course,
    /// Beginning and end of the current piece. It may lie in the future.
    from: Time,
    until: Time,
    /// Rate of the piece, in bit/s.
    rate: u64,
    /// Bytes that are left of those at its beginning.
    burst: u64,
    /// End of the last transmission, and what passed in its last picosecond beyond the packet.
    free_at: Time,
    excess: u64,
    changes: Changes,
}

/// The changes of the rate that the discipline has not been told.
#[derive(Debug)]
struct Changes {
    pending: VecDeque<(Time, Rate)>,
    last: Rate,
    window: Option<Window>,
}

/// The bytes offered in a window, for a link without a rate.
#[derive(Debug)]
struct Window {
    until: Time,
    bytes: u64,
}

impl Transmitter {
    /// An idle transmitter at time zero. A discipline that was built for the mean rate is told the first one.
    pub fn new(profile: &Profile) -> Transmitter {
        let window = profile.bursts().then_some(Window { until: Time::ZERO + WINDOW, bytes: 0 });
        let mut transmitter = Transmitter {
            course: profile.course(),
            from: Time::ZERO,
            until: Time::ZERO,
            rate: 0,
            burst: 0,
            free_at: Time::ZERO,
            excess: 0,
            changes: Changes { pending: VecDeque::new(), last: Rate::bit(profile.mean()), window },
        };
        transmitter.advance();
        transmitter
    }

    /// The time at which the next transmission may begin: `now`, or later if nothing passes now. `now` never
    /// goes back, and is not before the end of the last transmission.
    #[inline]
    pub fn ready(&mut self, now: Time) -> Time {
        while self.until <= now {
            if self.until == Time::NEVER {
                return Time::NEVER;
            }
            self.advance();
        }
        if self.rate > 0 && self.from <= now {
            return now;
        }
        self.search(now)
    }

    /// Transmits a packet of `bytes` bytes from `now` on, at which the transmitter is
    /// [`ready`](Transmitter::ready). Returns the end of the transmission; [`Time::NEVER`] if the rate is zero
    /// for ever before that.
    #[inline]
    pub fn transmit(&mut self, bytes: u32, now: Time) -> Time {
        let excess = if self.free_at == now { self.excess } else { 0 };
        if self.rate > 0 && bytes < SMALL {
            let need = (u64::from(bytes) * BYTE as u64).saturating_sub(excess);
            let time = need.div_ceil(self.rate);
            if time <= self.until.as_ps() - now.as_ps() {
                self.free_at = now + Span::from_ps(time);
                self.excess = time.wrapping_mul(self.rate).wrapping_sub(need);
                return self.free_at;
            }
        }
        self.transmit_on(u128::from(bytes) * BYTE - u128::from(excess).min(u128::from(bytes) * BYTE), now)
    }

    /// The next change of the rate by `now` that has not been told, with its time. Changes come in order.
    #[inline]
    pub fn change(&mut self, now: Time) -> Option<(Time, Rate)> {
        while self.until <= now && self.until != Time::NEVER {
            self.advance();
        }
        self.changes.next(now)
    }

    /// A time after `now` before which the rate does not change. [`Time::NEVER`] if it does not any more.
    pub fn next_change(&self) -> Time {
        self.changes.pending.front().map_or(self.until, |(at, _)| *at)
    }

    /// Finds the next piece in which something passes.
    #[cold]
    fn search(&mut self, now: Time) -> Time {
        loop {
            if self.rate > 0 || (self.burst > 0 && now <= self.from) {
                return self.from.max(now);
            }
            if self.until == Time::NEVER {
                return Time::NEVER;
            }
            self.advance();
        }
    }

    /// Transmits the rest of a packet, through several pieces.
    #[cold]
    fn transmit_on(&mut self, need: u128, now: Time) -> Time {
        let (mut need, mut at) = (need, now);
        self.excess = 0;
        loop {
            if self.rate > 0 {
                let (rate, rest) = (u128::from(self.rate), u128::from(self.until.since(at).as_ps()));
                let time = need.div_ceil(rate);
                if time <= rest {
                    self.free_at = at + Span::from_ps(time as u64);
                    self.excess = (time * rate - need) as u64;
                    return self.free_at;
                }
                need -= rest * rate;
            } else if at == self.from {
                let bytes = need.div_ceil(BYTE);
                if bytes <= u128::from(self.burst) {
                    self.burst -= bytes as u64;
                    self.free_at = at;
                    return at;
                }
                need -= u128::from(self.burst) * BYTE;
                self.burst = 0;
            }
            if self.until == Time::NEVER {
                self.free_at = Time::NEVER;
                return Time::NEVER;
            }
            self.advance();
            at = self.from;
        }
    }

    /// Goes to the next piece.
    fn advance(&mut self) {
        let piece = self.course.next();
        self.from = self.until;
        self.until = self.from + piece.length;
        self.rate = piece.value;
        self.burst = piece.burst;
        match &mut self.changes.window {
            None => self.changes.push(self.from, piece.value),
            Some(window) => {
                if window.until <= self.from {
                    let bits = u128::from(window.bytes) * 8 * 1_000_000_000_000;
                    let rate = (bits / u128::from(WINDOW.as_ps())) as u64;
                    window.bytes = 0;
                    let windows = (self.from.as_ps() / WINDOW.as_ps()) + 1;
                    window.until = Time::ZERO + WINDOW * windows;
                    self.changes.push(self.from, rate);
                }
                if let Some(window) = &mut self.changes.window {
                    window.bytes += piece.burst;
                }
            }
        }
    }
}

impl Changes {
    fn push(&mut self, at: Time, rate: u64) {
        // A rate of zero is not told: nothing leaves, and disciplines divide by the rate.
        if rate > 0 && Rate::bit(rate) != self.last {
            self.last = Rate::bit(rate);
            self.pending.push_back((at, self.last));
        }
    }

    #[inline]
    fn next(&mut self, now: Time) -> Option<(Time, Rate)> {
        let (at, _) = self.pending.front()?;
        if *at > now { None } else { self.pending.pop_front() }
    }
}
