//! Runs scenarios: each discipline with each seed, in parallel, with results in folders that can be resumed.
//!
//! A [`Session`] takes a scenario, runs its trials (one for each discipline and seed) on a pool of threads,
//! keeps each result in a run folder if it has one, and returns the table. [`search`] finds the load of a
//! switch at which the queues start to grow, or at which two arbiters are equal. [`study`] runs the studies
//! of papers.
//!
//! This crate does not print. Messages, progress and interruptions go through a
//! [`Frontend`](giveway_trials::Frontend), which the caller implements. Errors are [`RunnerError`]s.
//!
//! # Decisions
//! - Results are in the order of the trials, so a table does not depend on the number of threads.
//! - If a trial panics, only this trial fails, and the others continue.
//! - The paths of outputs are checked before anything runs, so that a run of an hour does not end with a file
//!   that cannot be written.

pub mod cpu;
mod error;
mod export;
pub mod outputs;
pub mod report;
pub mod search;
mod session;
pub mod study;
mod threads;
mod traces;

pub use error::RunnerError;
pub use session::{Observe, Results, Session, TrialError, manifest, save, scenario_name};
pub use traces::{PortFile, PortFileError};

/// The outcome of a command, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// All runs finished.
    Done,
    /// A run failed, or its result could not be written.
    Failed,
    /// The request or a scenario is invalid, and nothing ran.
    Wrong,
    /// The user interrupted the runs.
    Interrupted,
}
