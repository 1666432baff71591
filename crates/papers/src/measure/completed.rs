use giveway_qdisc::Ending;
use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::sizes_of;
use super::select::{is_of, segments, share, transfers, within};
use super::unit::Unit;

/// The share of the transfers of these sizes that completed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Completed {
    /// The source, or all traffic.
    #[serde(default)]
    pub source: Option<String>,
    /// The smallest transfer that counts, segments.
    #[serde(default)]
    pub from: u64,
    /// The largest transfer that counts, segments; without it there is no limit.
    #[serde(default)]
    pub to: Option<u64>,
}

impl Kind for Completed {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let of_source = transfers(run.record).filter(|flow| is_of(run.record, self.source.as_deref(), flow));
        let of_size = of_source.filter(|flow| within(segments(flow.bytes), self.from, self.to));
        share(of_size, |flow| flow.ending == Ending::Completed)
    }

    fn label(&self) -> String {
        format!("share completed of {}", sizes_of(self.source.as_deref(), self.from, self.to))
    }

    fn unit(&self) -> Unit {
        Unit::Share
    }

    fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }
}
