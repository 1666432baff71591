//! One slab for all queues of a discipline: queues are lists of indices, so that ten thousand flows cost no more
//! memory than their packets, and nothing is allocated once the slab has grown to the limit.

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

/// The place of an item; stays valid until the item leaves. Its number plus one, so that an `Option` of it is no larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(NonZeroU32);

impl Place {
    /// Its number in the slab: below the largest number of items that were ever held at once.
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
    /// How many items it has.
    pub fn len(&self) -> usize {
        self.len as usize
    }
    /// Whether it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Slots<T> {
    /// Room for `capacity` items; it grows when there are more.
    pub fn with_capacity(capacity: usize) -> Slots<T> {
        Slots { slots: Vec::with_capacity(capacity.min(1 << 16)), free: NONE }
    }

    /// Bytes that an item takes, links included.
    pub const fn bytes_per_slot() -> usize {
        size_of::<Slot<T>>()
    }
    /// Bytes that all of it takes, used or not.
    pub fn bytes(&self) -> u64 {
        (self.slots.capacity() * Self::bytes_per_slot()) as u64
    }

    /// Puts an item at the end.
    #[inline]
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

    /// Puts an item at the front.
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

    /// Takes the first item.
    #[inline]
    pub fn pop_front(&mut self, list: &mut List) -> Option<T> {
        match list.head {
            NONE => None,
            head => Some(self.remove(list, Place::new(head))),
        }
    }

    /// Takes the last item.
    #[inline]
    pub fn pop_back(&mut self, list: &mut List) -> Option<T> {
        match list.tail {
            NONE => None,
            tail => Some(self.remove(list, Place::new(tail))),
        }
    }

    /// Takes an item out of the middle.
    ///
    /// # Panics
    /// When the item is no longer there.
    #[inline]
    pub fn remove(&mut self, list: &mut List, place: Place) -> T {
        let slot = &mut self.slots[place.index() as usize];
        let item = slot.item.take().expect("a place holds its item until it leaves");
        let (prev, next) = (slot.prev, slot.next);
        slot.next = self.free;
        self.free = place.index();
        self.unlink(list, prev, next);
        item
    }

    /// Takes an item out of its list, and leaves it at its place, in no list.
    ///
    /// # Panics
    /// When there is no such place.
    #[inline]
    pub fn detach(&mut self, list: &mut List, place: Place) {
        let Slot { prev, next, .. } = self.slots[place.index() as usize];
        self.unlink(list, prev, next);
    }

    /// Takes out an item that is in no list.
    ///
    /// # Panics
    /// When the item is no longer there.
    #[inline]
    pub fn release(&mut self, place: Place) -> T {
        let slot = &mut self.slots[place.index() as usize];
        let item = slot.item.take().expect("a place holds its item until it leaves");
        slot.next = self.free;
        self.free = place.index();
        item
    }

    /// Puts an item that is in no list at the end of one. Its place stays as it is.
    ///
    /// # Panics
    /// When there is no such place.
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

    /// Moves the first item to the end. Places stay as they are.
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

    /// Where the first item is.
    #[inline]
    pub fn front_place(&self, list: &List) -> Option<Place> {
        (list.head != NONE).then_some(Place::new(list.head))
    }

    /// Where the item is that has so many before it, looked for from the nearer end.
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

    /// The item that has this number, if one has: see [`Place::index`].
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

    /// The item at a place, to change it.
    #[inline]
    pub fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.slots.get_mut(place.index() as usize)?.item.as_mut()
    }

    /// Every item of a list, first to last.
    pub fn iter(&self, list: &List) -> impl Iterator<Item = &T> {
        let mut at = list.head;
        std::iter::from_fn(move || {
            let slot = self.slots.get(at as usize)?;
            at = slot.next;
            slot.item.as_ref()
        })
    }

    /// Every item of every list, in no order that means anything, to change it.
    pub fn items_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.item.as_mut())
    }

    #[inline]
    fn take_slot(&mut self, item: T, prev: u32, next: u32) -> u32 {
        let slot = Slot { item: Some(item), next, prev };
        match self.free {
            NONE => {
                let place = u32::try_from(self.slots.len()).expect("fewer than 2^32 items are held");
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
    /// When it is no longer there.
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
        Rotate(u8),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0..3u8).prop_map(Op::PushBack),
            (0..3u8).prop_map(Op::PushFront),
            (0..3u8).prop_map(Op::PopFront),
            (0..3u8).prop_map(Op::PopBack),
            (0..3u8).prop_map(Op::RemoveSecond),
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
