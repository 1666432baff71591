//! Reservations on a bridge: control packets are taken out of the stream of frames, a separate thread decides
//! about them, and the granted rate is written into the metadata of the packets of the flow
//! ([`giveway_qdisc::Meta::reserved`]).
//!
//! # Principles
//! - A control packet that comes in on one side reserves in the direction in which it travels: at the port of
//!   the other side, out of the rate of that port.
//! - The forwarding thread does only two things: it passes control packets to the service ([`ReservedFlows`],
//!   into a queue of [`QUEUE`]; packets that do not fit are counted and lost, and their sender repeats them),
//!   and it looks up flows. Without reservations a look-up is one comparison; with reservations it is one
//!   probe of a hash table. Nothing is allocated.
//! - Another thread decides ([`AdmissionControl`], which is pure code). Its answers, and the packets that it
//!   forwards, go to the ports of both directions and are queued there: no frame bypasses a queue.
//! - A start that is granted is forwarded, so that the next router on the path decides, too. A start that is
//!   refused is not forwarded, and its sender gets the reason. An end is forwarded unless it belongs to
//!   another owner. Answers of routers further on pass.
//! - The owner of a reservation is a link address: the source of the frame, which the message repeats. Group
//!   addresses and zero belong to no machine, and their messages are dropped. Without a key, any machine on
//!   the link can forge the address of another one.
//! - With a key, each message is accepted once ([`giveway_reserve::guard`]). The numbers of both directions
//!   are kept together: a copy is detected on either side.
//! - Frames of the same EtherType that do not begin as a control packet pass like any other.
//!
//! # Time
//! Starts and finishes are in Unix time, nanoseconds since 1970, which the clocks of both sides show. They
//! are compared with the kernel's time stamp of a frame.
//!
//! # Left open by the paper
//! Chen and Chen discard packets that are neither reserved nor best effort. Here every packet is one of both,
//! so there is nothing to discard.

mod admission;
pub mod change;
pub(crate) mod flows;
mod frame;
mod request;
mod service;

pub use admission::{AdmissionControl, Decision, LinkReservations, Settings};
pub use flows::ReservedFlows;
pub use frame::ControlFrame;
pub use service::{QUEUE, ReservationClient, ReservationService, create};

#[cfg(test)]
mod tests;
