//! Some seeds of some points: their tasks, and running those that are missing on threads.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use giveway_record::dataset::{Measured, Row};
use giveway_trials::{Frontend, Runs, Take, Turn, Unit};

use crate::error::SweepError;
use crate::folder::{Shard, SweepFolder};
use crate::order::{ORDER, permuted};
use crate::plan::Plan;
use crate::precision::Precision;
use crate::state::{State, number_of};
use crate::trial::{Rows, execute};
use crate::writer::Writer;

/// Some seeds of some points.
pub(crate) struct Round<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The part of the sweep.
    pub shard: Shard,
    /// The numbers of the seeds.
    pub seeds: std::ops::Range<usize>,
    /// The points; `None` for all.
    pub open: Option<Arc<[u64]>>,
    /// The number of threads.
    pub jobs: usize,
}

impl Round<'_> {
    /// The number of seeds of the first round.
    pub(crate) fn first(plan: &Plan) -> usize {
        let most = plan.seeds().len();
        if plan.request().until.is_some() { Precision::next(0).min(most) } else { most }
    }

    /// The number of points.
    pub(crate) fn points(&self) -> u64 {
        match &self.open {
            Some(points) => points.len() as u64,
            None => (self.plan.points() + self.shard.of - 1 - self.shard.index) / self.shard.of,
        }
    }

    /// The number of tasks.
    pub(crate) fn tasks(&self) -> u64 {
        self.points() * self.seeds.len() as u64
    }

    /// The point and the number of the seed of a task.
    pub(crate) fn task(&self, number: u64) -> (u64, usize) {
        let (place, seed) = (number % self.points(), (number / self.points()) as usize);
        let point = match &self.open {
            Some(points) => points[place as usize],
            None => permuted(place * self.shard.of + self.shard.index, self.plan.points(), ORDER),
        };
        (point, self.seeds.start + seed)
    }

    /// The disciplines of a task that are missing.
    pub(crate) fn missing(&self, state: &State, point: u64, seed: usize) -> Vec<usize> {
        (0..self.plan.contenders())
            .filter(|discipline| self.plan.runs(point, *discipline))
            .filter(|discipline| !state.has(number_of(self.plan, point, *discipline, seed)))
            .collect()
    }

    /// The number of trials that are missing.
    fn count(&self, state: &State) -> u64 {
        if state.finished.is_empty() && self.open.is_none() && self.shard == Shard::WHOLE {
            return self.plan.trials() / self.plan.seeds().len() as u64 * self.seeds.len() as u64;
        }
        let each = (0..self.tasks()).map(|number| {
            let (point, seed) = self.task(number);
            self.missing(state, point, seed).len() as u64
        });
        each.sum()
    }

    /// Runs the missing trials. Returns the numbers of those that ran and that failed, and whether the front
    /// end stopped them.
    pub(crate) fn run(
        &self,
        folder: &mut SweepFolder,
        state: &mut State,
        frontend: &dyn Frontend,
    ) -> Result<(u64, u64, bool), SweepError> {
        let count = self.count(state);
        if count == 0 {
            return Ok((0, 0, false));
        }
        let title = &self.plan.request().scenario.title;
        let runs = Runs::new(frontend, title, count as usize, Unit::Runs, self.jobs);
        let finished: &State = state;
        let notes = self.plan.request().until.is_some();
        let mut writing = Writing { folder, writer: Writer::new(), notes, noted: Vec::new(), broken: None };
        let run = |number: u64, turn: &Turn<'_>| {
            let (point, seed) = self.task(number);
            let missing = self.missing(finished, point, seed);
            (!missing.is_empty()).then(|| execute(self.plan, point, seed, &missing, turn))
        };
        runs.each(self.tasks(), run, &mut writing);
        let Writing { folder, mut writer, noted, broken, .. } = writing;
        if let Some((error, further)) = broken {
            return Err(writer.rescue(folder, further, error));
        }
        if let Some(precision) = &self.plan.request().until {
            for row in &noted {
                state.note(self.plan, precision, row);
            }
        }
        let (ran, failed) = writer.counts();
        Ok((ran, failed, frontend.stopped()))
    }
}

/// Writes rows as they come.
struct Writing<'a> {
    folder: &'a mut SweepFolder,
    writer: Writer,
    /// True if a precision needs the rows afterwards.
    notes: bool,
    noted: Vec<Row<Measured>>,
    /// The error that ended the writing, and the rows that came later.
    broken: Option<(SweepError, Vec<Rows>)>,
}

impl Writing<'_> {
    fn ended(&mut self, written: Result<(), SweepError>) -> ControlFlow<()> {
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.broken = Some((error, Vec::new()));
                ControlFlow::Break(())
            }
        }
    }
}

impl Take<Rows> for Writing<'_> {
    fn take(&mut self, _: u64, rows: Rows) -> ControlFlow<()> {
        if let Some((_, further)) = &mut self.broken {
            further.push(rows);
            return ControlFlow::Break(());
        }
        let (rows, failed) = rows;
        if self.notes {
            self.noted.extend(rows.iter().cloned());
        }
        let written = self.writer.add(self.folder, rows, failed);
        self.ended(written)
    }

    fn patience(&self) -> Duration {
        self.writer.patience()
    }

    fn idle(&mut self) -> ControlFlow<()> {
        if self.broken.is_some() {
            return ControlFlow::Break(());
        }
        let written = self.writer.flush(self.folder);
        self.ended(written)
    }
}
