//! An arbiter of a switch that is written in Python.

use std::sync::{Arc, Mutex, PoisonError};

use giveway_switch::{Outside, SlotRequests};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A request: an input that has cells for an output, both of which are free.
#[pyclass(frozen, freelist = 256, module = "giveway")]
pub struct Request {
    /// Number of the input.
    #[pyo3(get)]
    input: usize,
    /// Number of the output.
    #[pyo3(get)]
    output: usize,
    /// Number of cells in the queue.
    #[pyo3(get)]
    cells: u64,
    /// Slots since the packet at the head of the queue arrived.
    #[pyo3(get)]
    age: u64,
}

#[pymethods]
impl Request {
    fn __repr__(&self) -> String {
        format!("<request {} -> {}, {} cells, {} slots old>", self.input, self.output, self.cells, self.age)
    }
}

/// The first exception of the arbiters of a run.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// The exception.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// An arbiter in Python.
pub struct Arbiter {
    decide: Option<Py<PyAny>>,
    raised: Raised,
}

impl Arbiter {
    /// The arbiter that `make` makes; one that matches nothing if it raises an exception.
    pub fn new(py: Python<'_>, make: impl FnOnce() -> PyResult<Py<PyAny>>, raised: &Raised) -> Arbiter {
        let method = || -> PyResult<Py<PyAny>> {
            let object = make()?;
            object.bind(py).getattr("match").map(Bound::unbind).map_err(|_| {
                let class = object.bind(py).get_type();
                PyTypeError::new_err(format!(
                    "{class} has no method match: an arbiter needs match(requests, slot)"
                ))
            })
        };
        let decide = method().map_err(|error| raised.set(error)).ok();
        Arbiter { decide, raised: raised.clone() }
    }
}

impl Outside for Arbiter {
    fn decide(&mut self, asked: &SlotRequests<'_>, pairs: &mut Vec<(usize, usize)>) -> Result<(), String> {
        let Some(decide) = &self.decide else { return Err(String::new()) };
        Python::attach(|py| {
            let request = |(input, output): &(usize, usize)| Request {
                input: *input,
                output: *output,
                cells: asked.cells(*input, *output),
                age: asked.age(*input, *output),
            };
            let requests: Vec<Request> = asked.pairs.iter().map(request).collect();
            let found = decide.call1(py, (requests, asked.slot)).and_then(|found| found.extract(py));
            match found {
                Ok(found) => {
                    *pairs = found;
                    Ok(())
                }
                Err(error) => {
                    let message = format!("slot {}: match raised {error}", asked.slot);
                    self.raised.set(error);
                    Err(message)
                }
            }
        })
    }
}
