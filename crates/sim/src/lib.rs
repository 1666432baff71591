//! Packet-level network simulation: links with disciplines, routing, TCP and UDP applications.
//!
//! Read [`engine`] first: it runs a simulation from event to event. Then [`transport`], which maps segments
//! to connections, and [`tcp`], the protocol itself. [`traffic`] has the applications, and [`net`] is the
//! interface through which they use the network.
//!
//! There is no hidden queue: a packet waits in the discipline of a link's port, or it is on a wire.

#![forbid(unsafe_code)]
// A second variable of the same name is an easy way to drop the wrong packet.
#![cfg_attr(not(test), deny(clippy::shadow_unrelated))]

mod access;
pub mod counts;
pub mod engine;
pub mod event_queue;
mod link;
pub mod net;
pub mod network;
pub mod origin;
mod outage;
pub mod routes;
pub mod segment;
pub mod sizes;
pub mod tally;
pub mod tcp;
pub mod traffic;
pub mod transport;

pub use counts::Counts;
pub use engine::{Plan, Sim, Totals};
pub use net::{Caller, Carrier, ConnId, Datagram, Event, HostId, Net, Settings, Side, StreamId};
pub use network::{LinkPlan, Network, NetworkError};
pub use routes::Routes;
pub use segment::Segment;
pub use sizes::Sizes;
pub use tcp::TcpConfig;
pub use traffic::{Place, Placed, SOURCES, Source, Traffic, TrafficEntry, TrafficSpec};
