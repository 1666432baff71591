//! Compares Giveway's `cake` in `giveway live` with the kernel's on the same traffic
//! (`scenarios/testbed/cake-kernel.toml`).

use serde_json::Value;

use super::numbers::{Mean, per_seed};
use crate::repository::Done;

/// Sources with endless downloads: the one of the first host, then the four of the second host.
const DOWNLOADS: [&str; 5] = ["a", "b1", "b2", "b3", "b4"];
/// All sources.
const SOURCES: [&str; 7] = ["a", "b1", "b2", "b3", "b4", "call", "files"];
/// One-way delay of the path without queues, in milliseconds.
const PATH_MS: f64 = 10.0;
/// Largest difference between two shares of the link, in percentage points.
const SHARE_BOUND: f64 = 2.0;
/// Largest difference of the 95th percentile of the call's delay, relative to the kernel's, in percent.
const DELAY_BOUND: f64 = 10.0;
/// Largest difference of all data, relative to the kernel's, in percent.
const DATA_BOUND: f64 = 1.0;

/// The script of the machine.
pub fn script(quick: bool) -> String {
    let flag = if quick { " --short" } else { "" };
    format!("bed cake scenarios/testbed/cake-kernel.toml --attempts 1{flag}\n")
}

/// A row of the table: a number of both disciplines, for each seed.
struct Row {
    name: String,
    digits: usize,
    ours: Vec<f64>,
    kernel: Vec<f64>,
    /// Largest difference of the means, with its unit.
    bound: Option<Bound>,
}

#[derive(Clone, Copy)]
enum Bound {
    /// In the unit of the row.
    Absolute(f64),
    /// In percent of the kernel's number.
    Percent(f64),
}

impl Row {
    /// The difference of the two means in the unit of the bound. The arrivals of a seed are the same for both
    /// disciplines, so the differences of the seeds have the interval.
    fn difference(&self) -> Mean {
        let relative = matches!(self.bound, Some(Bound::Percent(_)));
        let kernel = Mean::of(&self.kernel).mean;
        let scale = if relative { 100.0 / kernel } else { 1.0 };
        let pairs = self.ours.iter().zip(&self.kernel);
        Mean::of(&pairs.map(|(ours, kernel)| (ours - kernel) * scale).collect::<Vec<f64>>())
    }

    fn holds(&self) -> bool {
        match self.bound {
            Some(Bound::Absolute(bound) | Bound::Percent(bound)) => self.difference().mean.abs() <= bound,
            None => true,
        }
    }

    fn text(&self) -> String {
        let Row { name, digits, ours, kernel, bound } = self;
        let (ours, kernel) = (Mean::of(ours).text(*digits), Mean::of(kernel).text(*digits));
        let difference = self.difference();
        let (difference, bound) = match bound {
            Some(Bound::Absolute(bound)) => (difference.text(*digits), format!("{bound}")),
            Some(Bound::Percent(bound)) => (format!("{} %", difference.text(1)), format!("{bound} %")),
            None => (difference.text(*digits), "-".to_owned()),
        };
        let verdict = if self.holds() { "" } else { ", missed" };
        format!("| {name} | {ours} | {kernel} | {difference} | {bound}{verdict} |\n")
    }
}

/// The table in Markdown, and whether all bounds hold. One short run is a small sample, so its bounds are
/// twice as wide.
///
/// # Errors
/// If a number is missing in the results.
pub fn judge(results: &Value, quick: bool) -> Result<(String, Done), String> {
    let rows = rows(results, if quick { 2.0 } else { 1.0 })?;
    let mut table =
        "| | `cake` | `kernel:cake` | difference | bound |\n|---|---:|---:|---:|---:|\n".to_owned();
    rows.iter().for_each(|row| table.push_str(&row.text()));
    let missed: Vec<&str> = rows.iter().filter(|row| !row.holds()).map(|row| &*row.name).collect();
    let judgement = match missed.is_empty() {
        true => Ok(()),
        false => Err(format!("cake differs from the kernel's by more than the bound: {}", missed.join("; "))),
    };
    Ok((table, judgement))
}

fn rows(results: &Value, wider: f64) -> Result<Vec<Row>, String> {
    // For each source, the values of all seeds.
    type Goodputs = Vec<Vec<f64>>;
    let goodputs = |discipline: usize| -> Result<Goodputs, String> {
        let of = |source: &&str| per_seed(results, discipline, &format!("src.{source}.goodput_bps"));
        SOURCES.iter().map(of).collect()
    };
    let (ours, kernel) = (goodputs(0)?, goodputs(1)?);
    // The share of some sources in all data, in percent.
    let share = |goodputs: &Goodputs, which: &[usize]| -> Vec<f64> {
        let sum = |seed: usize, which: &[usize]| which.iter().map(|at| goodputs[*at][seed]).sum::<f64>();
        let all: Vec<usize> = (0..SOURCES.len()).collect();
        (0..goodputs[0].len()).map(|seed| 100.0 * sum(seed, which) / sum(seed, &all)).collect()
    };
    let bound = Some(Bound::Absolute(SHARE_BOUND * wider));
    let row = |name: &str, which: &[usize]| Row {
        name: name.to_owned(),
        digits: 2,
        ours: share(&ours, which),
        kernel: share(&kernel, which),
        bound,
    };
    let mut rows = vec![
        row("host with one download, % of the data", &[0]),
        row("host with four downloads, % of the data", &[1, 2, 3, 4]),
    ];
    for (at, name) in DOWNLOADS.iter().enumerate().skip(1) {
        rows.push(row(&format!("its download {name}, % of the data"), &[at]));
    }
    let sum = |goodputs: &Goodputs| -> Vec<f64> {
        let of = |seed: usize| goodputs.iter().map(|of| of[seed]).sum::<f64>() / 1e6;
        (0..goodputs[0].len()).map(of).collect()
    };
    rows.push(Row {
        name: "all data, Mbit/s".to_owned(),
        digits: 3,
        ours: sum(&ours),
        kernel: sum(&kernel),
        bound: Some(Bound::Percent(DATA_BOUND * wider)),
    });
    let mut time = |name: &str, metric: &str, less: f64, bound: Option<Bound>| -> Done {
        let of = |discipline: usize| -> Result<Vec<f64>, String> {
            Ok(per_seed(results, discipline, metric)?.into_iter().map(|s| s * 1e3 - less).collect())
        };
        rows.push(Row { name: name.to_owned(), digits: 2, ours: of(0)?, kernel: of(1)?, bound });
        Ok(())
    };
    let p95 = "src.call.delay_p95_s";
    time("call, median delay, ms", "src.call.delay_p50_s", 0.0, None)?;
    time("call, p95 of the delay, ms", p95, 0.0, Some(Bound::Percent(DELAY_BOUND * wider)))?;
    time("call, p95 without the path, ms", p95, PATH_MS, None)?;
    time("call, p99 of the delay, ms", "src.call.delay_p99_s", 0.0, None)?;
    time("files, median completion time, ms", "src.files.fct_p50_s", 0.0, None)?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Results of one seed: the host with four downloads gets `four` Mbit/s, and p95 of the call is `delay`.
    fn discipline(four: f64, delay: f64) -> Value {
        let metric = |value: f64| json!({ "per_seed": [value] });
        let mut metrics = serde_json::Map::new();
        for source in SOURCES {
            let mbit = if source.starts_with('b') { four / 4.0 } else { 4.0 };
            metrics.insert(format!("src.{source}.goodput_bps"), metric(mbit * 1e6));
        }
        for (name, value) in [
            ("src.call.delay_p50_s", 0.011),
            ("src.call.delay_p95_s", delay),
            ("src.call.delay_p99_s", 0.02),
            ("src.files.fct_p50_s", 0.1),
        ] {
            metrics.insert(name.to_owned(), metric(value));
        }
        json!({ "qdisc": "cake", "seeds": 1, "metrics": metrics })
    }

    fn judgement(ours: Value, kernel: Value, quick: bool) -> Done {
        judge(&json!({ "results": [ours, kernel] }), quick).expect("no number is missing").1
    }

    #[test]
    fn shares_and_delays_beyond_the_bounds_are_refused() {
        let kernel = || discipline(4.0, 0.0120);
        judgement(discipline(4.0, 0.0131), kernel(), false).expect("9 % more delay");
        let late = judgement(discipline(4.0, 0.0133), kernel(), false).unwrap_err();
        assert!(late.ends_with("bound: call, p95 of the delay, ms"), "{late}");
        judgement(discipline(4.0, 0.0133), kernel(), true).expect("the bounds of the short form are wider");
        // 4 of 16 Mbit/s are 25 %, and 5 of 17 are 29 %.
        let unfair = judgement(discipline(5.0, 0.0120), kernel(), false).unwrap_err();
        assert!(unfair.contains("host with four downloads"), "{unfair}");
        let missing = judge(&json!({ "results": [kernel()] }), false).map(drop).unwrap_err();
        assert!(missing.contains("has no src.a.goodput_bps"), "{missing}");
    }
}
