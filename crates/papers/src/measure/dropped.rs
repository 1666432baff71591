use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::of;
use super::select::dropped;

/// The number of packets of a source, or of all, that the measured ports dropped within the measurement
/// interval.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dropped {
    /// The source, or all traffic.
    #[serde(default)]
    pub source: Option<String>,
}

impl Kind for Dropped {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        dropped(run.record, self.source.as_deref())
    }

    fn is_total(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        format!("packets{} dropped", of(self.source.as_deref()))
    }

    fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }
}
