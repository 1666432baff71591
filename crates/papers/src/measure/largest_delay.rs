use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::called;
use super::select::largest_delay;
use super::unit::Unit;

/// The largest one-way delay of the datagrams of a source that arrived, seconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LargestDelay {
    /// The name of the source, or the beginning of several names with a star.
    pub source: String,
}

impl Kind for LargestDelay {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        largest_delay(run.record, &self.source)
    }

    fn label(&self) -> String {
        format!("largest delay of {}", called(&self.source))
    }

    fn unit(&self) -> Unit {
        Unit::Seconds
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }
}
