//! Runs on other threads, while the interpreter can be interrupted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use giveway_measure::Record;
use giveway_record::Opened;
use giveway_record::report::ReportError;
use giveway_runner::{Outcome, RunnerError, Session, manifest};
use giveway_trials::{Bar, Frontend, Unit, identity_text};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::errors;
use crate::own::traffic::OwnTraffic;
use crate::own::{self, Contender, Guests, Own};
use crate::results::{Files, Memory, Results};
use crate::scenario::Scenario;

/// The time between two questions to the interpreter: whether a signal has come.
const PERIOD: Duration = Duration::from_millis(20);

/// The front end of runs: it keeps messages and progress for the calling thread, and stops the runs.
#[derive(Clone, Default)]
pub struct Watched(Arc<Shared>);

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    messages: Mutex<Vec<String>>,
    /// The steps of the bar that are done, and all of them.
    done: AtomicU64,
    all: AtomicU64,
}

/// The progress bar, in which the calling thread reads.
struct Counted(Arc<Shared>);

impl Bar for Counted {
    fn advance(&self, steps: u64) {
        self.0.done.fetch_add(steps, Ordering::Relaxed);
    }
}

impl Frontend for Watched {
    fn message(&self, text: &str) {
        self.0.messages.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
    }

    fn stopped(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    fn bar(&self, _: &str, steps: u64, _: Unit) -> Box<dyn Bar> {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.all.store(steps, Ordering::Relaxed);
        Box::new(Counted(Arc::clone(&self.0)))
    }
}

impl Watched {
    /// The messages so far.
    pub fn messages(&self) -> Vec<String> {
        std::mem::take(&mut self.0.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds messages.
    pub fn add(&self, messages: Vec<String>) {
        self.0.messages.lock().unwrap_or_else(PoisonError::into_inner).extend(messages);
    }

    /// The share that is done, 0 to 1.
    fn share(&self) -> f64 {
        let all = self.0.all.load(Ordering::Relaxed).max(1);
        self.0.done.load(Ordering::Relaxed) as f64 / all as f64
    }

    /// Calls `work` on another thread, and waits without the GIL. Meanwhile it calls `progress` with the
    /// share that is done, if that has grown. A signal of the interpreter, such as Ctrl-C, or an exception of
    /// `progress` stops the work, and ends the waiting at once.
    pub fn wait<T: Send + 'static>(
        &self,
        py: Python<'_>,
        progress: Option<&Py<PyAny>>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Waited<T> {
        self.wait_and_serve(py, progress, |_| work())
    }

    /// Like [`wait`](Watched::wait), for work that has errands for the calling thread.
    pub fn wait_and_serve<T: Send + 'static>(
        &self,
        py: Python<'_>,
        progress: Option<&Py<PyAny>>,
        work: impl FnOnce(&Caller) -> T + Send + 'static,
    ) -> Waited<T> {
        let (sender, receiver) = channel();
        // Only this thread receives; the lock shows it to the compiler.
        let receiver = Mutex::new(receiver);
        let worker = std::thread::spawn(move || {
            let done = work(&Caller(sender.clone()));
            // After an interruption, nobody waits.
            let _ = sender.send(Message::Done);
            done
        });
        let mut shown = -1.0;
        loop {
            let waited = py.detach(|| match receiver.lock() {
                Ok(receiver) => receiver.recv_timeout(PERIOD),
                Err(_) => Err(RecvTimeoutError::Disconnected),
            });
            let ended = match waited {
                Ok(Message::Errand(errand)) => {
                    errand(py);
                    false
                }
                Ok(Message::Done) | Err(RecvTimeoutError::Disconnected) => true,
                Err(RecvTimeoutError::Timeout) => false,
            };
            let asked = py.check_signals().and_then(|()| {
                let share = self.share();
                match progress.filter(|_| share > shown) {
                    Some(progress) => {
                        shown = share;
                        progress.call1(py, (share,)).map(drop)
                    }
                    None => Ok(()),
                }
            });
            if let Err(error) = asked {
                self.0.stop.store(true, Ordering::Relaxed);
                return Waited::Stopped(error, Stopping(worker));
            }
            if ended {
                return Waited::Done(Stopping(worker).result(py));
            }
        }
    }
}

/// A message of the work to the calling thread.
enum Message {
    /// The calling thread calls it.
    Errand(Box<dyn FnOnce(Python<'_>) + Send>),
    /// The work has ended.
    Done,
}

/// The calling thread, which waits for work and runs its errands. A discipline in Python runs there: objects
/// of some libraries may be used, and freed, in one thread only.
pub struct Caller(Sender<Message>);

impl Caller {
    /// Calls `errand` on the calling thread, and waits for its result. `None` if the work was interrupted.
    pub fn call<T: Send + 'static>(
        &self,
        errand: impl FnOnce(Python<'_>) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = channel();
        let errand = move |py: Python<'_>| {
            // The work waits for it.
            let _ = sender.send(errand(py));
        };
        self.0.send(Message::Errand(Box::new(errand))).ok()?;
        receiver.recv().ok()
    }
}

/// The exception of an errand, which ends the work.
#[derive(Clone, Default)]
pub struct Exception(Arc<Mutex<Option<PyErr>>>);

impl Exception {
    /// Keeps an exception until the work has ended.
    pub fn keep(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Raises the exception that was kept, if there is one.
    ///
    /// # Errors
    /// That exception.
    pub fn raised(&self) -> PyResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// The end of waiting for work.
pub enum Waited<T> {
    /// The work has ended.
    Done(T),
    /// An exception has stopped the work, which is about to end.
    Stopped(PyErr, Stopping<T>),
}

impl<T: Send + 'static> Waited<T> {
    /// Waits for the end of stopped work as well. This takes milliseconds if the work writes no files.
    pub fn ended(self, py: Python<'_>) -> (T, Option<PyErr>) {
        match self {
            Waited::Done(done) => (done, None),
            Waited::Stopped(error, stopping) => (stopping.result(py), Some(error)),
        }
    }
}

/// Work that was asked to stop.
pub struct Stopping<T>(JoinHandle<T>);

impl<T: Send + 'static> Stopping<T> {
    /// The result of the work: what had finished.
    pub fn result(self, py: Python<'_>) -> T {
        match py.detach(|| self.0.join()) {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Waits for the result of stopped work, and turns it into an object for Python.
type Ending = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// The result of interrupted work that writes a folder: tables and a report of the runs that had finished.
/// Another thread writes it, so that an interruption does not wait for it.
#[pyclass(frozen, module = "giveway._giveway")]
pub struct Later(Mutex<Option<Ending>>);

impl Later {
    /// `end` turns the result of the work into an object for Python.
    pub fn new<T: Send + 'static>(
        stopping: Stopping<T>,
        end: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Later {
        Later(Mutex::new(Some(Box::new(move |py| {
            let done = stopping.result(py);
            end(py, done)
        }))))
    }
}

#[pymethods]
impl Later {
    /// Waits until the folder is complete, and returns its results; None at the second call.
    fn result(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let ending = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        ending.map(|ending| ending(py)).transpose()
    }
}

/// The end of runs: their results, messages, and the exception of an interruption. Results in a folder follow
/// [`Later`] if the runs were interrupted.
type Ran = (Option<Results>, Vec<String>, Option<Py<PyAny>>, Option<Later>);

/// Runs a scenario: each discipline with each seed. `guests` has disciplines and sources of traffic in
/// Python. Returns the results, messages, and the exception of an interruption, with which the results are
/// those that finished.
///
/// `scenario` contains the built-in disciplines; None if there are none. `base` has one discipline, in whose
/// place the disciplines in Python run. `apart` runs trials with guests in other processes ([`run_apart`]).
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the package calls it in one place, by position")]
pub fn run(
    py: Python<'_>,
    scenario: Option<&Bound<'_, Scenario>>,
    base: Option<&Bound<'_, Scenario>>,
    guests: (Vec<Own>, Vec<OwnTraffic>),
    parallel: (u16, usize),
    progress: Option<Py<PyAny>>,
    place: (Option<PathBuf>, bool),
    provenance: (String, String),
    apart: Option<Py<PyAny>>,
) -> PyResult<Ran> {
    let ((jobs, threads), (out, force), (own, traffic)) = (parallel, place, guests);
    let watched = Watched::default();
    let parallel = Parallel { jobs, threads, provenance: provenance.clone(), force };
    if let (Some(scenario), Some(dir)) = (scenario, out) {
        return into_folder(py, scenario.clone().unbind(), dir, &watched, progress.as_ref(), parallel);
    }
    let mut interruption = None;
    let mut runs: Vec<(giveway_measure::Trial, Record)> = Vec::new();
    let mut planned = 0;
    if let (Some(scenario), true) = (scenario, traffic.is_empty()) {
        let (scenario, theirs) = (scenario.clone().unbind(), watched.clone());
        let (done, stopped) =
            watched.wait(py, progress.as_ref(), move || parallel.run(&scenario, None, &theirs)).ended(py);
        interruption = stopped;
        match done.map_err(|error| errors::runner(py, &error))? {
            Err(Outcome::Interrupted) => {}
            Err(_) => return Err(errors::failed(py, &watched.messages().join("\n"))),
            Ok(done) if done.outcome == Outcome::Failed => {
                return Err(errors::failed(py, &watched.messages().join("\n")));
            }
            Ok(done) => {
                planned += done.planned;
                runs = done.records;
                watched.add(done.remarks);
            }
        }
    }
    let described = scenario.or(base).expect("the package gives one of them");
    let Scenario { read, name, .. } = described.get();
    let mut manifest = manifest(read, name, provenance);
    let mut asked = identity_text(read);
    if scenario.is_none() {
        manifest.disciplines.clear();
    }
    let written = own.iter().map(|one| ("discipline", &one.name, &one.source));
    let written = written.chain(traffic.iter().map(|one| ("traffic", &one.replaces, &one.source)));
    for (kind, name, source) in written {
        let source = own::commented(source);
        asked.push_str(&format!("# The {kind} {name} is written in Python:\n{source}"));
    }
    manifest.disciplines.extend(own.iter().map(|one| giveway_measure::Discipline::named(&one.name)));
    in_order(&own, &mut manifest.disciplines);
    let mut contenders: Vec<Contender<'_>> = Vec::new();
    contenders.extend(scenario.filter(|_| !traffic.is_empty()).map(|scenario| (&scenario.get().read, None)));
    contenders.extend(base.iter().flat_map(|base| own.iter().map(|one| (&base.get().read, Some(one)))));
    planned += contenders.iter().map(|contender| own::trials(*contender).count()).sum::<usize>();
    let mut memory = Memory { runs, manifest, asked, scenario: read.text(), planned };
    let mut results = None;
    match (interruption.is_none() && !contenders.is_empty(), apart) {
        (false, _) => {}
        (true, None) => {
            let runs = &mut memory.runs;
            interruption = own::run_all(py, &contenders, &traffic, progress.as_ref(), runs)?;
        }
        (true, Some(apart)) => {
            let all: Vec<(usize, usize, u64)> = contenders
                .iter()
                .enumerate()
                .flat_map(|(number, contender)| {
                    own::trials(*contender).map(move |trial| (number, trial.discipline, trial.seed))
                })
                .collect();
            let (files, stopped): (Vec<Files<PyBackedBytes>>, Option<Bound<'_, PyAny>>) =
                apart.call1(py, (&memory.asked, all))?.extract(py)?;
            interruption = stopped.map(PyErr::from_value);
            if !files.is_empty() {
                let gathered = py.detach(|| memory.gathered(&files));
                results = Some(gathered.map_err(|error| errors::runner(py, &error))?);
            }
        }
    }
    let results = results.unwrap_or_else(|| {
        let disciplines = &memory.manifest.disciplines;
        let place = |qdisc: &str| disciplines.iter().position(|discipline| discipline.qdisc == qdisc);
        // Stable, so that the seeds keep their order.
        memory.runs.sort_by_key(|(trial, _)| place(&trial.qdisc));
        Results::new(memory)
    });
    let stopped = interruption.map(|error| error.into_value(py).into_any());
    Ok((Some(results), watched.messages(), stopped, None))
}

/// Runs one trial for [`run`] in another process. Returns the files of the trial in a run folder of `asked`.
#[pyfunction]
pub fn run_apart<'py>(
    py: Python<'py>,
    scenario: &Bound<'_, Scenario>,
    own: Option<Own>,
    traffic: Vec<OwnTraffic>,
    place: (usize, u64),
    asked: &str,
) -> PyResult<Files<Bound<'py, PyBytes>>> {
    let (discipline, seed) = place;
    let Scenario { read, name, .. } = scenario.get();
    let guests = Guests { discipline: own.as_ref(), traffic: &traffic };
    let trial =
        own::trials((read, own.as_ref())).find(|trial| (trial.discipline, trial.seed) == (discipline, seed));
    let trial = trial.ok_or_else(|| errors::failed(py, "the scenario has no such trial"))?;
    let record = own::run_trial(py, read, guests, &trial, &|_| py.check_signals())??;
    let trial = giveway_measure::Trial { qdisc: trial.name, seed };
    let files = Memory::trial_files(asked, manifest(read, name, Default::default()), &trial, &record);
    let files = files.map_err(|error| errors::runner(py, &error))?.into_iter();
    Ok(files.map(|(path, content)| (path, PyBytes::new(py, &content))).collect())
}

/// The number of runs at a time, the threads of each, and the origin and place of results.
struct Parallel {
    jobs: u16,
    threads: usize,
    provenance: (String, String),
    force: bool,
}

/// The number of threads; 0 stands for one for each processor.
pub fn threads(jobs: u16) -> usize {
    if jobs == 0 { giveway_trials::processors() } else { usize::from(jobs) }
}

impl Parallel {
    /// Runs the built-in disciplines of a scenario.
    fn run(
        self,
        scenario: &Py<Scenario>,
        dir: Option<&Path>,
        watched: &Watched,
    ) -> Result<Result<giveway_runner::Results, Outcome>, RunnerError> {
        let Scenario { read, name, .. } = scenario.get();
        let session = Session::new(threads(self.jobs), watched, self.provenance.0, self.provenance.1);
        let session = session.replacing(self.force).dividing(self.threads).recording(dir.is_none());
        Ok(session.run(read, name, dir, &|_| None))
    }
}

/// The outcome of runs in a folder, remarks, and the folder unless no run finished.
type Written = (Outcome, Vec<String>, Option<Result<Opened, ReportError>>);

/// Runs a scenario into the folder `dir`.
fn into_folder(
    py: Python<'_>,
    scenario: Py<Scenario>,
    dir: PathBuf,
    watched: &Watched,
    progress: Option<&Py<PyAny>>,
    parallel: Parallel,
) -> PyResult<Ran> {
    let theirs = watched.clone();
    let waited = watched.wait(py, progress, move || {
        let done = parallel.run(&scenario, Some(&dir), &theirs)?;
        // Without a finished run, there is nothing to open.
        Ok(done.map(|done| (done.outcome, done.remarks, (done.finished > 0).then(|| Opened::read(&dir)))))
    });
    let theirs = watched.clone();
    let results = move |py: Python<'_>, done: Result<Result<Written, Outcome>, RunnerError>| match done
        .map_err(|error| errors::runner(py, &error))?
    {
        Err(Outcome::Interrupted) => Ok(None),
        Err(_) | Ok((Outcome::Failed, ..)) => Err(errors::failed(py, &theirs.messages().join("\n"))),
        Ok((_, remarks, opened)) => {
            theirs.add(remarks);
            let opened = opened.transpose();
            let opened = opened.map_err(|error| errors::failed(py, &giveway_record::chain(&error)))?;
            Ok(opened.map(Results::of_folder))
        }
    };
    match waited {
        Waited::Done(done) => Ok((results(py, done)?, watched.messages(), None, None)),
        Waited::Stopped(error, stopping) => {
            let later = Later::new(stopping, move |py, done| {
                Ok(results(py, done)?.into_pyobject(py)?.into_any().unbind())
            });
            Ok((None, Vec::new(), Some(error.into_value(py).into_any()), Some(later)))
        }
    }
}

/// Moves the disciplines in Python, which are the last, to their places among all.
fn in_order(own: &[Own], disciplines: &mut Vec<giveway_measure::Discipline>) {
    let split = disciplines.len() - own.len();
    let mut built_in = disciplines.drain(..split).collect::<Vec<_>>().into_iter();
    let mut mine = std::mem::take(disciplines).into_iter();
    for place in 0..own.len() + split {
        let next = if own.iter().any(|one| one.place == place) { mine.next() } else { built_in.next() };
        disciplines.extend(next);
    }
}
