//! The queue with most packets among at most 64, in constant time: an index by count, since a count changes
//! by one.
//!
//! [`LongestQueue`](super::LongestQueue) is for more queues, and for lengths that change by more than one.

/// Queues by number of packets. Queues are numbers below 64.
#[derive(Debug, Default)]
pub struct Fullest {
    /// For each count from 1 on, the set of queues with this count.
    by_count: Vec<u64>,
    /// The largest count.
    most: usize,
}

impl Fullest {
    /// Largest number of queues.
    pub const MAX: usize = 64;

    /// An index with capacity for counts up to `packets`. It grows on demand.
    pub fn with_capacity(packets: usize) -> Fullest {
        Fullest { by_count: vec![0; packets], most: 0 }
    }

    /// Records that a queue has grown by one packet to `packets`, or is new with this count.
    #[inline]
    pub fn grew(&mut self, queue: usize, packets: usize) {
        if packets > self.by_count.len() {
            self.by_count.resize(packets, 0);
        }
        if packets > 1 {
            self.by_count[packets - 2] &= !(1 << queue);
        }
        self.by_count[packets - 1] |= 1 << queue;
        self.most = self.most.max(packets);
    }

    /// Records that a queue has shrunk by one packet to `packets`.
    #[inline]
    pub fn shrank(&mut self, queue: usize, packets: usize) {
        self.by_count[packets] &= !(1 << queue);
        if packets > 0 {
            self.by_count[packets - 1] |= 1 << queue;
        }
        if packets + 1 == self.most && self.by_count[packets] == 0 {
            // This queue was the only one with the largest count, which is now one less, or zero.
            self.most = packets;
        }
    }

    /// The queue with most packets; of several, the one with the smallest number.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        let queues = *self.by_count.get(self.most.checked_sub(1)?)?;
        Some(queues.trailing_zeros() as usize)
    }

    /// Removes all queues and keeps the memory.
    pub fn clear(&mut self) {
        self.by_count[..self.most].fill(0);
        self.most = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_search_of_all_queues(ops in prop::collection::vec((0..Fullest::MAX, 0..30u8), 0..500)) {
            let mut fullest = Fullest::with_capacity(2);
            let mut counts = vec![0; Fullest::MAX];
            for (queue, op) in ops {
                let count = &mut counts[queue];
                if op == 0 {
                    fullest.clear();
                    counts.fill(0);
                } else if op < 20 {
                    *count += 1;
                    fullest.grew(queue, *count);
                } else if *count > 0 {
                    *count -= 1;
                    fullest.shrank(queue, *count);
                }
                let most = counts.iter().copied().max().filter(|most| *most > 0);
                prop_assert_eq!(fullest.first(), most.and_then(|most| counts.iter().position(|count| *count == most)));
            }
        }
    }
}
