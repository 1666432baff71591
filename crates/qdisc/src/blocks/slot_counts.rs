//! Number of items in each future slot of time, for schedulers that need the earliest slot but not its items.
//!
//! It is an array of counts, indexed by slot modulo its size, and a set of the entries that are not zero.
//! Items after the end of the array are kept in a heap. Items are not linked: the owner of an item stores its
//! slot, and passing time removes whole slots. No item is inserted before the time that has passed, so an
//! entry stands for one slot only.
//!
//! Insertion, removal and the first slot take O(1), and O(log n) for items after the array. Passing time
//! takes O(1) per slot in use, and so per item.

use super::flow_heap::FlowHeap;
use super::positions::Positions;

/// Items by slot, counted. Items are small numbers, such as the place of a flow in a slab; each is filed at
/// most once.
#[derive(Debug)]
pub struct SlotCounts {
    /// Counts; their number is a power of two. Slot n has the entry n modulo this number.
    counts: Box<[u32]>,
    busy: Positions,
    /// Slots before this one have passed.
    passed: u64,
    /// The lowest slot of the array with items, if there is one.
    nearest: u64,
    /// Number of items in the array.
    len: usize,
    /// Items that were after the end of the array when they were inserted, by slot.
    beyond: FlowHeap<u64>,
}

impl SlotCounts {
    /// An array of at least `slots` slots, and a heap for later items.
    pub fn new(slots: usize) -> SlotCounts {
        let counts = vec![0; slots.next_power_of_two()].into_boxed_slice();
        let mut busy = Positions::default();
        // Allocates the memory of the set.
        busy.insert(counts.len() as u32 - 1);
        busy.remove(counts.len() as u32 - 1);
        SlotCounts { counts, busy, passed: 0, nearest: 0, len: 0, beyond: FlowHeap::with_capacity(0) }
    }

    /// Number of items in slots that have not passed.
    #[inline]
    pub fn len(&self) -> usize {
        self.len + self.beyond.len()
    }
    /// True if there are no such items.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Memory in bytes, used or not.
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.counts) as u64 + self.busy.bytes() + self.beyond.bytes()
    }

    /// Inserts an item in a slot that has not passed.
    #[inline]
    pub fn file(&mut self, item: u32, slot: u64) {
        debug_assert!(slot > self.passed, "an item is inserted in a later slot");
        if slot - self.passed > self.counts.len() as u64 {
            self.beyond.set(item, slot);
            return;
        }
        if self.len == 0 || slot < self.nearest {
            self.nearest = slot;
        }
        let chain = self.chain(slot);
        let count = &mut self.counts[chain as usize];
        *count += 1;
        if *count == 1 {
            self.busy.insert(chain);
        }
        self.len += 1;
    }

    /// Removes an item from its slot. Does nothing if the slot has passed.
    #[inline]
    pub fn remove(&mut self, item: u32, slot: u64) {
        if slot <= self.passed || (!self.beyond.is_empty() && self.beyond.remove(item)) {
            return;
        }
        let chain = self.chain(slot);
        self.len -= 1;
        self.counts[chain as usize] -= 1;
        if self.counts[chain as usize] == 0 {
            self.on_empty(chain);
        }
    }

    /// The lowest slot with an item.
    #[inline]
    pub fn first(&self) -> Option<u64> {
        let beyond = self.beyond.first().map(|(slot, _)| slot);
        if self.len == 0 { beyond } else { Some(beyond.map_or(self.nearest, |slot| slot.min(self.nearest))) }
    }

    /// Declares that all slots up to and including `slot` have passed.
    #[inline]
    pub fn pass(&mut self, slot: u64) {
        while self.len > 0 && self.nearest <= slot {
            let chain = self.chain(self.nearest);
            self.len -= std::mem::take(&mut self.counts[chain as usize]) as usize;
            self.on_empty(chain);
        }
        while self.beyond.first().is_some_and(|(first, _)| first <= slot) {
            self.beyond.pop();
        }
        self.passed = self.passed.max(slot);
    }

    /// Removes all items, returns to slot 0, and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.busy.clear();
        self.beyond.clear();
        (self.passed, self.nearest, self.len) = (0, 0, 0);
    }

    /// Updates the set and the lowest slot after an entry became zero.
    #[inline]
    fn on_empty(&mut self, chain: u32) {
        self.busy.remove(chain);
        let nearest = self.chain(self.nearest);
        if chain == nearest
            && let Some(next) = self.busy.from(nearest).or_else(|| self.busy.first())
        {
            self.nearest += u64::from(next.wrapping_sub(nearest) & (self.counts.len() as u32 - 1));
        }
    }

    /// Entry of a slot in the array.
    #[inline]
    fn chain(&self, slot: u64) -> u32 {
        slot as u32 & (self.counts.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The counts equal a map from items to slots, from which passed slots are removed, for any size of
        /// the array.
        #[test]
        fn is_a_map(
            ops in prop::collection::vec((0..6u8, 0..30u32, 1..300u64), 0..400),
            slots in prop_oneof![1..9usize, Just(64), 90..200usize],
        ) {
            let mut counts = SlotCounts::new(slots);
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            // The slot that the owner of each item stores, passed or not.
            let mut filed = [0; 30];
            let mut passed = 0;
            for (op, item, ahead) in ops {
                match op {
                    0..3 => {
                        counts.remove(item, filed[item as usize]);
                        filed[item as usize] = passed + ahead;
                        counts.file(item, passed + ahead);
                        model.insert(item, passed + ahead);
                    }
                    3 => {
                        counts.remove(item, std::mem::take(&mut filed[item as usize]));
                        model.remove(&item);
                    }
                    4 => {
                        passed += ahead / 4;
                        counts.pass(passed);
                        model.retain(|_, slot| *slot > passed);
                    }
                    _ => {
                        if let Some(first) = counts.first() {
                            passed = first;
                            counts.pass(first);
                            model.retain(|_, slot| *slot > first);
                        }
                    }
                }
                prop_assert_eq!(counts.first(), model.values().copied().min());
                prop_assert_eq!(counts.len(), model.len());
                prop_assert_eq!(counts.is_empty(), model.is_empty());
            }
            counts.clear();
            prop_assert!(counts.is_empty() && counts.first().is_none());
        }
    }
}
