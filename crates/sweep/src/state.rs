//! The trials that are finished, and the values that a precision needs.

use std::collections::BTreeMap;

use giveway_record::dataset::{self, Measured, Row};

use crate::folder::Shard;
use crate::order::{ORDER, permuted};
use crate::plan::Plan;
use crate::precision::Precision;

/// The results of running a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Trials that ran now.
    pub ran: u64,
    /// Trials that the folder had.
    pub had: u64,
    /// Trials that were taken from other sweeps, or from an earlier request.
    pub reused: u64,
    /// Trials that failed.
    pub failed: u64,
    /// True if no trial is missing, except those that failed.
    pub complete: bool,
}

/// The finished trials.
pub(crate) struct State {
    /// The numbers of the finished trials, in order.
    pub finished: Vec<u64>,
    /// The values of the metric of a precision, by point and discipline: the seed's number and the value.
    values: BTreeMap<(u64, usize), Vec<(usize, f64)>>,
}

/// The number of a trial among all of a plan.
pub(crate) fn number_of(plan: &Plan, point: u64, discipline: usize, seed: usize) -> u64 {
    (point * plan.contenders() as u64 + discipline as u64) * plan.seeds().len() as u64 + seed as u64
}

impl State {
    /// The state of a folder with these trials.
    pub(crate) fn new(plan: &Plan, known: Vec<dataset::Known>) -> State {
        let place = |seed: u64| plan.seeds().iter().position(|known| *known == seed);
        let discipline = |written: &str| plan.disciplines().position(|known| known == written);
        let mut finished: Vec<u64> = known
            .iter()
            .filter_map(|row| {
                Some(number_of(plan, row.point, discipline(&row.discipline)?, place(row.seed)?))
            })
            .collect();
        finished.sort_unstable();
        finished.dedup();
        State { finished, values: BTreeMap::new() }
    }

    /// True if the trial is finished.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.finished.binary_search(&number).is_ok()
    }

    /// Adds trials that were copied.
    pub(crate) fn add(&mut self, mut numbers: Vec<u64>) {
        self.finished.append(&mut numbers);
        self.finished.sort_unstable();
    }

    /// Keeps the metric of a precision.
    pub(crate) fn note(&mut self, plan: &Plan, precision: &Precision, row: &Row<Measured>) {
        let discipline = plan.disciplines().position(|known| known == row.discipline);
        let seed = plan.seeds().iter().position(|seed| *seed == row.seed);
        let value = row.result.value(&precision.metric);
        if let (Some(discipline), Some(seed), Some(value)) = (discipline, seed, value) {
            self.values.entry((row.point, discipline)).or_default().push((seed, value));
        }
    }

    /// The points of a shard at which the precision is not reached with the first `seeds` seeds, in order. A
    /// point without the metric is closed once it has the minimum number of seeds.
    pub(crate) fn open(&self, plan: &Plan, shard: Shard, precision: &Precision, seeds: usize) -> Vec<u64> {
        let mut open = Vec::new();
        for place in (shard.index..plan.points()).step_by(shard.of as usize) {
            let point = permuted(place, plan.points(), ORDER);
            let reached = |discipline: usize| {
                let mut values: Vec<(usize, f64)> =
                    self.values.get(&(point, discipline)).cloned().unwrap_or_default();
                values.retain(|(seed, _)| *seed < seeds);
                values.sort_by_key(|(seed, _)| *seed);
                values.dedup_by_key(|(seed, _)| *seed);
                let values: Vec<f64> = values.into_iter().map(|(_, value)| value).collect();
                values.is_empty() || precision.reached(&values)
            };
            let runs = (0..plan.contenders()).filter(|discipline| plan.runs(point, *discipline));
            if seeds == 0 || !runs.into_iter().all(reached) {
                open.push(point);
            }
        }
        open
    }
}
