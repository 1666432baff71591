//! The samples of a direction, thinned out so that their number is bounded.

use giveway_measure::QueueRow;

/// Largest number of samples of a direction: twenty minutes of five samples per second.
const MAX_SAMPLES: usize = 6_000;

/// The samples of a direction.
///
/// When there are too many, every second one is removed, and from then on only every second new one is kept;
/// and so on. So the interval between samples grows, but it is the same over the whole recording, and memory
/// and files are bounded.
#[derive(Default)]
pub struct Series {
    /// Rows of all samples. A sample is one row with the backlog, and one row for each gauge.
    rows: Vec<QueueRow>,
    /// Number of samples in `rows`.
    samples: usize,
    /// Number of samples that were added.
    added: u64,
    /// One sample of 2 to this power is kept.
    thinned: u32,
    /// True if the last sample that was added is kept.
    keeps: bool,
}

impl Series {
    /// Adds the rows of new samples, in the order of their times.
    pub fn add(&mut self, rows: Vec<QueueRow>) {
        for row in rows {
            if row.backlog.is_some() {
                self.keeps = self.added.is_multiple_of(1 << self.thinned);
                self.added += 1;
                self.samples += usize::from(self.keeps);
            }
            if self.keeps {
                self.rows.push(row);
            }
        }
        while self.samples > MAX_SAMPLES {
            self.thin();
        }
    }

    /// Lends the rows, so that they can be written without a copy. [`put_back`](Series::put_back) returns
    /// them.
    pub fn lend(&mut self) -> Vec<QueueRow> {
        std::mem::take(&mut self.rows)
    }

    /// Takes back the rows of [`lend`](Series::lend).
    pub fn put_back(&mut self, rows: Vec<QueueRow>) {
        self.rows = rows;
    }

    /// Keeps the first sample, the third, and so on: those whose numbers are multiples of the next power of
    /// two.
    fn thin(&mut self) {
        let mut number = 0;
        self.rows.retain(|row| {
            number += usize::from(row.backlog.is_some());
            number % 2 == 1
        });
        self.samples = self.samples.div_ceil(2);
        self.thinned += 1;
    }
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::{Backlog, PortId, Time};

    use super::*;

    /// Samples with a gauge, every 200 ms for three hours: their distances are equal, and each has its gauge.
    #[test]
    fn samples_are_thinned_out_evenly() {
        let mut series = Series::default();
        let times: Vec<Time> = (0..3 * 3600 * 5).map(|number| Time::ms(200 * number)).collect();
        for part in times.chunks(50) {
            let row = |time, backlog, gauge| QueueRow { time, port: PortId(0), backlog, gauge };
            let sample = |time: &Time| {
                [row(*time, Some(Backlog::ZERO), None), row(*time, None, Some(("flow_table", 1.0)))]
            };
            series.add(part.iter().flat_map(sample).collect());
            assert!(series.samples <= MAX_SAMPLES);
        }
        let [first, .., last] = &series.rows[..] else { panic!("there are many samples") };
        assert_eq!((first.time, series.samples), (Time::ZERO, 54_000_usize.div_ceil(16)));
        assert!(last.time >= times[times.len() - 16]);
        for (pair, number) in series.rows.chunks(2).zip(0..) {
            assert_eq!((pair[0].time, pair[1].time), (Time::ms(3200 * number), Time::ms(3200 * number)));
            assert!(pair[0].backlog.is_some() && pair[1].gauge.is_some());
        }
    }
}
