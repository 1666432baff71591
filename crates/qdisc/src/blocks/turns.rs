//! Turns by weight, spread out: the weight spread sequence of smoothed round robin (Guo, "SRR: An O(1) Time
//! Complexity Packet Scheduler for Flows in Multi-Service Packet Networks", SIGCOMM 2001).
//!
//! Weights are written in binary, one row each, and the sequence selects the column whose turn it is: S_1 = 1
//! and S_k = S_(k-1), k, S_(k-1), where term i of S_k stands for bit k - i. So the highest bit comes with
//! every second term, the next with every fourth, and so on; in a term every row that has the bit gets one
//! visit, in the order of the rows. A row of weight w gets w visits per sequence, and they are spread over
//! it. With equal weights this is plain round robin.
//!
//! Here the sequence always has the order 48, and terms of empty columns are skipped in one step. This is
//! equivalent to the published rule for joining and leaving: when the highest bit changes by d, the number of
//! the term is shifted by d.

use super::positions::Positions;

/// Rows that take turns. Rows are small numbers. The caller passes the weight of a row when the row joins and
/// when it leaves.
#[derive(Debug, Default)]
pub struct Turns {
    /// For each bit, the rows whose weight has it.
    columns: Vec<Positions>,
    /// Bit c is set if column c has rows.
    busy: u64,
}

/// Position in the sequence of turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The number of the term, from 1; zero before the first.
    term: u64,
    /// The first row without its visit in this term.
    row: u32,
}

/// Order of the sequence: weights are below 2 to the power of it.
const ORDER: u32 = 48;
/// Larger than all row numbers: the term is over.
const OVER: u32 = u32::MAX;

impl Turns {
    /// The largest weight.
    pub const MAX: u64 = (1 << ORDER) - 1;
    /// A number of rows for which no row is the last one.
    pub const ANY: u32 = u32::MAX;

    /// A row joins.
    #[inline]
    pub fn wake(&mut self, row: u32, weight: u64) {
        debug_assert!((1..=Turns::MAX).contains(&weight), "a weight fits into the sequence");
        if self.columns.len() < bits(weight) {
            self.widen(bits(weight));
        }
        for column in columns(weight) {
            self.columns[column as usize].insert(row);
        }
        self.busy |= weight;
    }

    /// A row leaves.
    #[inline]
    pub fn sleep(&mut self, row: u32, weight: u64) {
        for column in columns(weight) {
            let rows = &mut self.columns[column as usize];
            rows.remove(row);
            if rows.is_empty() {
                self.busy &= !(1 << column);
            }
        }
    }

    /// The row with the next turn after `turn`, and the position afterwards; `None` if there are no rows. A
    /// term ends after the last of `rows` rows, even if a row joins then.
    #[inline]
    pub fn next(&self, turn: Turn, rows: u32) -> Option<(u32, Turn)> {
        let mut next = turn;
        Some((self.advance(&mut next, rows)?, next))
    }

    /// The row with the next turn; advances `turn`.
    #[inline(always)]
    pub fn advance(&self, turn: &mut Turn, rows: u32) -> Option<u32> {
        if self.busy == 0 {
            return None;
        }
        let mut row = None;
        if turn.term != 0
            && let Some(waiting) = self.columns.get(column(turn.term) as usize)
        {
            row = waiting.from(turn.row);
        }
        let row = match row {
            Some(row) => row,
            None => {
                turn.term = self.next_term(turn.term);
                self.columns[column(turn.term) as usize].first().expect("a busy column has a row")
            }
        };
        turn.row = after(row, rows);
        Some(row)
    }

    /// The first row from `row` on.
    pub fn waiting_from(&self, row: u32) -> Option<u32> {
        columns(self.busy).filter_map(|column| self.columns[column as usize].from(row)).min()
    }

    /// True if there are rows.
    #[inline]
    pub fn any(&self) -> bool {
        self.busy != 0
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Positions::clear);
        self.busy = 0;
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        let columns: u64 = self.columns.iter().map(Positions::bytes).sum();
        columns + (self.columns.capacity() * size_of::<Positions>()) as u64
    }

    #[cold]
    fn widen(&mut self, columns: usize) {
        self.columns.resize_with(columns, Positions::default);
    }

    /// The next term whose column has rows, cyclically.
    #[inline]
    fn next_term(&self, term: u64) -> u64 {
        // The highest column has the finest grid of terms: every term of another column lies between two of
        // its own.
        let fine = ORDER - 1 - (63 - self.busy.leading_zeros());
        let step = 1 << fine;
        let mut next = (term | (step - 1)) + 1;
        if next >= 1 << ORDER {
            next = step;
        }
        if self.busy & (1 << column(next)) == 0 {
            // Between two terms of the finest column lies one other term: then it is the finest column's turn
            // again.
            next += step;
        }
        next
    }
}

impl Turn {
    /// The position after the removal of rows that had left. `kept` returns the number of remaining rows
    /// before a row.
    pub fn renumbered(self, kept: impl FnOnce(u32) -> u32) -> Turn {
        if self.row == OVER { self } else { Turn { row: kept(self.row), ..self } }
    }
}

/// The column of a term.
#[inline]
fn column(term: u64) -> u32 {
    ORDER - 1 - term.trailing_zeros()
}

/// The row after one.
#[inline]
fn after(row: u32, rows: u32) -> u32 {
    if row + 1 >= rows { OVER } else { row + 1 }
}

fn bits(weight: u64) -> usize {
    (64 - weight.leading_zeros()) as usize
}

/// The bits of a weight, lowest first.
#[inline]
fn columns(mut weight: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        if weight == 0 {
            return None;
        }
        let lowest = weight.trailing_zeros();
        weight &= weight - 1;
        Some(lowest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waiting(weights: &[u64]) -> Turns {
        let mut turns = Turns::default();
        (0..).zip(weights).for_each(|(row, weight)| turns.wake(row, *weight));
        turns
    }

    /// The first visits when nobody comes or goes; a bar where a term ends.
    fn visits(weights: &[u64], most: usize) -> String {
        let turns = waiting(weights);
        let mut turn = Turn::default();
        let mut text = String::new();
        let mut last = None;
        for _ in 0..most {
            let (row, next) = turns.next(turn, weights.len() as u32).unwrap();
            // A sequence of one term begins again with the same term.
            if last.replace(row) >= Some(row) || (next.term != turn.term && turn.term != 0) {
                text += "| ";
            }
            text += &format!("f{} ", row + 1);
            turn = next;
        }
        text.trim_end().to_owned()
    }

    /// The example of lectures on smoothed round robin.
    #[test]
    fn visits_are_spread() {
        let sequence = "f1 | f2 f3 f4 | f1 | f1 f4 f5 | f1 | f2 f3 f4 | f1";
        assert_eq!(visits(&[5, 2, 2, 3, 1], 13), sequence);
        assert_eq!(visits(&[5, 2, 2, 3, 1], 26), format!("{sequence} | {sequence}"), "and again");
        // The same whatever the unit of weights.
        assert_eq!(visits(&[5, 2, 2, 3, 1].map(|weight| weight << 40), 13), sequence);
    }

    #[test]
    fn equal_weights_are_plain_round_robin() {
        for weight in [1, 2, 1 << 47] {
            assert_eq!(visits(&[weight; 3], 7), "f1 f2 f3 | f1 f2 f3 | f1");
        }
    }

    #[test]
    fn who_comes_in_the_middle_of_a_term_is_not_too_late_unless_it_is_over() {
        let mut turns = waiting(&[1, 1]);
        let (row, turn) = turns.next(Turn::default(), 3).unwrap();
        turns.wake(2, 1);
        assert_eq!((row, turns.next(turn, 3).unwrap().0), (0, 1));
        let last = turns.next(turn, 2).unwrap().1;
        assert_eq!(turns.next(last, 3).unwrap().0, 0, "the term was over before there was a third row");
        let last = turns.next(turn, Turns::ANY).unwrap().1;
        assert_eq!(turns.next(last, Turns::ANY).unwrap().0, 2, "unless a row may come at any time");
    }

    /// The sequence as it is defined.
    fn sequence(order: u32) -> Vec<u32> {
        if order == 0 {
            return Vec::new();
        }
        let before = sequence(order - 1);
        [before.clone(), vec![order], before].concat()
    }

    proptest! {
        /// Against the definition: for each term of the sequence, the rows that have its bit. So over one
        /// sequence each row gets as many visits as its weight.
        #[test]
        fn equals_the_definition(weights in prop::collection::vec(1..40u64, 1..8)) {
            let order = bits(*weights.iter().max().unwrap()) as u32;
            let mut expected = Vec::new();
            for term in sequence(order) {
                let bit = 1 << (order - term);
                expected.extend((0..).zip(&weights).filter(|(_, weight)| *weight & bit != 0).map(|(row, _)| row));
            }
            let turns = waiting(&weights);
            let mut turn = Turn::default();
            let mut had = vec![0; weights.len()];
            for row in &expected {
                let (next, moved) = turns.next(turn, weights.len() as u32).unwrap();
                prop_assert_eq!(next, *row);
                had[next as usize] += 1;
                turn = moved;
            }
            prop_assert_eq!(had, weights);
            prop_assert_eq!(turns.next(turn, 100).unwrap().0, expected[0]);
        }

        /// Joining and leaving against the published rule: a sequence as long as the highest waiting weight
        /// needs, whose pointer is shifted when that has changed. It is shifted here when it moves, so that
        /// who leaves and comes back in between does not move it.
        #[test]
        fn skipping_terms_is_rescaling_the_pointer(
            ops in prop::collection::vec((0..6u32, any::<bool>()), 1..80),
            weights in prop::collection::vec(1..20u64, 6),
        ) {
            let mut turns = Turns::default();
            let (mut turn, mut awake) = (Turn::default(), [false; 6]);
            // The published state: the order, the pointer into the sequence (from 1), and the next row of its
            // term.
            let (mut order, mut pointer, mut row) = (0u32, 0u64, 6usize);
            for (who, toggles) in ops {
                if toggles {
                    awake[who as usize] ^= true;
                    if awake[who as usize] {
                        turns.wake(who, weights[who as usize]);
                    } else {
                        turns.sleep(who, weights[who as usize]);
                    }
                    continue;
                }
                let got = turns.next(turn, 6);
                if !awake.contains(&true) {
                    prop_assert_eq!(got, None);
                    continue;
                }
                let waiting = (0..6).filter(|each| awake[*each]);
                let top = waiting.map(|each| bits(weights[each]) as u32).max().unwrap();
                if top < order {
                    if pointer % (1 << (order - top)) != 0 {
                        // Its column is gone, and its term is over.
                        row = 6;
                    }
                    pointer >>= order - top;
                } else {
                    pointer <<= top - order;
                }
                order = top;
                let expected = loop {
                    let bit = |pointer: u64| 1u64 << (order - 1 - pointer.trailing_zeros());
                    if pointer != 0
                        && let Some(found) = (row..6).find(|each| awake[*each] && weights[*each] & bit(pointer) != 0)
                    {
                        break found;
                    }
                    pointer = if pointer + 1 == 1 << order { 1 } else { pointer + 1 };
                    row = 0;
                };
                row = expected + 1;
                let (next, moved) = got.unwrap();
                turn = moved;
                prop_assert_eq!(next, expected as u32);
                prop_assert_eq!(turn.term, pointer << (ORDER - order));
            }
        }
    }
}
