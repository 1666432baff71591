//! The errors of an evaluation.

use giveway_qdisc::units::nearest;
use giveway_record::FolderError;
use giveway_scenario::ScenarioError;

/// An error of an evaluation.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// The request cannot be carried out. The message suggests a valid one.
    #[error("{0}")]
    Usage(String),
    /// A discipline does not fit the scenario of a cell.
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
    /// A discipline failed in a run.
    #[error("{discipline} failed in {cell} with seed {seed}: {why}")]
    Failed {
        /// The discipline.
        discipline: String,
        /// The cell.
        cell: String,
        /// The seed.
        seed: u64,
        /// The reason.
        why: String,
    },
    /// The store of the runs cannot be written.
    #[error(transparent)]
    Store(#[from] FolderError),
    /// The front end stopped it.
    #[error("stopped")]
    Stopped,
}

impl EvaluateError {
    /// A name that does not exist, with the nearest one that does.
    pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> EvaluateError {
        let near = nearest(name, known.iter().copied()).map(|near| format!("; did you mean {near}?"));
        EvaluateError::Usage(format!("there is no {what} {name}{}", near.unwrap_or_default()))
    }
}
