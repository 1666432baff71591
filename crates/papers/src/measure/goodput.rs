use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::called;
use super::select::{of_source, throughput};
use super::unit::Unit;

/// The goodput of a source within the measurement interval, bit/s.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Goodput {
    /// The name of the source, or the beginning of several names with a star.
    pub source: String,
}

impl Kind for Goodput {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        of_source(run.record, &self.source).map(|flow| throughput(flow, run.record)).reduce(|a, b| a + b)
    }

    fn label(&self) -> String {
        format!("goodput of {}", called(&self.source))
    }

    fn unit(&self) -> Unit {
        Unit::Rate
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }
}
