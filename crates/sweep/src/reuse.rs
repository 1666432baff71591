//! Copies trials that other data sets have: other sweeps, or an earlier request of this one.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use giveway_record::dataset::{self, Measured, Part, Row};
use giveway_runner::Frontend;
use giveway_scenario::Trial;

use crate::error::SweepError;
use crate::folder::{Shard, SweepFolder};
use crate::plan::Plan;
use crate::round::Round;
use crate::state::{Done, State, number_of};

/// The trials that the folder has, after those were copied to it that other data sets have.
pub(crate) fn begin(
    plan: &Plan,
    folder: &mut SweepFolder,
    shard: Shard,
    jobs: usize,
    reuse: &[Part],
    frontend: &dyn Frontend,
) -> Result<(State, Done), SweepError> {
    let mut state = State::new(plan, folder.known(frontend)?);
    let mut done = Done { had: state.finished.len() as u64, ..Done::default() };
    if let Some(precision) = &plan.request().until {
        for part in folder.parts()? {
            for row in dataset::read(&part, plan.columns())? {
                state.note(plan, precision, &row);
            }
        }
    }
    let mut others = folder.earlier()?;
    others.extend(reuse.iter().cloned());
    if !others.is_empty() {
        let index = Index::of(&others)?;
        if !index.places.is_empty() {
            let round = Round { plan, shard, seeds: 0..plan.seeds().len(), open: None, jobs };
            done.reused = round.copy(folder, &mut state, &others, &index, frontend)?;
        }
    }
    Ok((state, done))
}

impl Round<'_> {
    /// Copies trials that other data sets have. Returns their number.
    fn copy(
        &self,
        folder: &mut SweepFolder,
        state: &mut State,
        others: &[Part],
        index: &Index,
        frontend: &dyn Frontend,
    ) -> Result<u64, SweepError> {
        let found = self.find(state, index, frontend);
        let mut by_part: BTreeMap<usize, Vec<(usize, Copied)>> = BTreeMap::new();
        for (place, copied) in found {
            by_part.entry(place.0).or_default().push((place.1, copied));
        }
        let mut numbers = Vec::new();
        for (part, wanted) in by_part {
            // Other sweeps vary other keys, whose columns must not become metrics.
            let columns = index.columns[part].clone();
            let rows = dataset::read(&others[part], &columns)?;
            let mut copies: Vec<Row<Measured>> = Vec::new();
            for (row, copied) in wanted {
                let Copied { point, discipline, seed } = copied;
                let found = &rows[row];
                copies.push(Row {
                    key: found.key,
                    point,
                    discipline: self.plan.disciplines().nth(discipline).unwrap_or_default().to_owned(),
                    qdisc: found.qdisc.clone(),
                    seed: found.seed,
                    axes: self.plan.values(point, discipline),
                    result: found.result.clone(),
                });
                numbers.push(number_of(self.plan, point, discipline, seed));
            }
            if let Some(precision) = &self.plan.request().until {
                for row in &copies {
                    state.note(self.plan, precision, row);
                }
            }
            folder.add(&copies)?;
        }
        let count = numbers.len() as u64;
        state.add(numbers);
        Ok(count)
    }

    /// The missing trials that an index has.
    fn find(&self, state: &State, index: &Index, frontend: &dyn Frontend) -> Vec<((usize, usize), Copied)> {
        let found = Mutex::new(Vec::new());
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        if place >= self.points() || frontend.stopped() {
                            return;
                        }
                        let (point, _) = self.task(place);
                        let Ok(at) = self.plan.point(point) else { continue };
                        let trials = at.scenario.trials();
                        for trial in trials {
                            let Trial { discipline, name, seed } = trial;
                            let Some(place) = self.plan.seeds().iter().position(|known| *known == seed)
                            else {
                                continue;
                            };
                            if !self.plan.runs(point, discipline)
                                || state.has(number_of(self.plan, point, discipline, place))
                            {
                                continue;
                            }
                            if let Some(source) = index.places.get(&at.key(&name, seed)) {
                                let copied = Copied { point, discipline, seed: place };
                                found.lock().expect("no thread panics with it").push((*source, copied));
                            }
                        }
                    }
                });
            }
        });
        let mut found = found.into_inner().expect("no thread panics with it");
        found.sort_by_key(|(place, copied)| (*place, copied.point, copied.discipline, copied.seed));
        found
    }
}

/// A trial that another data set has.
#[derive(Clone, Copy, Debug)]
struct Copied {
    point: u64,
    discipline: usize,
    /// The number of the seed.
    seed: usize,
}

/// The trials of other data sets.
struct Index {
    /// The part and the row of each key.
    places: BTreeMap<u128, (usize, usize)>,
    /// The columns of varied keys of each part.
    columns: Vec<Vec<dataset::Axis>>,
}

impl Index {
    fn of(others: &[Part]) -> Result<Index, SweepError> {
        let (mut places, mut columns) = (BTreeMap::new(), Vec::new());
        for (part, path) in others.iter().enumerate() {
            for (row, known) in dataset::known(path)?.into_iter().enumerate() {
                places.insert(known.key, (part, row));
            }
            columns.push(dataset::axes(path)?);
        }
        Ok(Index { places, columns })
    }
}
