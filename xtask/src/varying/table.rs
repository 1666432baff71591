//! The table `docs/varying.csv`: a row for each scenario with a link that varies and each discipline.

use serde::{Deserialize, Serialize};

use crate::recorded::{Recorded, digits};

/// Means over the seeds of a scenario with one discipline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DisciplineMeans {
    pub scenario: String,
    pub discipline: String,
    /// Bytes that the link sent, of those that it offered.
    #[serde(serialize_with = "digits::<1, _>")]
    pub used_percent: f64,
    /// Goodput of TCP over the measured link.
    #[serde(serialize_with = "digits::<2, _>")]
    pub goodput_mbit: f64,
    /// One-way delay and loss of the call.
    #[serde(serialize_with = "digits::<1, _>")]
    pub delay_mean_ms: f64,
    #[serde(serialize_with = "digits::<1, _>")]
    pub delay_p99_ms: f64,
    #[serde(serialize_with = "digits::<2, _>")]
    pub loss_percent: f64,
}

impl Recorded for DisciplineMeans {
    const FILE: &'static str = "docs/varying.csv";
}
