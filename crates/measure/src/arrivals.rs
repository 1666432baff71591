//! One-way delays over time of the packets that cross measured ports.

use std::collections::BTreeMap;

use giveway_qdisc::{PortId, Span, Time};

use crate::layout::{Layout, PortsOnRoute};
use crate::series::Series;

/// Packets at their receivers: for each measured port those that crossed it, by source and stretch of time.
#[derive(Clone)]
pub(crate) struct Arrivals {
    measured: Vec<PortId>,
    crossed: Option<PortsOnRoute>,
    pairs: Pairs,
    /// Sets of measured ports, as their places in `series`. Each pair of nodes carries the number of its set.
    sets: Vec<Vec<usize>>,
    numbers: BTreeMap<Vec<usize>, u32>,
    /// The series of each measured port.
    series: Vec<Series>,
}

impl Arrivals {
    pub(crate) fn new(layout: &Layout) -> Arrivals {
        Arrivals {
            measured: layout.measured.clone(),
            crossed: layout.crossed.clone(),
            pairs: Pairs::default(),
            sets: Vec::new(),
            numbers: BTreeMap::new(),
            series: vec![Series::new(layout); layout.measured.len()],
        }
    }

    /// Counts a packet at its receiver, at each measured port that packets between this pair of nodes cross.
    #[inline]
    pub(crate) fn count(&mut self, pair: (u16, u16), source: u16, bytes: u32, delay: Span, now: Time) {
        let set = match self.pairs.find(pair) {
            Some(set) => set,
            None => self.add(pair),
        };
        for port in &self.sets[set as usize] {
            self.series[*port].count(source, bytes, delay, now);
        }
    }

    /// Finds the measured ports of a pair at its first packet.
    #[cold]
    fn add(&mut self, pair: (u16, u16)) -> u32 {
        let places = 0..self.measured.len();
        let set: Vec<usize> = match &self.crossed {
            None => places.collect(),
            Some(crossed) => {
                let ports = crossed.of(&[pair]).concat();
                places.filter(|place| ports.contains(&self.measured[*place])).collect()
            }
        };
        let next = self.sets.len() as u32;
        let number = *self.numbers.entry(set.clone()).or_insert(next);
        if number == next {
            self.sets.push(set);
        }
        self.pairs.insert(pair, number);
        number
    }

    /// Adds the packets of another part of the run.
    pub(crate) fn join(&mut self, other: Arrivals) {
        self.series.iter_mut().zip(other.series).for_each(|(own, theirs)| own.join(theirs));
    }

    /// Sets the end of the measurement interval if the run ended earlier than planned.
    pub(crate) fn ends(&mut self, until: Time) {
        self.series.iter_mut().for_each(|series| series.ends(until));
    }

    /// The series of the measured ports, in their order.
    pub(crate) fn series(&self) -> &[Series] {
        &self.series
    }
}

/// A number for each pair of nodes: a hash table with open addressing, at most half full.
#[derive(Clone)]
struct Pairs {
    /// The pair and its number; [`FREE`] in a free place. The length is a power of two.
    places: Vec<(u32, u32)>,
    used: usize,
}

const FREE: u32 = u32::MAX;

impl Default for Pairs {
    fn default() -> Pairs {
        Pairs { places: vec![(0, FREE); 16], used: 0 }
    }
}

impl Pairs {
    #[inline]
    fn find(&self, pair: (u16, u16)) -> Option<u32> {
        let (known, number) = self.places[self.place(key(pair))];
        (known == key(pair) && number != FREE).then_some(number)
    }

    /// The place of a key, or the free place where it belongs.
    #[inline]
    fn place(&self, key: u32) -> usize {
        let last = self.places.len() - 1;
        // The factor is 2^64 divided by the golden ratio: D. Knuth, The Art of Computer Programming 3, 6.4.
        // Only the upper half of the product depends on all bits of the key.
        let mut at = (u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & last;
        while self.places[at].1 != FREE && self.places[at].0 != key {
            at = (at + 1) & last;
        }
        at
    }

    fn insert(&mut self, pair: (u16, u16), number: u32) {
        if 2 * (self.used + 1) > self.places.len() {
            let longer = vec![(0, FREE); 2 * self.places.len()];
            for (key, number) in std::mem::replace(&mut self.places, longer) {
                if number != FREE {
                    let at = self.place(key);
                    self.places[at] = (key, number);
                }
            }
        }
        let at = self.place(key(pair));
        self.used += usize::from(self.places[at].1 == FREE);
        self.places[at] = (key(pair), number);
    }
}

#[inline]
fn key((from, to): (u16, u16)) -> u32 {
    u32::from(from) << 16 | u32::from(to)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_pair_keeps_its_number() {
        let mut pairs = Pairs::default();
        let all = (0..60_u16).flat_map(|from| (0..60_u16).map(move |to| (from * 1_000, to)));
        for (number, pair) in (0..).zip(all.clone()) {
            assert_eq!(pairs.find(pair), None);
            pairs.insert(pair, number);
        }
        assert!((0..).zip(all).all(|(number, pair)| pairs.find(pair) == Some(number)));
        assert_eq!((pairs.used, pairs.places.len()), (3_600, 8_192));
        assert_eq!(pairs.find((u16::MAX, u16::MAX)), None);
    }

    /// Packets to node 7 cross both ports, those to node 8 the second one, and those to node 9 none.
    #[test]
    fn packets_count_at_the_ports_that_they_cross() {
        let routes = |pairs: &[(u16, u16)]| {
            let ports = |to| match to {
                7 => vec![PortId(2), PortId(5)],
                8 => vec![PortId(2)],
                _ => vec![],
            };
            pairs.iter().map(|(_, to)| ports(*to)).collect()
        };
        let layout = Layout {
            measured: vec![PortId(5), PortId(2)],
            crossed: Some(PortsOnRoute::new(Arc::new(routes))),
            until: Time::s(1),
            ..Layout::default()
        };
        let mut arrivals = Arrivals::new(&layout);
        for (number, to) in [7, 8, 9, 7, 8, 8].into_iter().enumerate() {
            arrivals.count((1, to), 0, 100, Span::ms(5), Time::ms(number as u64));
        }
        let packets = |series: &Series| series.of(0, 0).packets;
        assert_eq!(arrivals.series().iter().map(packets).collect::<Vec<_>>(), [2, 5]);
        // Without routes, every packet counts at every port.
        let mut everywhere = Arrivals::new(&Layout { crossed: None, ..layout });
        everywhere.count((1, 9), 0, 100, Span::ms(5), Time::ZERO);
        assert_eq!(everywhere.series().iter().map(packets).collect::<Vec<_>>(), [1, 1]);
    }
}
