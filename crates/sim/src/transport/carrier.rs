//! The calls of sources to the transport.

use std::ops::Range;

use giveway_qdisc::{FlowKey, FlowReport, Header, Span, Time};

use super::Transport;
use super::connection::Transfer;
use super::quic::is_quic;
use super::stream::Stream;
use crate::counters::Datagrams;
use crate::event_queue::EventQueue;
use crate::net::{Caller, Carrier, ConnId, Datagram, HostId, QuicCarrier, Sent, Side, StreamId};
use crate::quic::End;
use crate::tcp::{Counts, Endpoint};

/// The [`Carrier`] of the simulation: the transport and the event queue, borrowed while a source acts.
pub(crate) struct Simulated<'a> {
    pub transport: &'a mut Transport,
    pub queue: &'a mut EventQueue,
}

impl Carrier for Simulated<'_> {
    fn host(&mut self, node: u16, delay: Span) -> HostId {
        self.transport.host(node, delay)
    }

    fn connect(&mut self, by: Caller<'_>, (from, to): (u16, u16), host: HostId) -> ConnId {
        self.transport.connect((from, to, host.0), by.source, by.settings, by.now, self.queue)
    }

    fn transfer(&mut self, by: Caller<'_>, ends: (u16, u16), bytes: Option<u64>, requested: Time) -> ConnId {
        let id = self.transport.origins[usize::from(by.source)].flow();
        let conn = self.connect(by, ends, HostId::default());
        let bytes = bytes.unwrap_or(u64::MAX);
        let this = &mut self.transport.conns[conn.0 as usize];
        this.transfer = Some(Box::new(Transfer::new(id, bytes, requested)));
        // Nothing is sent yet: the client sends with the handshake.
        this.client.write(bytes, &this.tcp);
        if bytes < u64::MAX {
            this.client.close(&this.tcp);
        }
        conn
    }

    fn quic(&mut self) -> Option<&mut dyn QuicCarrier> {
        Some(self)
    }

    fn send(&mut self, conn: ConnId, side: Side, bytes: u64, now: Time) {
        if is_quic(conn) {
            return self.transport.quic_act(conn, side, now, self.queue, |end| end.write(0, bytes, false));
        }
        self.transport.act(conn, side, now, self.queue, |end, tcp| end.write(bytes, tcp));
    }

    fn close(&mut self, conn: ConnId, side: Side, now: Time) {
        if is_quic(conn) {
            return self.transport.quic_act(conn, side, now, self.queue, End::close);
        }
        self.transport.act(conn, side, now, self.queue, Endpoint::close);
    }

    fn counts(&self, conn: ConnId, side: Side) -> Sent {
        let (counts, causes) = match is_quic(conn) {
            true => {
                let end = self.transport.quic_end(conn, side);
                (end.counts(), end.causes())
            }
            false => {
                let end = self.transport.conns[conn.0 as usize].end(side);
                (end.counts(), end.causes())
            }
        };
        let Counts { packets, retransmitted, timeouts, .. } = counts;
        Sent { packets, retransmitted: retransmitted.into(), timeouts: timeouts.into(), causes }
    }

    fn measured(&self, conn: ConnId, side: Side, part: Range<u64>) -> u64 {
        if is_quic(conn) {
            return self.transport.quic_end(conn, side).measured(0, part.start, part.end);
        }
        self.transport.conns[conn.0 as usize].measured(side, part)
    }

    fn stream(
        &mut self,
        by: Caller<'_>,
        (from, to): (u16, u16),
        flow: Option<FlowKey>,
        start: Time,
    ) -> StreamId {
        let transport = &mut *self.transport;
        let origin = &mut transport.origins[usize::from(by.source)];
        let flow = flow.unwrap_or_else(|| origin.tuple(from, to, 17).key(&transport.hasher));
        let id = origin.flow();
        transport.streams.push(Stream {
            id,
            source: by.source,
            from,
            to,
            flow,
            ecn: by.settings.ecn(),
            class: by.settings.class,
            dscp: by.settings.dscp,
            reserved: by.settings.reserved,
            start,
            number: 0,
            offset: 0,
            counters: Datagrams::default(),
        });
        StreamId(transport.streams.len() as u32 - 1)
    }

    fn datagram(&mut self, stream: StreamId, bytes: u32, now: Time) {
        let datagram = self.plain(stream, bytes);
        self.datagram_as(stream, datagram, now);
    }

    fn datagram_at(&mut self, stream: StreamId, bytes: u32, departure: Time, now: Time) {
        let datagram = Datagram { departure: Some(departure), ..self.plain(stream, bytes) };
        self.datagram_as(stream, datagram, now);
    }

    fn datagram_as(&mut self, stream: StreamId, datagram: Datagram, now: Time) {
        self.transport.datagram(stream, datagram, now);
    }

    fn flow_id(&mut self, by: Caller<'_>) -> u64 {
        self.transport.origins[usize::from(by.source)].flow()
    }

    fn report(&mut self, report: FlowReport) {
        self.transport.reports.push(report);
    }
}

impl Simulated<'_> {
    /// A datagram with the fields of its stream.
    fn plain(&self, stream: StreamId, bytes: u32) -> Datagram {
        let Stream { ecn, dscp, .. } = self.transport.streams[stream.0 as usize];
        Datagram { bytes, header: Header::new(dscp, bytes <= 64), ecn, departure: None }
    }
}

impl QuicCarrier for Simulated<'_> {
    fn quic_connect(&mut self, by: Caller<'_>, ends: (u16, u16), host: HostId) -> ConnId {
        self.transport.quic_connect(by, (ends.0, ends.1, host.0), None, self.queue)
    }

    fn quic_transfer(
        &mut self,
        by: Caller<'_>,
        ends: (u16, u16),
        bytes: Option<u64>,
        requested: Time,
    ) -> ConnId {
        let id = self.transport.origins[usize::from(by.source)].flow();
        let transfer = Transfer::new(id, bytes.unwrap_or(u64::MAX), requested);
        self.transport.quic_connect(by, (ends.0, ends.1, 0), Some(Box::new(transfer)), self.queue)
    }

    fn send_stream(&mut self, conn: ConnId, side: Side, stream: u32, bytes: u64, now: Time) {
        self.transport.quic_act(conn, side, now, self.queue, |end| end.write(stream, bytes, true));
    }

    fn measured_stream(&mut self, conn: ConnId, side: Side, stream: u32) -> u64 {
        self.transport.quic_end(conn, side).measured(stream, 0, u64::MAX)
    }
}
