//! Classes by the time at which their mode changes.
//!
//! The class at the link has its limit before it at nearly every packet: it waits for a moment, may send
//! again, and waits again, as the earliest of all. So the earliest class is kept outside the heap, and this
//! cycle does not move the others.

use giveway_qdisc::Time;
use giveway_qdisc::blocks::FlowHeap;

/// No class.
const NONE: u32 = u32::MAX;

/// Classes by time, then by number.
#[derive(Debug)]
pub struct Changes {
    /// The earliest of all, or [`NONE`], when all are in the heap.
    front: (Time, u32),
    heap: FlowHeap<Time>,
}

impl Changes {
    /// No classes.
    pub fn new() -> Changes {
        Changes { front: (Time::ZERO, NONE), heap: FlowHeap::with_capacity(0) }
    }

    /// The earliest time and its class.
    #[inline]
    pub fn first(&self) -> Option<(Time, u32)> {
        if self.front.1 == NONE { self.heap.first() } else { Some(self.front) }
    }

    /// Inserts a class, or changes its time.
    #[inline]
    pub fn set(&mut self, class: u32, at: Time) {
        let later = self.heap.first().is_none_or(|first| (at, class) <= first);
        if self.front.1 == class {
            if later {
                self.front.0 = at;
            } else {
                self.front.1 = NONE;
                self.heap.set(class, at);
            }
        } else if later && (self.front.1 == NONE || (at, class) < self.front) {
            self.heap.remove(class);
            let (time, displaced) = std::mem::replace(&mut self.front, (at, class));
            if displaced != NONE {
                self.heap.set(displaced, time);
            }
        } else {
            self.heap.set(class, at);
        }
    }

    /// Removes a class, if it is there.
    #[inline]
    pub fn remove(&mut self, class: u32) {
        if self.front.1 == class {
            self.front.1 = NONE;
        } else {
            self.heap.remove(class);
        }
    }

    /// Removes all classes.
    pub fn clear(&mut self) {
        self.front.1 = NONE;
        self.heap.clear();
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.heap.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// It equals a sorted list under any sequence of changes.
        #[test]
        fn is_a_sorted_list(steps in prop::collection::vec((0..4u8, 0..12u32, 0..9u64), 0..300)) {
            let mut changes = Changes::new();
            let mut times = BTreeMap::new();
            for (step, class, at) in steps {
                if step == 0 {
                    changes.remove(class);
                    times.remove(&class);
                } else {
                    changes.set(class, Time::ms(at));
                    times.insert(class, Time::ms(at));
                }
                prop_assert_eq!(changes.first(), times.iter().map(|(class, at)| (*at, *class)).min());
            }
            changes.clear();
            prop_assert_eq!(changes.first(), None);
        }
    }
}
