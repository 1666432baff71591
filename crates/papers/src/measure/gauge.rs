use serde::Deserialize;

use super::kind::{Kind, Needs, Run};
use super::phrases::gauge_words;
use super::select::{gauge, mean};
use super::unit::Unit;

/// The mean over time of a gauge of the bottleneck's discipline.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gauge {
    /// The name of the gauge.
    pub name: String,
}

impl Kind for Gauge {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let samples = gauge(run.record, &self.name).filter(|(time, _)| run.record.layout.measures(*time));
        mean(samples.map(|(_, value)| value))
    }

    fn label(&self) -> String {
        format!("{}, mean", gauge_words(&self.name))
    }

    fn unit(&self) -> Unit {
        Unit::of_gauge(&self.name)
    }

    fn is_signed(&self) -> bool {
        true
    }

    fn needs(&self) -> Needs {
        Needs { series: true, ..Needs::default() }
    }
}
