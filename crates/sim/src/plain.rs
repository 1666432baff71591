//! A plain queue: first in, first out with tail drop.
//!
//! It needs no events for its decisions. The departure of a packet follows from the packets before it, and
//! nothing that arrives later changes it. So the queue decides about its packets in batches:
//! - A packet is added as soon as its arrival is known, which is when its transmission by the link before
//!   this one is known. Added packets are sorted by the moment of their arrival.
//! - The queue decides about a packet once no earlier one can be added any more, and at the latest when the
//!   packet could reach the far end of the link. At that time it decides about all others that have arrived.
//! - A packet that is accepted is added to the next plain link. So a packet that crosses plain links causes
//!   one event, which is its arrival at a host or at a queue of another kind.
//!
//! # Equality with a port
//! Drops, departures, counters and the reports to an observer equal a [`Port`](giveway_qdisc::Port) with
//! `fifo` and `drop tail`. At equal times the [event queue](crate::event_queue) determines the order. An
//! observer gets the reports of one port in their order, but later than the reports of other ports
//! ([`Interest::Port`](giveway_qdisc::Interest)).

use std::collections::VecDeque;

use giveway_qdisc::{
    Backlog, DropReason, FlowTable, Limit, Meta, Packet, PortId, Probe, Rate, Span, Time, Wire,
};

use crate::event_queue::Moment;
use crate::packets::Number;
use crate::segment::Segment;

/// A packet that will arrive.
struct Coming {
    arrival: Moment,
    bytes: u32,
    number: Number,
}

/// A plain queue with its transmitter.
pub(crate) struct Plain {
    id: PortId,
    limit: Limit,
    wire: Wire,
    /// Start of the transmission and length of each accepted packet whose transmission may not have begun.
    starts: VecDeque<(Time, u32)>,
    /// Sum of `starts`.
    waiting: Backlog,
    /// The packets of `starts`, if they are reported to an observer.
    reported: Option<VecDeque<(Meta, Segment)>>,
    /// Packets that will arrive, sorted by the moment of their arrival.
    coming: VecDeque<Coming>,
}

impl Plain {
    /// An empty queue with this limit, in front of a link of this rate.
    pub fn new(id: PortId, limit: Limit, rate: Rate, observed: bool) -> Plain {
        Plain {
            id,
            limit,
            wire: Wire::new(rate),
            starts: VecDeque::new(),
            waiting: Backlog::ZERO,
            reported: observed.then(VecDeque::new),
            coming: VecDeque::new(),
        }
    }

    /// Decides about a packet that arrives. Returns the end of its transmission, or `None` if the queue is
    /// full. `own` is the moment of an event of this link at that time: a transmission that starts at it
    /// counts as started if the event is before the arrival.
    #[inline]
    pub fn accept<R: Probe<Segment>>(
        &mut self,
        pkt: &mut Packet<Segment>,
        arrival: Moment,
        own: impl Fn() -> Moment,
        probe: &mut R,
    ) -> Option<Time> {
        let now = arrival.at;
        pkt.meta.arrived = now;
        let some_begin = self.starts.front().is_some_and(|(start, _)| *start <= now);
        if some_begin {
            self.begin(|start| start < now || (start == now && own().before(arrival)), probe);
        }
        if self.reported.is_some() {
            probe.on_arrival(self.id, &pkt.meta, now);
        }
        let bytes = pkt.meta.bytes;
        let admitted = self.limit.admits(self.waiting, bytes);
        if !admitted {
            probe.on_drop(self.id, &pkt.meta, &pkt.payload, DropReason::Overlimit, now);
        }
        // An arrival makes the transmitter take the next packet if it is free.
        if some_begin {
            self.begin(|start| start <= now, probe);
        }
        if !admitted {
            return None;
        }
        let start = self.wire.free_at().max(now);
        self.wire.occupy(bytes, start);
        // A packet that finds the transmitter idle does not wait.
        if start > now {
            self.starts.push_back((start, bytes));
            self.waiting.add(bytes);
            if let Some(reported) = &mut self.reported {
                reported.push_back((pkt.meta, pkt.payload));
            }
        } else if self.reported.is_some() {
            probe.on_transmission(self.id, &pkt.meta, &pkt.payload, now);
        }
        Some(self.wire.free_at())
    }

    /// Reports the transmissions that have started.
    #[inline]
    fn begin<R: Probe<Segment>>(&mut self, begun: impl Fn(Time) -> bool, probe: &mut R) {
        while let Some((start, bytes)) = self.starts.front().copied()
            && begun(start)
        {
            self.waiting.sub(bytes);
            self.starts.pop_front();
            if let Some(reported) = &mut self.reported {
                // Not taken out first: that would copy it.
                let (meta, segment) = reported.front().expect("each start has its packet");
                probe.on_transmission(self.id, meta, segment, start);
                reported.pop_front();
            }
        }
    }

    /// Adds a packet that will arrive. True if it is the first of those that will.
    #[inline]
    pub fn add(&mut self, arrival: Moment, bytes: u32, number: Number) -> bool {
        let coming = Coming { arrival, bytes, number };
        if self.coming.back().is_none_or(|last| last.arrival.before(arrival)) {
            self.coming.push_back(coming);
            return self.coming.len() == 1;
        }
        // Packets of one moment keep their order.
        let place = self.coming.partition_point(|other| !arrival.before(other.arrival));
        self.coming.insert(place, coming);
        place == 0
    }

    /// Takes the next of the added packets if it arrives before `now`, with the moment of its arrival.
    #[inline]
    pub fn next_arrival(&mut self, now: Moment) -> Option<(Moment, Number)> {
        let Coming { arrival, number, .. } = *self.coming.front()?;
        if !arrival.before(now) {
            return None;
        }
        self.coming.pop_front();
        Some((arrival, number))
    }

    /// A time before which no added packet ends its transmission. If the queue is sure to accept the next of
    /// them, it is the end of its transmission. Otherwise a shorter packet behind it may be accepted in its
    /// place, so it is a picosecond after the earliest start. `Time::NEVER` without an added packet.
    #[inline]
    pub fn next_end(&self) -> Time {
        let Some(next) = self.coming.front() else { return Time::NEVER };
        let start = self.wire.free_at().max(next.arrival.at);
        // Packets leave `waiting` until the arrival, and none comes before this one.
        let accepted = self.limit.admits(self.waiting, next.bytes);
        start + if accepted { self.wire.duration(next.bytes) } else { Span::from_ps(1) }
    }

    /// True if packets have been added that have not arrived.
    #[inline]
    pub fn expects(&self) -> bool {
        !self.coming.is_empty()
    }

    /// Reports all transmissions that have started by `now`, after all other events at that time.
    pub fn finish<R: Probe<Segment>>(&mut self, now: Time, probe: &mut R) {
        self.begin(|start| start <= now, probe);
    }

    /// Reports a sample: the packets that wait at `now`, after all other events at that time.
    pub fn sample<R: Probe<Segment>>(&mut self, now: Time, probe: &mut R) {
        self.finish(now, probe);
        probe.on_sample(self.id, self.waiting, &FlowTable::NONE, &[], now);
    }

    /// Takes all packets that have not arrived.
    pub fn drain(&mut self) -> impl Iterator<Item = Number> + '_ {
        self.coming.drain(..).map(|coming| coming.number)
    }
}
