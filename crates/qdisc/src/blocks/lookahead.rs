//! A discipline whose next packet can be seen before it is taken: for shapers, which must know its length.
//!
//! The packet that was seen has left the child, so it waits here: it counts in the backlog, is given up in a reset,
//! and is the next to leave whatever arrives meanwhile. This costs a child that sorts (a priority queue, an AQM) its
//! say over one packet.

use crate::cx::{Cx, DropReason};
use crate::packet::Packet;
use crate::qdisc::{Backlog, FlowTable, Next, Qdisc};
use crate::units::Time;

/// A child and the packet that was seen.
#[derive(Debug)]
pub struct Lookahead<P, Q> {
    child: Q,
    seen: Option<Packet<P>>,
}

/// What would leave next.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// A packet of this many bytes.
    Bytes(u32),
    /// Nothing before this time: the child shapes, too.
    At(Time),
    /// Nothing is held.
    Empty,
}

impl<P, Q: Qdisc<P>> Lookahead<P, Q> {
    /// Around `child`.
    pub fn new(child: Q) -> Lookahead<P, Q> {
        Lookahead { child, seen: None }
    }

    /// What would leave next. The same until it is taken.
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
        let mut held = self.child.backlog();
        if let Some(pkt) = &self.seen {
            held.add(pkt.bytes());
        }
        held
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        if let Some(pkt) = self.seen.take() {
            cx.drop(pkt, DropReason::Reset);
        }
        self.child.reset(cx);
    }

    fn flow_table(&self) -> FlowTable {
        self.child.flow_table()
    }
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.child.gauges(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Outbox;
    use crate::packet::FlowKey;
    use std::collections::VecDeque;

    struct Stack(VecDeque<Packet<u32>>);

    /// Serves the newest first, so that looking ahead shows.
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
    fn what_was_seen_leaves_next_and_is_never_forgotten() {
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
