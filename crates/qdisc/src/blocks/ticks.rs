//! Virtual time in fixed point: picoseconds with twenty binary digits after the point.
//!
//! Schedulers of the fair-queueing family add up the transmission times of packets at the reserved rates,
//! L/ρ, and compare the sums. A picosecond is too coarse: a byte at 1 Tbit/s takes eight, and rounding down
//! at each packet would give a flow more than its rate. A tick is 2⁻²⁰ ps, or 2⁻²³ of a byte at 1 Tbit/s, and
//! transmission times are rounded up, never in favour of the flow. 128 bits suffice for a billion packets at
//! 1 bit/s (10¹³ s); sums saturate.

use std::ops::{Add, AddAssign, Sub};

use crate::units::{Rate, Span, Time};

/// Virtual time, or a length of it, in 2⁻²⁰ ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(u128);

/// Binary digits below a picosecond.
const POINT: u32 = 20;

impl Ticks {
    /// Time zero, or no time.
    pub const ZERO: Ticks = Ticks(0);
    /// Later than all events: about 10²⁰ s, so that the sum of two does not overflow.
    pub const MAX: Ticks = Ticks(1 << 116);

    /// A point in real time, in ticks.
    #[inline]
    pub fn at(time: Time) -> Ticks {
        Ticks(u128::from(time.as_ps()) << POINT)
    }

    /// A span, in ticks.
    #[inline]
    pub fn of(span: Span) -> Ticks {
        Ticks(u128::from(span.as_ps()) << POINT)
    }

    /// Transmission time of `bytes` at `rate`, rounded up: L/ρ.
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    pub fn to_send(bytes: u32, rate: Rate) -> Ticks {
        const PS_PER_BYTE_AT_1_BIT: u128 = 8_000_000_000_000 << POINT;
        Ticks((u128::from(bytes) * PS_PER_BYTE_AT_1_BIT).div_ceil(u128::from(rate.as_bit())))
    }

    /// A number of ticks of 2⁻²⁰ ps.
    #[inline]
    pub fn from_raw(ticks: u128) -> Ticks {
        Ticks(ticks.min(Ticks::MAX.0))
    }

    /// Number of ticks.
    #[inline]
    pub fn raw(self) -> u128 {
        self.0
    }

    /// The difference, or zero.
    #[inline]
    pub fn saturating_sub(self, other: Ticks) -> Ticks {
        Ticks(self.0.saturating_sub(other.0))
    }

    /// `self * num / den`, rounded down, saturating.
    #[inline]
    pub fn scale(self, num: u64, den: u64) -> Ticks {
        match self.0.checked_mul(u128::from(num)) {
            Some(product) => Ticks::from_raw(product / u128::from(den)),
            None => Ticks::MAX,
        }
    }

    /// Number of the slot of this width that contains it, saturating.
    #[inline]
    pub fn slot(self, width: Ticks) -> u64 {
        u64::try_from(self.0 / width.0).unwrap_or(u64::MAX)
    }

    /// Quotient and remainder of a division by `width`.
    #[inline]
    pub fn split(self, width: Ticks) -> (u64, Ticks) {
        // Nearly always both fit 64 bits, for which a division is much faster.
        if let (Ok(ticks), Ok(width)) = (u64::try_from(self.0), u64::try_from(width.0)) {
            let slots = ticks / width;
            return (slots, Ticks(u128::from(ticks - slots * width)));
        }
        (self.slot(width), Ticks(self.0 % width.0))
    }

    /// Start of a slot.
    #[inline]
    pub fn edge(slot: u64, width: Ticks) -> Ticks {
        Ticks::from_raw(u128::from(slot).saturating_mul(width.0))
    }

    /// Seconds, for reports only, since the value is rounded.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / (1u64 << POINT) as f64 / 1e12
    }
}

impl Add for Ticks {
    type Output = Ticks;
    #[inline]
    fn add(self, other: Ticks) -> Ticks {
        Ticks((self.0 + other.0).min(Ticks::MAX.0))
    }
}
impl AddAssign for Ticks {
    #[inline]
    fn add_assign(&mut self, other: Ticks) {
        *self = *self + other;
    }
}
impl Sub for Ticks {
    type Output = Ticks;
    #[inline]
    fn sub(self, other: Ticks) -> Ticks {
        Ticks(self.0.checked_sub(other.0).expect("a length of time is never negative"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmission_times_are_rounded_up_to_a_tick() {
        assert_eq!(Ticks::to_send(1000, Rate::mbit(8)), Ticks::of(Span::ms(1)));
        // 300 bytes at 600 kbit/s take 4 ms, although a byte does not take a whole number of ticks.
        assert_eq!(Ticks::to_send(300, Rate::kbit(600)), Ticks::of(Span::ms(4)));
        let third = Ticks::to_send(1, Rate::bit(3)).raw();
        let whole = 8_000_000_000_000u128 << 20;
        assert!(3 * third >= whole && 3 * (third - 1) < whole, "{third}");
        // At 1 Tbit/s a million bytes drift by less than a byte's 2^-20.
        let byte = Ticks::to_send(1, Rate::gbit(1000));
        assert_eq!(byte, Ticks::of(Span::from_ps(8)));
    }

    #[test]
    fn sums_saturate() {
        assert_eq!(Ticks::MAX + Ticks::MAX, Ticks::MAX);
        assert_eq!(Ticks::MAX.scale(u64::MAX, 1), Ticks::MAX);
        // A billion times the largest IP packet at the lowest rate still differs from the next sum.
        let dear = Ticks::to_send(65_535, Rate::bit(1));
        let sum = dear.scale(1_000_000_000, 1);
        assert!(sum < sum + dear && sum + dear < Ticks::MAX);
    }

    #[test]
    fn slots_and_their_edges() {
        let width = Ticks::of(Span::us(10));
        assert_eq!(Ticks::of(Span::us(29)).slot(width), 2);
        assert_eq!(Ticks::of(Span::us(29)).split(width), (2, Ticks::of(Span::us(9))));
        let long = Ticks::of(Span::s(1000));
        assert_eq!(long.split(width), (100_000_000, Ticks::ZERO));
        assert_eq!(width.split(long), (0, width));
        assert_eq!((long + width).split(long), (1, width));
        assert_eq!(Ticks::edge(2, width), Ticks::of(Span::us(20)));
        assert_eq!(Ticks::MAX.slot(Ticks::from_raw(1)), u64::MAX);
        assert_eq!(Ticks::edge(u64::MAX, Ticks::MAX), Ticks::MAX);
        assert_eq!(Ticks::of(Span::ms(3)).scale(2, 3), Ticks::of(Span::ms(2)));
    }
}
