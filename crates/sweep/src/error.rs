//! The errors of sweeps.

use std::path::PathBuf;

use giveway_record::{Damage, FolderError};
use giveway_scenario::ScenarioError;
use giveway_trials::ReuseError;

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
    /// The trials of another folder cannot be taken.
    #[error("--reuse: {0}")]
    Reuse(#[from] ReuseError),
    /// Finished trials cannot be written.
    #[error("trials that have finished cannot be written")]
    Unwritten {
        /// The error of the file.
        source: Box<FolderError>,
        /// The trials.
        rescued: Rescued,
    },
    /// A part cannot be read, although its bytes are those that were written.
    #[error("{0}")]
    Damaged(Damage),
    /// A file of a sweep was changed after it was written.
    #[error(
        "{damage}. It was made by `{created_by}`; run this again, which repeats the trials of a changed file"
    )]
    Changed {
        /// The file.
        damage: Damage,
        /// The command or call that made the folder.
        created_by: String,
    },
    /// The manifest of a sweep was changed after it was written.
    #[error(
        "{0}, so the content of its folder is unknown. Nothing was changed. Run the sweep again in another folder"
    )]
    Unknown(Damage),
    /// The folder of a sweep has another format.
    #[error(
        "{path} has format {found} of sweeps, and this version reads format {reads}{because}. Nothing was changed. It was \
         made by `{created_by}`; run this again with another folder",
        path = path.display(),
        because = if *found == 1 { ", which has a SHA-256 of each file" } else { "" }
    )]
    Format {
        /// The folder.
        path: PathBuf,
        /// The number of its format.
        found: u64,
        /// The number of the format that this version reads.
        reads: u64,
        /// The command or call that made it.
        created_by: String,
    },
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
