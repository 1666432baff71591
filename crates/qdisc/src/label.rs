//! The annotation of a packet: the rate of its flow, as an edge router measured it, or the time at which its
//! sender wants it to leave.

use crate::units::{Rate, Time};

/// Annotation that travels with a packet.
///
/// An edge router writes the rate of the flow for CSFQ and FPIP. Core routers decide by it, without state per
/// flow, and may lower it. A sender may write the earliest departure time of the packet instead, as
/// `SO_TXTIME` does in Linux; `fq` holds the packet until then, and all other disciplines ignore it.
///
/// A label has one of four values: none (no edge router has seen the packet), short (the flow is short and
/// has no rate), the rate of the flow, or a departure time. An edge router takes a departure time for no
/// label, and writes its own over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label(u64);

/// The bit of a departure time. The other 63 bits are picoseconds, which suffice for 106 days.
const DEPARTURE: u64 = 1 << 63;

impl Label {
    /// No edge router has seen the packet.
    pub const NONE: Label = Label(0);
    /// The flow is short: it has no rate, and no router drops its packets early.
    pub const SHORT: Label = Label(1);
    /// The largest rate that it can carry, bit/s.
    const MAX: u64 = DEPARTURE - 2;

    /// A label with a rate of at least 1 bit/s; zero stands for a short flow.
    pub fn of(rate: Rate) -> Label {
        Label(rate.as_bit().clamp(1, Label::MAX) + 1)
    }

    /// The earliest departure time of a packet: a time on the clock of the backend, at most 106 days after
    /// its epoch.
    pub fn departing(at: Time) -> Label {
        Label(DEPARTURE | at.as_ps().min(DEPARTURE - 1))
    }

    /// True if an edge router has seen the packet.
    pub fn is_set(self) -> bool {
        self != Label::NONE && self.departure().is_none()
    }

    /// Rate of the flow; 0 if the label has none.
    #[inline]
    pub fn rate(self) -> Rate {
        if self.0 & DEPARTURE != 0 { Rate::bit(0) } else { Rate::bit(self.0.saturating_sub(1)) }
    }

    /// The earliest departure time, if the sender wrote one.
    #[inline]
    pub fn departure(self) -> Option<Time> {
        (self.0 & DEPARTURE != 0).then(|| Time::from_ps(self.0 & !DEPARTURE))
    }

    /// The label, with its rate limited to `rate`. A label without a rate is unchanged.
    #[inline]
    pub fn lowered(self, rate: Rate) -> Label {
        if self.rate() > rate { Label::of(rate) } else { self }
    }

    /// The label as a number, for records: 0 for none, 1 for short, the rate plus one, or a departure time in
    /// picoseconds with the highest bit set.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`Label::bits`]. Each number is a label.
    #[inline]
    pub fn from_bits(bits: u64) -> Label {
        Label(bits)
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
        for bits in [1, 2, 80_000, (1 << 63) - 2] {
            assert_eq!(Label::of(Rate::bit(bits)).rate(), Rate::bit(bits));
            assert_eq!(Label::of(Rate::bit(bits)).departure(), None);
        }
        // A rate never becomes the label of a short flow or a departure time, and the largest number
        // saturates.
        assert_eq!(Label::of(Rate::bit(0)).rate(), Rate::bit(1));
        assert_eq!(Label::of(Rate::bit(u64::MAX)).rate(), Rate::bit((1 << 63) - 2));
    }

    /// A departure time is neither a rate nor the sign of an edge router, whatever the time.
    #[test]
    fn a_departure_time_is_no_label_to_an_edge_router() {
        for at in [Time::ZERO, Time::ms(7), Time::s(9_000_000)] {
            let label = Label::departing(at);
            assert_eq!(label.departure(), Some(at));
            assert_eq!((label.is_set(), label.rate()), (false, Rate::bit(0)));
            assert_eq!(label.lowered(Rate::bit(1)), label);
            assert_ne!(label, Label::NONE);
        }
        assert_eq!(Label::departing(Time::NEVER).departure(), Some(Time::from_ps((1 << 63) - 1)));
        assert_eq!([Label::NONE, Label::SHORT].map(Label::departure), [None; 2]);
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
