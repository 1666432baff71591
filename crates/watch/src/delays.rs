//! Delays of packets, since the start and in the last second, in constant memory.
//!
//! A histogram with two significant digits from a nanosecond to 73 minutes ([`hdrhistogram`]); a quantile is the smallest value
//! that at least the wanted share of all values does not exceed, and at most 1 % too large. The largest is exact. Two digits and
//! not three, as records have: so a histogram is some 20 KB, stays in the cache beside the packets, and is read and cleared once a
//! second by the thread that sends, without making anybody late.

use giveway_qdisc::Span;
use hdrhistogram::Histogram;

/// Quantiles of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// How many there were. Where there were none, all else is zero.
    pub count: u64,
    /// All of them together, in picoseconds.
    pub sum_ps: u128,
    /// Half of them were not longer.
    pub p50: Span,
    /// 90 % of them were not longer.
    pub p90: Span,
    /// 99 % of them were not longer.
    pub p99: Span,
    /// 99.9 % of them were not longer.
    pub p999: Span,
    /// The longest.
    pub max: Span,
}

impl Quantiles {
    /// With their shares, as texts: "0.5" to "1".
    pub fn shares(&self) -> [(&'static str, Span); 5] {
        [("0.5", self.p50), ("0.9", self.p90), ("0.99", self.p99), ("0.999", self.p999), ("1", self.max)]
    }
}

/// Collects delays. All of its memory is there from the start.
#[derive(Clone, Debug)]
pub struct Delays {
    all: Part,
    /// Since the last turn.
    now: Part,
    /// Of the last whole second.
    last: Quantiles,
}

#[derive(Clone, Debug)]
struct Part {
    histogram: Histogram<u64>,
    sum_ps: u128,
    max: Span,
}

impl Default for Delays {
    fn default() -> Delays {
        Delays::new()
    }
}

impl Delays {
    /// None yet.
    pub fn new() -> Delays {
        Delays { all: Part::new(), now: Part::new(), last: Quantiles::default() }
    }

    /// Adds one.
    #[inline]
    pub fn add(&mut self, delay: Span) {
        self.all.add(delay);
        self.now.add(delay);
    }

    /// A second is over: what was added since the last turn is that of the last second now.
    pub fn turn(&mut self) {
        self.last = self.now.quantiles();
        self.now.clear();
    }

    /// Since the start.
    pub fn all(&self) -> Quantiles {
        self.all.quantiles()
    }

    /// Of the last whole second: between the last two turns.
    pub fn last(&self) -> Quantiles {
        self.last
    }
}

impl Part {
    /// The longest delay that is told apart, in nanoseconds: 73 minutes.
    const LONGEST_NS: u64 = 1 << 42;

    fn new() -> Part {
        let histogram = Histogram::new_with_bounds(1, Part::LONGEST_NS, 2).expect("bounds that are in order");
        Part { histogram, sum_ps: 0, max: Span::ZERO }
    }

    #[inline]
    fn add(&mut self, delay: Span) {
        let ns = delay.as_ps().saturating_add(500) / 1_000;
        self.histogram.saturating_record(ns.min(Part::LONGEST_NS));
        self.sum_ps += u128::from(delay.as_ps());
        self.max = self.max.max(delay);
    }

    fn clear(&mut self) {
        self.histogram.reset();
        (self.sum_ps, self.max) = (0, Span::ZERO);
    }

    fn quantiles(&self) -> Quantiles {
        let count = self.histogram.len();
        if count == 0 {
            return Quantiles::default();
        }
        // Half a rank below: however the histogram rounds, it arrives at the rank.
        let rank = |per_mille: u64| (u128::from(count) * u128::from(per_mille)).div_ceil(1000).max(1) as f64;
        let of = |per_mille| self.histogram.value_at_quantile((rank(per_mille) - 0.5) / count as f64);
        // The upper end of a bucket may lie above the longest.
        let quantile = |per_mille| Span::ns(of(per_mille)).min(self.max);
        Quantiles {
            count,
            sum_ps: self.sum_ps,
            p50: quantile(500),
            p90: quantile(900),
            p99: quantile(990),
            p999: quantile(999),
            max: self.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let mut delays = Delays::new();
        assert_eq!((delays.all(), delays.last()), (Quantiles::default(), Quantiles::default()));
        (1..=1000).for_each(|us| delays.add(Span::us(us)));
        assert_eq!(delays.last().count, 0, "the second is not over");
        delays.turn();
        let Quantiles { count, sum_ps, p50, max, .. } = delays.last();
        assert_eq!((count, sum_ps, max), (1000, 500_500_000_000, Span::ms(1)));
        assert!(p50 >= Span::us(500) && p50 <= Span::us(505), "{p50}");
        delays.add(Span::s(10_000));
        delays.turn();
        assert_eq!((delays.last().count, delays.all().count), (1, 1001));
        assert_eq!(delays.last().max, Span::s(10_000), "the largest is exact however long it is");
        delays.turn();
        assert_eq!((delays.last(), delays.all().max), (Quantiles::default(), Span::s(10_000)));
    }

    proptest! {
        #[test]
        fn as_sorting_says(ns in prop::collection::vec(1u64..1 << 40, 1..300)) {
            let mut delays = Delays::new();
            ns.iter().for_each(|ns| delays.add(Span::ns(*ns)));
            let mut sorted = ns.clone();
            sorted.sort_unstable();
            let all = delays.all();
            let wanted = [(500, all.p50), (900, all.p90), (990, all.p99), (999, all.p999), (1000, all.max)];
            for (per_mille, span) in wanted {
                let exact = sorted[(sorted.len() * per_mille).div_ceil(1000) - 1];
                let got = span.as_ps() / 1000;
                prop_assert!(got >= exact && got <= exact + exact / 100 + 1, "{per_mille}: {got} for {exact}");
            }
        }
    }
}
