//! A bounded FIFO, the queue of disciplines that only decide at arrival.

use std::collections::VecDeque;

use crate::backlog::Backlog;
use crate::cx::{Cx, DropReason};
use crate::packet::Packet;
use crate::units::Limit;

/// Packets in order of arrival, up to a limit.
#[derive(Debug)]
pub struct Buffer<P> {
    limit: Limit,
    queue: VecDeque<Packet<P>>,
    backlog: Backlog,
}

impl<P> Buffer<P> {
    /// An empty buffer.
    pub fn new(limit: Limit) -> Buffer<P> {
        let queue = VecDeque::with_capacity(limit.initial_capacity());
        Buffer { limit, queue, backlog: Backlog::ZERO }
    }

    /// True if a packet of this length fits now.
    #[inline]
    pub fn admits(&self, bytes: u32) -> bool {
        self.limit.admits(self.backlog, bytes)
    }

    /// Appends a packet, or drops it if it does not fit. Returns true if it was appended.
    #[inline]
    pub fn push(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) -> bool {
        if !self.admits(pkt.bytes()) {
            let alone = self.limit.admits(Backlog::ZERO, pkt.bytes());
            cx.drop(pkt, if alone { DropReason::Overlimit } else { DropReason::TooLarge });
            return false;
        }
        self.backlog.add(pkt.bytes());
        self.queue.push_back(pkt);
        true
    }

    /// Removes the first packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet<P>> {
        let pkt = self.queue.pop_front()?;
        self.backlog.sub(pkt.bytes());
        Some(pkt)
    }

    /// Packets and bytes in the buffer.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The packets in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &Packet<P>> {
        self.queue.iter()
    }

    /// Drops all packets.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for pkt in self.queue.drain(..) {
            cx.drop(pkt, DropReason::Reset);
        }
        self.backlog = Backlog::ZERO;
    }
}
