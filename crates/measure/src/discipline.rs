//! A discipline as tables and manifests name it.

use giveway_qdisc::Quantity;
use serde::Serialize;

/// One of the compared disciplines.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Discipline {
    /// As Giveway writes it, with parameters that have their defaults left out. No two of a comparison are written alike.
    pub qdisc: String,
    /// As the scenario spells it.
    #[serde(rename = "discipline")]
    pub written: String,
    /// All its parameters with their names, those with their defaults, too. A parameter of a discipline inside has the name of
    /// the parameter that holds it in front: `child.limit`.
    #[serde(skip)]
    pub parameters: Vec<(String, Quantity)>,
}

impl Discipline {
    /// One of which only the spelling is known.
    pub fn named(qdisc: impl Into<String>) -> Discipline {
        let qdisc = qdisc.into();
        Discipline { written: qdisc.clone(), qdisc, parameters: Vec::new() }
    }
}
