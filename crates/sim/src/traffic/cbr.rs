//! CBR: datagrams of one size at a constant mean rate, whatever the network does.
//!
//! # Principles
//! - Each interval is drawn around its mean, evenly within `jitter` of it on both sides. Without that,
//!   several senders lock into phase with a drop-tail queue: one flow finds the only free place every time,
//!   another never does, and the result does not depend on the discipline.
//! - Flows start at a random time within one interval.
//! - A study of fair shares needs flows with different rates that start one after the other. So rates and
//!   beginnings can be arithmetic series over the flows of a source: with `step` flow k has the rate `rate +
//!   k step`, with `stagger` it starts exactly k times `stagger` after the source, with `fastest_first` the
//!   last flow, which is the fastest, starts first and flow 0 last.
//! - Flows are counted from 0: the first flow of each pair of nodes in the order in which the scenario writes
//!   them, then the second of each pair, and so on. With `step` or `stagger` the flow numbers in reports
//!   follow this order: the k-th smallest `id` among the flows of the source is flow k. Without, flows are
//!   alike and numbered as they start.
//! - With `batch` a flow hands over several packets at once, each with the time at which it would be sent
//!   otherwise as its earliest departure time, as an application with `SO_TXTIME`. The discipline `fq` of the
//!   host's link spreads them; with any other discipline they leave as a burst. Their delay counts from the
//!   hand-over.
//!
//! # Deviations
//! - Jitter is on by default (half the interval); ns-2's generator has it off.
//!
//! # Cost
//! - One event per packet, and O(log n) for n flows.
//!
//! # References
//! - Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1991.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use giveway_qdisc::{Bytes, Invalid, Rate, Rng, Share, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::series::Series;
use super::{MAX_FLOWS, Source, SourceContext, Traffic, check_count, check_packet, check_rate, spread};
use crate::net::{Net, StreamId};

/// Parameters of `cbr`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rate of each flow, including IP headers; with `step` the rate of the first.
    pub rate: Rate,
    /// Length of each IP packet.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
    /// Largest deviation of an interval from its mean, as a share of the mean.
    #[serde(default = "default_jitter")]
    pub jitter: Share,
    /// Number of flows of each pair of nodes.
    #[serde(default = "default_flows")]
    pub flows: u32,
    /// Difference of rate between a flow and the one before it.
    #[serde(default)]
    pub step: Rate,
    /// Time between the beginnings of two flows; the first starts with the source. Without it each flow
    /// starts at a random time within its first interval.
    #[serde(default)]
    pub stagger: Option<Span>,
    /// True if flows start in reverse order: the last flow, which is the fastest, starts first.
    #[serde(default)]
    pub fastest_first: bool,
    /// Number of packets that a flow hands over at once. With more than one, each has its time of sending as
    /// its earliest departure time, which the discipline `fq` obeys.
    #[serde(default = "default_batch")]
    pub batch: u32,
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
fn default_batch() -> u32 {
    1
}
/// The largest batch.
const MAX_BATCH: u32 = 10_000;

impl Traffic for Config {
    const SUMMARY: &'static str =
        "UDP datagrams at a constant rate, with jitter so that flows do not lock into phase";
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
        if !(1..=MAX_BATCH).contains(&self.batch) {
            let message = format!("{} is not between 1 and {MAX_BATCH}: write for example 10", self.batch);
            return Err(Invalid::new("batch", message));
        }
        let count = u64::from(self.flows) * context.pairs.len() as u64;
        let series = self.series(count, context)?;
        let mut rng = context.streams.rng();
        let flows = (0..self.flows).flat_map(|_| &context.pairs).zip(0..).map(|((from, to), number)| {
            let interval = self.rate_of(number).time_for(bytes.into());
            let begin = match &series {
                Some(series) => series.begin(number),
                None => spread(context.start, interval, &mut rng),
            };
            let jitter = Span::from_s_f64(interval.as_s() * self.jitter.get());
            Flow { begin, interval, jitter, from: *from, to: *to, stream: None }
        });
        let flows: Vec<Flow> = flows.collect();
        let order = flows.iter().zip(0..).map(|(flow, number)| Reverse((flow.begin, number)));
        let order = order.filter(|Reverse((begin, _))| *begin < context.stop).collect();
        let in_order = self.step > Rate::default() || series.is_some();
        Ok(Box::new(Cbr {
            flows,
            order,
            bytes,
            batch: self.batch,
            to_number: in_order,
            stop: context.stop,
            rng,
        }))
    }
}

impl Config {
    /// The beginnings of the flows, if they are not random.
    fn series(&self, count: u64, context: &SourceContext) -> Result<Option<Series>, Invalid> {
        if self.fastest_first && (self.stagger.is_none() || self.step == Rate::default()) {
            let message = "it reverses the order in which flows of different rates begin: it needs a step, such as \
                           step = \"500kbit\", and a stagger, such as stagger = \"50ms\"";
            return Err(Invalid::new("fastest_first", message));
        }
        self.stagger.map(|stagger| Series::new(stagger, count, self.fastest_first, context)).transpose()
    }

    /// The rate of a flow.
    fn rate_of(&self, number: u64) -> Rate {
        Rate::bit(self.rate.as_bit().saturating_add(self.step.as_bit().saturating_mul(number)))
    }
}

struct Cbr {
    flows: Vec<Flow>,
    /// Time of the next packet of each flow. At equal times the flow with the lower number is first.
    order: BinaryHeap<Reverse<(Time, u32)>>,
    bytes: u32,
    /// Number of packets that a flow hands over at once.
    batch: u32,
    /// True if all flows are to be numbered at the start, in their order. Otherwise they are numbered as
    /// they start.
    to_number: bool,
    stop: Time,
    rng: Rng,
}

struct Flow {
    begin: Time,
    /// Mean time between two packets, and the largest deviation from it.
    interval: Span,
    jitter: Span,
    from: u16,
    to: u16,
    stream: Option<StreamId>,
}

impl Source for Cbr {
    fn wake(&mut self, net: &mut Net<'_>) {
        let now = net.now();
        if std::mem::take(&mut self.to_number) {
            for flow in &mut self.flows {
                flow.stream = Some(net.stream_from(flow.from, flow.to, flow.begin));
            }
        }
        while let Some(Reverse((due, number))) =
            self.order.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.order.pop();
            let flow = &mut self.flows[number as usize];
            let stream = *flow.stream.get_or_insert_with(|| net.stream(flow.from, flow.to));
            // From the time that was due: a late wake-up delays no later packet.
            let mut next = due;
            for _ in 0..self.batch {
                if self.batch == 1 {
                    net.datagram(stream, self.bytes);
                } else {
                    net.datagram_at(stream, self.bytes, next);
                }
                // Uniform in [interval - jitter, interval + jitter]: the mean stays.
                let early =
                    if flow.jitter.is_zero() { 0 } else { self.rng.below(2 * flow.jitter.as_ps() + 1) };
                next += (flow.interval + Span::from_ps(early)).saturating_sub(flow.jitter);
                if next >= self.stop {
                    break;
                }
            }
            if next < self.stop {
                self.order.push(Reverse((next, number)));
            }
        }
        if let Some(Reverse((earliest, _))) = self.order.peek() {
            net.wake_at(*earliest);
        }
    }
}
