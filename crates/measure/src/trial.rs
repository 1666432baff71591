//! One run of a comparison.

use serde::{Deserialize, Serialize};

/// One run of a comparison: a discipline under a seed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Trial {
    /// The specification of the discipline, with its parameters.
    pub qdisc: String,
    /// The seed.
    pub seed: u64,
}
