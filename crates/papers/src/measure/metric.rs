use giveway_measure::label;
use serde::Deserialize;

use super::kind::{Kind, Needs, Run};
use super::unit::Unit;

/// A metric of the run's summary.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metric {
    /// The name of the metric in the output of `giveway run --json`.
    pub name: String,
}

impl Kind for Metric {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        run.record.summary.metrics.value(&self.name)
    }

    fn label(&self) -> String {
        label(&self.name)
    }

    fn unit(&self) -> Unit {
        Unit::of_metric(&self.name)
    }

    fn is_total(&self) -> bool {
        let totals =
            ["drops", "marks", "flows_completed", "flows_aborted", "bottleneck_packets", "voice_packets"];
        let of_reasons = ["drops_", "retransmitted"];
        totals.contains(&&*self.name) || of_reasons.iter().any(|beginning| self.name.starts_with(beginning))
    }

    fn needs(&self) -> Needs {
        let bursts = ["run_length", "arrivals_", "hurst"].iter().any(|part| self.name.contains(part));
        Needs { bursts, ..Needs::default() }
    }
}
