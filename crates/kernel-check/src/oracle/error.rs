//! Errors of a comparison.

use giveway_disciplines::{Spec, SpecError};
use giveway_qdisc::{Invalid, Span};

use crate::journal::JournalError;

/// Error of a journal or a discipline that cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// The text is not a discipline.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A parameter of the discipline is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// An entry cannot follow those before it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A packet has a mark without a flow.
    #[error("a packet has mark {mark}, but {spec} has flows 0 to {last}")]
    Mark {
        /// The mark.
        mark: u64,
        /// The discipline.
        spec: Box<Spec>,
        /// Number of its last flow.
        last: u64,
    },
    /// An update of PIE has a delay that is not plausible.
    #[error("update {at} has a delay of {delay}, but delays are at most {most}")]
    Delay {
        /// Number of the update, from 0.
        at: usize,
        /// The delay.
        delay: Span,
        /// Largest plausible delay.
        most: Span,
    },
}
