use serde::Deserialize;

use super::kind::{Kind, Run};
use super::select::largest_transfers;
use super::unit::Unit;

/// The sum of the pauses of more than half a second of the largest transfers, seconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paused {
    /// The number of largest transfers that count.
    pub largest: usize,
}

impl Kind for Paused {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let largest = largest_transfers(run.record, self.largest).into_iter();
        largest.map(|flow| flow.paused.as_s()).reduce(|a, b| a + b)
    }

    fn is_total(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        format!("pauses of the {} largest, in all", self.largest)
    }

    fn unit(&self) -> Unit {
        Unit::Seconds
    }
}
