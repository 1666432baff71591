use serde::Deserialize;

use super::{Kind, Needs, Unit};

/// The time that enqueue and dequeue of a packet take, nanoseconds; of an experiment that times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cost {}

impl Kind for Cost {
    fn of_cost(&self, pair_ns: f64, _bytes: u32) -> Option<f64> {
        Some(pair_ns)
    }

    fn words(&self) -> String {
        "enqueue and dequeue".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn needs(&self) -> Needs {
        Needs { timing: true, ..Needs::default() }
    }
}
