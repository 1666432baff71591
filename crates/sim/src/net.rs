//! What a source of traffic sees of the world: [`Net`], and who stands behind it, a [`Carrier`].
//!
//! Sources decide what is asked for and when; a carrier brings it there. The simulator's carrier is its transport, where
//! connections are state machines. A test bed has another, where they are sockets. So the same source, built from the
//! same streams of random numbers, asks both for the same.

use std::ops::Range;
use std::rc::Rc;

use qdisc::{Ecn, FlowKey, FlowReport, Rate, Span, Time};

use crate::tcp::TcpConfig;

/// A connection. Valid until its [`Event::Closed`] or [`Event::Aborted`]. The number is the carrier's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnId(pub u32);

/// A stream of datagrams. The number is the carrier's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// A host that stands beyond its node ([`Net::host`]). 0 is the node itself; other numbers are the carrier's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostId(pub u16);

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The end that connected.
    Client,
    /// The end that accepted.
    Server,
}

/// What happened to a connection that a source opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server has accepted; the client's data may be on its way already.
    Connected(ConnId),
    /// The application at `side` has received `total` bytes so far, in order.
    Received {
        /// Which connection.
        conn: ConnId,
        /// Which end received.
        side: Side,
        /// Bytes since the connection began.
        total: u64,
    },
    /// Both ends closed.
    Closed(ConnId),
    /// One end gave up.
    Aborted(ConnId),
}

/// What a datagram looks like to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// IP length.
    pub bytes: u32,
    /// [`qdisc::Meta::short`].
    pub short: bool,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// How a source's packets are sent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its TCP.
    pub tcp: Rc<TcpConfig>,
    /// The class of its packets.
    pub class: u16,
    /// The rate that is reserved for each of its flows; zero for none.
    pub reserved: Rate,
}

impl Settings {
    /// What its datagrams say about congestion notification.
    pub fn ecn(&self) -> Ecn {
        if self.tcp.ecn { Ecn::Ect0 } else { Ecn::NotCapable }
    }
}

/// Which source wants something, and when.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Its place in the scenario.
    pub source: u16,
    /// How its packets are sent.
    pub settings: &'a Settings,
    /// The time that it was told.
    pub now: Time,
}

/// Brings what sources send to where it should go, and reports transfers and streams.
///
/// What it tells sources is told between their actions, never within one.
pub trait Carrier {
    /// A host beyond a node: [`Net::host`].
    fn host(&mut self, node: u16, delay: Span) -> HostId;
    /// Opens a connection between two nodes, or between one and a host beyond the other.
    fn connect(&mut self, by: Caller<'_>, ends: (u16, u16), host: HostId) -> ConnId;
    /// Opens a connection that sends `bytes` one way, or for ever, closes and reports itself; `asked` is its start.
    fn transfer(&mut self, by: Caller<'_>, ends: (u16, u16), bytes: Option<u64>, asked: Time) -> ConnId;
    /// The application at one end has `bytes` more to send.
    fn send(&mut self, conn: ConnId, side: Side, bytes: u64, now: Time);
    /// The application at one end has no more to send.
    fn close(&mut self, conn: ConnId, side: Side, now: Time);
    /// Data packets that the sender at one end sent, those sent again, and timeouts; zeros where nobody counts them.
    fn counts(&self, conn: ConnId, side: Side) -> (u64, u64, u64);
    /// Of a part of the stream to one end, the bytes that arrived there within the measurement interval, in order or not.
    fn measured(&self, conn: ConnId, side: Side, part: Range<u64>) -> u64;
    /// A stream of datagrams, which reports itself: of a flow that is known already, or of a new one.
    fn stream(&mut self, by: Caller<'_>, ends: (u16, u16), flow: Option<FlowKey>, start: Time) -> StreamId;
    /// Sends a datagram whose IP packet has `bytes` bytes.
    fn datagram(&mut self, stream: StreamId, bytes: u32, now: Time);
    /// Sends a datagram that is known already.
    fn datagram_as(&mut self, stream: StreamId, datagram: Datagram, now: Time);
    /// A number for a flow that the source reports itself.
    fn flow_id(&mut self, by: Caller<'_>) -> u64;
    /// A source reports a flow.
    fn report(&mut self, report: FlowReport);
}

/// What a source may do.
pub struct Net<'a> {
    caller: Caller<'a>,
    carrier: &'a mut dyn Carrier,
    wake: &'a mut Time,
}

impl<'a> Net<'a> {
    /// What a source may do when this carrier lets it act; when it wants to be woken is left in `wake`.
    pub fn new(caller: Caller<'a>, carrier: &'a mut dyn Carrier, wake: &'a mut Time) -> Net<'a> {
        Net { caller, carrier, wake }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.caller.now
    }

    /// Wake the source at this time. Only the latest call counts.
    pub fn wake_at(&mut self, at: Time) {
        *self.wake = at;
    }

    /// A connection that sends `bytes` from one node to another and closes; `None` never ends. It reports itself.
    pub fn transfer(&mut self, from: u16, to: u16, bytes: Option<u64>) -> ConnId {
        self.transfer_since(from, to, bytes, self.now())
    }

    /// The same for one that the application asked for at an earlier time, which counts as its start.
    pub fn transfer_since(&mut self, from: u16, to: u16, bytes: Option<u64>, asked: Time) -> ConnId {
        self.carrier.transfer(self.caller, (from, to), bytes, asked)
    }

    /// A host `delay` beyond a node, one way: its packets reach the node that much later, and it receives that much
    /// later what reaches the node. There is no queue in between. The same host for the same node and delay.
    pub fn host(&mut self, node: u16, delay: Span) -> HostId {
        self.carrier.host(node, delay)
    }

    /// Opens a connection one end of which is such a host: the one whose node it stands behind.
    pub fn connect_host(&mut self, from: u16, to: u16, host: HostId) -> ConnId {
        self.carrier.connect(self.caller, (from, to), host)
    }

    /// Opens a connection. Its ends are written to and closed by [`send`](Net::send) and [`close`](Net::close).
    pub fn connect(&mut self, from: u16, to: u16) -> ConnId {
        self.carrier.connect(self.caller, (from, to), HostId::default())
    }

    /// The application at `side` has `bytes` more to send.
    pub fn send(&mut self, conn: ConnId, side: Side, bytes: u64) {
        self.carrier.send(conn, side, bytes, self.caller.now);
    }

    /// The application at `side` has no more to send.
    pub fn close(&mut self, conn: ConnId, side: Side) {
        self.carrier.close(conn, side, self.caller.now);
    }

    /// What the sender at `side` of a connection did so far: data packets, retransmitted ones, timeouts.
    pub fn counts(&self, conn: ConnId, side: Side) -> (u64, u64, u64) {
        self.carrier.counts(conn, side)
    }

    /// Of a part of the stream to `side`, the bytes that arrived there within the measurement interval, in order or not.
    /// `part` counts from the beginning of the connection.
    pub fn measured(&self, conn: ConnId, side: Side, part: Range<u64>) -> u64 {
        self.carrier.measured(conn, side, part)
    }

    /// A stream of datagrams from one node to another.
    pub fn stream(&mut self, from: u16, to: u16) -> StreamId {
        self.stream_from(from, to, self.now())
    }

    /// The same, numbered now, for a flow whose first datagram comes at a moment that is known.
    pub fn stream_from(&mut self, from: u16, to: u16, start: Time) -> StreamId {
        self.carrier.stream(self.caller, (from, to), None, start)
    }

    /// The same for a flow that is known already, such as one of a capture.
    pub fn stream_of(&mut self, from: u16, to: u16, flow: FlowKey) -> StreamId {
        self.carrier.stream(self.caller, (from, to), Some(flow), self.caller.now)
    }

    /// Sends a datagram whose IP packet has `bytes` bytes.
    pub fn datagram(&mut self, stream: StreamId, bytes: u32) {
        self.carrier.datagram(stream, bytes, self.caller.now);
    }

    /// The same for a packet that is known already, such as one of a capture.
    pub fn datagram_as(&mut self, stream: StreamId, datagram: Datagram) {
        self.carrier.datagram_as(stream, datagram, self.caller.now);
    }

    /// A number for a flow that the source reports itself.
    pub fn flow_id(&mut self) -> u64 {
        self.carrier.flow_id(self.caller)
    }

    /// Reports a flow: for sources whose flows are not connections (a request with its response, a page).
    pub fn report(&mut self, report: FlowReport) {
        self.carrier.report(FlowReport { source: self.caller.source, ..report });
    }
}
