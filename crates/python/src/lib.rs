//! The Python module `giveway._giveway`, over which the package in `python/giveway/` is the interface.
//!
//! ```text
//! scenario.rs    a scenario: read, changed, described
//! running.rs     runs on other threads, while the interpreter can be interrupted
//! results.rs     results of runs, in memory or in a run folder
//! frame.rs       tables for libraries of data frames, by the Arrow C stream interface
//! own.rs         disciplines and sources of traffic that are written in Python
//! own/           their packets, context, and ranks
//! simulation.rs  a simulation that runs step by step
//! sweep.rs       sweeps, here or on the workers of a cluster
//! evaluate.rs    the card of a discipline
//! judge.rs       the judgement of a discipline that a program has searched for
//! compare.rs     the comparison of disciplines on a capture
//! papers.rs      reproduced papers
//! theory.rs      closed forms
//! commands.rs    the command line
//! errors.rs      exceptions
//! ```
//!
//! # Decisions
//! - Classes and functions here are for the package only, and take the simplest arguments. Docstrings, types
//!   and defaults are in the package.
//! - No thread of a simulation calls Python. The calling thread waits for them without the GIL, and asks the
//!   interpreter for signals 50 times a second. A discipline in Python runs in the calling thread.
//! - The Arrow C stream is written with `arrow_array::ffi_stream`: libraries that wrap it for PyO3 need
//!   another major version of Arrow than the workspace.

mod commands;
mod compare;
mod errors;
mod evaluate;
mod frame;
mod judge;
mod own;
mod papers;
mod results;
mod running;
mod scenario;
mod simulation;
mod sweep;
mod theory;

/// The module.
#[pyo3::pymodule(gil_used = false)]
mod _giveway {
    #[pymodule_export]
    use crate::commands::{answer, main};
    #[pymodule_export]
    use crate::compare::compare;
    #[pymodule_export]
    use crate::errors::harmless_text;
    #[pymodule_export]
    use crate::evaluate::{evaluate_discipline, evaluation_cells};
    #[pymodule_export]
    use crate::frame::Frame;
    #[pymodule_export]
    use crate::judge::{candidate_mistake, judge_discipline, judge_process, serve_candidate};
    #[pymodule_export]
    use crate::own::arbiter::Request;
    #[pymodule_export]
    use crate::own::context::{Context, Wait};
    #[pymodule_export]
    use crate::own::packet::Packet;
    #[pymodule_export]
    use crate::own::traffic::Sender;
    #[pymodule_export]
    use crate::papers::{Paper, reproduce, shipped};
    #[pymodule_export]
    use crate::results::{Results, definition, looks, open};
    #[pymodule_export]
    use crate::running::{Later, run, run_apart};
    #[pymodule_export]
    use crate::scenario::{Scenario, to_toml, to_toml_value};
    #[pymodule_export]
    use crate::simulation::{Actions, Simulation};
    #[pymodule_export]
    use crate::sweep::{
        Sweep, Sweeping, answers, axis_is_numeric, axis_levels, axis_value, estimate, higher_is_better,
        paired, processors, sweep_facts, sweep_files, sweep_frame, sweep_page,
    };
    #[pymodule_export]
    use crate::theory::theory;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", giveway_sources::VERSION)
    }
}
