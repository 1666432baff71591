//! The cost of a packet: the time of enqueue and dequeue, measured on the machine that runs the study.
//!
//! ```toml
//! [[experiment]]
//! id = "cost"
//! name = "{at} flows"
//! cost = { flows = "{at}", bytes = "800" }      # in place of a scenario
//! ```
//!
//! [`Backlogged`] measures it. These are the only numbers of a study that depend on the machine and its load,
//! so a front end runs them one after the other, while nothing else of the study runs.

use giveway_disciplines::Spec;
use giveway_observe::Backlogged;
use serde::Deserialize;

use crate::error::ContentError;

/// An experiment that measures the cost of a packet, as in the file: numbers, or `{at}`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    /// The number of flows.
    pub flows: String,
    /// The length of a packet, bytes.
    pub bytes: String,
}

impl Written {
    /// Parses the numbers.
    ///
    /// # Errors
    /// A number that is not positive, or that a packet cannot have.
    pub fn read(&self) -> Result<Backlogged, ContentError> {
        let number = |key: &'static str, text: &str| {
            let read = text.parse::<u64>().ok().filter(|number| *number > 0);
            read.ok_or_else(|| ContentError::NotPositive { key, text: text.to_owned() })
        };
        let bytes = number("bytes", &self.bytes)?;
        Ok(Backlogged {
            flows: number("flows", &self.flows)?,
            bytes: u32::try_from(bytes).map_err(|_| ContentError::PacketTooLong(bytes))?,
        })
    }
}

/// Checks that a discipline can be built for the link of an experiment.
///
/// # Errors
/// The parameter with which it cannot be built.
pub(crate) fn check(case: Backlogged, spec: &Spec) -> Result<(), ContentError> {
    let invalid = |source| ContentError::Build { discipline: spec.name().to_owned(), source };
    case.build(spec).map(|_| ()).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;
    use giveway_qdisc::Rate;

    #[test]
    fn every_flow_keeps_its_packet() {
        let case = Written { flows: "40".into(), bytes: "800".into() }.read().unwrap();
        assert_eq!(case.link(), Rate::mbit(100));
        let ns = |text: &str| case.pair_ns(&text.parse().unwrap());
        assert!(ns("fifo limit 40p").is_some_and(|ns| ns > 0.0));
        assert_eq!(ns("fifo limit 39p"), None, "one was dropped");
        check(case, &"trr_sound".parse().unwrap()).unwrap();
        let error = chain(&check(case, &"fifo limit 100b".parse().unwrap()).unwrap_err());
        assert!(error.starts_with("fifo: limit"), "{error}");
        let error = Written { flows: "many".into(), bytes: "800".into() }.read().unwrap_err();
        assert_eq!(error.to_string(), "cost: flows = \"many\" is not a positive whole number");
    }
}
