//! A set of small numbers with a fast search for the next number, for example the next of many queues with a
//! packet.
//!
//! It has one bit per number, and above that one bit per word of 64 numbers. So the next number is found in a
//! few steps, even in a sparse set: each summary word stands for 4,096 numbers. Numbers below 64 are in a
//! word inside the set itself, because most sets have no larger numbers.

/// A set of small numbers.
#[derive(Debug, Default)]
pub struct Positions {
    /// Bit `n` for numbers below 64.
    low: u64,
    /// Bit `n % 64` of word `n / 64` for all others: word 0 stays empty.
    words: Vec<u64>,
    /// Summary of the words: a bit for each one that is not zero.
    summary: Vec<u64>,
}

impl Positions {
    /// True if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.low == 0 && (self.words.is_empty() || self.summary.iter().all(|word| *word == 0))
    }

    /// Inserts a number, if it is not there.
    #[inline]
    pub fn insert(&mut self, number: u32) {
        if number < 64 {
            self.low |= 1 << number;
        } else {
            self.insert_high(number);
        }
    }

    /// Removes a number, if it is there.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        if number < 64 {
            self.low &= !(1 << number);
        } else {
            self.remove_high(number);
        }
    }

    /// The smallest number.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.from(0)
    }

    /// The smallest number of the set that is not below `number`.
    #[inline]
    pub fn from(&self, number: u32) -> Option<u32> {
        if number < 64 {
            let bits = self.low >> number;
            if bits != 0 {
                return Some(number + bits.trailing_zeros());
            }
        }
        if self.words.is_empty() { None } else { self.high_from(number.max(64)) }
    }

    /// Removes all numbers and keeps the memory.
    pub fn clear(&mut self) {
        self.low = 0;
        self.words.fill(0);
        self.summary.fill(0);
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        ((self.words.capacity() + self.summary.capacity()) * size_of::<u64>()) as u64
    }

    fn insert_high(&mut self, number: u32) {
        let word = number as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
            self.summary.resize(word / 64 + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    fn remove_high(&mut self, number: u32) {
        let word = number as usize / 64;
        let Some(bits) = self.words.get_mut(word) else { return };
        *bits &= !(1 << (number % 64));
        if *bits == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
    }

    fn high_from(&self, number: u32) -> Option<u32> {
        let word = number as usize / 64;
        let bits = self.words.get(word)? >> (number % 64);
        if bits != 0 {
            return Some(number + bits.trailing_zeros());
        }
        let mut at = (word + 1) / 64;
        // The summary bits before the next word are masked out.
        let mut words = *self.summary.get(at)? & (u64::MAX << ((word + 1) % 64));
        while words == 0 {
            at += 1;
            words = *self.summary.get(at)?;
        }
        let found = at * 64 + words.trailing_zeros() as usize;
        Some(found as u32 * 64 + self.words[found].trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Small numbers, numbers near the ends of words, and some large ones.
    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![0..10u32, 60..70u32, 4090..4100u32, 0..20_000u32]
    }

    proptest! {
        #[test]
        fn is_a_set(ops in prop::collection::vec((any::<bool>(), number(), number()), 0..200)) {
            let mut set = Positions::default();
            let mut model = BTreeSet::new();
            for (put, number, from) in ops {
                if put {
                    set.insert(number);
                    model.insert(number);
                } else {
                    set.remove(number);
                    model.remove(&number);
                }
                prop_assert_eq!(set.from(from), model.range(from..).next().copied());
                prop_assert_eq!(set.first(), model.first().copied());
                prop_assert_eq!(set.is_empty(), model.is_empty());
            }
            set.clear();
            prop_assert!(set.is_empty() && set.first().is_none());
        }
    }
}
