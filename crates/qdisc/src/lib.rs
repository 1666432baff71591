//! The contract between a queue discipline and its backend.
//!
//! A discipline decides which packet leaves next and which is dropped. It is written once against this crate
//! and runs in every backend: the network simulator, the live data path, and the kernel's test bench. Read
//! [`port`] first, which has the life of a packet, and then [`Qdisc`], the contract itself.
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
//! // A backend: one output port at 1 Mbit/s, without a probe.
//! let mut port = Port::new(PortId(0), Box::new(TwoPackets { queue: VecDeque::new() }), Rate::mbit(1));
//! let mut probe = ();
//! for name in ["A", "B", "C"] {
//!     port.offer(Packet::new(FlowKey(1), 125, name), Time::ZERO, &mut probe);
//! }
//! let Next::Packet(first) = port.pull(Time::ZERO, &mut probe) else { panic!("A is queued") };
//! assert_eq!(first.payload, "A");
//! // The link is busy for 125 bytes: one millisecond at 1 Mbit/s.
//! assert!(matches!(port.pull(Time::us(10), &mut probe), Next::At(t) if t == Time::ms(1)));
//! assert_eq!(port.counters().dropped.packets, 1);
//! assert_eq!(port.counters().backlog().packets, 1);
//! ```

#![forbid(unsafe_code)]
// A second variable of the same name is how the wrong packet gets dropped.
#![cfg_attr(not(test), deny(clippy::shadow_unrelated))]

mod backlog;
pub mod blocks;
mod bodies;
mod classes;
pub mod contract;
mod cx;
mod dscp;
mod flow_key;
pub mod hash;
mod hosts;
mod label;
mod packet;
pub mod port;
mod probe;
mod qdisc;
mod rng;
mod store;
pub mod units;

pub use backlog::Backlog;
pub use bodies::Bodies;
pub use classes::ClassState;
pub use cx::{Cx, DropReason, Outbox};
pub use dscp::{Dscp, DscpError};
pub use flow_key::{FiveTuple, FlowHash};
pub use hosts::Hosts;
pub use label::Label;
pub use packet::{Ecn, FlowKey, Header, Meta, NextHops, Packet};
pub use port::{Port, PortCounters, Wire};
pub use probe::{Causes, Divisible, Ending, FlowKind, FlowReport, Interest, PortId, Probe, SenderSample};
pub use qdisc::{
    Downstream, FlowTable, Guarantee, Invalid, LinkContext, MAX_PACKETS, Next, Properties, Qdisc, check_limit,
};
pub use rng::{Rng, Streams};
pub use store::{List, Place, Slots};
pub use units::{Bytes, Depth, Limit, Packets, Quantity, Rate, Share, Span, Time, UnitError};
