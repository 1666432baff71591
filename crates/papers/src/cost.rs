//! What a packet costs a discipline: enqueue and dequeue, timed on the machine that does the paper again.
//!
//! ```toml
//! [[experiment]]
//! id = "cost"
//! name = "{at} flows"
//! cost = { flows = "{at}", bytes = "800" }      # in place of a scenario
//! ```
//!
//! Every flow has one packet queued. The link is fully reserved, a quarter of the flows each at 1, 2, 3 and 4 Mbit/s; each departure is
//! followed by an arrival of the flow that left, so the flow empties and comes back: the costly case for tables. A number is the fastest of
//! many batches, after a warm-up: what else a machine does makes one slower, never faster, and may last longer than all seeds take. These are the only numbers of a study that depend on the machine, and on what else it does: a front end runs them one
//! after the other, while nothing else of the study runs.

use std::hint::black_box;
use std::time::Instant;

use giveway_disciplines::Spec;
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, Outbox, Packet, Qdisc, Rate, Streams, Time};
use serde::Deserialize;

/// An experiment that times, as it is written: numbers, or `{at}`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    pub flows: String,
    pub bytes: String,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Case {
    /// How many flows have a packet queued each.
    flows: u64,
    /// How long packets are.
    pub bytes: u32,
}

/// Pairs before the clock starts, for each flow and at least.
const WARM_UP: u64 = 20_000;
/// Pairs that are timed at a time, and how often.
const BATCH: u64 = 20_000;
const BATCHES: usize = 51;

impl Written {
    pub fn read(&self) -> Result<Case, String> {
        let number = |name: &str, text: &str| {
            let read = text.parse::<u64>().ok().filter(|number| *number > 0);
            read.ok_or_else(|| format!("cost: {name} = \"{text}\" is no positive whole number"))
        };
        let bytes = number("bytes", &self.bytes)?;
        Ok(Case {
            flows: number("flows", &self.flows)?,
            bytes: u32::try_from(bytes).map_err(|_| format!("cost: no packet has {bytes} bytes"))?,
        })
    }
}

impl Case {
    /// All that is reserved, which is all of the link.
    fn link(self) -> Rate {
        Rate::bit((0..self.flows).map(|flow| reserved(flow).as_bit()).sum())
    }

    /// That the discipline can be built there.
    ///
    /// # Errors
    /// Why not.
    pub fn check(self, spec: &Spec) -> Result<(), String> {
        let built = spec.build_numbered(&self.context());
        built.map(|_| ()).map_err(|invalid| format!("{}: {invalid}", spec.name()))
    }

    fn context(self) -> LinkContext {
        LinkContext::new(self.link(), Streams::new(1).within("cost"))
    }

    /// Nanoseconds per enqueue and dequeue; `None` when the discipline does not hold a packet of each flow.
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
                    panic!("{} keeps the link busy", spec.name())
                };
                now += link.time_for(u64::from(self.bytes));
                let flow = black_box(left.payload);
                qdisc.enqueue(self.packet(flow, now), &mut Cx::new(now, &mut out));
            }
        };
        pairs(WARM_UP.max(2 * self.flows));
        let batch = |_| {
            #[expect(clippy::disallowed_methods, reason = "what is asked is how long it takes here")]
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

fn reserved(flow: u64) -> Rate {
    Rate::mbit(1 + flow % 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flow_keeps_its_packet() {
        let case = Written { flows: "40".into(), bytes: "800".into() }.read().unwrap();
        assert_eq!(case.link(), Rate::mbit(100));
        let ns = |text: &str| case.pair_ns(&text.parse().unwrap());
        assert!(ns("fifo limit 40p").is_some_and(|ns| ns > 0.0));
        assert_eq!(ns("fifo limit 39p"), None, "one was dropped");
        case.check(&"trr_sound".parse().unwrap()).unwrap();
        let wrong = case.check(&"fifo limit 100b".parse().unwrap()).unwrap_err();
        assert!(wrong.starts_with("fifo: limit"), "{wrong}");
        let wrong = Written { flows: "many".into(), bytes: "800".into() }.read().unwrap_err();
        assert_eq!(wrong, "cost: flows = \"many\" is no positive whole number");
    }
}
