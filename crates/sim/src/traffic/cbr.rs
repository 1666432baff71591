//! CBR: datagrams of one size at a constant mean rate, whatever the network does.
//!
//! # Principles
//! - Each interval is drawn around its mean, evenly within `jitter` of it on both sides. Without that, several
//!   senders lock into phase with a drop-tail queue: one flow finds the only free place every time, another
//!   never does, and the result says nothing about the discipline.
//! - Flows begin at a random moment within one interval.
//!
//! # Deviations
//! - Jitter is on by default (half the interval); ns-2's generator has it off.
//!
//! # Cost
//! - One event per packet and flow.
//!
//! # References
//! - Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1991.

use qdisc::{Bytes, Invalid, Rate, Rng, Share, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Place, Source, Traffic, check_packet, check_rate, spread};
use crate::transport::{Net, StreamId};

/// Parameters of `cbr`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rate of each flow, IP packets counted whole.
    pub rate: Rate,
    /// Length of each IP packet.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
    /// How far an interval may lie from its mean, as a share of it.
    #[serde(default = "default_jitter")]
    pub jitter: Share,
    /// How many flows each pair of nodes has.
    #[serde(default = "default_flows")]
    pub flows: u32,
}

fn default_packet() -> Bytes {
    Bytes(1000)
}
fn default_jitter() -> Share {
    Share::new(0.5).expect("a half is a share")
}
fn default_flows() -> u32 {
    1
}

impl Traffic for Config {
    const SUMMARY: &'static str =
        "UDP datagrams at a constant rate, with jitter so that flows do not lock into phase";
    const ANSWERED: bool = false;

    fn build(&self, place: &Place) -> Result<Box<dyn Source>, Invalid> {
        check_rate("rate", self.rate, "64kbit")?;
        let bytes = check_packet("packet", self.packet)?;
        let interval = self.rate.time_for(self.packet.0);
        let mut rng = place.streams.rng();
        let flows = (0..self.flows)
            .flat_map(|_| &place.pairs)
            .map(|(from, to)| Flow {
                next: spread(place.start, interval, &mut rng),
                from: *from,
                to: *to,
                stream: None,
            })
            .collect();
        Ok(Box::new(Cbr {
            flows,
            bytes,
            interval,
            jitter: Span::from_s_f64(interval.as_s() * self.jitter.get()),
            stop: place.stop,
            rng,
        }))
    }
}

struct Cbr {
    flows: Vec<Flow>,
    bytes: u32,
    interval: Span,
    jitter: Span,
    stop: Time,
    rng: Rng,
}

struct Flow {
    next: Time,
    from: u16,
    to: u16,
    stream: Option<StreamId>,
}

impl Source for Cbr {
    fn wake(&mut self, net: &mut Net<'_>) {
        let now = net.now();
        let mut earliest = Time::NEVER;
        for flow in &mut self.flows {
            if flow.next <= now {
                let stream = *flow.stream.get_or_insert_with(|| net.stream(flow.from, flow.to));
                net.datagram(stream, self.bytes);
                // Uniform in [interval - jitter, interval + jitter]: the mean stays.
                let early =
                    if self.jitter.is_zero() { 0 } else { self.rng.below(2 * self.jitter.as_ps() + 1) };
                flow.next = now + (self.interval + Span::from_ps(early)).saturating_sub(self.jitter);
            }
            if flow.next < self.stop {
                earliest = earliest.min(flow.next);
            } else {
                flow.next = Time::NEVER;
            }
        }
        if earliest < Time::NEVER {
            net.wake_at(earliest);
        }
    }
}
