//! Packets with bodies, for a discipline that decides about numbers.
//!
//! No discipline reads the payload of a packet. So each is compiled once, for numbers, and the bodies wait
//! here until the discipline returns their numbers. A packet cannot be lost or sent twice on the way: a
//! number is given to the discipline with its packet, and only with that packet does it come back.
//!
//! A discipline that takes over from another one of this kind also takes packets, and the other one keeps the
//! rest. From then on both find their bodies in one place, which they share.

use std::any::Any;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use crate::backlog::Backlog;
use crate::classes::ClassState;
use crate::cx::{Cx, DropReason, Outbox};
use crate::packet::Packet;
use crate::qdisc::{FlowTable, Next, Qdisc};
use crate::units::{Limit, Rate, Time};

/// A discipline for numbers, and the bodies of its packets.
pub struct Bodies<P> {
    inner: Box<dyn Qdisc<u64>>,
    waiting: Waiting<P>,
    out: Outbox<u64>,
}

/// The place of the bodies.
enum Waiting<P> {
    Own(Slab<P>),
    /// As soon as another discipline has taken over from this one, or the other way around.
    Shared(Rc<RefCell<Slab<P>>>),
}

/// Bodies by number.
struct Slab<P> {
    places: Vec<Place<P>>,
    /// The number that is used next.
    free: u32,
}

/// The place of a number.
enum Place<P> {
    Body(P),
    /// No body, and the number that is used after this one. Behind the last one is the end of the slab.
    Free(u32),
}

impl<P> Default for Slab<P> {
    fn default() -> Slab<P> {
        Slab { places: Vec::new(), free: 0 }
    }
}

impl<P> Slab<P> {
    // Always inlined, so that the body is not copied in between.
    #[inline(always)]
    fn put(&mut self, body: P) -> u64 {
        let number = self.free;
        match self.places.get_mut(number as usize) {
            Some(place) => {
                let Place::Free(next) = place else { unreachable!("a free number has no body") };
                self.free = *next;
                *place = Place::Body(body);
            }
            None => self.grow(body),
        }
        u64::from(number)
    }

    #[cold]
    fn grow(&mut self, body: P) {
        self.places.push(Place::Body(body));
        self.free += 1;
    }

    #[inline(always)]
    fn take(&mut self, number: u64) -> P {
        let place = std::mem::replace(&mut self.places[number as usize], Place::Free(self.free));
        let Place::Body(body) = place else { unreachable!("each number leaves once") };
        self.free = number as u32;
        body
    }
}

impl<P> Waiting<P> {
    #[inline(always)]
    fn put(&mut self, body: P) -> u64 {
        match self {
            Waiting::Own(slab) => slab.put(body),
            Waiting::Shared(slab) => slab.borrow_mut().put(body),
        }
    }

    #[inline(always)]
    fn take(&mut self, number: u64) -> P {
        match self {
            Waiting::Own(slab) => slab.take(number),
            Waiting::Shared(slab) => slab.borrow_mut().take(number),
        }
    }

    /// Another handle of the same place.
    fn share(&mut self) -> Waiting<P> {
        if let Waiting::Own(slab) = self {
            *self = Waiting::Shared(Rc::new(RefCell::new(std::mem::take(slab))));
        }
        match self {
            Waiting::Shared(slab) => Waiting::Shared(Rc::clone(slab)),
            Waiting::Own(_) => unreachable!("it was shared just now"),
        }
    }
}

/// A discipline in a port. The calls of [`Bodies`], the usual case, are not virtual.
pub(crate) enum Queue<P> {
    Numbers(Bodies<P>),
    Other(Box<dyn Qdisc<P>>),
}

impl<P: 'static> Queue<P> {
    pub fn new(mut qdisc: Box<dyn Qdisc<P>>) -> Queue<P> {
        match qdisc.as_bodies().and_then(|bodies| bodies.downcast_mut::<Bodies<P>>()) {
            // Nothing is left in the box that anybody calls.
            Some(bodies) => Queue::Numbers(std::mem::replace(bodies, Bodies::new(Box::new(Nowhere)))),
            None => Queue::Other(qdisc),
        }
    }

    #[inline(always)]
    pub fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        match self {
            Queue::Numbers(bodies) => bodies.enqueue(pkt, cx),
            Queue::Other(qdisc) => qdisc.enqueue(pkt, cx),
        }
    }

    #[inline(always)]
    pub fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        match self {
            Queue::Numbers(bodies) => bodies.dequeue(cx),
            Queue::Other(qdisc) => qdisc.dequeue(cx),
        }
    }
}

impl<P: 'static> Deref for Queue<P> {
    type Target = dyn Qdisc<P>;

    fn deref(&self) -> &Self::Target {
        match self {
            Queue::Numbers(bodies) => bodies,
            Queue::Other(qdisc) => &**qdisc,
        }
    }
}

impl<P: 'static> DerefMut for Queue<P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Queue::Numbers(bodies) => bodies,
            Queue::Other(qdisc) => &mut **qdisc,
        }
    }
}

/// A discipline that is never called.
struct Nowhere;

impl Qdisc<u64> for Nowhere {
    fn enqueue(&mut self, pkt: Packet<u64>, cx: &mut Cx<'_, u64>) {
        cx.drop(pkt, DropReason::Reset);
    }
    fn dequeue(&mut self, _cx: &mut Cx<'_, u64>) -> Next<u64> {
        Next::Empty
    }
    fn backlog(&self) -> Backlog {
        Backlog::ZERO
    }
    fn reset(&mut self, _cx: &mut Cx<'_, u64>) {}
}

impl<P> Bodies<P> {
    /// Bodies for a discipline without packets.
    pub fn new(inner: Box<dyn Qdisc<u64>>) -> Bodies<P> {
        Bodies { inner, waiting: Waiting::Own(Slab::default()), out: Outbox::default() }
    }

    /// Gives the bodies of dropped packets back.
    #[inline]
    fn settle(&mut self, cx: &mut Cx<'_, P>) {
        // Nearly all calls drop and mark nothing.
        if !self.out.dropped.is_empty() || !self.out.marked.is_empty() {
            cx.relay(&mut self.out, |number| self.waiting.take(number));
        }
    }
}

impl<P: 'static> Qdisc<P> for Bodies<P> {
    #[inline(always)]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let payload = self.waiting.put(pkt.payload);
        self.inner.enqueue(Packet { meta: pkt.meta, payload }, &mut cx.within(&mut self.out));
        self.settle(cx);
    }

    #[inline(always)]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let next = self.inner.dequeue(&mut cx.within(&mut self.out));
        self.settle(cx);
        match next {
            Next::Packet(Packet { meta, payload }) => {
                Next::Packet(Packet { meta, payload: self.waiting.take(payload) })
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
        // No body waits here before the first call.
        self.waiting = old.waiting.share();
        self.inner.take_over(&mut *old.inner, &mut cx.within(&mut self.out));
        self.settle(cx);
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn as_bodies(&mut self) -> Option<&mut dyn Any> {
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
    use super::*;

    /// A discipline around another one, which other disciplines may see through.
    struct Around(Box<dyn Qdisc<()>>);

    impl Qdisc<()> for Around {
        fn enqueue(&mut self, pkt: Packet<()>, cx: &mut Cx<'_, ()>) {
            self.0.enqueue(pkt, cx);
        }
        fn dequeue(&mut self, cx: &mut Cx<'_, ()>) -> Next<()> {
            self.0.dequeue(cx)
        }
        fn backlog(&self) -> Backlog {
            self.0.backlog()
        }
        fn reset(&mut self, cx: &mut Cx<'_, ()>) {
            self.0.reset(cx);
        }
        fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
            self.0.as_any_mut()
        }
    }

    #[test]
    fn a_port_calls_bodies_directly_and_leaves_no_discipline_out() {
        let bodies = || -> Box<dyn Qdisc<()>> { Box::new(Bodies::new(Box::new(Nowhere))) };
        assert!(matches!(Queue::new(bodies()), Queue::Numbers(_)));
        assert!(matches!(Queue::new(Box::new(Around(bodies()))), Queue::Other(_)));
    }
}
