//! The busiest seconds of each direction, as a guess of the rate of a line.
//!
//! A burst that came before the queue of the line is shorter than [`SUSTAINED`] seconds, so the guess is the
//! highest rate that as many seconds in a row reach.
//!
//! The local side is known only at the end, so each flow keeps its bytes second by second: 8 bytes for each
//! second in which it sends.

use std::collections::BTreeMap;

/// The number of seconds in a row that a rate must last.
const SUSTAINED: u32 = 3;

/// The bytes of one direction of a flow, second by second.
#[derive(Debug, Default)]
pub(crate) struct Seconds {
    /// Number of a second since the beginning of the capture, and IP bytes in it.
    bytes: Vec<(u32, u32)>,
}

impl Seconds {
    /// Adds a packet, `now` ns after the beginning.
    pub fn add(&mut self, now: u64, bytes: u32) {
        let second = u32::try_from(now / 1_000_000_000).unwrap_or(u32::MAX);
        match self.bytes.last_mut().filter(|(last, _)| *last >= second) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => self.bytes.push((second, bytes)),
        }
    }
}

/// The sum of several flows.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    bytes: BTreeMap<u32, u64>,
}

impl Sum {
    /// Adds a direction of a flow.
    pub fn add(&mut self, seconds: &Seconds) {
        for (second, bytes) in &seconds.bytes {
            *self.bytes.entry(*second).or_default() += u64::from(*bytes);
        }
    }

    /// The bytes of each hour.
    pub fn hours(&self) -> Vec<u64> {
        let last = self.bytes.keys().next_back().map_or(0, |second| second / 3600 + 1);
        let mut hours = vec![0u64; last as usize];
        for (second, bytes) in &self.bytes {
            hours[(second / 3600) as usize] += bytes;
        }
        hours
    }

    /// The highest rate that three seconds in a row reach, bit/s. Of a shorter capture, the rate of its
    /// busiest second.
    pub fn busiest(&self) -> u64 {
        let at = |second: u32| self.bytes.get(&second).copied().unwrap_or(0);
        let least =
            |first: &u32| (0..SUSTAINED).map(|later| at(first.saturating_add(later))).min().unwrap_or(0);
        let sustained = self.bytes.keys().map(least).max().unwrap_or(0);
        let peak = self.bytes.values().max().copied().unwrap_or(0);
        if sustained > 0 { sustained } else { peak }.saturating_mul(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_of_two_flows() {
        let (mut one, mut other) = (Seconds::default(), Seconds::default());
        one.add(0, 100);
        one.add(999_999_999, 100);
        one.add(1_000_000_000, 150);
        // Times may step back a little: they count in the second before.
        one.add(999_999_999, 1);
        other.add(1_500_000_000, 60);
        let mut sum = Sum::default();
        sum.add(&one);
        assert_eq!(sum.busiest(), 8 * 200);
        sum.add(&other);
        assert_eq!(sum.busiest(), 8 * 211);
        assert_eq!(Sum::default().busiest(), 0);
    }

    /// 900 bytes are a burst; three seconds in a row have at least 300.
    #[test]
    fn a_burst_is_not_sustained() {
        let mut seconds = Seconds::default();
        for (second, bytes) in (0..).zip([100, 900, 300, 310, 400, 0, 500]) {
            seconds.add(second * 1_000_000_000, bytes);
        }
        let mut sum = Sum::default();
        sum.add(&seconds);
        assert_eq!(sum.busiest(), 8 * 300);
    }
}
