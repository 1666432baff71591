//! The label of a packet: the rate of its flow, as an edge router measured it.

use crate::units::Rate;

/// What an edge router wrote on a packet, and what core routers decide by instead of keeping state per flow. It travels with
/// the packet and is lowered on the way: CSFQ, FPIP.
///
/// Three things can be known: nothing (no edge has looked at the packet yet), that its flow is short and has no rate, or the
/// flow's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label(u64);

impl Label {
    /// No edge has looked at the packet.
    pub const NONE: Label = Label(0);
    /// An edge takes its flow for a short one: no rate, and nobody drops it early.
    pub const SHORT: Label = Label(1);
    /// The largest rate that it can carry, bit/s.
    const MOST: u64 = u64::MAX - 1;

    /// The rate of the packet's flow; at least 1 bit/s, since no rate at all means a short flow.
    pub fn of(rate: Rate) -> Label {
        Label(rate.as_bit().clamp(1, Label::MOST) + 1)
    }

    /// Whether an edge has looked at the packet.
    pub fn is_set(self) -> bool {
        self != Label::NONE
    }

    /// The rate of the packet's flow; 0 where there is none.
    #[inline]
    pub fn rate(self) -> Rate {
        Rate::bit(self.0.saturating_sub(1))
    }

    /// The same label where it is no higher than `rate`; otherwise that. A label that has no rate stays.
    #[inline]
    pub fn lowered(self, rate: Rate) -> Label {
        if self.rate() > rate { Label::of(rate) } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_nothing_or_that_a_flow_is_short_or_its_rate() {
        assert_eq!(Label::default(), Label::NONE);
        assert!(!Label::NONE.is_set() && Label::SHORT.is_set());
        assert_eq!((Label::NONE.rate(), Label::SHORT.rate()), (Rate::bit(0), Rate::bit(0)));
        for bits in [1, 2, 80_000, u64::MAX - 1] {
            assert_eq!(Label::of(Rate::bit(bits)).rate(), Rate::bit(bits));
        }
        // A rate is never taken for a short flow, and the largest number has its place.
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
