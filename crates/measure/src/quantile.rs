//! Quantiles by nearest rank: the smallest value that at least the given share of all values does not exceed.
//! Completion times are all kept, so their quantiles are exact. Sojourn times are too many: they are in a
//! histogram with three significant digits.

use giveway_qdisc::Span;
use hdrhistogram::Histogram;

/// Times of which statistics are reported, in seconds. There is none without a time.
pub(crate) trait Distribution {
    fn mean_s(&self) -> Option<f64>;

    /// The quantile of this share of the times.
    fn quantile_s(&self, per_mille: u64) -> Option<f64>;
}

/// The rank, from 1, of a quantile among `n` values. In integers: 0.95 · 20 must not become
/// 19.000000000000004.
fn rank(n: u64, per_mille: u64) -> u64 {
    part_rank(n, per_mille, 1000)
}

/// The rank, from 1, of the quantile `part / whole` among `n` values.
fn part_rank(n: u64, part: u64, whole: u64) -> u64 {
    (u128::from(n) * u128::from(part)).div_ceil(u128::from(whole)).max(1) as u64
}

/// Shares of a curve are counted in millionths.
const WHOLE: u64 = 1_000_000;

/// The points of a curve: from, to and step in millionths, and one more point at 1. Steps are finer towards
/// 1, so that the curve shows the tail: 123 points.
const CURVE_PPM: [(u64, u64, usize); 4] =
    [(0, 950_000, 10_000), (950_000, 990_000, 5_000), (990_000, 999_000, 1_000), (999_000, WHOLE, 100)];

/// A list of times, for exact quantiles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    sorted: Vec<Span>,
}

impl Times {
    pub(crate) fn new(times: impl IntoIterator<Item = Span>) -> Times {
        let mut sorted: Vec<Span> = times.into_iter().collect();
        sorted.sort_unstable();
        Times { sorted }
    }

    pub(crate) fn count(&self) -> usize {
        self.sorted.len()
    }
}

impl Distribution for Times {
    fn mean_s(&self) -> Option<f64> {
        let sum: u128 = self.sorted.iter().map(|t| u128::from(t.as_ps())).sum();
        mean_s(sum, self.sorted.len() as u64)
    }

    fn quantile_s(&self, per_mille: u64) -> Option<f64> {
        let n = self.sorted.len() as u64;
        (n > 0).then(|| self.sorted[rank(n, per_mille) as usize - 1].as_s())
    }
}

/// Sojourn times of packets: a histogram in nanoseconds, and their exact sum.
///
/// A quantile is the upper end of its bucket, and at most the largest time: exact up to 2 µs, and at most 0.1
/// % too large above.
#[derive(Clone)]
pub(crate) struct Delays {
    histogram: Histogram<u32>,
    sum_ps: u128,
    most_ns: u64,
    saturated: u64,
}

impl Delays {
    /// The longest distinguishable time in nanoseconds: 73 minutes.
    const LONGEST_NS: u64 = 1 << 42;

    pub(crate) fn new() -> Delays {
        let histogram =
            Histogram::new_with_bounds(1, Delays::LONGEST_NS, 3).expect("the bounds are in order");
        Delays { histogram, sum_ps: 0, most_ns: 0, saturated: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, delay: Span) {
        let ns = delay.as_ps().saturating_add(500) / 1_000;
        self.sum_ps += u128::from(delay.as_ps());
        self.most_ns = self.most_ns.max(ns);
        if ns > Delays::LONGEST_NS {
            self.saturated += 1;
        }
        self.histogram.saturating_record(ns.min(Delays::LONGEST_NS));
    }

    pub(crate) fn merge(&mut self, other: &Delays) {
        self.histogram.add(&other.histogram).expect("all histograms have the same bounds");
        self.sum_ps += other.sum_ps;
        self.most_ns = self.most_ns.max(other.most_ns);
        self.saturated += other.saturated;
    }

    /// Number of times above the longest distinguishable one.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub(crate) fn saturated(&self) -> u64 {
        self.saturated
    }

    /// The distribution as a curve: ascending shares of the packets, each with the time that it does not
    /// exceed. Empty without packets.
    pub(crate) fn curve(&self) -> Vec<(f64, f64)> {
        let n = self.histogram.len();
        let mut points = Vec::new();
        let mut shares =
            CURVE_PPM.iter().flat_map(|(from, to, step)| (*from..*to).step_by(*step)).chain([WHOLE]);
        let mut next = shares.next();
        let mut below = 0;
        // One pass over the histogram gives all points.
        for bucket in self.histogram.iter_recorded() {
            below += bucket.count_since_last_iteration();
            while let Some(ppm) = next.filter(|ppm| part_rank(n, *ppm, WHOLE) <= below) {
                points.push((
                    ppm as f64 / WHOLE as f64,
                    bucket.value_iterated_to().min(self.most_ns) as f64 / 1e9,
                ));
                next = shares.next();
            }
        }
        points
    }
}

impl Distribution for Delays {
    fn mean_s(&self) -> Option<f64> {
        mean_s(self.sum_ps, self.histogram.len())
    }

    fn quantile_s(&self, per_mille: u64) -> Option<f64> {
        let n = self.histogram.len();
        // Half a rank less, so that rounding in the histogram cannot lead to the next rank.
        let share = (rank(n, per_mille) as f64 - 0.5) / n as f64;
        (n > 0).then(|| self.histogram.value_at_quantile(share).min(self.most_ns) as f64 / 1e9)
    }
}

/// The mean in seconds of `n` times with this sum; `None` if there are none.
pub(crate) fn mean_s(sum_ps: u128, n: u64) -> Option<f64> {
    (n > 0).then(|| sum_ps as f64 / n as f64 / 1e12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nearest_rank_by_hand() {
        let times = Times::new([40, 10, 30, 20].map(Span::ms));
        assert_eq!(times.quantile_s(500), Some(0.02));
        assert_eq!(times.quantile_s(501), Some(0.03));
        assert_eq!(times.quantile_s(950), Some(0.04));
        assert_eq!(times.quantile_s(0), Some(0.01));
        assert_eq!(times.mean_s(), Some(0.025));
        assert_eq!(Times::new([]).quantile_s(500), None);
        assert_eq!(Times::new([]).mean_s(), None);
        // 0.95 · 20 is 19, the second to last value.
        assert_eq!(Times::new((1..=20).map(Span::s)).quantile_s(950), Some(19.0));
    }

    #[test]
    fn what_is_too_long_counts_as_the_longest() {
        let mut delays = Delays::new();
        delays.add(Span::s(3_600));
        assert_eq!(delays.saturated(), 0);
        delays.add(Span::s(10_000));
        assert_eq!(delays.saturated(), 1);
        assert_eq!(delays.mean_s(), Some(6_800.0), "the mean knows better");
        assert!((delays.quantile_s(990).unwrap() - 4_398.0).abs() < 5.0);
        assert_eq!(Delays::new().quantile_s(500), None);
    }

    #[test]
    fn a_curve_shows_the_tail() {
        let mut delays = Delays::new();
        (1..=1000).for_each(|us| delays.add(Span::us(us)));
        let curve = delays.curve();
        assert_eq!(curve.len(), 95 + 8 + 9 + 10 + 1);
        let at = |share: f64| curve.iter().find(|(found, _)| (found - share).abs() < 1e-9).unwrap().1;
        for (share, us) in [(0.0, 1.0), (0.5, 500.0), (0.99, 990.0), (0.999, 999.0), (1.0, 1000.0)] {
            assert!((at(share) / (us * 1e-6) - 1.0).abs() < 1e-3, "{share}: {}", at(share));
        }
        assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        assert!(Delays::new().curve().is_empty());
    }

    proptest! {
        /// The pass over the histogram gives the same values as a search for each point.
        #[test]
        fn a_curve_agrees_with_the_quantiles(delays_ns in prop::collection::vec(0..5_000_000_000_u64, 1..300)) {
            let mut delays = Delays::new();
            delays_ns.iter().for_each(|ns| delays.add(Span::ns(*ns)));
            for (share, delay_s) in delays.curve() {
                let ppm = (share * 1e6).round() as u64;
                if ppm.is_multiple_of(1_000) {
                    prop_assert_eq!(Some(delay_s), delays.quantile_s(ppm / 1_000), "{}", share);
                }
            }
        }

        /// The histogram agrees with the sorted list, to its three digits.
        #[test]
        fn the_histogram_is_the_list_to_three_digits(
            delays_ns in prop::collection::vec(0..5_000_000_000_u64, 1..300),
            per_mille in 0..=1000_u64,
        ) {
            let mut delays = Delays::new();
            let spans: Vec<Span> = delays_ns.iter().map(|ns| Span::ns(*ns)).collect();
            spans.iter().for_each(|span| delays.add(*span));
            let exact = Times::new(spans).quantile_s(per_mille).unwrap();
            let found = delays.quantile_s(per_mille).unwrap();
            prop_assert!(found >= exact * (1.0 - 1e-12) && found <= exact * 1.001 + 1e-12, "{found} for {exact}");
            let most = *delays_ns.iter().max().unwrap() as f64 / 1e9;
            prop_assert!(found <= most, "{found} is above the largest, {most}");
        }
    }
}
