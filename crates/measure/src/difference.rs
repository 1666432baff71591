//! Differences between two disciplines, taken seed by seed.
//!
//! Student's paired test and the number of seeds for a given power are textbook formulas. Which scale a
//! difference is taken on, is open. We chose:
//!
//! - Times are compared by their ratio, as the mean of its logarithms over the seeds, if all of them are
//!   positive. Their spread grows with their size: 10 to 30 s against 0.2 to 0.3 s is a clear ratio under
//!   every seed, and an unclear difference. All other metrics are compared by the difference.
//! - If the ratio and the two means disagree on the direction, neither counts: a rare seed decides then which
//!   mean is the larger.

use crate::metrics::{Unit, named};
use crate::student::{t_exceeded, t_quantile};
use crate::table::Estimate;

/// The difference between two disciplines in one metric.
///
/// Disciplines have the same arrivals under each seed. So the difference is taken seed by seed, and its
/// interval is often much narrower than the intervals of the two means.
///
/// ```
/// use giveway_measure::{Difference, Estimate};
///
/// let over = |values: [f64; 3]| Estimate::over(values.map(Some).into());
/// let (fifo, efd) = (over([1.0, 2.0, 3.0]), over([0.9, 1.8, 2.8]));
/// // The intervals of the means overlap: 2.0 ± 2.5 and 1.8 ± 2.4. The differences are 0.1, 0.2 and 0.2.
/// assert!(Difference::between(&fifo, &efd).unwrap().is_measurable());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean of the first discipline over the seeds that both have.
    pub before: f64,
    /// Mean of the second discipline over these seeds.
    pub after: f64,
    /// Half the width of the 95 % confidence interval of the mean difference, by Student's t; `None` below
    /// two seeds.
    pub ci95: Option<f64>,
    /// The number of seeds that both have.
    pub seeds: u32,
    /// The ratio of the second discipline to the first, which then takes the place of the difference in all
    /// tests; `None` if the difference is not on the scale of ratios.
    pub ratio: Option<Ratio>,
}

/// The ratio between two disciplines in one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The geometric mean of the ratios of the seeds.
    pub mean: f64,
    /// The 95 % confidence interval of the mean is from `mean / factor` to `mean * factor`; `None` below two
    /// seeds.
    pub factor: Option<f64>,
}

impl Ratio {
    /// The ends of the 95 % confidence interval; `None` below two seeds.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.factor.map(|factor| (self.mean / factor, self.mean * factor))
    }
}

/// The probability with which the number of seeds of [`Difference::seeds_needed`] finds the difference.
const POWER: f64 = 0.8;

/// Number of seeds from which on Student's t hardly depends on it.
const MANY: u32 = 1000;

impl Difference {
    /// The difference between two estimates over the same seeds; `None` if no seed has both values.
    pub fn between(base: &Estimate, other: &Estimate) -> Option<Difference> {
        let pairs = pairs(base, other);
        let difference = Estimate::over(pairs.iter().map(|(before, after)| Some(after - before)).collect());
        let before = pairs.iter().map(|pair| pair.0).sum::<f64>() / pairs.len() as f64;
        let (seeds, ci95) = (pairs.len() as u32, difference.ci95);
        difference.mean.map(|change| Difference { before, after: before + change, ci95, seeds, ratio: None })
    }

    /// The difference in a metric, on the scale of its ratios if it is a time and all values are positive.
    ///
    /// ```
    /// use giveway_measure::{Difference, Estimate};
    ///
    /// let over = |values: [f64; 3]| Estimate::over(values.map(Some).into());
    /// let (fifo, codel) = (over([10.7, 31.7, 18.0]), over([0.2, 0.3, 0.25]));
    /// assert!(!Difference::between(&fifo, &codel).unwrap().is_measurable());
    /// assert!(Difference::of("fct_p95_s", &fifo, &codel).unwrap().is_measurable());
    /// ```
    pub fn of(metric: &str, base: &Estimate, other: &Estimate) -> Option<Difference> {
        let difference = Difference::between(base, other)?;
        let pairs = pairs(base, other);
        let positive = pairs.iter().all(|(before, after)| *before > 0.0 && *after > 0.0);
        if !(is_time(metric) && positive) {
            return Some(difference);
        }
        let logs = pairs.iter().map(|(before, after)| Some(libm::log(after / before)));
        let Estimate { mean, ci95, .. } = Estimate::over(logs.collect());
        let ratio = mean.map(|mean| Ratio { mean: libm::exp(mean), factor: ci95.map(libm::exp) });
        Some(Difference { ratio, ..difference })
    }

    /// The probability of a difference at least as large if there is none, by a paired t-test; `None` below
    /// two seeds.
    pub fn p_value(&self) -> Option<f64> {
        let freedom = self.seeds.checked_sub(1).filter(|freedom| *freedom > 0)?;
        let (change, within) = self.effect();
        match within? {
            0.0 => Some(if change == 0.0 { 1.0 } else { 0.0 }),
            within => Some(t_exceeded(freedom, change.abs() / within * t_quantile(freedom, 0.95))),
        }
    }

    /// True if the interval of the difference excludes zero. With one seed, every difference counts.
    pub fn is_measurable(&self) -> bool {
        let (change, within) = self.effect();
        change.abs() > within.unwrap_or(0.0)
    }

    /// The difference in standard deviations of the differences of the seeds (Cohen's d for pairs), with its
    /// sign; `None` below two seeds, or if all seeds have the same difference.
    pub fn in_deviations(&self) -> Option<f64> {
        let (change, within) = self.effect();
        let deviation = within? / t_quantile(self.seeds - 1, 0.95) * libm::sqrt(f64::from(self.seeds));
        (deviation > 0.0).then(|| change / deviation)
    }

    /// The number of seeds that find a difference like this one with a probability of about 80 %, at a level
    /// of significance. It supposes the mean and the spread of the seeds so far. `None` without a
    /// difference or without a spread.
    ///
    /// The formula is n = ((t(1 - level / 2) + t(0.8)) / d)² with Student's t for n seeds.
    pub fn seeds_needed(&self, level: f64) -> Option<u32> {
        let effect = self.in_deviations().map(f64::abs).filter(|effect| *effect > 0.0)?;
        // A two-sided interval that has 60 % inside has 80 % below its upper end.
        let needed = |seeds: u32| {
            let t = t_quantile(seeds - 1, 1.0 - level) + t_quantile(seeds - 1, 2.0 * POWER - 1.0);
            t * t / (effect * effect)
        };
        let enough = |seeds: u32| needed(seeds) <= f64::from(seeds);
        if !enough(MANY) {
            return Some(libm::ceil(needed(MANY)) as u32);
        }
        let (mut low, mut high) = (1, MANY);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if enough(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    /// The change on the scale of the difference, and half the width of its interval.
    fn effect(&self) -> (f64, Option<f64>) {
        let change = self.after - self.before;
        let Some(Ratio { mean, factor }) = self.ratio else { return (change, self.ci95) };
        let log = libm::log(mean);
        (if log * change > 0.0 { log } else { 0.0 }, factor.map(libm::log))
    }
}

/// The difference in standard deviations of its seeds that just counts with a number of seeds, at least two,
/// at a level of significance.
///
/// ```
/// use giveway_measure::least_effect;
///
/// // Three seeds find a difference of 2.5 deviations alone, and among 20 only one of 11.5.
/// assert!((least_effect(3, 0.05) - 2.48).abs() < 0.01);
/// assert!((least_effect(3, 0.05 / 20.0) - 11.5).abs() < 0.1);
/// ```
pub fn least_effect(seeds: u32, level: f64) -> f64 {
    t_quantile(seeds - 1, 1.0 - level) / libm::sqrt(f64::from(seeds))
}

/// True for the metrics that are times, which are compared by their ratio.
pub fn is_time(metric: &str) -> bool {
    named(metric).is_some_and(|named| matches!(named.definition.unit, Unit::Seconds | Unit::Slots))
}

/// The values of the seeds that both have.
fn pairs(base: &Estimate, other: &Estimate) -> Vec<(f64, f64)> {
    let both = base.per_seed.iter().zip(&other.per_seed);
    both.filter_map(|(before, after)| (*before).zip(*after)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(values: &[f64]) -> Estimate {
        Estimate::over(values.iter().map(|value| Some(*value)).collect())
    }

    /// Ratios of 2 and 8: the logarithms 0.693 and 2.079 have the mean 1.386, so the ratio is 4, and the
    /// deviation 0.980; t is 12.706 for one degree, so the factor is exp(12.706 · 0.980 / √2) = exp(8.807).
    #[test]
    fn ratios_by_hand() {
        let found = Difference::of("fct_p50_s", &over(&[1.0, 0.5]), &over(&[2.0, 4.0])).unwrap();
        let ratio = found.ratio.unwrap();
        assert!((ratio.mean - 4.0).abs() < 1e-12, "{ratio:?}");
        assert!((libm::log(ratio.factor.unwrap()) - 8.807).abs() < 1e-3, "{ratio:?}");
        assert_eq!((found.before, found.after), (0.75, 3.0));
        // Rates, and times with a zero, are compared by their difference.
        assert_eq!(
            Difference::of("goodput_bps", &over(&[1.0, 0.5]), &over(&[2.0, 4.0])).unwrap().ratio,
            None
        );
        assert_eq!(Difference::of("fct_p50_s", &over(&[0.0, 0.5]), &over(&[2.0, 4.0])).unwrap().ratio, None);
    }

    /// In four of five seeds the second is a little faster, and in one much slower: the ratio is below 1, and
    /// the mean is larger.
    #[test]
    fn a_ratio_against_the_means_does_not_count() {
        let (before, after) = (over(&[1.0; 5]), over(&[0.5, 0.5, 0.5, 0.5, 4.0]));
        let found = Difference::of("fct_p50_s", &before, &after).unwrap();
        assert!(found.ratio.unwrap().mean < 1.0 && found.after > found.before);
        assert_eq!((found.p_value(), found.is_measurable()), (Some(1.0), false));
        assert_eq!(found.seeds_needed(0.05), None);
    }

    /// Tables of the paired t-test (for example Machin and others, "Sample Size Tables for Clinical Studies",
    /// chapter 8): an effect of one deviation needs 10 pairs at 5 %, one of half a deviation 34.
    #[test]
    fn the_number_of_seeds_is_that_of_the_tables() {
        // Differences with the mean `d` and the deviation 1.
        let with = |d: f64| Difference::between(&over(&[0.0; 3]), &over(&[d - 1.0, d, d + 1.0])).unwrap();
        assert!((with(0.5).in_deviations().unwrap() - 0.5).abs() < 1e-12);
        assert!((9..=11).contains(&with(1.0).seeds_needed(0.05).unwrap()));
        assert!((33..=35).contains(&with(0.5).seeds_needed(0.05).unwrap()));
        assert!(with(0.5).seeds_needed(0.001).unwrap() > 70);
        // (1.960 + 0.842)² / 0.01² = 78,500.
        assert!((78_000..79_500).contains(&with(0.01).seeds_needed(0.05).unwrap()));
        assert_eq!(with(0.0).seeds_needed(0.05), None);
    }
}
