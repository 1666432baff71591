//! One slab for many queues, each linked from item to item. Unlike [`qdisc::Slots`] nothing is ever taken out of the
//! middle: half as much to write. What was freed last is used first, so that it is still in the cache.

/// No slot: the end of a chain.
const NONE: u32 = u32::MAX;

/// Items of many queues.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<(T, u32)>,
    /// First free slot.
    free: u32,
}

/// One queue of a slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    head: u32,
    tail: u32,
}

impl Chain {
    pub const EMPTY: Chain = Chain { head: NONE, tail: NONE };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

impl<T: Copy> Slab<T> {
    pub fn new() -> Slab<T> {
        Slab { slots: Vec::with_capacity(1024), free: NONE }
    }

    /// A slot with an item, linked to `next`.
    #[inline]
    fn put(&mut self, item: T, next: u32) -> u32 {
        let at = self.free;
        match self.slots.get_mut(at as usize) {
            Some(slot) => {
                self.free = slot.1;
                *slot = (item, next);
                at
            }
            None => {
                self.slots.push((item, next));
                (self.slots.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub fn push_back(&mut self, chain: &mut Chain, item: T) {
        let at = self.put(item, NONE);
        if chain.is_empty() {
            chain.head = at;
        } else {
            self.slots[chain.tail as usize].1 = at;
        }
        chain.tail = at;
    }

    pub fn push_front(&mut self, chain: &mut Chain, item: T) {
        let at = self.put(item, chain.head);
        if chain.is_empty() {
            chain.tail = at;
        }
        chain.head = at;
    }

    /// # Panics
    /// When the queue is empty.
    #[inline]
    pub fn pop(&mut self, chain: &mut Chain) -> T {
        let at = chain.head;
        let slot = &mut self.slots[at as usize];
        let (item, next) = *slot;
        slot.1 = self.free;
        self.free = at;
        chain.head = next;
        item
    }

    #[inline]
    pub fn front(&self, chain: &Chain) -> Option<&T> {
        self.slots.get(chain.head as usize).map(|(item, _)| item)
    }

    /// # Panics
    /// When the queue is empty.
    #[inline]
    pub fn front_mut(&mut self, chain: &Chain) -> &mut T {
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
            let mut chains = [Chain::EMPTY; 3];
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
