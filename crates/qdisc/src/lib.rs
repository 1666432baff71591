//! The contract of Giveway: what a queue discipline sees, says and promises.
//!
//! A discipline decides which packet leaves next and which is dropped. It is written once against this crate and runs
//! in every host: the network simulator, the switch, the live data path. Read [`port`] first, top to bottom: it is a
//! packet's life. Then [`Qdisc`], the contract itself.
//!
//! A queue that holds two packets, in full:
//!
//! ```
//! use std::collections::VecDeque;
//! use giveway_qdisc::{Backlog, Cx, DropReason, FlowKey, Next, Packet, Port, PortId, Qdisc, Rate, Time};
//!
//! struct TwoPackets<P> {
//!     queue: VecDeque<Packet<P>>,
//! }
//!
//! impl<P> Qdisc<P> for TwoPackets<P> {
//!     fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
//!         if self.queue.len() < 2 {
//!             self.queue.push_back(pkt);
//!         } else {
//!             cx.drop(pkt, DropReason::Overlimit); // moved away: it cannot also be queued
//!         }
//!     }
//!     fn dequeue(&mut self, _cx: &mut Cx<'_, P>) -> Next<P> {
//!         match self.queue.pop_front() {
//!             Some(pkt) => Next::Packet(pkt),
//!             None => Next::Empty,
//!         }
//!     }
//!     fn backlog(&self) -> Backlog {
//!         let bytes = self.queue.iter().map(|pkt| u64::from(pkt.bytes())).sum();
//!         Backlog { packets: self.queue.len() as u64, bytes }
//!     }
//!     fn reset(&mut self, cx: &mut Cx<'_, P>) {
//!         for pkt in self.queue.drain(..) {
//!             cx.drop(pkt, DropReason::Reset);
//!         }
//!     }
//! }
//!
//! // A host: one output port at 1 Mbit/s, nobody watching.
//! let mut port = Port::new(PortId(0), Box::new(TwoPackets { queue: VecDeque::new() }), Rate::mbit(1));
//! let mut nobody = ();
//! for name in ["A", "B", "C"] {
//!     port.offer(Packet::new(FlowKey(1), 125, name), Time::ZERO, &mut nobody);
//! }
//! let Next::Packet(first) = port.pull(Time::ZERO, &mut nobody) else { panic!("A is waiting") };
//! assert_eq!(first.payload, "A");
//! // The link is busy for 125 bytes: one millisecond at 1 Mbit/s.
//! assert!(matches!(port.pull(Time::us(10), &mut nobody), Next::At(t) if t == Time::ms(1)));
//! assert_eq!(port.books().dropped.packets, 1);
//! assert_eq!(port.books().held().packets, 1);
//! ```

#![forbid(unsafe_code)]
// A second variable of the same name is how the wrong packet gets dropped.
#![cfg_attr(not(test), deny(clippy::shadow_unrelated))]

pub mod blocks;
pub mod contract;
mod cx;
mod flow_key;
pub mod hash;
mod label;
mod packet;
pub mod port;
mod probe;
mod qdisc;
mod rng;
mod store;
pub mod units;

pub use cx::{Cx, DropReason, Outbox};
pub use flow_key::{FiveTuple, FlowHash};
pub use label::Label;
pub use packet::{Ahead, Ecn, FlowKey, Meta, Packet};
pub use port::{Books, Port, Wire};
pub use probe::{Ending, FlowKind, FlowReport, PortId, Probe, SenderSample};
pub use qdisc::{
    Backlog, FlowTable, Guarantee, Invalid, LinkContext, MOST_PACKETS, Next, Onward, Properties, Qdisc,
    check_limit,
};
pub use rng::{Rng, Streams};
pub use store::{List, Place, Slots};
pub use units::{Bytes, Limit, Packets, Quantity, Rate, Share, Span, Time, UnitError};
