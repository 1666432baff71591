use serde::Deserialize;

use super::kind::{Kind, Run};
use super::select::{Unfinished, response};

/// The ratio of the mean completion times of transfers just above a size and just below it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// The sizes below, segments, both ends included.
    pub below: [u64; 2],
    /// The sizes above, segments, both ends included.
    pub above: [u64; 2],
}

impl Kind for Step {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let mean = |[from, to]: [u64; 2]| response(run.record, None, (from, Some(to)), Unfinished::LeftOut);
        Some(mean(self.above)? / mean(self.below)?)
    }

    fn label(&self) -> String {
        let ([above_from, above_to], [below_from, below_to]) = (self.above, self.below);
        format!("completion time of {above_from} to {above_to} over {below_from} to {below_to} segments")
    }
}
