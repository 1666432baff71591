//! The cost of a packet: the time of enqueue and dequeue, measured on this machine.
//!
//! Each flow has one packet queued. The link is fully reserved, with a quarter of the flows each at 1, 2, 3
//! and 4 Mbit/s. Each departure is followed by an arrival of the same flow, so the flow becomes idle and
//! returns: the most expensive case for flow tables. The result is the fastest of many batches, after a
//! warm-up, because other work of the machine makes a batch slower, never faster, and may last longer than
//! all seeds.
//!
//! The loop is in this crate because it is compiled for speed here in every build: a slow one would be part
//! of the result.

use std::hint::black_box;
use std::time::Instant;

use giveway_disciplines::Spec;
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, Invalid, LinkContext, Next, Outbox, Packet, Qdisc, Rate, Streams, Time};

/// The flows and packets of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlogged {
    /// The number of flows, each with one queued packet.
    pub flows: u64,
    /// The length of a packet, bytes.
    pub bytes: u32,
}

/// Minimum number of pairs of enqueue and dequeue before the clock starts.
const WARM_UP: u64 = 20_000;
/// Pairs in a batch.
const BATCH: u64 = 20_000;
/// The number of batches, of which the fastest counts.
const BATCHES: usize = 51;

impl Backlogged {
    /// The rate of the link: the sum of all reservations.
    pub fn link(self) -> Rate {
        Rate::bit((0..self.flows).map(|flow| reserved(flow).as_bit()).sum())
    }

    /// Builds a discipline for this link.
    ///
    /// # Errors
    /// The parameter with which it cannot be built.
    pub fn build(self, spec: &Spec) -> Result<Box<dyn Qdisc<u64>>, Invalid> {
        spec.build_numbered(&LinkContext::new(self.link(), Streams::new(1).within("cost")))
    }

    /// Nanoseconds for one enqueue and one dequeue; `None` if the discipline cannot hold a packet of each
    /// flow.
    ///
    /// # Panics
    /// If the discipline cannot be built, or has packets and sends none.
    pub fn pair_ns(self, spec: &Spec) -> Option<f64> {
        let link = self.link();
        let mut qdisc = self.build(spec).expect("it was checked");
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
