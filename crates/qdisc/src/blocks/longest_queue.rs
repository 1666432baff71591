//! The longest of many queues, without a scan, for disciplines that drop from the longest queue.
//!
//! It is a binary heap whose keys are upper bounds. Growth beyond the key updates the heap at once. Other
//! changes (the queue shrinks, moves back in the round, or empties) do not: when such a queue is at the top
//! of the heap, its key is corrected, and the search continues. So a packet that comes and goes costs one
//! comparison, and each correction, in O(log queues), is amortised by an earlier departure.
//!
//! The result is exact, also for ties: among queues of equal length it is the one with the smallest ticket.
//! That is the first in the round if a queue draws a new ticket each time it moves to the end of the round.

/// Length of a queue and its position in the round. A longer queue ranks higher; of equal ones, that with the
/// earlier ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Length in bytes or in packets.
    pub length: u64,
    /// Ticket for the position in the round, from a counter. A queue may draw a later one at any time.
    pub ticket: u64,
}

impl Rank {
    #[inline]
    fn above(self, other: Rank) -> bool {
        self.length > other.length || (self.length == other.length && self.ticket < other.ticket)
    }
}

/// Queues by length. Queues are small numbers, such as the index in a slab.
#[derive(Debug, Default)]
pub struct LongestQueue {
    /// Queue numbers, as a binary heap.
    heap: Vec<u32>,
    /// Key and position in the heap, by queue number.
    keys: Vec<Key>,
}

#[derive(Clone, Copy, Debug)]
struct Key {
    rank: Rank,
    at: u32,
}

const OUT: Key = Key { rank: Rank { length: 0, ticket: u64::MAX }, at: u32::MAX };

impl LongestQueue {
    /// An empty heap with capacity for `queues` queues. It grows on demand.
    pub fn with_capacity(queues: usize) -> LongestQueue {
        LongestQueue { heap: Vec::with_capacity(queues), keys: Vec::with_capacity(queues) }
    }

    /// Records that a queue has grown or is new.
    #[inline]
    pub fn record_growth(&mut self, queue: u32, rank: Rank) {
        if queue as usize >= self.keys.len() {
            self.keys.resize(queue as usize + 1, OUT);
        }
        let key = &mut self.keys[queue as usize];
        // The key is an upper bound already.
        if !rank.above(key.rank) {
            return;
        }
        key.rank = rank;
        if key.at == OUT.at {
            key.at = self.heap.len() as u32;
            self.heap.push(queue);
        }
        self.rise(self.keys[queue as usize].at as usize);
    }

    /// The longest queue. `truth` returns the current rank of a queue, or `None` if it is empty or gone.
    #[inline]
    pub fn longest(&mut self, mut truth: impl FnMut(u32) -> Option<Rank>) -> Option<u32> {
        loop {
            let queue = *self.heap.first()?;
            match truth(queue) {
                // All other keys are upper bounds below this one, so a key that is exact names the longest
                // queue.
                Some(rank) if rank == self.keys[queue as usize].rank => return Some(queue),
                Some(rank) => {
                    debug_assert!(!rank.above(self.keys[queue as usize].rank), "growth is always recorded");
                    self.keys[queue as usize].rank = rank;
                }
                None => {
                    self.keys[queue as usize] = OUT;
                    let last = self.heap.pop().expect("the heap has a first queue");
                    if last == queue {
                        continue;
                    }
                    self.heap[0] = last;
                    self.keys[last as usize].at = 0;
                }
            }
            self.sink(0);
        }
    }

    /// Removes all queues and keeps the memory.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.keys.clear();
    }

    #[inline]
    fn rank(&self, at: usize) -> Rank {
        self.keys[self.heap[at] as usize].rank
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.rank(at).above(self.rank(parent)) {
                return;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            if left >= self.heap.len() {
                return;
            }
            let right = left + 1;
            let longer =
                if right < self.heap.len() && self.rank(right).above(self.rank(left)) { right } else { left };
            if !self.rank(longer).above(self.rank(at)) {
                return;
            }
            self.swap(at, longer);
            at = longer;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for at in [one, other] {
            self.keys[self.heap[at] as usize].at = at as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The result equals a search of all queues, after any growth, reduction, move or removal.
        #[test]
        fn equals_a_search_of_all_queues(ops in prop::collection::vec((0..6u8, 0..12u32, 1..5u64), 0..500)) {
            let mut index = LongestQueue::default();
            let mut queues: Vec<Option<Rank>> = vec![None; 12];
            for (ticket, (op, queue, by)) in (0u64..).zip(ops) {
                let state = &mut queues[queue as usize];
                match (op, state.as_mut()) {
                    (0..=2, None) => *state = Some(Rank { length: by, ticket }),
                    (0..=2, Some(rank)) => rank.length += by,
                    (3, Some(rank)) if rank.length > by => rank.length -= by,
                    (3, _) => *state = None,
                    (4, Some(rank)) => rank.ticket = ticket,
                    _ => {
                        let all = queues.iter().zip(0u32..).filter_map(|(rank, each)| Some((each, (*rank)?)));
                        let longest = all.max_by_key(|(_, rank)| (rank.length, std::cmp::Reverse(rank.ticket)));
                        prop_assert_eq!(index.longest(|each| queues[each as usize]), longest.map(|(each, _)| each));
                    }
                }
                if let (0..=2, Some(rank)) = (op, queues[queue as usize]) {
                    index.record_growth(queue, rank);
                }
            }
        }
    }
}
