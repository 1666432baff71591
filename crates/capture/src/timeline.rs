//! The time line of a capture without its long pauses.
//!
//! Captures that were joined, or that ran for days on an idle link, have pauses in which nothing is sent.
//! They would make every rate meaningless and every simulation long.

/// The longest pause that is kept, ns.
const LONGEST: u64 = 60_000_000_000;
/// The rest of a pause that was cut, ns: what was sent before it arrives in this time.
const REST: u64 = 10_000_000_000;

/// Maps the times of packets to times without pauses of more than a minute.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    begun: bool,
    /// The largest time since the clock stepped back.
    last: u64,
    /// Added to every time, ns.
    shift: i128,
    pauses: Pauses,
}

/// The pauses that were cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Their number.
    pub count: u64,
    /// The time that was cut, ns.
    pub cut: u64,
    /// The longest one: the time of the packet before it, ns since 1970, and its length, ns.
    pub longest: (u64, u64),
    /// Number of times at which the clock stepped back by more than a minute.
    pub steps_back: u64,
}

impl Timeline {
    /// The time of the next packet without the pauses before it, ns since 1970. If the clock
    /// steps back by more than a minute, later packets are shifted so that time increases.
    pub fn at(&mut self, time: u64) -> u64 {
        if !self.begun {
            (self.begun, self.last) = (true, time);
        }
        if time.saturating_sub(self.last) > LONGEST {
            let length = time - self.last;
            let cut = length - REST;
            self.shift -= i128::from(cut);
            self.pauses.count += 1;
            self.pauses.cut = self.pauses.cut.saturating_add(cut);
            if length > self.pauses.longest.1 {
                self.pauses.longest = (self.last, length);
            }
            self.last = time;
        } else if self.last.saturating_sub(time) > LONGEST {
            self.shift += i128::from(self.last - time) + i128::from(REST);
            self.pauses.steps_back += 1;
            self.last = time;
        }
        self.last = self.last.max(time);
        (i128::from(time) + self.shift).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// The pauses so far.
    pub fn pauses(&self) -> &Pauses {
        &self.pauses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn pauses_of_more_than_a_minute_are_cut_to_ten_seconds() {
        let mut line = Timeline::default();
        let times = [100, 160, 221, 221 + 86_400, 221 + 86_401].map(|s| line.at(s * S) / S);
        // 60 s are kept, 61 s and a day are not.
        assert_eq!(times, [100, 160, 170, 180, 181]);
        let pauses =
            Pauses { count: 2, cut: (51 + 86_390) * S, longest: (221 * S, 86_400 * S), steps_back: 0 };
        assert_eq!(*line.pauses(), pauses);
    }

    #[test]
    fn small_steps_back_stay_and_large_ones_go_on() {
        let mut line = Timeline::default();
        let times = [1000, 1001, 999, 1002, 10, 11].map(|s| line.at(s * S) / S);
        assert_eq!(times, [1000, 1001, 999, 1002, 1012, 1013]);
        assert_eq!((line.pauses().count, line.pauses().steps_back), (0, 1));
    }

    /// The clock of a damaged capture jumps by any amount.
    #[test]
    fn any_times_are_mapped() {
        let mut line = Timeline::default();
        for time in [0, u64::MAX, 0, u64::MAX, 1, u64::MAX / 2] {
            line.at(time);
        }
        assert_eq!((line.pauses().count, line.pauses().steps_back), (3, 2));
        assert_eq!(Timeline::default().at(0), 0);
    }
}
