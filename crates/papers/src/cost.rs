//! The cost of a packet: the time of enqueue and dequeue, measured on the machine that runs the study.
//!
//! ```toml
//! [[experiment]]
//! id = "cost"
//! name = "{at} flows"
//! cost = { flows = "{at}", bytes = "800" }      # in place of a scenario
//! ```
//!
//! Every flow has one packet queued ([`giveway_observe::pair_ns`]). The link is fully reserved, with a
//! quarter of the flows each at 1, 2, 3 and 4 Mbit/s. These are the only numbers of a study that depend on
//! the machine and its load, so a front end runs them one after the other, while nothing else of the study
//! runs.

use giveway_disciplines::Spec;
use giveway_observe::{Pace, pair_ns};
use giveway_qdisc::{LinkContext, Rate, Streams};
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

/// The flows and packets of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Case {
    /// The number of flows, each with one queued packet.
    flows: u64,
    /// The length of a packet.
    pub bytes: u32,
}

impl Written {
    /// Parses the numbers.
    ///
    /// # Errors
    /// A number that is not positive, or that a packet cannot have.
    pub fn read(&self) -> Result<Case, ContentError> {
        let number = |key: &'static str, text: &str| {
            let read = text.parse::<u64>().ok().filter(|number| *number > 0);
            read.ok_or_else(|| ContentError::NotPositive { key, text: text.to_owned() })
        };
        let bytes = number("bytes", &self.bytes)?;
        Ok(Case {
            flows: number("flows", &self.flows)?,
            bytes: u32::try_from(bytes).map_err(|_| ContentError::PacketTooLong(bytes))?,
        })
    }
}

impl Case {
    /// The rate of the link: the sum of all reservations.
    fn link(self) -> Rate {
        Rate::bit((0..self.flows).map(|flow| reserved(flow).as_bit()).sum())
    }

    /// Checks that the discipline can be built for this link.
    ///
    /// # Errors
    /// The parameter with which it cannot be built.
    pub fn check(self, spec: &Spec) -> Result<(), ContentError> {
        let built = spec.build_numbered(&self.context());
        let invalid = |source| ContentError::Build { discipline: spec.name().to_owned(), source };
        built.map(|_| ()).map_err(invalid)
    }

    fn context(self) -> LinkContext {
        LinkContext::new(self.link(), Streams::new(1).within("cost"))
    }

    /// Nanoseconds for one enqueue and one dequeue; `None` if the discipline cannot hold a packet of each
    /// flow.
    pub fn pair_ns(self, spec: &Spec) -> Option<f64> {
        let mut qdisc = spec.build_numbered(&self.context()).expect("it was checked");
        pair_ns(&mut *qdisc, self.flows, &Pace { bytes: self.bytes, link: self.link(), reserved })
    }
}

/// The reserved rate of a flow.
fn reserved(flow: u64) -> Rate {
    Rate::mbit(1 + flow % 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;

    #[test]
    fn every_flow_keeps_its_packet() {
        let case = Written { flows: "40".into(), bytes: "800".into() }.read().unwrap();
        assert_eq!(case.link(), Rate::mbit(100));
        let ns = |text: &str| case.pair_ns(&text.parse().unwrap());
        assert!(ns("fifo limit 40p").is_some_and(|ns| ns > 0.0));
        assert_eq!(ns("fifo limit 39p"), None, "one was dropped");
        case.check(&"trr_sound".parse().unwrap()).unwrap();
        let error = chain(&case.check(&"fifo limit 100b".parse().unwrap()).unwrap_err());
        assert!(error.starts_with("fifo: limit"), "{error}");
        let error = Written { flows: "many".into(), bytes: "800".into() }.read().unwrap_err();
        assert_eq!(error.to_string(), "cost: flows = \"many\" is not a positive whole number");
    }
}
