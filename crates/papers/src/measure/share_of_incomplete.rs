use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::sizes_of;
use super::select::{Size, incomplete, share, within};
use super::unit::Unit;

/// The share of transfers of these sizes among those that did not complete.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShareOfIncomplete {
    /// The smallest transfer that counts, segments.
    #[serde(default)]
    pub from: u64,
    /// The largest transfer that counts, segments; without it there is no limit.
    #[serde(default)]
    pub to: Option<u64>,
    /// The kind of size that counts.
    pub size: Size,
}

impl Kind for ShareOfIncomplete {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        share(incomplete(run.record), |flow| within(self.size.of(flow), self.from, self.to))
    }

    fn label(&self) -> String {
        format!("share of {} among the incomplete", sizes_of(None, self.from, self.to))
    }

    fn unit(&self) -> Unit {
        Unit::Share
    }
}
