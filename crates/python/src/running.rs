//! Runs on other threads, while the interpreter can be interrupted.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use giveway_measure::Record;
use giveway_record::Opened;
use giveway_runner::{Bar, Frontend, Outcome, Session, Unit, manifest, question};
use pyo3::prelude::*;

use crate::errors;
use crate::own::{self, Own};
use crate::results::{Memory, Results};
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

    /// The share that is done, 0 to 1.
    fn share(&self) -> f64 {
        let all = self.0.all.load(Ordering::Relaxed).max(1);
        self.0.done.load(Ordering::Relaxed) as f64 / all as f64
    }

    /// Calls `work` on another thread, and waits without the GIL. Meanwhile it calls `progress` with the
    /// share that is done, if that has grown. A signal of the interpreter, such as Ctrl-C, or an exception of
    /// `progress` stops the work, which then returns what is finished; this is the second result.
    pub fn wait<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<&Py<PyAny>>,
        work: impl FnOnce() -> T + Send,
    ) -> (T, Option<PyErr>) {
        let mut interruption = None;
        let done = std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            // Only this thread receives; the lock shows it to the compiler.
            let receiver = Mutex::new(receiver);
            let worker = scope.spawn(move || {
                let done = work();
                // The receiver waits until then.
                let _ = sender.send(());
                done
            });
            let mut shown = -1.0;
            loop {
                let waited = py.detach(|| match receiver.lock() {
                    Ok(receiver) => receiver.recv_timeout(PERIOD),
                    Err(_) => Err(RecvTimeoutError::Disconnected),
                });
                if interruption.is_none() {
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
                        interruption = Some(error);
                    }
                }
                if !matches!(waited, Err(RecvTimeoutError::Timeout)) {
                    break;
                }
            }
            py.detach(|| worker.join())
        });
        match done {
            Ok(done) => (done, interruption),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Runs a scenario: each discipline with each seed. `own` has disciplines in Python. Returns the results,
/// messages, and the exception of an interruption, with which the results are those that finished.
///
/// `scenario` has the built-in disciplines; None if there are none. `base` has one discipline, in whose place
/// those of `own` run.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the package calls it in one place, by position")]
pub fn run(
    py: Python<'_>,
    scenario: Option<&Bound<'_, Scenario>>,
    base: Option<&Bound<'_, Scenario>>,
    own: Vec<Own>,
    parallel: (u16, usize),
    progress: Option<Py<PyAny>>,
    place: (Option<PathBuf>, bool),
    provenance: (String, String),
) -> PyResult<(Results, Vec<String>, Option<Py<PyAny>>)> {
    let ((jobs, threads), (out, force)) = (parallel, place);
    let watched = Watched::default();
    let mut interruption = None;
    let mut runs: Vec<(giveway_measure::Trial, Record)> = Vec::new();
    let mut kept = None;
    let mut planned = 0;
    let mut failures = Vec::new();
    if let Some(scenario) = scenario {
        let Scenario { read, name, .. } = scenario.get();
        let work = || {
            let session = Session::new(jobs, &watched, provenance.0.clone(), provenance.1.clone())?;
            let session = session.replacing(force).dividing(threads).recording(out.is_none());
            Ok(session.run(read, name, out.as_deref(), &|_| None))
        };
        let (done, stopped) = watched.wait(py, progress.as_ref(), work);
        interruption = stopped;
        let done = done.map_err(|error| errors::runner(py, &error))?;
        match done {
            Err(Outcome::Interrupted) => {}
            Err(_) => return Err(errors::failed(py, &watched.messages().join("\n"))),
            Ok(done) => {
                planned += done.planned;
                if done.outcome == Outcome::Failed {
                    failures = watched.messages();
                }
                runs = done.records;
                watched.0.messages.lock().unwrap_or_else(PoisonError::into_inner).extend(done.remarks);
            }
        }
        if let Some(dir) = &out {
            kept = Some(dir.clone());
        }
    }
    if !failures.is_empty() {
        return Err(errors::failed(py, &failures.join("\n")));
    }
    if let Some(dir) = kept {
        let opened = py.detach(|| Opened::read(&dir)).map_err(|error| match interruption.take() {
            // Nothing is finished.
            Some(interruption) => interruption,
            None => errors::failed(py, &giveway_runner::chain(&error)),
        })?;
        let stopped = interruption.map(|error| error.into_value(py).into_any());
        return Ok((Results::of_folder(opened), watched.messages(), stopped));
    }
    let described = scenario.or(base).expect("the package gives one of them");
    let Scenario { read, name, .. } = described.get();
    let mut manifest = manifest(read, name, provenance);
    let mut asked = question(read);
    if let (Some(base), false) = (base, own.is_empty()) {
        let base = base.get();
        if scenario.is_none() {
            manifest.disciplines.clear();
        }
        planned += own.len() * base.read.seeds.len();
        for one in &own {
            asked.push_str(&format!(
                "# The discipline {} is written in Python:\n{}",
                one.name,
                one.commented()
            ));
            manifest.disciplines.push(giveway_measure::Discipline::named(&one.name));
        }
        if interruption.is_none() {
            interruption = own::run_all(py, &base.read, &own, progress.as_ref(), &mut runs)?;
        }
        in_order(&own, &mut runs, &mut manifest.disciplines);
    }
    let text = read.text();
    let memory = Memory { runs, manifest, asked, scenario: text, planned };
    let stopped = interruption.map(|error| error.into_value(py).into_any());
    Ok((Results::new(memory), watched.messages(), stopped))
}

/// Moves the disciplines in Python, which ran last, to their places among all.
fn in_order(
    own: &[Own],
    runs: &mut [(giveway_measure::Trial, Record)],
    disciplines: &mut Vec<giveway_measure::Discipline>,
) {
    let split = disciplines.len() - own.len();
    let mut built_in = disciplines.drain(..split).collect::<Vec<_>>().into_iter();
    let mut mine = std::mem::take(disciplines).into_iter();
    let all = own.len() + split;
    for place in 0..all {
        let next = if own.iter().any(|one| one.place == place) { mine.next() } else { built_in.next() };
        disciplines.extend(next);
    }
    let place = |qdisc: &str| disciplines.iter().position(|discipline| discipline.qdisc == qdisc);
    // Stable, so that the seeds keep their order.
    runs.sort_by_key(|(trial, _)| place(&trial.qdisc));
}
