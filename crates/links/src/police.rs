//! A policer in front of a discipline: a token bucket that drops what exceeds it, as `tc`'s action `police`
//! with `conform-exceed drop`. It delays nothing.

use std::any::Any;

use giveway_qdisc::blocks::TokenBucket;
use giveway_qdisc::{Backlog, Bytes, ClassState, Cx, DropReason, FlowTable, Next, Packet, Qdisc, Rate, Time};

/// The parameters of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Police {
    /// The rate at which the bucket fills.
    pub rate: Rate,
    /// The size of the bucket.
    pub burst: Bytes,
}

/// A discipline behind a policer.
pub struct Policed<P> {
    bucket: TokenBucket,
    inner: Box<dyn Qdisc<P>>,
}

impl<P> Policed<P> {
    /// A discipline behind a policer with a full bucket.
    pub fn new(police: Police, inner: Box<dyn Qdisc<P>>) -> Policed<P> {
        Policed { bucket: TokenBucket::new(police.rate, police.burst), inner }
    }
}

impl<P: 'static> Qdisc<P> for Policed<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let (bytes, now) = (pkt.bytes(), cx.now());
        // A packet that would have to wait exceeds the profile.
        if self.bucket.ready(bytes, now) > now {
            return cx.drop(pkt, DropReason::Policy);
        }
        self.bucket.spend(bytes, now);
        self.inner.enqueue(pkt, cx);
    }
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.inner.dequeue(cx)
    }
    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }
    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.inner.reset(cx);
        self.bucket.refill();
    }
    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.inner.rate_changed(rate, now);
    }
    /// The bucket keeps its credit, and the discipline takes over from the one behind the old policer.
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = old.as_any_mut().and_then(|old| old.downcast_mut::<Policed<P>>()) else { return };
        self.bucket.take_over(old.bucket, cx.now());
        self.inner.take_over(&mut *old.inner, cx);
    }
    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
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
    use giveway_qdisc::{FlowKey, Outbox};
    use std::collections::VecDeque;

    /// First in, first out, without a limit.
    #[derive(Default)]
    struct Queue(VecDeque<Packet<u32>>);

    impl Qdisc<u32> for Queue {
        fn enqueue(&mut self, pkt: Packet<u32>, _: &mut Cx<'_, u32>) {
            self.0.push_back(pkt);
        }
        fn dequeue(&mut self, _: &mut Cx<'_, u32>) -> Next<u32> {
            self.0.pop_front().map_or(Next::Empty, Next::Packet)
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

    /// A bucket of 3,000 bytes that fills at 8 Mbit/s, 1,000 bytes per millisecond.
    #[test]
    fn what_exceeds_the_bucket_is_dropped_and_the_rest_waits_for_nothing() {
        let police = Police { rate: Rate::mbit(8), burst: Bytes(3000) };
        let mut policed = Policed::new(police, Box::new(Queue::default()));
        let mut out = Outbox::default();
        // Two of 1,500 bytes empty it. At 1 ms there are 1,000 bytes: too few for 1,001, enough for 1,000.
        let arrivals = [(0, 1500, true), (0, 1500, true), (0, 40, false), (1, 1001, false), (1, 1000, true)];
        for (number, (ms, bytes, passes)) in (0..).zip(arrivals) {
            let before = policed.backlog().packets;
            let pkt = Packet::new(FlowKey(1), bytes, number);
            policed.enqueue(pkt, &mut Cx::new(Time::ms(ms), &mut out));
            assert_eq!(policed.backlog().packets > before, passes, "packet {number}");
        }
        let dropped: Vec<_> = out.dropped.iter().map(|(pkt, why)| (pkt.payload, *why)).collect();
        assert_eq!(dropped, [(2, DropReason::Policy), (3, DropReason::Policy)]);
        out.dropped.clear();
        policed.reset(&mut Cx::new(Time::ms(1), &mut out));
        assert_eq!(out.dropped.len(), 3);
        policed.enqueue(Packet::new(FlowKey(1), 3000, 9), &mut Cx::new(Time::ms(1), &mut out));
        assert_eq!(policed.backlog().packets, 1, "the bucket is full again");
    }
}
