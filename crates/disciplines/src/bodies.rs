//! A discipline for packets with bodies. Inside, it decides about numbers.
//!
//! No discipline reads the payload of a packet. So each is compiled once, for numbers, and the bodies wait
//! here until the discipline returns their numbers. A packet cannot be lost or sent twice on the way: a
//! number is given to the discipline with its packet, and only with that packet does it come back.
//!
//! A discipline that takes over from another one of this kind also takes packets, and the other one keeps the
//! rest. Both then find their bodies in the same place.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use giveway_qdisc::{Backlog, ClassState, Cx, FlowTable, Limit, Next, Outbox, Packet, Qdisc, Rate, Time};

/// A discipline, and the bodies of its packets.
pub(crate) struct Bodies<P> {
    inner: Box<dyn Qdisc<u64>>,
    waiting: Rc<RefCell<Waiting<P>>>,
    out: Outbox<u64>,
}

/// Bodies by number.
#[derive(Debug)]
struct Waiting<P> {
    bodies: Vec<Option<P>>,
    /// Numbers without a body. The last one is the next to be used, so that the memory stays small.
    free: Vec<u32>,
}

impl<P> Bodies<P> {
    /// Bodies for a discipline without packets.
    pub(crate) fn new(inner: Box<dyn Qdisc<u64>>) -> Bodies<P> {
        let waiting = Waiting { bodies: Vec::new(), free: Vec::new() };
        Bodies { inner, waiting: Rc::new(RefCell::new(waiting)), out: Outbox::default() }
    }

    /// Gives the bodies of dropped packets back.
    #[inline]
    fn settle(&mut self, cx: &mut Cx<'_, P>) {
        // Nearly all calls drop and mark nothing.
        if !self.out.dropped.is_empty() || !self.out.marked.is_empty() {
            let mut waiting = self.waiting.borrow_mut();
            cx.relay(&mut self.out, |number| waiting.take(number));
        }
    }
}

impl<P> Waiting<P> {
    #[inline]
    fn put(&mut self, body: P) -> u64 {
        let Some(number) = self.free.pop() else {
            self.bodies.push(Some(body));
            return self.bodies.len() as u64 - 1;
        };
        self.bodies[number as usize] = Some(body);
        u64::from(number)
    }

    #[inline]
    fn take(&mut self, number: u64) -> P {
        let body = self.bodies[number as usize].take();
        self.free.push(number as u32);
        body.expect("each number has left once")
    }
}

impl<P: 'static> Qdisc<P> for Bodies<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let payload = self.waiting.borrow_mut().put(pkt.payload);
        self.inner.enqueue(Packet { meta: pkt.meta, payload }, &mut cx.within(&mut self.out));
        self.settle(cx);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let next = self.inner.dequeue(&mut cx.within(&mut self.out));
        self.settle(cx);
        match next {
            Next::Packet(Packet { meta, payload }) => {
                Next::Packet(Packet { meta, payload: self.waiting.borrow_mut().take(payload) })
            }
            Next::At(time) => Next::At(time),
            Next::Empty => Next::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.inner.reset(&mut cx.within(&mut self.out));
        self.settle(cx);
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.inner.rate_changed(rate, now);
    }

    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = old.as_any_mut().and_then(|old| old.downcast_mut::<Bodies<P>>()) else { return };
        // Nothing waits here before the first call.
        self.waiting = Rc::clone(&old.waiting);
        self.inner.take_over(&mut *old.inner, &mut cx.within(&mut self.out));
        self.settle(cx);
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn plain(&self) -> Option<Limit> {
        self.inner.plain()
    }

    fn flow_table(&self) -> FlowTable {
        self.inner.flow_table()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.gauges(visit);
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassState)) {
        self.inner.classes(visit);
    }
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::{DropReason, FlowKey, LinkContext, Streams};

    use super::*;
    use crate::Spec;

    fn built(spec: &str) -> Box<dyn Qdisc<&'static str>> {
        let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
        spec.parse::<Spec>().unwrap().build(&context).unwrap()
    }

    /// A queue, and what it has dropped.
    struct Driven {
        qdisc: Box<dyn Qdisc<&'static str>>,
        out: Outbox<&'static str>,
    }

    impl Driven {
        fn offer(&mut self, flow: u64, bodies: &[&'static str]) {
            for body in bodies {
                let pkt = Packet::new(FlowKey(flow), 1000, *body);
                self.qdisc.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut self.out));
            }
        }
        fn sent(&mut self) -> Vec<&'static str> {
            let qdisc = &mut self.qdisc;
            let mut next = || qdisc.dequeue(&mut Cx::new(Time::ZERO, &mut self.out)).packet();
            std::iter::from_fn(|| next().map(|pkt| pkt.payload)).collect()
        }
        fn dropped(&mut self) -> Vec<(&'static str, DropReason)> {
            self.out.dropped.drain(..).map(|(pkt, why)| (pkt.payload, why)).collect()
        }
    }

    #[test]
    fn bodies_leave_and_are_dropped_with_their_packets() {
        let mut driven = Driven { qdisc: built("drr limit 3p"), out: Outbox::default() };
        driven.offer(1, &["a1", "a2", "a3"]);
        driven.offer(2, &["b1"]);
        let (gone, why) = driven.dropped()[0];
        assert_eq!(why, DropReason::Pushout, "the longest queue makes room");
        let mut sent = driven.sent();
        assert_eq!(sent[..2], ["a1", "b1"]);
        sent.push(gone);
        sent.sort_unstable();
        assert_eq!(sent, ["a1", "a2", "a3", "b1"]);
        // Numbers are used again.
        driven.offer(1, &["c1", "c2"]);
        driven.qdisc.reset(&mut Cx::new(Time::ZERO, &mut driven.out));
        assert_eq!(driven.dropped(), [("c1", DropReason::Reset), ("c2", DropReason::Reset)]);
        assert!(driven.sent().is_empty());
    }

    /// Of two bands, the second one is kept, and the first one is gone: its packets stay with the old tree.
    #[test]
    fn a_discipline_that_takes_over_shares_the_bodies_with_the_one_before() {
        let mut old =
            Driven { qdisc: built("tbf rate 1mbit burst 2kb child (fifo limit 9p)"), out: Outbox::default() };
        old.offer(1, &["a", "b", "c"]);
        let mut new =
            Driven { qdisc: built("tbf rate 2mbit burst 9kb child (fifo limit 9p)"), out: Outbox::default() };
        new.qdisc.take_over(&mut *old.qdisc, &mut Cx::new(Time::ZERO, &mut new.out));
        let total = new.qdisc.backlog().packets + old.qdisc.backlog().packets;
        assert_eq!(total, 3);
        new.offer(1, &["d"]);
        old.qdisc.reset(&mut Cx::new(Time::ZERO, &mut old.out));
        new.qdisc.reset(&mut Cx::new(Time::ZERO, &mut new.out));
        let all = [old.dropped(), new.dropped()].concat();
        let mut all: Vec<_> = all.into_iter().map(|(body, _)| body).collect();
        all.sort_unstable();
        assert_eq!(all, ["a", "b", "c", "d"]);
    }
}
