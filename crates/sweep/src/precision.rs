//! `--until "fct_p99 within 5 %"`: seeds until the interval of a metric is narrow enough.

use std::fmt;
use std::str::FromStr;

use giveway_measure::{completed, nearest, t_quantile};

/// The precision of a metric that ends the repetitions of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// The name of the metric.
    pub metric: String,
    /// Half the width of its 95 % confidence interval, as a share of the mean.
    pub within: f64,
}

/// A wrong precision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--until {text}: {wrong}; write for example --until \"fct_p99 within 5 %\"")]
pub struct PrecisionError {
    text: String,
    wrong: String,
}

/// Minimum number of seeds from which an interval is estimated.
pub const FEWEST: usize = 5;

impl Precision {
    /// True if the interval over these values is narrow enough. Too few values are not.
    pub fn reached(&self, values: &[f64]) -> bool {
        if values.len() < FEWEST {
            return false;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance =
            values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
        let half = t_quantile(values.len() as u32 - 1, 0.95) * libm::sqrt(variance / count);
        half <= self.within * mean.abs()
    }

    /// The number of seeds of the next attempt after `seeds`.
    pub fn next(seeds: usize) -> usize {
        (seeds + seeds.div_ceil(2)).max(FEWEST)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} within {} %", self.metric, self.within * 100.0)
    }
}

impl FromStr for Precision {
    type Err = PrecisionError;

    fn from_str(text: &str) -> Result<Precision, PrecisionError> {
        let wrong = |wrong: String| PrecisionError { text: text.to_owned(), wrong };
        let Some((metric, share)) = text.split_once(" within ") else {
            return Err(wrong("it needs a metric and a share".to_owned()));
        };
        let metric = metric.trim();
        let Some(metric) = completed(metric) else {
            let near = nearest(metric).map(|near| format!("; did you mean {near}?"));
            return Err(wrong(format!("there is no metric {metric}{}", near.unwrap_or_default())));
        };
        let share = share.trim();
        let number =
            share.strip_suffix('%').map(str::trim).ok_or_else(|| wrong(format!("{share} has no %")))?;
        let percent: f64 = number.parse().map_err(|_| wrong(format!("{number} is not a number")))?;
        if !(percent > 0.0 && percent <= 100.0) {
            return Err(wrong(format!(
                "{percent} % is not a precision: more than 0 and at most 100 are possible"
            )));
        }
        Ok(Precision { metric, within: percent / 100.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_their_unit_are_found() {
        let precision: Precision = "fct_p99 within 5 %".parse().unwrap();
        assert_eq!(precision, Precision { metric: "fct_p99_s".into(), within: 0.05 });
        assert_eq!(precision.to_string(), "fct_p99_s within 5 %");
        assert_eq!(
            "src.call.delay_p95 within 2%".parse::<Precision>().unwrap().metric,
            "src.call.delay_p95_s"
        );
    }

    #[test]
    fn wrong_precisions_say_what_to_write() {
        for (text, part) in [
            ("fct_p99_s", "needs a metric and a share"),
            ("fct_p98_s within 5 %", "no metric fct_p98_s"),
            ("fct_p99_s within 5", "5 has no %"),
            ("fct_p99_s within x %", "x is not a number"),
            ("fct_p99_s within 0 %", "0 % is not a precision"),
        ] {
            let error = text.parse::<Precision>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("write for example"), "{text}: {error}");
        }
    }

    /// Values 9 to 11 have the mean 10 and the standard deviation 0.7906; t is 2.776 for 4 degrees of
    /// freedom, so half the width is 0.9816.
    #[test]
    fn the_interval_is_that_of_student() {
        let values = [9.0, 9.5, 10.0, 10.5, 11.0];
        let within = |share| Precision { metric: "x".into(), within: share };
        assert!(within(0.0982).reached(&values));
        assert!(!within(0.0981).reached(&values));
        assert!(!within(1.0).reached(&values[..4]));
        assert_eq!([0, 5, 8, 12].map(Precision::next), [5, 8, 12, 18]);
    }
}
