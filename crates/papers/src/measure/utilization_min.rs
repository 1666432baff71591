use serde::Deserialize;

use super::kind::{Kind, Run};
use super::unit::Unit;

/// The smallest utilization among the measured ports.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UtilizationMin {}

impl Kind for UtilizationMin {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        run.record.links.iter().filter_map(|link| link.utilization).reduce(f64::min)
    }

    fn label(&self) -> String {
        "utilization of the least used link".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Share
    }
}
