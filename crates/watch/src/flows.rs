//! The flows that send most, in constant memory, whoever sends: Space-Saving.
//!
//! A table of fixed size counts bytes per flow. A flow that is not in a full table takes the place of the one with the least bytes,
//! and inherits its count as an uncertainty: of each flow the table knows at most how much it sent, and that it sent at least so
//! much less. A flow that sent more than the whole divided by the number of places is in it for certain. So a flood of new flows
//! costs accuracy and nothing else. What is shown is what is certain.
//!
//! A flow's entry is found by its key; the least is on top of a heap. Per packet: a look-up and a few steps down the heap, since
//! counts only grow. A second's table is cleared at its end. What a flow is called is asked once for each that is shown.
//!
//! References: Metwally, Agrawal and El Abbadi, *Efficient computation of frequent and top-k elements in data streams*, ICDT 2005,
//! sections 3 and 4.

use giveway_qdisc::blocks::FlowMap;
use giveway_qdisc::{Backlog, FlowKey};

/// Counts what flows send within a second. `T` is what tells who a flow is: its 5-tuple.
#[derive(Debug)]
pub struct TopFlows<T> {
    /// A heap: each place has at most as many bytes as the two below it.
    heap: Vec<Entry<T>>,
    places: usize,
    /// Where in the heap a flow is.
    at: FlowMap<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    key: FlowKey,
    who: T,
    /// At most so many.
    bytes: u64,
    /// Of these so many may be of others.
    inherited: u64,
    /// Since it has its place.
    packets: u64,
}

impl<T: Copy> TopFlows<T> {
    /// A table with so many places, at least one. All of its memory is there from now on.
    pub fn new(places: usize) -> TopFlows<T> {
        let places = places.clamp(1, 1 << 16);
        TopFlows { heap: Vec::with_capacity(places), places, at: FlowMap::with_capacity(places + 1) }
    }

    /// A packet was sent.
    #[inline]
    pub fn add(&mut self, key: FlowKey, who: T, bytes: u32) {
        let bytes = u64::from(bytes);
        match self.at.get(key) {
            Some(at) => {
                let at = *at as usize;
                self.heap[at].bytes += bytes;
                self.heap[at].packets += 1;
                self.sink(at);
            }
            None if self.heap.len() < self.places => {
                self.heap.push(Entry { key, who, bytes, inherited: 0, packets: 1 });
                self.rise(self.heap.len() - 1);
            }
            None => {
                let least = &mut self.heap[0];
                self.at.remove(least.key);
                let inherited = least.bytes;
                *least = Entry { key, who, bytes: inherited + bytes, inherited, packets: 1 };
                self.at.entry(key, || 0);
                self.sink(0);
            }
        }
    }

    /// The `most` flows that certainly sent most since the table was cleared, in that order; equal ones by key.
    pub fn top(&self, most: usize) -> Vec<(FlowKey, T, Backlog)> {
        let sent =
            |entry: &Entry<T>| Backlog { packets: entry.packets, bytes: entry.bytes - entry.inherited };
        let mut all: Vec<_> = self.heap.iter().map(|entry| (entry.key, entry.who, sent(entry))).collect();
        all.sort_by_key(|(key, _, sent)| (std::cmp::Reverse(sent.bytes), *key));
        all.truncate(most);
        all
    }

    /// A second is over.
    pub fn clear(&mut self) {
        for entry in self.heap.drain(..) {
            self.at.remove(entry.key);
        }
    }

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

    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.heap[at].bytes < self.heap[(at - 1) / 2].bytes {
            self.heap.swap(at, (at - 1) / 2);
            self.settle(at);
            at = (at - 1) / 2;
        }
        self.settle(at);
    }

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
    fn the_largest_are_found_under_a_flood() {
        let mut flows = TopFlows::new(8);
        for packet in 0..10_000u64 {
            // Two that send a fifth and a tenth of all packets, among flows of one packet each.
            let key = match packet % 10 {
                0 | 5 => 1,
                7 => 2,
                _ => 1000 + packet,
            };
            flows.add(FlowKey(key), key, 1500);
        }
        let top = flows.top(2);
        assert_eq!(top.iter().map(|(key, who, _)| (key.0, *who)).collect::<Vec<_>>(), [(1, 1), (2, 2)]);
        // A fifth is more than an eighth, so that it kept its place; all but what it inherited at first is certain.
        assert!(top[0].2.bytes > 2000 * 1500 * 9 / 10 && top[0].2.bytes <= 2000 * 1500, "{:?}", top[0].2);
        flows.clear();
        assert!(flows.top(9).is_empty());
        flows.add(FlowKey(7), 7, 100);
        assert_eq!(flows.top(9), [(FlowKey(7), 7, Backlog { packets: 1, bytes: 100 })]);
    }

    proptest! {
        /// What is told is never more than was sent; exact while there are no more flows than places; and who sent more than
        /// the whole divided by the places is in the table.
        #[test]
        fn what_is_certain(packets in prop::collection::vec((0..12u64, 1..2000u32), 0..400), places in 1..16usize) {
            let mut flows = TopFlows::new(places);
            let mut exact: BTreeMap<u64, Backlog> = BTreeMap::new();
            for (key, bytes) in &packets {
                flows.add(FlowKey(*key), *key, *bytes);
                exact.entry(*key).or_default().add(*bytes);
            }
            let whole: u64 = exact.values().map(|sent| sent.bytes).sum();
            let top = flows.top(usize::MAX);
            prop_assert_eq!(top.len(), exact.len().min(places));
            for (key, who, sent) in &top {
                prop_assert_eq!(key.0, *who);
                let truth = exact[who];
                prop_assert!(sent.bytes <= truth.bytes && sent.packets <= truth.packets);
                prop_assert!(exact.len() > places || *sent == truth);
            }
            for (key, sent) in exact.iter().filter(|(_, sent)| sent.bytes * places as u64 > whole) {
                prop_assert!(top.iter().any(|(_, who, _)| who == key), "flow {} with {:?}", key, sent);
            }
        }
    }
}
