//! Packet-level network simulation: links with disciplines, routing, TCP and UDP applications.
//!
//! Read [`engine`] first: it runs a simulation from event to event. Then [`transport`], which maps segments
//! to connections, and [`tcp`], the protocol itself. [`traffic`] contains the applications, and [`net`] is
//! the interface through which they use the network.
//!
//! There is no hidden queue: a packet is in the discipline of a link's port, or on a wire.
//!
//! A TCP transfer of 1 MB over a link of 10 Mbit/s with a plain queue:
//!
//! ```
//! use std::collections::VecDeque;
//! use giveway_qdisc::{
//!     Backlog, Cx, DropReason, FlowReport, Next, Packet, Probe, Qdisc, Rate, Share, Span, Streams, Time,
//! };
//! use giveway_sim::engine::SourcePlan;
//! use giveway_sim::{LinkPlan, Net, Network, Plan, Segment, Sim, Source};
//!
//! /// First in, first out, without a limit.
//! #[derive(Default)]
//! struct Queue(VecDeque<Packet<Segment>>);
//!
//! impl Qdisc<Segment> for Queue {
//!     fn enqueue(&mut self, pkt: Packet<Segment>, _cx: &mut Cx<'_, Segment>) {
//!         self.0.push_back(pkt);
//!     }
//!     fn dequeue(&mut self, _cx: &mut Cx<'_, Segment>) -> Next<Segment> {
//!         self.0.pop_front().map_or(Next::Empty, Next::Packet)
//!     }
//!     fn backlog(&self) -> Backlog {
//!         let bytes = self.0.iter().map(|pkt| u64::from(pkt.bytes())).sum();
//!         Backlog { packets: self.0.len() as u64, bytes }
//!     }
//!     fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
//!         self.0.drain(..).for_each(|pkt| cx.drop(pkt, DropReason::Reset));
//!     }
//! }
//!
//! /// Starts one transfer from node 0 to node 1.
//! struct OneTransfer;
//!
//! impl Source for OneTransfer {
//!     fn wake(&mut self, net: &mut Net<'_>) {
//!         net.transfer(0, 1, Some(1_000_000));
//!     }
//! }
//!
//! /// Keeps the reports of flows.
//! #[derive(Default)]
//! struct Reports(Vec<FlowReport>);
//!
//! impl Probe<Segment> for Reports {
//!     fn on_flow(&mut self, report: &FlowReport) {
//!         self.0.push(report.clone());
//!     }
//! }
//!
//! let mut network = Network::new(2);
//! for (from, to) in [(0, 1), (1, 0)] {
//!     network.link(LinkPlan {
//!         name: format!("{from} to {to}"),
//!         from,
//!         to,
//!         rate: Rate::mbit(10),
//!         delay: Span::ms(5),
//!         jitter: Span::ZERO,
//!         loss: Share::default(),
//!         cost: 1,
//!         impairments: Default::default(),
//!         outages: Vec::new(),
//!         medium: None,
//!         qdisc: Box::new(Queue::default()),
//!     });
//! }
//! let mut sim = Sim::new(Plan {
//!     network,
//!     sources: vec![SourcePlan::new("transfer", Box::new(OneTransfer))],
//!     until: Time::s(10),
//!     measured: Time::ZERO..Time::s(10),
//!     sample: None,
//!     sample_senders: false,
//!     streams: Streams::new(1),
//!     lookahead: 0,
//!     timing: giveway_sim::Timing::default(),
//! });
//! let mut reports = Reports::default();
//! sim.step_to(Time::s(10), &mut reports);
//! let [report] = &reports.0[..] else { panic!("there is one transfer") };
//! // The link needs 0.8 s for the data, and more for headers and slow start.
//! assert_eq!(report.delivered, 1_000_000);
//! assert!(report.end > Time::ms(800) && report.end < Time::ms(1_200));
//! ```

#![forbid(unsafe_code)]
// A second variable of the same name easily leads to the drop of a wrong packet.
#![cfg_attr(not(test), deny(clippy::shadow_unrelated))]

mod access;
pub mod counters;
pub mod counts;
pub mod division;
pub mod engine;
pub mod event_queue;
mod link;
mod media;
pub mod net;
pub mod network;
pub mod origin;
mod outage;
mod packets;
pub mod parallel;
pub mod partition;
mod plain;
mod plan;
pub mod quic;
mod refused;
pub mod routes;
pub mod segment;
pub mod sizes;
pub mod tcp;
mod thin_acks;
pub mod timing;
pub mod traffic;
pub mod transport;
mod varying;
mod watched;

pub use counts::Counts;
pub use division::Gain;
pub use engine::{Plan, Sim, Totals};
pub use net::{
    Caller, Carrier, ConnId, Datagram, Event, HostId, Net, Protocol, QuicCarrier, Sent, Settings, Side,
    StreamId,
};
pub use network::{LinkPlan, MediumPlan, Network, NetworkError};
pub use partition::{Partition, Whole};
pub use quic::QuicConfig;
pub use refused::LinkChangeError;
pub use routes::{Routes, Routing};
pub use segment::Segment;
pub use sizes::Sizes;
pub use tcp::TcpConfig;
pub use thin_acks::ThinAcks;
pub use timing::Timing;
pub use traffic::{NodeOrigin, SOURCES, Source, SourceContext, Traffic, TrafficEntry, TrafficSpec};
pub use watched::Watched;
