//! Distributions of small whole numbers, such as the number of objects of a page.

use giveway_qdisc::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sizes::{Pareto, SizesError};

/// A distribution of small numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Counts {
    /// A constant.
    Fixed(u32),
    /// Geometric distribution from 1.
    Geometric {
        /// Mean, 1 or more.
        mean: f64,
    },
    /// Bounded Pareto distribution, rounded down.
    Pareto {
        /// The exponent.
        shape: f64,
        /// The smallest number, 1 or more.
        min: u32,
        /// The largest number.
        max: u32,
    },
}

/// A parameter of a distribution of numbers is out of range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CountsError {
    /// The constant is 0.
    #[error("0 is too few: write at least 1")]
    TooFew,
    /// The constant or the largest number is too large.
    #[error("{0} is too many: write at most {MAX}")]
    TooMany(u32),
    /// The mean of a geometric distribution is out of range.
    #[error("a mean of {0}; write a number from 1 to {MAX}")]
    Mean(f64),
    /// The bounds of a Pareto distribution are not in order.
    #[error("from {min} to {max}: min must be at least 1, and at most max")]
    Bounds {
        /// The smallest number.
        min: u32,
        /// The largest number.
        max: u32,
    },
    /// Another parameter of a Pareto distribution is out of range.
    #[error(transparent)]
    Pareto(#[from] SizesError),
}

/// A sampler of a distribution of numbers.
#[derive(Clone, Copy, Debug)]
pub struct CountSampler {
    law: Law,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Fixed(u32),
    /// The next whole number above an exponential variable.
    Geometric {
        scale: f64,
    },
    Pareto {
        law: Pareto,
        max: u32,
    },
}

/// Largest number of a distribution, more than any page or burst has.
const MAX: u32 = 1_000_000;

impl Counts {
    /// A sampler of this distribution.
    ///
    /// # Errors
    /// A parameter that is out of range, and what to write instead.
    pub fn sampler(&self) -> Result<CountSampler, CountsError> {
        let law = match *self {
            Counts::Fixed(0) => return Err(CountsError::TooFew),
            Counts::Fixed(count) if count <= MAX => Law::Fixed(count),
            Counts::Geometric { mean: 1.0 } => Law::Fixed(1),
            // P(n > k) = exp(-k / scale), so the mean is 1 / (1 - exp(-1 / scale)).
            Counts::Geometric { mean } if mean > 1.0 && mean <= f64::from(MAX) => {
                Law::Geometric { scale: -1.0 / libm::log1p(-1.0 / mean) }
            }
            Counts::Geometric { mean } => return Err(CountsError::Mean(mean)),
            // Rounding down maps each interval up to the next number to one number, so the bound is one above
            // the largest.
            Counts::Pareto { shape, min, max } if max <= MAX => {
                if min == 0 || max < min {
                    return Err(CountsError::Bounds { min, max });
                }
                Law::Pareto { law: Pareto::new(shape, f64::from(min), f64::from(max) + 1.0)?, max }
            }
            Counts::Fixed(count) | Counts::Pareto { max: count, .. } => {
                return Err(CountsError::TooMany(count));
            }
        };
        Ok(CountSampler { law })
    }
}

impl CountSampler {
    /// Draws a number, at least 1.
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        match self.law {
            Law::Fixed(count) => count,
            Law::Geometric { scale } => (libm::ceil(rng.exponential(scale)) as u32).max(1),
            Law::Pareto { law, max } => (law.draw(rng) as u32).min(max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Streams;

    fn mean_of(counts: &Counts) -> (f64, u32, u32) {
        let sampler = counts.sampler().unwrap();
        let mut rng = Streams::new(2).rng();
        let n = 400_000;
        let draws: Vec<u32> = (0..n).map(|_| sampler.draw(&mut rng)).collect();
        let mean = draws.iter().map(|count| f64::from(*count)).sum::<f64>() / f64::from(n);
        (mean, *draws.iter().min().unwrap(), *draws.iter().max().unwrap())
    }

    #[test]
    fn means_and_bounds() {
        assert_eq!(mean_of(&Counts::Fixed(7)), (7.0, 7, 7));
        let (mean, least, _) = mean_of(&Counts::Geometric { mean: 5.5 });
        // Standard deviation sqrt(5.5 * 4.5) = 5, so the mean of the draws is known to 0.008.
        assert!((mean - 5.5).abs() < 0.04 && least == 1, "{mean}");
        let (drawn, smallest, most) = mean_of(&Counts::Pareto { shape: 1.1, min: 2, max: 55 });
        // P(n >= k) = ((2/k)^1.1 - (2/56)^1.1) / (1 - (2/56)^1.1); the mean is 2 and their sum from 3 on.
        let floor = libm::pow(2.0 / 56.0, 1.1);
        let exact =
            2.0 + (3..=55).map(|k| (libm::pow(2.0 / f64::from(k), 1.1) - floor) / (1.0 - floor)).sum::<f64>();
        assert!((drawn - exact).abs() < 0.05, "{drawn}, {exact}");
        assert_eq!((smallest, most), (2, 55));
    }

    #[test]
    fn invalid_distributions_are_refused() {
        let refusal = |counts: Counts| counts.sampler().unwrap_err().to_string();
        assert_eq!(refusal(Counts::Fixed(0)), "0 is too few: write at least 1");
        assert_eq!(
            refusal(Counts::Geometric { mean: 0.5 }),
            "a mean of 0.5; write a number from 1 to 1000000"
        );
        assert_eq!(
            refusal(Counts::Pareto { shape: 1.0, min: 3, max: 2 }),
            "from 3 to 2: min must be at least 1, and at most max"
        );
        assert_eq!(refusal(Counts::Fixed(u32::MAX)), "4294967295 is too many: write at most 1000000");
    }
}
