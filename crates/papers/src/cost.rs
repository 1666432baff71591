//! The cost of a packet: the time of enqueue and dequeue, measured on the machine that runs the study.
//!
//! ```toml
//! [[experiment]]
//! id = "cost"
//! name = "{at} flows"
//! cost = { flows = "{at}", bytes = "800" }      # in place of a scenario
//! ```
//!
//! Every flow has one packet queued. The link is fully reserved, with a quarter of the flows each at 1, 2, 3
//! and 4 Mbit/s. Each departure is followed by an arrival of the same flow, so the flow becomes idle and
//! returns: the most expensive case for flow tables. The result is the fastest of many batches, after a
//! warm-up, because other work of the machine makes a batch slower, never faster, and may last longer than
//! all seeds. These are the only numbers of a study that depend on the machine and its load, so a front end
//! runs them one after the other, while nothing else of the study runs.

use std::hint::black_box;
use std::time::Instant;

use giveway_disciplines::Spec;
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, Outbox, Packet, Qdisc, Rate, Streams, Time};
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

/// The fewest pairs of enqueue and dequeue before the clock starts.
const WARM_UP: u64 = 20_000;
/// Pairs in a batch.
const BATCH: u64 = 20_000;
/// The number of batches, of which the fastest counts.
const BATCHES: usize = 51;

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
        let link = self.link();
        let mut qdisc = spec.build_numbered(&self.context()).expect("it was checked");
        let mut out = Outbox::default();
        let mut now = Time::ms(1);
        for flow in 0..self.flows {
            qdisc.enqueue(self.packet(flow, now), &mut Cx::new(now, &mut out));
        }
        if qdisc.backlog().packets != self.flows {
            return None;
        }
        let mut pairs = |count: u64| {
            for _ in 0..count {
                let Next::Packet(left) = qdisc.dequeue(&mut Cx::new(now, &mut out)) else {
                    panic!("{} has packets but sends none", spec.name())
                };
                now += link.time_for(u64::from(self.bytes));
                let flow = black_box(left.payload);
                qdisc.enqueue(self.packet(flow, now), &mut Cx::new(now, &mut out));
            }
        };
        pairs(WARM_UP.max(2 * self.flows));
        let batch = |_| {
            #[expect(clippy::disallowed_methods, reason = "the result is the time on this machine")]
            let begun = Instant::now();
            pairs(BATCH);
            begun.elapsed().as_nanos()
        };
        let fastest = (0..BATCHES).map(batch).min()?;
        Some(fastest as f64 / BATCH as f64)
    }

    fn packet(self, flow: u64, now: Time) -> Packet<u64> {
        let mut pkt = Packet::new(FlowKey(mix(flow, 0x5bd1)), self.bytes, flow);
        pkt.meta.arrived = now;
        pkt.meta.class = (flow % 4) as u16;
        pkt.meta.reserved = reserved(flow);
        pkt
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
