//! The recommendation for a home next to what was measured with its setup.
//!
//! A recommendation has a table: each time and loss now, with the setup, and a verdict. A verdict is true if
//! the measured value changes in this direction, by any amount; "not certain" says nothing and is always
//! true.

use serde_json::Value;

use super::cells::Cell;

/// A line of the table of a recommendation, with what was measured.
pub struct Claim {
    /// Name of the cell.
    pub cell: String,
    /// The setup, as in `cake upstream only`.
    pub setup: String,
    /// The metric and the direction.
    pub name: String,
    /// The verdict.
    pub verdict: String,
    /// The predicted values, with the fifo and with the setup.
    pub predicted: [f64; 2],
    /// The measured values, with the fifo and with the setup.
    pub measured: [f64; 2],
}

/// The measured metric of each one that a recommendation has, its direction, and the delay of the path that
/// the recommendation does not count, in seconds.
const METRICS: [(&str, &str, &str, f64); 8] = [
    ("page_load_p50_s", "downstream", "fct_le3MB_p50_s", 0.0),
    ("page_load_p95_s", "downstream", "fct_le3MB_p95_s", 0.0),
    ("page_load_p99_s", "downstream", "fct_le3MB_p99_s", 0.0),
    ("fct_gt3MB_p50_s", "upstream", "fct_gt3MB_p50_s", 0.0),
    ("voice_delay_p99_s", "upstream", "src.call-up.delay_p99_s", 0.015),
    ("voice_delay_p99_s", "downstream", "src.call-down.delay_p99_s", 0.015),
    ("voice_loss", "upstream", "src.call-up.loss", 0.0),
    ("voice_loss", "downstream", "src.call-down.loss", 0.0),
];

/// The claims of a recommendation; none if its setup was not measured. `measured` has the runs of a cell.
pub fn claims(cell: &Cell, recommendation: &Value, measured: &Value) -> Vec<Claim> {
    let setup = recommendation["tried"].as_str().unwrap_or_default();
    let mean = |setup: &str, metric: &str| {
        let runs = measured[setup].as_array()?;
        let values: Option<Vec<f64>> = runs.iter().map(|run| run[metric].as_f64()).collect();
        values.filter(|all| !all.is_empty()).map(|all| all.iter().sum::<f64>() / all.len() as f64)
    };
    let claim = |effect: &Value| {
        let text = |key: &str| effect[key].as_str().unwrap_or_default();
        let is_it =
            |known: &&(&str, &str, &str, f64)| known.0 == text("metric") && known.1 == text("direction");
        let (metric, direction, as_measured, path) = METRICS.iter().find(is_it)?;
        Some(Claim {
            cell: cell.name(),
            setup: setup.to_owned(),
            name: format!("{metric} {direction}"),
            verdict: text("verdict").to_owned(),
            predicted: [effect["before"].as_f64()? + path, effect["after"].as_f64()? + path],
            measured: [mean("fifo", as_measured)?, mean(setup, as_measured)?],
        })
    };
    recommendation["effects"].as_array().into_iter().flatten().filter_map(claim).collect()
}

impl Claim {
    /// True if the measured value changes as the verdict says.
    pub fn is_true(&self) -> bool {
        let [before, after] = self.measured;
        match &*self.verdict {
            "better" => after < before,
            "worse" | "price of the shaper" => after > before,
            _ => true,
        }
    }

    /// The row of the table.
    pub fn text(&self) -> String {
        let (scale, unit) = if self.name.contains("loss") { (1e2, "%") } else { (1e3, "ms") };
        let pair =
            |[before, after]: [f64; 2]| format!("{:.1} to {:.1} {unit}", scale * before, scale * after);
        format!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            self.cell,
            self.setup,
            self.name,
            pair(self.measured),
            pair(self.predicted),
            self.verdict,
            if self.is_true() { "true" } else { "false" }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_true_if_the_measured_value_changes_so() {
        let holds = |verdict: &str, measured| {
            let (cell, setup, name) = (String::new(), String::new(), String::new());
            Claim { cell, setup, name, verdict: verdict.to_owned(), predicted: [1.0; 2], measured }.is_true()
        };
        assert!(holds("better", [2.0, 1.0]) && !holds("better", [1.0, 2.0]));
        assert!(holds("worse", [1.0, 2.0]) && !holds("price of the shaper", [2.0, 1.0]));
        assert!(holds("not certain", [2.0, 1.0]) && holds("not certain", [1.0, 2.0]));
    }
}
