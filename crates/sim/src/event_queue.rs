//! What happens next: a tournament over one pending event per link, connection and source.
//!
//! Everything that can happen has a *timer* with the time of its next event. A winner tree over the timers knows the
//! earliest; moving one timer replays only its path to the root, which for the usual case "this event happened, that
//! is when the same thing happens next" is one pass instead of a heap's pop and push.
//!
//! # Events at the same time
//! The order of two events at the same time is that of their ranks ([`Rank`]): the class of what happens, the place of its
//! origin among those of its class, and a number that the origin counts by itself. So the order of two events does not
//! depend on what else is in the run, on when it was decided that they happen, or on the order in which a scenario lists
//! its sources. A run that is split into parts has the same order in each part. No two timers share a rank, and a timer has
//! one pending event at most, so no two pending events have the same key.

use qdisc::Time;

/// One thing that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer(u32);

/// Which of several events at the same time comes first: the one of lower rank.
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

/// What kind of event it is; the order is that of events at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Links go down or come up: before any packet that would use them.
    Outage = 0,
    /// The measurement interval begins or ends: what happens at its first moment is in it, what happens at its last is not.
    Measuring = 1,
    /// A transmitter asks its port for a packet. A packet that leaves a full queue makes room for one that comes at the same
    /// time, at every port alike.
    Departure = 2,
    /// A packet arrives at the far end of a link.
    Arrival = 3,
    /// A packet crosses the access link of a host.
    Access = 4,
    /// A timer of a connection.
    Connection = 5,
    /// A source of traffic wakes.
    Source = 6,
    /// Ports are sampled: after all that happens at that time.
    Sample = 7,
}

impl Rank {
    /// The `number`-th of what `origin` has of a class. `origin` is a place among all origins of the class.
    ///
    /// # Panics
    /// When `origin` has more than 20 bits, or `number` more than 40.
    pub fn new(class: Class, origin: u32, number: u64) -> Rank {
        assert!(
            origin < 1 << 20 && number < 1 << 40,
            "ranks have 20 bits for origins and 40 for what they count"
        );
        Rank((class as u64) << 60 | u64::from(origin) << 40 | number)
    }
}

/// The queue. The number of timers grows as needed; a timer that is given back is used again.
#[derive(Debug)]
pub struct EventQueue {
    /// Time and rank per timer; `Time::NEVER` when nothing is pending.
    keys: Vec<Key>,
    /// Owner per timer.
    owners: Vec<Owner>,
    /// The tree: node `i` has children `2i` and `2i + 1`, the leaves are the timers in order. Holds the timer that wins.
    winners: Vec<u32>,
    /// Number of leaves, a power of two.
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
    /// A timer for something new, with nothing pending. No two timers may have the same rank.
    pub fn add(&mut self, owner: Owner, rank: Rank) -> Timer {
        if self.owners.len() == self.leaves {
            self.resize(self.leaves * 2);
        }
        let timer = Timer(u32::try_from(self.owners.len()).expect("fewer than 2^32 timers"));
        self.owners.push(owner);
        self.reuse(timer, rank);
        timer
    }

    /// A timer that nothing is pending in stands for something else from now on.
    pub fn reuse(&mut self, timer: Timer, rank: Rank) {
        let key = &mut self.keys[timer.0 as usize];
        debug_assert_eq!(key.at, Time::NEVER, "the event of a timer that is used again is not pending");
        key.rank = rank;
    }

    /// When the thing happens next; `Time::NEVER` for not at all.
    #[inline]
    pub fn set(&mut self, timer: Timer, at: Time) {
        self.set_ranked(timer, at, self.keys[timer.0 as usize].rank);
    }

    /// When a thing happens next that stands for events of more than one class, and the rank that the event has.
    #[inline]
    pub fn set_ranked(&mut self, timer: Timer, at: Time, rank: Rank) {
        let key = Key { at, rank };
        if self.keys[timer.0 as usize] != key {
            self.keys[timer.0 as usize] = key;
            self.replay(timer.0 as usize);
        }
    }

    /// When the thing happens next.
    pub fn time_of(&self, timer: Timer) -> Time {
        self.keys[timer.0 as usize].at
    }

    /// The earliest pending event: its time and the owner of its timer. It stays pending until its timer is set.
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
        /// The same order as a sorted map of (time, rank), under any mix of setting, moving and removing, whatever the order
        /// in which times were set.
        #[test]
        fn is_a_sorted_map(ops in prop::collection::vec((0..40usize, 0..50u64), 1..500)) {
            let mut queue = EventQueue::default();
            let mut timers = Vec::new();
            // Ranks that fall as timers are added: their order is not that of the timers.
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
