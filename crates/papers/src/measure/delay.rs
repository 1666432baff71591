use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::called;
use super::select::of_source;
use super::unit::Unit;

/// The mean one-way delay of the packets of a source that arrived, seconds; of TCP those with data. Each flow
/// is weighted by its delivered bytes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delay {
    /// The name of the source, or the beginning of several names with a star.
    pub source: String,
}

impl Kind for Delay {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let flows = of_source(run.record, &self.source).filter(|flow| !flow.delay_mean.is_zero());
        let (sum, weight) = flows.fold((0.0, 0.0), |(sum, weight), flow| {
            let delivered = flow.goodput_bytes as f64;
            (sum + delivered * flow.delay_mean.as_s(), weight + delivered)
        });
        (weight > 0.0).then(|| sum / weight)
    }

    fn label(&self) -> String {
        format!("mean delay of {}", called(&self.source))
    }

    fn unit(&self) -> Unit {
        Unit::Seconds
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }
}
