//! The judgement of a discipline that a program has searched for.

use std::sync::Arc;

use giveway_judge::{
    Around, Candidate, Code, Failed, Judgement, Perturbation, Ran, Rejected, Request, STAND_IN, json, judge,
    named, text,
};
use giveway_qdisc::Bytes;
use giveway_scenario::{Scenario, Trial};
use giveway_wasm::Limits;
use pyo3::exceptions::{PyException, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::evaluate::raised;
use crate::own::{self, Own};
use crate::running::{Caller, Exception, Watched};

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
    // A discipline in Python runs in the calling thread, which also waits.
    let jobs = match (&own, jobs) {
        (Some(_), _) => 1,
        (None, 0) => giveway_trials::processors(),
        (None, jobs) => usize::from(jobs),
    };
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

/// A judgement as text, and as JSON.
type Shown = (String, String);

fn shown(judgement: &Judgement) -> Shown {
    (text(judgement), json(judgement).to_string())
}

/// The judgement of a candidate that is rejected before it runs, or whose process ended. `code` is the kind
/// of the reason, as in JSON.
#[pyfunction]
pub fn refused_candidate(candidate: &str, against: &str, code: &str, sentence: String) -> PyResult<Shown> {
    let code: Code = serde_json::from_value(code.into())
        .map_err(|error| PyValueError::new_err(format!("{code}: {error}")))?;
    Ok(shown(&Judgement::refused(candidate, against, Rejected::new(code, sentence))))
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
