//! A FIFO queue from which a random item can be removed. Its items are in an array without gaps, so that each
//! index below the length is an item.

/// A FIFO queue with constant-time removal of an item by its index.
///
/// Indices are not in queue order: a removal moves the last index to another item. A uniform index selects a
/// uniform item.
#[derive(Debug)]
pub struct DenseFifo<T> {
    items: Vec<Linked<T>>,
    head: u32,
    tail: u32,
}

#[derive(Debug)]
struct Linked<T> {
    item: T,
    prev: u32,
    next: u32,
}

const NONE: u32 = u32::MAX;

impl<T> DenseFifo<T> {
    /// An empty queue with capacity for `capacity` items. It grows on demand.
    pub fn with_capacity(capacity: usize) -> DenseFifo<T> {
        DenseFifo { items: Vec::with_capacity(capacity), head: NONE, tail: NONE }
    }

    /// Number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// True if the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Appends an item.
    #[inline]
    pub fn push_back(&mut self, item: T) {
        let number = u32::try_from(self.items.len()).expect("there are fewer than 2^32 items");
        self.items.push(Linked { item, prev: self.tail, next: NONE });
        match self.tail {
            NONE => self.head = number,
            tail => self.items[tail as usize].next = number,
        }
        self.tail = number;
    }

    /// Removes the first item.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        (self.head != NONE).then(|| self.remove(self.head as usize))
    }

    /// The item with this index.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.items.get(number).map(|linked| &linked.item)
    }

    /// Removes the item with this index. The others keep their order.
    ///
    /// # Panics
    /// If there is no such item.
    #[inline]
    pub fn remove(&mut self, number: usize) -> T {
        let Linked { item, prev, next } = self.items.swap_remove(number);
        // A neighbour may be the item that moved from the end into the gap.
        let moved = self.items.len() as u32;
        let now_at = |neighbour: u32| if neighbour == moved { number as u32 } else { neighbour };
        self.join(now_at(prev), now_at(next));
        if let Some(linked) = self.items.get(number) {
            // The links of the moved item are correct, since `join` has updated those to the removed item.
            let (before, after) = (linked.prev, linked.next);
            self.join(before, number as u32);
            self.join(number as u32, after);
        }
        item
    }

    /// The items, first to last.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let linked = self.items.get(at as usize)?;
            at = linked.next;
            Some(&linked.item)
        })
    }

    /// Links two items; `NONE` stands for an end of the queue.
    #[inline]
    fn join(&mut self, before: u32, after: u32) {
        match before {
            NONE => self.head = after,
            before => self.items[before as usize].next = after,
        }
        match after {
            NONE => self.tail = before,
            after => self.items[after as usize].prev = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// The queue equals a deque for any removals, and each item has one index.
        #[test]
        fn is_a_deque_with_an_index_for_each_item(ops in prop::collection::vec((0..4u8, any::<prop::sample::Index>()), 0..400)) {
            let mut queue = DenseFifo::with_capacity(0);
            let mut model = VecDeque::new();
            for (serial, (op, pick)) in ops.into_iter().enumerate() {
                match op {
                    0 | 1 => {
                        queue.push_back(serial);
                        model.push_back(serial);
                    }
                    2 => prop_assert_eq!(queue.pop_front(), model.pop_front()),
                    _ if model.is_empty() => {}
                    _ => {
                        let number = pick.index(model.len());
                        let named = *queue.get(number).unwrap();
                        prop_assert_eq!(queue.remove(number), named);
                        let place = model.iter().position(|item| *item == named).unwrap();
                        model.remove(place);
                    }
                }
                prop_assert!(queue.iter().eq(model.iter()));
                let mut named: Vec<usize> = (0..queue.len()).map(|number| *queue.get(number).unwrap()).collect();
                named.sort_unstable();
                prop_assert!(named.iter().eq(model.iter()), "the items of the model are in the order of their numbers");
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!(queue.get(model.len()), None);
            }
        }
    }
}
