//! The contract of a queue discipline.

use std::any::Any;
use std::sync::Arc;

use crate::backlog::Backlog;
use crate::classes::ClassState;
use crate::cx::Cx;
use crate::hosts::Hosts;
use crate::packet::Packet;
use crate::rng::Streams;
use crate::units::{Bytes, Limit, Rate, Span, Time};

/// A queue discipline. It decides which packet leaves next and which is dropped.
///
/// It has no clock and no timer, and does not depend on its backend. Each call passes the current time, which
/// never goes back; a periodic update that is due is made at the start of the next call. The packet that the
/// link transmits is no longer in the queue: it counts toward neither limits nor tables.
pub trait Qdisc<P> {
    /// Enqueues the packet, or drops it or another packet of the backlog with [`Cx::drop`].
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>);

    /// Dequeues the next packet, or returns the time of the next call.
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P>;

    /// Packets and bytes in the queue, children included.
    fn backlog(&self) -> Backlog;

    /// Drops the backlog with [`DropReason::Reset`](crate::DropReason::Reset) and returns to the initial
    /// state.
    fn reset(&mut self, cx: &mut Cx<'_, P>);

    /// The rate of the link is `rate` from `now` on. It is never zero: a link that stands still keeps its
    /// last rate. The backend calls this for each change in order, before the next call of another method,
    /// and while the discipline holds packets back ([`Next::At`]) at the change itself, after which it
    /// dequeues again. A discipline whose decisions do not depend on the rate of the link ignores it. A
    /// discipline that cannot follow the rate says so in its header.
    fn rate_changed(&mut self, _rate: Rate, _now: Time) {}

    /// Takes over from `old`, which this discipline replaces, what both have: queues with their packets,
    /// credits, counters. It is called once, before any other call. A packet that remains in `old` leaves
    /// before the packets of this discipline. Disciplines with classes do this, so that a class can be added,
    /// changed or removed while packets are in the tree.
    fn take_over(&mut self, _old: &mut dyn Qdisc<P>, _cx: &mut Cx<'_, P>) {}

    /// Itself, for a discipline of the same type that takes over from it.
    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// Itself, if it is a [`Bodies`](crate::Bodies), which a port then calls directly. A discipline around
    /// another one keeps the default, or the port would leave it out.
    fn as_bodies(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// The limit of a plain queue: first in, first out, where a packet that does not fit is refused
    /// ([`DropReason::Overlimit`](crate::DropReason)). It must have no other state, no marks, and no gauges.
    /// Its departures follow from its arrivals, so a backend may compute them instead of calling it. `None`
    /// for every other discipline.
    fn plain(&self) -> Option<Limit> {
        None
    }

    /// Size of the state per flow, children included. It is sampled periodically, never per packet.
    fn flow_table(&self) -> FlowTable {
        FlowTable::NONE
    }

    /// Visits further internal state for plots: name and value. It is sampled periodically, never per packet.
    fn gauges(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}

    /// Visits its classes, each before those below it. It is called for tables and metrics, never per packet.
    fn classes(&self, _visit: &mut dyn FnMut(ClassState)) {}
}

/// Size of the state that a discipline keeps per flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    /// Number of flows that have state now.
    pub flows: u64,
    /// Largest number of flows since the discipline was built.
    pub most: u64,
    /// Memory per flow in bytes, with the share of free slots that its table needs, without packets.
    pub entry_bytes: u32,
    /// Memory of all state per flow in bytes, used or not.
    pub bytes: u64,
}

impl FlowTable {
    /// No state per flow.
    pub const NONE: FlowTable = FlowTable { flows: 0, most: 0, entry_bytes: 0, bytes: 0 };

    /// Its numbers by name, as outputs list them next to the gauges of a discipline.
    pub fn named(&self) -> [(&'static str, f64); 4] {
        [
            ("flow_table", self.flows as f64),
            ("flow_table_most", self.most as f64),
            ("flow_table_entry_bytes", f64::from(self.entry_bytes)),
            ("flow_table_bytes", self.bytes as f64),
        ]
    }

    /// The table with more state: `entry` bytes for each flow, and `bytes` in all.
    #[must_use]
    pub fn with(self, entry: usize, bytes: u64) -> FlowTable {
        FlowTable { entry_bytes: self.entry_bytes + entry as u32, bytes: self.bytes + bytes, ..self }
    }

    /// Sum of two tables. Its `most` is an upper bound: the two maxima may have been at different times.
    pub fn plus(self, other: FlowTable) -> FlowTable {
        FlowTable {
            flows: self.flows + other.flows,
            most: self.most + other.most,
            entry_bytes: self.entry_bytes.max(other.entry_bytes),
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Result of a dequeue.
#[must_use]
#[derive(Debug)]
pub enum Next<P> {
    /// The packet that leaves.
    Packet(Packet<P>),
    /// No packet may leave before this time, which lies in the future, although there is a backlog. Dequeue
    /// again then, and after each arrival, which may change the result.
    At(Time),
    /// There is no backlog.
    Empty,
}

impl<P> Next<P> {
    /// The packet, if there is one.
    pub fn packet(self) -> Option<Packet<P>> {
        match self {
            Next::Packet(pkt) => Some(pkt),
            Next::At(_) | Next::Empty => None,
        }
    }
}

impl<P, Q: Qdisc<P> + ?Sized> Qdisc<P> for Box<Q> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        (**self).enqueue(pkt, cx)
    }
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        (**self).dequeue(cx)
    }
    fn backlog(&self) -> Backlog {
        (**self).backlog()
    }
    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        (**self).reset(cx)
    }
    fn rate_changed(&mut self, rate: Rate, now: Time) {
        (**self).rate_changed(rate, now)
    }
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        (**self).take_over(old, cx)
    }
    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        (**self).as_any_mut()
    }
    fn as_bodies(&mut self) -> Option<&mut dyn Any> {
        (**self).as_bodies()
    }
    fn plain(&self) -> Option<Limit> {
        (**self).plain()
    }
    fn flow_table(&self) -> FlowTable {
        (**self).flow_table()
    }
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        (**self).gauges(visit)
    }
    fn classes(&self, visit: &mut dyn FnMut(ClassState)) {
        (**self).classes(visit)
    }
}

/// The link that a discipline is built for.
#[derive(Clone, Debug)]
pub struct LinkContext {
    /// Rate of the link.
    pub rate: Rate,
    /// MTU of the link: the largest IP length.
    pub mtu: Bytes,
    /// Random streams of the discipline.
    pub streams: Streams,
    /// Downstream links that are known to the backend.
    pub downstream: Downstream,
    /// Hosts that the backend knows by name, for filters.
    pub hosts: Hosts,
}

/// Links downstream of a link, by which a discipline with lookahead divides its link. An unknown link has no
/// rate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Downstream {
    /// The node at the far end of the link.
    pub neighbour: u16,
    /// Ends and rate of each link, sorted by the ends.
    links: Arc<[((u16, u16), Rate)]>,
}

impl Downstream {
    /// The links downstream of a link to `neighbour`, each with its two ends; they may be all links of a
    /// network. Of parallel links the first counts.
    pub fn new(neighbour: u16, links: impl IntoIterator<Item = ((u16, u16), Rate)>) -> Downstream {
        let mut links: Vec<((u16, u16), Rate)> = links.into_iter().collect();
        links.sort_by_key(|(ends, _)| *ends);
        links.dedup_by_key(|(ends, _)| *ends);
        Downstream { neighbour, links: links.into() }
    }

    /// These links as seen from a link to `neighbour`.
    pub fn towards(&self, neighbour: u16) -> Downstream {
        Downstream { neighbour, links: Arc::clone(&self.links) }
    }

    /// Ends and rate of each link, sorted by the ends.
    pub fn links(&self) -> &[((u16, u16), Rate)] {
        &self.links
    }

    /// Rate of the link between two nodes, if it is known.
    pub fn rate(&self, from: u16, to: u16) -> Option<Rate> {
        let at = self.links.binary_search_by_key(&(from, to), |(ends, _)| *ends).ok()?;
        Some(self.links[at].1)
    }
}

impl LinkContext {
    /// A link of `rate` with an MTU of 1,500 bytes and no known downstream links.
    pub fn new(rate: Rate, streams: Streams) -> LinkContext {
        LinkContext {
            rate,
            mtu: Bytes(1500),
            streams,
            downstream: Downstream::default(),
            hosts: Hosts::default(),
        }
    }

    /// Context of a child discipline: this link, with its own random streams.
    pub fn child(&self, name: &str) -> LinkContext {
        LinkContext { streams: self.streams.within(name), ..self.clone() }
    }
}

/// Properties of a discipline beyond the contract, which the contract suite tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// True if packets of one flow leave in the order of their arrival.
    pub keeps_flow_order: bool,
    /// True if a packet leaves whenever there is a backlog; false for shapers.
    pub work_conserving: bool,
    /// Limit of the backlog after each call; `None` if the discipline has several limits.
    pub limit: Option<Limit>,
    /// True if it may mark ECN-capable packets; false if congestion is always a drop.
    pub marks: bool,
    /// Service that each flow gets, whatever others send.
    pub guarantee: Guarantee,
}

impl Properties {
    /// Properties of a work-conserving discipline that keeps the order of flows, has one limit and guarantees
    /// no service.
    pub fn plain(limit: Limit) -> Properties {
        Properties {
            keeps_flow_order: true,
            work_conserving: true,
            limit: Some(limit),
            marks: false,
            guarantee: Guarantee::Nothing,
        }
    }

    /// These properties of a discipline that marks, if `marks` is true.
    pub fn marking(self, marks: bool) -> Properties {
        Properties { marks, ..self }
    }

    /// These properties with a guarantee.
    pub fn with(self, guarantee: Guarantee) -> Properties {
        Properties { guarantee, ..self }
    }
}

/// Service that a flow gets, whatever others send, as long as none of its packets is dropped: the kind of
/// latency-rate server (Stiliadis and Varma 1998). The crate `theory` derives delay bounds from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// No guarantee.
    Nothing,
    /// The reserved rate, after a latency of one packet of the flow at that rate and one packet of any flow
    /// at the rate of the link: a rate-proportional server.
    Reserved,
    /// The reserved rate, after the latency of [`Guarantee::Reserved`] and the width of a slot.
    ReservedInSlots(Span),
    /// The reserved rate, after a latency of one packet of each flow and the time of a class.
    ReservedInClasses(Span),
    /// The reserved rate, with flows grouped by the time that a packet of this length takes at their rates.
    ReservedInGroups(Bytes),
    /// A turn in each round, with the bytes of its class.
    Turns,
    /// A service of its class, whatever packets of other classes arrive. The configuration computes it.
    Classes,
}

/// A parameter with which a configuration cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Name of the parameter in the configuration.
    pub parameter: &'static str,
    /// The mistake, and a value to write instead.
    pub message: String,
}

impl Invalid {
    /// An error about `parameter`.
    pub fn new(parameter: &'static str, message: impl Into<String>) -> Invalid {
        Invalid { parameter, message: message.into() }
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.parameter, self.message)
    }
}
impl std::error::Error for Invalid {}

/// Rejects a limit that is smaller than a packet of full size, or larger than memory.
pub fn check_limit(parameter: &'static str, limit: Limit, mtu: Bytes) -> Result<(), Invalid> {
    match limit {
        Limit::Packets(0) => Err(Invalid::new(parameter, "0 packets are too few: write at least \"1p\"")),
        Limit::Bytes(bytes) if bytes < mtu.0 => Err(Invalid::new(
            parameter,
            format!("{limit} cannot hold one packet of {} bytes: write at least \"{}b\"", mtu.0, mtu.0),
        )),
        Limit::Packets(most) if most > MAX_PACKETS => {
            let message = format!("{limit} exceed the memory: write \"{MAX_PACKETS}p\" at most");
            Err(Invalid::new(parameter, message))
        }
        Limit::Bytes(most) if most > MAX_BYTES => Err(Invalid::new(
            parameter,
            format!("{limit} exceed the memory: write \"{}gb\" at most", MAX_BYTES >> 30),
        )),
        Limit::Packets(_) | Limit::Bytes(_) => Ok(()),
    }
}

/// The largest limit in packets. A discipline needs more than a hundred bytes per packet without its data:
/// two gigabytes.
pub const MAX_PACKETS: u64 = 1 << 24;
/// The largest limit in bytes: more than a second at 400 Gbit/s.
const MAX_BYTES: u64 = 64 << 30;
