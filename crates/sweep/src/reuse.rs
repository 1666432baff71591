//! Copies trials that other folders have, or an earlier request of this sweep.

use std::ops::ControlFlow;

use giveway_record::dataset::{self, Measured, Row};
use giveway_scenario::Trial;
use giveway_trials::{Frontend, Key, Reuse, Runs, Take, Turn};

use crate::error::SweepError;
use crate::folder::{Shard, SweepFolder};
use crate::plan::{OutsideTrial, Plan};
use crate::round::Round;
use crate::state::{Done, State, number_of};

/// Rows of a part with copied trials, at most.
const ROWS: usize = 10_000;

/// The trials that the folder has, after those were copied to it that other data sets have.
pub(crate) fn begin(
    plan: &Plan,
    folder: &mut SweepFolder,
    shard: Shard,
    jobs: usize,
    reuse: &Reuse,
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
    let earlier = Reuse::of_parts(folder.earlier()?)?;
    let round = Round { plan, shard, seeds: 0..plan.seeds().len(), open: None, jobs };
    for other in [&earlier, reuse] {
        if !other.is_empty() {
            done.reused += round.copy(folder, &mut state, other, frontend)?;
        }
    }
    Ok((state, done))
}

impl Round<'_> {
    /// Copies trials that other folders have. Returns their number.
    fn copy(
        &self,
        folder: &mut SweepFolder,
        state: &mut State,
        other: &Reuse,
        frontend: &dyn Frontend,
    ) -> Result<u64, SweepError> {
        let mut numbers = Vec::new();
        for copies in self.find(state, other, frontend).chunks(ROWS) {
            let mut rows: Vec<Row<Measured>> = Vec::new();
            for Copied { key, qdisc, point, discipline, seed } in copies {
                let Some(result) = other.take(*key)? else { continue };
                rows.push(Row {
                    key: *key,
                    point: *point,
                    discipline: self.plan.disciplines().nth(*discipline).unwrap_or_default().to_owned(),
                    qdisc: qdisc.clone(),
                    seed: self.plan.seeds()[*seed],
                    axes: self.plan.values(*point, *discipline),
                    result,
                });
                numbers.push(number_of(self.plan, *point, *discipline, *seed));
            }
            if let Some(precision) = &self.plan.request().until {
                for row in &rows {
                    state.note(self.plan, precision, row);
                }
            }
            folder.add(&rows)?;
        }
        let count = numbers.len() as u64;
        state.add(numbers);
        Ok(count)
    }

    /// The missing trials that other folders have, in the order of their parts.
    fn find(&self, state: &State, other: &Reuse, frontend: &dyn Frontend) -> Vec<Copied> {
        let of_point = |place: u64, turn: &Turn<'_>| -> Option<Vec<Copied>> {
            let (point, _) = self.task(place);
            let at = self.plan.point(point).ok()?;
            let built_in = self.plan.built_in();
            let trials = at.scenario.trials().into_iter().filter(|trial| trial.discipline < built_in);
            let trials = trials.map(|trial| (at.key(&trial.name, trial.seed), trial));
            let outside = self.plan.outside().iter().enumerate().flat_map(|(number, outside)| {
                let OutsideTrial { name, .. } = self.plan.outside_trial(point, number);
                let keyed = |seed: &u64| {
                    let trial = Trial { discipline: built_in + number, name: name.clone(), seed: *seed };
                    (at.outside_key(outside, &trial.name, *seed), trial)
                };
                self.plan.seeds().iter().map(keyed).collect::<Vec<_>>()
            });
            let trials = trials.chain(outside).filter(|_| !turn.is_over());
            let copied = trials.filter_map(|(key, Trial { discipline, name, seed })| {
                let seed = self.plan.seeds().iter().position(|known| *known == seed)?;
                let is_missing = self.plan.runs(point, discipline)
                    && !state.has(number_of(self.plan, point, discipline, seed));
                let copied = Copied { key, qdisc: name, point, discipline, seed };
                (is_missing && other.has(key)).then_some(copied)
            });
            Some(copied.collect()).filter(|copied: &Vec<Copied>| !copied.is_empty())
        };
        let mut found = Found(Vec::new());
        Runs::hidden(frontend, self.jobs).each(self.points(), of_point, &mut found);
        let Found(mut found) = found;
        found.sort_by_key(|copied| (other.order(copied.key), copied.point, copied.discipline, copied.seed));
        found
    }
}

/// The trials that were found.
struct Found(Vec<Copied>);

impl Take<Vec<Copied>> for Found {
    fn take(&mut self, _: u64, copied: Vec<Copied>) -> ControlFlow<()> {
        self.0.extend(copied);
        ControlFlow::Continue(())
    }
}

/// A trial that another folder has.
#[derive(Clone, Debug)]
struct Copied {
    key: Key,
    qdisc: String,
    point: u64,
    discipline: usize,
    /// The number of the seed.
    seed: usize,
}
