//! Runs the trials of a plan that its folder does not have yet.
//!
//! Threads take tasks, each of which is a point with a seed: all disciplines of a task have the same
//! arrivals, so their differences are paired. Tasks are in a random order of points, seed by seed. So the
//! data set is representative while it grows, and the time left can be estimated from what is done.
//!
//! Memory does not grow with the number of trials that run: rows are written in parts. Resuming needs 8 bytes
//! for each finished trial, and a precision 16 bytes for each trial.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use giveway_papers::observe;
use giveway_record::dataset::{self, Measured, Reason, Row};
use giveway_runner::{Frontend, Progress, Unit, panic_message};
use giveway_scenario::Trial;

use crate::error::SweepError;
use crate::folder::{Shard, SweepFolder, parts};
use crate::order::permuted;
use crate::plan::{Plan, Point};
use crate::precision::Precision;

/// The seed of the order of points.
const ORDER: u64 = 1;

/// A part is written after this many rows at the latest.
const MOST_ROWS: usize = 2_000;

/// A part is written after this time, or after [`SHARE`] of the time so far, so that a long sweep has few
/// parts.
const OFTEN: Duration = Duration::from_secs(2);
const SHARE: u32 = 20;

/// The most of those is a minute, which a kill would lose.
const SELDOM: Duration = Duration::from_secs(60);

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

/// Finished and failed trials of a task.
pub type Rows = (Vec<Row<Measured>>, Vec<Row<Reason>>);

/// Runs the trials that are missing, on `jobs` threads, and sorts the data set at the end. `reuse` are parts
/// of other sweeps.
///
/// # Errors
/// If a part cannot be written or read. Finished trials are kept, and the same call goes on from there.
pub fn run(
    plan: &Plan,
    folder: &mut SweepFolder,
    shard: Shard,
    jobs: usize,
    reuse: &[PathBuf],
    frontend: &dyn Frontend,
) -> Result<Done, SweepError> {
    let mut state = State::new(plan, folder.known(frontend)?);
    let mut done = Done { had: state.finished.len() as u64, ..Done::default() };
    if let Some(precision) = &plan.request().until {
        for part in folder.parts() {
            for row in dataset::read(&part, plan.columns())? {
                state.note(plan, precision, &row);
            }
        }
    }
    let mut others: Vec<PathBuf> = folder.earlier();
    others.extend(reuse.iter().cloned());
    if !others.is_empty() {
        let index = Index::of(&others)?;
        if !index.places.is_empty() {
            let round = Round { plan, shard, seeds: 0..plan.seeds().len(), open: None, jobs };
            done.reused = round.copy(folder, &mut state, &others, &index, frontend)?;
        }
    }
    let most = plan.seeds().len();
    let mut from = 0;
    let mut until = if plan.request().until.is_some() { Precision::next(0).min(most) } else { most };
    loop {
        let open = plan.request().until.as_ref().map(|precision| state.open(plan, shard, precision, from));
        if open.as_ref().is_some_and(Vec::is_empty) {
            break;
        }
        let round = Round { plan, shard, seeds: from..until, open, jobs };
        let (ran, failed, stopped) = round.run(folder, &mut state, frontend)?;
        done.ran += ran;
        done.failed += failed;
        if stopped {
            return Ok(done);
        }
        if until == most {
            break;
        }
        (from, until) = (until, Precision::next(until).min(most));
    }
    folder.complete()?;
    done.complete = true;
    Ok(done)
}

/// The finished trials.
struct State {
    /// The numbers of the finished trials, in order.
    finished: Vec<u64>,
    /// The values of the metric of a precision, by point and discipline: the seed's number and the value.
    values: BTreeMap<(u64, usize), Vec<(usize, f64)>>,
}

/// The number of a trial among all of a plan.
fn number_of(plan: &Plan, point: u64, discipline: usize, seed: usize) -> u64 {
    (point * plan.contenders() as u64 + discipline as u64) * plan.seeds().len() as u64 + seed as u64
}

impl State {
    fn new(plan: &Plan, known: Vec<dataset::Known>) -> State {
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

    fn has(&self, number: u64) -> bool {
        self.finished.binary_search(&number).is_ok()
    }

    /// Adds trials that were copied.
    fn add(&mut self, mut numbers: Vec<u64>) {
        self.finished.append(&mut numbers);
        self.finished.sort_unstable();
    }

    /// Keeps the metric of a precision.
    fn note(&mut self, plan: &Plan, precision: &Precision, row: &Row<Measured>) {
        let discipline = plan.disciplines().position(|known| known == row.discipline);
        let seed = plan.seeds().iter().position(|seed| *seed == row.seed);
        let value = row.result.value(&precision.metric);
        if let (Some(discipline), Some(seed), Some(value)) = (discipline, seed, value) {
            self.values.entry((row.point, discipline)).or_default().push((seed, value));
        }
    }

    /// The points of a shard at which the precision is not reached with the first `seeds` seeds, in order. A
    /// point without the metric is closed once it has the fewest seeds.
    fn open(&mut self, plan: &Plan, shard: Shard, precision: &Precision, seeds: usize) -> Vec<u64> {
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

/// Some seeds of some points.
struct Round<'a> {
    plan: &'a Plan,
    shard: Shard,
    /// The numbers of the seeds.
    seeds: std::ops::Range<usize>,
    /// The points; `None` for all.
    open: Option<Vec<u64>>,
    jobs: usize,
}

impl Round<'_> {
    /// The number of points.
    fn points(&self) -> u64 {
        match &self.open {
            Some(points) => points.len() as u64,
            None => (self.plan.points() + self.shard.of - 1 - self.shard.index) / self.shard.of,
        }
    }

    /// The number of tasks.
    fn tasks(&self) -> u64 {
        self.points() * self.seeds.len() as u64
    }

    /// The point and the number of the seed of a task.
    fn task(&self, number: u64) -> (u64, usize) {
        let (place, seed) = (number % self.points(), (number / self.points()) as usize);
        let point = match &self.open {
            Some(points) => points[place as usize],
            None => permuted(place * self.shard.of + self.shard.index, self.plan.points(), ORDER),
        };
        (point, self.seeds.start + seed)
    }

    /// The disciplines of a task that are missing.
    fn missing(&self, state: &State, point: u64, seed: usize) -> Vec<usize> {
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
    fn run(
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
            if result.is_err() {
                broken.store(true, Ordering::Relaxed);
                // Threads that wait for room in the channel end.
                while receiver.recv().is_ok() {}
            }
            result
        });
        result?;
        if let Some(precision) = &self.plan.request().until {
            for row in &noted {
                state.note(self.plan, precision, row);
            }
        }
        Ok((writer.ran, writer.failed, frontend.stopped()))
    }

    /// Copies trials that other data sets have. Returns their number.
    fn copy(
        &self,
        folder: &mut SweepFolder,
        state: &mut State,
        others: &[PathBuf],
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
    fn of(others: &[PathBuf]) -> Result<Index, SweepError> {
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

/// Runs disciplines at a point with a seed.
pub fn execute(
    plan: &Plan,
    point: u64,
    seed: usize,
    disciplines: &[usize],
    progress: &Progress,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Rows {
    let (mut finished, mut failed) = (Vec::new(), Vec::new());
    let row = |key: u128, discipline: usize, qdisc: String| Row {
        key,
        point,
        discipline: plan.disciplines().nth(discipline).unwrap_or_default().to_owned(),
        qdisc,
        seed: plan.seeds()[seed],
        axes: plan.values(point, discipline),
        result: (),
    };
    let at: Point = match plan.point(point) {
        Ok(at) => at,
        Err(error) => {
            for discipline in disciplines {
                let written = plan.disciplines().nth(*discipline).unwrap_or_default().to_owned();
                failed.push(with(row(0, *discipline, written), error.to_string()));
                progress.part().done(1.0);
            }
            return (finished, failed);
        }
    };
    for trial in at.scenario.trials() {
        if trial.seed != plan.seeds()[seed] || !disciplines.contains(&trial.discipline) {
            continue;
        }
        let part = progress.part();
        let advance = |share: f64| {
            part.done(share);
            go_on()
        };
        if !go_on() {
            break;
        }
        let known = row(at.key(&trial.name, trial.seed), trial.discipline, trial.name.clone());
        match catch_unwind(AssertUnwindSafe(|| observe(&at.scenario, &trial, false, &advance))) {
            Ok(Some((record, _))) => finished.push(with(known, Measured::of(&record.summary))),
            // The front end stopped it.
            Ok(None) => break,
            Err(panic) => failed.push(with(known, panic_message(panic.as_ref()))),
        }
        part.done(1.0);
    }
    (finished, failed)
}

fn with<R>(row: Row<()>, result: R) -> Row<R> {
    let Row { key, point, discipline, qdisc, seed, axes, result: () } = row;
    Row { key, point, discipline, qdisc, seed, axes, result }
}

/// Collects rows into parts.
struct Writer {
    rows: Vec<Row<Measured>>,
    failures: Vec<Row<Reason>>,
    ran: u64,
    failed: u64,
    began: Instant,
    written: Instant,
}

impl Writer {
    #[expect(clippy::disallowed_methods, reason = "the time decides when a part is written, and no result")]
    fn new() -> Writer {
        let now = Instant::now();
        Writer { rows: Vec::new(), failures: Vec::new(), ran: 0, failed: 0, began: now, written: now }
    }

    /// The time until the next part is due.
    fn patience(&self) -> Duration {
        (self.began.elapsed() / SHARE).clamp(OFTEN, SELDOM).saturating_sub(self.written.elapsed())
    }

    fn add(
        &mut self,
        folder: &mut SweepFolder,
        mut rows: Vec<Row<Measured>>,
        mut failed: Vec<Row<Reason>>,
    ) -> Result<(), SweepError> {
        self.ran += rows.len() as u64;
        self.failed += failed.len() as u64;
        self.rows.append(&mut rows);
        self.failures.append(&mut failed);
        if self.rows.len() + self.failures.len() >= MOST_ROWS || self.patience().is_zero() {
            return self.flush(folder);
        }
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "the time decides when a part is written, and no result")]
    fn flush(&mut self, folder: &mut SweepFolder) -> Result<(), SweepError> {
        folder.add(&self.rows)?;
        self.rows.clear();
        folder.add_failed(&self.failures)?;
        self.failures.clear();
        self.written = Instant::now();
        Ok(())
    }
}

/// The parts of the sweep in `dir`, for [`run`].
///
/// # Errors
/// If the folder is not that of a sweep.
pub fn parts_of(dir: &std::path::Path) -> Result<Vec<PathBuf>, SweepError> {
    match crate::folder::Manifest::read(dir)? {
        Some(_) => Ok(parts(&dir.join("trials"))),
        None => Err(SweepError::Usage(format!("{} is not the folder of a sweep", dir.display()))),
    }
}
