//! A sweep whose trials run elsewhere: on the workers of a cluster, which only need the program.
//!
//! The owner of the folder hands out tasks ([`Remote::next_task`]) and takes their rows as text
//! ([`Remote::add`]). A worker makes the same plan from the same request, and runs tasks ([`work`]). Rows
//! name the version of the simulation, so a worker with another one is refused by name.

use std::collections::BTreeSet;
use std::sync::Arc;

use giveway_record::dataset::{Measured, Reason, Row};
use giveway_trials::{Frontend, Reuse, Runs, Silent};
use serde::{Deserialize, Serialize};

use crate::error::SweepError;
use crate::folder::{Shard, SweepFolder};
use crate::plan::Plan;
use crate::precision::Precision;
use crate::reuse::begin;
use crate::round::Round;
use crate::state::{Done, State};
use crate::trial::{Rows, RunOutside, execute, execute_with};
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
    rows: Vec<SentRow<SentMeasured>>,
    failed: Vec<SentRow<Reason>>,
}

#[derive(Serialize, Deserialize)]
struct SentRow<R> {
    key: String,
    point: u64,
    discipline: usize,
    qdisc: String,
    seed: u64,
    result: R,
}

#[derive(Serialize, Deserialize)]
struct SentMeasured {
    events: u64,
    fingerprint: String,
    /// The place in the names.
    names: usize,
    values: Vec<Option<f64>>,
}

/// Runs tasks of a plan, and returns their rows as text for [`Remote::add`].
pub fn work(plan: &Plan, tasks: &[Task]) -> String {
    let runs = Runs::hidden(&Silent, 1);
    sent(plan, tasks, |task| execute(plan, task.point, task.seed, &task.disciplines, &runs.turn()))
}

/// Like [`work`], with trials of disciplines from outside, which `run_outside` runs.
pub fn work_with(plan: &Plan, tasks: &[Task], run_outside: &mut RunOutside<'_>) -> String {
    let runs = Runs::hidden(&Silent, 1);
    sent(plan, tasks, |task| {
        execute_with(plan, task.point, task.seed, &task.disciplines, &runs.turn(), run_outside)
    })
}

/// The rows of tasks as text.
fn sent(plan: &Plan, tasks: &[Task], mut run: impl FnMut(&Task) -> Rows) -> String {
    let mut sent = Sent {
        version: plan.version().to_owned(),
        tasks: tasks.to_vec(),
        names: Vec::new(),
        rows: Vec::new(),
        failed: Vec::new(),
    };
    for task in tasks {
        let (rows, failed) = run(task);
        for row in rows {
            let Measured { fingerprint, events, names, values } = &row.result;
            let known = sent.names.iter().position(|known| known[..] == names[..]);
            let names = known.unwrap_or_else(|| {
                sent.names.push(names.to_vec());
                sent.names.len() - 1
            });
            let measured = SentMeasured {
                events: *events,
                fingerprint: fingerprint.clone(),
                names,
                values: values.clone(),
            };
            sent.rows.push(sending(plan, &row, measured));
        }
        sent.failed.extend(failed.iter().map(|row| sending(plan, row, row.result.clone())));
    }
    serde_json::to_string(&sent).expect("rows can be written as JSON")
}

/// A row as it travels, with this result.
fn sending<R, S>(plan: &Plan, row: &Row<R>, result: S) -> SentRow<S> {
    let discipline = plan.disciplines().position(|known| known == row.discipline).unwrap_or_default();
    let Row { key, point, qdisc, seed, .. } = row;
    SentRow {
        key: format!("{key:032x}"),
        point: *point,
        discipline,
        qdisc: qdisc.clone(),
        seed: *seed,
        result,
    }
}

/// A row that has arrived, with this result.
fn arrived<R, S>(plan: &Plan, row: &SentRow<S>, result: R) -> Result<Row<R>, SweepError> {
    let usage = |message: &str| SweepError::Usage(message.to_owned());
    let (true, Some(discipline)) = (row.point < plan.points(), plan.disciplines().nth(row.discipline)) else {
        return Err(usage("a worker sent a row that does not fit the sweep"));
    };
    Ok(Row {
        key: u128::from_str_radix(&row.key, 16).map_err(|_| usage("a worker sent a wrong key"))?,
        point: row.point,
        discipline: discipline.to_owned(),
        qdisc: row.qdisc.clone(),
        seed: row.seed,
        axes: plan.values(row.point, row.discipline),
        result,
    })
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
    let mut rows = (Vec::new(), Vec::new());
    for row in sent.rows {
        let SentMeasured { events, fingerprint, names: place, values } = &row.result;
        let names = names.get(*place).filter(|names| names.len() == values.len());
        let names = names.cloned().ok_or_else(|| usage("a worker sent rows without names"))?;
        let measured =
            Measured { fingerprint: fingerprint.clone(), events: *events, names, values: values.clone() };
        rows.0.push(arrived(plan, &row, measured)?);
    }
    for row in sent.failed {
        rows.1.push(arrived(plan, &row, row.result.clone())?);
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
    /// Starts a sweep. Trials that the folder has, or that `reuse` has, do not run.
    ///
    /// # Errors
    /// As [`run`](crate::run()).
    pub fn begin(
        plan: Arc<Plan>,
        mut folder: SweepFolder,
        reuse: &Reuse,
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

    /// The number of trials that were there at the start.
    pub fn had(&self) -> u64 {
        self.done.had + self.done.reused
    }

    /// True if this is the last round.
    fn is_last(&self) -> bool {
        self.seeds.end == self.plan.seeds().len()
            || self.open.as_ref().is_some_and(|points| points.is_empty())
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
        if let Err(error) = self.writer.flush(&mut self.folder) {
            return Err(self.writer.rescue(&self.folder, Vec::new(), error));
        }
        let complete = self.is_done();
        if complete {
            self.folder.complete()?;
        }
        let (ran, failed) = self.writer.counts();
        Ok(Done { ran, failed, complete, ..self.done })
    }
}
