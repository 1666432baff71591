//! Whether a message is new: what keeps recorded messages from being sent again.
//!
//! # Principles
//! - Each request has a number, and a sender's numbers grow: they begin as the time of its clock. Of each owner the number of the last message
//!   is remembered, and only a larger one is taken.
//! - A number may differ from the router's clock by the skew at most. So an owner that was not heard of for longer than that can be forgotten:
//!   its recorded messages have become too old.
//! - The memory is bounded. When it is full the owner whose last number is the smallest is forgotten first.
//! - The largest number that was ever forgotten is the floor. Who is not remembered must be above it, so nothing that was heard before is
//!   taken again, whoever was forgotten, and also when the router's clock steps back. The floor begins as the time at which the router
//!   began, which has forgotten everybody.
//!
//! This is worth something for messages under a key only: without one, numbers can be made up like everything else.
//!
//! # Cost
//! - O(log n) for n owners; each takes about 100 bytes.

use std::collections::{BTreeMap, BTreeSet};

use crate::message::Reason;

/// The last number of each owner. Numbers are nanoseconds since 1970.
#[derive(Clone, Debug)]
pub struct Guard {
    skew: u64,
    most: usize,
    floor: u64,
    last: BTreeMap<u64, u64>,
    /// The same with the numbers first.
    by_number: BTreeSet<(u64, u64)>,
}

impl Guard {
    /// How much clocks may differ by default: a minute.
    pub const SKEW: u64 = 60_000_000_000;
    /// How many owners are remembered: a few megabytes of them.
    pub const MOST: usize = 65_536;

    /// That of a router that begins at this time, for clocks that differ by `skew` at most; it remembers `most` owners, at least one.
    pub fn new(now: u64, skew: u64, most: usize) -> Guard {
        Guard { skew, most: most.max(1), floor: now, last: BTreeMap::new(), by_number: BTreeSet::new() }
    }

    /// Whether a message of an owner is new; if so its number is remembered.
    ///
    /// # Errors
    /// The reason for a refusal.
    pub fn admit(&mut self, owner: u64, number: u64, now: u64) -> Result<(), Reason> {
        if number.abs_diff(now) > self.skew {
            return Err(Reason::Clock);
        }
        let oldest = now.saturating_sub(self.skew);
        while self.by_number.first().is_some_and(|(number, _)| *number < oldest) {
            self.forget_first();
        }
        let known = self.last.get(&owner).copied();
        if number <= known.unwrap_or(self.floor) {
            return Err(Reason::Replayed);
        }
        match known {
            Some(last) => {
                self.by_number.remove(&(last, owner));
            }
            None if self.last.len() >= self.most => {
                self.forget_first();
                // The one that was forgotten may be later than this one: then this one cannot be told from a copy.
                if number <= self.floor {
                    return Err(Reason::Replayed);
                }
            }
            None => {}
        }
        self.last.insert(owner, number);
        self.by_number.insert((number, owner));
        Ok(())
    }

    fn forget_first(&mut self) {
        if let Some((number, owner)) = self.by_number.pop_first() {
            self.last.remove(&owner);
            self.floor = self.floor.max(number);
        }
    }

    /// How many owners are remembered.
    pub fn remembered(&self) -> usize {
        self.last.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_grow_and_clocks_agree() {
        let mut guard = Guard::new(1000, 100, 10);
        assert_eq!(
            guard.admit(1, 1000, 1000),
            Err(Reason::Replayed),
            "from before the router began, or when it did"
        );
        assert_eq!(guard.admit(1, 1001, 1000), Ok(()));
        assert_eq!(guard.admit(1, 1001, 1010), Err(Reason::Replayed));
        assert_eq!(guard.admit(2, 1001, 1010), Ok(()), "each owner by itself");
        assert_eq!(guard.admit(1, 1111, 1010), Err(Reason::Clock), "a clock ahead");
        assert_eq!(guard.admit(1, 1110, 1010), Ok(()));
        assert_eq!(guard.admit(1, 1110, 1211), Err(Reason::Clock), "a recorded message that is too old");
        assert_eq!(guard.admit(1, 1111, 1211), Ok(()));
    }

    /// Owners that are forgotten, for want of memory or after a while, leave a floor behind.
    #[test]
    fn memory_is_bounded_and_what_is_forgotten_cannot_be_sent_again() {
        let mut guard = Guard::new(0, 1000, 3);
        for owner in 1..=100 {
            assert_eq!(guard.admit(owner, 100 + owner, 150), Ok(()));
            assert!(guard.remembered() <= 3);
        }
        for owner in 1..=100 {
            assert_eq!(guard.admit(owner, 100 + owner, 150), Err(Reason::Replayed), "{owner}");
        }
        // All of them become too old, and the clock steps back.
        assert_eq!(guard.admit(7, 5000, 5000), Ok(()));
        assert_eq!(guard.remembered(), 1);
        assert_eq!(guard.admit(100, 200, 150), Err(Reason::Replayed));
    }

    proptest! {
        /// Whatever comes, with a clock that steps about: no message is taken twice, and the memory stays bounded.
        #[test]
        fn no_message_is_taken_twice(
            messages in prop::collection::vec((0..6u64, 0..60u64, 0..80u64), 1..300),
        ) {
            let mut guard = Guard::new(0, 20, 4);
            let mut taken = BTreeSet::new();
            for (owner, number, now) in messages {
                if guard.admit(owner, number, now).is_ok() {
                    prop_assert!(taken.insert((owner, number)), "{} {} at {}", owner, number, now);
                }
                prop_assert!(guard.remembered() <= 4);
            }
        }
    }
}
