use giveway_qdisc::Span;
use serde::Deserialize;

use super::kind::{Kind, Run};
use super::select::largest_transfers;
use super::unit::Unit;

/// The longest time without progress of the largest transfers, seconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LongestPause {
    /// The number of largest transfers that count.
    pub largest: usize,
}

impl Kind for LongestPause {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let largest = largest_transfers(run.record, self.largest).into_iter();
        largest.map(|flow| flow.longest_pause).max().map(Span::as_s)
    }

    fn label(&self) -> String {
        format!("longest pause of the {} largest", self.largest)
    }

    fn unit(&self) -> Unit {
        Unit::Seconds
    }
}
