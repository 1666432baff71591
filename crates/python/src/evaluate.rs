//! The card of a discipline.

use std::path::PathBuf;
use std::sync::Arc;

use giveway_evaluate::{
    Backend, Card, EvaluateError, OwnRuns, Request, axes, cells, chosen, evaluate_with, json, page,
    scenario_of, text,
};
use giveway_record::dataset::Measured;
use giveway_scenario::{Scenario, Trial};
use giveway_trials::{DataSet, Memory, Reuse, Reusing, Store};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;
use crate::own::{self, Own};
use crate::running::{Exception, Watched, threads};

/// A card: its text, all numbers as JSON, its page, and the scenario of each cell by name.
type Shown = (String, String, String, Vec<(String, String)>);

/// Seeds, the short form, the timing of real machines, settings to try, the sensitivity, and threads; then
/// the folder that keeps the runs, and the folders whose trials are taken.
type Options = (u32, bool, bool, u32, bool, u16, Option<PathBuf>, Vec<PathBuf>);

/// The names and titles of all cells.
#[pyfunction]
pub fn evaluation_cells() -> Vec<(String, String)> {
    cells().into_iter().map(|cell| (cell.name, cell.title)).collect()
}

/// Runs a card. The candidate is a specification, or a discipline in Python.
#[pyfunction]
#[pyo3(signature = (candidate, own, against, cells, options, progress))]
pub fn evaluate_discipline(
    py: Python<'_>,
    candidate: String,
    own: Option<Own>,
    against: Vec<String>,
    cells: Vec<String>,
    options: Options,
    progress: Option<Py<PyAny>>,
) -> PyResult<Shown> {
    let (seeds, short, timing, tune, sensitivity, jobs, out, reuse) = options;
    let cells = chosen(&cells).map_err(|error| raised(py, &error))?;
    let jobs = threads(jobs);
    let source = own.as_ref().map(|own| own.source.clone());
    let request = Request {
        candidate,
        against,
        seeds,
        first_seed: 1,
        cells,
        short,
        timing,
        tune,
        sensitivity,
        jobs,
        bed: false,
        source,
    };
    let watched = Watched::default();
    let theirs = watched.clone();
    let exception = Exception::default();
    let kept = exception.clone();
    let waited =
        watched.wait_and_serve(py, progress.as_ref(), move |caller| -> Result<Card, EvaluateError> {
            let other =
                Reuse::of(&reuse, &theirs).map_err(|error| EvaluateError::Usage(error.to_string()))?;
            let memory = Memory::default();
            let version = giveway_sources::SIMULATION;
            let data = out.map(|out| DataSet::open(&out, &axes(), version, &theirs)).transpose()?;
            let own_store: &dyn Store<Measured> = match &data {
                Some(data) => data,
                None => &memory,
            };
            let store = &Reusing::new(own_store, &other);
            let card = |backend: Backend<'_, '_>| {
                let card = evaluate_with(request, backend, store, &theirs);
                if let (Ok(_), Some(data)) = (&card, &data) {
                    data.complete()?;
                }
                card
            };
            let Some(own) = own.map(Arc::new) else { return card(Backend::Simulator) };
            let run_own: &mut OwnRuns<'_> = &mut |scenario: &Scenario, seed: u64| {
                let trial = Trial { discipline: 0, name: own.name.clone(), seed };
                let (own, scenario, frontend) = (Arc::clone(&own), scenario.clone(), theirs.clone());
                let ran = caller.call(move |py| own::run_with(py, &scenario, &own, &trial, &frontend));
                ran.ok_or(EvaluateError::Stopped)?.map_err(|error| {
                    kept.keep(error);
                    EvaluateError::Stopped
                })
            };
            card(Backend::Own(run_own))
        });
    let (card, stopped) = waited.ended(py);
    if let Some(error) = stopped {
        return Err(error);
    }
    exception.raised()?;
    let card = card.map_err(|error| raised(py, &error))?;
    let scenarios = card.request.cells.iter().map(|cell| (cell.name.clone(), scenario_of(&card, cell)));
    let scenarios = scenarios.collect();
    Ok((text(&card), json(&card).to_string(), page(&card).html(), scenarios))
}

/// The exception of an error of a card.
pub fn raised(py: Python<'_>, error: &EvaluateError) -> PyErr {
    match error {
        EvaluateError::Scenario(error) => errors::scenario(py, error),
        EvaluateError::Usage(text) => PyValueError::new_err(text.clone()),
        error => errors::failed(py, &error.to_string()),
    }
}
