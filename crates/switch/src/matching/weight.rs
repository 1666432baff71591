//! Matchings of maximum weight, by shortest augmenting paths over reduced weights.
//!
//! With a price `v` for each column and the best net weight `u = max(w - v)` for each row, no pair is worth more than its
//! row and column together. Pairs that are worth as much are tight, and a matching of tight pairs that misses no row, and no
//! column that has a price, is of maximum weight. A free row is matched along the path to a free column that gives up least, by
//! Dijkstra's algorithm; prices along the way rise by just so much that all of the path is tight.
//!
//! Pairs that have nothing to send weigh 0, so that every row is matched at last; those pairs are dropped.
//!
//! - Where few ports are free, only these are solved, from nothing. Up to seven are in `small`; where more are, prices
//!   begin with 0, and a column that is not matched keeps that price.
//! - Where at least three quarters of them are free, all ports are, as a square, and prices and pairs of the last time are
//!   kept: where fewer are, the last time is too long ago to be of use. Any prices will do there, since every column is matched at last: `u` is computed anew, pairs that are not tight any more
//!   are given up, and their rows are matched again. The weight is that of a maximum in any case. Among several of them
//!   those are preferred that keep pairs.
//!
//! R. Jonker, A. Volgenant, A Shortest Augmenting Path Algorithm for Dense and Sparse Linear Assignment Problems,
//! Computing 38, 1987.

use crate::arbiter::Demand;
use crate::matching::order::Order;
use crate::matching::small::{MOST, Small};
use crate::matching::weights::{Block, Reader, Weight};
use crate::row::Row;

/// Nobody.
const NOBODY: u16 = u16::MAX;
/// The key of a column that has been reached: no other is as far.
const FAR: i64 = i64::MAX / 4;
/// The price of a column that has been reached: with it, whatever is added, the column is never nearer than `FAR`.
const REACHED: i64 = i64::MAX / 2;
/// Columns that are looked at side by side, so that none waits for the one before.
const LANES: usize = 4;

/// Finds matchings of maximum weight.
#[derive(Clone, Debug)]
pub(crate) struct MaxWeight {
    ports: usize,
    reader: Reader,
    block: Block,
    /// For the block, where it is small.
    small: Small,
    /// For the block, where it is not.
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
            small: Small::new(),
            few: Assignment::new(ports),
            all: Assignment::new(ports),
            weights: vec![0; ports * ports],
            rows: vec![0; ports + 1],
            left: Vec::with_capacity(ports),
        }
    }

    /// Calls `pair` for every pair of a matching of maximum weight.
    #[inline]
    pub fn solve<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut Order,
        mut pair: impl FnMut(usize, usize),
    ) {
        order.begin();
        // One of each: there is no choice. That is half of all where short packets interrupt.
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

    fn solve_few<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut Order,
        mut pair: impl FnMut(usize, usize),
    ) {
        self.reader.begin(demand);
        let (inputs, outputs) = self.block.gather(demand, order);
        match inputs.max(outputs) {
            0 => return,
            // Whatever that is worth.
            1 => return pair(usize::from(self.block.inputs()[0]), usize::from(self.block.outputs()[0])),
            ..=MOST if self.small.solve(demand, &mut self.block, &self.reader, &mut pair) => return,
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
        self.all.scale(&mut self.weights);
        let rows = order.list(Row::<W>::first(ports), &mut self.rows);
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

/// Who is matched with whom, and at which price.
///
/// All that is compared in a search is one number, its key: how much is given up, and below that, for ties, whether the
/// column is matched, from which row it is reached, and where it stands in the order of columns. Prices have the last and
/// the first of these, weights none, offsets the row: so one addition makes a key, and the least one says all.
#[derive(Clone, Debug)]
struct Assignment {
    width: usize,
    /// Bits of a row or of a column in a key.
    bits: u32,
    /// The column that stands first.
    first: usize,
    /// By column: its price, as a key with the row left out; `REACHED` if it is, in a search.
    prices: Vec<i64>,
    /// By column: its row.
    row_of: Vec<u16>,
    /// By row: its column.
    column_of: Vec<u16>,
    /// By column, in a search: the nearest way to it, as a key; `FAR` if it is reached.
    nearest: Vec<i64>,
    /// By column that is reached, in a search: the row from which that way comes.
    reached_from: Vec<u16>,
    /// Columns that are reached, with their price and the nearest way.
    reached: Vec<(u16, i64, i64)>,
}

impl Assignment {
    fn new(ports: usize) -> Assignment {
        let mut new = Assignment {
            width: ports,
            bits: usize::BITS - (ports - 1).leading_zeros(),
            first: 0,
            prices: vec![0; ports],
            row_of: vec![NOBODY; ports],
            column_of: vec![NOBODY; ports],
            nearest: vec![FAR; ports],
            reached_from: vec![NOBODY; ports],
            reached: Vec::with_capacity(ports),
        };
        new.begin(ports);
        new
    }

    /// Forgets all, for so many columns.
    #[inline]
    fn begin(&mut self, width: usize) {
        self.width = width;
        for column in 0..width {
            self.prices[column] = column as i64;
            self.row_of[column] = NOBODY;
        }
    }

    /// How far what is given up is above the rest of a key.
    #[inline]
    fn shift(&self) -> u32 {
        2 * self.bits + 1
    }
    /// What is given up, of a key.
    #[inline]
    fn given_up(&self, key: i64) -> i64 {
        key >> self.shift() << self.shift()
    }
    /// Says that a column is matched, of a key.
    #[inline]
    fn matched(&self) -> i64 {
        1 << (2 * self.bits)
    }
    /// The row of a key.
    #[inline]
    fn row(&self, key: i64) -> usize {
        (key >> self.bits) as usize & ((1 << self.bits) - 1)
    }
    /// The column of a key.
    #[inline]
    fn column(&self, key: i64) -> usize {
        let column = (key as usize & ((1 << self.bits) - 1)) + self.first;
        if column >= self.width { column - self.width } else { column }
    }

    /// Makes weights what can be taken from keys. There is room in a key for eight times the largest, which are 2^47 with
    /// 16 ports and 2^35 with 1024; there is no switch in which so many cells wait or so many slots pass. What weighs
    /// more, weighs as much.
    #[inline]
    fn scale(&self, weights: &mut [u64]) {
        let most = 1 << (56 - self.shift());
        if weights.iter().fold(0, |a, b| a | b) > most {
            weights.iter_mut().for_each(|weight| *weight = (*weight).min(most));
        }
        let shift = self.shift();
        weights.iter_mut().for_each(|weight| *weight <<= shift);
    }

    /// Lowers all prices, which differ by no more than the largest weight, when they have become high.
    fn lower(&mut self) {
        let price = self.given_up(self.prices[0]);
        if price.abs() > 1 << 57 {
            self.prices.iter_mut().for_each(|other| *other -= price);
        }
    }

    /// Which column stands first.
    fn begin_at(&mut self, first: usize) {
        let mask = (1 << self.bits) - 1;
        for column in 0..self.width {
            let place = if column >= first { column - first } else { column + self.width - first };
            self.prices[column] = self.prices[column] & !mask | place as i64;
        }
        self.first = first;
    }

    /// Gives up all pairs that are not tight, and says whose these were.
    fn give_up(&mut self, weights: &[u64], rows: &[u16], left: &mut Vec<u16>) {
        left.clear();
        for &row in rows {
            let column = self.column_of[usize::from(row)];
            if column != NOBODY {
                let column = usize::from(column);
                let weights = &weights[usize::from(row) * self.width..][..self.width];
                let own = self.prices[column] - weights[column] as i64;
                let best = self.best(weights);
                if self.given_up(own) == self.given_up(best) {
                    continue;
                }
                self.row_of[column] = NOBODY;
                self.prices[column] -= self.matched();
            }
            left.push(row);
        }
    }

    /// The nearest way from a row to a column, as a key with the row left out.
    #[inline]
    fn best(&self, weights: &[u64]) -> i64 {
        let key = |price: i64, weight: u64| price - weight as i64;
        let (weights, more_weights) = weights.as_chunks::<LANES>();
        let (prices, more_prices) = self.prices[..self.width].as_chunks::<LANES>();
        let mut all = [FAR; LANES];
        for (prices, weights) in prices.iter().zip(weights) {
            for lane in 0..LANES {
                all[lane] = least(all[lane], key(prices[lane], weights[lane]));
            }
        }
        for ((all, price), weight) in all.iter_mut().zip(more_prices).zip(more_weights) {
            *all = least(*all, key(*price, *weight));
        }
        all.into_iter().fold(FAR, least)
    }

    /// Matches a free row, along the path to a free column that gives up least.
    #[inline]
    fn augment(&mut self, weights: &[u64], root: usize) {
        let key = self.look_first(&weights[root * self.width..][..self.width], (root as i64) << self.bits);
        if key & self.matched() == 0 {
            let column = self.column(key);
            self.row_of[column] = root as u16;
            self.column_of[root] = column as u16;
            self.prices[column] += self.matched();
        } else {
            self.search(weights, root, key);
        }
    }

    /// The same where the nearest column is matched.
    fn search(&mut self, weights: &[u64], root: usize, mut key: i64) {
        let width = self.width;
        self.reached.clear();
        let end = loop {
            let column = self.column(key);
            self.reached_from[column] = self.row(key) as u16;
            if key & self.matched() == 0 {
                break key;
            }
            let price = self.prices[column];
            self.reached.push((column as u16, price, key));
            self.prices[column] = REACHED;
            self.nearest[column] = FAR;
            let row = usize::from(self.row_of[column]);
            let weights = &weights[row * width..][..width];
            // The pair of this row is tight: the row is as far as its column.
            let offset = self.given_up(key) - self.given_up(price) + weights[column] as i64;
            key = self.look(weights, offset + ((row as i64) << self.bits));
        };
        for (column, price, key) in &self.reached {
            self.prices[usize::from(*column)] = price + self.given_up(end) - self.given_up(*key);
        }
        let mut column = self.column(end);
        self.prices[column] += self.matched();
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

    /// Ways from a free row, which are the nearest until now; the nearest one to any column then.
    #[inline]
    fn look_first(&mut self, weights: &[u64], offset: i64) -> i64 {
        let ways = self.prices[..weights.len()].iter().zip(weights);
        for (nearest, (price, weight)) in self.nearest.iter_mut().zip(ways) {
            *nearest = price + (offset - *weight as i64);
        }
        let (nearest, more) = self.nearest[..weights.len()].as_chunks::<LANES>();
        let mut all = [FAR; LANES];
        for nearest in nearest {
            for lane in 0..LANES {
                all[lane] = least(all[lane], nearest[lane]);
            }
        }
        more.iter().chain(&all).copied().fold(FAR, least)
    }

    /// Ways through a row that is as far as `offset` says; the nearest one to any column then.
    #[inline]
    fn look(&mut self, weights: &[u64], offset: i64) -> i64 {
        let key = |price: i64, weight: u64| price + (offset - weight as i64);
        let (weights, more_weights) = weights.as_chunks::<LANES>();
        let (prices, more_prices) = self.prices[..self.width].as_chunks::<LANES>();
        let (nearest, more_nearest) = self.nearest[..self.width].as_chunks_mut::<LANES>();
        let mut all = [FAR; LANES];
        for ((nearest, prices), weights) in nearest.iter_mut().zip(prices).zip(weights) {
            for lane in 0..LANES {
                nearest[lane] = least(nearest[lane], key(prices[lane], weights[lane]));
                all[lane] = least(all[lane], nearest[lane]);
            }
        }
        let more = more_nearest.iter_mut().zip(more_prices).zip(more_weights);
        for (((nearest, price), weight), all) in more.zip(&mut all) {
            *nearest = least(*nearest, key(*price, *weight));
            *all = least(*all, *nearest);
        }
        all.into_iter().fold(FAR, least)
    }
}

/// The best columns for two rows. One of the two heaviest columns of each is always as good as any other.
#[inline]
fn two_rows(weights: &[u64], width: usize) -> (usize, usize) {
    let (first, second) = weights.split_at(width);
    let ((best, next), (other, after)) = (two(first), two(second));
    let first_wins = first[best] + second[after] >= first[next] + second[other];
    let same = best == other;
    (if same & !first_wins { next } else { best }, if same & first_wins { after } else { other })
}

/// The first of the two heaviest columns of a row, which has two at least, and the second.
#[inline]
fn two(weights: &[u64]) -> (usize, usize) {
    // One number says the weight and, for ties, how early the column comes; so there is a maximum instead of a jump.
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

/// The lesser of two numbers that differ by less than 2^63, without a comparison: processors of which nothing is asked
/// compare no words of 64 bits in vector registers, and what `min` becomes there takes four times as long.
#[inline(always)]
fn least(a: i64, b: i64) -> i64 {
    let difference = a - b;
    b + (difference & (difference >> 63))
}
