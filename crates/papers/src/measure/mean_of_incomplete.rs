use serde::Deserialize;

use super::kind::{Kind, Run};
use super::select::{Size, incomplete, mean};

/// The mean size of the transfers that did not complete, segments.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeanOfIncomplete {
    /// The kind of size that counts.
    pub size: Size,
}

impl Kind for MeanOfIncomplete {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        mean(incomplete(run.record).map(|flow| self.size.of(flow) as f64))
    }

    fn label(&self) -> String {
        "mean size of the incomplete, segments".to_owned()
    }
}
