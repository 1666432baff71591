//! What arrived, what is missing, and when to say so: RFC 5681 section 4.2, RFC 2018.

use crate::segment::Segment;

/// The receiving half of an endpoint.
#[derive(Debug)]
pub struct Receiver {
    /// The next sequence number expected (RCV.NXT).
    next: u64,
    /// What is here beyond a gap: disjoint, the most recently changed first (RFC 2018 section 4).
    out_of_order: Vec<(u64, u64)>,
    /// The sequence number of the FIN, once it was seen.
    fin: Option<u64>,
    /// Segments in order that are not acknowledged yet.
    pending: u32,
}

/// What a segment did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was the next one; nothing is missing.
    InOrder,
    /// It was the next one and more is here already, or it is beyond a gap: say so at once.
    OutOfOrder,
    /// It was here before: say so at once.
    Duplicate,
}

impl Receiver {
    /// Expects `next` first.
    pub fn new(next: u64) -> Receiver {
        Receiver { next, out_of_order: Vec::new(), fin: None, pending: 0 }
    }

    /// The next sequence number expected.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Whether everything up to and including the FIN is here.
    #[inline]
    pub fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }
    /// Data bytes received in order.
    #[inline]
    pub fn delivered(&self) -> u64 {
        // The SYN and the FIN take a number each.
        (self.next - u64::from(self.finished())).saturating_sub(1)
    }

    /// Data bytes received, in order or not, each counted once.
    #[inline]
    pub fn arrived_bytes(&self) -> u64 {
        // A FIN beyond a gap is one of the numbers there.
        let fin = self.fin.is_some_and(|fin| self.out_of_order.iter().any(|(_, to)| *to > fin));
        let above_gap: u64 = self.out_of_order.iter().map(|(from, to)| to - from).sum();
        self.delivered() + above_gap - u64::from(fin)
    }

    /// A segment that takes `len` sequence numbers from `seq` on.
    #[inline]
    pub fn arrived(&mut self, seq: u64, len: u64, fin: bool) -> Arrival {
        let end = seq + len;
        if fin {
            self.fin = Some(end - 1);
        }
        if end <= self.next {
            return Arrival::Duplicate;
        }
        if seq > self.next {
            return self.keep(seq, end);
        }
        self.next = end;
        if self.out_of_order.is_empty() {
            self.pending += 1;
            return Arrival::InOrder;
        }
        // The gap is filled as far as this goes.
        while let Some(at) = self.out_of_order.iter().position(|(start, _)| *start <= self.next) {
            let (_, range_end) = self.out_of_order.remove(at);
            self.next = self.next.max(range_end);
        }
        Arrival::OutOfOrder
    }

    /// Stores [start, end) beyond a gap.
    fn keep(&mut self, start: u64, end: u64) -> Arrival {
        let (mut start, mut end) = (start, end);
        if let Some(at) = self.out_of_order.iter().position(|(from, to)| *from <= start && end <= *to) {
            // RFC 2018 section 4: the block with the segment that triggered the acknowledgement comes first.
            self.out_of_order[..=at].rotate_right(1);
            return Arrival::Duplicate;
        }
        self.out_of_order.retain(|(from, to)| {
            let apart = *to < start || end < *from;
            if !apart {
                start = start.min(*from);
                end = end.max(*to);
            }
            apart
        });
        self.out_of_order.insert(0, (start, end));
        Arrival::OutOfOrder
    }

    /// Full-sized segments that wait for their acknowledgement.
    #[inline]
    pub fn pending(&self) -> u32 {
        self.pending
    }

    /// Writes what is here into an acknowledgement that is about to go out.
    #[inline]
    pub fn acknowledge(&mut self, segment: &mut Segment, sack: bool) {
        self.pending = 0;
        segment.flags |= Segment::ACK;
        segment.ack = self.next;
        if sack && !self.out_of_order.is_empty() {
            let blocks = self.out_of_order.iter().take(segment.sack.len());
            for (block, (from, to)) in segment.sack.iter_mut().zip(blocks) {
                // A receiver window is at most 2^30 bytes, so distances fit.
                *block = ((from - self.next) as u32, (to - self.next) as u32);
            }
            segment.sacks = self.out_of_order.len().min(segment.sack.len()) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocks(receiver: &mut Receiver) -> Vec<(u64, u64)> {
        let mut segment = Segment::default();
        receiver.acknowledge(&mut segment, true);
        segment.blocks().collect()
    }

    #[test]
    fn the_most_recent_block_is_first() {
        let mut receiver = Receiver::new(1);
        for seq in [201, 401, 601, 801, 301] {
            assert_eq!(receiver.arrived(seq, 100, false), Arrival::OutOfOrder);
        }
        assert_eq!(blocks(&mut receiver), [(201, 501), (801, 901), (601, 701)]);
        assert_eq!(receiver.arrived(1, 200, false), Arrival::OutOfOrder, "filling a gap is told at once");
        assert_eq!(receiver.next(), 501);
        assert_eq!(receiver.arrived(101, 100, false), Arrival::Duplicate);
    }

    proptest! {
        /// Equal to a set of received numbers, whatever the order of arrival.
        #[test]
        fn is_a_set(segments in prop::collection::vec((0..40u64, 1..5u64), 1..100)) {
            let mut receiver = Receiver::new(0);
            let mut set = std::collections::BTreeSet::new();
            for (seq, len) in segments {
                receiver.arrived(seq, len, false);
                set.extend(seq..seq + len);
                let next = (0..).find(|n| !set.contains(n)).unwrap();
                prop_assert_eq!(receiver.next(), next);
                let above_gap: usize = receiver.out_of_order.iter().map(|(from, to)| (to - from) as usize).sum();
                prop_assert_eq!(above_gap, set.range(next..).count());
            }
        }
    }
}
