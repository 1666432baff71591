//! The host's side of a trace: a discipline around a discipline.
//!
//! Packets are numbered in the order in which they come, whatever they carry: the number is put beside the payload ([`Stamped`])
//! on the way in and taken off on the way out. So nothing is asked of a host's payload, and the discipline inside is the same
//! code, built for packets that are eight bytes larger.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use giveway_qdisc::{Backlog, Cx, DropReason, FlowTable, Meta, Next, Outbox, Packet, Qdisc, Time};
use rtrb::Producer;

use crate::format::{Answer, Call, Close, Mark};
use crate::record::WhenFull;

/// What a packet carries inside a traced discipline.
#[derive(Debug)]
pub struct Stamped<P> {
    number: u64,
    payload: P,
}

/// A discipline whose operations are written down. It decides nothing: what leaves, is dropped and is marked is decided inside.
pub struct Traced<P> {
    inner: Box<dyn Qdisc<Stamped<P>>>,
    out: Outbox<Stamped<P>>,
    /// The number of the next packet.
    next: u64,
    line: Line,
}

/// What goes through the ring. The call comes first and says how many records of drops and marks follow; all of them
/// become visible to the reader at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    Call { now: Time, call: Call, dropped: u32, marked: u32 },
    Dropped(u64, DropReason),
    Marked(Mark),
    Close(Close),
}

// What `Options::slots` says of the memory of a ring.
const _: () = assert!(size_of::<Record>() <= 80);

/// The end of a ring at which records are put in.
pub(crate) struct Line {
    ring: Producer<Record>,
    when_full: WhenFull,
    open: bool,
    /// How many traces of disciplines were cut, over all of the recording.
    cut: Arc<AtomicU64>,
}

impl<P> Traced<P> {
    pub(crate) fn new(inner: Box<dyn Qdisc<Stamped<P>>>, line: Line) -> Traced<P> {
        Traced { inner, out: Outbox::default(), next: 0, line }
    }

    /// Writes down what the call said, and passes it on.
    fn told(&mut self, call: Call, cx: &mut Cx<'_, P>) {
        self.line.tell(cx.now(), call, &self.out);
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
        self.inner.enqueue(Packet { meta, payload: stamped }, &mut Cx::new(cx.now(), &mut self.out));
        self.told(Call::Enqueue(meta), cx);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        match self.inner.dequeue(&mut Cx::new(cx.now(), &mut self.out)) {
            Next::Packet(Packet { meta, payload: Stamped { number, payload } }) => {
                let Meta { label, ecn, .. } = meta;
                self.told(Call::Dequeue(Answer::Packet { number, label, ecn }), cx);
                Next::Packet(Packet { meta, payload })
            }
            Next::At(at) => {
                self.told(Call::Dequeue(Answer::At(at)), cx);
                Next::At(at)
            }
            Next::Empty => {
                self.told(Call::Dequeue(Answer::Empty), cx);
                Next::Empty
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.inner.reset(&mut Cx::new(cx.now(), &mut self.out));
        self.told(Call::Reset, cx);
    }

    fn flow_table(&self) -> FlowTable {
        self.inner.flow_table()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.gauges(visit);
    }
}

impl Line {
    pub(crate) fn new(ring: Producer<Record>, when_full: WhenFull, cut: Arc<AtomicU64>) -> Line {
        Line { ring, when_full, open: true, cut }
    }

    /// All records of a call, or none: then the trace ends before it.
    #[inline]
    fn tell<P>(&mut self, now: Time, call: Call, said: &Outbox<Stamped<P>>) {
        if !self.open {
            return;
        }
        let (dropped, marked) = (said.dropped.len(), said.marked.len());
        // One more than is needed stays free: the close has room for certain.
        let room = dropped + marked + 2;
        let mut may_fit = room <= self.ring.buffer().capacity();
        while may_fit {
            if let Ok(slots) = self.ring.write_chunk_uninit(room) {
                let call = Record::Call { now, call, dropped: dropped as u32, marked: marked as u32 };
                let drops = said.dropped.iter().map(|(pkt, why)| Record::Dropped(pkt.payload.number, *why));
                let marks = said.marked.iter().map(|meta| Record::Marked(Mark::of(meta)));
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
            // It fails only where nobody reads any more.
            let told = self.ring.push(Record::Close(close));
            if close != Close::Whole || told.is_err() || self.ring.is_abandoned() {
                self.cut.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.close(Close::Whole);
    }
}
