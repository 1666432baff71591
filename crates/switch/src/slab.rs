//! Storage for many queues, each a singly linked list. Unlike [`giveway_qdisc::Slots`] it removes items only
//! from the front, which halves the writes. The slot that was freed last is reused first, while it is in the
//! cache.

/// No slot.
const NONE: u32 = u32::MAX;

/// The items of many queues.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    /// Items, each with the slot of the next one.
    slots: Vec<(T, u32)>,
    /// First free slot; free slots are linked, too.
    free: u32,
}

/// One queue of a slab. It ends with a slot without an item, reserved for the next one, so that operations
/// need no special case for an empty queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    head: u32,
    tail: u32,
}

impl Chain {
    /// `true` if the queue has no items.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }
}

impl<T: Copy + Default> Slab<T> {
    /// Storage without queues.
    pub fn new() -> Slab<T> {
        Slab { slots: Vec::with_capacity(1024), free: NONE }
    }

    /// Creates an empty queue.
    pub fn chain(&mut self) -> Chain {
        let at = self.take();
        Chain { head: at, tail: at }
    }

    /// Takes a free slot, or a new one.
    #[inline]
    fn take(&mut self) -> u32 {
        let at = self.free;
        match self.slots.get(at as usize) {
            Some(slot) => {
                self.free = slot.1;
                at
            }
            None => {
                self.slots.push((T::default(), NONE));
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Appends an item.
    #[inline]
    pub fn push_back(&mut self, chain: &mut Chain, item: T) {
        let at = self.take();
        self.slots[chain.tail as usize] = (item, at);
        chain.tail = at;
    }

    /// Inserts an item at the front.
    pub fn push_front(&mut self, chain: &mut Chain, item: T) {
        let at = self.take();
        self.slots[at as usize] = (item, chain.head);
        chain.head = at;
    }

    /// Removes the first item of a queue, which must not be empty.
    #[inline]
    pub fn pop(&mut self, chain: &mut Chain) -> T {
        debug_assert!(!chain.is_empty());
        let at = chain.head;
        let slot = &mut self.slots[at as usize];
        let (item, next) = *slot;
        slot.1 = self.free;
        self.free = at;
        chain.head = next;
        item
    }

    /// The first item of a queue.
    #[inline]
    pub fn front(&self, chain: &Chain) -> Option<&T> {
        (!chain.is_empty()).then(|| &self.slots[chain.head as usize].0)
    }

    /// The first item of a queue, which must not be empty.
    #[inline]
    pub fn front_mut(&mut self, chain: &Chain) -> &mut T {
        debug_assert!(!chain.is_empty());
        &mut self.slots[chain.head as usize].0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chains_are_queues(steps in prop::collection::vec((0usize..3, 0u8..4), 0..200)) {
            let mut slab = Slab::new();
            let mut chains: [Chain; 3] = std::array::from_fn(|_| slab.chain());
            let mut want: [VecDeque<u32>; 3] = Default::default();
            for (number, (which, step)) in (0u32..).zip(steps) {
                let (chain, want) = (&mut chains[which], &mut want[which]);
                match step {
                    0 | 1 => {
                        slab.push_back(chain, number);
                        want.push_back(number);
                    }
                    2 => {
                        slab.push_front(chain, number);
                        want.push_front(number);
                    }
                    _ => {
                        if let Some(wanted) = want.pop_front() {
                            prop_assert_eq!(slab.pop(chain), wanted);
                        }
                    }
                }
                prop_assert_eq!(slab.front(chain), want.front());
                prop_assert_eq!(chain.is_empty(), want.is_empty());
            }
        }
    }
}
