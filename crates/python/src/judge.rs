//! The judgement of a discipline that a program has searched for.

use std::path::Path;

use giveway_evaluate::EvaluateError;
use giveway_judge::{
    Around, BuiltIn, Candidate, Code, Failed, Judgement, Program, Ran, Rejected, Request, STAND_IN, json,
    judge, text,
};
use giveway_qdisc::Bytes;
use giveway_scenario::{Backend, Scenario, Trial};
use giveway_wasm::{Limits, Module};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::errors;
use crate::own::{self, Own};
use crate::running::Watched;

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
) -> PyResult<(String, String)> {
    let (seeds, jobs, fuel, memory) = options;
    // A discipline in Python runs in one thread.
    let jobs = match (&own, jobs) {
        (Some(_), _) => 1,
        (None, 0) => giveway_runner::processors(),
        (None, jobs) => usize::from(jobs),
    };
    let request = Request { baseline: against.clone(), secret, seeds, jobs, ..Request::default() };
    let judged: Box<dyn Candidate + Send> = match own {
        Some(own) => Box::new(InPython { name: candidate.clone(), own }),
        None if candidate.ends_with(".wasm") => {
            let bytes = std::fs::read(Path::new(&candidate))?;
            let limits = Limits { fuel, memory: Bytes(memory), ..Limits::default() };
            match Module::read(&bytes, limits) {
                Ok(module) => Box::new(Program::new(&candidate, module)),
                Err(error) => {
                    let rejected = Some(Rejected::new(Code::Module, error.to_string()));
                    let judgement =
                        Judgement { candidate, baseline: against, rejected, ..Judgement::default() };
                    return Ok((text(&judgement), json(&judgement).to_string()));
                }
            }
        }
        None => Box::new(BuiltIn::new(&candidate)),
    };
    let watched = Watched::default();
    let theirs = watched.clone();
    let waited = watched.wait(py, progress.as_ref(), move || judge(judged.as_ref(), &request, &theirs));
    let (judgement, stopped) = waited.ended(py);
    if let Some(error) = stopped {
        return Err(error);
    }
    let judgement = judgement.map_err(|error| match error {
        EvaluateError::Scenario(error) => errors::scenario(py, &error),
        EvaluateError::Usage(text) => PyValueError::new_err(text),
        error => errors::failed(py, &error.to_string()),
    })?;
    Ok((text(&judgement), json(&judgement).to_string()))
}

/// A discipline in Python.
struct InPython {
    name: String,
    own: Own,
}

impl Candidate for InPython {
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
        around: &Around,
        go_on: &dyn Fn(f64) -> bool,
    ) -> Result<Ran, Failed> {
        let Backend::Network(network) = &scenario.backend else { return Err(Failed::Stopped) };
        let trial = Trial { discipline: 0, name: self.own.name.clone(), seed };
        let go_on = |done: f64| if go_on(done) { Ok(()) } else { Err(PyKeyboardInterrupt::new_err(())) };
        Python::attach(|py| match own::run_around(py, network, &self.own, &trial, &go_on, around) {
            Ok(record) => Ok(Ran { record, seen: around.seen(), fuel: (0, 0) }),
            Err(error) => Err(failed(py, &error)),
        })
    }
}

/// The reason for a run without a result.
fn failed(py: Python<'_>, error: &PyErr) -> Failed {
    let cause = error.cause(py);
    let kind = |error: &PyErr| error.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
    let code = match &cause {
        // Lines are counted with an exception that programs do not catch by accident.
        _ if kind(error) == "FuelError" => Code::Fuel,
        _ if !error.is_instance_of::<PyException>(py) => return Failed::Stopped,
        None if error.is_instance_of::<PyMemoryError>(py) => Code::Memory,
        None => Code::Contract,
        Some(cause) if cause.is_instance_of::<PyMemoryError>(py) => Code::Memory,
        Some(_) => Code::Crash,
    };
    Failed::Rejected(Rejected::new(code, error.value(py).to_string()))
}
