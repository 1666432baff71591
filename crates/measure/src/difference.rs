//! Differences between two disciplines, taken seed by seed.

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
}

impl Difference {
    /// The difference between two estimates over the same seeds; `None` if no seed has both values.
    pub fn between(base: &Estimate, other: &Estimate) -> Option<Difference> {
        let pairs = base.per_seed.iter().zip(&other.per_seed);
        let pairs: Vec<(f64, f64)> = pairs.filter_map(|(before, after)| (*before).zip(*after)).collect();
        let difference = Estimate::over(pairs.iter().map(|(before, after)| Some(after - before)).collect());
        let before = pairs.iter().map(|pair| pair.0).sum::<f64>() / pairs.len() as f64;
        let seeds = pairs.len() as u32;
        let ci95 = difference.ci95;
        difference.mean.map(|change| Difference { before, after: before + change, ci95, seeds })
    }

    /// The probability of a difference at least as large if there is none, by a paired t-test; `None` below
    /// two seeds.
    pub fn p_value(&self) -> Option<f64> {
        let change = (self.after - self.before).abs();
        let freedom = self.seeds.checked_sub(1).filter(|freedom| *freedom > 0)?;
        match self.ci95? {
            0.0 => Some(if change > 0.0 { 0.0 } else { 1.0 }),
            within => Some(t_exceeded(freedom, change / within * t_quantile(freedom, 0.95))),
        }
    }

    /// True if the interval of the difference excludes zero. With one seed, every difference counts.
    pub fn is_measurable(&self) -> bool {
        (self.after - self.before).abs() > self.ci95.unwrap_or(0.0)
    }
}
