use serde::Deserialize;

use super::kind::{Kind, Run};
use super::select::largest_transfers;

/// The number of retransmission timeouts of the largest transfers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timeouts {
    /// The number of largest transfers that count.
    pub largest: usize,
}

impl Kind for Timeouts {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let largest = largest_transfers(run.record, self.largest).into_iter();
        largest.map(|flow| flow.timeouts as f64).reduce(|a, b| a + b)
    }

    fn words(&self) -> String {
        format!("timeouts of the {} largest", self.largest)
    }
}
