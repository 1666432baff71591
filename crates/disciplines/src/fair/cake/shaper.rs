//! The shaper: lengths as the link counts them, a virtual clock, and an estimate of the rate of arrivals.

use giveway_qdisc::{Rate, Span, Time};

use super::choices::Framing;

/// The length of a packet on the link, with everything that the link adds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnWire {
    /// Bytes that are added to the length.
    pub overhead: i32,
    /// Smallest length, overhead included.
    pub least: u32,
    /// Framing of the link.
    pub framing: Framing,
}

impl OnWire {
    /// Length of a packet of `bytes` on a link that may add nothing, bytes.
    #[inline]
    pub fn length(on_wire: Option<OnWire>, bytes: u32) -> u32 {
        on_wire.map_or(bytes, |on_wire| on_wire.bytes(bytes))
    }

    /// Length of a packet of `bytes` on the link, bytes.
    #[inline]
    pub fn bytes(self, bytes: u32) -> u32 {
        // In 64 bits, so that one bound is enough for each end.
        let length = (i64::from(bytes) + i64::from(self.overhead)).max(i64::from(self.least));
        let length = length.min(i64::from(u32::MAX)) as u32;
        match self.framing {
            Framing::Noatm => length,
            // Whole cells of 53 bytes, which carry 48.
            Framing::Atm => length.div_ceil(48).saturating_mul(53),
            // A byte for each 64 bytes or part of them.
            Framing::Ptm => length.saturating_add(length.div_ceil(64)),
        }
    }
}

/// The shaper in deficit mode: a packet leaves at the time at which the packets before it would have been
/// sent at the rate. There is no bucket, so an idle link saves nothing for a burst.
#[derive(Clone, Copy, Debug)]
pub struct Shaper {
    /// The rate; `None` without shaping.
    pub rate: Option<Rate>,
    /// Time of the next packet.
    next: Time,
    /// Time at which a packet leaves in any case: dropped packets do not count, and sent ones half as much
    /// again.
    failsafe: Time,
}

impl Shaper {
    /// A shaper that has not sent yet.
    pub fn new(rate: Option<Rate>) -> Shaper {
        Shaper { rate, next: Time::ZERO, failsafe: Time::ZERO }
    }

    /// The time of the next packet, if it is later than `now`.
    #[inline]
    pub fn waits_until(&self, now: Time) -> Option<Time> {
        let at = self.next.min(self.failsafe);
        (at > now).then_some(at)
    }

    /// A packet arrives to an empty queue.
    #[inline]
    pub fn starts(&mut self, now: Time) {
        self.next = self.next.max(now);
        self.failsafe = self.failsafe.max(now);
    }

    /// Charges a packet of `bytes` on the link, and returns its time at the rate.
    #[inline]
    pub fn charge(&mut self, bytes: u32, dropped: bool) -> Span {
        let Some(rate) = self.rate else { return Span::ZERO };
        let lasts = rate.time_for(u64::from(bytes));
        self.next += lasts;
        if !dropped {
            self.failsafe += lasts + lasts / 2;
        }
        lasts
    }
}

/// An estimate of the rate at which the packets arrive, for `autorate-ingress`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    /// Time of the last packet; `None` before the first.
    last: Option<Time>,
    /// Average time between packets, in picoseconds.
    gap: u64,
    /// Bytes since the window started.
    bytes: u64,
    /// Start of the window.
    began: Time,
    /// Peak rate, in bit/s, which rises fast and falls slowly.
    peak: u64,
    /// Time of the last change of the shaper.
    changed: Time,
}

/// Longest time between packets that is averaged.
const LONGEST_GAP: Span = Span::s(1);
/// Time between changes of the rate.
const SETTLES: Span = Span::ms(250);

impl Arrivals {
    /// Counts a packet of `bytes`. Returns a new rate for the shaper, every quarter of a second: 15/16 of the
    /// peak rate.
    pub fn packet(&mut self, bytes: u32, now: Time) -> Option<Rate> {
        let Some(last) = self.last.replace(now) else {
            (self.began, self.changed) = (now, now);
            return None;
        };
        let gap = now.since(last).min(LONGEST_GAP).as_ps();
        self.gap = averaged(self.gap, gap, if gap > self.gap { 2 } else { 8 });
        self.bytes += u64::from(bytes);
        let window = now.since(self.began);
        if window.as_ps() > self.gap {
            let bits = u128::from(self.bytes) * 8 * u128::from(Span::s(1).as_ps());
            let rate = u64::try_from(bits / u128::from(window.as_ps())).unwrap_or(u64::MAX);
            self.peak = averaged(self.peak, rate, if rate > self.peak { 2 } else { 8 });
            (self.bytes, self.began) = (0, now);
        }
        if now.since(self.changed) <= SETTLES {
            return None;
        }
        self.changed = now;
        Some(Rate::bit((self.peak - self.peak / 16).max(1000)))
    }
}

/// An average, moved by a part of the distance to a sample: 1/2^shift.
#[inline]
pub fn averaged(average: u64, sample: u64, shift: u32) -> u64 {
    average - (average >> shift) + (sample >> shift)
}
