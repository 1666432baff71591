//! A table from flow keys to small values: open addressing with linear probing, deletion without tombstones.
//!
//! Flow keys are keyed hashes already, so the key itself is the probe start. The table grows by doubling and
//! never shrinks; once it has seen its largest population it does not allocate. At most half of the slots are
//! in use, so that most look-ups end at the first or second slot, in one cache line: a mispredicted branch
//! costs more than memory.
//!
//! A value type with a niche, such as `NonZeroU32` or [`Place`](crate::Place), saves the tag of empty slots.

use crate::packet::FlowKey;
use crate::qdisc::FlowTable;

/// A table keyed by flow.
#[derive(Debug)]
pub struct FlowMap<V> {
    /// Occupied slots hold the key and its value; the length is a power of two.
    slots: Vec<Option<(FlowKey, V)>>,
    len: usize,
    /// Largest number of flows so far.
    most: usize,
}

impl<V> Default for FlowMap<V> {
    fn default() -> FlowMap<V> {
        FlowMap::with_capacity(16)
    }
}

impl<V> FlowMap<V> {
    /// A table with capacity for about `flows` flows. It grows on demand.
    pub fn with_capacity(flows: usize) -> FlowMap<V> {
        let slots = (flows.min(1 << 20) * 2).next_power_of_two().max(16);
        FlowMap { slots: std::iter::repeat_with(|| None).take(slots).collect(), len: 0, most: 0 }
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.len
    }
    /// True if there are no flows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Bytes per slot.
    pub const fn bytes_per_slot() -> usize {
        size_of::<Option<(FlowKey, V)>>()
    }
    /// Size of the table. An entry counts as two slots, because the table is at most half full.
    pub fn table(&self) -> FlowTable {
        let slot = Self::bytes_per_slot();
        FlowTable {
            flows: self.len as u64,
            most: self.most as u64,
            entry_bytes: 2 * slot as u32,
            bytes: (self.slots.len() * slot) as u64,
        }
    }

    /// The value of a flow.
    #[inline]
    pub fn get(&self, flow: FlowKey) -> Option<&V> {
        self.slots[self.find(flow)].as_ref().map(|(_, value)| value)
    }

    /// The value of a flow, mutably.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowKey) -> Option<&mut V> {
        let at = self.find(flow);
        self.slots[at].as_mut().map(|(_, value)| value)
    }

    /// The value of a flow, which `new` creates if the flow is new.
    #[inline]
    pub fn entry(&mut self, flow: FlowKey, new: impl FnOnce() -> V) -> &mut V {
        let mut at = self.find(flow);
        if self.slots[at].is_none() {
            if (self.len + 1) * 2 > self.slots.len() {
                self.grow();
                at = self.find(flow);
            }
            self.len += 1;
            self.most = self.most.max(self.len);
            self.slots[at] = Some((flow, new()));
        }
        let (_, value) = self.slots[at].as_mut().expect("the slot was just found or filled");
        value
    }

    /// Changes the value of a flow with `change`, or creates it with `new`. Returns the value.
    #[inline]
    pub fn upsert(&mut self, flow: FlowKey, change: impl FnOnce(&mut V), new: impl FnOnce() -> V) -> &mut V {
        let mut is_new = false;
        let value = self.entry(flow, || {
            is_new = true;
            new()
        });
        if !is_new {
            change(value);
        }
        value
    }

    /// Passes the value of a flow to `done`, and removes the flow if it returns true. Returns false if the
    /// flow is not in the table.
    #[inline]
    pub fn retire(&mut self, flow: FlowKey, done: impl FnOnce(&mut V) -> bool) -> bool {
        let at = self.find(flow);
        let Some((_, value)) = &mut self.slots[at] else { return false };
        if done(value) {
            self.slots[at] = None;
            self.len -= 1;
            self.close_gap(at);
        }
        true
    }

    /// Removes a flow.
    #[inline]
    pub fn remove(&mut self, flow: FlowKey) -> Option<V> {
        let at = self.find(flow);
        let (_, value) = self.slots[at].take()?;
        self.len -= 1;
        self.close_gap(at);
        Some(value)
    }

    /// Prefetches the slot of a flow that will be looked up soon.
    #[inline]
    pub fn expect(&self, flow: FlowKey) {
        // Safe code has no prefetch instruction. A load whose value is not used has the same effect.
        std::hint::black_box(self.slots[home(flow, self.slots.len() - 1)].is_some());
    }

    /// All flows, in an order that depends only on the insertions and removals.
    pub fn iter(&self) -> impl Iterator<Item = (FlowKey, &V)> {
        self.slots.iter().flatten().map(|(flow, value)| (*flow, value))
    }

    /// Keeps the flows for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(FlowKey, &mut V) -> bool) {
        // Closing a gap can move a later entry into this slot, so the slot is examined again. An entry that
        // wraps round from the start may be examined twice.
        let mut at = 0;
        while at < self.slots.len() {
            let goes = match &mut self.slots[at] {
                Some((flow, value)) => !keep(*flow, value),
                None => false,
            };
            if goes {
                self.slots[at] = None;
                self.len -= 1;
                self.close_gap(at);
            } else {
                at += 1;
            }
        }
    }

    /// Removes all flows and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill_with(|| None);
        self.len = 0;
    }

    /// The slot of a flow, or the empty slot where it would go.
    #[inline]
    fn find(&self, flow: FlowKey) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = home(flow, mask);
        while let Some((other, _)) = &self.slots[at] {
            if *other == flow {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    /// Moves later entries of the run back, so that look-ups never stop early at the gap.
    #[inline]
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.slots.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let Some((flow, _)) = &self.slots[at] else { return };
            // The entry may move to the gap unless its home lies after it, cyclically.
            let from_home = at.wrapping_sub(home(*flow, mask)) & mask;
            let from_gap = at.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.slots[gap] = self.slots[at].take();
                gap = at;
            }
        }
    }

    fn grow(&mut self) {
        let doubled = self.slots.len() * 2;
        let old = std::mem::replace(&mut self.slots, std::iter::repeat_with(|| None).take(doubled).collect());
        for (flow, value) in old.into_iter().flatten() {
            let at = self.find(flow);
            self.slots[at] = Some((flow, value));
        }
    }
}

#[inline]
fn home(flow: FlowKey, mask: usize) -> usize {
    // Keys made by hand (tests, counters) are not uniform; one multiplication spreads them.
    (flow.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Equal to an ordered map under any sequence of insertions, removals and sweeps.
        #[test]
        fn is_a_map(ops in prop::collection::vec((0..6u8, 0..60u64), 0..600)) {
            let mut map = FlowMap::with_capacity(0);
            let mut model = BTreeMap::new();
            for (serial, (op, flow)) in ops.into_iter().enumerate() {
                let key = FlowKey(flow);
                match op {
                    0 | 1 => prop_assert_eq!(*map.entry(key, || serial), *model.entry(flow).or_insert(serial)),
                    2 => prop_assert_eq!(map.remove(key), model.remove(&flow)),
                    3 => {
                        let now = *map.upsert(key, |value| *value += 1, || serial);
                        prop_assert_eq!(now, *model.entry(flow).and_modify(|value| *value += 1).or_insert(serial));
                    }
                    4 => {
                        let halve = |value: &mut usize| {
                            *value /= 2;
                            *value < 50
                        };
                        prop_assert_eq!(map.retire(key, halve), model.contains_key(&flow));
                        if model.get_mut(&flow).is_some_and(halve) {
                            model.remove(&flow);
                        }
                    }
                    _ => {
                        map.retain(|kept, value| !(kept.0 + *value as u64).is_multiple_of(3));
                        model.retain(|kept, value| !(*kept + *value as u64).is_multiple_of(3));
                    }
                }
                prop_assert_eq!(map.len(), model.len());
                for any in 0..60 {
                    prop_assert_eq!(map.get(FlowKey(any)), model.get(&any));
                }
                prop_assert_eq!(map.iter().count(), model.len());
            }
        }
    }
}
