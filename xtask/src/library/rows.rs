//! The predictions of a cell next to its measurements.

use std::fs;

use serde_json::Value;

use super::advice::{self, Claim};
use super::cells::{Cell, FOLDER, QDISCS};
use super::measure::{BOUNDS, Measure, QUANTILES};
use crate::repository::Repository;

/// A measure with a discipline, in all quantiles.
pub struct Prediction {
    /// Name of the cell.
    pub cell: String,
    /// Name of the discipline.
    pub qdisc: &'static str,
    /// Name of the measure.
    pub measure: &'static str,
    /// Means of the measured runs of each quantile, in seconds.
    pub measured: Vec<f64>,
    /// Largest distance of a run from the mean, in percent.
    pub apart: Vec<f64>,
    /// Predictions, in seconds.
    pub predicted: Vec<f64>,
}

impl Prediction {
    /// Error of the prediction, in percent of the measured mean.
    pub fn error(&self, quantile: usize) -> f64 {
        100.0 * (self.predicted[quantile] / self.measured[quantile] - 1.0)
    }

    /// For each quantile: true if the error is within its bound.
    pub fn met(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.measured.len()).map(|at| self.error(at).abs() <= BOUNDS[at])
    }

    /// The row of the table.
    pub fn text(&self) -> String {
        let all =
            |of: &dyn Fn(usize) -> String| (0..self.measured.len()).map(of).collect::<Vec<_>>().join(", ");
        let met: Vec<&str> = self.met().map(|met| if met { "met" } else { "missed" }).collect();
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            self.cell,
            self.qdisc,
            self.measure,
            all(&|at| format!("{:.1}", self.measured[at] * 1e3)),
            all(&|at| format!("{:.0}", self.apart[at])),
            all(&|at| format!("{:.1}", self.predicted[at] * 1e3)),
            all(&|at| format!("{:+.0}", self.error(at))),
            met.join(", ")
        )
    }
}

/// Heads of the table.
pub fn head() -> &'static str {
    "| capture | qdisc | | measured, ms: median, p95, p99 | runs differ from it by, % | predicted, ms | error, % | bounds 10 %, 20 %, 35 % |\n\
     |---|---|---|---:|---:|---:|---:|---|"
}

/// True if a cell was recorded.
pub fn is_recorded(repository: &Repository, cell: &Cell) -> bool {
    repository.root.join(format!("{FOLDER}/{}.json", cell.name())).exists()
}

/// Predicts from the capture of a cell. Needs the program `giveway`. Returns the predictions, and what the
/// recommendation claims.
///
/// # Errors
/// If the prediction fails, or a number is missing.
pub fn of(repository: &Repository, cell: &Cell) -> Result<(Vec<Prediction>, Vec<Claim>), String> {
    let name = cell.name();
    let file = format!("{FOLDER}/{name}.json");
    let text = fs::read_to_string(repository.root.join(&file)).map_err(|error| format!("{file}: {error}"))?;
    let measured: Value = serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
    let link = predict(repository, cell)?;
    let predicted = &link["table"]["results"];
    let mut rows = Vec::new();
    for (at, (qdisc, _)) in QDISCS.iter().enumerate() {
        for measure in cell.measures() {
            let runs = measured[qdisc].as_array().filter(|runs| !runs.is_empty());
            let runs = runs.ok_or_else(|| format!("{file}: no runs of {qdisc}"))?;
            rows.push(row((&name, qdisc, measure), runs, &predicted[at]["metrics"])?);
        }
    }
    Ok((rows, advice::claims(cell, &link["recommendation"], &measured)))
}

fn row(
    (cell, qdisc, measure): (&str, &'static str, &Measure),
    runs: &[Value],
    predicted: &Value,
) -> Result<Prediction, String> {
    let mut row = Prediction {
        cell: cell.to_owned(),
        qdisc,
        measure: measure.name,
        measured: Vec::new(),
        apart: Vec::new(),
        predicted: Vec::new(),
    };
    for (end, _) in &QUANTILES[..measure.quantiles] {
        let number = |value: &Value, metric: &str| {
            value.as_f64().ok_or_else(|| format!("{cell}, {qdisc}: no {metric}"))
        };
        let metric = format!("{}{end}", measure.measured);
        let times: Result<Vec<f64>, String> = runs.iter().map(|run| number(&run[&metric], &metric)).collect();
        let times = times?;
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let farthest = times.iter().map(|time| (time - mean).abs()).fold(0.0, f64::max);
        row.measured.push(mean);
        row.apart.push(100.0 * farthest / mean);
        let metric = format!("{}{end}", measure.predicted);
        row.predicted.push(number(&predicted[&metric]["mean"], &metric)? + measure.path);
    }
    Ok(row)
}

/// The results of `giveway compare` for the link.
fn predict(repository: &Repository, cell: &Cell) -> Result<Value, String> {
    let capture = format!("{FOLDER}/{}.pcapng.gz", cell.name());
    let [up, down] = cell.rates();
    let mut words = vec!["compare", &capture, "--rate-up", &up, "--rate-down", &down, "--json", "--quiet"];
    words.extend(["--congestion", cell.congestion()]);
    // All hosts of a side have one MAC address, so many of them look like those behind a gateway.
    words.extend(["--link", "192.168.0.0/16"]);
    let ours: Vec<[String; 2]> = (0..QDISCS.len()).map(|discipline| cell.ours(discipline)).collect();
    ours.iter().for_each(|[up, down]| words.extend(["--qdisc-up", up, "--qdisc-down", down]));
    let program = repository.built("debug", "giveway")?.to_string_lossy().into_owned();
    let results: Value =
        serde_json::from_str(&repository.output(&program, &words)?).map_err(|error| error.to_string())?;
    Ok(results["links"][0].clone())
}
