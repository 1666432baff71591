//! Some seeds of some points: their tasks, and running those that are missing on threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};

use giveway_record::dataset::{Measured, Row};
use giveway_runner::{Frontend, Progress, Unit};

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
        let progress = Progress::new(frontend, title, count as usize, Unit::Runs);
        let next = AtomicU64::new(0);
        let broken = AtomicBool::new(false);
        let stopped = || frontend.stopped() || broken.load(Ordering::Relaxed);
        let mut writer = Writer::new();
        let mut noted: Vec<Row<Measured>> = Vec::new();
        let finished: &State = state;
        let result = std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Rows>(4 * self.jobs);
            for _ in 0..self.jobs {
                let sender: SyncSender<Rows> = sender.clone();
                let (next, stopped, progress) = (&next, &stopped, &progress);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= self.tasks() || stopped() {
                            return;
                        }
                        let (point, seed) = self.task(number);
                        let missing = self.missing(finished, point, seed);
                        if missing.is_empty() {
                            continue;
                        }
                        let go_on = || !stopped();
                        let rows = execute(self.plan, point, seed, &missing, progress, &go_on);
                        if sender.send(rows).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let result = loop {
                match receiver.recv_timeout(writer.patience()) {
                    Ok((rows, failed)) => {
                        if self.plan.request().until.is_some() {
                            noted.extend(rows.iter().cloned());
                        }
                        if let Err(error) = writer.add(folder, rows, failed) {
                            break Err(error);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(error) = writer.flush(folder) {
                            break Err(error);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => break writer.flush(folder),
                }
            };
            result.map_err(|error| {
                broken.store(true, Ordering::Relaxed);
                // Threads that wait for room in the channel end.
                let further: Vec<Rows> = receiver.iter().collect();
                writer.rescue(folder, further, error)
            })
        });
        result?;
        if let Some(precision) = &self.plan.request().until {
            for row in &noted {
                state.note(self.plan, precision, row);
            }
        }
        let (ran, failed) = writer.counts();
        Ok((ran, failed, frontend.stopped()))
    }
}
