//! The first failure of the disciplines and sources of traffic in Python of a run.

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

/// The failure of a run, for a discipline at a link, or for a source of traffic.
pub struct At {
    failure: Failure,
    /// The exception.
    class: &'static str,
    /// The discipline and the link, or the source and its flow, for messages.
    place: String,
}

impl Failure {
    /// This failure, for a discipline at a link.
    pub fn of(&self, discipline: &str, port: &str) -> At {
        At { failure: self.clone(), class: "DisciplineError", place: format!("{discipline} at {port}") }
    }

    /// This failure, for a source of traffic.
    pub fn of_traffic(&self, source: &str, flow: &str) -> At {
        At { failure: self.clone(), class: "TrafficError", place: format!("{source} of traffic {flow}") }
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

    /// Records that the method `method` raised an exception, which becomes the cause of the error.
    pub fn raised(&self, py: Python<'_>, method: &str, about: &str, now: Time, cause: PyErr) {
        if !cause.is_instance_of::<PyException>(py) {
            return self.failure.set(cause);
        }
        let kind = cause.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
        let message = format!("{method} raised {kind}: {}{}", cause.value(py), line_of(py, &cause));
        let error = self.error(py, &message, about, now);
        error.set_cause(py, Some(cause));
        self.failure.set(error);
    }

    /// Records that the contract was broken.
    pub fn broken(&self, py: Python<'_>, message: &str, about: &str, now: Time) {
        self.failure.set(self.error(py, message, about, now));
    }

    fn error(&self, py: Python<'_>, message: &str, about: &str, now: Time) -> PyErr {
        let At { class, place, .. } = self;
        let about = if about.is_empty() { String::new() } else { format!(", {about}") };
        let time = now.as_s();
        errors::raised(py, class, &format!("{place}, {time:.9} s{about}: {message}"))
    }
}

/// The line that raised an exception, in parentheses; empty without a traceback. The cause of an exception
/// does not travel between processes, and its line is in the message instead.
pub fn line_of(py: Python<'_>, cause: &PyErr) -> String {
    let found = || -> PyResult<Option<String>> {
        let Some(first) = cause.traceback(py) else { return Ok(None) };
        let mut last = first.into_any();
        loop {
            let next = last.getattr("tb_next")?;
            if next.is_none() {
                break;
            }
            last = next;
        }
        let file: String = last.getattr("tb_frame")?.getattr("f_code")?.getattr("co_filename")?.extract()?;
        let line: u32 = last.getattr("tb_lineno")?.extract()?;
        let name = file.rsplit('/').next().unwrap_or(&file);
        Ok(Some(format!(" ({name}, line {line})")))
    };
    found().ok().flatten().unwrap_or_default()
}
