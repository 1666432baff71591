//! The transport: TCP and QUIC connections and streams of datagrams, between the applications above and the
//! packets below.
//!
//! A connection has two ends, and one timer of the [`EventQueue`] for all deadlines of both. The timer is
//! armed lazily: a deadline that moves back, as the retransmission timer does with every acknowledgement,
//! does not touch it. When the timer expires early, the connection compares the deadlines with the time and
//! arms it again.
//!
//! Flows, ports and connections take their names and numbers from their source ([`Origin`]).

mod carrier;
mod connection;
mod over_quic;
mod quic;
mod stream;

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Ecn, Ending, FlowReport, Meta, Packet, SenderSample, Span, Time};

use crate::event_queue::{EventQueue, Owner};
use crate::net::{ConnId, Datagram, Event, HostId, Settings, Side, StreamId};
use crate::origin::Origin;
use crate::segment::Segment;
use crate::tcp::{Arriving, Endpoint, Identity, Outcome, TcpConfig};
pub(crate) use carrier::Simulated;
use connection::{Arrived, Conn};
use quic::{QuicConns, is_quic};
use stream::Stream;

/// Every connection and stream of a run.
pub(crate) struct Transport {
    /// Connections by index, which is the number in [`ConnId`] and [`Segment::conn`].
    conns: Vec<Conn>,
    /// Indices that can be used again.
    free: Vec<u32>,
    /// Indices of connections that are over and whose sources have not received [`Event::Closed`] or
    /// [`Event::Aborted`] yet.
    retired: Vec<u32>,
    /// QUIC connections.
    quic: QuicConns,
    streams: Vec<Stream>,
    /// Hash function of flow keys.
    hasher: SipHasher,
    /// Hosts on access links, by number: node and access delay. Number 0 is not used.
    hosts: Vec<(u16, Span)>,
    /// The number of each host.
    host_numbers: BTreeMap<(u16, Span), u16>,
    /// The measurement interval.
    measured: Range<Time>,
    /// Numbering of each source, by its number.
    origins: Vec<Origin>,
    /// Packets that the ends have sent and the engine has not forwarded yet.
    pub out: Vec<Packet<Segment>>,
    /// Events that the engine has not reported to their sources yet.
    pub events: Vec<(u16, Event)>,
    /// Reports of flows that the engine has not passed to the probe yet.
    pub reports: Vec<FlowReport>,
}

impl Transport {
    pub fn new(hasher: SipHasher, measured: Range<Time>, origins: Vec<Origin>) -> Transport {
        Transport {
            conns: Vec::new(),
            free: Vec::new(),
            retired: Vec::new(),
            quic: QuicConns::default(),
            streams: Vec::new(),
            hasher,
            hosts: vec![(u16::MAX, Span::ZERO)],
            host_numbers: BTreeMap::new(),
            measured,
            origins,
            out: Vec::new(),
            events: Vec::new(),
            reports: Vec::new(),
        }
    }

    fn host(&mut self, node: u16, delay: Span) -> HostId {
        if delay.is_zero() {
            return HostId(0);
        }
        let next = self.hosts.len() as u16;
        let known = self.host_numbers.get(&(node, delay)).copied();
        HostId(known.unwrap_or_else(|| {
            // Numbers have 16 bits. Further hosts share the last number, and so its delay.
            let number = if next < u16::MAX { next } else { u16::MAX - 1 };
            if number == next {
                self.hosts.push((node, delay));
            }
            self.host_numbers.insert((node, delay), number);
            number
        }))
    }

    /// The access delay between `node` and the end of this packet that has the number of the node; `None` if
    /// that end is at the node itself.
    #[inline]
    pub fn access_delay(&self, node: u16, segment: &Segment) -> Option<Span> {
        let (at, delay) = self.hosts[usize::from(segment.host)];
        (segment.host > 0 && at == node).then_some(delay)
    }

    fn connect(
        &mut self,
        (from, to, host): (u16, u16, u16),
        source: u16,
        settings: &Settings,
        now: Time,
        queue: &mut EventQueue,
    ) -> ConnId {
        let origin = &mut self.origins[usize::from(source)];
        let tuple = origin.tuple(from, to, 6);
        let rank = origin.connection();
        let flow = tuple.key(&self.hasher);
        let reply_flow = tuple.reversed().key(&self.hasher);
        let reused = self.free.pop();
        let number = reused.unwrap_or(self.conns.len() as u32);
        let serial = reused.map_or(0, |reused| self.conns[reused as usize].serial + 1);
        let host_node = self.hosts[usize::from(host)].0;
        let template = Segment { conn: number, serial, source, host, host_node, ..Segment::default() };
        let reply = Segment { flags: Segment::REPLY, ..template };
        let tcp = &settings.tcp;
        let Settings { class, dscp, reserved, .. } = *settings;
        let forward = Identity { flow, from, to, class, dscp, reserved };
        let reverse = Identity { flow: reply_flow, from: to, to: from, ..forward };
        let end = |fields: &Segment, identity| Endpoint::new(fields, identity, tcp);
        let mut conn = Conn {
            serial,
            source,
            alive: true,
            timer: match reused {
                Some(reused) => {
                    let timer = self.conns[reused as usize].timer;
                    queue.reuse(timer, rank);
                    timer
                }
                None => queue.add(Owner::Connection(number), rank),
            },
            armed: Time::NEVER,
            tcp: Rc::clone(tcp),
            client: end(&template, forward),
            server: end(&reply, reverse),
            transfer: None,
            // Upper bounds until `measuring` records the bytes at the bounds of the interval: no byte counts
            // before it begins, and every byte counts until it ends.
            before: if now < self.measured.start { Arrived::ALL } else { Arrived::NONE },
            after: if now < self.measured.end { Arrived::ALL } else { Arrived::NONE },
        };
        conn.client.open(now, &conn.tcp, &mut self.out);
        conn.arm(queue);
        match reused {
            Some(reused) => self.conns[reused as usize] = conn,
            None => self.conns.push(conn),
        }
        ConnId(number)
    }

    /// Lets the application act on one end, then sends what the end may send.
    fn act(
        &mut self,
        conn: ConnId,
        side: Side,
        now: Time,
        queue: &mut EventQueue,
        action: impl FnOnce(&mut Endpoint, &TcpConfig),
    ) {
        let conn = &mut self.conns[conn.0 as usize];
        let tcp = &*conn.tcp;
        let end = match side {
            Side::Client => &mut conn.client,
            Side::Server => &mut conn.server,
        };
        action(end, tcp);
        end.send(now, tcp, &mut self.out);
        conn.arm(queue);
    }

    fn datagram(&mut self, id: StreamId, datagram: Datagram, now: Time) {
        let stream = &mut self.streams[id.0 as usize];
        let packet = stream.datagram(id.0, datagram, now, &self.measured);
        self.out.push(packet);
    }

    /// Delivers a packet to its host: to an end of its connection, or to its stream. A segment that is
    /// `joined` with a later one is not acknowledged for itself.
    #[inline]
    pub fn deliver(
        &mut self,
        meta: &Meta,
        segment: &Segment,
        joined: bool,
        now: Time,
        queue: &mut EventQueue,
    ) {
        if segment.flags & (Segment::DATAGRAM | Segment::QUIC) != 0 {
            if segment.has(Segment::QUIC) {
                return self.deliver_quic(meta, segment, joined, now, queue);
            }
            return self.streams[segment.conn as usize].deliver(meta, segment, now, &self.measured);
        }
        let number = segment.conn;
        let conn = &mut self.conns[number as usize];
        if conn.serial != segment.serial || !conn.alive {
            // A late packet: its connection is over, and the index is free or has another connection.
            return;
        }
        if let Some(transfer) = &mut conn.transfer
            && segment.len > 0
        {
            transfer.record_arrival(segment.age(now), now, &self.measured);
        }
        let tcp = &*conn.tcp;
        let (end, side) = if segment.has(Segment::REPLY) {
            (&mut conn.client, Side::Client)
        } else {
            (&mut conn.server, Side::Server)
        };
        let (marked, ect1) = (meta.ecn == Ecn::Marked, meta.ecn == Ecn::Ect1);
        let outcome = end.on_segment(segment, Arriving { marked, ect1, joined }, now, tcp, &mut self.out);
        self.handle_outcome(number, side, outcome, now, queue);
    }

    /// The timer of a connection expires. It may be early for both ends, because it is armed lazily.
    pub fn on_timer(&mut self, number: u32, now: Time, queue: &mut EventQueue) {
        if is_quic(ConnId(number)) {
            return self.on_quic_timer(ConnId(number), now, queue);
        }
        let expired = &mut self.conns[number as usize];
        // `arm` only moves the timer to an earlier time, so it starts from none.
        expired.armed = Time::NEVER;
        queue.set(expired.timer, Time::NEVER);
        for side in [Side::Client, Side::Server] {
            self.on_end_timer(number, side, now, queue);
        }
        let conn = &mut self.conns[number as usize];
        conn.arm(queue);
        if conn.armed == Time::NEVER {
            // Both ends wait for the application. A timer expires after every exchange, so this costs nothing
            // on the path of a packet.
            conn.client.rest();
            conn.server.rest();
        }
    }

    /// Handles the deadline of one end, if it has passed.
    fn on_end_timer(&mut self, number: u32, side: Side, now: Time, queue: &mut EventQueue) {
        let conn = &mut self.conns[number as usize];
        let tcp = &*conn.tcp;
        let end = match side {
            Side::Client => &mut conn.client,
            Side::Server => &mut conn.server,
        };
        if conn.alive && now >= end.deadline() {
            let outcome = end.on_timer(now, tcp, &mut self.out);
            self.handle_outcome(number, side, outcome, now, queue);
        }
    }

    /// Handles the effects of a segment or of a timer. Most have none, or are data of a one-way transfer
    /// that is not complete: those return here, inlined.
    #[inline]
    fn handle_outcome(
        &mut self,
        number: u32,
        side: Side,
        outcome: Outcome,
        now: Time,
        queue: &mut EventQueue,
    ) {
        let conn = &mut self.conns[number as usize];
        if outcome.at_most_received() && !(conn.client.finished() && conn.server.finished()) {
            if !outcome.received {
                return conn.arm(queue);
            }
            if let (Side::Server, Some(transfer)) = (side, &mut conn.transfer)
                && conn.server.delivered() != transfer.bytes
            {
                transfer.pauses.progress(now);
                return conn.arm(queue);
            }
        }
        self.report_outcome(number, side, outcome, now, queue);
    }

    /// Reports effects to the application, and releases the connection if it is over.
    #[cold]
    fn report_outcome(
        &mut self,
        number: u32,
        side: Side,
        outcome: Outcome,
        now: Time,
        queue: &mut EventQueue,
    ) {
        match self.conns[number as usize].transfer {
            Some(_) => self.advance_transfer(number, side, outcome, now, queue),
            None => self.notify_source(number, side, outcome),
        }
        let conn = &mut self.conns[number as usize];
        let ended = if outcome.aborted {
            Some(Event::Aborted(ConnId(number)))
        } else if conn.client.finished() && conn.server.finished() {
            Some(Event::Closed(ConnId(number)))
        } else {
            None
        };
        match ended {
            Some(event) => {
                self.events.push((conn.source, event));
                self.release(number, queue);
            }
            None => conn.arm(queue),
        }
    }

    /// A one-way transfer needs no application: reports its completion and closes the reverse direction.
    fn advance_transfer(
        &mut self,
        number: u32,
        side: Side,
        outcome: Outcome,
        now: Time,
        queue: &mut EventQueue,
    ) {
        let conn = &mut self.conns[number as usize];
        // Only progress in order counts: that is all the receiving application would see.
        if let (Side::Server, true, Some(transfer)) = (side, outcome.received, &mut conn.transfer) {
            transfer.pauses.progress(now);
        }
        // An abort after the last byte has arrived is a completed transfer: only the close failed.
        let all = conn.transfer.as_ref().map(|transfer| transfer.bytes);
        let complete = all == Some(conn.server.delivered());
        let ending = match (complete, outcome.aborted) {
            (true, _) => Some(Ending::Completed),
            (false, true) => Some(Ending::Aborted),
            (false, false) => None,
        };
        if let (Some(ending), Some(transfer)) = (ending, &mut conn.transfer)
            && !transfer.reported
        {
            transfer.reported = true;
            let report = conn.report(now, ending);
            self.reports.push(report);
        }
        if side == Side::Server && outcome.peer_closed {
            self.act(ConnId(number), Side::Server, now, queue, Endpoint::close);
        }
    }

    /// Queues the events of a connection for its source.
    fn notify_source(&mut self, number: u32, side: Side, outcome: Outcome) {
        let conn = &self.conns[number as usize];
        let id = ConnId(number);
        // Both ends report the handshake. The server is the later one.
        if outcome.connected && side == Side::Server {
            self.events.push((conn.source, Event::Connected(id)));
        }
        if outcome.received {
            let total = conn.end(side).delivered();
            self.events.push((conn.source, Event::Received { conn: id, side, stream: 0, total }));
        }
    }

    /// Retires a connection that is over. Its index becomes free after its source has received the event, and
    /// its timer stays with the index.
    fn release(&mut self, number: u32, queue: &mut EventQueue) {
        let conn = &mut self.conns[number as usize];
        conn.alive = false;
        conn.armed = Time::NEVER;
        queue.set(conn.timer, Time::NEVER);
        self.retired.push(number);
    }

    /// Frees the indices of retired connections. Every source must have received all its events.
    #[inline]
    pub fn recycle(&mut self) {
        if !self.retired.is_empty() {
            self.recycle_all();
        }
    }

    #[cold]
    fn recycle_all(&mut self) {
        for number in self.retired.drain(..) {
            match is_quic(ConnId(number)) {
                true => self.quic.recycle(ConnId(number)),
                false => self.free.push(number),
            }
        }
    }

    /// Records the bytes that have arrived when the measurement interval starts or ends. Returns the time of
    /// the next call.
    pub fn measuring(&mut self, now: Time) -> Time {
        for conn in self.conns.iter_mut().filter(|conn| conn.alive) {
            let arrived = Arrived { client: conn.client.arrived(), server: conn.server.arrived() };
            if now < self.measured.end {
                conn.before = arrived;
            } else {
                conn.after = arrived;
            }
        }
        self.quic.measuring(now < self.measured.end);
        if now < self.measured.end { self.measured.end } else { Time::NEVER }
    }

    /// Ends the run: reports every flow that is still open. `left` has stream and send time of each datagram
    /// that is still in the network, which is neither received nor lost.
    pub fn finish(&mut self, now: Time, left: impl Iterator<Item = (u32, Time)>) {
        for conn in self.conns.iter().filter(|conn| conn.alive) {
            if conn.transfer.as_ref().is_some_and(|transfer| !transfer.reported) {
                self.reports.push(conn.report(now, Ending::Unfinished));
            }
        }
        self.reports.extend(self.quic.unfinished(now));
        // A million connections take most of the memory of a run, and the tables of their flows need some.
        self.conns = Vec::new();
        self.quic = QuicConns::default();
        for (stream, sent) in left {
            if self.measured.contains(&sent) {
                self.streams[stream as usize].counters.under_way();
            }
        }
        for stream in &self.streams {
            self.reports.push(stream.report(now));
        }
        // Sorted by flow, because the order of indices depends on the connections of other sources.
        self.reports.sort_by_key(|report| (report.source, report.id));
    }

    /// A sample of the sender of each open transfer.
    pub fn samples(&self, now: Time) -> impl Iterator<Item = SenderSample> + '_ {
        let tcp = self.conns.iter().filter(|conn| conn.alive).filter_map(move |conn| {
            let transfer = conn.transfer.as_ref()?;
            let end = &conn.client;
            let controller = end.controller()?;
            let (pacing_rate, delivery_rate) = end.rates(&conn.tcp);
            Some(SenderSample {
                source: conn.source,
                id: transfer.id,
                now,
                window: controller.window(),
                threshold: controller.threshold(),
                flight: end.flight(),
                acked: end.acknowledged_bytes(),
                rtt: end.smoothed_rtt(),
                pacing_rate,
                delivery_rate,
            })
        });
        tcp.chain(self.quic.samples(now))
    }

    /// Bytes of memory that connections take, and the largest number of them at once.
    pub fn memory(&self) -> (usize, usize) {
        let heap = |conn: &Conn| {
            let transfer = conn.transfer.as_ref().map_or(0, |transfer| size_of_val(&**transfer));
            conn.client.heap_bytes() + conn.server.heap_bytes() + transfer
        };
        let heap: usize = self.conns.iter().map(heap).sum();
        let (quic, connections) = self.quic.memory();
        (self.conns.capacity() * size_of::<Conn>() + heap + quic, self.conns.len() + connections)
    }
}
