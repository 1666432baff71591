use serde::Deserialize;

use super::kind::{Kind, Needs, Run};
use super::phrases::called;
use super::select::{mean, throughputs};

/// The mean throughput of the flows of a source, divided by the `ideal` of the experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Normalized {
    /// The name of the source, or the beginning of several names with a star.
    pub source: String,
}

impl Kind for Normalized {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let ideal = run.ideal_bps()?;
        mean(throughputs(run.record, Some(&self.source)).into_iter().map(|rate| rate / ideal))
    }

    fn label(&self) -> String {
        format!("normalised bandwidth of {}", called(&self.source))
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }

    fn needs(&self) -> Needs {
        Needs { ideal: true, ..Needs::default() }
    }
}
