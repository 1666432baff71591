use serde::Deserialize;

use super::kind::{Kind, Needs};
use crate::fact::Measured;

/// A number that was measured outside the study, from `measured.toml`. It needs no experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredElsewhere {
    /// The key of the number in that file.
    pub what: String,
}

impl Kind for MeasuredElsewhere {
    fn of_paper(&self, measured: &[Measured]) -> Option<f64> {
        measured.iter().find(|measured| measured.what == self.what).map(|measured| measured.value)
    }

    fn label(&self) -> String {
        self.what.clone()
    }

    fn needs(&self) -> Needs {
        Needs { no_run: true, ..Needs::default() }
    }
}
