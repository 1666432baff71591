//! A set of small numbers in which the next member from a number on is found in O(log n), with 64 children
//! per node. Round robins over many classes use it: members join and leave, and the order of the
//! numbers remains.
//!
//! Each level has a bit for each word of the level below that is not zero. A set of up to 64 numbers is one
//! word; one of 262,144 has three levels.

/// A set of numbers below a bound.
#[derive(Clone, Debug)]
pub struct NumberSet {
    /// Words of all levels, the lowest level first.
    words: Box<[u64]>,
    /// Number of levels.
    levels: u8,
    /// Number of words of the lowest level.
    lowest: u32,
}

impl NumberSet {
    /// An empty set of numbers below `bound`.
    ///
    /// # Panics
    /// If `bound` exceeds 2^32 - 64.
    pub fn new(bound: usize) -> NumberSet {
        let lowest = bound.div_ceil(64).max(1);
        let (mut total, mut width, mut levels) = (lowest, lowest, 1);
        while width > 1 {
            width = width.div_ceil(64);
            total += width;
            levels += 1;
        }
        let lowest = u32::try_from(lowest).expect("the numbers fit into 32 bits");
        NumberSet { words: vec![0; total].into_boxed_slice(), levels, lowest }
    }

    /// True without members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words[self.words.len() - 1] == 0
    }

    /// True if `number` is a member.
    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        self.words[number as usize / 64] >> (number % 64) & 1 == 1
    }

    /// Inserts a number.
    #[inline]
    pub fn insert(&mut self, number: u32) {
        if let [word] = &mut *self.words {
            *word |= 1 << (number % 64);
            return;
        }
        let (mut at, mut begin, mut width) = (number as usize, 0, self.lowest as usize);
        for _ in 0..self.levels {
            let word = &mut self.words[begin + at / 64];
            let was_empty = *word == 0;
            *word |= 1 << (at % 64);
            if !was_empty {
                return;
            }
            (at, begin, width) = (at / 64, begin + width, width.div_ceil(64));
        }
    }

    /// Removes a number.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        if let [word] = &mut *self.words {
            *word &= !(1 << (number % 64));
            return;
        }
        let (mut at, mut begin, mut width) = (number as usize, 0, self.lowest as usize);
        for _ in 0..self.levels {
            let word = &mut self.words[begin + at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            (at, begin, width) = (at / 64, begin + width, width.div_ceil(64));
        }
    }

    /// The smallest member that is at least `from`.
    #[inline]
    pub fn next(&self, from: u32) -> Option<u32> {
        if let [word] = *self.words {
            let later = if from < 64 { word & u64::MAX << from } else { 0 };
            return (later != 0).then(|| later.trailing_zeros());
        }
        let (mut at, mut begin, mut width) = (from as usize, 0, self.lowest as usize);
        // Up to a level with a later member, then down to the first of its members.
        let mut level = 0;
        loop {
            if at / 64 >= width {
                return None;
            }
            let later = self.words[begin + at / 64] & u64::MAX << (at % 64);
            if later != 0 {
                at = at / 64 * 64 + later.trailing_zeros() as usize;
                break;
            }
            level += 1;
            if level == self.levels {
                return None;
            }
            (at, begin, width) = (at / 64 + 1, begin + width, width.div_ceil(64));
        }
        for below in (0..level).rev() {
            begin = self.begin_of(below);
            at = at * 64 + self.words[begin + at].trailing_zeros() as usize;
        }
        Some(at as u32)
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }

    /// Index of the first word of a level.
    fn begin_of(&self, level: u8) -> usize {
        let (mut begin, mut width) = (0, self.lowest as usize);
        for _ in 0..level {
            (begin, width) = (begin + width, width.div_ceil(64));
        }
        begin
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// It is the set of the standard library.
        #[test]
        fn is_an_ordered_set(
            bound in prop::sample::select(vec![1u32, 64, 65, 4096, 4097, 300_000]),
            steps in prop::collection::vec((any::<bool>(), any::<u32>(), any::<u32>()), 0..200),
        ) {
            let (mut set, mut model) = (NumberSet::new(bound as usize), BTreeSet::new());
            for (joins, number, from) in steps {
                // Half of the numbers are close to each other, so that words have several members.
                let number = if number % 2 == 0 { number % bound } else { number % bound.min(100) };
                if joins { set.insert(number); model.insert(number); } else { set.remove(number); model.remove(&number); }
                let from = from % (bound + 1);
                prop_assert_eq!(set.next(from), model.range(from..).next().copied());
                prop_assert_eq!(set.is_empty(), model.is_empty());
                prop_assert_eq!(set.contains(number), model.contains(&number));
            }
        }
    }
}
