use serde::Deserialize;

use super::kind::{Kind, Needs, Run};
use super::phrases::called;
use super::select::throughputs;
use super::unit::Unit;

/// The largest deviation of a flow's throughput from the `ideal` of the experiment, up or down, as a share of
/// `ideal`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorstShare {
    /// The name of the source, or the beginning of several names with a star.
    pub source: String,
}

impl Kind for WorstShare {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let ideal = run.ideal_bps()?;
        let flows = throughputs(run.record, Some(&self.source)).into_iter();
        flows.map(|rate| (rate / ideal - 1.0).abs()).reduce(f64::max)
    }

    fn label(&self) -> String {
        format!("largest deviation of a flow of {} from its fair share", called(&self.source))
    }

    fn unit(&self) -> Unit {
        Unit::Share
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }

    fn needs(&self) -> Needs {
        Needs { ideal: true, ..Needs::default() }
    }
}
