//! The largest flows, in constant memory for any traffic: the Space-Saving algorithm.
//!
//! A table of fixed size counts bytes per flow. If the table is full, a new flow replaces the one with the
//! fewest bytes and inherits its count as an uncertainty: the table has an upper bound and a lower bound on
//! the bytes of each flow. A flow with more than the total divided by the number of entries is always in the
//! table. A flood of new flows therefore only costs accuracy. The output shows the lower bounds.
//!
//! A hash map finds the entry of a flow, and a heap the smallest entry. A packet takes a look-up and a few
//! steps down the heap, since counts only grow. The table is cleared every second.
//!
//! References: Metwally, Agrawal and El Abbadi, *Efficient computation of frequent and top-k elements in data
//! streams*, ICDT 2005, sections 3 and 4.

use giveway_qdisc::blocks::FlowMap;
use giveway_qdisc::{Backlog, FlowKey};

/// Counts the bytes of flows within a second. `T` identifies a flow in outputs, for example by its 5-tuple.
#[derive(Debug)]
pub struct TopFlows<T> {
    /// A heap: each entry has at most as many bytes as its two children.
    heap: Vec<Entry<T>>,
    /// Largest number of entries.
    capacity: usize,
    /// Index of a flow in the heap.
    at: FlowMap<u32>,
}

/// A flow in the table.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    key: FlowKey,
    id: T,
    /// Upper bound on its bytes.
    bytes: u64,
    /// The part of `bytes` that may belong to other flows.
    inherited: u64,
    /// Packets since the flow is in the table.
    packets: u64,
}

impl<T: Copy> TopFlows<T> {
    /// Creates a table with this number of entries, at least one. All memory is allocated now.
    pub fn new(capacity: usize) -> TopFlows<T> {
        let capacity = capacity.clamp(1, 1 << 16);
        TopFlows { heap: Vec::with_capacity(capacity), capacity, at: FlowMap::with_capacity(capacity + 1) }
    }

    /// Counts a packet.
    #[inline]
    pub fn add(&mut self, key: FlowKey, id: T, bytes: u32) {
        let bytes = u64::from(bytes);
        match self.at.get(key) {
            Some(at) => {
                let at = *at as usize;
                self.heap[at].bytes += bytes;
                self.heap[at].packets += 1;
                self.sink(at);
            }
            None if self.heap.len() < self.capacity => {
                self.heap.push(Entry { key, id, bytes, inherited: 0, packets: 1 });
                self.rise(self.heap.len() - 1);
            }
            None => {
                let least = &mut self.heap[0];
                self.at.remove(least.key);
                let inherited = least.bytes;
                *least = Entry { key, id, bytes: inherited + bytes, inherited, packets: 1 };
                self.at.entry(key, || 0);
                self.sink(0);
            }
        }
    }

    /// The `most` largest flows since the table was cleared, by their lower bounds; equal ones in the order
    /// of their keys.
    pub fn top(&self, most: usize) -> Vec<(FlowKey, T, Backlog)> {
        let sent =
            |entry: &Entry<T>| Backlog { packets: entry.packets, bytes: entry.bytes - entry.inherited };
        let mut all: Vec<_> = self.heap.iter().map(|entry| (entry.key, entry.id, sent(entry))).collect();
        all.sort_by_key(|(key, _, sent)| (std::cmp::Reverse(sent.bytes), *key));
        all.truncate(most);
        all
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        for entry in self.heap.drain(..) {
            self.at.remove(entry.key);
        }
    }

    /// Moves an entry down the heap to its position.
    fn sink(&mut self, mut at: usize) {
        loop {
            let [left, right] = [2 * at + 1, 2 * at + 2];
            let bytes = |at: usize| self.heap.get(at).map_or(u64::MAX, |entry| entry.bytes);
            let lesser = if bytes(right) < bytes(left) { right } else { left };
            if bytes(lesser) >= self.heap[at].bytes {
                return self.settle(at);
            }
            self.heap.swap(at, lesser);
            self.settle(at);
            at = lesser;
        }
    }

    /// Moves an entry up the heap to its position.
    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.heap[at].bytes < self.heap[(at - 1) / 2].bytes {
            self.heap.swap(at, (at - 1) / 2);
            self.settle(at);
            at = (at - 1) / 2;
        }
        self.settle(at);
    }

    /// Records the index of the entry in the map.
    fn settle(&mut self, at: usize) {
        *self.at.entry(self.heap[at].key, || 0) = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_largest_flows_are_found_in_a_flood() {
        let mut flows = TopFlows::new(8);
        for packet in 0..10_000u64 {
            // Two flows send a fifth and a tenth of all packets, and every other flow sends one packet.
            let key = match packet % 10 {
                0 | 5 => 1,
                7 => 2,
                _ => 1000 + packet,
            };
            flows.add(FlowKey(key), key, 1500);
        }
        let top = flows.top(2);
        assert_eq!(top.iter().map(|(key, id, _)| (key.0, *id)).collect::<Vec<_>>(), [(1, 1), (2, 2)]);
        // A fifth of all packets is more than an eighth, so the flow stays in the table. Only the count that
        // it inherited at first is uncertain.
        assert!(top[0].2.bytes > 2000 * 1500 * 9 / 10 && top[0].2.bytes <= 2000 * 1500, "{:?}", top[0].2);
        flows.clear();
        assert!(flows.top(9).is_empty());
        flows.add(FlowKey(7), 7, 100);
        assert_eq!(flows.top(9), [(FlowKey(7), 7, Backlog { packets: 1, bytes: 100 })]);
    }

    proptest! {
        /// Counts are lower bounds. They are exact if all flows fit. A flow with more than the total divided
        /// by the number of entries is in the table.
        #[test]
        fn counts_are_lower_bounds(packets in prop::collection::vec((0..12u64, 1..2000u32), 0..400), capacity in 1..16usize) {
            let mut flows = TopFlows::new(capacity);
            let mut exact: BTreeMap<u64, Backlog> = BTreeMap::new();
            for (key, bytes) in &packets {
                flows.add(FlowKey(*key), *key, *bytes);
                exact.entry(*key).or_default().add(*bytes);
            }
            let whole: u64 = exact.values().map(|sent| sent.bytes).sum();
            let top = flows.top(usize::MAX);
            prop_assert_eq!(top.len(), exact.len().min(capacity));
            for (key, id, sent) in &top {
                prop_assert_eq!(key.0, *id);
                let truth = exact[id];
                prop_assert!(sent.bytes <= truth.bytes && sent.packets <= truth.packets);
                prop_assert!(exact.len() > capacity || *sent == truth);
            }
            for (key, sent) in exact.iter().filter(|(_, sent)| sent.bytes * capacity as u64 > whole) {
                prop_assert!(top.iter().any(|(_, id, _)| id == key), "flow {} with {:?}", key, sent);
            }
        }
    }
}
