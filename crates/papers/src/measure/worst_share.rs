use serde::Deserialize;

use super::select::throughputs;
use super::words::called;
use super::{Kind, Needs, Run, Unit};

/// The largest distance of the throughput of a source's flows from the experiment's `ideal`, either way, as a share of it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorstShare {
    /// The name of the source, or the beginning of the names of several with a star.
    pub source: String,
}

impl Kind for WorstShare {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let ideal = run.ideal_bps()?;
        let flows = throughputs(run.record, Some(&self.source)).into_iter();
        flows.map(|rate| (rate / ideal - 1.0).abs()).reduce(f64::max)
    }

    fn words(&self) -> String {
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
