use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::called;
use super::select::{dropped, of_source};

/// The number of packets of a source of datagrams that were sent within the measurement interval, but neither
/// delivered nor dropped by the measured ports. It should be only the difference of the packets in flight at
/// the ends of the interval.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unaccounted {
    /// The name of the source, or the beginning of several names with a star.
    pub source: String,
}

impl Kind for Unaccounted {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let lost = of_source(run.record, &self.source).filter_map(|flow| Some(flow.lost? as f64));
        Some(lost.reduce(|a, b| a + b)? - dropped(run.record, Some(&self.source))?)
    }

    fn label(&self) -> String {
        format!("packets of {} neither delivered nor dropped", called(&self.source))
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }

    fn is_signed(&self) -> bool {
        true
    }
}
