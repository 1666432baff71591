//! The greedy matching: the heaviest pair first, then the heaviest pair of the remaining ports, and so on.
//! Its weight is at least half of the maximum, and no pair can be added to it.
//!
//! D. Avis, A Survey of Heuristics for the Weighted Matching Problem, Networks 13, 1983.

use crate::arbiter::Demand;
use crate::matching::order::PortOrder;
use crate::matching::weights::{Block, Reader, Weight};

/// Finds greedy matchings.
#[derive(Clone, Debug)]
pub(crate) struct Greedy {
    reader: Reader,
    block: Block,
    /// By row: the weight of its heaviest free column, 0 when there is none, and that column.
    best: Vec<(u64, u16)>,
    /// By column: all bits set while it is free, then 0. Used as a mask on weights.
    free: Vec<u64>,
}

impl Greedy {
    /// Buffers for a switch of `ports` ports.
    pub fn new(weight: Weight, ports: usize) -> Greedy {
        Greedy {
            reader: Reader::new(weight, ports),
            block: Block::new(ports),
            best: Vec::with_capacity(ports),
            free: Vec::with_capacity(ports),
        }
    }

    /// Passes every pair of a greedy matching to `pair`, the heaviest first.
    #[inline]
    pub fn solve<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut PortOrder,
        mut pair: impl FnMut(usize, usize),
    ) {
        order.begin();
        self.reader.begin(demand);
        if self.block.gather(demand, order) == (0, 0) {
            return;
        }
        let (_, width, weights) = self.block.read(demand, &self.reader);
        self.free.clear();
        self.free.resize(width, u64::MAX);
        self.best.clear();
        for weights in weights.chunks_exact(width) {
            self.best.push(best(weights, &self.free));
        }
        // Of pairs with the same weight, the first in the order of rows, then of columns.
        while let Some((row, (weight, column))) =
            self.best.iter().copied().enumerate().reduce(|a, b| if b.1.0 > a.1.0 { b } else { a })
            && weight > 0
        {
            let (input, output) = self.block.ports(row, usize::from(column));
            pair(input, output);
            self.free[usize::from(column)] = 0;
            self.best[row].0 = 0;
            for (best_of, weights) in self.best.iter_mut().zip(self.block.rows()) {
                if best_of.1 == column && best_of.0 > 0 {
                    *best_of = best(weights, &self.free);
                }
            }
        }
    }
}

/// The heaviest free column of a row, with its weight.
#[inline]
fn best(weights: &[u64], free: &[u64]) -> (u64, u16) {
    let (mut most, mut best) = (0, 0);
    for (column, (weight, free)) in weights.iter().zip(free).enumerate() {
        let weight = weight & free;
        best = if weight > most { column as u16 } else { best };
        most = most.max(weight);
    }
    (most, best)
}
