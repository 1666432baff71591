//! The assignment problem by shortest augmenting paths over reduced weights.
//!
//! Each column has a price `v`, and each row the best net weight `u = max(w - v)`, so no pair has a weight
//! above the sum of its `u` and `v`. Pairs that reach the sum are tight. A matching of tight pairs that
//! covers every row, and every column with a price, has maximum weight. A free row is matched along the path
//! to a free column with the least loss, by Dijkstra's algorithm, where the loss of a pair is `u + v - w`.
//! Prices along the path then rise so that all of it is tight.
//!
//! R. Jonker, A. Volgenant, A Shortest Augmenting Path Algorithm for Dense and Sparse Linear Assignment
//! Problems, Computing 38, 1987.

/// No row or column.
const NONE: u16 = u16::MAX;
/// The key of a column that has been reached; all others are nearer.
const FAR: i64 = i64::MAX / 4;
/// The price of a column that has been reached; no sum with it is below `FAR`.
const REACHED: i64 = i64::MAX / 2;
/// Columns that are handled in parallel, so that no operation depends on the result of another.
const LANES: usize = 4;

/// A matching of rows with columns, and the prices of the columns.
///
/// A search compares one number for each column, its key. From the high bits down it has the loss of the path
/// and, for ties, a bit that is set if the column is matched, the row from which the path reaches it, and its
/// position in the order of columns. Prices carry loss, bit and position, weights only the loss, and offsets
/// the row, so that one addition makes a key and the smallest key names the column.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    /// Number of columns.
    width: usize,
    /// Bits of a row or of a column in a key.
    bits: u32,
    /// The column that is first in the order.
    first: usize,
    /// By column: its price, as a key without a row; `REACHED` for reached columns during a search.
    prices: Vec<i64>,
    /// By column: the row that it is matched with.
    row_of: Vec<u16>,
    /// By row: the column that it is matched with.
    pub column_of: Vec<u16>,
    /// By column, during a search: the key of the shortest path to it; `FAR` for reached columns.
    nearest: Vec<i64>,
    /// By reached column: the row from which the shortest path reaches it.
    reached_from: Vec<u16>,
    /// Reached columns, with their price and the key of the shortest path.
    reached: Vec<(u16, i64, i64)>,
}

impl Assignment {
    /// An assignment of `ports` columns, without pairs.
    pub fn new(ports: usize) -> Assignment {
        let mut new = Assignment {
            width: ports,
            bits: usize::BITS - (ports - 1).leading_zeros(),
            first: 0,
            prices: vec![0; ports],
            row_of: vec![NONE; ports],
            column_of: vec![NONE; ports],
            nearest: vec![FAR; ports],
            reached_from: vec![NONE; ports],
            reached: Vec::with_capacity(ports),
        };
        new.begin(ports);
        new
    }

    /// Starts without pairs and prices, with `width` columns.
    #[inline]
    pub fn begin(&mut self, width: usize) {
        self.width = width;
        for column in 0..width {
            self.prices[column] = column as i64;
            self.row_of[column] = NONE;
        }
    }

    /// Lowest bit of the loss in a key.
    #[inline]
    fn shift(&self) -> u32 {
        2 * self.bits + 1
    }
    /// The loss of a key.
    #[inline]
    fn loss(&self, key: i64) -> i64 {
        key >> self.shift() << self.shift()
    }
    /// The bit of a key that is set for matched columns.
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

    /// Scales weights so that they can be subtracted from keys. Larger weights than 2^47 with 16 ports, or
    /// 2^35 with 1024, are reduced to that; queues and runs are shorter. A key has room for eight times as
    /// much.
    #[inline]
    pub fn scale(&self, weights: &mut [u64]) {
        let most = 1 << (56 - self.shift());
        if weights.iter().fold(0, |a, b| a | b) > most {
            weights.iter_mut().for_each(|weight| *weight = (*weight).min(most));
        }
        let shift = self.shift();
        weights.iter_mut().for_each(|weight| *weight <<= shift);
    }

    /// Lowers all prices by the same amount when they have become high. Prices differ by at most the largest
    /// weight.
    pub fn lower(&mut self) {
        // Only differences of prices matter, so all may be lowered by the price of any column.
        let price = self.loss(self.prices[0]);
        if price.abs() > 1 << 57 {
            self.prices.iter_mut().for_each(|other| *other -= price);
        }
    }

    /// Sets the column that is first in the order.
    pub fn begin_at(&mut self, first: usize) {
        let mask = (1 << self.bits) - 1;
        for column in 0..self.width {
            let position = if column >= first { column - first } else { column + self.width - first };
            self.prices[column] = self.prices[column] & !mask | position as i64;
        }
        self.first = first;
    }

    /// Removes all pairs that are not tight. Writes the rows without a pair to `left`, in the order of
    /// `rows`.
    pub fn give_up(&mut self, weights: &[u64], rows: &[u16], left: &mut Vec<u16>) {
        left.clear();
        for &row in rows {
            let column = self.column_of[usize::from(row)];
            if column != NONE {
                let column = usize::from(column);
                let weights = &weights[usize::from(row) * self.width..][..self.width];
                let own = self.prices[column] - weights[column] as i64;
                let best = self.best(weights);
                // Tight: no other column is better for the row.
                if self.loss(own) == self.loss(best) {
                    continue;
                }
                self.row_of[column] = NONE;
                self.prices[column] -= self.matched();
            }
            left.push(row);
        }
    }

    /// The shortest path from a row to any column, as a key without the row.
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

    /// Matches a free row along the path to a free column with the least loss.
    #[inline]
    pub fn augment(&mut self, weights: &[u64], root: usize) {
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

    /// Searches the shortest path from a free row to a free column, from the key of the nearest column on,
    /// which is matched. Then exchanges the pairs of the path.
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
            // The pair of this row is tight, so the path to the row has the loss of the path to its column.
            let offset = self.loss(key) - self.loss(price) + weights[column] as i64;
            key = self.look(weights, offset + ((row as i64) << self.bits));
        };
        for (column, price, key) in &self.reached {
            // Prices rise by the loss that the path has beyond this column. So all its pairs become tight,
            // and no pair gets a negative loss.
            self.prices[usize::from(*column)] = price + self.loss(end) - self.loss(*key);
        }
        let mut column = self.column(end);
        self.prices[column] += self.matched();
        loop {
            let row = self.reached_from[column];
            self.row_of[column] = row;
            // From the free column back to the root: each row takes the column behind it, and leaves its own
            // to the row before.
            let before = std::mem::replace(&mut self.column_of[usize::from(row)], column as u16);
            if usize::from(row) == root {
                return;
            }
            column = usize::from(before);
        }
    }

    /// Sets the shortest paths to those that lead directly from a free row, and returns the smallest key.
    #[inline]
    fn look_first(&mut self, weights: &[u64], offset: i64) -> i64 {
        let columns = self.prices[..weights.len()].iter().zip(weights);
        for (nearest, (price, weight)) in self.nearest.iter_mut().zip(columns) {
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

    /// Improves the shortest paths by those through a row, whose loss and number are in `offset`, and returns
    /// the smallest key.
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

/// The lesser of two numbers that differ by less than 2^63, without a comparison: baseline x86-64 has no
/// comparison of 64-bit words in vector registers, and `min` takes four times as long there.
#[inline(always)]
fn least(a: i64, b: i64) -> i64 {
    let difference = a - b;
    // The shift copies the sign into all bits: a mask of ones if `a` is less.
    b + (difference & (difference >> 63))
}
