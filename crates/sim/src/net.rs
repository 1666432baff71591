//! The network as a source of traffic sees it: [`Net`], and its implementation, a [`Carrier`].
//!
//! A source decides what is sent and when; a carrier transports it. The carrier of the simulator is its
//! transport, where connections are state machines. A test bed has another one, where connections are
//! sockets. So a source with the same random streams requests the same traffic from both.

use std::ops::{AddAssign, Range, Sub};
use std::rc::Rc;

use giveway_qdisc::{Causes, Dscp, Ecn, FlowKey, FlowReport, Header, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quic::QuicConfig;
use crate::tcp::TcpConfig;

/// A connection, numbered by the carrier. Valid until its [`Event::Closed`] or [`Event::Aborted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnId(pub u32);

/// A stream of datagrams, numbered by the carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// A host on an access link ([`Net::host`]), numbered by the carrier. 0 is a host at the node itself.
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

/// An event of a connection, for the source that opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server has accepted the connection. Data of the client may be in flight already.
    Connected(ConnId),
    /// The application at `side` has received `total` bytes so far, in order.
    Received {
        /// The connection.
        conn: ConnId,
        /// The end that received.
        side: Side,
        /// The stream of a QUIC connection; 0 for TCP.
        stream: u32,
        /// Number of bytes since the connection, or the stream, was opened.
        total: u64,
    },
    /// Both ends have closed.
    Closed(ConnId),
    /// One end has given up after too many timeouts.
    Aborted(ConnId),
}

/// The fields of a datagram that the network sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Length of the IP packet, in bytes.
    pub bytes: u32,
    /// Its DSCP, and whether it counts as a short packet.
    pub header: Header,
    /// Its ECN field.
    pub ecn: Ecn,
    /// The time before which it should not leave its host, if the sender gives one. The discipline `fq` holds
    /// it until then; all others ignore it.
    pub departure: Option<Time>,
}

/// Settings for all packets of a source.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Parameters of its TCP connections.
    pub tcp: Rc<TcpConfig>,
    /// Parameters of its QUIC connections.
    pub quic: Rc<QuicConfig>,
    /// Traffic class of its packets.
    pub class: u16,
    /// DSCP of its packets.
    pub dscp: Dscp,
    /// The rate that is reserved for each of its flows; zero for none.
    pub reserved: Rate,
}

impl Settings {
    /// The ECN field of its datagrams: capable if its TCP uses ECN.
    pub fn ecn(&self) -> Ecn {
        if self.tcp.ecn { Ecn::Ect0 } else { Ecn::NotCapable }
    }
}

/// Counters of the sender at one end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Data packets, retransmissions included.
    pub packets: u64,
    /// Retransmissions.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Causes of the retransmissions.
    pub causes: Causes,
}

impl AddAssign for Sent {
    fn add_assign(&mut self, more: Sent) {
        self.packets += more.packets;
        self.retransmitted += more.retransmitted;
        self.timeouts += more.timeouts;
        self.causes += more.causes;
    }
}

impl Sub for Sent {
    type Output = Sent;

    fn sub(self, before: Sent) -> Sent {
        Sent {
            packets: self.packets - before.packets,
            retransmitted: self.retransmitted - before.retransmitted,
            timeouts: self.timeouts - before.timeouts,
            causes: self.causes - before.causes,
        }
    }
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// A single stream in order.
    #[default]
    Tcp,
    /// Streams that do not wait for each other.
    Quic,
}

/// The source that calls a carrier, and the time of the call.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Number of the source: its index in the scenario.
    pub source: u16,
    /// Settings for its packets.
    pub settings: &'a Settings,
    /// The time at which the source acts.
    pub now: Time,
}

/// Transports what sources send, and reports transfers and streams.
///
/// Sources receive events between their actions, never within one.
pub trait Carrier {
    /// Returns the host on an access link of `node` with this access delay: [`Net::host`].
    fn host(&mut self, node: u16, delay: Span) -> HostId;
    /// Opens a connection between two nodes, or between a node and a host on an access link of the other.
    fn connect(&mut self, by: Caller<'_>, ends: (u16, u16), host: HostId) -> ConnId;
    /// Opens a connection that sends `bytes` in one direction, or without end if `None`. It closes and
    /// reports itself; `requested` is its start in the report.
    fn transfer(&mut self, by: Caller<'_>, ends: (u16, u16), bytes: Option<u64>, requested: Time) -> ConnId;
    /// The QUIC connections of this carrier; `None` if it has none.
    fn quic(&mut self) -> Option<&mut dyn QuicCarrier> {
        None
    }
    /// Sends `bytes` more from one end.
    fn send(&mut self, conn: ConnId, side: Side, bytes: u64, now: Time);
    /// Closes the direction from one end.
    fn close(&mut self, conn: ConnId, side: Side, now: Time);
    /// Counters of the sender at one end. Zeros if the carrier does not count them.
    fn counts(&self, conn: ConnId, side: Side) -> Sent;
    /// Number of bytes of a part of the stream to one end that arrived within the measurement interval, in
    /// order or not.
    fn measured(&self, conn: ConnId, side: Side, part: Range<u64>) -> u64;
    /// Opens a stream of datagrams, which reports itself: for the flow with the key `flow`, or for a new one.
    fn stream(&mut self, by: Caller<'_>, ends: (u16, u16), flow: Option<FlowKey>, start: Time) -> StreamId;
    /// Sends a datagram whose IP packet has `bytes` bytes.
    fn datagram(&mut self, stream: StreamId, bytes: u32, now: Time);
    /// Sends a datagram with a departure time: [`Datagram::departure`].
    fn datagram_at(&mut self, stream: StreamId, bytes: u32, departure: Time, now: Time);
    /// Sends a datagram with all its fields.
    fn datagram_as(&mut self, stream: StreamId, datagram: Datagram, now: Time);
    /// Returns a number for a flow that the source reports itself.
    fn flow_id(&mut self, by: Caller<'_>) -> u64;
    /// Records the report of a flow by its source.
    fn report(&mut self, report: FlowReport);
}

/// Transports what sources send over QUIC. All other calls for a connection are in [`Carrier`], which concern
/// its stream 0.
pub trait QuicCarrier {
    /// Opens a connection: as [`Carrier::connect`].
    fn quic_connect(&mut self, by: Caller<'_>, ends: (u16, u16), host: HostId) -> ConnId;
    /// Opens a connection for a transfer: as [`Carrier::transfer`].
    fn quic_transfer(
        &mut self,
        by: Caller<'_>,
        ends: (u16, u16),
        bytes: Option<u64>,
        requested: Time,
    ) -> ConnId;
    /// Sends the whole of a stream from one end: `bytes`, and then its end. A new number opens a stream.
    fn send_stream(&mut self, conn: ConnId, side: Side, stream: u32, bytes: u64, now: Time);
    /// Number of bytes of a stream to one end that arrived within the measurement interval.
    fn measured_stream(&mut self, conn: ConnId, side: Side, stream: u32) -> u64;
}

/// The calls that a source may make while it acts.
pub struct Net<'a> {
    caller: Caller<'a>,
    carrier: &'a mut dyn Carrier,
    wake: &'a mut Time,
}

impl<'a> Net<'a> {
    /// The calls of one action of a source, carried out by `carrier`. The time of the next wake-up is left in
    /// `wake`.
    pub fn new(caller: Caller<'a>, carrier: &'a mut dyn Carrier, wake: &'a mut Time) -> Net<'a> {
        Net { caller, carrier, wake }
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.caller.now
    }

    /// Sets the time of the next wake-up. Only the latest call counts.
    pub fn wake_at(&mut self, at: Time) {
        *self.wake = at;
    }

    /// Opens a connection that sends `bytes` from one node to another, closes and reports itself; `None`
    /// sends without end.
    pub fn transfer(&mut self, from: u16, to: u16, bytes: Option<u64>) -> ConnId {
        self.transfer_since(from, to, bytes, self.now())
    }

    /// Opens a [`transfer`](Net::transfer) that the application requested at an earlier time, which is its
    /// start in the report.
    pub fn transfer_since(&mut self, from: u16, to: u16, bytes: Option<u64>, requested: Time) -> ConnId {
        self.carrier.transfer(self.caller, (from, to), bytes, requested)
    }

    /// Returns the host on an access link of `node` with the one-way delay `delay`: packets between the host
    /// and the node take that time, in both directions, without a queue. A node and a delay always give the
    /// same host.
    pub fn host(&mut self, node: u16, delay: Span) -> HostId {
        self.carrier.host(node, delay)
    }

    /// Opens a connection whose end at the node of `host` is that host.
    pub fn connect_host(&mut self, from: u16, to: u16, host: HostId) -> ConnId {
        self.carrier.connect(self.caller, (from, to), host)
    }

    /// Opens a connection between two nodes. [`send`](Net::send) and [`close`](Net::close) write to its ends
    /// and close them.
    pub fn connect(&mut self, from: u16, to: u16) -> ConnId {
        self.carrier.connect(self.caller, (from, to), HostId::default())
    }

    /// The QUIC connections of the carrier.
    fn quic(&mut self) -> &mut dyn QuicCarrier {
        self.carrier.quic().expect("the reader of scenarios refuses QUIC where it is not carried")
    }

    /// Opens a [`transfer_since`](Net::transfer_since) over one of the protocols.
    pub fn transfer_over(
        &mut self,
        protocol: Protocol,
        (from, to): (u16, u16),
        bytes: Option<u64>,
        requested: Time,
    ) -> ConnId {
        let by = self.caller;
        match protocol {
            Protocol::Tcp => self.carrier.transfer(by, (from, to), bytes, requested),
            Protocol::Quic => self.quic().quic_transfer(by, (from, to), bytes, requested),
        }
    }

    /// Opens a connection between two nodes over one of the protocols.
    pub fn connect_over(&mut self, protocol: Protocol, (from, to): (u16, u16), host: HostId) -> ConnId {
        let by = self.caller;
        match protocol {
            Protocol::Tcp => self.carrier.connect(by, (from, to), host),
            Protocol::Quic => self.quic().quic_connect(by, (from, to), host),
        }
    }

    /// Sends the whole of a stream of a QUIC connection from the end `side`.
    pub fn send_stream(&mut self, conn: ConnId, side: Side, stream: u32, bytes: u64) {
        let now = self.now();
        self.quic().send_stream(conn, side, stream, bytes, now);
    }

    /// Number of bytes of a stream of a QUIC connection to `side` that arrived within the measurement
    /// interval.
    pub fn measured_stream(&mut self, conn: ConnId, side: Side, stream: u32) -> u64 {
        self.quic().measured_stream(conn, side, stream)
    }

    /// Sends `bytes` more from the end `side`.
    pub fn send(&mut self, conn: ConnId, side: Side, bytes: u64) {
        self.carrier.send(conn, side, bytes, self.caller.now);
    }

    /// Closes the direction from the end `side`.
    pub fn close(&mut self, conn: ConnId, side: Side) {
        self.carrier.close(conn, side, self.caller.now);
    }

    /// Counters of the sender at `side` so far.
    pub fn counts(&self, conn: ConnId, side: Side) -> Sent {
        self.carrier.counts(conn, side)
    }

    /// Number of bytes of a part of the stream to `side` that arrived within the measurement interval, in
    /// order or not. `part` counts bytes from the beginning of the connection.
    pub fn measured(&self, conn: ConnId, side: Side, part: Range<u64>) -> u64 {
        self.carrier.measured(conn, side, part)
    }

    /// Opens a stream of datagrams from one node to another.
    pub fn stream(&mut self, from: u16, to: u16) -> StreamId {
        self.stream_from(from, to, self.now())
    }

    /// Opens a [`stream`](Net::stream), numbered now, whose first datagram is sent at `start`.
    pub fn stream_from(&mut self, from: u16, to: u16, start: Time) -> StreamId {
        self.carrier.stream(self.caller, (from, to), None, start)
    }

    /// Opens a [`stream`](Net::stream) for a flow with a key already, such as one of a capture.
    pub fn stream_of(&mut self, from: u16, to: u16, flow: FlowKey) -> StreamId {
        self.carrier.stream(self.caller, (from, to), Some(flow), self.caller.now)
    }

    /// Sends a datagram whose IP packet has `bytes` bytes.
    pub fn datagram(&mut self, stream: StreamId, bytes: u32) {
        self.carrier.datagram(stream, bytes, self.caller.now);
    }

    /// Hands over a datagram that should not leave before a time: [`Datagram::departure`].
    pub fn datagram_at(&mut self, stream: StreamId, bytes: u32, departure: Time) {
        self.carrier.datagram_at(stream, bytes, departure, self.caller.now);
    }

    /// Sends a datagram with all its fields, such as one of a capture.
    pub fn datagram_as(&mut self, stream: StreamId, datagram: Datagram) {
        self.carrier.datagram_as(stream, datagram, self.caller.now);
    }

    /// Returns a number for a flow that the source reports itself.
    pub fn flow_id(&mut self) -> u64 {
        self.carrier.flow_id(self.caller)
    }

    /// Reports a flow of a source whose flows are not connections (a request with its response, a page).
    pub fn report(&mut self, report: FlowReport) {
        self.carrier.report(FlowReport { source: self.caller.source, ..report });
    }
}
