//! A hash table from flow keys to places in a store with the keys. It needs a fourth of the memory of a
//! [`FlowMap`](super::FlowMap).
//!
//! It has open addressing with linear probing, and at most half of its slots are in use. A slot has four
//! bytes: the number of the place, and bits of the hash in the remaining bits. If these bits match, the key
//! in the store is compared, which the caller reads next anyway. With a hundred thousand flows, cache misses
//! in this table dominate the cost of a packet: two megabytes stay in a cache that eight megabytes exceed.
//!
//! A removal reads the keys of the following entries, too. For flows that come and go with most packets,
//! `FlowMap` is faster.

use crate::packet::FlowKey;
use crate::qdisc::FlowTable;
use crate::store::Place;

/// Places by flow.
#[derive(Debug)]
pub struct FlowIndex {
    /// Slots; their number is a power of two. A slot is zero if it is empty. Otherwise its low bits, as many
    /// as a slot number has, are the index of the place plus one, and the others are bits of the hash.
    slots: Vec<u32>,
    len: usize,
    /// Largest number of flows so far.
    most: usize,
}

impl FlowIndex {
    /// A table with capacity for about `flows` flows. It grows on demand.
    pub fn with_capacity(flows: usize) -> FlowIndex {
        let slots = (flows.min(1 << 20) * 2).next_power_of_two().max(16);
        FlowIndex { slots: vec![0; slots], len: 0, most: 0 }
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.len
    }
    /// True if there are no flows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Size of the table. An entry counts as two slots, because the table is at most half full.
    pub fn table(&self) -> FlowTable {
        let slot = size_of::<u32>();
        FlowTable {
            flows: self.len as u64,
            most: self.most as u64,
            entry_bytes: 2 * slot as u32,
            bytes: (self.slots.len() * slot) as u64,
        }
    }

    /// Place of a flow. `key` returns the key of the flow at a place.
    #[inline]
    pub fn get(&self, flow: FlowKey, key: impl Fn(Place) -> FlowKey) -> Option<Place> {
        let mask = self.slots.len() - 1;
        let hash = hash(flow);
        let mut at = home(hash, mask);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            let place = place(slot, mask);
            if (slot ^ hash as u32) & !(mask as u32) == 0 && key(place) == flow {
                return Some(place);
            }
            at = (at + 1) & mask;
        }
    }

    /// Inserts a new flow. `key` returns the key of the flow at a place, for flows that are in the table
    /// already.
    pub fn insert(&mut self, flow: FlowKey, place: Place, key: impl Fn(Place) -> FlowKey) {
        while (self.len + 1) * 2 > self.slots.len() || place.index() as usize + 1 >= self.slots.len() {
            let mask = self.slots.len() - 1;
            let doubled = vec![0; self.slots.len() * 2];
            for slot in std::mem::replace(&mut self.slots, doubled).into_iter().filter(|slot| *slot != 0) {
                let there = self::place(slot, mask);
                self.put(key(there), there);
            }
        }
        self.put(flow, place);
        self.len += 1;
        self.most = self.most.max(self.len);
    }

    /// Removes a flow of the table. `key` returns the key of the flow at a place, this flow included.
    pub fn remove(&mut self, flow: FlowKey, key: impl Fn(Place) -> FlowKey) {
        let mask = self.slots.len() - 1;
        let mut gap = home(hash(flow), mask);
        while self.slots[gap] == 0 || key(place(self.slots[gap], mask)) != flow {
            assert!(self.slots[gap] != 0, "a removed flow is in the table");
            gap = (gap + 1) & mask;
        }
        self.slots[gap] = 0;
        self.len -= 1;
        // Later entries of the run move back, so that look-ups never stop early at the gap.
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            if self.slots[at] == 0 {
                return;
            }
            // The entry may move to the gap unless its home lies after it, cyclically.
            let home = home(hash(key(place(self.slots[at], mask))), mask);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.slots[gap] = std::mem::take(&mut self.slots[at]);
                gap = at;
            }
        }
    }

    /// Removes all flows and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.len = 0;
    }

    fn put(&mut self, flow: FlowKey, place: Place) {
        let mask = self.slots.len() - 1;
        let hash = hash(flow);
        let mut at = home(hash, mask);
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = (hash as u32 & !(mask as u32)) | (place.index() + 1);
    }
}

#[inline]
fn hash(flow: FlowKey) -> u64 {
    // Keys made by hand (tests, counters) are not uniform; one multiplication spreads them.
    flow.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline]
fn home(hash: u64, mask: usize) -> usize {
    (hash >> 32) as usize & mask
}

/// The place in a slot that is not empty.
#[inline]
fn place(slot: u32, mask: usize) -> Place {
    Place::new((slot & mask as u32) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{List, Slots};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Equal to an ordered map under any sequence of insertions and removals.
        #[test]
        fn is_a_map(ops in prop::collection::vec((0..4u8, 0..60u64), 0..600)) {
            let mut index = FlowIndex::with_capacity(0);
            let (mut store, mut list) = (Slots::<FlowKey>::with_capacity(0), List::default());
            let mut model: BTreeMap<u64, Place> = BTreeMap::new();
            for (op, flow) in ops {
                // Pairs of keys are equal in all bits that a small table uses.
                let key = FlowKey((flow / 2) << (63 * (flow % 2)) | flow);
                match (op, model.get(&key.0).copied()) {
                    (0..=2, None) => {
                        let place = store.push_back(&mut list, key);
                        index.insert(key, place, |place| store[place]);
                        model.insert(key.0, place);
                    }
                    (3, Some(place)) => {
                        index.remove(key, |place| store[place]);
                        store.remove(&mut list, place);
                        model.remove(&key.0);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.len(), model.len());
                for any in 0..60 {
                    let key = FlowKey((any / 2) << (63 * (any % 2)) | any);
                    prop_assert_eq!(index.get(key, |place| store[place]), model.get(&key.0).copied());
                }
            }
            prop_assert!(index.table().most >= index.table().flows);
            index.clear();
            prop_assert!(index.is_empty());
        }
    }

    #[test]
    fn a_hundred_thousand_flows_are_found() {
        let mut index = FlowIndex::with_capacity(16);
        let (mut store, mut list) = (Slots::<FlowKey>::with_capacity(0), List::default());
        let keys = (0..100_000).map(|n| FlowKey(crate::hash::mix(n, 7)));
        let places: Vec<(FlowKey, Place)> = keys
            .map(|key| {
                let place = store.push_back(&mut list, key);
                index.insert(key, place, |place| store[place]);
                (key, place)
            })
            .collect();
        assert!(places.iter().all(|(key, place)| index.get(*key, |place| store[place]) == Some(*place)));
        for (key, place) in places.iter().step_by(2) {
            index.remove(*key, |place| store[place]);
            store.remove(&mut list, *place);
        }
        let odd = |n: usize| n % 2 == 1;
        assert!(
            places
                .iter()
                .enumerate()
                .all(|(n, (key, _))| index.get(*key, |place| store[place]).is_some() == odd(n))
        );
        assert_eq!(index.table().bytes, 4 * 262_144);
    }
}
