//! Turns of buckets, new ones first: the two lists of DRR++ (MacGregor and Shi 2000; RFC 8290, sections 4.1
//! and 4.2).
//!
//! A bucket whose queue was empty is new, and has its first turn before the old ones. After that, and when it
//! is found empty, it is old. Only an old bucket that is found empty leaves the lists, so a bucket cannot
//! stay new by pausing. The owner keeps the queues and the credits.

use std::collections::VecDeque;

use crate::FlowTable;

/// The lists of new and old buckets.
#[derive(Debug)]
pub struct NewAndOld {
    new: VecDeque<u32>,
    /// They may be empty.
    old: VecDeque<u32>,
    /// Largest number of buckets so far.
    most: usize,
}

impl NewAndOld {
    /// Empty lists with memory for this many buckets.
    pub fn with_capacity(buckets: usize) -> NewAndOld {
        NewAndOld { new: VecDeque::with_capacity(buckets), old: VecDeque::with_capacity(buckets), most: 0 }
    }

    /// A bucket that is in neither list joins the new ones.
    #[inline]
    pub fn join(&mut self, bucket: usize) {
        self.new.push_back(bucket as u32);
        self.most = self.most.max(self.len());
    }

    /// The bucket with the turn, and true if it is new.
    #[inline]
    pub fn turn(&self) -> Option<(usize, bool)> {
        match (self.new.front(), self.old.front()) {
            (Some(bucket), _) => Some((*bucket as usize, true)),
            (None, Some(bucket)) => Some((*bucket as usize, false)),
            (None, None) => None,
        }
    }

    /// The bucket with the turn moves to the end of the old ones.
    ///
    /// # Panics
    /// If no bucket has the turn.
    #[inline]
    pub fn end_turn(&mut self, is_new: bool) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        let bucket = list.pop_front().expect("the bucket whose turn it is");
        self.old.push_back(bucket);
    }

    /// The bucket with the turn is empty. Returns true if it has left the lists, as an old one does.
    #[inline]
    pub fn found_empty(&mut self, is_new: bool) -> bool {
        if is_new {
            self.end_turn(true);
        } else {
            self.old.pop_front();
        }
        !is_new
    }

    /// Number of buckets.
    #[inline]
    pub fn len(&self) -> usize {
        self.new.len() + self.old.len()
    }

    /// True without buckets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Largest number of buckets so far.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The state of this many buckets of `entry` bytes each, which all exist from the start. Those in the
    /// lists count as flows.
    pub fn flow_table(&self, buckets: usize, entry: usize) -> FlowTable {
        FlowTable {
            flows: self.len() as u64,
            most: self.most as u64,
            entry_bytes: entry as u32,
            bytes: (buckets * entry) as u64,
        }
    }

    /// New buckets, in order.
    pub fn new_ones(&self) -> &VecDeque<u32> {
        &self.new
    }

    /// Old buckets, in order.
    pub fn old_ones(&self) -> &VecDeque<u32> {
        &self.old
    }

    /// Removes all buckets and keeps the memory.
    pub fn clear(&mut self) {
        self.new.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_buckets_go_first_and_only_old_ones_leave() {
        let mut lists = NewAndOld::with_capacity(4);
        assert_eq!((lists.turn(), lists.is_empty()), (None, true));
        lists.join(3);
        lists.join(1);
        assert_eq!(lists.turn(), Some((3, true)));
        lists.end_turn(true);
        assert_eq!(lists.turn(), Some((1, true)), "a new bucket goes before an old one");
        assert!(!lists.found_empty(true), "an empty new bucket becomes an old one");
        assert_eq!(lists.turn(), Some((3, false)));
        lists.end_turn(false);
        assert_eq!(lists.turn(), Some((1, false)));
        assert!(lists.found_empty(false));
        assert_eq!((lists.turn(), lists.len(), lists.most()), (Some((3, false)), 1, 2));
        lists.join(1);
        assert_eq!(lists.turn(), Some((1, true)), "it is new again");
        lists.clear();
        assert_eq!((lists.turn(), lists.most()), (None, 2));
    }
}
