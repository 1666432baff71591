//! In which order ports are considered, which decides between answers that are equally good.

use qdisc::{Rng, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::row::Row;

/// Which of several equally good matchings is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// Ports in a random order, drawn anew each time.
    #[default]
    Random,
    /// Ports from one on that moves on by one each time, around.
    Rotating,
    /// Lower ports first.
    Fixed,
}

/// Random numbers for choices among a few, several of them from one word.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    rng: Rng,
    /// A fraction of 2^64, of which the choices so far have used up the upper part.
    fraction: u64,
    /// Bits of it that are still random.
    bits: u32,
}

/// Bits that must be left after a choice: no odds are off by more than 2^-24 of themselves.
const SPARE: u32 = 24;

impl Dice {
    pub fn new(rng: Rng) -> Dice {
        Dice { rng, fraction: 0, bits: 0 }
    }

    /// Uniform in 0..n; `n` is 1 to 1024.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        let used = usize::BITS - n.leading_zeros();
        if self.bits < used + SPARE {
            self.fraction = self.rng.word();
            self.bits = u64::BITS;
        }
        self.bits -= used;
        let product = u128::from(self.fraction) * n as u128;
        self.fraction = product as u64;
        (product >> 64) as usize
    }
}

/// The order in which a matching takes its ports.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    ties: Ties,
    dice: Dice,
    ports: usize,
    /// Where the order begins, unless it is random.
    first: usize,
}

impl Order {
    pub fn new(ties: Ties, ports: usize, streams: &Streams) -> Order {
        Order { ties, dice: Dice::new(streams.rng()), ports, first: 0 }
    }

    /// A new matching begins.
    #[inline]
    pub fn begin(&mut self) {
        if self.ties == Ties::Rotating {
            self.first = if self.first + 1 == self.ports { 0 } else { self.first + 1 };
        }
    }

    /// The ports of a row in their order.
    #[inline]
    pub fn list<const W: usize>(&mut self, row: Row<W>, into: &mut Vec<u16>) {
        into.clear();
        match self.ties {
            Ties::Fixed => into.extend(row.iter().map(|port| port as u16)),
            Ties::Random => {
                into.extend(row.iter().map(|port| port as u16));
                self.shuffle(into);
            }
            Ties::Rotating => {
                let below = Row::first(self.first);
                into.extend((row & !below).iter().map(|port| port as u16));
                into.extend((row & below).iter().map(|port| port as u16));
            }
        }
    }

    /// Puts ports into a random order, if that is wanted.
    #[inline]
    pub fn shuffle(&mut self, ports: &mut [u16]) {
        if self.ties == Ties::Random {
            for left in (1..ports.len()).rev() {
                ports.swap(left, self.dice.below(left + 1));
            }
        }
    }

    /// The port of a row that comes first.
    #[inline]
    pub fn pick<const W: usize>(&mut self, row: Row<W>) -> Option<usize> {
        match self.ties {
            Ties::Random => match row.only() {
                None if row.is_empty() => None,
                None => row.nth(self.dice.below(row.count())),
                only => only,
            },
            Ties::Rotating | Ties::Fixed => row.from(self.first),
        }
    }

    /// Where to begin when all ports are gone through, from one on upwards and around: a random port, or the first.
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
    fn every_order_of_four_ports_is_as_likely() {
        let mut order = Order::new(Ties::Random, 64, &Streams::new(1));
        let row: Row<1> = [3, 17, 40, 63].into_iter().collect();
        let mut seen = std::collections::BTreeMap::<Vec<u16>, u32>::new();
        let mut ports = Vec::new();
        let n = 240_000;
        for _ in 0..n {
            order.list(row, &mut ports);
            *seen.entry(ports.clone()).or_default() += 1;
        }
        assert_eq!(seen.len(), 24);
        for (ports, times) in seen {
            // 10000 each; four standard deviations.
            assert!((9608..=10392).contains(&times), "{ports:?} came {times} times");
        }
    }

    #[test]
    fn picks_are_as_likely() {
        let mut order = Order::new(Ties::Random, 16, &Streams::new(2));
        let row: Row<1> = [0, 5, 15].into_iter().collect();
        let mut seen = [0; 16];
        (0..90_000).for_each(|_| seen[order.pick(row).unwrap()] += 1);
        assert_eq!(seen.iter().filter(|times| **times > 0).count(), 3);
        for port in row {
            // 30000 each; four standard deviations are 566.
            assert!((29_434..=30_566).contains(&seen[port]), "{port} came {} times", seen[port]);
        }
        assert_eq!(order.pick(Row::<1>::EMPTY), None);
    }

    #[test]
    fn a_rotating_order_moves_by_one() {
        let mut order = Order::new(Ties::Rotating, 3, &Streams::new(1));
        let mut ports = Vec::new();
        let mut lists = Vec::new();
        for _ in 0..4 {
            order.begin();
            order.list(Row::<1>::first(3), &mut ports);
            assert_eq!(order.pick(Row::<1>::first(3)), Some(usize::from(ports[0])));
            lists.push(ports.clone());
        }
        assert_eq!(lists, [[1, 2, 0], [2, 0, 1], [0, 1, 2], [1, 2, 0]]);
    }
}
