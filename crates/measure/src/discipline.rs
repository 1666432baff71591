//! A discipline of a comparison, as tables and manifests name it.

use giveway_qdisc::Quantity;
use serde::Serialize;

/// One of the compared disciplines.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Discipline {
    /// The specification in normal form, without parameters that have their defaults. It is unique within a
    /// comparison.
    pub qdisc: String,
    /// The specification as the scenario has it.
    #[serde(rename = "discipline")]
    pub written: String,
    /// All parameters with their names, including defaults. A parameter of an inner discipline has the name
    /// of the outer parameter as a prefix: `child.limit`.
    #[serde(skip)]
    pub parameters: Vec<(String, Quantity)>,
}

impl Discipline {
    /// A discipline with a known specification only: its parameters are empty.
    pub fn named(qdisc: impl Into<String>) -> Discipline {
        let qdisc = qdisc.into();
        Discipline { written: qdisc.clone(), qdisc, parameters: Vec::new() }
    }
}
