use serde::Deserialize;

use super::kind::{Kind, Needs};
use super::unit::Unit;

/// The time of enqueue and dequeue per byte of the packet, nanoseconds. It needs an experiment with a cost.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CostPerByte {}

impl Kind for CostPerByte {
    fn of_cost(&self, pair_ns: f64, bytes: u32) -> Option<f64> {
        Some(pair_ns / f64::from(bytes))
    }

    fn label(&self) -> String {
        "enqueue and dequeue per byte".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn needs(&self) -> Needs {
        Needs { timing: true, ..Needs::default() }
    }
}
