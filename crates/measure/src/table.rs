//! Tables over seeds: means and confidence intervals for each discipline, as text or JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::fingerprint::Fingerprint;
use crate::names::short_names;
use crate::student::t_quantile;
use crate::summary::{Summary, unnamed};
use crate::trial::Trial;

/// One row per discipline.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The rows, in the order of the scenario.
    pub rows: Vec<DisciplineRow>,
    /// The fingerprint of all runs, in their order.
    pub fingerprint: Fingerprint,
    /// The number of events of all runs.
    pub events: u64,
    /// Data packets that the bottleneck sent in all runs; `None` if no run has a bottleneck.
    pub bottleneck_packets: Option<u64>,
}

/// One discipline over its seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct DisciplineRow {
    /// The specification of the discipline.
    pub qdisc: String,
    /// The seeds of its runs, in order.
    pub seeds: Vec<u64>,
    /// Each metric that any of its runs has, in order.
    pub metrics: Vec<(String, Estimate)>,
}

/// A metric over several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean over the seeds that have it.
    pub mean: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t; `None` below two values.
    pub ci95: Option<f64>,
    /// The value of each seed, in the order of the seeds.
    pub per_seed: Vec<Option<f64>>,
}

/// The longest specification that names a row, characters. A tree of classes is longer.
const LONGEST_NAME: usize = 120;

impl Table {
    /// The names of the rows: the specifications, or short names of very long ones.
    pub(crate) fn row_names(&self) -> Vec<String> {
        let specs: Vec<&str> = self.rows.iter().map(|row| row.qdisc.as_str()).collect();
        let short = short_names(&specs).into_iter();
        let name =
            |(spec, short): (&str, String)| if spec.len() > LONGEST_NAME { short } else { spec.to_owned() };
        specs.iter().copied().zip(short).map(name).collect()
    }

    /// The table of these runs. Give them in the order of the scenario, discipline by discipline and seed by
    /// seed, whatever order they ran in: rows, sums and the fingerprint follow it.
    pub fn new(runs: &[(Trial, Summary)]) -> Table {
        let mut qdiscs: Vec<&str> = Vec::new();
        for (trial, _) in runs {
            if !qdiscs.contains(&trial.qdisc.as_str()) {
                qdiscs.push(&trial.qdisc);
            }
        }
        Table {
            rows: qdiscs.into_iter().map(|qdisc| DisciplineRow::new(qdisc, runs)).collect(),
            fingerprint: Fingerprint::combined(runs.iter().map(|(_, summary)| summary.fingerprint)),
            events: runs.iter().map(|(_, summary)| summary.events).sum(),
            bottleneck_packets: runs
                .iter()
                .filter_map(|(_, summary)| summary.bottleneck_packets())
                .reduce(|a, b| a + b),
        }
    }

    /// The metrics of one of several measured ports. The table has no metrics if there is no such port.
    pub fn at(&self, port: &str) -> Table {
        let prefix = format!("at.{port}.");
        let part = |row: &DisciplineRow| {
            let mine = row.metrics.iter();
            let mine = mine
                .filter_map(|(name, value)| Some((name.strip_prefix(&prefix)?.to_owned(), value.clone())));
            DisciplineRow { qdisc: row.qdisc.clone(), seeds: row.seeds.clone(), metrics: mine.collect() }
        };
        Table { rows: self.rows.iter().map(part).collect(), ..self.clone() }
    }

    /// The table as JSON: `scenario`, `fingerprint`, `cpu_s`, `events`, `bottleneck_packets`, and `results`
    /// with `qdisc`, `seeds` and `metrics` each, a metric being `mean`, `ci95` and `per_seed`. `cpu_s` is the
    /// processor time of all runs in seconds; the caller has the clock.
    pub fn to_json(&self, scenario: &str, cpu_s: f64) -> Value {
        let results: Vec<Value> = self.rows.iter().map(DisciplineRow::to_json).collect();
        json!({
            "scenario": scenario,
            "fingerprint": self.fingerprint.to_string(),
            "cpu_s": cpu_s,
            "events": self.events,
            "bottleneck_packets": self.bottleneck_packets,
            "results": results,
        })
    }
}

impl DisciplineRow {
    fn new(qdisc: &str, runs: &[(Trial, Summary)]) -> DisciplineRow {
        let mine: Vec<&(Trial, Summary)> = runs.iter().filter(|(trial, _)| trial.qdisc == qdisc).collect();
        let mut names: Vec<&str> = Vec::new();
        for (_, summary) in &mine {
            merge_names(&mut names, summary.metrics.iter().map(|(name, _)| name));
        }
        // Many ports have thousands of metrics.
        let by_name: Vec<BTreeMap<&str, Option<f64>>> =
            mine.iter().map(|(_, summary)| summary.metrics.iter().collect()).collect();
        let per_seed = |name: &str| {
            by_name.iter().map(|run| run.get(name).copied().unwrap_or_else(|| unnamed(name))).collect()
        };
        DisciplineRow {
            qdisc: qdisc.to_owned(),
            seeds: mine.iter().map(|(trial, _)| trial.seed).collect(),
            metrics: names
                .into_iter()
                .map(|name| (name.to_owned(), Estimate::over(per_seed(name))))
                .collect(),
        }
    }

    /// The estimate of a metric; `None` if no run has it.
    pub fn metric(&self, name: &str) -> Option<&Estimate> {
        self.metrics.iter().find(|(known, _)| known == name).map(|(_, estimate)| estimate)
    }

    /// The mean of a metric; `None` if it is missing or there is no such metric.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.metric(name)?.mean
    }

    fn to_json(&self) -> Value {
        let metrics: Map<String, Value> =
            self.metrics.iter().map(|(name, estimate)| (name.clone(), json!(estimate))).collect();
        json!({ "qdisc": self.qdisc, "seeds": self.seeds.len(), "metrics": metrics })
    }
}

/// Adds names that are new, each after the name that it follows, so that the order is the same for every set
/// of seeds.
fn merge_names<'a>(names: &mut Vec<&'a str>, more: impl Iterator<Item = &'a str>) {
    let mut place = 0;
    for name in more {
        // The usual case: every seed has the same names.
        if names.get(place) == Some(&name) {
            place += 1;
            continue;
        }
        match names.iter().position(|known| *known == name) {
            Some(at) => place = at + 1,
            None => {
                names.insert(place, name);
                place += 1;
            }
        }
    }
}

impl Estimate {
    /// Mean and interval over the seeds with a value.
    pub fn over(per_seed: Vec<Option<f64>>) -> Estimate {
        let values: Vec<f64> = per_seed.iter().flatten().copied().collect();
        let n = values.len() as f64;
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / n);
        let ci95 = mean.filter(|_| values.len() > 1).map(|mean| {
            let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
            let deviation = (squares / (n - 1.0)).sqrt();
            t_quantile(values.len() as u32 - 1, 0.95) * deviation / n.sqrt()
        });
        Estimate { mean, ci95, per_seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Metrics;

    fn run(qdisc: &str, seed: u64, metrics: &[(&str, Option<f64>)]) -> (Trial, Summary) {
        let mut named = Metrics::default();
        for (name, value) in metrics {
            named.push(*name, *value);
        }
        let fingerprint = Fingerprint::of(&format!("{qdisc}{seed}"));
        (Trial { qdisc: qdisc.into(), seed }, Summary { fingerprint, events: 10 * seed, metrics: named })
    }

    /// 1, 2, 3: mean 2, deviation 1, and t = 4.3027 for two degrees: 4.3027/√3 = 2.4841.
    #[test]
    fn intervals_by_hand() {
        let estimate = Estimate::over(vec![Some(1.0), Some(2.0), Some(3.0)]);
        assert_eq!(estimate.mean, Some(2.0));
        assert!((estimate.ci95.unwrap() - 2.484_138).abs() < 1e-6);
        // A seed without the value neither counts as zero nor narrows the interval.
        let holed = Estimate::over(vec![Some(1.0), None, Some(3.0)]);
        assert_eq!(holed.mean, Some(2.0));
        // Deviation √2, t = 12.7062: 12.7062·√2/√2.
        assert!((holed.ci95.unwrap() - 12.706_205).abs() < 1e-6);
        assert_eq!(holed.per_seed, [Some(1.0), None, Some(3.0)]);
        assert_eq!(
            Estimate::over(vec![Some(5.0)]),
            Estimate { mean: Some(5.0), ci95: None, per_seed: vec![Some(5.0)] }
        );
        assert_eq!(Estimate::over(vec![None]), Estimate { mean: None, ci95: None, per_seed: vec![None] });
    }

    #[test]
    fn the_json_has_its_exact_shape() {
        let runs = [
            run(
                "fifo",
                1,
                &[("utilization", Some(0.5)), ("fct_p50_s", None), ("bottleneck_packets", Some(7.0))],
            ),
            run("efd", 1, &[("utilization", Some(0.75)), ("bottleneck_packets", Some(8.0))]),
        ];
        let table = Table::new(&runs);
        let expected = json!({
            "scenario": "quick",
            "fingerprint": Fingerprint::combined([Fingerprint::of("fifo1"), Fingerprint::of("efd1")]).to_string(),
            "cpu_s": 1.5,
            "events": 20,
            "bottleneck_packets": 15,
            "results": [
                { "qdisc": "fifo", "seeds": 1, "metrics": {
                    "utilization": { "mean": 0.5, "ci95": null, "per_seed": [0.5] },
                    "fct_p50_s": { "mean": null, "ci95": null, "per_seed": [null] },
                    "bottleneck_packets": { "mean": 7.0, "ci95": null, "per_seed": [7.0] },
                } },
                { "qdisc": "efd", "seeds": 1, "metrics": {
                    "utilization": { "mean": 0.75, "ci95": null, "per_seed": [0.75] },
                    "bottleneck_packets": { "mean": 8.0, "ci95": null, "per_seed": [8.0] },
                } },
            ],
        });
        let found = table.to_json("quick", 1.5);
        assert_eq!(found, expected);
        // And in this order, which a comparison of values does not see.
        assert_eq!(found.to_string(), expected.to_string());
    }

    /// A drop reason that did not occur with a seed counts as 0 for this seed.
    #[test]
    fn reasons_that_did_not_occur_count_as_none() {
        let runs = [
            run("red", 1, &[("drops", Some(4.0)), ("drops_early", Some(4.0)), ("jain", Some(1.0))]),
            run("red", 2, &[("drops", Some(2.0)), ("drops_overlimit", Some(2.0)), ("jain", Some(0.5))]),
        ];
        let table = Table::new(&runs);
        let row = &table.rows[0];
        assert_eq!(row.metric("drops_early").unwrap().per_seed, [Some(4.0), Some(0.0)]);
        assert_eq!(row.metric("drops_overlimit").unwrap().mean, Some(1.0));
        let names: Vec<&str> = row.metrics.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["drops", "drops_overlimit", "drops_early", "jain"]);
        assert_eq!(row.seeds, [1, 2]);
    }
}
