//! The table `docs/growth.csv`: a line about the machine, and a row for each size of a curve.

use serde::{Deserialize, Serialize};

use crate::recorded::{Recorded, digits, some_digits};

/// The cost of one size of a curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeCost {
    pub curve: String,
    pub size: u32,
    /// Packets that the bottleneck got, or that the applications sent.
    pub packets: u64,
    pub events: u64,
    /// User time of the trial.
    #[serde(serialize_with = "digits::<3, _>")]
    pub cpu_s: f64,
    /// The largest memory of the process.
    pub peak_kib: u64,
    /// Instructions per packet, if they were counted.
    #[serde(serialize_with = "some_digits::<0, _>")]
    pub instructions: Option<f64>,
}

impl Recorded for SizeCost {
    const FILE: &'static str = "docs/growth.csv";
}
