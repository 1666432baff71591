//! Simulation against reality: the results of one scenario, with the same arrivals, from both backends side
//! by side.
//!
//! The table compares flow completion times by size, and sojourn times of small packets, each with the median
//! and the 95th percentile. A row shows the mean over the seeds with its 95 % interval from either backend,
//! and the ratio. Seeds are pairs, since a seed fixes the arrivals: the ratio is the geometric mean of the
//! ratios of the seeds. Its interval, by Student's t of their logarithms, is the range of chance.

use std::fmt::Write as _;

use giveway_measure::{DisciplineRow, Estimate, Table, label};
use serde_json::{Value, json};

/// One metric of one discipline from both backends.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The spec of the discipline.
    pub qdisc: String,
    /// The name of the metric.
    pub metric: String,
    /// The measurement on the test bed.
    pub reality: Estimate,
    /// The result of the simulation.
    pub simulation: Estimate,
    /// The ratio of reality to simulation; `None` if no seed has both.
    pub ratio: Option<Ratio>,
}

/// A ratio of reality to simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The geometric mean over the seeds.
    pub mean: f64,
    /// The 95 % interval; `None` with fewer than two seeds.
    pub interval: Option<(f64, f64)>,
}

impl Ratio {
    /// The ratio of pairs, reality first. Incomplete pairs, and pairs with a zero, do not count.
    pub fn of(pairs: impl Iterator<Item = (Option<f64>, Option<f64>)>) -> Option<Ratio> {
        let logs = pairs.filter_map(|pair| match pair {
            (Some(reality), Some(simulation)) if reality > 0.0 && simulation > 0.0 => {
                Some(Some(libm::log(reality / simulation)))
            }
            _ => None,
        });
        let estimate = Estimate::over(logs.collect());
        let mean = estimate.mean?;
        let interval = estimate.ci95.map(|half| (libm::exp(mean - half), libm::exp(mean + half)));
        Some(Ratio { mean: libm::exp(mean), interval })
    }
}

/// The names of the compared metrics.
fn metrics(row: &DisciplineRow) -> Vec<String> {
    let names = row.metrics.iter().map(|(name, _)| name.as_str());
    let compared = |name: &&str| {
        let times = name.starts_with("fct_") && !name.starts_with("fct_aged_");
        let both = ["fct_p50_s", "fct_p95_s"].contains(name);
        let small = name.starts_with("small_sojourn_");
        (times && !both || small) && (name.ends_with("_p50_s") || name.ends_with("_p95_s"))
    };
    names.filter(compared).map(str::to_owned).collect()
}

/// Compares the tables of both backends: disciplines that both have, in the order of the first.
pub fn lay(reality: &Table, simulation: &Table) -> Vec<Line> {
    let mut lines = Vec::new();
    for real in &reality.rows {
        let Some(simulated) = simulation.rows.iter().find(|row| row.qdisc == real.qdisc) else { continue };
        for metric in metrics(simulated) {
            let none = || Estimate::over(vec![None; real.seeds.len()]);
            let of = |row: &DisciplineRow| row.metric(&metric).cloned().unwrap_or_else(none);
            let (reality, simulation) = (of(real), of(simulated));
            let by_seed = real.seeds.iter().zip(&reality.per_seed).map(|(seed, value)| {
                let at = simulated.seeds.iter().position(|other| other == seed);
                (*value, at.and_then(|at| simulation.per_seed[at]))
            });
            let ratio = Ratio::of(by_seed);
            lines.push(Line { qdisc: real.qdisc.clone(), metric, reality, simulation, ratio });
        }
    }
    lines
}

/// A time with its interval, in milliseconds.
fn time(estimate: &Estimate) -> String {
    match (estimate.mean, estimate.ci95) {
        (None, _) => "-".to_owned(),
        (Some(mean), None) => format!("{:.2}", mean * 1e3),
        (Some(mean), Some(half)) => format!("{:.2} ± {:.2}", mean * 1e3, half * 1e3),
    }
}

fn ratio(ratio: Option<Ratio>) -> String {
    match ratio {
        None => "-".to_owned(),
        Some(Ratio { mean, interval: None }) => format!("{mean:.2}"),
        Some(Ratio { mean, interval: Some((low, high)) }) => format!("{mean:.2} [{low:.2}, {high:.2}]"),
    }
}

const HEADS: [&str; 5] = ["discipline", "ms", "reality", "simulation", "reality / simulation"];

fn cells(lines: &[Line]) -> Vec<[String; 5]> {
    let cells = |line: &Line| {
        [
            line.qdisc.clone(),
            label(&line.metric),
            time(&line.reality),
            time(&line.simulation),
            ratio(line.ratio),
        ]
    };
    lines.iter().map(cells).collect()
}

/// The table for a terminal.
pub fn text(lines: &[Line]) -> String {
    let rows = cells(lines);
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.chain([HEADS[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let mut out = String::new();
    let mut put = |row: [&str; 5]| {
        let mut line = String::new();
        for (column, trial) in row.into_iter().enumerate() {
            let space = widths[column] - trial.chars().count();
            // Names to the left, numbers to the right.
            let (before, after) = if column < 2 { (0, space) } else { (space, 0) };
            write!(line, "{:before$}{trial}{:after$}  ", "", "").expect("a text takes everything");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    };
    put(HEADS);
    let mut last = "";
    for row in &rows {
        let name = if row[0] == last { "" } else { &row[0] };
        put([name, &row[1], &row[2], &row[3], &row[4]]);
        last = &row[0];
    }
    out
}

/// The table as Markdown. `about` describes the run.
pub fn markdown(about: &str, lines: &[Line]) -> String {
    let mut out = format!("# Simulation against reality\n\n{about}\n\n");
    out.push_str(
        "Milliseconds; means over the seeds with their 95 % intervals. The ratio is the geometric mean of the seeds' \
         ratios.\n\n",
    );
    out.push_str(&format!("| {} |\n|---|---|---:|---:|---:|\n", HEADS.join(" | ")));
    for row in cells(lines) {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    out
}

/// The comparison as JSON: a list with an object for each discipline and metric. Times are in milliseconds.
pub fn json(lines: &[Line]) -> Value {
    let line = |line: &Line| {
        json!({
            "qdisc": line.qdisc,
            "metric": line.metric,
            "reality": line.reality,
            "simulation": line.simulation,
            "ratio": line.ratio.map(|ratio| ratio.mean),
            "ratio_interval": line.ratio.and_then(|ratio| ratio.interval).map(|(low, high)| [low, high]),
        })
    };
    Value::Array(lines.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use giveway_measure::{Fingerprint, Metrics, Summary, Trial};

    use super::*;

    /// A discipline, a seed, and its metrics.
    type Run<'a> = (&'a str, u64, &'a [(&'a str, Option<f64>)]);

    fn table(values: &[Run<'_>]) -> Table {
        let run = |(qdisc, seed, all): &Run<'_>| {
            let mut metrics = Metrics::default();
            all.iter().for_each(|(name, value)| metrics.push(*name, *value));
            let trial = Trial { qdisc: (*qdisc).to_owned(), seed: *seed };
            (trial, Summary { fingerprint: Fingerprint::EMPTY, events: 0, metrics })
        };
        Table::new(&values.iter().map(run).collect::<Vec<_>>())
    }

    /// Ratios 2 and 8: their geometric mean is 4, the deviation of the logarithms ln 4 / √2, and t = 12.7062
    /// for one degree.
    #[test]
    fn ratios_by_hand() {
        let ratio =
            Ratio::of([(Some(2.0), Some(1.0)), (Some(4.0), Some(0.5)), (None, Some(1.0))].into_iter())
                .unwrap();
        assert!((ratio.mean - 4.0).abs() < 1e-12);
        let half = 12.706_205 * libm::log(4.0) / 2.0;
        let (low, high) = ratio.interval.unwrap();
        assert!((libm::log(high / 4.0) - half).abs() < 1e-5 && (libm::log(4.0 / low) - half).abs() < 1e-5);
        let near = Ratio::of([(Some(2.0), Some(1.0)), (Some(2.0), Some(1.0))].into_iter()).unwrap();
        assert!(near.interval.unwrap().0 > 1.99, "the ratio of both seeds is 2");
        assert_eq!(Ratio::of([(None, Some(1.0)), (Some(0.0), Some(1.0))].into_iter()), None);
    }

    #[test]
    fn seeds_are_pairs_and_disciplines_of_one_backend_are_left_out() {
        let class = "fct_le10kB_p50_s";
        let real = table(&[
            (
                "fifo",
                1,
                &[(class, Some(0.2)), ("small_sojourn_p95_s", Some(0.01)), ("goodput_bps", Some(9.0))],
            ),
            ("fifo", 2, &[(class, Some(0.4)), ("small_sojourn_p95_s", None)]),
            ("kernel:tbf", 1, &[(class, Some(9.0))]),
        ]);
        let simulated = table(&[
            (
                "fifo",
                2,
                &[
                    (class, Some(0.2)),
                    ("fct_aged_le10kB_mean_s", Some(1.0)),
                    ("small_sojourn_p95_s", Some(0.01)),
                ],
            ),
            ("fifo", 1, &[(class, Some(0.1)), ("fct_p50_s", Some(5.0)), ("small_sojourn_p95_s", Some(0.02))]),
        ]);
        let lines = lay(&real, &simulated);
        let names: Vec<(&str, &str)> = lines.iter().map(|l| (l.qdisc.as_str(), l.metric.as_str())).collect();
        assert_eq!(names, [("fifo", class), ("fifo", "small_sojourn_p95_s")]);
        // Paired by seed both are 2; paired by place they would be 1 and 4.
        let ratio = lines[0].ratio.unwrap();
        assert!((ratio.mean - 2.0).abs() < 1e-12 && (ratio.interval.unwrap().1 - 2.0).abs() < 1e-9);
        assert!((lines[1].ratio.unwrap().mean - 0.5).abs() < 1e-12);
        let text = text(&lines);
        assert!(
            text.contains("median completion time of transfers in the class up to 10 kB")
                && text.contains("2.00 [2.00, 2.00]"),
            "{text}"
        );
        assert!(
            markdown("about", &lines)
                .contains("| fifo | 95th percentile of the sojourn times of small packets | 10.00 |")
        );
        assert_eq!(json(&lines)[1]["reality"]["per_seed"], json!([0.01, null]));
    }
}
