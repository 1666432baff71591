//! The backend's side of a trace: a discipline that wraps a discipline and records its calls.
//!
//! Packets are numbered in the order of their arrival. The number is added to the payload at enqueue
//! ([`Stamped`]) and removed when the packet leaves or is dropped. Payloads therefore need no numbers, and
//! the inner discipline is the same code, built for packets that are eight bytes larger.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use giveway_qdisc::{
    Backlog, ClassState, Cx, DropReason, FlowTable, Meta, Next, Outbox, Packet, Qdisc, Rate, Time,
};
use rtrb::Producer;

use crate::format::{Answer, Call, Close, Mark};

/// The payload of a packet inside a traced discipline: its number and its own payload.
#[derive(Debug)]
pub struct Stamped<P> {
    number: u64,
    payload: P,
}

/// A discipline that records the operations of an inner discipline, and makes no decision itself.
pub struct Traced<P> {
    inner: Box<dyn Qdisc<Stamped<P>>>,
    out: Outbox<Stamped<P>>,
    /// Number of the next packet.
    next: u64,
    ring: RingWriter,
}

/// Reaction to a full ring: the writer does not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The trace of that discipline ends with a mark, and the backend continues. For backends with a real
    /// clock.
    Cut,
    /// The backend waits. For simulations, which have no real clock. A single call with more records than the
    /// ring has slots still cuts the trace.
    Wait,
}

/// A record in a ring. A call comes first, with the number of drops and marks that follow; the reader sees
/// all of them at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    Call { now: Time, call: Call, dropped: u32, marked: u32 },
    Dropped(u64, DropReason),
    Marked(Mark),
    Close(Close),
}

// The size that the documentation of `Options::slots` names.
const _: () = assert!(size_of::<Record>() <= 80);

/// The writing end of a ring.
pub(crate) struct RingWriter {
    ring: Producer<Record>,
    when_full: WhenFull,
    open: bool,
    /// Number of sections of the recording that were cut.
    cut: Arc<AtomicU64>,
}

impl<P> Traced<P> {
    pub(crate) fn new(inner: Box<dyn Qdisc<Stamped<P>>>, ring: RingWriter) -> Traced<P> {
        Traced { inner, out: Outbox::default(), next: 0, ring }
    }

    /// Records a call, and relays its drops and marks.
    fn record(&mut self, call: Call, cx: &mut Cx<'_, P>) {
        self.ring.record(cx.now(), call, &self.out);
        if !self.out.dropped.is_empty() || !self.out.marked.is_empty() {
            cx.relay(&mut self.out, |stamped| stamped.payload);
        }
    }
}

impl<P> Qdisc<P> for Traced<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let Packet { meta, payload } = pkt;
        let stamped = Stamped { number: self.next, payload };
        self.next += 1;
        self.inner.enqueue(Packet { meta, payload: stamped }, &mut cx.within(&mut self.out));
        self.record(Call::Enqueue(meta), cx);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        match self.inner.dequeue(&mut cx.within(&mut self.out)) {
            Next::Packet(Packet { meta, payload: Stamped { number, payload } }) => {
                let Meta { label, ecn, .. } = meta;
                self.record(Call::Dequeue(Answer::Packet { number, label, ecn }), cx);
                Next::Packet(Packet { meta, payload })
            }
            Next::At(at) => {
                self.record(Call::Dequeue(Answer::At(at)), cx);
                Next::At(at)
            }
            Next::Empty => {
                self.record(Call::Dequeue(Answer::Empty), cx);
                Next::Empty
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.inner.reset(&mut cx.within(&mut self.out));
        self.record(Call::Reset, cx);
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.inner.rate_changed(rate, now);
        self.ring.record(now, Call::Rate(rate), &self.out);
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

impl RingWriter {
    pub(crate) fn new(ring: Producer<Record>, when_full: WhenFull, cut: Arc<AtomicU64>) -> RingWriter {
        RingWriter { ring, when_full, open: true, cut }
    }

    /// Writes all records of a call. If they do not fit, writes none of them and ends the trace.
    #[inline]
    fn record<P>(&mut self, now: Time, call: Call, out: &Outbox<Stamped<P>>) {
        if !self.open {
            return;
        }
        let (dropped, marked) = (out.dropped.len(), out.marked.len());
        // One slot more than needed, so that the close always fits.
        let needed = dropped + marked + 2;
        let mut may_fit = needed <= self.ring.buffer().capacity();
        while may_fit {
            if let Ok(slots) = self.ring.write_chunk_uninit(needed) {
                let call = Record::Call { now, call, dropped: dropped as u32, marked: marked as u32 };
                let drops = out.dropped.iter().map(|(pkt, why)| Record::Dropped(pkt.payload.number, *why));
                let marks = out.marked.iter().map(|meta| Record::Marked(Mark::of(meta)));
                slots.fill_from_iter(std::iter::once(call).chain(drops).chain(marks));
                return;
            }
            may_fit = self.when_full == WhenFull::Wait && !self.ring.is_abandoned();
            if may_fit {
                std::thread::yield_now();
            }
        }
        self.close(Close::Overrun);
    }

    pub(crate) fn close(&mut self, close: Close) {
        if std::mem::replace(&mut self.open, false) {
            // Fails only if the reader has ended.
            let pushed = self.ring.push(Record::Close(close));
            if close != Close::Whole || pushed.is_err() || self.ring.is_abandoned() {
                self.cut.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        self.close(Close::Whole);
    }
}
