//! Matchings of maximum weight, by shortest augmenting paths over reduced weights.
//!
//! With a price `v` for each column and the best net weight `u = max(w - v)` for each row, no pair is worth more than its
//! row and column together. Pairs that are worth as much are tight, and a matching of tight pairs that misses nobody who
//! has a price is of maximum weight. A free row is matched along the path to a free column that gives up least, by
//! Dijkstra's algorithm; prices along the way rise by just so much that all of the path is tight.
//!
//! Pairs that have nothing to send weigh 0, so that every row is matched at last; those pairs are dropped.
//!
//! - Where few ports are free, only these are solved, from nothing: prices begin with 0, and a column that is not matched
//!   keeps that price.
//! - Where at least half of them are free, all ports are, as a square, and prices and pairs of the last time are kept. Any
//!   prices will do there, since every column is matched at last: `u` is computed anew, pairs that are not tight any more
//!   are given up, and their rows are matched again. The weight is that of a maximum in any case. Among several of them
//!   those are preferred that keep pairs.
//!
//! R. Jonker, A. Volgenant, A Shortest Augmenting Path Algorithm for Dense and Sparse Linear Assignment Problems,
//! Computing 38, 1987.

use crate::arbiter::Demand;
use crate::matching::order::Order;
use crate::matching::weights::{Block, Reader, Weight};
use crate::row::Row;

/// Nobody.
const NOBODY: u16 = u16::MAX;
/// Farther than any column is.
const FAR: i64 = i64::MAX / 4;
/// The price of a column that has been reached: with it, the column is never nearer than `FAR`.
const REACHED: i64 = i64::MAX / 2;
/// Prices beyond this are all lowered; they differ by no more than the largest weight.
const HIGH: i64 = 1 << 48;

/// Finds matchings of maximum weight.
#[derive(Clone, Debug)]
pub(crate) struct MaxWeight {
    ports: usize,
    reader: Reader,
    block: Block,
    /// For the block.
    few: Assignment,
    /// For all ports, from time to time.
    all: Assignment,
    /// All weights, row by row.
    weights: Vec<u64>,
    /// Rows in their order.
    rows: Vec<u16>,
    /// Rows whose pair is not tight.
    left: Vec<u16>,
}

impl MaxWeight {
    pub fn new(weight: Weight, ports: usize) -> MaxWeight {
        MaxWeight {
            ports,
            reader: Reader::new(weight, ports),
            block: Block::new(ports),
            few: Assignment::new(ports),
            all: Assignment::new(ports),
            weights: vec![0; ports * ports],
            rows: Vec::with_capacity(ports),
            left: Vec::with_capacity(ports),
        }
    }

    /// Calls `pair` for every pair of a matching of maximum weight.
    #[inline]
    pub fn solve<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut Order,
        pair: impl FnMut(usize, usize),
    ) {
        order.begin();
        if 2 * demand.inputs.count().min(demand.outputs.count()) < self.ports {
            self.solve_few(demand, order, pair);
        } else {
            self.solve_all(demand, order, pair);
        }
    }

    fn solve_few<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut Order,
        mut pair: impl FnMut(usize, usize),
    ) {
        self.block.read(demand, &mut self.reader, order);
        let Block { rows, columns, weights, .. } = &self.block;
        let mut take = |row: usize, column: usize| {
            if weights[row * columns.len() + column] > 0 {
                let (input, output) = self.block.ports(row, column);
                pair(input, output);
            }
        };
        match (rows.len(), columns.len()) {
            (0, _) => {}
            (1, _) => {
                // The first of the heaviest.
                let heaviest = (1..weights.len()).fold(0, |a, b| if weights[b] > weights[a] { b } else { a });
                take(0, heaviest);
            }
            (2, 2) => {
                let crossed = usize::from(weights[1] + weights[2] > weights[0] + weights[3]);
                take(0, crossed);
                take(1, 1 - crossed);
            }
            (height, width) => {
                self.few.begin(width);
                (0..height).for_each(|row| self.few.augment(weights, row, 0));
                (0..height).for_each(|row| take(row, usize::from(self.few.column_of[row])));
            }
        }
    }

    fn solve_all<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut Order,
        mut pair: impl FnMut(usize, usize),
    ) {
        let ports = self.ports;
        self.reader.begin(demand);
        self.weights.fill(0);
        for input in demand.inputs {
            let row = &mut self.weights[input * ports..][..ports];
            self.reader.read(demand, input, demand.of_input(input), row);
        }
        order.list(Row::<W>::first(ports), &mut self.rows);
        self.all.give_up(&self.weights, &self.rows, &mut self.left);
        let first = order.start();
        for row in &self.left {
            self.all.augment(&self.weights, usize::from(*row), first);
        }
        for input in demand.inputs {
            let output = usize::from(self.all.column_of[input]);
            if self.weights[input * ports + output] > 0 {
                pair(input, output);
            }
        }
    }
}

/// Who is matched with whom, and at which price.
#[derive(Clone, Debug)]
struct Assignment {
    width: usize,
    /// By column: its price.
    prices: Vec<i64>,
    /// By column: its row.
    row_of: Vec<u16>,
    /// By row: its column.
    column_of: Vec<u16>,
    /// By column, in a search: its price, or `REACHED`.
    open: Vec<i64>,
    /// By column, in a search: what the nearest way to it gives up. Those that are reached are `FAR`.
    distance: Vec<i64>,
    /// By column, in a search: the row from which that way comes.
    reached_from: Vec<u16>,
    /// Columns that are reached, and what the way to them gives up.
    reached: Vec<(u16, i64)>,
}

impl Assignment {
    fn new(ports: usize) -> Assignment {
        Assignment {
            width: ports,
            prices: vec![0; ports],
            row_of: vec![NOBODY; ports],
            column_of: vec![NOBODY; ports],
            open: vec![0; ports],
            distance: vec![FAR; ports],
            reached_from: vec![NOBODY; ports],
            reached: Vec::with_capacity(ports),
        }
    }

    /// Forgets all, for so many columns.
    #[inline]
    fn begin(&mut self, width: usize) {
        self.width = width;
        self.prices[..width].fill(0);
        self.row_of[..width].fill(NOBODY);
    }

    /// Gives up all pairs that are not tight, and says whose these were.
    fn give_up(&mut self, weights: &[u64], rows: &[u16], left: &mut Vec<u16>) {
        let too_high = if self.prices[0].abs() > HIGH { self.prices[0] } else { 0 };
        self.prices.iter_mut().for_each(|price| *price -= too_high);
        left.clear();
        for &row in rows {
            let at = usize::from(row);
            let weights = &weights[at * self.width..][..self.width];
            let net = |(weight, price): (&u64, &i64)| *weight as i64 - price;
            let best = weights.iter().zip(&self.prices).map(net).fold(i64::MIN, i64::max);
            let column = self.column_of[at];
            if column != NOBODY {
                let column = usize::from(column);
                if net((&weights[column], &self.prices[column])) == best {
                    continue;
                }
                self.row_of[column] = NOBODY;
            }
            left.push(row);
        }
    }

    /// Matches a free row. Of columns that are as near, the first free one from `first` on is taken.
    #[inline]
    fn augment(&mut self, weights: &[u64], root: usize, first: usize) {
        let width = self.width;
        self.open[..width].copy_from_slice(&self.prices[..width]);
        self.distance[..width].fill(FAR);
        self.reached.clear();
        let (mut row, mut offset) = (root, 0);
        let (end, distance) = loop {
            let nearest = self.look(&weights[row * width..][..width], row, offset, first);
            let (column, distance) = (nearest, self.distance[nearest]);
            if self.row_of[column] == NOBODY {
                break (column, distance);
            }
            self.reached.push((column as u16, distance));
            self.open[column] = REACHED;
            self.distance[column] = FAR;
            row = usize::from(self.row_of[column]);
            offset = distance + weights[row * width + column] as i64 - self.prices[column];
        };
        for (column, before) in &self.reached {
            self.prices[usize::from(*column)] += distance - before;
        }
        let mut column = end;
        loop {
            let row = self.reached_from[column];
            self.row_of[column] = row;
            let before = std::mem::replace(&mut self.column_of[usize::from(row)], column as u16);
            if usize::from(row) == root {
                return;
            }
            column = usize::from(before);
        }
    }

    /// Ways through a row; the nearest column then.
    #[inline]
    fn look(&mut self, weights: &[u64], row: usize, offset: i64, first: usize) -> usize {
        let width = self.width;
        let (open, row_of) = (&self.open[..width], &self.row_of[..width]);
        let (distance, reached_from) = (&mut self.distance[..width], &mut self.reached_from[..width]);
        let (mut nearest, mut least) = (0, i64::MAX);
        let mut part = |columns: std::ops::Range<usize>| {
            for column in columns {
                let through = open[column] - weights[column] as i64 + offset;
                let nearer = through < distance[column];
                let now = if nearer { through } else { distance[column] };
                distance[column] = now;
                reached_from[column] = if nearer { row as u16 } else { reached_from[column] };
                // Free columns before matched ones that are as near.
                let rank = 2 * now + i64::from(row_of[column] != NOBODY);
                nearest = if rank < least { column } else { nearest };
                least = least.min(rank);
            }
        };
        part(first..width);
        part(0..first);
        nearest
    }
}
