//! Flows in the order of a key each: whose key is the least is known, and a key is changed or taken out wherever it stands,
//! in O(log n). What sorted schedulers serve from (Virtual Clock, WFQ, WF²Q+, time-shift scheduling).
//!
//! Only flows are sorted, not their packets: within a flow tags never fall, so the heads of the queues are enough. Of equal
//! keys the flow with the lower number is first: the order is total and does not depend on how the heap is stored.
//!
//! A heap of four children per node, as they lie in one or two cache lines; flows are small numbers, such as their place in
//! a slab.

/// Flows by key, then by number.
#[derive(Debug)]
pub struct FlowHeap<K> {
    heap: Vec<(K, u32)>,
    /// Where each flow is in the heap.
    spots: Vec<u32>,
}

const ARITY: usize = 4;
const OUT: u32 = u32::MAX;

impl<K: Ord + Copy> FlowHeap<K> {
    /// Room for `flows` flows before it first grows.
    pub fn with_capacity(flows: usize) -> FlowHeap<K> {
        FlowHeap { heap: Vec::with_capacity(flows), spots: Vec::with_capacity(flows) }
    }

    /// Bytes that a flow takes.
    pub const fn bytes_per_flow() -> usize {
        size_of::<(K, u32)>() + size_of::<u32>()
    }
    /// How many flows are in it.
    pub fn len(&self) -> usize {
        self.heap.len()
    }
    /// Whether none is.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
    /// Bytes that it takes, used or not.
    pub fn bytes(&self) -> u64 {
        (self.heap.capacity() * size_of::<(K, u32)>() + self.spots.capacity() * size_of::<u32>()) as u64
    }

    /// The least key and its flow.
    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        self.heap.first().copied()
    }

    /// The key of a flow that is in it.
    #[inline]
    pub fn key(&self, flow: u32) -> Option<K> {
        self.spot(flow).map(|at| self.heap[at].0)
    }

    /// Puts a flow in, or gives it another key.
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

    /// Takes the flow of the least key out.
    #[inline]
    pub fn pop(&mut self) -> Option<(K, u32)> {
        let first = self.first()?;
        self.remove(first.1);
        Some(first)
    }

    /// Takes a flow out. Whether it was in.
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

    /// Forgets all, keeping the memory.
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

    /// Puts an entry where it belongs, from the gap at `at` on.
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
        /// It is a sorted list of (key, flow) under any sequence of changes.
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
