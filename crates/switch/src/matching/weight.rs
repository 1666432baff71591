//! Matchings of maximum weight.
//!
//! Pairs without packets to send have weight 0, so that every row can be matched; those pairs are
//! dropped afterwards.
//!
//! - If fewer than three quarters of the ports are free, only these are solved, without a previous matching:
//!   up to seven by `small`, more by an [`Assignment`] that starts with prices of 0. A column that is not
//!   matched keeps that price.
//! - Otherwise all ports are solved, as a square, and prices and pairs of the last such matching are kept.
//!   (With fewer free ports, the last matching is too old to be of use.) Any prices are valid there, since
//!   every column is matched in the end: `u` is computed anew, pairs that are no longer tight are removed,
//!   and their rows are matched again. The result has maximum weight in any case. Among several such
//!   matchings, those that keep pairs are preferred.

use crate::arbiter::Demand;
use crate::matching::assignment::Assignment;
use crate::matching::order::PortOrder;
use crate::matching::small::{MAX, Small};
use crate::matching::weights::{Block, Reader, Weight};
use crate::port_set::PortSet;

/// Finds matchings of maximum weight.
#[derive(Clone, Debug)]
pub(crate) struct MaxWeight {
    ports: usize,
    reader: Reader,
    block: Block,
    /// Solves a small block.
    small: Small,
    /// Solves a larger block.
    few: Assignment,
    /// Solves all ports, and keeps prices and pairs for the next time.
    all: Assignment,
    /// Weights of all ports, row by row.
    weights: Vec<u64>,
    /// Rows in their order.
    rows: Vec<u16>,
    /// Rows whose pair is not tight.
    left: Vec<u16>,
}

impl MaxWeight {
    /// Buffers for a switch of `ports` ports.
    pub fn new(weight: Weight, ports: usize) -> MaxWeight {
        MaxWeight {
            ports,
            reader: Reader::new(weight, ports),
            block: Block::new(ports),
            small: Small::new(),
            few: Assignment::new(ports),
            all: Assignment::new(ports),
            weights: vec![0; ports * ports],
            rows: vec![0; ports + 1],
            left: Vec::with_capacity(ports),
        }
    }

    /// Passes every pair of a matching of maximum weight to `pair`.
    #[inline]
    pub fn solve<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut PortOrder,
        mut pair: impl FnMut(usize, usize),
    ) {
        order.begin();
        // One input and one output leave no choice. In preemptive mode these are half of all calls.
        if let (Some(input), Some(output)) = (demand.inputs.only(), demand.outputs.only()) {
            if demand.of_input(input).has(output) {
                pair(input, output);
            }
            return;
        }
        if 4 * demand.inputs.count().min(demand.outputs.count()) < 3 * self.ports {
            self.solve_few(demand, order, pair);
        } else {
            self.solve_all(demand, order, pair);
        }
    }

    /// Solves the free ports only.
    fn solve_few<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut PortOrder,
        mut pair: impl FnMut(usize, usize),
    ) {
        self.reader.begin(demand);
        let (inputs, outputs) = self.block.gather(demand, order);
        match inputs.max(outputs) {
            0 => return,
            // The only pair is the maximum for any weight.
            1 => return pair(usize::from(self.block.inputs()[0]), usize::from(self.block.outputs()[0])),
            ..=MAX if self.small.solve(demand, &mut self.block, &self.reader, &mut pair) => return,
            _ => {}
        }
        let (height, width, weights) = self.block.read(demand, &self.reader);
        let few = &mut self.few;
        if height == 2 {
            let columns = two_rows(weights, width);
            few.column_of[0] = columns.0 as u16;
            few.column_of[1] = columns.1 as u16;
        } else {
            few.begin(width);
            few.scale(weights);
            (0..height).for_each(|row| few.augment(weights, row));
        }
        for row in 0..height {
            let column = usize::from(few.column_of[row]);
            if self.block.weight(row, column) > 0 {
                let (input, output) = self.block.ports(row, column);
                pair(input, output);
            }
        }
    }

    /// Solves all ports, from the last such matching on.
    fn solve_all<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut PortOrder,
        mut pair: impl FnMut(usize, usize),
    ) {
        let ports = self.ports;
        self.reader.begin(demand);
        self.weights.fill(0);
        for input in demand.inputs {
            let row = &mut self.weights[input * ports..][..ports];
            self.reader.read(demand, input, demand.of_input(input), row);
        }
        self.all.scale(&mut self.weights);
        let rows = order.list(PortSet::<W>::first(ports), &mut self.rows);
        self.all.lower();
        self.all.begin_at(order.start());
        self.all.give_up(&self.weights, &self.rows[..rows], &mut self.left);
        for row in &self.left {
            self.all.augment(&self.weights, usize::from(*row));
        }
        for input in demand.inputs {
            let output = usize::from(self.all.column_of[input]);
            if self.weights[input * ports + output] > 0 {
                pair(input, output);
            }
        }
    }
}

/// The best columns for two rows. It is enough to compare the two heaviest columns of each.
#[inline]
fn two_rows(weights: &[u64], width: usize) -> (usize, usize) {
    let (first, second) = weights.split_at(width);
    let ((best, next), (other, after)) = (two(first), two(second));
    let first_wins = first[best] + second[after] >= first[next] + second[other];
    let same = best == other;
    (if same & !first_wins { next } else { best }, if same & first_wins { after } else { other })
}

/// The two heaviest columns of a row of at least two, the heaviest first.
#[inline]
fn two(weights: &[u64]) -> (usize, usize) {
    // A key has the weight and, for ties, the position of the column, so that a maximum replaces a branch.
    let key = |column: usize| weights[column].min(1 << 53) << 10 | (1023 - column as u64);
    let (mut best, mut next) = (key(0).max(key(1)), key(0).min(key(1)));
    for column in 2..weights.len() {
        let key = key(column);
        next = next.max(best.min(key));
        best = best.max(key);
    }
    let column = |key: u64| 1023 - (key & 1023) as usize;
    (column(best), column(next))
}
