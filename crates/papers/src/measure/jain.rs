use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::of;
use super::select::throughputs;

/// Jain's index of throughputs: of the flows of a source, or of all.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Jain {
    /// The source, or all traffic.
    #[serde(default)]
    pub source: Option<String>,
}

impl Kind for Jain {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        giveway_measure::jain(&throughputs(run.record, self.source.as_deref()))
    }

    fn label(&self) -> String {
        format!("Jain's index{}", of(self.source.as_deref()))
    }

    fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }
}
