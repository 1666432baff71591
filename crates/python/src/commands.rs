//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors;

/// Runs `giveway` with these arguments, and returns its exit code. `program` is the file that starts it.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>, program: PathBuf) -> u8 {
    py.detach(|| giveway_cli::main_of(arguments, program))
}

/// The output of a command that answers a question.
#[pyfunction]
pub fn answer(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<String> {
    let answered = py.detach(|| giveway_cli::answer(&arguments));
    answered.map_err(|message| errors::failed(py, message.trim_end()))
}
