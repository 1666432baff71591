//! The cells of a card: scenarios with one judged link, and the metrics that judge a discipline there.
//!
//! A cell is a file in `scenarios/evaluate`, and a line here. Its rows in `cells.csv` name the metrics and
//! the smallest difference that matters in practice; the better direction is in the definition of a metric.

use std::collections::BTreeMap;

use giveway_measure::{Better, better};
use serde::Deserialize;

use crate::error::EvaluateError;
use crate::matters::Matters;
use crate::question::Question;

/// A scenario of a card.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The name: the group and the file, as in `rfc7928/ecn-on`.
    pub name: String,
    /// The scenario as TOML.
    pub scenario: String,
    /// The collection of tests that it comes from, such as `RFC 7928`.
    pub source: String,
    /// The place in that collection; may be empty.
    pub section: String,
    /// One line about it.
    pub title: String,
    /// Rate, round-trip times and traffic.
    pub shape: String,
    /// The metrics that judge a discipline.
    pub measures: Vec<JudgedMetric>,
}

/// A metric that judges a discipline.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedMetric {
    /// The question that it answers.
    pub question: Question,
    /// The name of the metric.
    pub metric: String,
    /// True if a higher value is better.
    pub high: bool,
    /// The smallest difference that matters.
    pub matters: Matters,
}

impl JudgedMetric {
    /// The difference between two values in units of what matters; positive if the second one is better.
    pub fn gain(&self, from: f64, to: f64) -> f64 {
        let change = if self.high { to - from } else { from - to };
        if change == 0.0 { 0.0 } else { change / self.matters.limit(from, to, self.high) }
    }

    /// The gain that counts in a sum over metrics: at most [`MAX_GAIN`] in both directions, so that no cell
    /// dominates. A metric that only one side has measured, such as the completion time of transfers that
    /// never ended, is the largest gain or loss. `None` if neither has measured it.
    pub fn counted_gain(&self, from: Option<f64>, to: Option<f64>) -> Option<f64> {
        match (from, to) {
            (None, None) => None,
            (Some(_), None) => Some(-MAX_GAIN),
            (None, Some(_)) => Some(MAX_GAIN),
            (Some(from), Some(to)) => Some(self.gain(from, to).clamp(-MAX_GAIN, MAX_GAIN)),
        }
    }
}

/// The largest gain of a metric that counts in a sum over metrics, in units of what matters.
pub const MAX_GAIN: f64 = 3.0;

impl Cell {
    /// The group of the cell.
    pub fn group(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }
}

macro_rules! cells {
    ($($name:literal,)*) => {
        /// The name and the scenario of every cell.
        static CELLS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../../scenarios/evaluate/", $name, ".toml"))),)*
        ];
    };
}

cells![
    "rfc7928/tcp-same-window",
    "rfc7928/tcp-initial-window",
    "rfc7928/aggressive-cubic",
    "rfc7928/aggressive-bbr",
    "rfc7928/unresponsive",
    "rfc7928/unresponsive-above-tcp",
    "rfc7928/unresponsive-below-tcp",
    "rfc7928/less-than-best-effort",
    "rfc7928/rtt-20-100",
    "rfc7928/rtt-5-100",
    "rfc7928/rtt-300-100",
    "rfc7928/burst-1-pages",
    "rfc7928/burst-2-pages-bulk",
    "rfc7928/burst-3-video-pages",
    "rfc7928/burst-4-video-pages-bulk",
    "rfc7928/congestion-mild",
    "rfc7928/congestion-medium",
    "rfc7928/congestion-heavy",
    "rfc7928/congestion-varying",
    "rfc7928/capacity-slow",
    "rfc7928/capacity-fast",
    "rfc7928/mix-light",
    "rfc7928/mix-full",
    "rfc7928/mix-both-directions",
    "rfc7928/packet-sizes",
    "rfc7928/ecn-on",
    "rfc7928/ecn-off",
    "rfc7928/scheduling",
    "rfc7928/range-low-rate",
    "rfc7928/range-high-rate",
    "rfc7928/range-short-path",
    "rfc7928/range-long-path",
    "rrul/rrul",
    "rrul/rrul-be",
    "rrul/tcp-1-down",
    "rrul/tcp-8-down",
    "rrul/tcp-12-down",
    "rrul/tcp-8-up",
    "rrul/rtt-fair",
    "rrul/voip-beside-bulk",
    "short-flows/load-50",
    "short-flows/load-70",
    "short-flows/load-90",
    "short-flows/elephant-mice",
    "short-flows/slow-uplink",
    "l4s/prague-beside-cubic",
    "l4s/rtt-bias",
    "l4s/step-prague",
    "l4s/step-cubic",
    "l4s/bursts",
    "varying/lte",
    "varying/satellite",
    "varying/wifi",
    "varying/step",
    "varying/policer",
    "varying/cable",
    "hostile/many-tiny-flows",
    "hostile/flood",
    "hostile/small-packets",
    "hostile/acks",
    "hostile/ecn-liar",
    "hostile/many-connections",
    "lockout/older-transfer",
    "lockout/overload",
    "lockout/late-starter",
];

/// The rows of all metrics.
const ROWS: &str = include_str!("../../../scenarios/evaluate/cells.csv");

/// A row of `cells.csv`.
#[derive(Deserialize)]
struct Row {
    cell: String,
    source: String,
    section: String,
    title: String,
    question: Question,
    metric: String,
    matters: Matters,
    shape: String,
}

/// All cells, in order.
///
/// # Panics
/// If `cells.csv` is wrong, which a test excludes.
pub fn cells() -> Vec<Cell> {
    let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in csv::Reader::from_reader(ROWS.as_bytes()).deserialize() {
        let row: Row = row.expect("every row of cells.csv can be read");
        rows.entry(row.cell.clone()).or_default().push(row);
    }
    let cell = |(name, scenario): &(&str, &str)| {
        let rows = rows.remove(*name).unwrap_or_default();
        let text = |of: fn(&Row) -> &String| rows.first().map(of).cloned().unwrap_or_default();
        let measure = |row: &Row| JudgedMetric {
            question: row.question,
            metric: row.metric.clone(),
            high: better(&row.metric) == Better::High,
            matters: row.matters,
        };
        Cell {
            name: (*name).to_owned(),
            scenario: (*scenario).to_owned(),
            source: text(|row| &row.source),
            section: text(|row| &row.section),
            title: text(|row| &row.title),
            shape: text(|row| &row.shape),
            measures: rows.iter().map(measure).collect(),
        }
    };
    CELLS.iter().map(cell).collect()
}

/// The place of a cell among all; `None` for a cell of the caller.
pub(crate) fn place(name: &str) -> Option<usize> {
    CELLS.iter().position(|(known, _)| *known == name)
}

/// The cells with these names. A name denotes a cell, a group, or the beginning of one before a star.
///
/// # Errors
/// If a name fits no cell.
pub fn chosen(names: &[String]) -> Result<Vec<Cell>, EvaluateError> {
    let all = cells();
    if names.is_empty() {
        return Ok(all);
    }
    let fits = |cell: &Cell, name: &str| match name.strip_suffix('*') {
        Some(beginning) => cell.name.starts_with(beginning),
        None => cell.name == name || cell.group() == name,
    };
    for name in names {
        if !all.iter().any(|cell| fits(cell, name)) {
            let mut known: Vec<&str> =
                all.iter().flat_map(|cell| [cell.name.as_str(), cell.group()]).collect();
            known.dedup();
            return Err(EvaluateError::unknown("cell or group of cells", name, &known));
        }
    }
    Ok(all.into_iter().filter(|cell| names.iter().any(|name| fits(cell, name))).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use giveway_scenario::Scenario;

    use super::*;

    /// Every file is a cell, every row belongs to one, and every cell has a metric.
    #[test]
    fn files_lines_and_rows_agree() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/evaluate");
        let mut files: Vec<String> = Vec::new();
        for group in fs::read_dir(&folder).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
            for file in fs::read_dir(group.path()).unwrap().flatten() {
                let (group, file) = (group.file_name(), file.file_name());
                files.push(format!(
                    "{}/{}",
                    group.to_string_lossy(),
                    file.to_string_lossy().trim_end_matches(".toml")
                ));
            }
        }
        files.sort();
        let cells = cells();
        let mut names: Vec<String> = cells.iter().map(|cell| cell.name.clone()).collect();
        names.sort();
        assert_eq!(files, names);
        let rows = csv::Reader::from_reader(ROWS.as_bytes()).into_deserialize::<Row>().count();
        assert_eq!(rows, cells.iter().map(|cell| cell.measures.len()).sum::<usize>());
        assert!(cells.iter().all(|cell| !cell.measures.is_empty() && !cell.title.is_empty()));
    }

    #[test]
    fn every_metric_is_defined_and_every_scenario_compares_disciplines() {
        for cell in cells() {
            for measure in &cell.measures {
                assert_ne!(better(&measure.metric), Better::Neither, "{}: {}", cell.name, measure.metric);
            }
            let scenario = Scenario::parse(&cell.scenario, "").unwrap();
            assert!(scenario.network().is_some() && scenario.compared().len() > 1, "{}", cell.name);
            assert!(cell.scenario.contains("[short]"), "{}", cell.name);
        }
    }

    #[test]
    fn cells_are_chosen_by_name_group_and_beginning() {
        let names = |names: &[&str]| -> Vec<String> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&names).unwrap().into_iter().map(|cell| cell.name).collect()
        };
        assert_eq!(names(&["rfc7928/ecn-on"]), ["rfc7928/ecn-on"]);
        assert_eq!(names(&["l4s"]).len(), 5);
        assert_eq!(names(&["rfc7928/burst-*"]).len(), 4);
        assert_eq!(names(&[]).len(), cells().len());
        let error = chosen(&["rrull".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("there is no cell or group of cells rrull; did you mean rrul?"), "{error}");
    }
}
