//! Packets in order of arrival, counted.

use std::collections::VecDeque;

use crate::backlog::Backlog;
use crate::cx::{Cx, DropReason};
use crate::packet::Packet;
use crate::units::Limit;

/// A FIFO that counts its packets and bytes. It has no bound: its owner decides which packets it admits.
#[derive(Debug)]
pub struct Queue<P> {
    packets: VecDeque<Packet<P>>,
    backlog: Backlog,
}

impl<P> Queue<P> {
    /// An empty queue with memory for [`Limit::initial_capacity`] packets.
    pub fn new(limit: Limit) -> Queue<P> {
        Queue { packets: VecDeque::with_capacity(limit.initial_capacity()), backlog: Backlog::ZERO }
    }

    /// An empty queue that requests memory when packets arrive.
    pub fn growing() -> Queue<P> {
        Queue { packets: VecDeque::new(), backlog: Backlog::ZERO }
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, pkt: Packet<P>) {
        self.backlog.add(pkt.bytes());
        self.packets.push_back(pkt);
    }

    /// Removes the first packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet<P>> {
        let pkt = self.packets.pop_front()?;
        self.backlog.sub(pkt.bytes());
        Some(pkt)
    }

    /// Removes the last packet.
    pub fn pop_last(&mut self) -> Option<Packet<P>> {
        let pkt = self.packets.pop_back()?;
        self.backlog.sub(pkt.bytes());
        Some(pkt)
    }

    /// The last packet.
    pub fn last(&self) -> Option<&Packet<P>> {
        self.packets.back()
    }

    /// Drops the last packets, until the rest is within `limit`: when the limit of a queue is lowered.
    pub fn shorten(&mut self, limit: Limit, cx: &mut Cx<'_, P>) {
        while !limit.allows(self.backlog) {
            let Some(last) = self.pop_last() else { return };
            cx.drop(last, DropReason::Overlimit);
        }
    }

    /// Like [`shorten`](Queue::shorten), but drops the first packets.
    pub fn shorten_from_the_head(&mut self, limit: Limit, cx: &mut Cx<'_, P>) {
        while !limit.allows(self.backlog) {
            let Some(first) = self.pop() else { return };
            cx.drop(first, DropReason::Overlimit);
        }
    }

    /// Removes the packet at `index`, counted from the first, which is 0.
    pub fn remove(&mut self, index: usize) -> Option<Packet<P>> {
        let pkt = self.packets.remove(index)?;
        self.backlog.sub(pkt.bytes());
        Some(pkt)
    }

    /// Packets and bytes in the queue.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// True without packets.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// The packets in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &Packet<P>> {
        self.packets.iter()
    }

    /// Drops all packets.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for pkt in self.packets.drain(..) {
            cx.drop(pkt, DropReason::Reset);
        }
        self.backlog = Backlog::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Outbox;
    use crate::packet::FlowKey;
    use crate::units::Time;

    #[test]
    fn counts_what_is_queued() {
        let mut queue = Queue::new(Limit::Packets(1));
        for bytes in [100, 200, 300, 400] {
            queue.push(Packet::new(FlowKey(0), bytes, ()));
        }
        let bytes = |pkt: Option<Packet<()>>| pkt.map(|pkt| pkt.bytes());
        assert_eq!(queue.backlog(), Backlog { packets: 4, bytes: 1000 });
        assert_eq!(bytes(queue.remove(1)), Some(200));
        assert_eq!(bytes(queue.remove(3)), None);
        assert_eq!(bytes(queue.pop()), Some(100));
        assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: 700 });
        assert_eq!((queue.len(), queue.iter().map(Packet::bytes).collect::<Vec<_>>()), (2, vec![300, 400]));

        let mut out = Outbox::default();
        for bytes in [500, 600, 700] {
            queue.push(Packet::new(FlowKey(0), bytes, ()));
        }
        assert_eq!(queue.last().map(Packet::bytes), Some(700));
        queue.shorten(Limit::Packets(4), &mut Cx::new(Time::ZERO, &mut out));
        queue.shorten_from_the_head(Limit::Bytes(1500), &mut Cx::new(Time::ZERO, &mut out));
        let dropped: Vec<_> = out.dropped.drain(..).map(|(pkt, why)| (pkt.bytes(), why)).collect();
        assert_eq!(dropped, [(700, DropReason::Overlimit), (300, DropReason::Overlimit)]);
        assert_eq!(queue.iter().map(Packet::bytes).collect::<Vec<_>>(), [400, 500, 600]);
        queue.shorten(Limit::Packets(2), &mut Cx::new(Time::ZERO, &mut out));
        assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: 900 });
        out.dropped.clear();
        queue.reset(&mut Cx::new(Time::ZERO, &mut out));
        assert_eq!(out.dropped.len(), 2);
        assert!(queue.is_empty() && queue.pop().is_none());
        assert_eq!(queue.backlog(), Backlog::ZERO);
    }
}
