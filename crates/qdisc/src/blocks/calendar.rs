//! Bucketed calendars: items in the order of the slots of time in which they are due, without sorting.
//!
//! [`Chains`] is an array of slots, each with a chain of items in the order of insertion, and a set of the
//! slots that are not empty. A few find-first-set instructions find the next of them, at any distance.
//! [`Calendar`] uses it as a window into an unbounded sequence of slots. An item after the end of the window
//! is kept in a heap until the window reaches its slot. A timestamp modulo the size of an array would instead
//! wrap round into an earlier slot.
//!
//! Insertion, removal and the first item take O(1), and O(log n) for items after the window, which are
//! counted.
//!
//! Timing wheels: G. Varghese, T. Lauck, SOSP 1987. Calendar queues: R. Brown, CACM 31(10), 1988. Circular
//! queues with find-first-set: A. Saeed et al., "Eiffel", NSDI 2019.

use super::flow_heap::FlowHeap;
use super::positions::Positions;

/// An array of chains. Items are small numbers, such as the place of a flow or packet in a slab; each is
/// filed at most once.
#[derive(Debug)]
pub struct Chains {
    ends: Box<[Ends]>,
    busy: Positions,
    /// Links by item.
    links: Vec<Link>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
    /// Slot of the item; `NONE` if the item is not in the array.
    slot: u32,
}

const NONE: u32 = u32::MAX;
const EMPTY: Ends = Ends { head: NONE, tail: NONE };
const OUT: Link = Link { prev: NONE, next: NONE, slot: NONE };

impl Chains {
    /// An array of `slots` empty slots.
    ///
    /// # Panics
    /// If there are none, or 2³² - 1 or more.
    pub fn new(slots: usize) -> Chains {
        assert!((1..NONE as usize).contains(&slots), "an array has slots, and their numbers fit 32 bits");
        let mut busy = Positions::default();
        // Allocates the memory of the set.
        busy.insert(slots as u32 - 1);
        busy.remove(slots as u32 - 1);
        Chains { ends: vec![EMPTY; slots].into_boxed_slice(), busy, links: Vec::new(), len: 0 }
    }

    /// Number of slots.
    #[inline]
    pub fn slots(&self) -> u32 {
        self.ends.len() as u32
    }
    /// Number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    /// True if there are no items.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Memory in bytes, used or not.
    pub fn bytes(&self) -> u64 {
        let (ends, links) = (self.ends.len() * size_of::<Ends>(), self.links.capacity() * size_of::<Link>());
        (ends + links) as u64 + self.busy.bytes()
    }

    /// Appends an item to the chain of a slot.
    ///
    /// # Panics
    /// If there is no such slot.
    #[inline(always)]
    pub fn push(&mut self, slot: u32, item: u32) {
        if item as usize >= self.links.len() {
            self.links.resize(item as usize + 1, OUT);
        }
        debug_assert_eq!(self.links[item as usize].slot, NONE, "an item is filed once");
        let ends = &mut self.ends[slot as usize];
        self.links[item as usize] = Link { prev: ends.tail, next: NONE, slot };
        match ends.tail {
            NONE => {
                ends.head = item;
                self.busy.insert(slot);
            }
            tail => self.links[tail as usize].next = item,
        }
        ends.tail = item;
        self.len += 1;
    }

    /// Removes an item. Returns true if it was there.
    #[inline]
    pub fn remove(&mut self, item: u32) -> bool {
        self.take(item).is_some()
    }

    /// Removes an item. Returns its slot, and true if the slot is now empty.
    ///
    /// It is always inlined, like the other steps of a move: as calls, they added 45 instructions to the 660
    /// of a packet with TRR.
    #[inline(always)]
    fn take(&mut self, item: u32) -> Option<(u32, bool)> {
        let Link { prev, next, slot } = *self.links.get(item as usize)?;
        if slot == NONE {
            return None;
        }
        self.links[item as usize].slot = NONE;
        self.len -= 1;
        let ends = &mut self.ends[slot as usize];
        // `prev` of the first item and `next` of the last are not maintained. Most items leave as the first
        // of their chain, and writing to the next item would fetch its cache line long before it is needed.
        match (ends.head == item, ends.tail == item) {
            (true, true) => {
                *ends = EMPTY;
                self.busy.remove(slot);
                return Some((slot, true));
            }
            (true, false) => ends.head = next,
            (false, true) => ends.tail = prev,
            (false, false) => {
                self.links[prev as usize].next = next;
                self.links[next as usize].prev = prev;
            }
        }
        Some((slot, false))
    }

    /// The first item of a slot.
    #[inline]
    pub fn front(&self, slot: u32) -> Option<u32> {
        Some(self.ends[slot as usize].head).filter(|head| *head != NONE)
    }

    /// The first slot with items from `slot` on, cyclically.
    #[inline]
    pub fn next_from(&self, slot: u32) -> Option<u32> {
        self.busy.from(slot).or_else(|| self.busy.first())
    }

    /// Removes all items and keeps the memory.
    pub fn clear(&mut self) {
        self.ends.fill(EMPTY);
        self.busy.clear();
        self.links.fill(OUT);
        self.len = 0;
    }
}

/// Items by slot of time, then in the order of insertion.
#[derive(Debug)]
pub struct Calendar {
    /// At least as many chains as the window has slots. A power of two, so that the chain of a slot is found
    /// without a division.
    chains: Chains,
    /// Number of slots in the window.
    window: u64,
    /// First slot of the window. No item is before it.
    floor: u64,
    /// First slot of the window with an item, if there is one. It is updated when the previous one becomes
    /// empty, not at each query.
    nearest: u64,
    /// Latest first slot of the window, as far as the items allow. The window moves only when that makes a
    /// difference.
    passed: u64,
    /// Items after the end of the window, by slot, then by insertion.
    later: FlowHeap<(u64, u64)>,
    /// Number of insertions after the end of the window so far.
    overflowed: u64,
}

impl Calendar {
    /// A calendar with a window of `slots` slots from slot 0 on.
    ///
    /// # Panics
    /// If [`Chains::new`] panics for this number of slots.
    pub fn new(slots: usize) -> Calendar {
        assert!(slots > 0, "a window has slots");
        Calendar {
            chains: Chains::new(slots.next_power_of_two()),
            window: slots as u64,
            floor: 0,
            nearest: 0,
            passed: 0,
            later: FlowHeap::with_capacity(0),
            overflowed: 0,
        }
    }

    /// Number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.chains.len() + self.later.len()
    }
    /// True if there are no items.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of items so far that were after the end of the window at their insertion.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }
    /// Memory in bytes, used or not.
    pub fn bytes(&self) -> u64 {
        self.chains.bytes() + self.later.bytes()
    }

    /// Inserts an item. An overdue item goes to the first slot of the window.
    #[inline]
    pub fn file(&mut self, item: u32, slot: u64) {
        let slot = self.within(slot);
        self.put(item, slot);
    }

    /// Moves an item to another slot. The window does not move past the old slot before.
    #[inline]
    pub fn refile(&mut self, item: u32, slot: u64) {
        let slot = self.within(slot);
        self.remove(item);
        self.put(item, slot);
    }

    /// Removes an item. Returns true if it was there.
    #[inline]
    pub fn remove(&mut self, item: u32) -> bool {
        let Some((chain, emptied)) = self.chains.take(item) else {
            return !self.later.is_empty() && self.later.remove(item);
        };
        let nearest = self.chain(self.nearest);
        if emptied
            && chain == nearest
            && let Some(next) = self.chains.next_from(nearest)
        {
            // Chains are cyclic: the distance to the next one is a number of slots, modulo their power of
            // two.
            self.nearest += u64::from(next.wrapping_sub(nearest) & (self.chains.slots() - 1));
        }
        true
    }

    /// The first slot with an item, and its first item.
    #[inline]
    pub fn first(&self) -> Option<(u64, u32)> {
        if self.chains.is_empty() {
            // The window does not move: the next insertion may be before this item.
            return self.later.first().map(|((slot, _), item)| (slot, item));
        }
        Some((self.nearest, self.chains.front(self.chain(self.nearest))?))
    }

    /// Declares that all slots before `slot` have passed. The window follows at a later insertion, as far as
    /// the items allow.
    #[inline]
    pub fn advance(&mut self, slot: u64) {
        self.passed = self.passed.max(slot);
    }

    /// Removes all items, returns to slot 0, and keeps the memory.
    pub fn clear(&mut self) {
        self.chains.clear();
        self.later.clear();
        (self.floor, self.nearest, self.passed) = (0, 0, 0);
    }

    /// The slot for an item that is due in `slot`. The window moves here, if its position matters for the
    /// item. The result is the same as with a move at each insertion: items that were inserted without a move
    /// were not due before `passed`.
    #[inline]
    fn within(&mut self, slot: u64) -> u64 {
        if slot >= self.passed && slot - self.floor < self.window {
            return slot;
        }
        self.catch_up();
        slot.max(self.floor)
    }

    #[inline(always)]
    fn put(&mut self, item: u32, slot: u64) {
        if slot - self.floor < self.window {
            self.push(item, slot);
        } else {
            self.overflowed += 1;
            // The count keeps the order of insertion among items of one slot.
            self.later.set(item, (slot, self.overflowed));
        }
    }

    /// Moves the window, and inserts the items that it reaches.
    fn catch_up(&mut self) {
        let first = self.first().map_or(self.passed, |(first, _)| first);
        // The window never moves past an item.
        let floor = self.passed.min(first);
        if floor <= self.floor {
            return;
        }
        self.floor = floor;
        while let Some(((slot, _), item)) = self.later.first()
            && slot - self.floor < self.window
        {
            self.later.remove(item);
            self.push(item, slot);
        }
    }

    /// Inserts an item in the window.
    #[inline(always)]
    fn push(&mut self, item: u32, slot: u64) {
        if slot < self.nearest || self.chains.is_empty() {
            self.nearest = slot;
        }
        self.chains.push(self.chain(slot), item);
    }

    /// The chain of a slot in the window.
    #[inline]
    fn chain(&self, slot: u64) -> u32 {
        slot as u32 & (self.chains.slots() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The calendar equals a list sorted by slot and insertion, for any size of the window: no item wraps
        /// round. An overdue item goes to the start of the list, or to the slot that was passed last.
        #[test]
        fn is_a_sorted_list(
            ops in prop::collection::vec((0..10u8, 0..30u32, 0..200u64), 0..400),
            slots in prop_oneof![1..9usize, Just(64), 90..200usize],
        ) {
            let mut calendar = Calendar::new(slots);
            // Slot, serial number and item; the start of the window; and the last slot that was passed.
            let mut model: Vec<(u64, usize, u32)> = Vec::new();
            let (mut floor, mut passed, mut now) = (0, 0, 0u64);
            for (serial, (op, item, ahead)) in ops.into_iter().enumerate() {
                let at = model.iter().position(|(_, _, other)| *other == item);
                let slot = (now + ahead).saturating_sub(20);
                match op {
                    0..4 if at.is_none() => {
                        floor = model.first().map_or(passed, |(first, ..)| passed.min(*first)).max(floor);
                        calendar.file(item, slot);
                        model.push((slot.max(floor), serial, item));
                    }
                    4 | 5 => {
                        floor = model.first().map_or(passed, |(first, ..)| passed.min(*first)).max(floor);
                        calendar.refile(item, slot);
                        at.map(|at| model.remove(at));
                        model.push((slot.max(floor), serial, item));
                    }
                    6 | 7 => {
                        prop_assert_eq!(calendar.first(), model.first().map(|(slot, _, item)| (*slot, *item)));
                        if let Some((slot, _, item)) = model.first().copied() {
                            prop_assert!(calendar.remove(item));
                            now = slot;
                            model.remove(0);
                        }
                    }
                    8 => {
                        prop_assert_eq!(calendar.remove(item), at.is_some());
                        at.map(|at| model.remove(at));
                    }
                    9 => {
                        now += ahead / 4;
                        passed = passed.max(now);
                        calendar.advance(now);
                    }
                    _ => {}
                }
                // The sort is stable: items of one slot keep the order of their insertion.
                model.sort_by_key(|(slot, serial, _)| (*slot, *serial));
                prop_assert_eq!(calendar.len(), model.len());
            }
            while let Some((slot, _, item)) = model.first().copied() {
                prop_assert_eq!(calendar.first(), Some((slot, item)));
                calendar.remove(item);
                model.remove(0);
            }
            prop_assert!(calendar.is_empty() && calendar.first().is_none());
        }
    }

    #[test]
    fn items_after_the_window_are_counted() {
        let mut calendar = Calendar::new(10);
        calendar.file(1, 3);
        calendar.file(2, 13);
        assert_eq!((calendar.first(), calendar.overflowed()), (Some((3, 1)), 1), "13 is not 3");
        calendar.remove(1);
        assert_eq!(calendar.first(), Some((13, 2)));
        // An overdue item goes to the first slot.
        calendar.advance(20);
        calendar.file(3, 5);
        assert_eq!(calendar.first(), Some((13, 2)), "an item in the window keeps it in place");
        calendar.remove(2);
        assert_eq!(calendar.first(), Some((13, 3)));
    }

    #[test]
    fn chains_are_cyclic() {
        let mut chains = Chains::new(101);
        chains.push(100, 7);
        chains.push(3, 8);
        chains.push(3, 9);
        assert_eq!(chains.next_from(4), Some(100));
        assert!(chains.remove(7) && !chains.remove(7));
        assert_eq!((chains.next_from(4), chains.front(3)), (Some(3), Some(8)));
        chains.remove(8);
        assert_eq!(chains.front(3), Some(9));
        chains.clear();
        assert_eq!((chains.next_from(0), chains.len()), (None, 0));
    }
}
