//! The event queue: the next pending event of every link, connection and source.
//!
//! Each of them has a *timer*, which holds the time of its next event. A winner tree over the timers finds
//! the earliest. Setting a timer replays only its path to the root. In the usual case, where an event sets
//! the timer that caused it, that is one pass instead of the pop and push of a heap.
//!
//! # Events at the same time
//! Events at the same time are ordered by their ranks ([`Rank`]): the class of the event, the position of its
//! origin among those of its class, and a number that the origin counts by itself. So the order of two events
//! does not depend on what else is in the run, on when their timers were set, or on the order in which a
//! scenario lists its sources. A run that is split into parts has the same order in each part. No two timers
//! share a rank, and a timer has one pending event at most, so no two pending events have the same key.

use qdisc::Time;

/// A timer of an [`EventQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer(u32);

/// The order of events at the same time: the lower rank comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u64);

/// What a timer belongs to: the part of the engine that handles its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A link, by its number: its transmitter is free, or a packet arrives at its far end.
    Link(u32),
    /// A connection, by its place in the transport.
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
}

/// The kind of an event. Events at the same time are handled in the order of their classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Links fail or come back, before any packet that would use them.
    Outage = 0,
    /// The measurement interval begins or ends. Packets at its first moment belong to it, packets at its last
    /// do not.
    Measuring = 1,
    /// A transmitter takes a packet from its port. It comes before arrivals, so that at every port a packet
    /// that leaves a full queue makes space for one that arrives at the same time.
    Departure = 2,
    /// A packet arrives at the far end of a link.
    Arrival = 3,
    /// A packet crosses the access link of a host.
    Access = 4,
    /// A timer of a connection expires.
    Connection = 5,
    /// A source of traffic wakes.
    Source = 6,
    /// Ports are sampled, after all other events at that time.
    Sample = 7,
}

impl Rank {
    /// The rank of the `number`-th timer of `origin` in a class. `origin` is a position among all origins of
    /// the class.
    ///
    /// # Panics
    /// If `origin` has more than 20 bits, or `number` more than 40.
    pub fn new(class: Class, origin: u32, number: u64) -> Rank {
        assert!(
            origin < 1 << 20 && number < 1 << 40,
            "ranks have 20 bits for origins and 40 for their numbers"
        );
        Rank((class as u64) << 60 | u64::from(origin) << 40 | number)
    }
}

/// A priority queue of timers, each with at most one pending event. The number of timers grows as needed.
#[derive(Debug)]
pub struct EventQueue {
    /// Time and rank per timer; the time is `Time::NEVER` if no event is pending.
    keys: Vec<Key>,
    /// Owner per timer.
    owners: Vec<Owner>,
    /// The winner tree: the earlier timer below each node. Node `i` has children `2i` and `2i + 1`, the
    /// leaves are the timers.
    winners: Vec<u32>,
    /// Number of leaves, a power of two and at least the number of timers.
    leaves: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    at: Time,
    rank: Rank,
}

const IDLE: Key = Key { at: Time::NEVER, rank: Rank(u64::MAX) };

impl Default for EventQueue {
    fn default() -> EventQueue {
        let mut queue = EventQueue { keys: Vec::new(), owners: Vec::new(), winners: Vec::new(), leaves: 0 };
        queue.resize(16);
        queue
    }
}

impl EventQueue {
    /// Adds a timer without a pending event. No two timers may have the same rank.
    ///
    /// # Panics
    /// With 2^32 timers.
    pub fn add(&mut self, owner: Owner, rank: Rank) -> Timer {
        if self.owners.len() == self.leaves {
            self.resize(self.leaves * 2);
        }
        let timer = Timer(u32::try_from(self.owners.len()).expect("fewer than 2^32 timers"));
        self.owners.push(owner);
        self.reuse(timer, rank);
        timer
    }

    /// Gives a timer without a pending event a new rank, for another use by the same owner.
    pub fn reuse(&mut self, timer: Timer, rank: Rank) {
        let key = &mut self.keys[timer.0 as usize];
        debug_assert_eq!(key.at, Time::NEVER, "a timer that is reused has no pending event");
        key.rank = rank;
    }

    /// Sets the time of the next event; `Time::NEVER` cancels it.
    #[inline]
    pub fn set(&mut self, timer: Timer, at: Time) {
        self.set_ranked(timer, at, self.keys[timer.0 as usize].rank);
    }

    /// Sets the time and the rank of the next event, for a timer whose events have more than one class.
    #[inline]
    pub fn set_ranked(&mut self, timer: Timer, at: Time, rank: Rank) {
        let key = Key { at, rank };
        if self.keys[timer.0 as usize] != key {
            self.keys[timer.0 as usize] = key;
            self.replay(timer.0 as usize);
        }
    }

    /// The time of the next event; `Time::NEVER` if none is pending.
    pub fn time_of(&self, timer: Timer) -> Time {
        self.keys[timer.0 as usize].at
    }

    /// The earliest pending event: its time and the owner of its timer. It stays pending until its timer is
    /// set.
    #[inline]
    pub fn first(&self) -> Option<(Time, Owner)> {
        let timer = self.winners[1] as usize;
        let at = self.keys[timer].at;
        (at != Time::NEVER).then(|| (at, self.owners[timer]))
    }

    #[inline]
    fn replay(&mut self, timer: usize) {
        let mut winner = timer as u32;
        let mut key = self.keys[timer];
        let mut node = (self.leaves + timer) >> 1;
        let mut child = self.leaves + timer;
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
        for timer in 0..leaves {
            self.winners[leaves + timer] = timer as u32;
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
        /// Equal to a sorted map of (time, rank) under any sequence of setting, moving and cancelling.
        #[test]
        fn is_a_sorted_map(ops in prop::collection::vec((0..40usize, 0..50u64), 1..500)) {
            let mut queue = EventQueue::default();
            let mut timers = Vec::new();
            // Ranks fall as timers are added, so that their order differs from that of the timers.
            let rank_of = |which: usize| Rank::new(Class::Source, 1_000 - which as u32, 0);
            let mut model: BTreeMap<(Time, Rank), usize> = BTreeMap::new();
            for (which, at) in ops {
                while timers.len() <= which {
                    let which = timers.len();
                    timers.push(queue.add(Owner::Link(which as u32), rank_of(which)));
                }
                let at = if at == 0 { Time::NEVER } else { Time::us(at) };
                queue.set(timers[which], at);
                model.retain(|_, known| *known != which);
                if at != Time::NEVER {
                    model.insert((at, rank_of(which)), which);
                }
                let expected = model.first_key_value().map(|((at, _), which)| (*at, Owner::Link(*which as u32)));
                prop_assert_eq!(queue.first(), expected);
            }
        }
    }

    #[test]
    fn ranks_sort_by_class_then_origin_then_number() {
        let ranks = [
            Rank::new(Class::Outage, 5, 9),
            Rank::new(Class::Departure, 7, 0),
            Rank::new(Class::Connection, 0, 3),
            Rank::new(Class::Connection, 1, 0),
            Rank::new(Class::Connection, 1, 1 << 39),
            Rank::new(Class::Sample, 0, 0),
        ];
        assert!(ranks.is_sorted());
    }
}
