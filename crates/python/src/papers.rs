//! Reproduced papers.

use std::path::PathBuf;

use giveway_papers::{Judged, Paper as Known, PaperError, Results, SHIPPED, Scope, Study};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::running::{Watched, threads};

/// A reproduced paper: the study, its results, and the verdicts.
#[pyclass(frozen, module = "giveway._giveway")]
pub struct Paper {
    study: Study,
    results: Results,
    judged: Vec<Judged>,
}

#[pymethods]
impl Paper {
    /// Claims and verdicts as JSON.
    fn json(&self) -> String {
        giveway_papers::json(&self.study, &self.results, &self.judged).to_string()
    }

    /// The page of verdicts as HTML.
    fn html(&self, py: Python<'_>) -> String {
        py.detach(|| giveway_papers::document(&self.study, &self.results, &self.judged).html())
    }

    /// The figures of the paper.
    fn figures(&self) -> Vec<String> {
        self.study.figure_ids().into_iter().map(str::to_owned).collect()
    }

    /// The data of a figure as JSON; None if there is no such figure.
    fn figure(&self, number: &str) -> Option<String> {
        let data = self.study.figure_data(&self.results, number)?;
        Some(json!(data).to_string())
    }

    /// The numbers of finished and of planned runs.
    #[getter]
    fn runs(&self) -> (usize, usize) {
        (self.results.finished, self.results.planned)
    }
}

fn failed(py: Python<'_>, error: &PaperError) -> PyErr {
    let message = giveway_record::chain(error);
    match error {
        PaperError::UnknownFigure { .. } | PaperError::Unknown { .. } => PyKeyError::new_err(message),
        _ => errors::failed(py, &message),
    }
}

/// The shipped papers as JSON.
#[pyfunction]
pub fn shipped() -> String {
    let papers = SHIPPED.iter().map(|shipped| {
        let paper = Known::shipped(shipped).expect("a shipped paper is tested");
        json!({
            "id": paper.id, "title": paper.title(), "reference": paper.reference(), "claims": paper.claims(),
            "figures": paper.figures().collect::<Vec<_>>(),
        })
    });
    json!(papers.collect::<Vec<_>>()).to_string()
}

/// The result of a reproduction: the paper, messages, and the exception of an interruption.
type Reproduced = (Paper, Vec<String>, Option<Py<PyAny>>);

/// Runs the experiments of a paper. Finished runs are in the file `kept` until all have finished.
#[pyfunction]
pub fn reproduce(
    py: Python<'_>,
    name: &str,
    scope: (bool, Option<String>, Option<u32>),
    jobs: u16,
    kept: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reproduced> {
    let (quick, figure, seeds) = scope;
    let scope = Scope { figure, quick, seeds };
    let study =
        Known::find(name).and_then(|paper| Study::new(paper, scope)).map_err(|error| failed(py, &error))?;
    let watched = Watched::default();
    let theirs = watched.clone();
    let waited = watched.wait(py, progress.as_ref(), move || {
        let done = giveway_runner::study::run(&study, threads(jobs), &kept, &theirs);
        (study, done)
    });
    let ((study, done), stopped) = waited.ended(py);
    let (results, _) = done.map_err(|error| errors::runner(py, &error))?;
    let judged = giveway_papers::judge(&study, &results);
    let stopped = stopped.map(|error| error.into_value(py).into_any());
    Ok((Paper { study, results, judged }, watched.messages(), stopped))
}
