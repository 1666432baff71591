//! How many items lie in each slot of time from now on: for schedulers that ask for the earliest, and not who it is.
//!
//! An array of counts that slots are filed in by their remainder, and a set of those that are not zero. An item that lies beyond the array is
//! kept in a heap. Nothing is linked: an item remembers its slot itself, and time that passes takes out a slot at once, with all in it.
//! What is filed is never nearer than what has passed, so a remainder means one slot only.
//!
//! Filing, removing and the first are O(1), and O(log n) for items beyond the array. Passing is O(1) per slot in use, and so per item.

use super::flow_heap::FlowHeap;
use super::positions::Positions;

/// Items by slot, counted. Items are small numbers, such as the place of a flow in a slab; each is filed at most once.
#[derive(Debug)]
pub struct SlotCounts {
    /// A power of two. Slot n is that of its remainder.
    counts: Box<[u32]>,
    busy: Positions,
    /// Up to here all is over.
    passed: u64,
    /// The lowest slot of the array that has items, if one has.
    nearest: u64,
    /// How many are in the array.
    len: usize,
    /// Items that lay beyond the array when they were filed, by slot.
    beyond: FlowHeap<u64>,
}

impl SlotCounts {
    /// Room for so many slots, or a few more, and a heap for what lies beyond.
    pub fn new(slots: usize) -> SlotCounts {
        let counts = vec![0; slots.next_power_of_two()].into_boxed_slice();
        let mut busy = Positions::default();
        // Takes its memory now.
        busy.insert(counts.len() as u32 - 1);
        busy.remove(counts.len() as u32 - 1);
        SlotCounts { counts, busy, passed: 0, nearest: 0, len: 0, beyond: FlowHeap::with_capacity(0) }
    }

    /// How many items are filed in slots that have not passed.
    #[inline]
    pub fn len(&self) -> usize {
        self.len + self.beyond.len()
    }
    /// Whether none is.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes that it takes, used or not.
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.counts) as u64 + self.busy.bytes() + self.beyond.bytes()
    }

    /// Files an item in a slot, which must not have passed.
    #[inline]
    pub fn file(&mut self, item: u32, slot: u64) {
        debug_assert!(slot > self.passed, "what is filed has not passed");
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

    /// Takes an item out that was filed in this slot. It is out already if that has passed.
    #[inline]
    pub fn remove(&mut self, item: u32, slot: u64) {
        if slot <= self.passed || (!self.beyond.is_empty() && self.beyond.remove(item)) {
            return;
        }
        let chain = self.chain(slot);
        self.len -= 1;
        self.counts[chain as usize] -= 1;
        if self.counts[chain as usize] == 0 {
            self.emptied(chain);
        }
    }

    /// The lowest slot with an item.
    #[inline]
    pub fn first(&self) -> Option<u64> {
        let beyond = self.beyond.first().map(|(slot, _)| slot);
        if self.len == 0 { beyond } else { Some(beyond.map_or(self.nearest, |slot| slot.min(self.nearest))) }
    }

    /// All up to `slot`, that one included, is over.
    #[inline]
    pub fn pass(&mut self, slot: u64) {
        while self.len > 0 && self.nearest <= slot {
            let chain = self.chain(self.nearest);
            self.len -= std::mem::take(&mut self.counts[chain as usize]) as usize;
            self.emptied(chain);
        }
        while self.beyond.first().is_some_and(|(first, _)| first <= slot) {
            self.beyond.pop();
        }
        self.passed = self.passed.max(slot);
    }

    /// Forgets all and begins at slot 0 again, keeping the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.busy.clear();
        self.beyond.clear();
        (self.passed, self.nearest, self.len) = (0, 0, 0);
    }

    /// A slot has no items any more.
    #[inline]
    fn emptied(&mut self, chain: u32) {
        self.busy.remove(chain);
        let nearest = self.chain(self.nearest);
        if chain == nearest
            && let Some(next) = self.busy.from(nearest).or_else(|| self.busy.first())
        {
            self.nearest += u64::from(next.wrapping_sub(nearest) & (self.counts.len() as u32 - 1));
        }
    }

    /// Where a slot is in the array.
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
        /// It is a map from items to slots from which all is taken out that has passed, whatever the size of the array.
        #[test]
        fn is_a_map(
            ops in prop::collection::vec((0..6u8, 0..30u32, 1..300u64), 0..400),
            slots in prop_oneof![1..9usize, Just(64), 90..200usize],
        ) {
            let mut counts = SlotCounts::new(slots);
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            // What an item remembers, whether it has passed or not.
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
