//! What happens next: a tournament over one pending event per link, connection and source.
//!
//! Everything that can happen has a *slot* with the time of its next event. A winner tree over the slots knows the
//! earliest; moving one slot replays only its path to the root, which for the usual case "this event happened, that
//! is when the same thing happens next" is one pass instead of a heap's pop and push. Ties are broken by the order
//! in which the times were set, so the result depends on nothing else.

use qdisc::Time;

/// One thing that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

/// The agenda. The number of slots grows as needed; a slot that is given back is used again.
#[derive(Debug)]
pub struct Agenda {
    /// Time and sequence number per slot; `Time::NEVER` when nothing is pending.
    keys: Vec<Key>,
    /// The tree: node `i` has children `2i` and `2i + 1`, the leaves are the slots in order. Holds the slot that wins.
    winners: Vec<u32>,
    /// Number of leaves, a power of two.
    leaves: usize,
    used: usize,
    free: Vec<u32>,
    sequence: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    at: Time,
    sequence: u64,
}

const IDLE: Key = Key { at: Time::NEVER, sequence: u64::MAX };

impl Default for Agenda {
    fn default() -> Agenda {
        let mut agenda = Agenda {
            keys: Vec::new(),
            winners: Vec::new(),
            leaves: 0,
            used: 0,
            free: Vec::new(),
            sequence: 0,
        };
        agenda.resize(16);
        agenda
    }
}

impl Agenda {
    /// A slot for something new, with nothing pending.
    pub fn add(&mut self) -> Slot {
        if let Some(slot) = self.free.pop() {
            return Slot(slot);
        }
        if self.used == self.leaves {
            self.resize(self.leaves * 2);
        }
        self.used += 1;
        Slot(u32::try_from(self.used - 1).expect("fewer than 2^32 things happen"))
    }

    /// Gives a slot back.
    pub fn remove(&mut self, slot: Slot) {
        self.set(slot, Time::NEVER);
        self.free.push(slot.0);
    }

    /// When the thing happens next; `Time::NEVER` for not at all.
    #[inline]
    pub fn set(&mut self, slot: Slot, at: Time) {
        let key = &mut self.keys[slot.0 as usize];
        if key.at == at {
            // It keeps its place among equals; idle slots stay idle.
            return;
        }
        *key = if at == Time::NEVER {
            IDLE
        } else {
            self.sequence += 1;
            Key { at, sequence: self.sequence }
        };
        self.replay(slot.0 as usize);
    }

    /// When the thing happens next.
    pub fn time_of(&self, slot: Slot) -> Time {
        self.keys[slot.0 as usize].at
    }

    /// The earliest pending event. It stays pending until its slot is set.
    #[inline]
    pub fn first(&self) -> Option<(Time, Slot)> {
        let slot = self.winners[1];
        let key = self.keys[slot as usize];
        (key.at != Time::NEVER).then_some((key.at, Slot(slot)))
    }

    /// The number of a slot, dense from zero: for tables beside the agenda.
    #[inline]
    pub fn index(slot: Slot) -> usize {
        slot.0 as usize
    }

    #[inline]
    fn replay(&mut self, slot: usize) {
        let mut winner = slot as u32;
        let mut key = self.keys[slot];
        let mut node = (self.leaves + slot) >> 1;
        let mut child = self.leaves + slot;
        while node >= 1 {
            let rival = self.winners[child ^ 1];
            let rival_key = self.keys[rival as usize];
            if rival_key < key {
                winner = rival;
                key = rival_key;
            }
            self.winners[node] = winner;
            child = node;
            node >>= 1;
        }
    }

    fn resize(&mut self, leaves: usize) {
        self.leaves = leaves;
        self.keys.resize(leaves, IDLE);
        self.winners = vec![0; 2 * leaves];
        for slot in 0..leaves {
            self.winners[leaves + slot] = slot as u32;
        }
        for node in (1..leaves).rev() {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let right_wins = self.keys[right as usize] < self.keys[left as usize];
            self.winners[node] = if right_wins { right } else { left };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The same order as a sorted map of (time, sequence), under any mix of setting, moving and removing.
        #[test]
        fn is_a_sorted_map(ops in prop::collection::vec((0..40usize, 0..50u64), 1..500)) {
            let mut agenda = Agenda::default();
            let mut slots = Vec::new();
            let mut model: BTreeMap<(Time, u64), usize> = BTreeMap::new();
            let mut key_of = BTreeMap::new();
            for (serial, (which, at)) in ops.into_iter().enumerate() {
                while slots.len() <= which {
                    slots.push(agenda.add());
                }
                let at = if at == 0 { Time::NEVER } else { Time::us(at) };
                let before = key_of.get(&which).map_or(Time::NEVER, |(at, _): &(Time, u64)| *at);
                agenda.set(slots[which], at);
                if at != before {
                    if let Some(key) = key_of.remove(&which) {
                        model.remove(&key);
                    }
                    if at != Time::NEVER {
                        model.insert((at, serial as u64), which);
                        key_of.insert(which, (at, serial as u64));
                    }
                }
                let first = agenda.first().map(|(at, slot)| (at, slots.iter().position(|s| *s == slot).unwrap()));
                prop_assert_eq!(first, model.first_key_value().map(|((at, _), which)| (*at, *which)));
            }
        }
    }
}
