//! A wrapper with which the next packet of a discipline can be inspected before it is dequeued, for shapers,
//! which need its length.
//!
//! The inspected packet has left the child and stays in the wrapper. It counts in the backlog, a reset drops
//! it, and it leaves next, regardless of later arrivals. So a child that sorts or drops (a priority queue, an
//! AQM) cannot change its decision about this packet.

use crate::backlog::Backlog;
use crate::classes::ClassState;
use crate::cx::{Cx, DropReason};
use crate::packet::Packet;
use crate::qdisc::{FlowTable, Next, Qdisc};
use crate::units::{Rate, Time};

/// A child discipline and the packet that was inspected.
#[derive(Debug)]
pub struct Lookahead<P, Q> {
    child: Q,
    seen: Option<Packet<P>>,
}

/// Result of an inspection.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// A packet of this many bytes leaves next.
    Bytes(u32),
    /// No packet may leave before this time, because the child is a shaper, too.
    At(Time),
    /// There is no backlog.
    Empty,
}

impl<P, Q: Qdisc<P>> Lookahead<P, Q> {
    /// A wrapper of `child`.
    pub fn new(child: Q) -> Lookahead<P, Q> {
        Lookahead { child, seen: None }
    }

    /// The child.
    pub fn child_mut(&mut self) -> &mut Q {
        &mut self.child
    }

    /// The child takes over from the child of another wrapper. If it takes all packets, the one that was
    /// inspected follows. Otherwise the rest stays in the other wrapper, behind the inspected packet.
    pub fn take_over(&mut self, old: &mut Lookahead<P, Q>, cx: &mut Cx<'_, P>) {
        self.child.take_over(&mut old.child, cx);
        if old.child.backlog() == Backlog::ZERO {
            self.seen = old.seen.take();
        }
    }

    /// Inspects the next packet. The result is the same until the packet is dequeued.
    #[inline]
    pub fn head(&mut self, cx: &mut Cx<'_, P>) -> Head {
        if let Some(pkt) = &self.seen {
            return Head::Bytes(pkt.bytes());
        }
        match self.child.dequeue(&mut cx.child()) {
            Next::Packet(pkt) => {
                let bytes = pkt.bytes();
                self.seen = Some(pkt);
                Head::Bytes(bytes)
            }
            Next::At(at) => Head::At(at),
            Next::Empty => Head::Empty,
        }
    }
}

impl<P, Q: Qdisc<P>> Qdisc<P> for Lookahead<P, Q> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.child.enqueue(pkt, cx);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        match self.seen.take() {
            Some(pkt) => Next::Packet(pkt),
            None => self.child.dequeue(cx),
        }
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.child.backlog();
        if let Some(pkt) = &self.seen {
            backlog.add(pkt.bytes());
        }
        backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        if let Some(pkt) = self.seen.take() {
            cx.drop(pkt, DropReason::Reset);
        }
        self.child.reset(cx);
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.child.rate_changed(rate, now);
    }

    fn flow_table(&self) -> FlowTable {
        self.child.flow_table()
    }
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.child.gauges(visit);
    }
    fn classes(&self, visit: &mut dyn FnMut(ClassState)) {
        self.child.classes(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Outbox;
    use crate::packet::FlowKey;
    use std::collections::VecDeque;

    struct Stack(VecDeque<Packet<u32>>);

    /// A stack, in which an inspection has a visible effect.
    impl Qdisc<u32> for Stack {
        fn enqueue(&mut self, pkt: Packet<u32>, _: &mut Cx<'_, u32>) {
            self.0.push_back(pkt);
        }
        fn dequeue(&mut self, _: &mut Cx<'_, u32>) -> Next<u32> {
            self.0.pop_back().map_or(Next::Empty, Next::Packet)
        }
        fn backlog(&self) -> Backlog {
            Backlog {
                packets: self.0.len() as u64,
                bytes: self.0.iter().map(|pkt| u64::from(pkt.bytes())).sum(),
            }
        }
        fn reset(&mut self, cx: &mut Cx<'_, u32>) {
            self.0.drain(..).for_each(|pkt| cx.drop(pkt, DropReason::Reset));
        }
    }

    #[test]
    fn an_inspected_packet_leaves_next() {
        let mut out = Outbox::default();
        let mut cx = Cx::new(Time::ZERO, &mut out);
        let mut queue = Lookahead::new(Stack(VecDeque::new()));
        assert_eq!(queue.head(&mut cx), Head::Empty);
        queue.enqueue(Packet::new(FlowKey(0), 100, 1), &mut cx);
        assert_eq!(queue.head(&mut cx), Head::Bytes(100));
        queue.enqueue(Packet::new(FlowKey(0), 200, 2), &mut cx);
        assert_eq!(queue.head(&mut cx), Head::Bytes(100));
        assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: 300 });
        assert_eq!(queue.dequeue(&mut cx).packet().map(|pkt| pkt.payload), Some(1));
        assert_eq!(queue.head(&mut cx), Head::Bytes(200));
        queue.reset(&mut cx);
        assert_eq!(queue.backlog(), Backlog::ZERO);
        assert_eq!(out.dropped.len(), 1);
    }
}
