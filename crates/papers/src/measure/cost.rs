use serde::Deserialize;

use super::kind::{Kind, Needs};
use super::unit::Unit;

/// The time of enqueue and dequeue of a packet, nanoseconds. It needs an experiment with a cost.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cost {}

impl Kind for Cost {
    fn of_cost(&self, pair_ns: f64, _bytes: u32) -> Option<f64> {
        Some(pair_ns)
    }

    fn label(&self) -> String {
        "enqueue and dequeue".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn needs(&self) -> Needs {
        Needs { timing: true, ..Needs::default() }
    }
}
