//! A bounded FIFO, the queue of disciplines that only decide at arrival.

use super::queue::Queue;
use crate::backlog::Backlog;
use crate::cx::{Cx, DropReason};
use crate::packet::Packet;
use crate::units::Limit;

/// Packets in order of arrival, up to a limit.
#[derive(Debug)]
pub struct Buffer<P> {
    limit: Limit,
    queue: Queue<P>,
}

impl<P> Buffer<P> {
    /// An empty buffer.
    pub fn new(limit: Limit) -> Buffer<P> {
        Buffer { limit, queue: Queue::new(limit) }
    }

    /// True if a packet of this length fits now.
    #[inline]
    pub fn admits(&self, bytes: u32) -> bool {
        self.limit.admits(self.queue.backlog(), bytes)
    }

    /// Appends a packet, or drops it if it does not fit. Returns true if it was appended.
    #[inline]
    pub fn push(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) -> bool {
        if !self.admits(pkt.bytes()) {
            let alone = self.limit.admits(Backlog::ZERO, pkt.bytes());
            cx.drop(pkt, if alone { DropReason::Overlimit } else { DropReason::TooLarge });
            return false;
        }
        self.queue.push(pkt);
        true
    }

    /// Removes the first packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet<P>> {
        self.queue.pop()
    }

    /// Packets and bytes in the buffer.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// The packets in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &Packet<P>> {
        self.queue.iter()
    }

    /// Drops all packets.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
    }
}
