//! The first failure of the disciplines in Python of a run.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use giveway_qdisc::Time;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::errors;

/// The failure of a run, if there is one. All disciplines of the run share it.
#[derive(Clone, Default)]
pub struct Failure {
    error: Rc<RefCell<Option<PyErr>>>,
    is_set: Rc<Cell<bool>>,
}

/// The failure of a run, for a discipline at a link.
pub struct At {
    failure: Failure,
    /// The discipline and the link, for messages.
    discipline: String,
    port: String,
}

impl Failure {
    /// This failure, for a discipline at a link.
    pub fn of(&self, discipline: &str, port: &str) -> At {
        At { failure: self.clone(), discipline: discipline.to_owned(), port: port.to_owned() }
    }

    /// True once a discipline has failed.
    pub fn is_set(&self) -> bool {
        self.is_set.get()
    }

    /// Keeps the first error. One that is not an `Exception`, such as `KeyboardInterrupt`, is an
    /// interruption.
    pub fn set(&self, error: PyErr) {
        if !self.is_set.replace(true) {
            *self.error.borrow_mut() = Some(error);
        }
    }

    /// The error.
    pub fn take(&self) -> Option<PyErr> {
        self.error.borrow_mut().take()
    }

    /// True if the error is an interruption, and no fault of a discipline.
    pub fn is_interruption(&self, py: Python<'_>) -> bool {
        self.error.borrow().as_ref().is_some_and(|error| !error.is_instance_of::<PyException>(py))
    }
}

impl At {
    /// True once a discipline of the run has failed.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.failure.is_set()
    }

    /// Records that the method `method` raised an exception, which becomes the cause of a `DisciplineError`.
    pub fn raised(&self, py: Python<'_>, method: &str, about: &str, now: Time, cause: PyErr) {
        if !cause.is_instance_of::<PyException>(py) {
            return self.failure.set(cause);
        }
        let kind = cause.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
        let message = format!("{method} raised {kind}: {}", cause.value(py));
        let error = self.error(py, &message, about, now);
        error.set_cause(py, Some(cause));
        self.failure.set(error);
    }

    /// Records that the discipline broke the contract.
    pub fn broken(&self, py: Python<'_>, message: &str, about: &str, now: Time) {
        self.failure.set(self.error(py, message, about, now));
    }

    fn error(&self, py: Python<'_>, message: &str, about: &str, now: Time) -> PyErr {
        let At { discipline, port, .. } = self;
        let about = if about.is_empty() { String::new() } else { format!(", {about}") };
        let time = now.as_s();
        let text = format!("{discipline} at {port}, {time:.9} s{about}: {message}");
        errors::raised(py, "DisciplineError", &text)
    }
}
