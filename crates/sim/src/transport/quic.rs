//! QUIC connections.

use std::rc::Rc;

use giveway_qdisc::{Ending, FlowReport, SenderSample, Time};

use super::connection::{Carried, Transfer};
use crate::event_queue::{EventQueue, Timer};
use crate::net::{ConnId, Side};
use crate::quic::{End, QuicConfig};

/// The bit that distinguishes the number of a QUIC connection from a number of TCP.
pub(super) const QUIC: u32 = 1 << 31;

/// True for the number of a QUIC connection.
#[inline]
pub(super) fn is_quic(conn: ConnId) -> bool {
    conn.0 & QUIC != 0
}

/// The index of a QUIC connection.
#[inline]
pub(super) fn index(conn: ConnId) -> usize {
    (conn.0 & !QUIC) as usize
}

/// A QUIC connection. It stays at its index until another connection takes the index.
pub(super) struct Conn {
    /// Number of connections that had this index before.
    pub(super) serial: u32,
    pub(super) source: u16,
    pub(super) alive: bool,
    pub(super) timer: Timer,
    /// The time that the timer is set to; never later than the earliest deadline.
    pub(super) armed: Time,
    pub(super) config: Rc<QuicConfig>,
    pub(super) client: End,
    pub(super) server: End,
    /// Set for a one-way transfer, which the transport closes and reports. It uses the stream 0.
    pub(super) transfer: Option<Box<Transfer>>,
}

/// All QUIC connections of a run.
#[derive(Default)]
pub(super) struct QuicConns {
    pub(super) conns: Vec<Conn>,
    /// Indices that can be used again.
    pub(super) free: Vec<u32>,
}

impl Conn {
    pub(super) fn end(&self, side: Side) -> &End {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    pub(super) fn end_mut(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
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

    pub(super) fn report(&self, now: Time, ending: Ending) -> Option<FlowReport> {
        let transfer = self.transfer.as_ref().filter(|transfer| !transfer.reported)?;
        let state = Carried {
            source: self.source,
            nodes: self.client.nodes(),
            delivered: self.server.delivered(0),
            measured: self.server.measured(0, 0, u64::MAX),
            counts: self.client.counts(),
            causes: self.client.causes(),
        };
        Some(transfer.report(&state, now, ending))
    }
}

impl QuicConns {
    /// Frees the index of a connection that is over. Its source must have received all its events.
    pub fn recycle(&mut self, conn: ConnId) {
        self.free.push(index(conn) as u32);
    }

    /// The measurement interval starts, or ends.
    pub fn measuring(&mut self, begins: bool) {
        for conn in self.conns.iter_mut().filter(|conn| conn.alive) {
            conn.client.measuring(begins);
            conn.server.measuring(begins);
        }
    }

    /// Reports of the transfers that are still open when the run ends.
    pub fn unfinished(&self, now: Time) -> impl Iterator<Item = FlowReport> + '_ {
        let open = self.conns.iter().filter(|conn| conn.alive);
        open.filter_map(move |conn| conn.report(now, Ending::Unfinished))
    }

    /// A sample of the sender of each open transfer.
    pub fn samples(&self, now: Time) -> impl Iterator<Item = SenderSample> + '_ {
        self.conns.iter().filter(|conn| conn.alive).filter_map(move |conn| {
            let (transfer, end) = (conn.transfer.as_ref()?, &conn.client);
            let (pacing_rate, delivery_rate) = end.rates(&conn.config);
            Some(SenderSample {
                source: conn.source,
                id: transfer.id,
                now,
                window: end.controller().window(),
                threshold: end.controller().threshold(),
                flight: end.flight(),
                acked: end.acknowledged_bytes(),
                rtt: end.smoothed_rtt(),
                pacing_rate,
                delivery_rate,
            })
        })
    }

    /// Bytes of memory that connections take, and the largest number of them at once.
    pub fn memory(&self) -> (usize, usize) {
        let heap = self.conns.iter().map(|conn| conn.client.heap_bytes() + conn.server.heap_bytes());
        (self.conns.capacity() * size_of::<Conn>() + heap.sum::<usize>(), self.conns.len())
    }
}
