//! Means over seeds with their uncertainty.

use serde_json::Value;

/// A mean, and half the width of its 95 % confidence interval; `None` for a single value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    pub mean: f64,
    pub half: Option<f64>,
}

impl Mean {
    /// The mean of independent values, with Student's t.
    pub fn of(values: &[f64]) -> Mean {
        // Quantiles of 97.5 % for 1 to 9 degrees of freedom.
        const T: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        let half = |t: f64| t * (squares / (count - 1.0) / count).sqrt();
        let freedom = values.len().saturating_sub(1);
        Mean { mean, half: (freedom > 0).then(|| half(T[freedom.min(T.len()) - 1])) }
    }

    /// As in `12.3 ± 0.4`.
    pub fn text(&self, digits: usize) -> String {
        let half = self.half.map_or_else(String::new, |half| format!(" ± {half:.digits$}"));
        format!("{:.digits$}{half}", self.mean)
    }
}

/// The values of a metric, one for each seed, of the discipline at a position of the results.
pub fn per_seed(results: &Value, discipline: usize, metric: &str) -> Result<Vec<f64>, String> {
    let row = &results["results"][discipline];
    let values = row["metrics"][metric]["per_seed"].as_array();
    let values: Option<Vec<f64>> = values.map(|all| all.iter().filter_map(Value::as_f64).collect());
    let seeds = row["seeds"].as_u64().unwrap_or(0) as usize;
    values
        .filter(|values| seeds > 0 && values.len() == seeds)
        .ok_or_else(|| format!("{} has no {metric} for some seed", row["qdisc"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_the_interval_of_student() {
        // By hand: the deviations are -1, 0 and 1, so the variance is 1 and the half width 4.303 / sqrt(3).
        let mean = Mean::of(&[1.0, 2.0, 3.0]);
        assert_eq!(mean.mean, 2.0);
        assert!((mean.half.unwrap() - 2.4843).abs() < 1e-4);
        assert_eq!(mean.text(2), "2.00 ± 2.48");
        assert_eq!(Mean::of(&[1.5]).text(1), "1.5");
    }
}
