//! A token bucket that may go into debt: a class with credit may send a packet of any length. The bucket is
//! kept as the time at which it is full, so that a charge is one multiplication.

use giveway_qdisc::{Bytes, Rate, Span, Time};

/// Picoseconds per second.
const PS: u128 = 1_000_000_000_000;
/// Fractional bits of the time of a byte.
const FRACTION: u32 = 20;

/// A bucket of 24 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    /// Time at which the bucket is full.
    full: Time,
    /// Time in which the empty bucket becomes full.
    depth: Span,
    /// Time of a byte at the rate, in 2^-20 ps, rounded up.
    per_byte: u64,
}

impl Bucket {
    /// A full bucket of `burst` bytes that fills at `rate`.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn new(rate: Rate, burst: Bytes) -> Bucket {
        assert!(rate > Rate::bit(0), "a bucket fills at some rate");
        let per_byte = ((8 * PS) << FRACTION).div_ceil(u128::from(rate.as_bit()));
        let mut bucket = Bucket {
            full: Time::ZERO,
            depth: Span::ZERO,
            per_byte: per_byte.min(u128::from(u64::MAX)) as u64,
        };
        bucket.depth = bucket.time_of(burst.0);
        bucket
    }

    /// The time that bytes take at the rate, rounded up to a picosecond.
    #[inline]
    fn time_of(&self, bytes: u64) -> Span {
        let product = u128::from(bytes) * u128::from(self.per_byte);
        Span::from_ps(u64::try_from((product + ((1 << FRACTION) - 1)) >> FRACTION).unwrap_or(u64::MAX))
    }

    /// The time from which there is credit; in the past if there is some now.
    #[inline]
    pub fn ready(&self) -> Time {
        Time::from_ps(self.full.as_ps().saturating_sub(self.depth.as_ps()))
    }

    /// Charges a packet that leaves at `now`.
    #[inline]
    pub fn charge(&mut self, bytes: u32, now: Time) {
        self.full = self.full.max(now) + self.time_of(u64::from(bytes));
    }

    /// Bytes that this time fills, rounded down.
    fn bytes_in(&self, time: Span) -> u64 {
        let bytes = (u128::from(time.as_ps()) << FRACTION) / u128::from(self.per_byte.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Continues another bucket, which may have another rate: it has the same credit or debt, in bytes, but
    /// no more than its own burst.
    pub fn take_over(&mut self, old: &Bucket, now: Time) {
        let missing = match old.full.since(now) {
            Span::ZERO => 0,
            left => old.bytes_in(left) + 1,
        };
        let bursts = (old.bytes_in(old.depth), self.bytes_in(self.depth));
        let missing = (missing + bursts.1).saturating_sub(bursts.0);
        self.full = now + self.time_of(missing);
    }

    /// Fills the bucket.
    pub fn refill(&mut self) {
        self.full = Time::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::blocks::TokenBucket;
    use proptest::prelude::*;

    #[test]
    fn debt_is_paid_off_at_the_rate() {
        // 8 Mbit/s is a byte per microsecond.
        let mut bucket = Bucket::new(Rate::mbit(8), Bytes(1000));
        let now = Time::ms(5);
        assert!(bucket.ready() <= now);
        bucket.charge(1500, now);
        assert_eq!(bucket.ready(), Time::us(5500), "1,000 bytes were saved, so 500 are owed");
        bucket.charge(1500, Time::us(5500));
        assert_eq!(bucket.ready(), Time::us(7000));
    }

    proptest! {
        /// It agrees with the exact bucket for packets that both can afford, within a picosecond per packet.
        #[test]
        fn agrees_with_the_exact_bucket(
            rate in 1000u64..400_000_000_000, packets in prop::collection::vec((40u32..1500, 0u64..10_000), 1..60),
        ) {
            let (mut bucket, mut exact) =
                (Bucket::new(Rate::bit(rate), Bytes(3000)), TokenBucket::new(Rate::bit(rate), Bytes(3000)));
            let mut now = Time::ms(1);
            for (n, (bytes, wait)) in packets.into_iter().enumerate() {
                now += Span::us(wait);
                let ready = exact.ready(bytes, now);
                // Credit for the whole packet in the exact bucket is credit for its last byte here.
                now = ready.max(now);
                prop_assert!(bucket.ready() <= now + Span::from_ps(n as u64 + 1));
                exact.spend(bytes, now);
                bucket.charge(bytes, now);
                let at = exact.ready(1, now);
                let slack = n as u64 + 2 + 8 * 1_000_000_000_000 / rate;
                prop_assert!(bucket.ready() <= at + Span::from_ps(slack));
            }
        }
    }
}
