//! The event queue: the next pending event of every link, connection and source.
//!
//! Each of them has a *timer*, which holds the time of its next event. The timers are in a hierarchical wheel
//! (Varghese and Lauck 1987, scheme 7): time is divided into slots, a level of the wheel has a list of timers
//! for each of 4,096 slots, and a slot of the next level is as long as this level. So setting and cancelling
//! a timer take a constant time, however many there are. The timers of the first slot are sorted when the
//! wheel reaches it, so that events come in their exact order and not in the order of their slots. The length
//! of a slot follows the density of events, and has no effect on the order.
//!
//! # Events at the same time
//! Events at the same time are ordered by their class ([`Class`]). Within a class the order is drawn: it is
//! the order of a hash of the time and of the timer's [`Rank`], which comes from the name of its origin and
//! from the seed of the run. Two consequences matter:
//! - The order of two events does not depend on other events of the run, on when their timers were set, or on
//!   the order in which a scenario lists its sources. A run that is split into parts has the same order in
//!   each part.
//! - No link and no source is always first. Links of equal rate that carry packets of equal size have events
//!   at the same time throughout a run. With a fixed order among them the same link takes the free slot of a
//!   full queue each time: in `papers/bsq/backbone.toml` TCP's goodput under FIFO is then 5 %
//!   higher or lower, by the order chosen, than with sources whose packets never meet.
//!
//! Two events of a class at one time draw the same position with a probability of 2^-61. Such a pair has the
//! same order in every repetition of the run, but possibly another one in a run that is split.

use giveway_qdisc::hash::mix;
use giveway_qdisc::{Streams, Time};

/// A timer of an [`EventQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer(u32);

/// Rank of a timer's events among others at the same time: their class, and a key from which the order within
/// the class is drawn for each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank(u64);

/// Position of an event among others at the same time: the lower one comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TieBreak(u64);

/// Owner of a timer: the part of the engine that handles its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A link, by its number: its transmitter is free, or a packet arrives at its far end.
    Link(u32),
    /// A connection, by its index in the transport.
    Connection(u32),
    /// A source of traffic, by its number.
    Source(u16),
    /// The access links of all hosts.
    Access,
    /// The bounds of the measurement interval.
    Measurement,
    /// The periodic samples of ports and senders.
    Sample,
    /// The outages of all links.
    Outage,
    /// A medium that links share, by its number: one of them may send a burst.
    Medium(u16),
    /// The hosts of a node, by its number: they handle the packets that they have received.
    Host(u16),
}

/// The kind of an event. Events at the same time are handled in the order of their classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Links fail or come back, before any packet that would use them.
    Outage = 0,
    /// The measurement interval starts or ends. Packets at its first moment belong to it, packets at its last
    /// do not.
    Measuring = 1,
    /// A packet moves: a transmitter takes it from its port, it arrives at the far end of a link, it crosses
    /// the access link of a host, or a source of traffic sends it.
    Packet = 2,
    /// A timer of a connection expires, after all packets that could still have stopped it.
    Connection = 3,
    /// Ports are sampled, after all other events at that time.
    Sample = 4,
}

impl Rank {
    /// The rank of a class that has one timer in a run.
    pub fn only(class: Class) -> Rank {
        Rank::keyed(class, 0)
    }

    /// The rank of the timer of an origin with one timer, such as a link. `origin` is its stream among the
    /// streams of the run.
    pub fn of(class: Class, origin: &Streams) -> Rank {
        Rank::keyed(class, origin.within("ties").rng().word())
    }

    /// The rank of the `number`-th timer of an origin with the rank `self`, in another class.
    pub fn numbered(self, class: Class, number: u64) -> Rank {
        Rank::keyed(class, mix(mix(self.0, number), 0))
    }

    /// `key` gives the lower 61 bits.
    fn keyed(class: Class, key: u64) -> Rank {
        Rank((class as u64) << CLASS_SHIFT | key >> CLASS_BITS)
    }

    /// The position of an event at `at`.
    #[inline]
    fn at(self, at: Time) -> TieBreak {
        let class = self.0 >> CLASS_SHIFT << CLASS_SHIFT;
        TieBreak(class | mix(self.0, at.as_ps()) >> CLASS_BITS)
    }
}

/// Number of upper bits of ranks and positions that hold the class of an event.
const CLASS_BITS: u32 = 3;
const CLASS_SHIFT: u32 = u64::BITS - CLASS_BITS;

/// A priority queue of timers, each with at most one pending event. The number of timers grows as needed.
#[derive(Debug)]
pub struct EventQueue {
    timers: Vec<Pending>,
    /// Owner per timer.
    owners: Vec<Owner>,
    /// Events in the current slot and before it, the earliest last.
    current: Vec<(Moment, u32)>,
    /// Number of the current slot. All events in the wheel are in later slots.
    cursor: u64,
    /// A slot lasts 2^`shift` picoseconds.
    shift: u32,
    /// First timer of the list of each slot, level by level; `NONE` if it is empty.
    heads: Box<[u32]>,
    /// The slots of each level that are not empty.
    filled: Box<[Bits; LEVELS]>,
    /// Numbers of slots and of events that became current since the length of a slot was last considered.
    passed: (u32, u32),
}

/// A timer with its pending event, which is in the list of a slot, current, or absent.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Moment of the event; [`IDLE`] without one.
    moment: Moment,
    rank: Rank,
    /// The neighbours in the list, or `NONE`.
    next: u32,
    previous: u32,
    /// Index of the list in [`EventQueue::heads`], or one of the constants below.
    list: u32,
}

/// No timer, and no list.
const NONE: u32 = u32::MAX;
/// The event is current.
const CURRENT: u32 = u32::MAX - 1;

/// A level has 2^12 slots.
const LEVEL_BITS: u32 = 12;
const SLOTS: u64 = 1 << LEVEL_BITS;
/// Enough for all times, in slots of the shortest length.
const LEVELS: usize = 5;
const SHORTEST: u32 = 12;
const LONGEST: u32 = 40;
const _: () = assert!(SHORTEST + LEVELS as u32 * LEVEL_BITS >= u64::BITS);

/// A set of slots of one level.
#[derive(Clone, Copy, Debug)]
struct Bits {
    words: [u64; (SLOTS / 64) as usize],
    /// The words that are not zero.
    summary: u64,
}

impl Bits {
    const EMPTY: Bits = Bits { words: [0; (SLOTS / 64) as usize], summary: 0 };

    #[inline]
    fn insert(&mut self, slot: usize) {
        self.words[slot / 64] |= 1 << (slot % 64);
        self.summary |= 1 << (slot / 64);
    }

    #[inline]
    fn remove(&mut self, slot: usize) {
        let word = &mut self.words[slot / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.summary &= !(1 << (slot / 64));
        }
    }

    /// The first slot after `slot`.
    #[inline]
    fn after(&self, slot: usize) -> Option<usize> {
        let (word, bit) = (slot / 64, slot % 64);
        // Two shifts, because a shift by 64 is not defined.
        let rest = self.words[word] >> bit >> 1;
        if rest != 0 {
            return Some(slot + 1 + rest.trailing_zeros() as usize);
        }
        let words = self.summary >> word >> 1;
        if words == 0 {
            return None;
        }
        let word = word + 1 + words.trailing_zeros() as usize;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}

/// The time of an event, and its position among events at that time: the order in which events are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The time.
    pub at: Time,
    tie: TieBreak,
}

impl Moment {
    /// The last moment of a time.
    pub fn last(at: Time) -> Moment {
        Moment { at, tie: TieBreak(u64::MAX) }
    }

    /// The two as one number, which compares in two instructions.
    #[inline]
    fn number(self) -> u128 {
        u128::from(self.at.as_ps()) << 64 | u128::from(self.tie.0)
    }

    /// True if this moment is before the other.
    #[inline]
    pub fn before(self, other: Moment) -> bool {
        self.number() < other.number()
    }
}

const IDLE: Moment = Moment { at: Time::NEVER, tie: TieBreak(u64::MAX) };

impl Default for EventQueue {
    fn default() -> EventQueue {
        EventQueue {
            timers: Vec::new(),
            owners: Vec::new(),
            current: Vec::new(),
            cursor: 0,
            // About a microsecond.
            shift: 20,
            heads: vec![NONE; LEVELS << LEVEL_BITS].into(),
            filled: Box::new([Bits::EMPTY; LEVELS]),
            passed: (0, 0),
        }
    }
}

impl EventQueue {
    /// Adds a timer without a pending event.
    ///
    /// # Panics
    /// With 2^32 - 2 timers.
    pub fn add(&mut self, owner: Owner, rank: Rank) -> Timer {
        let timer = u32::try_from(self.owners.len()).ok().filter(|timer| *timer < CURRENT);
        self.owners.push(owner);
        self.timers.push(Pending { moment: IDLE, rank, next: NONE, previous: NONE, list: NONE });
        Timer(timer.expect("there are fewer timers"))
    }

    /// Gives a timer without a pending event a new rank, for another use by the same owner.
    pub fn reuse(&mut self, timer: Timer, rank: Rank) {
        debug_assert_eq!(self.time_of(timer), Time::NEVER, "a timer that is reused has no pending event");
        self.timers[timer.0 as usize].rank = rank;
    }

    /// Sets the time of the next event; `Time::NEVER` cancels it.
    #[inline]
    pub fn set(&mut self, timer: Timer, at: Time) {
        // The position follows from the time, so an equal time is an equal moment.
        if self.timers[timer.0 as usize].moment.at != at {
            self.change(timer, at);
        }
    }

    fn change(&mut self, timer: Timer, at: Time) {
        let pending = &mut self.timers[timer.0 as usize];
        let list = pending.list;
        pending.moment = if at == Time::NEVER { IDLE } else { Moment { at, tie: pending.rank.at(at) } };
        let moment = pending.moment;
        match list {
            NONE => {}
            CURRENT => self.leave_current(timer.0),
            list => self.unlink(timer.0, list),
        }
        self.insert(timer.0, moment);
    }

    /// The moment of an event of this timer at `at`.
    #[inline]
    pub(crate) fn moment(&self, timer: Timer, at: Time) -> Moment {
        Moment { at, tie: self.timers[timer.0 as usize].rank.at(at) }
    }

    /// The time of the next event; `Time::NEVER` if none is pending.
    pub fn time_of(&self, timer: Timer) -> Time {
        self.timers[timer.0 as usize].moment.at
    }

    /// The earliest pending event: its moment and the owner of its timer. It stays pending until its timer is
    /// set.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<(Moment, Owner)> {
        if self.current.is_empty() {
            self.advance();
        }
        let (moment, timer) = *self.current.last()?;
        Some((moment, self.owners[timer as usize]))
    }

    /// Puts an event into the current slot or into the wheel.
    #[inline]
    fn insert(&mut self, timer: u32, moment: Moment) {
        if moment.at == Time::NEVER {
            self.timers[timer as usize].list = NONE;
            return;
        }
        let slot = moment.at.as_ps() >> self.shift;
        if slot <= self.cursor {
            self.timers[timer as usize].list = CURRENT;
            return self.insert_current(timer, moment);
        }
        self.link(timer, slot);
    }

    /// Puts an event among the current ones. Earlier ones move by one place each: there are few of them, and
    /// a loop takes less time than `memmove`, above all in musl, which copies upwards byte by byte.
    #[inline]
    fn insert_current(&mut self, timer: u32, moment: Moment) {
        let mut place = self.current.len();
        self.current.push((moment, timer));
        while place > 0 && self.current[place - 1].0.before(moment) {
            self.current[place] = self.current[place - 1];
            place -= 1;
        }
        self.current[place] = (moment, timer);
    }

    /// Puts an event into the list of a slot after the current one. The level belongs to the highest bit in
    /// which the numbers of the two slots differ.
    #[inline]
    fn link(&mut self, timer: u32, slot: u64) {
        let level = (u64::BITS - 1 - (slot ^ self.cursor).leading_zeros()) / LEVEL_BITS;
        let index = (slot >> (level * LEVEL_BITS) & (SLOTS - 1)) as usize;
        let list = (level as usize) << LEVEL_BITS | index;
        let next = std::mem::replace(&mut self.heads[list], timer);
        let pending = &mut self.timers[timer as usize];
        (pending.next, pending.previous, pending.list) = (next, NONE, list as u32);
        if next == NONE {
            self.filled[level as usize].insert(index);
        } else {
            self.timers[next as usize].previous = timer;
        }
    }

    /// Takes an event out of the list of its slot.
    fn unlink(&mut self, timer: u32, list: u32) {
        let Pending { next, previous, .. } = self.timers[timer as usize];
        if next != NONE {
            self.timers[next as usize].previous = previous;
        }
        if previous != NONE {
            self.timers[previous as usize].next = next;
            return;
        }
        self.heads[list as usize] = next;
        if next == NONE {
            let index = list as usize & (SLOTS as usize - 1);
            self.filled[list as usize >> LEVEL_BITS].remove(index);
        }
    }

    /// Takes an event out of the current ones.
    #[inline]
    fn leave_current(&mut self, timer: u32) {
        // In the usual case it is the first one, which is being handled.
        if self.current.last().is_some_and(|(_, first)| *first == timer) {
            self.current.pop();
            return;
        }
        let at = self.current.iter().rposition(|(_, other)| *other == timer);
        self.current.remove(at.expect("a current event is in the list"));
    }

    /// Makes the next slot with events the current one.
    fn advance(&mut self) {
        let mut level = 0;
        while self.current.is_empty() && level < LEVELS {
            let bits = level as u32 * LEVEL_BITS;
            let at = (self.cursor >> bits & (SLOTS - 1)) as usize;
            let Some(index) = self.filled[level].after(at) else {
                level += 1;
                continue;
            };
            // The first slot of the level below that begins with this one.
            let above = self.cursor >> bits >> LEVEL_BITS << LEVEL_BITS;
            self.cursor = (above | index as u64) << bits;
            self.filled[level].remove(index);
            let mut timer = std::mem::replace(&mut self.heads[level << LEVEL_BITS | index], NONE);
            while timer != NONE {
                let Pending { moment, next, .. } = self.timers[timer as usize];
                let slot = moment.at.as_ps() >> self.shift;
                if slot == self.cursor {
                    self.timers[timer as usize].list = CURRENT;
                    self.current.push((moment, timer));
                } else {
                    self.link(timer, slot);
                }
                timer = next;
            }
            level = 0;
        }
        self.sort_current();
        self.passed.0 += 1;
        self.passed.1 += self.current.len() as u32;
        if self.passed.0 >= 1 << 9 {
            self.consider_length();
        }
    }

    /// Changes the length of a slot if it has many events, or if every slot has one only and the wheel must
    /// pass many of them. Between the two bounds a change by a factor of two is not reverted.
    #[cold]
    fn consider_length(&mut self) {
        let (slots, events) = std::mem::take(&mut self.passed);
        let shift = match () {
            () if events > 5 * slots => (self.shift - 1).max(SHORTEST),
            () if 4 * events < 5 * slots => (self.shift + 1).min(LONGEST),
            () => self.shift,
        };
        // The current events stay current, so the current slot must be that of the last of them.
        let Some((latest, _)) = self.current.first().filter(|_| shift != self.shift) else { return };
        (self.shift, self.cursor) = (shift, latest.at.as_ps() >> shift);
        self.heads.fill(NONE);
        *self.filled = [Bits::EMPTY; LEVELS];
        for timer in 0..self.timers.len() as u32 {
            let Pending { moment, list, .. } = self.timers[timer as usize];
            if list == CURRENT || moment.at == Time::NEVER {
                continue;
            }
            let slot = moment.at.as_ps() >> shift;
            if slot <= self.cursor {
                self.timers[timer as usize].list = CURRENT;
                self.current.push((moment, timer));
            } else {
                self.link(timer, slot);
            }
        }
        self.sort_current();
    }

    /// Sorts the current events, the earliest last.
    fn sort_current(&mut self) {
        if self.current.len() > 1 {
            self.current.sort_unstable_by_key(|(moment, _)| std::cmp::Reverse(moment.number()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Span;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Equal to a sorted map of (time, position) under any sequence of setting, moving and cancelling.
        #[test]
        fn is_a_sorted_map(ops in prop::collection::vec((0..40usize, 0..50u64), 1..500)) {
            let mut queue = EventQueue::default();
            let mut timers = Vec::new();
            let rank_of = |which: usize| Rank::only(Class::Packet).numbered(Class::Packet, which as u64);
            let mut model: BTreeMap<(Time, TieBreak), usize> = BTreeMap::new();
            for (which, at) in ops {
                while timers.len() <= which {
                    let which = timers.len();
                    timers.push(queue.add(Owner::Link(which as u32), rank_of(which)));
                }
                let at = if at == 0 { Time::NEVER } else { Time::us(at) };
                queue.set(timers[which], at);
                model.retain(|_, known| *known != which);
                if at != Time::NEVER {
                    model.insert((at, rank_of(which).at(at)), which);
                }
                let expected = model.first_key_value().map(|((at, _), which)| (*at, Owner::Link(*which as u32)));
                prop_assert_eq!(queue.first().map(|(moment, owner)| (moment.at, owner)), expected);
            }
        }
    }

    /// Equal to a sorted map while the density of events changes by a factor of 10^7, so that the length of a
    /// slot changes many times.
    #[test]
    fn any_density_of_events_has_the_exact_order() {
        let mut queue = EventQueue::default();
        let rank_of = |which: u64| Rank::only(Class::Packet).numbered(Class::Packet, which);
        let timers: Vec<Timer> =
            (0..200).map(|which| queue.add(Owner::Link(which as u32), rank_of(which))).collect();
        let mut rng = Streams::new(3).rng();
        let mut model: BTreeMap<(Time, TieBreak), usize> = BTreeMap::new();
        let set = |queue: &mut EventQueue, model: &mut BTreeMap<_, _>, which: usize, at: Time| {
            let before = queue.time_of(timers[which]);
            model.remove(&(before, rank_of(which as u64).at(before)));
            queue.set(timers[which], at);
            model.insert((at, rank_of(which as u64).at(at)), which);
        };
        for which in 0..200 {
            set(&mut queue, &mut model, which, Time::us(which as u64 % 7));
        }
        let mut shifts = std::collections::BTreeSet::new();
        for step in 0..200_000_u64 {
            let (moment, owner) = queue.first().expect("every timer has an event");
            let ((at, _), which) = model.first_key_value().expect("as in the queue");
            assert_eq!((moment.at, owner), (*at, Owner::Link(*which as u32)));
            // Gaps of 10 ns to 100 ms, in phases; some events are at the same time, some are moved.
            let longest = [10_000, 100_000_000_000, 1_000_000, 10_000_000_000][(step / 25_000 % 4) as usize];
            let (which, now) = (*which, *at);
            let gap = Span::from_ps(rng.below(longest) / 1_000 * 1_000);
            set(&mut queue, &mut model, which, now + gap);
            let other = rng.below(200) as usize;
            if step % 3 == 0 && other != which {
                set(&mut queue, &mut model, other, now + Span::from_ps(rng.below(longest)));
            }
            shifts.insert(queue.shift);
        }
        assert!(shifts.len() > 8, "{shifts:?}");
    }

    /// Ranks of links with names like those in scenarios.
    fn ranks() -> Vec<Rank> {
        let streams = Streams::new(1);
        (1..=20).map(|n| Rank::of(Class::Packet, &streams.within(&format!("host{n}->a")))).collect()
    }

    #[test]
    fn classes_keep_their_order_for_all_draws() {
        let classes = [Class::Outage, Class::Measuring, Class::Packet, Class::Connection, Class::Sample];
        for tick in 0..1_000 {
            let positions = classes.map(|class| ranks()[3].numbered(class, tick).at(Time::us(tick)));
            assert!(positions.is_sorted());
        }
    }

    /// Links with packets of equal size have events at the multiples of one time. Each of two links is first
    /// in half of them, neither in turns nor in long series: the order at one time is independent of the
    /// next.
    #[test]
    fn neither_of_two_periodic_timers_is_favoured() {
        const MEETINGS: u64 = 2_000;
        let ranks = ranks();
        for period in [Time::us(1), Time::us(320), Time::from_ps(1_234_567)] {
            for (index, a) in ranks.iter().enumerate() {
                for b in &ranks[..index] {
                    let first = |n: u64| {
                        let at = Time::from_ps(period.as_ps() * n);
                        a.at(at) < b.at(at)
                    };
                    let wins = (0..MEETINGS).filter(|n| first(*n)).count();
                    let repeats = (1..MEETINGS).filter(|n| first(*n) == first(n - 1)).count();
                    // Five standard deviations around a half: 570 pairs are tested twice.
                    let half = 1_000 - 112..=1_000 + 112;
                    assert!(
                        half.contains(&wins) && half.contains(&repeats),
                        "{wins} wins, {repeats} repeats"
                    );
                }
            }
        }
    }

    #[test]
    fn another_seed_draws_another_order() {
        let position = |seed| Rank::of(Class::Packet, &Streams::new(seed)).at(Time::us(1));
        assert_ne!(position(1), position(2));
    }
}
