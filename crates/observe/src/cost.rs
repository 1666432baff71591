//! The cost of a packet: the time of enqueue and dequeue, measured on this machine.
//!
//! Each flow has one packet queued. Each departure is followed by an arrival of the same flow, so the flow
//! becomes idle and returns: the most expensive case for flow tables. The result is the fastest of many
//! batches, after a warm-up, because other work of the machine makes a batch slower, never faster.
//!
//! The loop is in this crate because it is compiled for speed here in every build: a slow one would be part
//! of the result.

use std::hint::black_box;
use std::time::Instant;

use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, Next, Outbox, Packet, Qdisc, Rate, Time};

/// The packets of a measurement, and the link that they leave on.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The length of a packet, bytes.
    pub bytes: u32,
    /// The rate of the link, on which the simulated time of departures depends.
    pub link: Rate,
    /// The reserved rate of each flow.
    pub reserved: fn(u64) -> Rate,
}

/// The fewest pairs of enqueue and dequeue before the clock starts.
const WARM_UP: u64 = 20_000;
/// Pairs in a batch.
const BATCH: u64 = 20_000;
/// The number of batches, of which the fastest counts.
const BATCHES: usize = 51;

/// Nanoseconds for one enqueue and one dequeue with a packet of each of `flows` flows in an empty discipline;
/// `None` if it cannot hold them.
///
/// # Panics
/// If the discipline has packets and sends none: it must be work-conserving.
pub fn pair_ns(qdisc: &mut dyn Qdisc<u64>, flows: u64, pace: &Pace) -> Option<f64> {
    let mut out = Outbox::default();
    let mut now = Time::ms(1);
    for flow in 0..flows {
        qdisc.enqueue(pace.packet(flow, now), &mut Cx::new(now, &mut out));
    }
    if qdisc.backlog().packets != flows {
        return None;
    }
    let mut pairs = |count: u64| {
        for _ in 0..count {
            let Next::Packet(left) = qdisc.dequeue(&mut Cx::new(now, &mut out)) else {
                panic!("the discipline has packets and sends none")
            };
            now += pace.link.time_for(u64::from(pace.bytes));
            let flow = black_box(left.payload);
            qdisc.enqueue(pace.packet(flow, now), &mut Cx::new(now, &mut out));
        }
    };
    pairs(WARM_UP.max(2 * flows));
    let batch = |_| {
        #[expect(clippy::disallowed_methods, reason = "the result is the time on this machine")]
        let begun = Instant::now();
        pairs(BATCH);
        begun.elapsed().as_nanos()
    };
    let fastest = (0..BATCHES).map(batch).min()?;
    Some(fastest as f64 / BATCH as f64)
}

impl Pace {
    fn packet(&self, flow: u64, now: Time) -> Packet<u64> {
        let mut pkt = Packet::new(FlowKey(mix(flow, 0x5bd1)), self.bytes, flow);
        pkt.meta.arrived = now;
        pkt.meta.class = (flow % 4) as u16;
        pkt.meta.reserved = (self.reserved)(flow);
        pkt
    }
}
