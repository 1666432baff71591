//! One slab for all queues of a discipline. Queues are linked lists of indices, so the memory depends on the
//! number of packets, not of queues, and no memory is allocated once the slab has grown to the limit.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

/// A slab of items linked into [`List`]s.
#[derive(Debug)]
pub struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// First free slot, linked by `next`.
    free: u32,
}

#[derive(Debug)]
struct Slot<T> {
    item: Option<T>,
    next: u32,
    prev: u32,
}

/// A queue inside a [`Slots`]. Empty when new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    head: u32,
    tail: u32,
    len: u32,
}

/// Handle of an item in a [`Slots`], valid until the item leaves. It is the index plus one, so that its
/// `Option` is no larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(NonZeroU32);

impl Place {
    /// Index in the slab. It is below the largest number of items that were in the slab at one time.
    #[inline]
    pub fn index(self) -> u32 {
        self.0.get() - 1
    }
    #[inline]
    pub(crate) fn new(index: u32) -> Place {
        Place(NonZeroU32::MIN.saturating_add(index))
    }
}

const NONE: u32 = u32::MAX;

impl Default for List {
    fn default() -> List {
        List { head: NONE, tail: NONE, len: 0 }
    }
}

impl List {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.len as usize
    }
    /// True if the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Slots<T> {
    /// A slab with capacity for `capacity` items. It grows on demand.
    pub fn with_capacity(capacity: usize) -> Slots<T> {
        Slots { slots: Vec::with_capacity(capacity.min(1 << 16)), free: NONE }
    }

    /// Memory per item in bytes, links included.
    pub const fn bytes_per_slot() -> usize {
        size_of::<Slot<T>>()
    }
    /// Memory of the slab in bytes, used or not.
    pub fn bytes(&self) -> u64 {
        (self.slots.capacity() * Self::bytes_per_slot()) as u64
    }

    /// Appends an item to a list.
    // Always inlined, so that the packet is not copied in between.
    #[inline(always)]
    pub fn push_back(&mut self, list: &mut List, item: T) -> Place {
        let place = self.take_slot(item, list.tail, NONE);
        match list.tail {
            NONE => list.head = place,
            tail => self.slots[tail as usize].next = place,
        }
        list.tail = place;
        list.len += 1;
        Place::new(place)
    }

    /// Inserts an item at the front of a list.
    #[inline]
    pub fn push_front(&mut self, list: &mut List, item: T) -> Place {
        let place = self.take_slot(item, NONE, list.head);
        match list.head {
            NONE => list.tail = place,
            head => self.slots[head as usize].prev = place,
        }
        list.head = place;
        list.len += 1;
        Place::new(place)
    }

    /// Inserts an item behind the last item of a list that `precedes` it, or at the front. The search starts
    /// at the end, so it takes one step for each item that comes after it.
    #[inline]
    pub fn insert_behind(&mut self, list: &mut List, item: T, precedes: impl Fn(&T) -> bool) -> Place {
        let (mut prev, mut next) = (list.tail, NONE);
        while let Some(slot) = self.slots.get(prev as usize)
            && !slot.item.as_ref().is_some_and(&precedes)
        {
            (prev, next) = (slot.prev, prev);
        }
        let place = self.take_slot(item, prev, next);
        match prev {
            NONE => list.head = place,
            prev => self.slots[prev as usize].next = place,
        }
        match next {
            NONE => list.tail = place,
            next => self.slots[next as usize].prev = place,
        }
        list.len += 1;
        Place::new(place)
    }

    /// Removes the first item.
    #[inline]
    pub fn pop_front(&mut self, list: &mut List) -> Option<T> {
        match list.head {
            NONE => None,
            head => Some(self.remove(list, Place::new(head))),
        }
    }

    /// Removes the first item if `leaves` returns true for it.
    #[inline]
    pub fn pop_front_if(&mut self, list: &mut List, leaves: impl FnOnce(&T) -> bool) -> Option<T> {
        let Slot { item, next, .. } = self.slots.get(list.head as usize)?;
        if !leaves(item.as_ref()?) {
            return None;
        }
        let (head, second) = (list.head, *next);
        match second {
            NONE => list.tail = NONE,
            second => self.slots[second as usize].prev = NONE,
        }
        (list.head, list.len) = (second, list.len - 1);
        let slot = &mut self.slots[head as usize];
        (slot.next, self.free) = (self.free, head);
        // Last, so that the item moves to the caller without a copy in between.
        slot.item.take()
    }

    /// Removes the last item.
    #[inline]
    pub fn pop_back(&mut self, list: &mut List) -> Option<T> {
        match list.tail {
            NONE => None,
            tail => Some(self.remove(list, Place::new(tail))),
        }
    }

    /// Removes an item from anywhere in a list.
    ///
    /// # Panics
    /// If the item has left.
    #[inline]
    pub fn remove(&mut self, list: &mut List, place: Place) -> T {
        self.detach(list, place);
        self.release(place)
    }

    /// Unlinks an item from its list. The item keeps its place, and is in no list.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline]
    pub fn detach(&mut self, list: &mut List, place: Place) {
        let Slot { prev, next, .. } = self.slots[place.index() as usize];
        self.unlink(list, prev, next);
    }

    /// Removes an item that is in no list.
    ///
    /// # Panics
    /// If the item has left.
    #[inline]
    pub fn release(&mut self, place: Place) -> T {
        let slot = &mut self.slots[place.index() as usize];
        slot.next = self.free;
        self.free = place.index();
        // Last, so that the item moves to the caller without a copy in between.
        slot.item.take().expect("a place holds its item until it leaves")
    }

    /// Appends an item that is in no list to a list. The item keeps its place.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline]
    pub fn attach(&mut self, list: &mut List, place: Place) {
        let slot = &mut self.slots[place.index() as usize];
        (slot.prev, slot.next) = (list.tail, NONE);
        match list.tail {
            NONE => list.head = place.index(),
            tail => self.slots[tail as usize].next = place.index(),
        }
        list.tail = place.index();
        list.len += 1;
    }

    /// Closes the gap between two items of a list.
    #[inline]
    fn unlink(&mut self, list: &mut List, prev: u32, next: u32) {
        match prev {
            NONE => list.head = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NONE => list.tail = prev,
            next => self.slots[next as usize].prev = prev,
        }
        list.len -= 1;
    }

    /// Moves the first item to the end. All items keep their places.
    #[inline]
    pub fn rotate(&mut self, list: &mut List) {
        if list.head == list.tail {
            return;
        }
        let (first, last) = (list.head, list.tail);
        let second = self.slots[first as usize].next;
        self.slots[second as usize].prev = NONE;
        self.slots[last as usize].next = first;
        let slot = &mut self.slots[first as usize];
        slot.prev = last;
        slot.next = NONE;
        list.head = second;
        list.tail = first;
    }

    /// Place of the first item.
    #[inline]
    pub fn front_place(&self, list: &List) -> Option<Place> {
        (list.head != NONE).then_some(Place::new(list.head))
    }

    /// Place of the item at index `nth` of a list. The search starts at the nearer end.
    #[inline]
    pub fn nth_place(&self, list: &List, nth: usize) -> Option<Place> {
        let behind = list.len().checked_sub(nth + 1)?;
        let mut at = if nth <= behind { list.head } else { list.tail };
        for _ in 0..nth.min(behind) {
            let slot = &self.slots[at as usize];
            at = if nth <= behind { slot.next } else { slot.prev };
        }
        Some(Place::new(at))
    }

    /// Place of the item with this [index](Place::index), if there is one.
    #[inline]
    pub fn place(&self, index: u32) -> Option<Place> {
        self.slots.get(index as usize)?.item.is_some().then_some(Place::new(index))
    }

    /// The first item.
    #[inline]
    pub fn front(&self, list: &List) -> Option<&T> {
        self.slots.get(list.head as usize)?.item.as_ref()
    }

    /// The last item.
    #[inline]
    pub fn back(&self, list: &List) -> Option<&T> {
        self.slots.get(list.tail as usize)?.item.as_ref()
    }

    /// The item at a place.
    #[inline]
    pub fn get(&self, place: Place) -> Option<&T> {
        self.slots.get(place.index() as usize)?.item.as_ref()
    }

    /// The item at a place, mutably.
    #[inline]
    pub fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.slots.get_mut(place.index() as usize)?.item.as_mut()
    }

    /// The items of a list, first to last.
    pub fn iter(&self, list: &List) -> impl Iterator<Item = &T> {
        let mut at = list.head;
        std::iter::from_fn(move || {
            let slot = self.slots.get(at as usize)?;
            at = slot.next;
            slot.item.as_ref()
        })
    }

    /// All items of all lists, mutably, in no particular order.
    pub fn items_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.item.as_mut())
    }

    #[inline]
    fn take_slot(&mut self, item: T, prev: u32, next: u32) -> u32 {
        let slot = Slot { item: Some(item), next, prev };
        match self.free {
            NONE => {
                let place = u32::try_from(self.slots.len()).expect("a slab has fewer than 2^32 items");
                self.slots.push(slot);
                place
            }
            place => {
                self.free = self.slots[place as usize].next;
                self.slots[place as usize] = slot;
                place
            }
        }
    }
}

impl<T> Index<Place> for Slots<T> {
    type Output = T;
    /// The item at a place.
    ///
    /// # Panics
    /// If the item has left.
    #[inline]
    fn index(&self, place: Place) -> &T {
        self.get(place).expect("a place holds its item until it leaves")
    }
}

impl<T> IndexMut<Place> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, place: Place) -> &mut T {
        self.get_mut(place).expect("a place holds its item until it leaves")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[derive(Clone, Debug)]
    enum Op {
        PushBack(u8),
        PushFront(u8),
        PopFront(u8),
        PopBack(u8),
        RemoveSecond(u8),
        InsertBehind(u8, usize),
        Rotate(u8),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0..3u8).prop_map(Op::PushBack),
            (0..3u8).prop_map(Op::PushFront),
            (0..3u8).prop_map(Op::PopFront),
            (0..3u8).prop_map(Op::PopBack),
            (0..3u8).prop_map(Op::RemoveSecond),
            (0..3u8, 0..400usize).prop_map(|(list, number)| Op::InsertBehind(list, number)),
            (0..3u8).prop_map(Op::Rotate),
        ]
    }

    proptest! {
        /// Three lists in one slab behave like three deques.
        #[test]
        fn lists_in_a_slab_are_deques(ops in prop::collection::vec(op(), 0..400)) {
            let mut slots = Slots::with_capacity(0);
            let mut lists = [List::default(); 3];
            let mut deques = [VecDeque::new(), VecDeque::new(), VecDeque::new()];
            let mut places: [VecDeque<Place>; 3] = Default::default();
            for (serial, op) in ops.into_iter().enumerate() {
                match op {
                    Op::PushBack(i) => {
                        places[i as usize].push_back(slots.push_back(&mut lists[i as usize], serial));
                        deques[i as usize].push_back(serial);
                    }
                    Op::PushFront(i) => {
                        places[i as usize].push_front(slots.push_front(&mut lists[i as usize], serial));
                        deques[i as usize].push_front(serial);
                    }
                    Op::PopFront(i) => {
                        places[i as usize].pop_front();
                        prop_assert_eq!(slots.pop_front(&mut lists[i as usize]), deques[i as usize].pop_front());
                    }
                    Op::PopBack(i) => {
                        places[i as usize].pop_back();
                        prop_assert_eq!(slots.pop_back(&mut lists[i as usize]), deques[i as usize].pop_back());
                    }
                    Op::InsertBehind(i, number) => {
                        let (list, deque) = (&mut lists[i as usize], &mut deques[i as usize]);
                        let place = slots.insert_behind(list, serial, |other| *other < number);
                        let at = deque.iter().rposition(|other| *other < number).map_or(0, |at| at + 1);
                        deque.insert(at, serial);
                        places[i as usize].insert(at, place);
                    }
                    Op::RemoveSecond(i) => {
                        if let Some(place) = places[i as usize].remove(1) {
                            let item = slots.remove(&mut lists[i as usize], place);
                            prop_assert_eq!(Some(item), deques[i as usize].remove(1));
                        }
                    }
                    Op::Rotate(i) => {
                        slots.rotate(&mut lists[i as usize]);
                        let (deque, places) = (&mut deques[i as usize], &mut places[i as usize]);
                        if !deque.is_empty() {
                            deque.rotate_left(1);
                            places.rotate_left(1);
                        }
                    }
                }
                let mut items: Vec<usize> = slots.items_mut().map(|item| *item).collect();
                items.sort_unstable();
                let mut expected: Vec<usize> = deques.iter().flatten().copied().collect();
                expected.sort_unstable();
                prop_assert_eq!(items, expected);
                for i in 0..3 {
                    prop_assert_eq!(slots.front_place(&lists[i]), places[i].front().copied());
                    for nth in 0..=places[i].len() {
                        prop_assert_eq!(slots.nth_place(&lists[i], nth), places[i].get(nth).copied());
                    }
                    prop_assert_eq!(lists[i].len(), deques[i].len());
                    prop_assert!(slots.iter(&lists[i]).eq(deques[i].iter()));
                    prop_assert_eq!(slots.front(&lists[i]), deques[i].front());
                    prop_assert_eq!(slots.back(&lists[i]), deques[i].back());
                }
            }
        }
    }
}
