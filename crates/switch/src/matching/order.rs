//! The order in which matchings take ports. It decides between matchings that are equally good.

use giveway_qdisc::{Rng, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::port_set::PortSet;

/// The choice among several equally good matchings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// Ports in a random order, drawn anew each time.
    #[default]
    Random,
    /// Ports in ascending order, around, from a first port that moves by one each time.
    Rotating,
    /// Lower ports first.
    Fixed,
}

/// Random choices among a few items. One random word serves several of them.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    rng: Rng,
    /// The unused part of the present random word, as a fraction of 2^64.
    fraction: u64,
    /// Number of possible outcomes of the choices that were drawn from the present word.
    outcomes: u64,
}

/// Limit of the outcomes of one word. With it no probability has a relative error above 2^-24.
const MAX_OUTCOMES: u64 = 1 << 40;

impl Dice {
    pub fn new(rng: Rng) -> Dice {
        Dice { rng, fraction: 0, outcomes: MAX_OUTCOMES }
    }

    /// A uniform number in 0..n, where `n` is 1 to 1024. An `n` of 1 consumes no randomness.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        let outcomes = self.outcomes * n as u64;
        self.outcomes = outcomes;
        if outcomes > MAX_OUTCOMES {
            self.fraction = self.rng.word();
            self.outcomes = n as u64;
        }
        let product = u128::from(self.fraction) * n as u128;
        self.fraction = product as u64;
        (product >> 64) as usize
    }

    /// The index of one of the bits that are set in a word, uniform; 0 where none is.
    #[inline]
    pub fn bit(&mut self, first: u64) -> usize {
        // Up to three bits, the usual case, need no branch that depends on the choice.
        let second = first & first.wrapping_sub(1);
        let third = second & second.wrapping_sub(1);
        let from = if third & third.wrapping_sub(1) == 0 {
            let nth = self.below(1 + usize::from(second != 0) + usize::from(third != 0));
            let from = if nth > 0 { second } else { first };
            if nth > 1 { third } else { from }
        } else {
            let nth = self.below(first.count_ones() as usize);
            (0..nth).fold(first, |word, _| word & (word - 1))
        };
        from.trailing_zeros() as usize & 63
    }
}

/// The order in which a matching takes its ports.
#[derive(Clone, Debug)]
pub(crate) struct PortOrder {
    ties: Ties,
    dice: Dice,
    ports: usize,
    /// The port that comes first, unless the order is random.
    first: usize,
}

impl PortOrder {
    pub fn new(ties: Ties, ports: usize, streams: &Streams) -> PortOrder {
        PortOrder { ties, dice: Dice::new(streams.rng()), ports, first: 0 }
    }

    /// Starts a new matching.
    #[inline]
    pub fn begin(&mut self) {
        if self.ties == Ties::Rotating {
            self.first = if self.first + 1 == self.ports { 0 } else { self.first + 1 };
        }
    }

    /// Writes the ports of a row in their order to a list, which must have room for one more. Returns their
    /// number.
    #[inline]
    pub fn list<const W: usize>(&mut self, row: PortSet<W>, into: &mut [u16]) -> usize {
        let mut length = 0;
        for port in row {
            length = self.add_if(into, length, port, true);
        }
        self.turn(&mut into[..length], |port| *port);
        length
    }

    /// Adds a port to a list of `length` ports if `present`, without a branch, and returns the new length.
    /// Ports must be added in ascending order. Unless the order is random, [`turn`](PortOrder::turn) must
    /// follow the last one.
    #[inline]
    pub fn add_if(&mut self, list: &mut [u16], length: usize, port: usize, present: bool) -> usize {
        let mut index = length;
        if self.ties == Ties::Random {
            // An inside-out shuffle: the new port takes a random position, and the port at that position
            // moves to the end.
            let other = self.dice.below(length + 1);
            index = if present { other } else { length };
            list[length] = list[index];
        }
        list[index] = port as u16;
        length + usize::from(present)
    }

    /// Rotates items that are sorted by port into the order of the ports. Does nothing if the order is random
    /// or fixed.
    #[inline]
    pub fn turn<T>(&self, list: &mut [T], port: impl Fn(&T) -> u16) {
        if self.ties == Ties::Rotating {
            let below = list.partition_point(|one| usize::from(port(one)) < self.first);
            list.rotate_left(below);
        }
    }

    /// If the order is random, swaps the item at `index` with a random one from `index` on. Calls with
    /// ascending indices visit all items in a random order.
    #[inline]
    pub fn next<T>(&mut self, list: &mut [T], index: usize) {
        if self.ties == Ties::Random {
            let other = index + self.dice.below(list.len() - index);
            list.swap(index, other);
        }
    }

    /// Shuffles ports, if the order is random.
    #[inline]
    pub fn shuffle(&mut self, ports: &mut [u16]) {
        if self.ties == Ties::Random {
            for left in (1..ports.len()).rev() {
                ports.swap(left, self.dice.below(left + 1));
            }
        }
    }

    /// The port of a row that comes first in the order.
    #[inline]
    pub fn pick<const W: usize>(&mut self, row: PortSet<W>) -> Option<usize> {
        let (port, there) = self.choose(row);
        there.then_some(port)
    }

    /// The port of a row that comes first, and `true`; for an empty row an arbitrary port, and `false`. The
    /// function has no branch on the number of ports, because the processor could not predict it.
    #[inline]
    pub fn choose<const W: usize>(&mut self, row: PortSet<W>) -> (usize, bool) {
        let port = match self.ties {
            Ties::Random if W == 1 => return (self.dice.bit(row.words()[0]), !row.is_empty()),
            Ties::Random => row.nth(self.dice.below(row.count().max(1))),
            Ties::Rotating | Ties::Fixed => row.from(self.first),
        };
        (port.unwrap_or(0), port.is_some())
    }

    /// The first port of a walk over all ports, upwards and around.
    #[inline]
    pub fn start(&mut self) -> usize {
        match self.ties {
            Ties::Random => self.dice.below(self.ports),
            Ties::Rotating | Ties::Fixed => self.first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_of_four_ports_are_equally_likely() {
        let mut order = PortOrder::new(Ties::Random, 64, &Streams::new(1));
        let row: PortSet<1> = [3, 17, 40, 63].into_iter().collect();
        let mut seen = std::collections::BTreeMap::<Vec<u16>, u32>::new();
        let mut ports = [0; 5];
        let n = 240_000;
        for _ in 0..n {
            let length = order.list(row, &mut ports);
            *seen.entry(ports[..length].to_vec()).or_default() += 1;
        }
        assert_eq!(seen.len(), 24);
        for (ports, times) in seen {
            // 10000 each; four standard deviations.
            assert!((9608..=10392).contains(&times), "{ports:?} occurred {times} times");
        }
    }

    #[test]
    fn all_picks_are_equally_likely() {
        let mut order = PortOrder::new(Ties::Random, 16, &Streams::new(2));
        let row: PortSet<1> = [0, 5, 15].into_iter().collect();
        let mut seen = [0; 16];
        (0..90_000).for_each(|_| seen[order.pick(row).unwrap()] += 1);
        assert_eq!(seen.iter().filter(|times| **times > 0).count(), 3);
        for port in row {
            // 30000 each; four standard deviations are 566.
            assert!((29_434..=30_566).contains(&seen[port]), "{port} occurred {} times", seen[port]);
        }
        assert_eq!(order.pick(PortSet::<1>::EMPTY), None);
    }

    #[test]
    fn all_bits_are_equally_likely() {
        let mut dice = Dice::new(Streams::new(3).rng());
        assert_eq!(dice.bit(0), 0, "the result for an empty word is arbitrary, but it is a port");
        for word in [1u64 << 63, 0b101, 0b1_0011, 0b1111, 0x8000_0000_0101_0011, u64::MAX] {
            let count = word.count_ones();
            let mut seen = [0u32; 64];
            (0..10_000 * count).for_each(|_| seen[dice.bit(word)] += 1);
            for (bit, times) in seen.into_iter().enumerate() {
                // 10000 each; four standard deviations are at most 400.
                let range = if word >> bit & 1 != 0 { 9600..=10_400 } else { 0..=0 };
                assert!(range.contains(&times), "{bit} of {word:#x} occurred {times} times");
            }
        }
    }

    #[test]
    fn absent_ports_do_not_change_the_order() {
        for ties in [Ties::Random, Ties::Fixed] {
            let mut order = PortOrder::new(ties, 64, &Streams::new(4));
            let mut seen = std::collections::BTreeMap::<[u16; 3], u32>::new();
            for _ in 0..60_000 {
                let (mut list, mut length) = ([0; 4], 0);
                for (port, there) in [(1, true), (2, false), (3, true), (4, true), (5, false)] {
                    length = order.add_if(&mut list, length, port, there);
                }
                assert_eq!(length, 3);
                *seen.entry([list[0], list[1], list[2]]).or_default() += 1;
            }
            match ties {
                // 10000 each; four standard deviations are 365.
                Ties::Random => assert!(
                    seen.len() == 6 && seen.values().all(|times| (9635..=10_365).contains(times)),
                    "{seen:?}"
                ),
                _ => assert_eq!(seen.into_keys().collect::<Vec<_>>(), [[1, 3, 4]]),
            }
        }
    }

    #[test]
    fn all_orders_of_single_steps_are_equally_likely() {
        let mut order = PortOrder::new(Ties::Random, 16, &Streams::new(5));
        let mut seen = std::collections::BTreeMap::<[u16; 3], u32>::new();
        for _ in 0..60_000 {
            let mut list = [1, 2, 3];
            (0..3).for_each(|index| order.next(&mut list, index));
            *seen.entry(list).or_default() += 1;
        }
        assert!(seen.len() == 6 && seen.values().all(|times| (9635..=10_365).contains(times)), "{seen:?}");
    }

    #[test]
    fn a_rotating_order_moves_by_one() {
        let mut order = PortOrder::new(Ties::Rotating, 3, &Streams::new(1));
        let mut ports = [0; 4];
        let mut lists = Vec::new();
        for _ in 0..4 {
            order.begin();
            assert_eq!(order.list(PortSet::<1>::first(3), &mut ports), 3);
            assert_eq!(order.pick(PortSet::<1>::first(3)), Some(usize::from(ports[0])));
            lists.push([ports[0], ports[1], ports[2]]);
        }
        assert_eq!(lists, [[1, 2, 0], [2, 0, 1], [0, 1, 2], [1, 2, 0]]);
    }
}
