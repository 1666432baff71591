//! A queue in order of ranks, open at both ends: the best item leaves next, the worst is pushed out.
//! LAS, LARS, SCFQ, STFQ and SRPT differ only in their ranks.
//!
//! The lowest rank is the best; of equal ranks the earliest arrival is the better one. So the order is total,
//! and does not depend on how the queue is stored.
//!
//! It is an interval heap (van Leeuwen and Wood, "Interval Heaps", The Computer Journal 36(3), 1993): a heap
//! whose nodes hold two entries each, the better ones ordered as a heap from the best, the worse ones as a
//! heap from the worst. Both ends cost O(log n), and so does a removal from the middle. A node has
//! four children instead of two, so there are half as many levels, and the four entries that are compared are
//! in one or two cache lines. An entry has 16 bytes, with rank and arrival in one number; the items
//! are in a slab and never move.

use crate::store::Place;

/// Items by rank, then by arrival.
#[derive(Debug)]
pub struct Ranked<T> {
    /// The better entry of each node.
    better: Vec<Entry>,
    /// The worse entry of each node; the last node may have none.
    worse: Vec<Entry>,
    /// The items, by slot.
    items: Vec<Option<T>>,
    /// Position of the entry of each slot.
    spots: Vec<Spot>,
    /// Slots without an item.
    free: Vec<u32>,
    /// The number of the next arrival.
    arrivals: u32,
}

/// Number of children of a node.
const ARITY: usize = 4;

/// Rank, arrival number and slot, from the most significant bit on: comparing entries compares ranks, then
/// arrivals.
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
    /// An empty queue with capacity for `capacity` items. It grows on demand.
    pub fn with_capacity(capacity: usize) -> Ranked<T> {
        let capacity = capacity.min(1 << 16);
        Ranked {
            better: Vec::with_capacity(capacity / 2 + 1),
            worse: Vec::with_capacity(capacity / 2 + 1),
            items: Vec::with_capacity(capacity),
            spots: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            arrivals: 0,
        }
    }

    /// Number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.better.len() + self.worse.len()
    }
    /// True if the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.better.is_empty()
    }
    /// Memory per item in bytes, with its entry and links.
    pub const fn bytes_per_item() -> usize {
        size_of::<Entry>() + size_of::<Option<T>>() + 2 * size_of::<u32>()
    }
    /// Memory in bytes, used or not.
    pub fn bytes(&self) -> u64 {
        let links = (self.spots.capacity() + self.free.capacity()) * size_of::<u32>();
        let entries = (self.better.capacity() + self.worse.capacity()) * size_of::<Entry>();
        let items = self.items.capacity() * size_of::<Option<T>>();
        (entries + items + links) as u64
    }

    /// Inserts an item behind the items of the same rank.
    #[inline]
    pub fn push(&mut self, rank: u64, item: T) -> Place {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.items[slot as usize] = Some(item);
                slot
            }
            None => {
                let slot = u32::try_from(self.items.len()).expect("there are fewer than 2^32 items");
                self.items.push(Some(item));
                self.spots.push(Spot(0));
                slot
            }
        };
        let entry = self.next_entry(rank, slot);
        self.append(entry);
        Place::new(slot)
    }

    /// Removes the best item, with its rank.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let best = *self.better.first()?;
        self.take_out(Spot::better(0));
        Some((rank_of(best), self.release(best)))
    }

    /// The best item, its rank and its place.
    #[inline]
    pub fn best(&self) -> Option<(u64, Place)> {
        self.better.first().map(|entry| (rank_of(*entry), Place::new(slot_of(*entry))))
    }

    /// The worst item, its rank and its place: of the highest rank the latest arrival.
    #[inline]
    pub fn worst(&self) -> Option<(u64, Place)> {
        self.worse.first().or(self.better.first()).map(|entry| (rank_of(*entry), Place::new(slot_of(*entry))))
    }

    /// Removes an item at any position, with its rank.
    ///
    /// # Panics
    /// If the item has left.
    #[inline]
    pub fn remove(&mut self, place: Place) -> (u64, T) {
        let (spot, gone) = self.find(place);
        self.take_out(spot);
        (rank_of(gone), self.release(gone))
    }

    /// Changes the rank of an item, which goes behind the items of the same rank.
    ///
    /// # Panics
    /// If the item has left.
    #[inline]
    pub fn rerank(&mut self, place: Place, rank: u64) {
        let (spot, _) = self.find(place);
        self.take_out(spot);
        let entry = self.next_entry(rank, place.index());
        self.append(entry);
    }

    /// Lowers all ranks by `by`. The order does not change.
    pub fn lower(&mut self, by: u64) {
        debug_assert!(self.best().is_none_or(|(rank, _)| rank >= by), "no rank is below zero");
        // Ranks are the high bits, and none becomes negative, so entries stay in order.
        self.better.iter_mut().chain(&mut self.worse).for_each(|entry| *entry -= u128::from(by) << 64);
    }

    /// The item at a place.
    #[inline]
    pub fn get(&self, place: Place) -> Option<&T> {
        self.items.get(place.index() as usize)?.as_ref()
    }

    /// The item at a place, mutably.
    #[inline]
    pub fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.items.get_mut(place.index() as usize)?.as_mut()
    }

    /// The rank of an item.
    ///
    /// # Panics
    /// If the item has left.
    #[inline]
    pub fn rank(&self, place: Place) -> u64 {
        rank_of(self.find(place).1)
    }

    /// Ranks and items in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (self.better.iter().chain(&self.worse))
            .filter_map(|entry| Some((rank_of(*entry), self.items[slot_of(*entry) as usize].as_ref()?)))
    }

    #[inline]
    fn next_entry(&mut self, rank: u64, slot: u32) -> Entry {
        if self.is_empty() {
            // No entry is left that an arrival number could be compared with, so the numbers start again, and
            // `renumber` is rarer still.
            self.arrivals = 0;
        }
        if self.arrivals == u32::MAX {
            self.renumber();
        }
        self.arrivals += 1;
        entry(rank, self.arrivals, slot)
    }

    /// Renumbers the items from one on, in the order of arrival; necessary once in four billion arrivals.
    #[cold]
    fn renumber(&mut self) {
        let mut order: Vec<u64> = self.better.iter().chain(&self.worse).map(|entry| *entry as u64).collect();
        order.sort_unstable();
        for (arrival, slot) in (1..).zip(order.iter().map(|old| *old as u32)) {
            let spot = self.spots[slot as usize];
            let side = if spot.is_better() { &mut self.better } else { &mut self.worse };
            side[spot.node()] = entry(rank_of(side[spot.node()]), arrival, slot);
        }
        self.arrivals = order.len() as u32;
    }

    #[inline]
    fn release(&mut self, gone: Entry) -> T {
        let slot = slot_of(gone);
        self.free.push(slot);
        self.items[slot as usize].take().expect("an entry in the heap has its item")
    }

    /// Entry of a place, and its position.
    #[inline]
    fn find(&self, place: Place) -> (Spot, Entry) {
        assert!(self.get(place).is_some(), "a place holds its item until it leaves");
        let spot = self.spots[place.index() as usize];
        (spot, if spot.is_better() { self.better[spot.node()] } else { self.worse[spot.node()] })
    }

    #[inline]
    fn put_better(&mut self, node: usize, entry: Entry) {
        self.better[node] = entry;
        self.spots[slot_of(entry) as usize] = Spot::better(node);
    }
    #[inline]
    fn put_worse(&mut self, node: usize, entry: Entry) {
        self.worse[node] = entry;
        self.spots[slot_of(entry) as usize] = Spot::worse(node);
    }

    /// Appends an entry to the heap, and moves it up to its position.
    #[inline]
    fn append(&mut self, entry: Entry) {
        let node = self.worse.len();
        if self.better.len() == node {
            self.better.push(entry);
            self.settle_better(node, entry);
        } else {
            self.worse.push(entry);
            self.settle_worse(node, entry);
        }
    }

    /// Closes the gap of a removed entry: entries below move up, and the last entry of the heap fills the gap
    /// at the bottom. A gap that first moves to the bottom saves a comparison per level, since the last entry
    /// usually belongs there.
    #[inline]
    fn take_out(&mut self, spot: Spot) {
        let lone = self.better.len() > self.worse.len();
        let last = if lone { self.better.pop() } else { self.worse.pop() }
            .expect("the removed entry is in the heap");
        let node = spot.node();
        if spot.is_better() {
            if node < self.better.len() {
                let end = self.descend_better(node);
                self.settle_better(end, last);
            }
        } else if node < self.worse.len() {
            match self.descend_worse(node) {
                (end, true) => self.settle_worse(end, last),
                (end, false) => self.settle_better(end, last),
            }
        }
    }

    /// Moves a gap among the better entries down. Returns the node where it ends.
    #[inline]
    fn descend_better(&mut self, mut node: usize) -> usize {
        loop {
            let first = ARITY * node + 1;
            // Usually there are all four children, and a loop of known length is unrolled.
            let below = match self.better.get(first..first + ARITY) {
                Some(four) => best_of(four),
                None => best_of(self.better.get(first..).unwrap_or_default()),
            };
            let Some((best, offset)) = below else { return node };
            self.put_better(node, best);
            node = first + offset;
        }
    }

    /// Moves a gap among the worse entries down. Returns the node where it ends, and true if it is still
    /// among the worse entries; a single entry in the last node is among the better ones.
    #[inline]
    fn descend_worse(&mut self, mut node: usize) -> (usize, bool) {
        loop {
            let first = ARITY * node + 1;
            let end = self.worse.len().min(first + ARITY);
            let mut below = None;
            for (i, entry) in self.worse.get(first..end).unwrap_or_default().iter().enumerate() {
                if below.is_none_or(|(worst, _)| *entry > worst) {
                    below = Some((*entry, first + i));
                }
            }
            // The single entry of the last node, if that is a child, too.
            if let Some(lone) = self.better.get(self.worse.len())
                && (first..first + ARITY).contains(&self.worse.len())
                && below.is_none_or(|(worst, _)| *lone > worst)
            {
                self.put_worse(node, *lone);
                return (self.worse.len(), false);
            }
            let Some((worst, next)) = below else { return (node, true) };
            self.put_worse(node, worst);
            node = next;
        }
    }

    /// Puts an entry into a gap at the bottom of the better entries, and moves it to its position.
    #[inline]
    fn settle_better(&mut self, node: usize, entry: Entry) {
        match self.worse.get(node).copied() {
            Some(mate) if entry > mate => {
                self.put_better(node, mate);
                self.rise_worse(node, entry);
            }
            // A single entry may also be worse than entries above it on the other side.
            None if node > 0 && entry > self.worse[above(node)] => {
                self.put_better(node, self.worse[above(node)]);
                self.rise_worse(above(node), entry);
            }
            _ => self.rise_better(node, entry),
        }
    }

    /// Puts an entry into a gap at the bottom of the worse entries, and moves it to its position.
    #[inline]
    fn settle_worse(&mut self, node: usize, entry: Entry) {
        let mate = self.better[node];
        if entry < mate {
            self.put_worse(node, mate);
            self.rise_better(node, entry);
        } else {
            self.rise_worse(node, entry);
        }
    }

    #[inline]
    fn rise_better(&mut self, mut node: usize, entry: Entry) {
        while node > 0 && entry < self.better[above(node)] {
            self.put_better(node, self.better[above(node)]);
            node = above(node);
        }
        self.put_better(node, entry);
    }

    #[inline]
    fn rise_worse(&mut self, mut node: usize, entry: Entry) {
        while node > 0 && entry > self.worse[above(node)] {
            self.put_worse(node, self.worse[above(node)]);
            node = above(node);
        }
        self.put_worse(node, entry);
    }
}

/// The best of these entries, and its index.
#[inline]
fn best_of(entries: &[Entry]) -> Option<(Entry, usize)> {
    let (mut best, mut index) = (*entries.first()?, 0);
    for (i, entry) in entries.iter().enumerate().skip(1) {
        if *entry < best {
            (best, index) = (*entry, i);
        }
    }
    Some((best, index))
}

/// The parent of a node other than the root.
#[inline]
fn above(node: usize) -> usize {
    (node - 1) / ARITY
}

/// Position of an entry: its node and its end of the node.
#[derive(Clone, Copy, Debug)]
struct Spot(u32);

impl Spot {
    #[inline]
    fn better(node: usize) -> Spot {
        Spot(2 * node as u32)
    }
    #[inline]
    fn worse(node: usize) -> Spot {
        Spot(2 * node as u32 + 1)
    }
    #[inline]
    fn node(self) -> usize {
        self.0 as usize / 2
    }
    #[inline]
    fn is_better(self) -> bool {
        self.0.is_multiple_of(2)
    }
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
        /// An operation on the item with this distance from the best.
        Remove(prop::sample::Index),
        Rerank(prop::sample::Index, u64),
        Renumber,
        Lower,
    }

    fn op() -> impl Strategy<Value = Op> {
        // Few different ranks, so that there are ties.
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
        /// The queue equals a vector sorted by rank and arrival, at both ends and in the middle.
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
                    // The next arrival exhausts the numbers.
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

        /// Items that are removed from both ends of a long queue in turn are sorted.
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

    /// The memory depends only on the largest number of items, not on the number of insertions.
    #[test]
    fn memory_depends_on_the_largest_number_of_items() {
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
