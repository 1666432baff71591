//! A connection with its two ends, and the one-way transfer that it may carry.

use std::ops::Range;
use std::rc::Rc;

use giveway_qdisc::{Causes, Ending, FlowKind, FlowReport, Span, Time};

use crate::counters::Pauses;
use crate::event_queue::{EventQueue, Timer};
use crate::net::Side;
use crate::tcp::{Counts, Endpoint, TcpConfig};

/// A connection. It stays at its index until another connection takes the index.
pub(super) struct Conn {
    /// Number of connections that had this index before.
    pub(super) serial: u32,
    pub(super) source: u16,
    pub(super) alive: bool,
    pub(super) timer: Timer,
    /// The time that the timer is set to; never later than the earliest deadline.
    pub(super) armed: Time,
    pub(super) tcp: Rc<TcpConfig>,
    pub(super) client: Endpoint,
    pub(super) server: Endpoint,
    /// Set for a one-way transfer, which the transport closes and reports.
    pub(super) transfer: Option<Box<Transfer>>,
    /// Bytes that had arrived when the measurement interval started.
    pub(super) before: Arrived,
    /// Bytes that had arrived when the measurement interval ended.
    pub(super) after: Arrived,
}

/// Bytes that have arrived at the two ends of a connection, in order or not, each counted once.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    pub(super) client: u64,
    pub(super) server: u64,
}

impl Arrived {
    pub(super) const NONE: Arrived = Arrived { client: 0, server: 0 };
    /// An upper bound, for a moment in the future.
    pub(super) const ALL: Arrived = Arrived { client: u64::MAX, server: u64::MAX };

    pub(super) fn at(self, side: Side) -> u64 {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }
}

/// A one-way transfer from the client to the server.
pub(super) struct Transfer {
    /// Number of the flow.
    pub(super) id: u64,
    pub(super) start: Time,
    /// Size; `u64::MAX` for a transfer without an end.
    pub(super) bytes: u64,
    pub(super) pauses: Pauses,
    pub(super) reported: bool,
    /// Number of data packets that were sent within the measurement interval and have arrived.
    pub(super) arrived: u64,
    /// Sum of the delays of these packets.
    pub(super) delay_sum: Span,
}

impl Conn {
    pub(super) fn end(&self, side: Side) -> &Endpoint {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Sets the timer to the earliest deadline, unless it is set to an earlier time already.
    #[inline]
    pub(super) fn arm(&mut self, queue: &mut EventQueue) {
        if !self.alive {
            return;
        }
        let deadline = self.client.deadline().min(self.server.deadline());
        if deadline < self.armed {
            self.armed = deadline;
            queue.set(self.timer, deadline);
        }
    }

    /// Number of bytes of a part of the stream to `side` that arrived within the measurement interval. Bytes
    /// are attributed in the order of the stream: those that arrived before the interval count as its first
    /// bytes. So the parts of a stream sum to the bytes that arrived within the interval.
    pub(super) fn measured(&self, side: Side, part: Range<u64>) -> u64 {
        let end = self.end(side).arrived().min(self.after.at(side)).min(part.end);
        end.saturating_sub(part.start.max(self.before.at(side)))
    }

    pub(super) fn report(&self, now: Time, ending: Ending) -> FlowReport {
        let transfer = self.transfer.as_ref().expect("only transfers report themselves");
        let state = Carried {
            source: self.source,
            nodes: self.client.nodes(),
            delivered: self.server.delivered(),
            measured: self.measured(Side::Server, 0..u64::MAX),
            counts: self.client.counts(),
            causes: self.client.causes(),
        };
        transfer.report(&state, now, ending)
    }
}

/// The part of a transfer that its connection has carried.
pub(super) struct Carried {
    pub(super) source: u16,
    /// The nodes of the client and of the server.
    pub(super) nodes: (u16, u16),
    /// Bytes that have arrived in order.
    pub(super) delivered: u64,
    /// Bytes that have arrived within the measurement interval.
    pub(super) measured: u64,
    /// Counters of the client's sender.
    pub(super) counts: Counts,
    pub(super) causes: Causes,
}

impl Transfer {
    /// A transfer of `bytes` that was requested at `start`, and of which nothing has arrived.
    pub(super) fn new(id: u64, bytes: u64, start: Time) -> Transfer {
        let pauses = Pauses::since(start);
        Transfer { id, start, bytes, pauses, reported: false, arrived: 0, delay_sum: Span::ZERO }
    }

    pub(super) fn report(&self, state: &Carried, now: Time, ending: Ending) -> FlowReport {
        let Carried { source, nodes: (from, to), delivered, measured, counts, causes } = *state;
        let (longest_pause, paused) = self.pauses.until(now);
        FlowReport {
            id: self.id,
            source,
            kind: if self.bytes < u64::MAX { FlowKind::Transfer } else { FlowKind::Endless },
            from,
            to,
            start: self.start,
            end: now,
            bytes: if self.bytes < u64::MAX { self.bytes } else { delivered },
            delivered,
            goodput_bytes: measured,
            packets: counts.packets,
            retransmitted: counts.retransmitted.into(),
            causes,
            lost: None,
            timeouts: counts.timeouts.into(),
            delay_mean: self.delay_mean(),
            delay_p50: Span::ZERO,
            delay_p95: Span::ZERO,
            delay_p99: Span::ZERO,
            delay_max: Span::ZERO,
            longest_pause,
            paused,
            ending,
        }
    }

    /// Counts a data packet that arrived after `delay`, if it was sent within the measurement interval.
    #[inline]
    pub(super) fn record_arrival(&mut self, delay: Span, now: Time, measured: &Range<Time>) {
        // The send time is `now - delay`, to the microsecond. The sum avoids a time before zero.
        if now >= measured.start + delay && now < measured.end + delay {
            self.arrived += 1;
            self.delay_sum += delay;
        }
    }

    pub(super) fn delay_mean(&self) -> Span {
        if self.arrived == 0 { Span::ZERO } else { self.delay_sum / self.arrived }
    }
}
