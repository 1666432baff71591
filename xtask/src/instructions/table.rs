//! The table `docs/instructions.csv`: label, workload and instructions per packet in each row.

use serde::{Deserialize, Serialize};

use crate::recorded::{Recorded, digits};

/// The instructions per packet of a workload, counted under a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    pub label: String,
    pub workload: String,
    #[serde(serialize_with = "digits::<1, _>")]
    pub instructions: f64,
}

impl Recorded for Count {
    const FILE: &'static str = "docs/instructions.csv";
}

/// The counts of each label, in the order of the file.
pub fn by_label(counts: &[Count]) -> Vec<&[Count]> {
    counts.chunk_by(|one, next| one.label == next.label).collect()
}
