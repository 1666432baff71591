//! Exceptions of the package, raised from Rust.

use std::borrow::Cow;

use giveway_document::harmless;
use giveway_runner::RunnerError;
use giveway_scenario::{ScenarioError, Severity};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

const MODULE: &str = "giveway._errors";

/// The text with each character that a terminal obeys in the notation of JSON.
#[pyfunction]
#[pyo3(name = "harmless")]
pub fn harmless_text(text: &str) -> Cow<'_, str> {
    harmless(text)
}

/// An exception of the class `name` of the package. Its message may have text from a file in it.
pub fn raised(py: Python<'_>, name: &str, message: &str) -> PyErr {
    let message = harmless(message);
    match class(py, name).and_then(|class| class.call1((&*message,))) {
        Ok(exception) => PyErr::from_value(exception),
        // The package is not the one that belongs to this module.
        Err(_) => PyRuntimeError::new_err(message.into_owned()),
    }
}

/// A `GivewayError`.
pub fn failed(py: Python<'_>, message: &str) -> PyErr {
    raised(py, "GivewayError", message)
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = ERRORS.get_or_try_init(py, || py.import(MODULE).map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// A `ScenarioError` with all mistakes.
pub fn scenario(py: Python<'_>, error: &ScenarioError) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let each = error.diagnostics.iter().map(|diagnostic| {
            let place = error.origin.place(&diagnostic.span);
            let dict = PyDict::new(py);
            let severity = match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            dict.set_item("severity", severity)?;
            dict.set_item("message", &diagnostic.message)?;
            dict.set_item("help", &diagnostic.help)?;
            dict.set_item("file", place.name)?;
            // A change that a caller asked for has no line.
            dict.set_item("line", (!place.flag).then_some(place.line))?;
            dict.set_item("column", (!place.flag).then_some(place.column))?;
            Ok(dict)
        });
        let each = each.collect::<PyResult<Vec<_>>>()?;
        let exception = class(py, "ScenarioError")?.call1((harmless(&error.to_string()), each))?;
        Ok(PyErr::from_value(exception))
    };
    made().unwrap_or_else(|error| error)
}

/// The exception of an error of the runner.
pub fn runner(py: Python<'_>, error: &RunnerError) -> PyErr {
    match error {
        RunnerError::Scenario(error) => scenario(py, error),
        other => failed(py, &giveway_record::chain(other)),
    }
}
