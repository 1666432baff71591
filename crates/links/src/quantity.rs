//! The quantities of a link that vary, and their limits.

use giveway_qdisc::{Rate, Span};

/// A quantity that varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A rate, in bit/s.
    Rate,
    /// A delay, in picoseconds.
    Delay,
}

impl Quantity {
    /// Its name in messages and in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Rate => "rate",
            Quantity::Delay => "delay",
        }
    }
}

/// Minimum time between two rows of a CSV file, or two points.
pub(crate) const SHORTEST: Span = Span::us(10);
/// The highest rate: a packet of 64 bytes still takes 51 ps.
pub(crate) const HIGHEST: Rate = Rate::gbit(10_000);
/// Refuses a rate or a delay that no link has; the message and the help.
pub(crate) fn check(quantity: Quantity, value: u64) -> Result<(), (String, &'static str)> {
    match quantity {
        Quantity::Rate if value > HIGHEST.as_bit() => {
            Err((format!("the rate of {} exceeds 10 Tbit/s", Rate::bit(value)), "write at most 10tbit"))
        }
        Quantity::Delay if value > LONGEST_DELAY.as_ps() => {
            Err((format!("the delay of {} exceeds an hour", Span::from_ps(value)), "write at most 1h"))
        }
        _ => Ok(()),
    }
}

/// The longest delay.
const LONGEST_DELAY: Span = Span::s(3600);
