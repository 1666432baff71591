//! One run of a comparison.

use serde::{Deserialize, Serialize};

/// One run of a comparison: a discipline under a seed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Trial {
    /// The discipline, as it is spelled with its parameters.
    pub qdisc: String,
    /// The seed.
    pub seed: u64,
}
