//! A queue in the order of ranks that gives way at both ends: the best leaves next, the worst is pushed out. LAS, LARS,
//! SCFQ, STFQ and SRPT differ only in how they rank.
//!
//! The lowest rank is the best; of equal ranks the earliest arrival is the better one. So the order is total, and does not
//! depend on how the queue is stored.
//!
//! It is an interval heap (van Leeuwen and Wood, "Interval Heaps", The Computer Journal 36(3), 1993): a binary heap
//! whose nodes hold two entries each, the lower ones ordered as a heap from the best, the higher ones as a heap from the
//! worst. Both ends cost O(log n), and so does taking an item out of the middle. Entries are 16 bytes, rank and arrival
//! in one number that is compared at once; the items themselves lie in a slab and never move.

use crate::store::Place;

/// Items by rank, then by arrival.
#[derive(Debug)]
pub struct Ranked<T> {
    /// Node `i` is the entries `2i` (the better one) and `2i + 1`; the last node may have one only.
    heap: Vec<Entry>,
    /// The items, by slot.
    items: Vec<Option<T>>,
    /// Where in the heap the entry of each slot is.
    at: Vec<u32>,
    /// Slots without an item.
    free: Vec<u32>,
    /// The number of the next arrival.
    arrivals: u32,
}

/// Rank, arrival number and slot, from the most significant bit on: comparing entries compares ranks, then arrivals.
type Entry = u128;

#[inline]
fn entry(rank: u64, arrival: u32, slot: u32) -> Entry {
    u128::from(rank) << 64 | u128::from(arrival) << 32 | u128::from(slot)
}
#[inline]
fn rank_of(entry: Entry) -> u64 {
    (entry >> 64) as u64
}
#[inline]
fn slot_of(entry: Entry) -> u32 {
    entry as u32
}

impl<T> Ranked<T> {
    /// Room for `capacity` items before it first grows.
    pub fn with_capacity(capacity: usize) -> Ranked<T> {
        let room = capacity.min(1 << 16);
        Ranked {
            heap: Vec::with_capacity(room),
            items: Vec::with_capacity(room),
            at: Vec::with_capacity(room),
            free: Vec::with_capacity(room),
            arrivals: 0,
        }
    }

    /// How many items it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.heap.len()
    }
    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
    /// Bytes that an item takes, its entry and links included.
    pub const fn bytes_per_item() -> usize {
        size_of::<Entry>() + size_of::<Option<T>>() + 2 * size_of::<u32>()
    }
    /// Bytes that all of it takes, used or not.
    pub fn bytes(&self) -> u64 {
        let links = (self.at.capacity() + self.free.capacity()) * size_of::<u32>();
        let items = self.items.capacity() * size_of::<Option<T>>();
        (self.heap.capacity() * size_of::<Entry>() + items + links) as u64
    }

    /// Takes an item in, behind those of the same rank.
    #[inline]
    pub fn push(&mut self, rank: u64, item: T) -> Place {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.items[slot as usize] = Some(item);
                slot
            }
            None => {
                let slot = u32::try_from(self.items.len()).expect("fewer than 2^32 items are held");
                self.items.push(Some(item));
                self.at.push(0);
                slot
            }
        };
        let entry = self.next_entry(rank, slot);
        self.heap.push(entry);
        self.settle(self.heap.len() - 1, entry);
        Place::new(slot)
    }

    /// Takes the best item out, with its rank.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let best = *self.heap.first()?;
        self.take_out(0);
        Some((rank_of(best), self.release(best)))
    }

    /// The best item, its rank and its place.
    #[inline]
    pub fn best(&self) -> Option<(u64, Place)> {
        self.heap.first().map(|entry| (rank_of(*entry), Place::new(slot_of(*entry))))
    }

    /// The worst item, its rank and its place: of the highest rank the latest arrival.
    #[inline]
    pub fn worst(&self) -> Option<(u64, Place)> {
        self.heap.get(1).or(self.heap.first()).map(|entry| (rank_of(*entry), Place::new(slot_of(*entry))))
    }

    /// Takes an item out, with its rank, wherever it stands.
    ///
    /// # Panics
    /// When it is no longer there.
    #[inline]
    pub fn remove(&mut self, place: Place) -> (u64, T) {
        assert!(self.get(place).is_some(), "a place holds its item until it leaves");
        let at = self.at[place.index() as usize] as usize;
        let gone = self.heap[at];
        self.take_out(at);
        (rank_of(gone), self.release(gone))
    }

    /// Gives an item another rank, behind those that have it already.
    ///
    /// # Panics
    /// When it is no longer there.
    #[inline]
    pub fn rerank(&mut self, place: Place, rank: u64) {
        assert!(self.get(place).is_some(), "a place holds its item until it leaves");
        self.take_out(self.at[place.index() as usize] as usize);
        let entry = self.next_entry(rank, place.index());
        self.heap.push(entry);
        self.settle(self.heap.len() - 1, entry);
    }

    /// Lowers every rank by as much: nothing changes its place.
    pub fn lower(&mut self, by: u64) {
        debug_assert!(self.best().is_none_or(|(rank, _)| rank >= by), "no rank is below zero");
        self.heap.iter_mut().for_each(|entry| *entry -= u128::from(by) << 64);
    }

    /// The item at a place.
    #[inline]
    pub fn get(&self, place: Place) -> Option<&T> {
        self.items.get(place.index() as usize)?.as_ref()
    }

    /// The item at a place, to change it.
    #[inline]
    pub fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.items.get_mut(place.index() as usize)?.as_mut()
    }

    /// The rank of an item.
    ///
    /// # Panics
    /// When it is no longer there.
    #[inline]
    pub fn rank(&self, place: Place) -> u64 {
        assert!(self.get(place).is_some(), "a place holds its item until it leaves");
        rank_of(self.heap[self.at[place.index() as usize] as usize])
    }

    /// Every rank with its item, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.heap
            .iter()
            .filter_map(|entry| Some((rank_of(*entry), self.items[slot_of(*entry) as usize].as_ref()?)))
    }

    #[inline]
    fn next_entry(&mut self, rank: u64, slot: u32) -> Entry {
        if self.heap.is_empty() {
            self.arrivals = 0;
        }
        if self.arrivals == u32::MAX {
            self.renumber();
        }
        self.arrivals += 1;
        entry(rank, self.arrivals, slot)
    }

    /// Numbers what is held from one on, in the order of arrival. Once in four billion arrivals.
    #[cold]
    fn renumber(&mut self) {
        let mut order: Vec<u64> = self.heap.iter().map(|entry| *entry as u64).collect();
        order.sort_unstable();
        for (arrival, slot) in (1..).zip(order.iter().map(|old| *old as u32)) {
            let at = self.at[slot as usize] as usize;
            self.heap[at] = entry(rank_of(self.heap[at]), arrival, slot);
        }
        self.arrivals = order.len() as u32;
    }

    #[inline]
    fn release(&mut self, gone: Entry) -> T {
        let slot = slot_of(gone);
        self.free.push(slot);
        self.items[slot as usize].take().expect("an entry in the heap has its item")
    }

    #[inline]
    fn put(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.at[slot_of(entry) as usize] = at as u32;
    }

    /// Closes the gap that an entry leaves: better (or worse) ones move up to the end of the heap, and there the last
    /// entry finds its place. Going all the way down first saves a comparison per level, for the last entry mostly
    /// belongs there.
    #[inline]
    fn take_out(&mut self, at: usize) {
        let last = self.heap.pop().expect("what is taken out is held");
        if at == self.heap.len() {
            return;
        }
        let end = if at.is_multiple_of(2) { self.descend_better(at) } else { self.descend_worse(at) };
        self.settle(end, last);
    }

    /// Moves the gap at a better entry down; where it ends.
    #[inline]
    fn descend_better(&mut self, mut at: usize) -> usize {
        loop {
            // The better entries of the two nodes below.
            let (one, other) = (2 * at + 2, 2 * at + 4);
            let Some(other_entry) = self.heap.get(other) else {
                if one < self.heap.len() {
                    self.put(at, self.heap[one]);
                    at = one;
                }
                return at;
            };
            let below = if *other_entry < self.heap[one] { other } else { one };
            self.put(at, self.heap[below]);
            at = below;
        }
    }

    /// Moves the gap at a worse entry down; where it ends.
    #[inline]
    fn descend_worse(&mut self, mut at: usize) -> usize {
        loop {
            // The worse entries of the two nodes below. In the last node a lone entry is both.
            let len = self.heap.len();
            let (one, other) = (2 * at + 1, 2 * at + 3);
            let below = if other < len {
                if self.heap[other] > self.heap[one] { other } else { one }
            } else if other == len && self.heap[other - 1] > self.heap[one] {
                other - 1
            } else if one < len {
                one
            } else if one == len {
                one - 1
            } else {
                return at;
            };
            self.put(at, self.heap[below]);
            at = below;
            if at.is_multiple_of(2) {
                return at;
            }
        }
    }

    /// Puts an entry at a gap without anything below it that matters, and moves it up from there.
    #[inline]
    fn settle(&mut self, at: usize, entry: Entry) {
        match self.heap.get(at ^ 1).copied() {
            Some(mate) if at.is_multiple_of(2) == (mate < entry) => {
                // It belongs to the other end of the node.
                self.put(at, mate);
                if at.is_multiple_of(2) { self.rise_worse(at ^ 1, entry) } else { self.rise_better(at ^ 1, entry) }
            }
            Some(_) if at.is_multiple_of(2) => self.rise_better(at, entry),
            Some(_) => self.rise_worse(at, entry),
            None if at > 0 && entry > self.heap[above(at) + 1] => self.rise_worse(at, entry),
            None => self.rise_better(at, entry),
        }
    }

    #[inline]
    fn rise_better(&mut self, mut at: usize, entry: Entry) {
        while at > 1 && entry < self.heap[above(at)] {
            self.put(at, self.heap[above(at)]);
            at = above(at);
        }
        self.put(at, entry);
    }

    #[inline]
    fn rise_worse(&mut self, mut at: usize, entry: Entry) {
        while at > 1 && entry > self.heap[above(at) + 1] {
            self.put(at, self.heap[above(at) + 1]);
            at = above(at) + 1;
        }
        self.put(at, entry);
    }
}

/// The better entry of the node above the one in which `at` is. Not for the first node.
#[inline]
fn above(at: usize) -> usize {
    (at / 2 - 1) / 2 * 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Push(u64),
        Pop,
        PushOut,
        /// Of the item that is this far from the best.
        Remove(prop::sample::Index),
        Rerank(prop::sample::Index, u64),
        Renumber,
        Lower,
    }

    fn op() -> impl Strategy<Value = Op> {
        // Few ranks, so that there are ties.
        let rank = || prop_oneof![3 => 0..6u64, 1 => any::<u64>()];
        prop_oneof![
            8 => rank().prop_map(Op::Push),
            3 => Just(Op::Pop),
            3 => Just(Op::PushOut),
            1 => any::<prop::sample::Index>().prop_map(Op::Remove),
            2 => (any::<prop::sample::Index>(), rank()).prop_map(|(index, rank)| Op::Rerank(index, rank)),
            1 => Just(Op::Renumber),
            1 => Just(Op::Lower),
        ]
    }

    proptest! {
        /// It is a vector sorted by rank and arrival, at both ends and in the middle.
        #[test]
        fn is_a_sorted_vector(ops in prop::collection::vec(op(), 0..600)) {
            let mut ranked = Ranked::with_capacity(0);
            let mut sorted: Vec<(u64, usize, usize, Place)> = Vec::new();
            for (arrival, op) in ops.into_iter().enumerate() {
                match op {
                    Op::Push(rank) => {
                        let place = ranked.push(rank, arrival);
                        sorted.push((rank, arrival, arrival, place));
                    }
                    Op::Pop => {
                        let best = (!sorted.is_empty()).then(|| sorted.remove(0));
                        prop_assert_eq!(ranked.pop(), best.map(|(rank, _, item, _)| (rank, item)));
                    }
                    Op::PushOut => {
                        let worst = ranked.worst().map(|(_, place)| ranked.remove(place));
                        prop_assert_eq!(worst, sorted.pop().map(|(rank, _, item, _)| (rank, item)));
                    }
                    Op::Remove(index) if !sorted.is_empty() => {
                        let (rank, _, item, place) = sorted.remove(index.index(sorted.len()));
                        prop_assert_eq!(ranked.remove(place), (rank, item));
                    }
                    Op::Rerank(index, rank) if !sorted.is_empty() => {
                        let (_, _, item, place) = sorted.remove(index.index(sorted.len()));
                        ranked.rerank(place, rank);
                        sorted.push((rank, arrival, item, place));
                    }
                    // The next arrival finds no number left.
                    Op::Renumber => ranked.arrivals = u32::MAX,
                    Op::Lower => {
                        let by = sorted.first().map_or(0, |(rank, ..)| *rank);
                        ranked.lower(by);
                        sorted.iter_mut().for_each(|each| each.0 -= by);
                    }
                    Op::Remove(_) | Op::Rerank(..) => {}
                }
                sorted.sort_unstable_by_key(|(rank, arrival, ..)| (*rank, *arrival));
                prop_assert_eq!(ranked.len(), sorted.len());
                prop_assert_eq!(ranked.best(), sorted.first().map(|(rank, _, _, place)| (*rank, *place)));
                prop_assert_eq!(ranked.worst(), sorted.last().map(|(rank, _, _, place)| (*rank, *place)));
                for (rank, _, item, place) in &sorted {
                    prop_assert_eq!(ranked.get(*place), Some(item));
                    prop_assert_eq!(ranked.rank(*place), *rank);
                }
                let mut all: Vec<(u64, usize)> = ranked.iter().map(|(rank, item)| (rank, *item)).collect();
                let mut expected: Vec<(u64, usize)> = sorted.iter().map(|(rank, _, item, _)| (*rank, *item)).collect();
                all.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(all, expected);
            }
        }

        /// Both ends of a long queue, taken in turns, come out sorted.
        #[test]
        fn both_ends_are_sorted(ranks in prop::collection::vec(0..500u64, 0..2000), from_the_end in any::<bool>()) {
            let mut ranked = Ranked::with_capacity(16);
            let mut sorted: Vec<(u64, usize)> = ranks.iter().copied().zip(0..).collect();
            for (rank, arrival) in &sorted {
                ranked.push(*rank, *arrival);
            }
            sorted.sort_unstable();
            let mut sorted = std::collections::VecDeque::from(sorted);
            let mut back = from_the_end;
            while !sorted.is_empty() {
                let (got, expected) = if back {
                    (ranked.worst().map(|(_, place)| ranked.remove(place)), sorted.pop_back())
                } else {
                    (ranked.pop(), sorted.pop_front())
                };
                prop_assert_eq!(got, expected);
                back = !back;
            }
            prop_assert!(ranked.is_empty() && ranked.pop().is_none());
        }
    }

    /// Once grown it takes no more memory, however often items come and go.
    #[test]
    fn memory_is_that_of_the_most_items() {
        let mut ranked = Ranked::with_capacity(0);
        let exchange = |ranked: &mut Ranked<u64>, n| {
            ranked.push(n % 7, n);
            ranked.pop().expect("one was just pushed")
        };
        for n in 0..300 {
            ranked.push(n % 7, n);
        }
        exchange(&mut ranked, 300);
        let grown = ranked.bytes();
        for n in 301..10_000 {
            exchange(&mut ranked, n);
        }
        assert_eq!((ranked.len(), ranked.bytes()), (300, grown));
        assert!(grown < 2 * 512 * Ranked::<u64>::bytes_per_item() as u64, "{grown} bytes");
    }
}
