//! A stream of datagrams.

use std::ops::Range;

use giveway_qdisc::{Dscp, Ecn, Ending, FlowKey, FlowKind, FlowReport, Label, Meta, Packet, Rate, Time};

use crate::counters::Datagrams;
use crate::net::Datagram;
use crate::segment::{Segment, UDP_HEADER};
use crate::traffic::flow;

/// A stream of datagrams.
pub(super) struct Stream {
    /// Number of the flow.
    pub(super) id: u64,
    pub(super) source: u16,
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) flow: FlowKey,
    pub(super) ecn: Ecn,
    pub(super) class: u16,
    pub(super) dscp: Dscp,
    pub(super) reserved: Rate,
    pub(super) start: Time,
    /// Number of datagrams sent so far.
    pub(super) number: u64,
    /// Bytes sent so far.
    pub(super) offset: u64,
    pub(super) counters: Datagrams,
}

impl Stream {
    /// The next datagram of the stream, which has the number `number` in the transport.
    pub(super) fn datagram(
        &mut self,
        number: u32,
        datagram: Datagram,
        now: Time,
        measured: &Range<Time>,
    ) -> Packet<Segment> {
        let Datagram { bytes, header, ecn, departure } = datagram;
        let segment = Segment::datagram(number, self.source, self.number, payload(bytes) as u16, now);
        let meta = Meta {
            bytes,
            class: self.class,
            ecn,
            header,
            flow: self.flow,
            from: self.from,
            to: self.to,
            offset: u32::try_from(self.offset).unwrap_or(u32::MAX),
            reserved: self.reserved,
            label: departure.map_or(Label::NONE, Label::departing),
            ..Meta::default()
        };
        self.number += 1;
        self.offset += u64::from(bytes);
        if measured.contains(&now) {
            self.counters.sent(payload(bytes));
        }
        Packet { meta, payload: segment }
    }

    pub(super) fn deliver(&mut self, meta: &Meta, segment: &Segment, now: Time, measured: &Range<Time>) {
        if segment.is_copied_datagram() {
            return;
        }
        let bytes = payload(meta.bytes);
        self.counters.on_arrival(bytes, now, measured.contains(&now));
        let sent = segment.datagram_sent();
        if measured.contains(&sent) {
            self.counters.on_receipt(bytes, sent, now);
        }
    }

    pub(super) fn report(&self, now: Time) -> FlowReport {
        let known = flow(self.id, (self.from, self.to), self.start, 0);
        let known = FlowReport { source: self.source, kind: FlowKind::Datagrams, ..known };
        self.counters.report(FlowReport { ending: Ending::Completed, ..known }, now)
    }
}

/// Data bytes of a UDP datagram in an IP packet of `bytes` bytes.
fn payload(bytes: u32) -> u32 {
    bytes.saturating_sub(UDP_HEADER)
}
