//! The errors of sweeps.

use std::path::PathBuf;

use giveway_record::{Damage, FolderError};
use giveway_scenario::ScenarioError;

use crate::axis::AxisError;
use crate::design::DesignError;
use crate::precision::PrecisionError;

/// Finished trials that their folder could not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// The number of these trials.
    pub trials: u64,
    /// The folder that has them; `None` if it could not be written either, so that they run again.
    pub folder: Option<PathBuf>,
}

/// An error of a sweep. Its causes are in `source()`.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// An axis is wrong.
    #[error(transparent)]
    Axis(#[from] AxisError),
    /// The design is wrong, or does not fit the axes.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The precision is wrong.
    #[error(transparent)]
    Precision(#[from] PrecisionError),
    /// The request cannot be carried out. The message suggests a valid one.
    #[error("{0}")]
    Usage(String),
    /// The scenario is invalid, at a value of an axis or without.
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
    /// A folder or a part cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Finished trials cannot be written.
    #[error("trials that have finished cannot be written")]
    Unwritten {
        /// The error of the file.
        source: Box<FolderError>,
        /// The trials.
        rescued: Rescued,
    },
    /// A part of another sweep, or a shard, cannot be read.
    #[error("{0}")]
    Damaged(Damage),
}

impl SweepError {
    /// True if another request would work: nothing has been changed.
    pub fn is_refusal(&self) -> bool {
        match self {
            SweepError::Folder(error) => error.is_refusal(),
            SweepError::Damaged(_) | SweepError::Unwritten { .. } => false,
            _ => true,
        }
    }
}

impl From<Damage> for SweepError {
    fn from(damage: Damage) -> SweepError {
        SweepError::Damaged(damage)
    }
}
