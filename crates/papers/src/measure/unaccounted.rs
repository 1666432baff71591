use serde::Deserialize;

use super::select::{dropped, of_source};
use super::words::called;
use super::{Kind, Run};

/// Of a source of datagrams: packets sent within the measurement interval, less those delivered, less those that the measured
/// ports dropped in that time. All that may be left is what was on its way when the interval began or ended.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unaccounted {
    /// The name of the source, or the beginning of the names of several with a star.
    pub source: String,
}

impl Kind for Unaccounted {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let lost = of_source(run.record, &self.source).filter_map(|flow| Some(flow.lost? as f64));
        Some(lost.reduce(|a, b| a + b)? - dropped(run.record, Some(&self.source))?)
    }

    fn words(&self) -> String {
        format!("packets of {} neither delivered nor dropped", called(&self.source))
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }

    fn is_signed(&self) -> bool {
        true
    }
}
