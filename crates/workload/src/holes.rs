//! Data that a capture does not hold: the holes in the sequence numbers of a sender.
//!
//! A hole opens when data pass that start behind the end of the data before, and closes as far as data pass
//! that fill it. Data that never fill theirs were lost by the capture, not by the network: the receiver
//! acknowledged them.

/// Maximum number of holes that are kept apart for a sender. Of further ones the first counts as
/// never filled.
const MAX: usize = 64;

/// The holes of one sender.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    /// Start and end of each hole, in order; they do not touch.
    open: Vec<(u64, u64)>,
    /// Bytes of holes that are not kept any more.
    given_up: u64,
}

impl Holes {
    /// Opens a hole behind all others, unless it is empty.
    pub fn open(&mut self, begin: u64, end: u64) {
        if begin >= end {
            return;
        }
        if self.open.len() == MAX {
            let (from, until) = self.open.remove(0);
            self.given_up += until - from;
        }
        self.open.push((begin, end));
    }

    /// Data from `begin` to `end` passed.
    pub fn fill(&mut self, begin: u64, end: u64) {
        // Nearly all connections have none.
        if self.open.is_empty() {
            return;
        }
        let rest = |(from, until): (u64, u64)| [(from, until.min(begin)), (from.max(end), until)];
        let parts = std::mem::take(&mut self.open).into_iter().flat_map(rest);
        self.open = parts.filter(|(from, until)| from < until).collect();
    }

    /// Number of bytes in all holes.
    pub fn bytes(&self) -> u64 {
        self.given_up + self.open.iter().map(|(from, until)| until - from).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_fill_their_holes_and_no_others() {
        let mut holes = Holes::default();
        holes.open(10, 10);
        assert_eq!(holes.bytes(), 0);
        holes.open(10, 20);
        holes.open(30, 40);
        holes.fill(15, 35);
        assert_eq!(holes.open, [(10, 15), (35, 40)]);
        holes.fill(11, 12);
        assert_eq!(holes.open, [(10, 11), (12, 15), (35, 40)]);
        holes.fill(0, 100);
        assert_eq!(holes.bytes(), 0);
    }

    #[test]
    fn the_oldest_of_too_many_holes_stays_open() {
        let mut holes = Holes::default();
        (0..=MAX as u64).for_each(|at| holes.open(10 * at, 10 * at + 3));
        holes.fill(0, 1000);
        assert_eq!(holes.bytes(), 3);
    }
}
