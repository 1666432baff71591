//! The smallest difference that matters in practice: `5%`, `1 Mbit/s`, or `10% or 1ms`.

use std::fmt;
use std::str::FromStr;

use giveway_qdisc::{Rate, Span};
use serde::Deserialize;

/// The smallest difference that matters: the larger one of a share of the better value, and a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Matters {
    /// A share of the better value.
    pub share: f64,
    /// A number in the unit of the metric.
    pub absolute: f64,
}

impl Matters {
    /// The smallest difference that matters between two values of a metric.
    pub fn limit(&self, one: f64, other: f64, high: bool) -> f64 {
        let better = if high { one.max(other) } else { one.min(other) };
        (self.share * better.abs()).max(self.absolute)
    }
}

/// A difference that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a difference; write for example \"5%\", \"1 Mbit/s\" or \"10% or 1ms\"")]
pub struct MattersError(String);

impl FromStr for Matters {
    type Err = MattersError;

    fn from_str(text: &str) -> Result<Matters, MattersError> {
        let mut matters = Matters::default();
        for part in text.split(" or ").map(str::trim) {
            if let Some(percent) = part.strip_suffix('%') {
                let percent: f64 = percent.trim().parse().map_err(|_| MattersError(text.to_owned()))?;
                matters.share = percent / 100.0;
            } else {
                matters.absolute = number(part).ok_or_else(|| MattersError(text.to_owned()))?;
            }
        }
        if matters.share < 0.0 || matters.absolute < 0.0 || matters == Matters::default() {
            return Err(MattersError(text.to_owned()));
        }
        Ok(matters)
    }
}

impl TryFrom<String> for Matters {
    type Error = MattersError;

    fn try_from(text: String) -> Result<Matters, MattersError> {
        text.parse()
    }
}

/// A number, a time in seconds, or a rate in bit/s.
fn number(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok();
    let time = || text.parse::<Span>().ok().map(Span::as_s);
    let rate = || text.parse::<Rate>().ok().map(|rate| rate.as_bit() as f64);
    plain.or_else(time).or_else(rate).filter(|number| number.is_finite())
}

impl fmt::Display for Matters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.share > 0.0, self.absolute > 0.0) {
            (true, false) => write!(f, "{} %", self.share * 100.0),
            (false, _) => write!(f, "{}", self.absolute),
            (true, true) => write!(f, "{} % or {}", self.share * 100.0, self.absolute),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_one_counts() {
        let matters: Matters = "10% or 1ms".parse().unwrap();
        assert_eq!(matters, Matters { share: 0.1, absolute: 0.001 });
        // A tenth of the better value, 50 ms, is more than 1 ms.
        assert!((matters.limit(0.1, 0.05, false) - 0.005).abs() < 1e-12);
        assert_eq!(matters.limit(0.004, 0.002, false), 0.001);
        assert_eq!("5%".parse::<Matters>().unwrap().limit(2.0, 4.0, true), 0.2);
        assert_eq!("0.5 Mbit/s".parse::<Matters>().unwrap().absolute, 500_000.0);
        assert_eq!("0.02".parse::<Matters>().unwrap().absolute, 0.02);
    }

    #[test]
    fn mistakes_are_named() {
        for text in ["", "much", "-5%", "0", "5% or", "5 apples"] {
            assert!(text.parse::<Matters>().unwrap_err().to_string().contains("write for example"), "{text}");
        }
    }
}
