//! A sweep whose trials run elsewhere: on the workers of a cluster, which only need the program.
//!
//! The owner of the folder hands out tasks ([`Remote::next_task`]) and takes their rows as text
//! ([`Remote::add`]). A worker makes the same plan from the same request, and runs tasks ([`work`]). Rows
//! name the version of the simulation, so a worker with another one is refused by name.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use giveway_record::dataset::{Measured, Row};
use giveway_runner::{Frontend, Progress, Silent, Unit};
use serde::{Deserialize, Serialize};

use crate::error::SweepError;
use crate::folder::{Shard, SweepFolder};
use crate::plan::Plan;
use crate::precision::Precision;
use crate::reuse::begin;
use crate::round::Round;
use crate::state::{Done, State};
use crate::trial::{Rows, execute};
use crate::writer::Writer;

/// A point with a seed, and the disciplines that are missing there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Task {
    /// The number of the point.
    pub point: u64,
    /// The number of the seed.
    pub seed: usize,
    /// The numbers of the disciplines.
    pub disciplines: Vec<usize>,
}

/// The rows of tasks, as they travel.
#[derive(Serialize, Deserialize)]
struct Sent {
    version: String,
    tasks: Vec<Task>,
    /// The names of metrics, once for all rows that share them.
    names: Vec<Vec<String>>,
    rows: Vec<SentRow>,
    failed: Vec<SentFailure>,
}

#[derive(Serialize, Deserialize)]
struct SentRow {
    key: String,
    point: u64,
    discipline: usize,
    qdisc: String,
    seed: u64,
    events: u64,
    fingerprint: String,
    /// The place in the names.
    names: usize,
    values: Vec<Option<f64>>,
}

#[derive(Serialize, Deserialize)]
struct SentFailure {
    key: String,
    point: u64,
    discipline: usize,
    qdisc: String,
    seed: u64,
    reason: String,
}

/// Runs tasks of a plan, and returns their rows as text for [`Remote::add`].
pub fn work(plan: &Plan, tasks: &[Task]) -> String {
    let progress = Progress::new(&Silent, "", 0, Unit::Runs);
    let place = |written: &str| plan.disciplines().position(|known| known == written).unwrap_or_default();
    let mut sent = Sent {
        version: plan.version().to_owned(),
        tasks: tasks.to_vec(),
        names: Vec::new(),
        rows: Vec::new(),
        failed: Vec::new(),
    };
    for task in tasks {
        let (rows, failed) = execute(plan, task.point, task.seed, &task.disciplines, &progress, &|| true);
        for row in rows {
            let names = row.result.names.to_vec();
            let known = sent.names.iter().position(|known| *known == names);
            let names = known.unwrap_or_else(|| {
                sent.names.push(names);
                sent.names.len() - 1
            });
            sent.rows.push(SentRow {
                key: format!("{:032x}", row.key),
                point: row.point,
                discipline: place(&row.discipline),
                qdisc: row.qdisc,
                seed: row.seed,
                events: row.result.events,
                fingerprint: row.result.fingerprint,
                names,
                values: row.result.values,
            });
        }
        for row in failed {
            sent.failed.push(SentFailure {
                key: format!("{:032x}", row.key),
                point: row.point,
                discipline: place(&row.discipline),
                qdisc: row.qdisc,
                seed: row.seed,
                reason: row.result,
            });
        }
    }
    serde_json::to_string(&sent).expect("rows can be written as JSON")
}

/// The rows of a text, and the tasks that they answer.
fn received(plan: &Plan, text: &str) -> Result<(Rows, Vec<Task>), SweepError> {
    let usage = |message: &str| SweepError::Usage(message.to_owned());
    let sent: Sent =
        serde_json::from_str(text).map_err(|_| usage("a worker sent something else than rows"))?;
    if sent.version != plan.version() {
        return Err(SweepError::Usage(format!(
            "a worker has Giveway {}, and this program is {}: install the same version everywhere",
            sent.version,
            plan.version()
        )));
    }
    let names: Vec<Arc<[String]>> = sent.names.into_iter().map(Arc::from).collect();
    let written = |discipline: usize| plan.disciplines().nth(discipline).unwrap_or_default().to_owned();
    let key = |key: &str| u128::from_str_radix(key, 16).map_err(|_| usage("a worker sent a wrong key"));
    let mut rows = (Vec::new(), Vec::new());
    for row in sent.rows {
        let names = names.get(row.names).cloned().ok_or_else(|| usage("a worker sent rows without names"))?;
        if names.len() != row.values.len() || row.point >= plan.points() {
            return Err(usage("a worker sent a row that does not fit the sweep"));
        }
        rows.0.push(Row {
            key: key(&row.key)?,
            point: row.point,
            discipline: written(row.discipline),
            qdisc: row.qdisc,
            seed: row.seed,
            axes: plan.values(row.point, row.discipline),
            result: Measured { fingerprint: row.fingerprint, events: row.events, names, values: row.values },
        });
    }
    for row in sent.failed {
        if row.point >= plan.points() {
            return Err(usage("a worker sent a row that does not fit the sweep"));
        }
        rows.1.push(Row {
            key: key(&row.key)?,
            point: row.point,
            discipline: written(row.discipline),
            qdisc: row.qdisc,
            seed: row.seed,
            axes: plan.values(row.point, row.discipline),
            result: row.reason,
        });
    }
    Ok((rows, sent.tasks))
}

/// The owner of a sweep whose trials run elsewhere.
pub struct Remote {
    plan: Arc<Plan>,
    folder: SweepFolder,
    state: State,
    seeds: std::ops::Range<usize>,
    open: Option<Arc<[u64]>>,
    /// The number of the next task of this round.
    next: u64,
    /// Tasks that were handed out, and whose rows are missing.
    outstanding: BTreeSet<Task>,
    writer: Writer,
    /// Rows of this round, if a precision needs them.
    noted: Vec<Row<Measured>>,
    done: Done,
}

impl Remote {
    /// Begins a sweep. Trials that the folder has, or that `reuse` has, do not run.
    ///
    /// # Errors
    /// As [`run`](crate::run()).
    pub fn begin(
        plan: Arc<Plan>,
        mut folder: SweepFolder,
        reuse: &[PathBuf],
        frontend: &dyn Frontend,
    ) -> Result<Remote, SweepError> {
        let (state, done) = begin(&plan, &mut folder, Shard::WHOLE, 1, reuse, frontend)?;
        let until = Round::first(&plan);
        let mut remote = Remote {
            plan,
            folder,
            state,
            seeds: 0..until,
            open: None,
            next: 0,
            outstanding: BTreeSet::new(),
            writer: Writer::new(),
            noted: Vec::new(),
            done,
        };
        remote.open = remote.points_of_round();
        Ok(remote)
    }

    fn points_of_round(&self) -> Option<Arc<[u64]>> {
        let precision = self.plan.request().until.clone()?;
        Some(self.state.open(&self.plan, Shard::WHOLE, &precision, self.seeds.start).into())
    }

    fn round<'a>(&self, plan: &'a Plan) -> Round<'a> {
        Round { plan, shard: Shard::WHOLE, seeds: self.seeds.clone(), open: self.open.clone(), jobs: 1 }
    }

    /// The next task. `None` while tasks of a round are outstanding whose rows decide about the next round,
    /// and at the end ([`is_done`](Remote::is_done)).
    pub fn next_task(&mut self) -> Option<Task> {
        let plan = Arc::clone(&self.plan);
        loop {
            let round = self.round(&plan);
            while self.next < round.tasks() {
                let (point, seed) = round.task(self.next);
                let disciplines = round.missing(&self.state, point, seed);
                self.next += 1;
                if !disciplines.is_empty() {
                    let task = Task { point, seed, disciplines };
                    self.outstanding.insert(task.clone());
                    return Some(task);
                }
            }
            if !self.outstanding.is_empty() || self.is_last() {
                return None;
            }
            let precision = self.plan.request().until.clone()?;
            for row in std::mem::take(&mut self.noted) {
                self.state.note(&self.plan, &precision, &row);
            }
            let most = self.plan.seeds().len();
            self.seeds = self.seeds.end..Precision::next(self.seeds.end).min(most);
            self.open = self.points_of_round();
            self.next = 0;
        }
    }

    /// True if this is the last round.
    fn is_last(&self) -> bool {
        self.seeds.end == self.plan.seeds().len()
            || self.open.as_ref().is_some_and(|points| points.is_empty())
    }

    /// The number of tasks of this round that were not handed out yet.
    pub fn left(&self) -> u64 {
        self.round(&self.plan).tasks() - self.next
    }

    /// Takes the rows that [`work`] returned. Rows of tasks that were answered before are ignored: two
    /// workers may run the same task.
    ///
    /// # Errors
    /// If the worker has another version, or a part cannot be written.
    pub fn add(&mut self, text: &str) -> Result<(), SweepError> {
        let ((mut rows, mut failed), tasks) = received(&self.plan, text)?;
        let new: Vec<Task> = tasks.into_iter().filter(|task| self.outstanding.remove(task)).collect();
        let seeds = self.plan.seeds().to_vec();
        let wanted = |point: u64, seed: u64| {
            new.iter().any(|task| task.point == point && seeds.get(task.seed) == Some(&seed))
        };
        rows.retain(|row| wanted(row.point, row.seed));
        failed.retain(|row| wanted(row.point, row.seed));
        if self.plan.request().until.is_some() {
            self.noted.extend(rows.iter().cloned());
        }
        self.writer.add(&mut self.folder, rows, failed)
    }

    /// True if all tasks have been answered.
    pub fn is_done(&mut self) -> bool {
        self.outstanding.is_empty() && {
            let task = self.next_task();
            if let Some(task) = task {
                // Hand it out again.
                self.outstanding.remove(&task);
                self.next -= 1;
                return false;
            }
            true
        }
    }

    /// Writes what is finished, and sorts the data set if it is complete.
    ///
    /// # Errors
    /// If a part cannot be written.
    pub fn finish(mut self) -> Result<Done, SweepError> {
        self.writer.flush(&mut self.folder)?;
        let complete = self.is_done();
        if complete {
            self.folder.complete()?;
        }
        let (ran, failed) = self.writer.counts();
        Ok(Done { ran, failed, complete, ..self.done })
    }
}
