//! Poisson: datagrams of one size at the times of a Poisson process, whatever the network does. They are the
//! arrivals of queueing theory: with one link behind them they make M/D/1.
//!
//! # Principles
//! - The times between the datagrams of a flow are exponential; their mean is the serialisation time of a
//!   packet at `rate`.
//! - A flow's first datagram comes such a time after its start: no flow has a datagram at the start itself,
//!   and none needs a random phase.
//! - Flows are independent, and each has its own random numbers. Their sum is a Poisson process, too, at the
//!   sum of their rates. Adding a flow does not change the times of the others.
//!
//! # Deviations
//! - Times are whole picoseconds, so that two datagrams may have the same time.
//! - Packets of real networks do not arrive like this: they come in bursts on every time scale. `onoff`
//!   generates those.
//!
//! # Cost
//! - One event per packet, and O(log n) for n flows.
//!
//! # References
//! - L. Kleinrock, "Queueing Systems", volume 1, 1975, chapter 2: the process; section 5.7: the waiting time.
//! - Paxson and Floyd, "Wide-area traffic: the failure of Poisson modeling", 1995: where the process does not
//!   hold.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use giveway_qdisc::{Bytes, Invalid, Rate, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_FLOWS, Source, SourceContext, Traffic, check_count, check_packet, check_rate};
use crate::net::{Net, StreamId};

/// Parameters of `poisson`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Mean rate of each flow, including IP headers.
    pub rate: Rate,
    /// Length of each IP packet.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
    /// Number of flows of each pair of nodes.
    #[serde(default = "default_flows")]
    pub flows: u32,
}

fn default_packet() -> Bytes {
    Bytes(1000)
}
fn default_flows() -> u32 {
    1
}

impl Traffic for Config {
    const SUMMARY: &'static str = "UDP datagrams at the times of a Poisson process";
    const ANSWERED: bool = false;

    fn lasting(&self) -> Option<u32> {
        Some(self.flows)
    }
    fn largest(&self) -> Option<Bytes> {
        Some(self.packet)
    }

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        check_rate("rate", self.rate, "64kbit")?;
        let bytes = check_packet("packet", self.packet)?;
        check_count("flows", self.flows, MAX_FLOWS, context)?;
        let pairs = (0..self.flows).flat_map(|_| &context.pairs).enumerate();
        let flows = pairs.map(|(number, (from, to))| {
            let times = context.streams.within(&number.to_string()).rng();
            Flow { times, from: *from, to: *to, stream: None }
        });
        let mut source = Poisson {
            flows: flows.collect(),
            order: BinaryHeap::new(),
            bytes,
            mean_gap_s: f64::from(bytes) / self.rate.bytes_per_s(),
            stop: context.stop,
        };
        for number in 0..source.flows.len() {
            source.schedule(number as u32, context.start);
        }
        Ok(Box::new(source))
    }
}

struct Poisson {
    flows: Vec<Flow>,
    /// Time of the next packet of each flow. At equal times the flow with the lower number is first.
    order: BinaryHeap<Reverse<(Time, u32)>>,
    bytes: u32,
    mean_gap_s: f64,
    stop: Time,
}

struct Flow {
    times: Rng,
    from: u16,
    to: u16,
    stream: Option<StreamId>,
}

impl Source for Poisson {
    fn wake(&mut self, net: &mut Net<'_>) {
        while let Some(Reverse((at, number))) =
            self.order.peek().copied().filter(|Reverse((at, _))| *at <= net.now())
        {
            self.order.pop();
            let flow = &mut self.flows[number as usize];
            let stream = *flow.stream.get_or_insert_with(|| net.stream(flow.from, flow.to));
            net.datagram(stream, self.bytes);
            self.schedule(number, at);
        }
        if let Some(Reverse((earliest, _))) = self.order.peek() {
            net.wake_at(*earliest);
        }
    }
}

impl Poisson {
    /// Draws the time of the next packet of a flow.
    fn schedule(&mut self, number: u32, last: Time) {
        let gap = self.flows[number as usize].times.exponential(self.mean_gap_s);
        let next = last + Span::from_s_f64(gap);
        if next < self.stop {
            self.order.push(Reverse((next, number)));
        }
    }
}
