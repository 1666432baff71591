//! A policer in front of a discipline: a token bucket that drops what exceeds it, as `tc`'s action `police`
//! with `conform-exceed drop`. It delays nothing.

use giveway_qdisc::blocks::TokenBucket;
use giveway_qdisc::{Backlog, Bytes, Cx, DropReason, FlowTable, Next, Packet, Qdisc, Rate, Time};

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

impl<P> Qdisc<P> for Policed<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let (bytes, now) = (pkt.bytes(), cx.now());
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
    fn flow_table(&self) -> FlowTable {
        self.inner.flow_table()
    }
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.gauges(visit);
    }
}
