//! Delays of packets, since the start and in the last second, in constant memory.
//!
//! Values are in a histogram with two significant digits, from a nanosecond to 73 minutes ([`hdrhistogram`]).
//! A quantile is the smallest value that at least this share of all values does not exceed; it is at most 1 %
//! too large. The maximum is exact. Records of runs have three digits. With two, a histogram has about 20 KB:
//! it stays in the cache, and the sending thread can read and clear it every second without delaying packets.

use giveway_qdisc::Span;
use hdrhistogram::Histogram;

/// Quantiles of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Number of delays. If it is zero, all other fields are zero.
    pub count: u64,
    /// Sum of all delays, in picoseconds.
    pub sum_ps: u128,
    /// Median.
    pub p50: Span,
    /// 90th percentile.
    pub p90: Span,
    /// 99th percentile.
    pub p99: Span,
    /// 99.9th percentile.
    pub p999: Span,
    /// Maximum.
    pub max: Span,
}

impl Quantiles {
    /// The quantiles with their shares as texts, "0.5" to "1".
    pub fn shares(&self) -> [(&'static str, Span); 5] {
        [("0.5", self.p50), ("0.9", self.p90), ("0.99", self.p99), ("0.999", self.p999), ("1", self.max)]
    }
}

/// Collects delays. All memory is allocated at the start.
#[derive(Clone, Debug)]
pub struct Delays {
    all: Part,
    /// Delays of the current second.
    now: Part,
    /// Quantiles of the last whole second.
    last: Quantiles,
}

/// Delays of a time interval.
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
    /// Creates an empty collection.
    pub fn new() -> Delays {
        Delays { all: Part::new(), now: Part::new(), last: Quantiles::default() }
    }

    /// Adds a delay.
    #[inline]
    pub fn add(&mut self, delay: Span) {
        self.all.add(delay);
        self.now.add(delay);
    }

    /// Ends the current second: it becomes the last whole second.
    pub fn turn(&mut self) {
        self.last = self.now.quantiles();
        self.now.clear();
    }

    /// Quantiles since the start.
    pub fn all(&self) -> Quantiles {
        self.all.quantiles()
    }

    /// Quantiles of the last whole second: between the last two calls of [`Delays::turn`].
    pub fn last(&self) -> Quantiles {
        self.last
    }
}

impl Part {
    /// Longest delay that the histogram distinguishes, in nanoseconds: 73 minutes.
    const LONGEST_NS: u64 = 1 << 42;

    fn new() -> Part {
        let histogram = Histogram::new_with_bounds(1, Part::LONGEST_NS, 2).expect("the bounds are in order");
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
        // Half a rank below, so that rounding in the histogram cannot reach the next rank.
        let rank = |per_mille: u64| (u128::from(count) * u128::from(per_mille)).div_ceil(1000).max(1) as f64;
        let of = |per_mille| self.histogram.value_at_quantile((rank(per_mille) - 0.5) / count as f64);
        // The upper end of a bucket may be above the maximum.
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
    fn delays_since_the_start_and_of_the_last_second() {
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
        assert_eq!(delays.last().max, Span::s(10_000), "the maximum is exact, even beyond the histogram");
        delays.turn();
        assert_eq!((delays.last(), delays.all().max), (Quantiles::default(), Span::s(10_000)));
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values(ns in prop::collection::vec(1u64..1 << 40, 1..300)) {
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
