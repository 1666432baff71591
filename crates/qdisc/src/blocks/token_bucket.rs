//! A token bucket without rounding. Credit is counted in bit/s times picoseconds, so that a rate times a span
//! is a whole number, and frequent calls neither gain nor lose credit.

use crate::units::{Bytes, Rate, Time};

/// Credit that one byte costs: 8 bits, and 10^12 picoseconds in the second.
const BYTE: u128 = 8 * 1_000_000_000_000;

/// A token bucket. In any interval of length t it admits at most `rate * t + burst` bytes.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    rate: Rate,
    burst: u128,
    credit: u128,
    /// Time of the credit.
    at: Time,
}

impl TokenBucket {
    /// A full bucket.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn new(rate: Rate, burst: Bytes) -> TokenBucket {
        assert!(rate > Rate::bit(0), "a bucket fills at some rate");
        let burst = u128::from(burst.0) * BYTE;
        TokenBucket { rate, burst, credit: burst, at: Time::ZERO }
    }

    /// Fills the bucket.
    pub fn refill(&mut self) {
        self.credit = self.burst;
    }

    /// Time at which `bytes` may pass: now, or the first picosecond at which the credit suffices.
    /// [`Time::NEVER`] if they exceed the burst.
    #[inline]
    pub fn ready(&mut self, bytes: u32, now: Time) -> Time {
        self.advance(now);
        let cost = u128::from(bytes) * BYTE;
        if cost <= self.credit {
            return now;
        }
        // The bucket never holds that much.
        if cost > self.burst {
            return Time::NEVER;
        }
        // Rounded up: a picosecond earlier the credit would not suffice.
        let wait = (cost - self.credit).div_ceil(u128::from(self.rate.as_bit()));
        Time::from_ps(u64::try_from(wait).unwrap_or(u64::MAX).saturating_add(now.as_ps()))
    }

    /// Spends the credit of `bytes`.
    ///
    /// # Panics
    /// If they are not [`ready`](TokenBucket::ready).
    #[inline]
    pub fn spend(&mut self, bytes: u32, now: Time) {
        self.advance(now);
        let cost = u128::from(bytes) * BYTE;
        self.credit = self.credit.checked_sub(cost).expect("bytes pass only when the credit suffices");
    }

    /// Changes the rate at `now`. The credit is kept.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        assert!(rate > Rate::bit(0), "a bucket fills at some rate");
        // Until now the credit has grown at the old rate.
        self.advance(now);
        self.rate = rate;
    }

    /// Continues another bucket, which may have another rate and burst: its credit is kept, up to the burst.
    pub fn take_over(&mut self, mut old: TokenBucket, now: Time) {
        old.advance(now);
        self.credit = old.credit.min(self.burst);
        self.at = now;
    }

    /// Credit in whole bytes, as of the last call.
    pub fn tokens(&self) -> Bytes {
        Bytes((self.credit / BYTE) as u64)
    }

    /// Length in bytes of the largest packet that can ever pass.
    #[inline]
    pub fn burst(&self) -> Bytes {
        Bytes((self.burst / BYTE) as u64)
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        if now == self.at {
            return;
        }
        debug_assert!(now > self.at, "time never goes back");
        let gained = u128::from(self.rate.as_bit()) * u128::from(now.since(self.at).as_ps());
        self.credit = (self.credit + gained).min(self.burst);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_goes_on_with_the_credit_of_another() {
        // 8 Mbit/s fills 1,000 bytes per millisecond: 3,000 - 2,500 + 1,000 bytes after 1 ms.
        let mut old = TokenBucket::new(Rate::mbit(8), Bytes(3000));
        old.spend(2500, Time::ZERO);
        for (burst, credit) in [(5000, 1500), (3000, 1500), (1000, 1000)] {
            let mut new = TokenBucket::new(Rate::mbit(16), Bytes(burst));
            new.take_over(old, Time::ms(1));
            assert_eq!(new.tokens(), Bytes(credit));
            // The new rate holds from then on.
            let missing = burst - credit;
            let full = Time::ms(1) + Span::ns(500) * missing;
            assert_eq!(new.ready(burst as u32, Time::ms(1)), full);
        }
    }

    #[test]
    fn starts_full_and_refills_at_its_rate() {
        let mut bucket = TokenBucket::new(Rate::mbit(8), Bytes(3000));
        let now = Time::ms(5);
        assert_eq!(bucket.ready(3000, now), now);
        bucket.spend(3000, now);
        assert_eq!(bucket.ready(1000, now), Time::ms(6), "1,000 bytes at 8 Mbit/s");
        assert_eq!(bucket.ready(3001, now), Time::NEVER);
        assert_eq!(bucket.ready(1000, Time::ms(6)), Time::ms(6));
        bucket.spend(1000, Time::ms(6));
        assert_eq!(bucket.tokens(), Bytes(0));
        assert_eq!(bucket.ready(3000, Time::s(100)), Time::s(100), "an idle bucket has at most its burst");
        bucket.spend(3000, Time::s(100));
        assert_eq!(bucket.tokens(), Bytes(0));
    }

    proptest! {
        /// The result is exact: one picosecond earlier the credit does not suffice. Calls before that time
        /// have no effect.
        #[test]
        fn ready_is_the_first_picosecond(
            rate in 1u64..400_000_000_000, spent in 1u32..9000, wanted in 1u32..9000, early in 1u64..1_000_000,
        ) {
            let mut bucket = TokenBucket::new(Rate::bit(rate), Bytes(9000));
            let now = Time::ms(1);
            bucket.spend(spent, now);
            let at = bucket.ready(wanted, now);
            let mut polled = bucket;
            if at > now {
                let before = Time::from_ps(at.as_ps() - 1);
                prop_assert!(bucket.ready(wanted, before) > before);
                let on_the_way = Time::from_ps(at.as_ps() - early.min(at.since(now).as_ps()));
                prop_assert_eq!(polled.ready(wanted, on_the_way), at);
            }
            prop_assert_eq!(polled.ready(wanted, at), at);
            polled.spend(wanted, at);
        }

        /// Over any interval between two departures at most the rate times its length and the burst pass.
        #[test]
        fn the_envelope_holds(
            rate in 1_000u64..10_000_000_000, burst in 1500u64..20_000,
            packets in prop::collection::vec((40u32..=1500, 0u64..2_000_000), 1..60),
        ) {
            let mut bucket = TokenBucket::new(Rate::bit(rate), Bytes(burst));
            let mut now = Time::ZERO;
            let mut sent: Vec<(Time, u64)> = Vec::new();
            for (bytes, wait_ns) in packets {
                now += Span::ns(wait_ns);
                now = bucket.ready(bytes, now);
                bucket.spend(bytes, now);
                sent.push((now, u64::from(bytes)));
            }
            for first in 0..sent.len() {
                let mut bytes = 0;
                for (at, more) in &sent[first..] {
                    bytes += more;
                    let span = u128::from(at.since(sent[first].0).as_ps());
                    let allowed = u128::from(rate) * span + u128::from(burst) * BYTE;
                    prop_assert!(u128::from(bytes) * BYTE <= allowed);
                }
            }
        }
    }
}
