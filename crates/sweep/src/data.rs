//! One metric of a data set, for analysis: a value for each point, discipline and seed.

use std::collections::BTreeMap;
use std::path::Path;

use giveway_measure::{named, nearest};
use giveway_qdisc::Quantity;
use giveway_record::dataset::{self, Axis, Part};
use giveway_scenario::Scenario;

use crate::error::SweepError;
use crate::folder::Manifest;
use crate::run::{manifest_of, parts_of};

/// One metric of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// The description of the sweep.
    pub manifest: Manifest,
    /// The metric.
    pub metric: String,
    /// The varied keys.
    pub axes: Vec<Varied>,
    /// The seeds of any trial, in order.
    pub seeds: Vec<u64>,
    /// The values, discipline by discipline, in the order of the manifest.
    pub disciplines: Vec<Contender>,
}

/// A varied key with the values that occur, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Varied {
    /// The key.
    pub key: String,
    /// The unit; `None` for texts.
    pub unit: Option<&'static str>,
    /// The values: numbers in order, texts in the order of their first appearance.
    pub levels: Vec<Quantity>,
}

/// The values of one discipline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contender {
    /// The discipline as the scenario writes it.
    pub name: String,
    /// True for each axis that concerns it.
    pub concerned: Vec<bool>,
    /// Its points, in the order of their numbers.
    pub points: Vec<At>,
}

/// The values at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct At {
    /// The number of the point.
    pub point: u64,
    /// The place of each axis' value among its levels; `None` if the axis does not concern the discipline.
    pub levels: Vec<Option<usize>>,
    /// The value for each seed of the data; `None` if it did not run, or has none.
    pub values: Vec<Option<f64>>,
}

impl At {
    /// The mean over the seeds; `None` without a value.
    pub fn mean(&self) -> Option<f64> {
        mean(self.values.iter().flatten().copied())
    }
}

/// The mean of numbers; `None` if there are none.
pub fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Metrics that a sweep is judged by unless another is given: the first that the data have.
const USUAL: [&str; 6] =
    ["page_load_p50_s", "fct_p95_s", "fct_mean_s", "sojourn_p99_s", "wait_mean_slots", "goodput_bps"];

/// The metric that a data set is judged by unless another is given.
///
/// # Errors
/// If the folder has no data, or is damaged.
pub fn usual_metric(dir: &Path) -> Result<String, SweepError> {
    let names = metric_names(dir)?;
    let usual = USUAL.into_iter().find(|usual| names.iter().any(|name| name == usual));
    let usual = usual.map(str::to_owned).or_else(|| names.first().cloned());
    usual.ok_or_else(|| SweepError::Usage(format!("{} has no finished trial yet", dir.display())))
}

/// Checks the name of a metric before the runs of a scenario have it.
///
/// # Errors
/// If there is no such metric, or the scenario has no such source of traffic.
pub fn check_metric(metric: &str, scenario: &Scenario) -> Result<(), SweepError> {
    let wrong = |wrong: String| Err(SweepError::Usage(wrong));
    let Some(found) = named(metric) else {
        let near = nearest(metric).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        return wrong(format!("there is no metric {metric}{near}"));
    };
    let Some(source) = found.source else { return Ok(()) };
    let mut known = giveway_observe::layout(scenario, true).source_names;
    known.sort();
    known.dedup();
    if known.iter().any(|name| name == source) {
        return Ok(());
    }
    wrong(format!("the scenario has no source {source} for {metric}; it has {}", known.join(", ")))
}

/// The metrics of a data set.
///
/// # Errors
/// If a part cannot be read.
pub fn metric_names(dir: &Path) -> Result<Vec<String>, SweepError> {
    names_of(&parts_of(dir)?)
}

/// The metrics of these parts.
fn names_of(parts: &[Part]) -> Result<Vec<String>, SweepError> {
    let mut names: Vec<String> = Vec::new();
    for part in parts {
        for name in dataset::metric_names(part)? {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Ok(names)
}

impl Data {
    /// Reads a metric of the data set in `dir`.
    ///
    /// # Errors
    /// If the folder does not belong to a sweep, has no such metric, or a part cannot be read.
    pub fn read(dir: &Path, metric: &str) -> Result<Data, SweepError> {
        let manifest = manifest_of(dir)?;
        let parts = manifest.trials(dir)?;
        let known = names_of(&parts)?;
        if !known.iter().any(|name| name == metric) {
            let near = giveway_qdisc::units::nearest(metric, known.iter().map(String::as_str));
            let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            return Err(SweepError::Usage(format!("{} has no metric {metric}{near}", dir.display())));
        }
        let columns = manifest.axes();
        let mut samples = Vec::new();
        for part in &parts {
            samples.extend(dataset::samples(part, &columns, metric)?);
        }
        Ok(Data::of(manifest, metric, &columns, &samples))
    }

    /// The data of these samples.
    pub fn of(manifest: Manifest, metric: &str, columns: &[Axis], samples: &[dataset::Sample]) -> Data {
        let axes: Vec<Varied> =
            columns.iter().enumerate().map(|(n, axis)| varied(axis, n, samples)).collect();
        let mut seeds: Vec<u64> = samples.iter().map(|sample| sample.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let mut disciplines: Vec<Contender> = Vec::new();
        for name in &manifest.disciplines {
            let mut points: BTreeMap<u64, At> = BTreeMap::new();
            for sample in samples.iter().filter(|sample| sample.discipline == *name) {
                let at = points.entry(sample.point).or_insert_with(|| At {
                    point: sample.point,
                    levels: levels(&axes, &sample.axes),
                    values: vec![None; seeds.len()],
                });
                let seed = seeds.binary_search(&sample.seed).expect("the seed of every sample is listed");
                at.values[seed] = sample.value;
            }
            let concerned = (0..axes.len()).map(|axis| points.values().any(|at| at.levels[axis].is_some()));
            disciplines.push(Contender {
                name: name.clone(),
                concerned: concerned.collect(),
                points: points.into_values().collect(),
            });
        }
        disciplines.retain(|contender| !contender.points.is_empty());
        Data { manifest, metric: metric.to_owned(), axes, seeds, disciplines }
    }

    /// True if the points are a grid.
    pub fn is_grid(&self) -> bool {
        self.manifest.design == "grid"
    }
}

fn varied(axis: &Axis, place: usize, samples: &[dataset::Sample]) -> Varied {
    let values = samples.iter().filter_map(|sample| sample.axes[place].as_ref());
    let levels = match axis.unit {
        Some(unit) => {
            let mut numbers: Vec<f64> = values
                .filter_map(|value| match value {
                    Quantity::Number(number, _) => Some(*number),
                    Quantity::Text(_) => None,
                })
                .collect();
            numbers.sort_by(f64::total_cmp);
            numbers.dedup();
            numbers.into_iter().map(|number| Quantity::Number(number, unit)).collect()
        }
        None => {
            let mut texts: Vec<Quantity> = Vec::new();
            for value in values {
                if !texts.contains(value) {
                    texts.push(value.clone());
                }
            }
            texts
        }
    };
    Varied { key: axis.key.clone(), unit: axis.unit, levels }
}

/// The place of each value among the levels of its axis.
fn levels(axes: &[Varied], values: &[Option<Quantity>]) -> Vec<Option<usize>> {
    let place = |(axis, value): (&Varied, &Option<Quantity>)| match value.as_ref()? {
        Quantity::Number(number, _) => axis
            .levels
            .binary_search_by(|level| match level {
                Quantity::Number(known, _) => known.total_cmp(number),
                Quantity::Text(_) => std::cmp::Ordering::Less,
            })
            .ok(),
        text => axis.levels.iter().position(|level| level == text),
    };
    axes.iter().zip(values).map(place).collect()
}
