//! Rows of bits, which are sets of ports.
//!
//! Bit `p` of a row is port `p`. Rows of a switch with up to 64 ports have one word, so that an arbiter
//! handles all ports in one operation; rows of larger switches have 2, 4 or 16 words. The number of words is
//! a constant: the compiler removes loops over one word and may use vector registers for several. Results do
//! not depend on it.

use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Not};

/// A set of up to 64·`W` ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortSet<const W: usize>([u64; W]);

impl<const W: usize> PortSet<W> {
    /// The empty set.
    pub const EMPTY: PortSet<W> = PortSet([0; W]);

    /// The set of ports 0 to `count` - 1.
    ///
    /// # Panics
    /// If `count` is above 64·`W`.
    pub fn first(count: usize) -> PortSet<W> {
        assert!(count <= 64 * W, "{count} ports do not fit into a row of {}", 64 * W);
        let word = |at: usize| match count.saturating_sub(64 * at) {
            0 => 0,
            bits @ 1..64 => (1 << bits) - 1,
            _ => u64::MAX,
        };
        PortSet(std::array::from_fn(word))
    }

    /// The set of one port.
    #[inline]
    pub fn one(port: usize) -> PortSet<W> {
        let mut row = PortSet::EMPTY;
        row.insert(port);
        row
    }

    /// Adds a port.
    #[inline]
    pub fn insert(&mut self, port: usize) {
        self.0[if W == 1 { 0 } else { port >> 6 }] |= 1 << (port & 63);
    }

    /// Removes a port.
    #[inline]
    pub fn remove(&mut self, port: usize) {
        self.0[if W == 1 { 0 } else { port >> 6 }] &= !(1 << (port & 63));
    }

    /// Removes a port if `gone`, without a branch, since none could be predicted.
    #[inline]
    pub fn remove_if(&mut self, port: usize, gone: bool) {
        self.0[if W == 1 { 0 } else { port >> 6 }] &= !(u64::from(gone) << (port & 63));
    }

    /// Adds a port if `there`, without a branch.
    #[inline]
    pub fn insert_if(&mut self, port: usize, there: bool) {
        self.0[if W == 1 { 0 } else { port >> 6 }] |= u64::from(there) << (port & 63);
    }

    /// `true` if the set contains `port`.
    #[inline]
    pub fn has(&self, port: usize) -> bool {
        self.0[if W == 1 { 0 } else { port >> 6 }] & (1 << (port & 63)) != 0
    }

    /// `true` if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Number of ports in the set.
    #[inline]
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The lowest port in the set.
    #[inline]
    pub fn lowest(&self) -> Option<usize> {
        let at = self.0.iter().position(|word| *word != 0)?;
        Some(64 * at + self.0[at].trailing_zeros() as usize)
    }

    /// The only port of a set of one port; `None` for other sets.
    #[inline]
    pub fn only(&self) -> Option<usize> {
        if W == 1 {
            let word = self.0[0];
            return (word != 0 && word & (word - 1) == 0).then(|| word.trailing_zeros() as usize);
        }
        if self.count() == 1 { self.lowest() } else { None }
    }

    /// The first port of the set from `from` on, upwards and around: the choice of a round-robin arbiter
    /// whose pointer stands at `from`.
    #[inline]
    pub fn from(&self, from: usize) -> Option<usize> {
        if W == 1 {
            let turned = self.0[0].rotate_right(from as u32 & 63);
            return (turned != 0).then(|| (turned.trailing_zeros() as usize + from) & 63);
        }
        let (word, bit) = (from >> 6, from & 63);
        let high = self.0[word] & (u64::MAX << bit);
        if high != 0 {
            return Some(64 * word + high.trailing_zeros() as usize);
        }
        // The words above, those below, and last the lower part of its own word.
        for step in 1..=W {
            let at = (word + step) % W;
            if self.0[at] != 0 {
                return Some(64 * at + self.0[at].trailing_zeros() as usize);
            }
        }
        None
    }

    /// The `nth` port of the set in ascending order, counted from 0.
    #[inline]
    pub fn nth(&self, mut nth: usize) -> Option<usize> {
        for (at, word) in self.0.iter().enumerate() {
            let here = word.count_ones() as usize;
            if nth < here {
                let mut word = *word;
                for _ in 0..nth {
                    word &= word - 1;
                }
                return Some(64 * at + word.trailing_zeros() as usize);
            }
            nth -= here;
        }
        None
    }

    /// Removes all ports if `gone`, without a branch.
    #[inline]
    pub fn clear_if(&mut self, gone: bool) {
        let kept = u64::from(gone).wrapping_sub(1);
        self.0.iter_mut().for_each(|word| *word &= kept);
    }

    /// The words of the row. Port `p` is bit `p % 64` of word `p / 64`.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// The ports of the set, ascending.
    #[inline]
    pub fn iter(self) -> Ports<W> {
        Ports { row: self, at: 0 }
    }
}

/// The ports of a row, ascending.
#[derive(Clone, Debug)]
pub struct Ports<const W: usize> {
    row: PortSet<W>,
    /// The word that contains the next port, or an earlier one.
    at: usize,
}

impl<const W: usize> Iterator for Ports<W> {
    type Item = usize;
    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.at < W {
            let word = &mut self.row.0[self.at];
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(64 * self.at + bit);
            }
            self.at += 1;
        }
        None
    }
}

impl<const W: usize> IntoIterator for PortSet<W> {
    type Item = usize;
    type IntoIter = Ports<W>;
    #[inline]
    fn into_iter(self) -> Ports<W> {
        self.iter()
    }
}

impl<const W: usize> FromIterator<usize> for PortSet<W> {
    fn from_iter<I: IntoIterator<Item = usize>>(ports: I) -> PortSet<W> {
        let mut row = PortSet::EMPTY;
        ports.into_iter().for_each(|port| row.insert(port));
        row
    }
}

impl<const W: usize> BitAnd for PortSet<W> {
    type Output = PortSet<W>;
    #[inline]
    fn bitand(self, other: PortSet<W>) -> PortSet<W> {
        PortSet(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }
}
impl<const W: usize> BitOr for PortSet<W> {
    type Output = PortSet<W>;
    #[inline]
    fn bitor(self, other: PortSet<W>) -> PortSet<W> {
        PortSet(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }
}
impl<const W: usize> Not for PortSet<W> {
    type Output = PortSet<W>;
    #[inline]
    fn not(self) -> PortSet<W> {
        PortSet(std::array::from_fn(|at| !self.0[at]))
    }
}
impl<const W: usize> BitAndAssign for PortSet<W> {
    #[inline]
    fn bitand_assign(&mut self, other: PortSet<W>) {
        *self = *self & other;
    }
}
impl<const W: usize> BitOrAssign for PortSet<W> {
    #[inline]
    fn bitor_assign(&mut self, other: PortSet<W>) {
        *self = *self | other;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agrees<const W: usize>(ports: &[usize], from: usize) {
        let ports: std::collections::BTreeSet<usize> = ports.iter().map(|port| port % (64 * W)).collect();
        let from = from % (64 * W);
        let row: PortSet<W> = ports.iter().copied().collect();
        assert_eq!(row.iter().collect::<Vec<_>>(), ports.iter().copied().collect::<Vec<_>>());
        assert_eq!(row.count(), ports.len());
        assert_eq!(row.lowest(), ports.first().copied());
        assert_eq!(row.only(), ports.first().copied().filter(|_| ports.len() == 1));
        assert_eq!(row.words().len(), W);
        let around = ports.range(from..).next().or_else(|| ports.first());
        assert_eq!(row.from(from), around.copied());
        for nth in 0..=ports.len() {
            assert_eq!(row.nth(nth), ports.iter().nth(nth).copied());
        }
        let upper: PortSet<W> = !PortSet::first(from);
        assert_eq!((row & upper).lowest(), ports.range(from..).next().copied());
    }

    proptest! {
        #[test]
        fn a_row_is_a_set(ports in prop::collection::vec(0usize..1024, 0..40), from in 0usize..1024) {
            agrees::<1>(&ports, from);
            agrees::<2>(&ports, from);
            agrees::<4>(&ports, from);
            agrees::<16>(&ports, from);
        }
    }

    #[test]
    fn conditions_decide() {
        let mut row: PortSet<2> = [3, 70].into_iter().collect();
        row.insert_if(100, false);
        row.remove_if(70, false);
        row.clear_if(false);
        assert_eq!(row.iter().collect::<Vec<_>>(), [3, 70]);
        row.insert_if(100, true);
        row.remove_if(70, true);
        assert_eq!(row.iter().collect::<Vec<_>>(), [3, 100]);
        row.clear_if(true);
        assert!(row.is_empty());
    }

    #[test]
    fn a_full_row() {
        assert_eq!(PortSet::<1>::first(64).count(), 64);
        assert_eq!(PortSet::<16>::first(1000).count(), 1000);
        assert_eq!(PortSet::<2>::first(64).nth(63), Some(63));
        assert!(PortSet::<2>::first(0).is_empty());
    }
}
