//! The label of a packet: the rate of its flow, as an edge router measured it.

use crate::units::Rate;

/// Label that an edge router writes on a packet for CSFQ and FPIP. Core routers decide by it, without state
/// per flow, and may lower it.
///
/// A label has one of three values: none (no edge router has seen the packet), short (the flow is short and
/// has no rate), or the rate of the flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label(u64);

impl Label {
    /// No edge router has seen the packet.
    pub const NONE: Label = Label(0);
    /// The flow is short: it has no rate, and no router drops its packets early.
    pub const SHORT: Label = Label(1);
    /// The largest rate that it can carry, bit/s.
    const MOST: u64 = u64::MAX - 1;

    /// A label with a rate of at least 1 bit/s; zero stands for a short flow.
    pub fn of(rate: Rate) -> Label {
        Label(rate.as_bit().clamp(1, Label::MOST) + 1)
    }

    /// True if an edge router has seen the packet.
    pub fn is_set(self) -> bool {
        self != Label::NONE
    }

    /// Rate of the flow; 0 if the label has none.
    #[inline]
    pub fn rate(self) -> Rate {
        Rate::bit(self.0.saturating_sub(1))
    }

    /// The label, with its rate limited to `rate`. A label without a rate is unchanged.
    #[inline]
    pub fn lowered(self, rate: Rate) -> Label {
        if self.rate() > rate { Label::of(rate) } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_none_or_short_or_a_rate() {
        assert_eq!(Label::default(), Label::NONE);
        assert!(!Label::NONE.is_set() && Label::SHORT.is_set());
        assert_eq!((Label::NONE.rate(), Label::SHORT.rate()), (Rate::bit(0), Rate::bit(0)));
        for bits in [1, 2, 80_000, u64::MAX - 1] {
            assert_eq!(Label::of(Rate::bit(bits)).rate(), Rate::bit(bits));
        }
        // A rate never becomes the label of a short flow, and the largest number saturates.
        assert_eq!(Label::of(Rate::bit(0)).rate(), Rate::bit(1));
        assert_eq!(Label::of(Rate::bit(u64::MAX)).rate(), Rate::bit(u64::MAX - 1));
    }

    #[test]
    fn is_lowered_and_never_raised() {
        let label = Label::of(Rate::mbit(4));
        assert_eq!(label.lowered(Rate::mbit(1)).rate(), Rate::mbit(1));
        assert_eq!(label.lowered(Rate::mbit(5)), label);
        assert_eq!(Label::SHORT.lowered(Rate::mbit(1)), Label::SHORT);
        assert_eq!(Label::NONE.lowered(Rate::mbit(1)), Label::NONE);
    }
}
