//! Replay protection: a recorded message is not accepted again.
//!
//! # Principles
//! - Each request has a number, and the numbers of a sender grow; the first one is the time of its clock. The
//!   guard stores the last number of each owner, and accepts only a larger one.
//! - A number may differ from the router's clock by at most the skew. An owner that was silent for longer can
//!   be removed: its recorded messages are too old.
//! - The memory is bounded. When it is full, the owner with the smallest last number is removed first.
//! - The floor is the largest number that was ever removed. The number of an owner that is not stored must be
//!   above the floor, so that no message is accepted twice, whichever owner was removed, and even if the
//!   router's clock steps back. The initial floor is the start time of the router, which stores no owner
//!   then.
//!
//! This only protects messages with a key: without a key, numbers can be forged like everything else.
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
    /// Numbers with their owners, in the order of the numbers.
    by_number: BTreeSet<(u64, u64)>,
}

impl Guard {
    /// Default skew, in nanoseconds: a minute.
    pub const SKEW: u64 = 60_000_000_000;
    /// Default for the largest number of owners: a few megabytes.
    pub const MAX: usize = 65_536;

    /// Creates the guard of a router that starts at `now`, for clocks that differ by at most `skew`
    /// nanoseconds. It stores `most` owners, at least one.
    pub fn new(now: u64, skew: u64, most: usize) -> Guard {
        Guard { skew, most: most.max(1), floor: now, last: BTreeMap::new(), by_number: BTreeSet::new() }
    }

    /// Accepts a message of an owner if it is new, and stores its number.
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
                // The removed number may be larger than this one, which then could be a copy.
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

    /// Number of stored owners.
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
            "not later than the start of the router"
        );
        assert_eq!(guard.admit(1, 1001, 1000), Ok(()));
        assert_eq!(guard.admit(1, 1001, 1010), Err(Reason::Replayed));
        assert_eq!(guard.admit(2, 1001, 1010), Ok(()), "each owner has its own numbers");
        assert_eq!(guard.admit(1, 1111, 1010), Err(Reason::Clock), "a clock ahead");
        assert_eq!(guard.admit(1, 1110, 1010), Ok(()));
        assert_eq!(guard.admit(1, 1110, 1211), Err(Reason::Clock), "a recorded message that is too old");
        assert_eq!(guard.admit(1, 1111, 1211), Ok(()));
    }

    /// An owner that is removed, for lack of memory or after some time, raises the floor.
    #[test]
    fn memory_is_bounded_and_messages_of_removed_owners_cannot_be_repeated() {
        let mut guard = Guard::new(0, 1000, 3);
        for owner in 1..=100 {
            assert_eq!(guard.admit(owner, 100 + owner, 150), Ok(()));
            assert!(guard.remembered() <= 3);
        }
        for owner in 1..=100 {
            assert_eq!(guard.admit(owner, 100 + owner, 150), Err(Reason::Replayed), "{owner}");
        }
        // All owners become too old, and the clock steps back.
        assert_eq!(guard.admit(7, 5000, 5000), Ok(()));
        assert_eq!(guard.remembered(), 1);
        assert_eq!(guard.admit(100, 200, 150), Err(Reason::Replayed));
    }

    proptest! {
        /// For any messages and a clock with steps, no message is accepted twice, and the memory is bounded.
        #[test]
        fn no_message_is_accepted_twice(
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
