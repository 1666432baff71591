//! The receiving half of an endpoint: reassembly, acknowledgements (RFC 5681, section 4.2) and SACK blocks
//! (RFC 2018, section 4).

use super::ranges::Ranges;
use crate::segment::Segment;

/// The receiving half of an endpoint.
#[derive(Debug)]
pub struct Receiver {
    /// The next sequence number expected (RCV.NXT).
    next: u64,
    /// Ranges received above a gap: disjoint. RFC 2018, section 4: the most recently changed one comes first,
    /// and so in the SACK option.
    out_of_order: Ranges,
    /// The sequence number of the FIN; `u64::MAX` until it has arrived.
    fin: u64,
    /// Number of segments received in order and not acknowledged yet.
    pending: u32,
}

/// The position of an arriving segment relative to the data received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The next expected segment, and no gap is open.
    InOrder,
    /// A segment that fills a gap or lies above one. RFC 5681, section 4.2: acknowledged at once.
    OutOfOrder,
    /// Received before. RFC 9293, section 3.10.7.4: acknowledged at once.
    Duplicate,
}

impl Receiver {
    /// A receiver that expects the sequence number `next` first.
    pub fn new(next: u64) -> Receiver {
        Receiver { next, out_of_order: Ranges::default(), fin: u64::MAX, pending: 0 }
    }

    /// The next sequence number expected.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }
    /// True if everything up to and including the FIN has arrived.
    #[inline]
    pub fn finished(&self) -> bool {
        self.next > self.fin
    }
    /// Data bytes received in order.
    #[inline]
    pub fn delivered(&self) -> u64 {
        // The SYN and the FIN take one sequence number each.
        (self.next - u64::from(self.finished())).saturating_sub(1)
    }

    /// Data bytes received, in order or not, each counted once.
    #[inline]
    pub fn arrived_bytes(&self) -> u64 {
        // A FIN above a gap takes one of the sequence numbers there.
        let fin = self.out_of_order.list().iter().any(|(_, to)| *to > self.fin);
        let above_gap: u64 = self.out_of_order.list().iter().map(|(from, to)| to - from).sum();
        self.delivered() + above_gap - u64::from(fin)
    }

    /// Adds a segment of `len` sequence numbers from `seq` on; `fin` if its last one is the FIN.
    #[inline]
    pub fn on_arrival(&mut self, seq: u64, len: u64, fin: bool) -> Arrival {
        let end = seq + len;
        // The FIN takes the last sequence number of its segment: RFC 9293, section 3.4.
        if fin {
            self.fin = end - 1;
        }
        if end <= self.next {
            return Arrival::Duplicate;
        }
        if seq > self.next {
            return self.store(seq, end);
        }
        self.next = end;
        if self.out_of_order.is_empty() {
            self.pending += 1;
            return Arrival::InOrder;
        }
        // The gap is closed, or smaller. Ranges that now continue the data in order are merged into it.
        while let Some(at) = self.out_of_order.list().iter().position(|(start, _)| *start <= self.next) {
            let (_, range_end) = self.out_of_order.list_mut().remove(at);
            self.next = self.next.max(range_end);
        }
        Arrival::OutOfOrder
    }

    /// Stores the range [start, end), which lies above a gap.
    fn store(&mut self, start: u64, end: u64) -> Arrival {
        let (mut start, mut end) = (start, end);
        if let Some(at) = self.out_of_order.list().iter().position(|(from, to)| *from <= start && end <= *to)
        {
            // RFC 2018, section 4: the first block contains the segment that triggered the acknowledgement.
            self.out_of_order.list_mut()[..=at].rotate_right(1);
            return Arrival::Duplicate;
        }
        self.out_of_order.list_mut().retain(|(from, to)| {
            let apart = *to < start || end < *from;
            if !apart {
                start = start.min(*from);
                end = end.max(*to);
            }
            apart
        });
        // RFC 2018, section 4: the block that has just changed goes first.
        self.out_of_order.list_mut().insert(0, (start, end));
        Arrival::OutOfOrder
    }

    /// Frees the memory of ranges if no gap is open.
    pub fn rest(&mut self) {
        if self.out_of_order.is_empty() {
            self.out_of_order = Ranges::default();
        }
    }

    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.out_of_order.heap_bytes()
    }

    /// Number of segments received in order and not acknowledged yet.
    #[inline]
    pub fn pending(&self) -> u32 {
        self.pending
    }

    /// Writes the acknowledgement and, with `sack`, the SACK blocks into a segment that is about to leave.
    #[inline]
    pub fn acknowledge(&mut self, segment: &mut Segment, sack: bool) {
        self.pending = 0;
        segment.flags |= Segment::ACK;
        segment.ack = self.next;
        if sack && !self.out_of_order.is_empty() {
            // RFC 2018, section 3: with time stamps an option has space for three blocks. Each is repeated in
            // at least three acknowledgements, some of which may be lost: RFC 2018, section 4.
            let blocks = self.out_of_order.list().iter().take(segment.sack.len());
            for (block, (from, to)) in segment.sack.iter_mut().zip(blocks) {
                // A receiver window is at most 2^30 bytes, so distances fit.
                *block = ((from - self.next) as u32, (to - self.next) as u32);
            }
            segment.sacks = self.out_of_order.list().len().min(segment.sack.len()) as u8;
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
            assert_eq!(receiver.on_arrival(seq, 100, false), Arrival::OutOfOrder);
        }
        assert_eq!(blocks(&mut receiver), [(201, 501), (801, 901), (601, 701)]);
        assert_eq!(
            receiver.on_arrival(1, 200, false),
            Arrival::OutOfOrder,
            "a segment that fills a gap is acknowledged at once"
        );
        assert_eq!(receiver.next(), 501);
        assert_eq!(receiver.on_arrival(101, 100, false), Arrival::Duplicate);
    }

    proptest! {
        /// The receiver equals a set of received numbers, for any order of arrival.
        #[test]
        fn is_a_set(segments in prop::collection::vec((0..40u64, 1..5u64), 1..100)) {
            let mut receiver = Receiver::new(0);
            let mut set = std::collections::BTreeSet::new();
            for (seq, len) in segments {
                receiver.on_arrival(seq, len, false);
                set.extend(seq..seq + len);
                let next = (0..).find(|n| !set.contains(n)).unwrap();
                prop_assert_eq!(receiver.next(), next);
                let above_gap: usize = receiver.out_of_order.list().iter().map(|(from, to)| (to - from) as usize).sum();
                prop_assert_eq!(above_gap, set.range(next..).count());
            }
        }
    }
}
