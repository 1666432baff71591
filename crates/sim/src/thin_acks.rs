//! Acknowledgements that a link leaves out, as cable modems and other links with a slow way back do.
//!
//! A pure acknowledgement is redundant if a later one of the same connection, with a higher number, waits
//! behind it: acknowledgements are cumulative (RFC 9293, section 3.4). RFC 3449, section 5.2.1, calls this
//! ACK filtering. The filter sits at the end of the queue, where the number of those behind is known. It
//! drops nothing else: an acknowledgement with data, with SACK blocks, with the same number as the next (a
//! duplicate, which counts for loss recovery) or with an additional flag is kept, and so is the last one.
//!
//! RFC 3449 leaves open how many may be left out in a row. Here one of `most` is kept, so that a sender that
//! grows its window by acknowledgements still gets some.

use std::any::Any;

use giveway_qdisc::blocks::FlowMap;
use giveway_qdisc::{
    Backlog, ClassState, Cx, DropReason, FlowKey, FlowTable, Meta, Next, Outbox, Packet, Qdisc, Rate, Time,
};

use crate::segment::Segment;

/// A discipline whose redundant acknowledgements are dropped when they would leave.
pub struct ThinAcks {
    inner: Box<dyn Qdisc<Segment>>,
    /// Of this many in a row, one is kept.
    most: u32,
    queued: FlowMap<Queued>,
    out: Outbox<Segment>,
}

/// The queued pure acknowledgements of one direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Queued {
    packets: u32,
    /// The highest number among them; 0 if it is not known.
    highest: u64,
    /// Number of those that were left out since the last one that was kept.
    left_out: u32,
}

impl ThinAcks {
    /// A discipline that leaves out at most `most` - 1 acknowledgements in a row.
    pub fn new(most: u32, inner: Box<dyn Qdisc<Segment>>) -> ThinAcks {
        ThinAcks { inner, most, queued: FlowMap::default(), out: Outbox::default() }
    }

    /// Takes over the drops and marks of the discipline.
    fn settle(&mut self, cx: &mut Cx<'_, Segment>) {
        for (pkt, _) in &self.out.dropped {
            if let Some(flow) = pure_ack(&pkt.meta, &pkt.payload) {
                self.queued.retire(flow, |queued| {
                    if queued.highest == pkt.payload.ack {
                        queued.highest = 0;
                    }
                    queued.packets = queued.packets.saturating_sub(1);
                    queued.packets == 0
                });
            }
        }
        cx.relay(&mut self.out, |segment| segment);
    }

    /// True if an acknowledgement that leaves is redundant, and may be left out.
    fn is_left_out(&mut self, pkt: &Packet<Segment>) -> bool {
        let Some(flow) = pure_ack(&pkt.meta, &pkt.payload) else { return false };
        let (mut redundant, most) = (false, self.most);
        self.queued.retire(flow, |queued| {
            queued.packets = queued.packets.saturating_sub(1);
            redundant = pkt.payload.ack < queued.highest && queued.left_out + 1 < most;
            queued.left_out = if redundant { queued.left_out + 1 } else { 0 };
            queued.packets == 0
        });
        redundant
    }
}

/// The key of a pure acknowledgement: its connection and direction. `None` for any other packet.
#[inline]
fn pure_ack(meta: &Meta, segment: &Segment) -> Option<FlowKey> {
    segment.is_plain_ack().then(|| FlowKey(meta.flow.0 ^ u64::from(segment.flags & Segment::REPLY)))
}

impl Qdisc<Segment> for ThinAcks {
    fn enqueue(&mut self, pkt: Packet<Segment>, cx: &mut Cx<'_, Segment>) {
        if let Some(flow) = pure_ack(&pkt.meta, &pkt.payload) {
            let queued = self.queued.entry(flow, Queued::default);
            queued.packets += 1;
            queued.highest = queued.highest.max(pkt.payload.ack);
        }
        self.inner.enqueue(pkt, &mut cx.within(&mut self.out));
        self.settle(cx);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, Segment>) -> Next<Segment> {
        loop {
            let next = self.inner.dequeue(&mut cx.within(&mut self.out));
            self.settle(cx);
            match next {
                Next::Packet(pkt) if self.is_left_out(&pkt) => cx.drop(pkt, DropReason::Policy),
                next => return next,
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
        self.inner.reset(&mut cx.within(&mut self.out));
        self.settle(cx);
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.inner.rate_changed(rate, now);
    }

    /// The inner discipline takes over from the inner discipline of the old one. If it takes all packets, the
    /// filter goes on; otherwise it forgets those before, and keeps more acknowledgements for a moment.
    fn take_over(&mut self, old: &mut dyn Qdisc<Segment>, cx: &mut Cx<'_, Segment>) {
        let Some(old) = old.as_any_mut().and_then(|old| old.downcast_mut::<ThinAcks>()) else { return };
        self.inner.take_over(&mut *old.inner, &mut cx.within(&mut self.out));
        if old.inner.backlog() == Backlog::ZERO {
            self.queued = std::mem::take(&mut old.queued);
        }
        self.settle(cx);
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
    use std::collections::VecDeque;

    /// First in, first out; a third packet is refused if it is `short`.
    #[derive(Default)]
    struct Queue(VecDeque<Packet<Segment>>, bool);

    impl Qdisc<Segment> for Queue {
        fn enqueue(&mut self, pkt: Packet<Segment>, cx: &mut Cx<'_, Segment>) {
            if self.1 && self.0.len() == 2 {
                return cx.drop(pkt, DropReason::Overlimit);
            }
            self.0.push_back(pkt);
        }
        fn dequeue(&mut self, _: &mut Cx<'_, Segment>) -> Next<Segment> {
            self.0.pop_front().map_or(Next::Empty, Next::Packet)
        }
        fn backlog(&self) -> Backlog {
            Backlog { packets: self.0.len() as u64, bytes: 40 * self.0.len() as u64 }
        }
        fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
            self.0.drain(..).for_each(|pkt| cx.drop(pkt, DropReason::Reset));
        }
    }

    fn ack(flow: u64, number: u64) -> Packet<Segment> {
        let segment = Segment { flags: Segment::ACK | Segment::REPLY, ack: number, ..Segment::default() };
        Packet::new(FlowKey(flow), 40, segment)
    }

    /// The numbers that leave when all of these have been queued.
    fn leave(most: u32, short: bool, arrivals: Vec<Packet<Segment>>) -> Vec<u64> {
        let mut thin = ThinAcks::new(most, Box::new(Queue(VecDeque::new(), short)));
        let mut out = Outbox::default();
        let mut cx = Cx::new(Time::ZERO, &mut out);
        arrivals.into_iter().for_each(|pkt| thin.enqueue(pkt, &mut cx));
        let mut left = Vec::new();
        while let Next::Packet(pkt) = thin.dequeue(&mut cx) {
            left.push(pkt.payload.ack);
        }
        assert!(thin.queued.is_empty(), "what has left is forgotten");
        left
    }

    #[test]
    fn redundant_acknowledgements_are_left_out_and_the_last_is_kept() {
        let acks = |numbers: &[u64]| numbers.iter().map(|number| ack(7, *number)).collect::<Vec<_>>();
        assert_eq!(leave(100, false, acks(&[10, 20, 30, 40])), [40]);
        assert_eq!(leave(3, false, acks(&[10, 20, 30, 40, 50])), [30, 50], "one of three is kept");
        assert_eq!(leave(1, false, acks(&[10, 20])), [10, 20]);
        assert_eq!(leave(100, false, acks(&[10, 20, 20, 20])), [20, 20, 20], "duplicates are kept");
        assert_eq!(leave(100, true, acks(&[10, 20, 30])), [10, 20], "the one with 30 was refused");
    }

    #[test]
    fn other_packets_and_other_connections_are_kept() {
        let with = |change: &dyn Fn(&mut Segment)| {
            let mut pkt = ack(7, 10);
            change(&mut pkt.payload);
            pkt
        };
        let kept = vec![
            with(&|segment| segment.len = 100),
            with(&|segment| segment.sacks = 1),
            with(&|segment| segment.flags |= Segment::ECE),
            with(&|segment| segment.flags |= Segment::FIN),
            ack(8, 10),
            ack(7, 20),
        ];
        assert_eq!(leave(100, false, kept), [10, 10, 10, 10, 10, 20]);
    }
}
