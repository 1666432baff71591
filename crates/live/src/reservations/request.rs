//! Requests to the reservation service.

use std::sync::mpsc::SyncSender;

use giveway_qdisc::Rate;

use crate::reservations::admission::LinkReservations;
use crate::reservations::frame::ControlFrame;

/// A request to the thread of the reservation service.
pub(super) enum Request {
    /// Decides about a received control packet.
    Frame(ControlFrame),
    /// Sets the rate of the link of a direction.
    Rate(usize, Rate),
    /// Returns the reservations of both directions.
    Status(SyncSender<[Option<LinkReservations>; 2]>),
}
