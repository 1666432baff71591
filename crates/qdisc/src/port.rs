//! A packet's life at an output port. The backend fills [`Meta`](crate::Meta) and offers the packet; the
//! discipline enqueues it, and later dequeues or drops it; the link transmits it. A probe observes each step.
//! Every backend has such ports.
//!
//! The port counts packets, so disciplines only make decisions. In packets and in bytes, arrived = sent +
//! dropped + backlog.

use std::collections::VecDeque;

use crate::backlog::Backlog;
use crate::bodies::Queue;
use crate::classes::ClassState;
use crate::cx::{Cx, DropReason, Outbox};
use crate::flow_key::FiveTuple;
use crate::packet::Packet;
use crate::probe::{Interest, PortId, Probe};
use crate::qdisc::{FlowTable, Next, Qdisc};
use crate::units::{Limit, Rate, Time};

/// An output port: a discipline in front of a link.
pub struct Port<P> {
    id: PortId,
    qdisc: Queue<P>,
    /// Replaced disciplines that still have a backlog, the oldest first. Their packets leave before the
    /// packets of `qdisc`.
    leaving: VecDeque<Queue<P>>,
    wire: Wire,
    out: Outbox<P>,
    counters: PortCounters,
}

/// The transmitter of a link: one packet at a time.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    rate: Rate,
    free_at: Time,
    /// The last length and its transmission time. Lengths repeat, and a division costs more than a
    /// comparison.
    last: (u32, crate::Span),
}

/// Counters of a port, in packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets offered to the port.
    pub arrived: Backlog,
    /// Packets transmitted by the link.
    pub sent: Backlog,
    /// Packets dropped by the discipline.
    pub dropped: Backlog,
    /// Packets marked by the discipline (ECN); `sent` includes them.
    pub marked: u64,
}

impl PortCounters {
    /// Packets that are neither sent nor dropped.
    pub fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.arrived.packets - self.sent.packets - self.dropped.packets,
            bytes: self.arrived.bytes - self.sent.bytes - self.dropped.bytes,
        }
    }
}

impl<P: 'static> Port<P> {
    /// A port with its discipline and the rate of its link.
    pub fn new(id: PortId, qdisc: Box<dyn Qdisc<P>>, rate: Rate) -> Port<P> {
        Port {
            id,
            qdisc: Queue::new(qdisc),
            leaving: VecDeque::new(),
            wire: Wire::new(rate),
            out: Outbox::default(),
            counters: PortCounters::default(),
        }
    }

    /// Enqueues a packet that arrives at `now`. Pull afterwards: the packet may leave at once.
    #[inline]
    pub fn offer(&mut self, pkt: Packet<P>, now: Time, probe: &mut impl Probe<P>) {
        self.offer_with(pkt, None, now, probe);
    }

    /// Enqueues a packet whose addresses and ports are known, for filters.
    #[inline]
    pub fn offer_with(
        &mut self,
        mut pkt: Packet<P>,
        headers: Option<&FiveTuple>,
        now: Time,
        probe: &mut impl Probe<P>,
    ) {
        self.out.dropped.clear();
        pkt.meta.arrived = now;
        self.counters.arrived.add(pkt.meta.bytes);
        probe.on_arrival(self.id, &pkt.meta, now);
        self.qdisc.enqueue(pkt, &mut Cx::new(now, &mut self.out).with_headers(headers));
        self.settle(now, probe);
    }

    /// Dequeues the packet that the link transmits from `now` on, or returns the time of the next call.
    #[inline]
    pub fn pull(&mut self, now: Time, probe: &mut impl Probe<P>) -> Next<P> {
        self.out.dropped.clear();
        if now < self.wire.free_at {
            return Next::At(self.wire.free_at);
        }
        let next = if self.leaving.is_empty() {
            self.qdisc.dequeue(&mut Cx::new(now, &mut self.out))
        } else {
            self.pull_the_oldest(now)
        };
        self.settle(now, probe);
        if let Next::Packet(pkt) = &next {
            self.wire.occupy(pkt.meta.bytes, now);
            self.counters.sent.add(pkt.meta.bytes);
            probe.on_transmission(self.id, &pkt.meta, &pkt.payload, now);
        }
        next
    }

    /// Replaces the discipline. The new one takes over what it can ([`Qdisc::take_over`]). The old one keeps
    /// the rest of its backlog and decides about it until it is empty; only then does the new one release
    /// packets. Arrivals go to the new one at once. So no packet is overtaken, or lost for the reason that
    /// its discipline is gone.
    pub fn replace(&mut self, qdisc: Box<dyn Qdisc<P>>, now: Time, probe: &mut impl Probe<P>) {
        let mut old = std::mem::replace(&mut self.qdisc, Queue::new(qdisc));
        self.out.dropped.clear();
        self.qdisc.take_over(&mut *old, &mut Cx::new(now, &mut self.out));
        self.settle(now, probe);
        if old.backlog() != Backlog::ZERO {
            self.leaving.push_back(old);
        }
    }

    /// Number of replaced disciplines that still have a backlog.
    pub fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Dequeues from the oldest discipline with a packet to release.
    #[cold]
    fn pull_the_oldest(&mut self, now: Time) -> Next<P> {
        while let Some(oldest) = self.leaving.front_mut() {
            match oldest.dequeue(&mut Cx::new(now, &mut self.out)) {
                Next::Empty => drop(self.leaving.pop_front()),
                next => return next,
            }
        }
        self.qdisc.dequeue(&mut Cx::new(now, &mut self.out))
    }

    /// Drops the backlog.
    pub fn reset(&mut self, now: Time, probe: &mut impl Probe<P>) {
        self.out.dropped.clear();
        for mut oldest in self.leaving.drain(..) {
            oldest.reset(&mut Cx::new(now, &mut self.out));
        }
        self.qdisc.reset(&mut Cx::new(now, &mut self.out));
        self.settle(now, probe);
    }

    /// Reports a packet that the link behind the port lost after the discipline had released it.
    pub fn lose(&self, pkt: &Packet<P>, why: DropReason, now: Time, probe: &mut impl Probe<P>) {
        probe.on_drop(self.id, &pkt.meta, &pkt.payload, why, now);
    }

    /// Reports a sample to the probe: the backlog, and the flow table and the gauges of the discipline.
    /// `gauges` is a buffer.
    pub fn sample(&self, now: Time, gauges: &mut Vec<(&'static str, f64)>, probe: &mut impl Probe<P>) {
        gauges.clear();
        self.gauges(&mut |name, value| gauges.push((name, value)));
        probe.on_sample(self.id, self.counters.backlog(), &self.flow_table(), gauges, now);
    }

    /// Reports the classes of the discipline to the probe, if it observes the port.
    pub fn report_classes(&self, now: Time, probe: &mut impl Probe<P>) {
        if probe.interest(self.id) > Interest::Nothing {
            self.qdisc.classes(&mut |state| probe.on_class(self.id, &state, now));
        }
    }

    /// The limit of a discipline that is plain ([`Qdisc::plain`]).
    pub fn plain(&self) -> Option<Limit> {
        self.qdisc.plain()
    }

    /// State per flow of the discipline.
    pub fn flow_table(&self) -> FlowTable {
        self.qdisc.flow_table()
    }

    /// Visits the gauges of the discipline: name and value.
    pub fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.qdisc.gauges(visit);
    }

    /// Visits the classes of the discipline, each before those below it.
    pub fn classes(&self, visit: &mut dyn FnMut(ClassState)) {
        self.qdisc.classes(visit);
    }

    /// Takes the packets that the last call of [`offer`](Port::offer), [`pull`](Port::pull) or
    /// [`reset`](Port::reset) dropped, in the order of their drops. The next of these calls discards those
    /// that are left here.
    #[inline]
    pub fn dropped(&mut self) -> std::vec::Drain<'_, (Packet<P>, DropReason)> {
        self.out.dropped.drain(..)
    }

    /// Number of the port.
    pub fn id(&self) -> PortId {
        self.id
    }
    /// Counters of the port.
    pub fn counters(&self) -> &PortCounters {
        &self.counters
    }
    /// Time at which the transmission of the current packet ends.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.wire.free_at
    }
    /// Rate of the link.
    pub fn rate(&self) -> Rate {
        self.wire.rate
    }
    /// Changes the rate of the link at `now`, and tells it to the disciplines.
    pub fn change_rate(&mut self, rate: Rate, now: Time) {
        self.set_rate(rate);
        self.leaving.iter_mut().for_each(|oldest| oldest.rate_changed(rate, now));
        self.qdisc.rate_changed(rate, now);
    }
    /// Sets the end of the current transmission, for a link whose rate changes during it.
    #[inline]
    pub fn occupy_until(&mut self, end: Time) {
        self.wire.free_at = end;
    }
    /// Changes the rate of the link, from the next packet on.
    pub fn set_rate(&mut self, rate: Rate) {
        self.wire = Wire { free_at: self.wire.free_at, ..Wire::new(rate) };
    }

    /// Counts and reports the drops and marks of one call of the discipline.
    #[inline]
    fn settle(&mut self, now: Time, probe: &mut impl Probe<P>) {
        if self.out.dropped.is_empty() && self.out.marked.is_empty() {
            return;
        }
        for meta in self.out.marked.drain(..) {
            self.counters.marked += 1;
            probe.on_mark(self.id, &meta, now);
        }
        // Dropped packets stay in the buffer: they are the backend's until its next call.
        for (pkt, why) in &self.out.dropped {
            self.counters.dropped.add(pkt.meta.bytes);
            probe.on_drop(self.id, &pkt.meta, &pkt.payload, *why, now);
        }
    }
}

impl Wire {
    /// An idle transmitter.
    pub fn new(rate: Rate) -> Wire {
        Wire { rate, free_at: Time::ZERO, last: (0, crate::Span::ZERO) }
    }

    /// Time at which the transmitter becomes free.
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// The transmission time of a packet of `bytes` bytes.
    #[inline]
    pub fn duration(&self, bytes: u32) -> crate::Span {
        if self.last.0 == bytes { self.last.1 } else { self.rate.time_for(u64::from(bytes)) }
    }

    /// Transmits a packet of `bytes` bytes from `now` on.
    #[inline]
    pub fn occupy(&mut self, bytes: u32, now: Time) {
        self.last = (bytes, self.duration(bytes));
        self.free_at = now + self.last.1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowKey;

    /// A FIFO. If it is `slow`, packets leave at whole seconds only.
    struct Plain {
        queue: VecDeque<Packet<&'static str>>,
        slow: bool,
    }

    fn plain(slow: bool) -> Box<dyn Qdisc<&'static str>> {
        Box::new(Plain { queue: VecDeque::new(), slow })
    }

    impl Qdisc<&'static str> for Plain {
        fn enqueue(&mut self, pkt: Packet<&'static str>, _cx: &mut Cx<'_, &'static str>) {
            self.queue.push_back(pkt);
        }
        fn dequeue(&mut self, cx: &mut Cx<'_, &'static str>) -> Next<&'static str> {
            let second = Time::s(1).as_ps();
            if self.slow && !self.queue.is_empty() && !cx.now().as_ps().is_multiple_of(second) {
                return Next::At(Time::from_ps(cx.now().as_ps().next_multiple_of(second)));
            }
            self.queue.pop_front().map_or(Next::Empty, Next::Packet)
        }
        fn backlog(&self) -> Backlog {
            let bytes = self.queue.iter().map(|pkt| u64::from(pkt.bytes())).sum();
            Backlog { packets: self.queue.len() as u64, bytes }
        }
        fn reset(&mut self, cx: &mut Cx<'_, &'static str>) {
            for pkt in self.queue.drain(..) {
                cx.drop(pkt, DropReason::Reset);
            }
        }
    }

    fn offer(port: &mut Port<&'static str>, name: &'static str, now: Time) {
        port.offer(Packet::new(FlowKey(1), 125, name), now, &mut ());
    }

    fn pull(port: &mut Port<&'static str>, now: Time) -> Option<&'static str> {
        port.pull(now, &mut ()).packet().map(|pkt| pkt.payload)
    }

    /// A and B are in a slow queue, which is replaced twice. C arrives at the second queue and D at the
    /// third.
    #[test]
    fn a_replaced_discipline_keeps_its_packets_and_goes_first() {
        let mut port = Port::new(PortId(0), plain(true), Rate::mbit(1));
        offer(&mut port, "A", Time::us(1));
        offer(&mut port, "B", Time::us(2));
        port.replace(plain(false), Time::us(3), &mut ());
        offer(&mut port, "C", Time::us(3));
        port.replace(plain(false), Time::us(3), &mut ());
        offer(&mut port, "D", Time::us(4));
        assert_eq!(port.leaving(), 2);
        assert!(
            matches!(port.pull(Time::us(5), &mut ()), Next::At(at) if at == Time::s(1)),
            "A leaves when its own queue releases it"
        );
        assert_eq!(pull(&mut port, Time::s(1)), Some("A"));
        assert_eq!(pull(&mut port, Time::s(2)), Some("B"));
        assert_eq!(pull(&mut port, Time::s(3)), Some("C"), "the queue of C would have released it at once");
        assert_eq!(pull(&mut port, Time::s(4)), Some("D"));
        assert_eq!((port.leaving(), port.counters().backlog()), (0, Backlog::ZERO));
    }

    #[test]
    fn an_empty_discipline_is_replaced_at_once_and_reset_empties_all() {
        let mut port = Port::new(PortId(0), plain(true), Rate::mbit(1));
        port.replace(plain(true), Time::us(3), &mut ());
        assert_eq!(port.leaving(), 0);
        offer(&mut port, "A", Time::us(1));
        port.replace(plain(true), Time::us(3), &mut ());
        offer(&mut port, "B", Time::us(2));
        port.reset(Time::us(3), &mut ());
        assert_eq!((port.counters().dropped.packets, port.leaving()), (2, 0));
        let dropped: Vec<_> = port.dropped().map(|(pkt, why)| (pkt.payload, why)).collect();
        assert_eq!(dropped, [("A", DropReason::Reset), ("B", DropReason::Reset)]);
        assert_eq!(port.dropped().count(), 0, "the dropped packets were taken");
        assert!(matches!(port.pull(Time::us(4), &mut ()), Next::Empty));
    }
}
