//! A priority queue of flows by key, in which any key can be changed or removed in O(log n). Sorted
//! schedulers use it (Virtual Clock, WFQ, WF²Q+, time-shift scheduling).
//!
//! It sorts flows, not packets: tags never decrease within a flow, so the heads of the queues suffice. Flows
//! with equal keys are ordered by their numbers, so the order is total and does not depend on the layout of
//! the heap.
//!
//! It is a heap with four children per node, which lie in one or two cache lines. Flows are small numbers,
//! such as the index in a slab.

/// Flows by key, then by number.
#[derive(Debug)]
pub struct FlowHeap<K> {
    heap: Vec<(K, u32)>,
    /// Position of each flow in the heap.
    spots: Vec<u32>,
}

const ARITY: usize = 4;
const OUT: u32 = u32::MAX;

impl<K: Ord + Copy> FlowHeap<K> {
    /// An empty queue with capacity for `flows` flows. It grows on demand.
    pub fn with_capacity(flows: usize) -> FlowHeap<K> {
        FlowHeap { heap: Vec::with_capacity(flows), spots: Vec::with_capacity(flows) }
    }

    /// Memory per flow in bytes.
    pub const fn bytes_per_flow() -> usize {
        size_of::<(K, u32)>() + size_of::<u32>()
    }
    /// Number of flows.
    pub fn len(&self) -> usize {
        self.heap.len()
    }
    /// True if there are no flows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
    /// Memory in bytes, used or not.
    pub fn bytes(&self) -> u64 {
        (self.heap.capacity() * size_of::<(K, u32)>() + self.spots.capacity() * size_of::<u32>()) as u64
    }

    /// The smallest key and its flow.
    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        self.heap.first().copied()
    }

    /// The key of a flow, if the flow is in the queue.
    #[inline]
    pub fn key(&self, flow: u32) -> Option<K> {
        self.spot(flow).map(|at| self.heap[at].0)
    }

    /// Inserts a flow, or changes its key.
    #[inline]
    pub fn set(&mut self, flow: u32, key: K) {
        match self.spot(flow) {
            Some(at) => self.settle(at, (key, flow)),
            None => {
                if flow as usize >= self.spots.len() {
                    self.spots.resize(flow as usize + 1, OUT);
                }
                self.heap.push((key, flow));
                self.settle(self.heap.len() - 1, (key, flow));
            }
        }
    }

    /// Removes the flow with the smallest key.
    #[inline]
    pub fn pop(&mut self) -> Option<(K, u32)> {
        let first = self.first()?;
        self.remove(first.1);
        Some(first)
    }

    /// Removes a flow. Returns true if it was in the queue.
    #[inline]
    pub fn remove(&mut self, flow: u32) -> bool {
        let Some(at) = self.spot(flow) else { return false };
        self.spots[flow as usize] = OUT;
        let last = self.heap.pop().expect("a flow in the heap has its entry");
        if at < self.heap.len() {
            self.settle(at, last);
        }
        true
    }

    /// Removes all flows and keeps the memory.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.spots.fill(OUT);
    }

    #[inline]
    fn spot(&self, flow: u32) -> Option<usize> {
        self.spots.get(flow as usize).filter(|at| **at != OUT).map(|at| *at as usize)
    }

    #[inline]
    fn put(&mut self, at: usize, entry: (K, u32)) {
        self.heap[at] = entry;
        self.spots[entry.1 as usize] = at as u32;
    }

    /// Sinks an entry from the gap at `at` to its position.
    #[inline]
    fn settle(&mut self, mut at: usize, entry: (K, u32)) {
        while at > 0 && entry < self.heap[(at - 1) / ARITY] {
            self.put(at, self.heap[(at - 1) / ARITY]);
            at = (at - 1) / ARITY;
        }
        loop {
            let below = ARITY * at + 1..(ARITY * at + 1 + ARITY).min(self.heap.len());
            let Some(least) = below.min_by_key(|child| self.heap[*child]) else { break };
            if entry <= self.heap[least] {
                break;
            }
            self.put(at, self.heap[least]);
            at = least;
        }
        self.put(at, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The queue equals a sorted list of (key, flow) under any sequence of changes.
        #[test]
        fn is_a_sorted_list(ops in prop::collection::vec((0..5u8, 0..40u32, 0..12u64), 0..500)) {
            let mut heap = FlowHeap::with_capacity(0);
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            let least = |model: &BTreeMap<u32, u64>| model.iter().map(|(flow, key)| (*key, *flow)).min();
            for (op, flow, key) in ops {
                match op {
                    0..3 => {
                        heap.set(flow, key);
                        model.insert(flow, key);
                    }
                    3 => prop_assert_eq!(heap.remove(flow), model.remove(&flow).is_some()),
                    _ => {
                        let expected = least(&model);
                        expected.map(|(_, first)| model.remove(&first));
                        prop_assert_eq!(heap.pop(), expected);
                    }
                }
                prop_assert_eq!(heap.first(), least(&model));
                prop_assert_eq!(heap.len(), model.len());
                for any in 0..40 {
                    prop_assert_eq!(heap.key(any), model.get(&any).copied());
                }
            }
        }
    }
}
