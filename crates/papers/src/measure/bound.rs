use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::called;
use super::unit::Unit;

/// The bound of the discipline on the delay of the reserved flows of a source at its link, seconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bound {
    /// The name of the source, or the beginning of several names with a star.
    pub source: String,
}

impl Kind for Bound {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        (run.bound)(&self.source)
    }

    fn label(&self) -> String {
        format!("bound on the delay of {}", called(&self.source))
    }

    fn unit(&self) -> Unit {
        Unit::Seconds
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }
}
