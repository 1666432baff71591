use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::called;
use super::select::largest_delay;

/// The ratio of the largest delay of a source to its bound. The rest of the network must add no delay.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LargestOverBound {
    /// The name of the source, or the beginning of several names with a star.
    pub source: String,
}

impl Kind for LargestOverBound {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        Some(largest_delay(run.record, &self.source)? / (run.bound)(&self.source)?)
    }

    fn label(&self) -> String {
        format!("largest delay of {} over its bound", called(&self.source))
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }
}
