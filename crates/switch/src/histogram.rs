//! A histogram of times, exact where times are short.

use hdrhistogram::Histogram;

/// Times below this, in ticks, are counted one by one, in a table that fits into the nearest cache.
const LINEAR: usize = 1024;

/// Counts how often each time occurs, in ticks.
///
/// Recording a short time increments one counter. Sums are computed only when they are read.
#[derive(Clone, Debug)]
pub(crate) struct TimeHistogram {
    /// Counts of short times since the last [`settle`](TimeHistogram::settle), which comes with every batch.
    recent: Box<[u32; LINEAR]>,
    /// Counts of short times before that.
    settled: Vec<u64>,
    /// Longer times: exact below 2,048 ticks, then to three digits.
    rest: Histogram<u64>,
    /// Totals of all times but those in `recent`.
    settled_totals: Totals,
}

/// Number, sum and maximum of times, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub count: u64,
    pub sum: u64,
    pub max: u64,
}

impl TimeHistogram {
    /// An empty histogram for times of up to a trillion slots.
    pub fn new(slot_ticks: u64) -> TimeHistogram {
        TimeHistogram {
            recent: Box::new([0; LINEAR]),
            settled: vec![0; LINEAR],
            rest: Histogram::new_with_bounds(1, slot_ticks << 40, 3).expect("the bounds are valid"),
            settled_totals: Totals::default(),
        }
    }

    /// Adds a time.
    #[inline]
    pub fn record(&mut self, ticks: u64) {
        match self.recent.get_mut(ticks as usize) {
            Some(count) => *count += 1,
            None => self.record_long(ticks),
        }
    }

    fn record_long(&mut self, ticks: u64) {
        let totals = &mut self.settled_totals;
        *totals = Totals { count: totals.count + 1, sum: totals.sum + ticks, max: totals.max.max(ticks) };
        self.rest.saturating_record(ticks);
    }

    /// Totals of all recorded times.
    pub fn totals(&self) -> Totals {
        let mut all = self.settled_totals;
        for (ticks, count) in (0..).zip(self.recent.iter()).filter(|(_, count)| **count > 0) {
            all.count += u64::from(*count);
            all.sum += u64::from(*count) * ticks;
            all.max = all.max.max(ticks);
        }
        all
    }

    /// Moves recent counts to wider counters, before they overflow.
    pub fn settle(&mut self) {
        self.settled_totals = self.totals();
        for (settled, recent) in self.settled.iter_mut().zip(self.recent.iter_mut()) {
            *settled += u64::from(std::mem::take(recent));
        }
    }

    /// Removes all recorded times.
    pub fn clear(&mut self) {
        self.recent.fill(0);
        self.settled.fill(0);
        self.rest.reset();
        self.settled_totals = Totals::default();
    }

    /// Each recorded time with its count, ascending. A long time stands for a range and is the upper end of
    /// it.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let near = self.settled.iter().zip(self.recent.iter());
        let linear = (0..).zip(near.map(|(old, new)| old + u64::from(*new)));
        let rest = self.rest.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
        linear.chain(rest).filter(|(_, count)| *count > 0)
    }
}
