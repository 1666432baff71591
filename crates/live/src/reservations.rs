//! Reservations on a bridge: control packets are taken out of the stream of frames, a separate thread decides
//! about them, and the granted rate is written into the metadata of the packets of the flow
//! ([`giveway_qdisc::Meta::reserved`]).
//!
//! # Principles
//! - A control packet reserves in its own direction: at the port of the outgoing interface, a part of the
//!   rate of that port.
//! - The forwarding thread does only two things: it passes control packets to the service ([`ReservedFlows`],
//!   through a queue of length [`QUEUE`]; packets that do not fit are lost and counted, and their sender
//!   retransmits them), and it looks up flows. Without reservations a look-up is one comparison; with
//!   reservations it is one probe of a hash table. Nothing is allocated.
//! - Another thread decides ([`AdmissionControl`], which does no input or output). Its answers, and the
//!   packets that it forwards, are queued at the ports of both directions: no frame bypasses a queue.
//! - A start that is granted is forwarded, so that the next router on the path decides, too. A start that is
//!   refused is not forwarded, and its sender gets the reason. An end is forwarded unless it belongs to
//!   another owner. Answers of downstream routers are forwarded.
//! - The owner of a reservation is a link address: the source of the frame, which the message repeats.
//!   Messages from group addresses or zero are dropped, since they identify no host. Without a key, any host
//!   on the link can forge the address of another one.
//! - With a key, each message is accepted once ([`giveway_reserve::guard`]). The numbers of both directions
//!   are kept together: a copy is detected on either side.
//! - Frames of the same EtherType that do not start like a control packet are forwarded like all others.
//!
//! # Time
//! Start and end of a reservation are in Unix time, in nanoseconds since 1970, and are compared with the time
//! stamp of a frame. The clocks of both sides must be set.
//!
//! # Left open by the paper
//! Chen and Chen discard packets that are neither reserved nor best effort. Here every packet is one of the
//! two, so none is discarded for this reason.

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
