use serde::Deserialize;

use super::{Kind, Needs, Unit};

/// The time that enqueue and dequeue take per byte of the packet, nanoseconds; of an experiment that times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CostPerByte {}

impl Kind for CostPerByte {
    fn of_cost(&self, pair_ns: f64, bytes: u32) -> Option<f64> {
        Some(pair_ns / f64::from(bytes))
    }

    fn words(&self) -> String {
        "enqueue and dequeue per byte".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn needs(&self) -> Needs {
        Needs { timing: true, ..Needs::default() }
    }
}
