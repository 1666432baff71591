//! Changes of reservations, which the reservation service sends to the forwarding threads.

use giveway_qdisc::{FiveTuple, Rate};
use giveway_reserve::Reservation;

/// A change of the reservation of a flow: a new rate with its start and end, or the removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The flow.
    pub(crate) tuple: FiveTuple,
    /// The reserved rate.
    pub(crate) rate: Rate,
    /// Start, in Unix nanoseconds.
    pub(crate) start: u64,
    /// End, in Unix nanoseconds, not included. Zero removes the reservation.
    pub(crate) until: u64,
}

impl Change {
    /// Removes the reservation of a flow.
    pub(crate) fn removed(tuple: FiveTuple) -> Change {
        Change { tuple, rate: Rate::default(), start: 0, until: 0 }
    }

    /// The flow.
    pub(crate) fn tuple(&self) -> &FiveTuple {
        &self.tuple
    }
}

impl From<Reservation> for Change {
    fn from(of: Reservation) -> Change {
        Change { tuple: of.tuple.into(), rate: of.rate, start: of.start, until: of.until }
    }
}
