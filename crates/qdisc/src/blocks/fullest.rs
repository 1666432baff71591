//! Which of many queues has the most packets, in constant time: queues by their count, since a count changes by one.
//!
//! For lengths that change by more there is [`LongestQueue`](super::LongestQueue).

use super::positions::Positions;

/// The queues by how many packets they have. Queues are small numbers.
#[derive(Debug, Default)]
pub struct Fullest {
    /// The queues that have one packet, two packets, and so on.
    by_count: Vec<Positions>,
    /// The largest count.
    most: usize,
}

impl Fullest {
    /// The queue has one packet more: so many now.
    #[inline]
    pub fn grew(&mut self, queue: u32, packets: usize) {
        if packets > self.by_count.len() {
            self.by_count.resize_with(packets, Positions::default);
        }
        if packets > 1 {
            self.by_count[packets - 2].remove(queue);
        }
        self.by_count[packets - 1].insert(queue);
        self.most = self.most.max(packets);
    }

    /// The queue has one packet less: so many now.
    #[inline]
    pub fn shrank(&mut self, queue: u32, packets: usize) {
        self.by_count[packets].remove(queue);
        if packets > 0 {
            self.by_count[packets - 1].insert(queue);
        }
        if packets + 1 == self.most && self.by_count[packets].is_empty() {
            // This queue was the only one with the most: now it has one less, or none.
            self.most = packets;
        }
    }

    /// The queue with the most packets; of several the one with the smallest number.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.by_count.get(self.most.checked_sub(1)?)?.first()
    }

    /// Forgets all, keeping the memory.
    pub fn clear(&mut self) {
        self.by_count.iter_mut().for_each(Positions::clear);
        self.most = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_looking_at_all(ops in prop::collection::vec((0..100u32, 0..3u8), 0..500)) {
            let mut fullest = Fullest::default();
            let mut counts = vec![0; 100];
            for (queue, op) in ops {
                let count = &mut counts[queue as usize];
                if op > 0 {
                    *count += 1;
                    fullest.grew(queue, *count);
                } else if *count > 0 {
                    *count -= 1;
                    fullest.shrank(queue, *count);
                }
                let most = counts.iter().copied().max().filter(|most| *most > 0);
                let first = most.and_then(|most| counts.iter().position(|count| *count == most));
                prop_assert_eq!(fullest.first(), first.map(|queue| queue as u32));
            }
            fullest.clear();
            prop_assert_eq!(fullest.first(), None);
        }
    }
}
