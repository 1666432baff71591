use serde::Deserialize;

use super::select::{Size, incomplete, share, within};
use super::words::sizes_of;
use super::{Kind, Run, Unit};

/// The share of these sizes among the transfers that did not complete.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShareOfIncomplete {
    /// The smallest transfer that counts, segments.
    #[serde(default)]
    pub from: u64,
    /// The largest; without it all larger ones count.
    #[serde(default)]
    pub to: Option<u64>,
    /// Which size of theirs counts.
    pub size: Size,
}

impl Kind for ShareOfIncomplete {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        share(incomplete(run.record), |flow| within(self.size.of(flow), self.from, self.to))
    }

    fn words(&self) -> String {
        format!("share of {} among the incomplete", sizes_of(None, self.from, self.to))
    }

    fn unit(&self) -> Unit {
        Unit::Share
    }
}
