//! The judgement of a discipline that a program has searched for.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use giveway_judge::{
    Around, Candidate, Code, Failed, Judgement, Mistake, Perturbation, Process, Ran, Rejected, Request,
    STAND_IN, Served, confine, json, judge, named, text,
};
use giveway_qdisc::{Bytes, LinkContext};
use giveway_scenario::{Scenario, Trial};
use giveway_wasm::Limits;
use pyo3::exceptions::{PyException, PyMemoryError, PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::evaluate::raised;
use crate::own::failure::Failure;
use crate::own::{self, Own};
use crate::running::{Caller, Exception, Watched, threads};

/// Judges a candidate: a discipline in Python, a file of WebAssembly, or a specification. Returns the
/// judgement as text, and as JSON.
#[pyfunction]
#[pyo3(signature = (candidate, own, against, secret, options, progress))]
pub fn judge_discipline(
    py: Python<'_>,
    candidate: String,
    own: Option<Own>,
    against: String,
    secret: String,
    options: (u32, u16, u64, u64),
    progress: Option<Py<PyAny>>,
) -> PyResult<Shown> {
    let (seeds, jobs, fuel, memory) = options;
    // A class in this process runs in the calling thread, which also waits.
    let jobs = if own.is_some() { 1 } else { threads(jobs) };
    let request = Request { baseline: against, secret, seeds, jobs, ..Request::default() };
    let watched = Watched::default();
    let theirs = watched.clone();
    let exception = Exception::default();
    let waited = match own {
        Some(own) => {
            let (name, own, kept) = (candidate, Arc::new(own), exception.clone());
            watched.wait_and_serve(py, progress.as_ref(), move |caller| {
                let candidate = InPython { name, own, caller, frontend: &theirs, kept };
                judge(&candidate, &request, &theirs)
            })
        }
        None => {
            let limits = Limits { fuel, memory: Bytes(memory), ..Limits::default() };
            match named(&candidate, limits)? {
                Ok(judged) => {
                    watched.wait(py, progress.as_ref(), move || judge(judged.as_ref(), &request, &theirs))
                }
                Err(rejected) => {
                    return Ok(shown(&Judgement::refused(&candidate, &request.baseline, rejected)));
                }
            }
        }
    };
    let (judgement, stopped) = waited.ended(py);
    if let Some(error) = stopped {
        return Err(error);
    }
    exception.raised()?;
    Ok(shown(&judgement.map_err(|error| raised(py, &error))?))
}

/// Judges a candidate in processes of its own. `start` starts one for each run; it gets a descriptor, the end
/// of the channel for the process. Returns the judgement as text, and as JSON.
#[pyfunction]
#[pyo3(signature = (candidate, start, against, secret, options, progress))]
pub fn judge_process(
    py: Python<'_>,
    candidate: String,
    start: Py<PyAny>,
    against: String,
    secret: String,
    options: (u32, u16),
    progress: Option<Py<PyAny>>,
) -> PyResult<Shown> {
    let (seeds, jobs) = options;
    let request = Request { baseline: against, secret, seeds, jobs: threads(jobs), ..Request::default() };
    let watched = Watched::default();
    let theirs = watched.clone();
    let (start, exception) = (Arc::new(start), Exception::default());
    let kept = exception.clone();
    let waited = watched.wait_and_serve(py, progress.as_ref(), move |caller| {
        let connect = move || {
            let (mine, other) = UnixStream::pair()?;
            let (start, kept, descriptor) = (Arc::clone(&start), kept.clone(), other.as_raw_fd());
            let started = caller.call(move |py| match start.call1(py, (descriptor,)) {
                Ok(_) => true,
                Err(error) => {
                    kept.keep(error);
                    false
                }
            });
            if started == Some(true) { Ok(mine) } else { Err(std::io::ErrorKind::Interrupted.into()) }
        };
        let process = Process::new(&candidate, &connect);
        (judge(&process, &request, &theirs), process.has_open_process())
    });
    let ((judgement, is_open), stopped) = waited.ended(py);
    if let Some(error) = stopped {
        return Err(error);
    }
    exception.raised()?;
    if is_open {
        let category = py.get_type::<PyRuntimeWarning>();
        let message = c"this system has no filter of system calls (seccomp): only limits of resources hold the candidate";
        PyErr::warn(py, &category, message, 1)?;
    }
    Ok(shown(&judgement.map_err(|error| raised(py, &error))?))
}

/// The process of a candidate: answers the questions of a judge over the standard input, a socket, until it is
/// closed. Before `make` runs the program of the candidate, this process loses its files and its network.
/// `make` returns the discipline, or the kind of a reason and a sentence.
#[pyfunction]
pub fn serve_candidate(py: Python<'_>, make: Py<PyAny>) -> PyResult<()> {
    let mut served = Served::new(UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?))?;
    // Without a filter of system calls, limits of resources are what holds, and the judge says so.
    let is_confined = confine().is_ok();
    let made = match make.call0(py)?.extract::<Made>(py)? {
        Made::Discipline(own) => own,
        Made::Refused((code, sentence)) => {
            return Ok(served.refuse(Mistake { code: code_of(&code)?, sentence })?);
        }
    };
    let failure = Failure::default();
    // Interruptions are of the judge, which closes the channel.
    let kept = Exception::default();
    let mistake = |error: PyErr| match failed(py, error, &kept) {
        Failed::Rejected(Rejected { code, sentence, .. }) => Mistake { code, sentence },
        _ => Mistake { code: Code::Crash, sentence: "it was interrupted".to_owned() },
    };
    let mut build = |context: &LinkContext, seed: u64| {
        let queue = seeded(py, &made, seed).and_then(|own| own::new(py, &own, "link", context, &failure));
        queue.map_err(mistake)
    };
    served.run(is_confined, &mut build, &mut || {
        failure.is_set().then(|| failure.take()).flatten().map(mistake)
    })?;
    Ok(())
}

/// The result of setting a candidate up.
#[derive(FromPyObject)]
enum Made {
    Refused((String, String)),
    Discipline(Own),
}

/// A discipline whose links have this word for their random numbers.
fn seeded(py: Python<'_>, own: &Own, seed: u64) -> PyResult<Own> {
    let Own { name, place, make, limit, source } = own;
    let (name, place, limit, source) = (name.clone(), *place, limit.clone(), source.clone());
    let mut make = make.clone_ref(py);
    // A rank gets packets, and no link.
    if limit.is_none() {
        let unseeded = make;
        let seeded = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            let link = arguments.get_item(0)?;
            link.set_item("seed", seed)?;
            unseeded.call1(arguments.py(), (link,))
        };
        make = PyCFunction::new_closure(py, None, None, seeded)?.into_any().unbind();
    }
    Ok(Own { name, place, make, limit, source })
}

/// The message with which a process says that its candidate made a mistake, for one that cannot return.
#[pyfunction]
pub fn candidate_mistake(code: &str, sentence: String) -> PyResult<Vec<u8>> {
    Ok(Mistake { code: code_of(code)?, sentence }.message())
}

/// A judgement as text, and as JSON.
type Shown = (String, String);

fn shown(judgement: &Judgement) -> Shown {
    (text(judgement), json(judgement).to_string())
}

/// The kind of a reason, from its name in JSON.
fn code_of(name: &str) -> PyResult<Code> {
    serde_json::from_value(name.into()).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

/// A discipline in Python, which runs in the calling thread.
struct InPython<'a> {
    name: String,
    own: Arc<Own>,
    caller: &'a Caller,
    frontend: &'a Watched,
    /// An interruption.
    kept: Exception,
}

impl Candidate for InPython<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn stands_for(&self) -> &str {
        STAND_IN
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        perturbation: Option<&Perturbation>,
        _: &dyn Fn(f64) -> bool,
    ) -> Result<Ran, Failed> {
        let trial = Trial { discipline: 0, name: self.own.name.clone(), seed };
        let (own, scenario, perturbation) = (Arc::clone(&self.own), scenario.clone(), perturbation.cloned());
        let (frontend, kept) = (self.frontend.clone(), self.kept.clone());
        let ran = self.caller.call(move |py| {
            let around = Around::new(perturbation.as_ref());
            match own::run_around(py, &scenario, &own, &trial, &frontend, &around) {
                Ok(record) => Ok(Ran { record, seen: around.seen(), fuel: (0, 0) }),
                Err(error) => Err(failed(py, error, &kept)),
            }
        });
        ran.unwrap_or(Err(Failed::Stopped))
    }
}

/// The reason for a run without a result. An interruption is kept.
fn failed(py: Python<'_>, error: PyErr, kept: &Exception) -> Failed {
    let cause = error.cause(py);
    let kind = error.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
    let code = match &cause {
        // Lines are counted with an exception that programs do not catch by accident.
        _ if kind == "FuelError" => Code::Fuel,
        _ if !error.is_instance_of::<PyException>(py) => {
            kept.keep(error);
            return Failed::Stopped;
        }
        None if error.is_instance_of::<PyMemoryError>(py) => Code::Memory,
        None => Code::Contract,
        Some(cause) if cause.is_instance_of::<PyMemoryError>(py) => Code::Memory,
        Some(_) => Code::Crash,
    };
    Failed::Rejected(Rejected::new(code, error.value(py).to_string()))
}
