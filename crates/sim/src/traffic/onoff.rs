//! On/off: sources that send bursts and pause, and aggregates of them, which are self-similar when the
//! lengths have heavy tails.
//!
//! # Principles
//! - A source sends a burst of packets at `rate`, back to back, then pauses. Lengths of bursts and pauses are
//!   Pareto or exponential.
//! - With Pareto lengths the sum of many sources is bursty on every time scale: its Hurst parameter tends to
//!   (3 - a) / 2, where a is the smaller of the two shapes. With exponential lengths it is smooth at time
//!   scales above a few cycles.
//! - Either the mean pause is given, or the load of all sources of a node together; then the pause follows
//!   from it. The mean burst is computed exactly for that, with the rounding to whole packets and with the
//!   end of the tail that a random number of 53 bits cannot reach.
//! - Each source starts at a random point of a random cycle. Otherwise all would burst together at the start.
//! - With `merge` the sources of a node share one link of that rate, and each pair of nodes is one flow;
//!   without it each source is a separate flow, and sources may send at the same time.
//!
//! # Deviations
//! - With Pareto shapes below 2 the load of a run of any practical length deviates from the nominal one by
//!   tens of percent. That is a property of such traffic; compare disciplines on the same seed.
//! - ns-2 draws the length of a burst in seconds and rounds it to packets in the same way; the names differ.
//!
//! # Cost
//! - One event per packet, and an operation on a heap of sources.
//!
//! # References
//! - G. Kramer, "Self-similar network traffic: the notion and effects of self-similarity and long-range
//!   dependence", and his generator of pseudo-Pareto traffic.
//! - Taqqu, Willinger and Sherman, "Proof of a fundamental result in self-similar traffic modeling", 1997.
//! - The Pareto on/off generator of ns-2, whose burst, pause and shape are the defaults here.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use giveway_qdisc::{Bytes, Invalid, Rate, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_FLOWS, Source, SourceContext, Traffic, check_packet, check_rate};
use crate::net::{Net, StreamId};

/// Parameters of `onoff`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rate within a burst, including IP headers; with `merge` the rate of the shared link.
    pub rate: Rate,
    /// Length of each IP packet.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
    /// Number of sources of each sending node, distributed round-robin over its destinations.
    #[serde(default = "default_sources")]
    pub sources: u32,
    /// Distribution of the lengths of bursts and pauses.
    #[serde(default)]
    pub law: LengthLaw,
    /// Shape of the lengths of bursts, if they are Pareto.
    #[serde(default = "default_shape")]
    pub shape_on: f64,
    /// Shape of the lengths of pauses, if they are Pareto.
    #[serde(default = "default_shape")]
    pub shape_off: f64,
    /// Mean length of a burst; without it the shortest burst has one packet (Pareto only).
    #[serde(default)]
    pub on: Option<Span>,
    /// Mean length of a pause. Give this or `load`.
    #[serde(default)]
    pub off: Option<Span>,
    /// Mean load of all sources of a sending node together. Give this or `off`.
    #[serde(default)]
    pub load: Option<Rate>,
    /// True if the sources of a node send one after the other over a shared link of `rate`.
    #[serde(default)]
    pub merge: bool,
}

/// Distribution of the lengths of bursts and pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LengthLaw {
    /// Pareto: heavy tails.
    #[default]
    Pareto,
    /// Exponential: light tails.
    Exponential,
}

fn default_packet() -> Bytes {
    Bytes(210)
}
fn default_sources() -> u32 {
    1
}
fn default_shape() -> f64 {
    1.5
}

impl Traffic for Config {
    const SUMMARY: &'static str =
        "UDP sources that send bursts and pause (Pareto or exponential), and self-similar aggregates of them";
    const ANSWERED: bool = false;

    fn largest(&self) -> Option<Bytes> {
        Some(self.packet)
    }

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        let cycle = self.cycle()?;
        // Sending nodes in the order of the pairs, each with its pairs.
        let mut senders: Vec<(u16, Vec<usize>)> = Vec::new();
        let mut numbers: BTreeMap<u16, usize> = BTreeMap::new();
        for (number, (from, _)) in context.pairs.iter().enumerate() {
            let node = *numbers.entry(*from).or_insert(senders.len());
            if node == senders.len() {
                senders.push((*from, Vec::new()));
            }
            senders[node].1.push(number);
        }
        if self.sources as usize > MAX_FLOWS / senders.len().max(1) {
            let message = format!(
                "{} for each of {} sending nodes are too many: write at most {}",
                self.sources,
                senders.len(),
                MAX_FLOWS / senders.len().max(1)
            );
            return Err(Invalid::new("sources", message));
        }
        let mut nodes = Vec::new();
        let mut bursts = Vec::new();
        for (node, (_, pairs)) in senders.iter().enumerate() {
            if (self.sources as usize) < pairs.len() {
                let message = format!(
                    "{} for {} destinations of one node; write at least {}",
                    self.sources,
                    pairs.len(),
                    pairs.len()
                );
                return Err(Invalid::new("sources", message));
            }
            nodes.push(NodeSources { free: context.start, due: BinaryHeap::new(), next: None });
            for source in 0..self.sources as usize {
                let rng = context.streams.within(&node.to_string()).within(&source.to_string()).rng();
                let pair = pairs[source % pairs.len()];
                let (burst, first) = Burst::begin(pair, &cycle, context.start, rng);
                nodes[node].due.push(Reverse((first, bursts.len())));
                bursts.push(burst);
            }
        }
        let mut source = OnOff {
            nodes,
            bursts,
            cycle,
            merge: self.merge,
            pairs: context.pairs.clone(),
            streams: BTreeMap::new(),
            nominal: cycle.load() * f64::from(self.sources),
            stop: context.stop,
        };
        for node in 0..source.nodes.len() {
            source.advance(node);
        }
        Ok(Box::new(source))
    }
}

impl Config {
    /// The laws of the bursts and pauses of a source.
    fn cycle(&self) -> Result<Cycle, Invalid> {
        check_rate("rate", self.rate, "64kbit")?;
        let packet = check_packet("packet", self.packet)?;
        let slot = self.rate.time_for(u64::from(packet));
        let check_shape = |parameter, shape: f64| match self.law {
            LengthLaw::Pareto if !(shape > 1.0 && shape <= 100.0) => {
                let message = format!("{shape} has no mean: write a number above 1, for example 1.5");
                Err(Invalid::new(parameter, message))
            }
            _ => Ok(shape),
        };
        let (shape_on, shape_off) =
            (check_shape("shape_on", self.shape_on)?, check_shape("shape_off", self.shape_off)?);
        let packets = self.on.map(|on| on.as_s() / slot.as_s());
        let on = match (self.law, packets) {
            (_, Some(packets)) if packets < 1.0 => {
                let message = format!("is shorter than a packet at {}, {slot}", self.rate);
                return Err(Invalid::new("on", message));
            }
            (LengthLaw::Pareto, None) => On::Pareto { min: 1.0, shape: shape_on },
            (LengthLaw::Pareto, Some(mean)) => {
                On::Pareto { min: mean / pareto_mean(1.0, shape_on), shape: shape_on }
            }
            (LengthLaw::Exponential, Some(mean)) => On::exponential(mean),
            (LengthLaw::Exponential, None) => {
                return Err(Invalid::new(
                    "on",
                    "exponential bursts need a mean length: write for example on = \"500ms\"",
                ));
            }
        };
        let busy = on.mean() * slot.as_s();
        let pause = match (self.off, self.load) {
            (Some(_), Some(_)) => {
                return Err(Invalid::new("load", "load and off both set the mean pause: leave one out"));
            }
            (None, None) => {
                return Err(Invalid::new(
                    "load",
                    "the mean pause is missing: write load = \"1mbit\" or off = \"500ms\"",
                ));
            }
            (Some(off), None) => off.as_s(),
            (None, Some(load)) => {
                check_rate("load", load, "1mbit")?;
                let share = load.as_bit() as f64 / self.rate.as_bit() as f64 / f64::from(self.sources.max(1));
                if share > 1.0 || (self.merge && load >= self.rate) {
                    let message =
                        format!("{load} is more than {} sources at {} can send", self.sources, self.rate);
                    return Err(Invalid::new("load", message));
                }
                busy * (1.0 / share - 1.0)
            }
        };
        let off = match self.law {
            LengthLaw::Pareto => Off::Pareto { min: pause / pareto_mean(1.0, shape_off), shape: shape_off },
            LengthLaw::Exponential => Off::Exponential { mean: pause },
        };
        Ok(Cycle { on, off, pause, slot, packet })
    }
}

/// The cycle of burst and pause that every source repeats.
#[derive(Clone, Copy)]
struct Cycle {
    on: On,
    off: Off,
    /// Mean pause, seconds.
    pause: f64,
    /// Time of a packet at the rate of bursts.
    slot: Span,
    packet: u32,
}

/// Packets of a burst.
#[derive(Clone, Copy)]
enum On {
    /// The nearest whole number, at least one.
    Pareto { min: f64, shape: f64 },
    /// The next whole number above an exponential variable of mean `scale`: geometric, so that the mean is
    /// exact.
    Geometric { scale: f64 },
}

/// Seconds of a pause.
#[derive(Clone, Copy)]
enum Off {
    Pareto { min: f64, shape: f64 },
    Exponential { mean: f64 },
}

/// The smallest value of 1 - u for a uniform number u of 53 bits, which bounds the tail.
const FINEST: f64 = 1.0 / (1u64 << 53) as f64;

/// The mean of min * (1 - u)^(-1/shape) with 1 - u no smaller than `FINEST`: the correction by 1 - s^(1 -
/// 1/a).
fn pareto_mean(min: f64, shape: f64) -> f64 {
    min * shape / (shape - 1.0) * (1.0 - libm::pow(FINEST, 1.0 - 1.0 / shape))
}

fn pareto(min: f64, shape: f64, rng: &mut Rng) -> f64 {
    min / libm::pow(1.0 - rng.uniform(), 1.0 / shape)
}

impl On {
    fn exponential(mean: f64) -> On {
        // P(n > k) = exp(-k / scale), so the mean is 1 / (1 - exp(-1 / scale)).
        On::Geometric { scale: if mean > 1.0 { -1.0 / libm::log1p(-1.0 / mean) } else { 0.0 } }
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        match *self {
            On::Pareto { min, shape } => ((pareto(min, shape, rng) + 0.5) as u64).max(1),
            On::Geometric { scale } => (libm::ceil(rng.exponential(scale)) as u64).max(1),
        }
    }

    /// The mean of the draws.
    fn mean(&self) -> f64 {
        match *self {
            On::Geometric { scale: 0.0 } => 1.0,
            On::Geometric { scale } => -1.0 / libm::expm1(-1.0 / scale),
            On::Pareto { min, shape } => {
                // The mean of a whole number is the sum of P(n > k). Far out the sum over k + 1/2 is the
                // integral.
                let above = |x: f64| if x <= min { 1.0 } else { libm::pow(min / x, shape) };
                // Up to the shortest burst each probability is 1, so that these terms need no loop.
                let (sure, far) = if min < 10_000.0 {
                    (0, (min as u64 + 1) * 64)
                } else {
                    let sure = (min - 0.5) as u64;
                    (sure, sure + 640_000)
                };
                let near = sure as f64 + (sure + 1..far).map(|k| above(k as f64 + 0.5)).sum::<f64>();
                let edge = far as f64;
                let tail = edge * above(edge) / (shape - 1.0) - pareto_mean_lost(min, shape);
                1.0 + near + tail
            }
        }
    }
}

/// The part of a Pareto mean that a uniform number of 53 bits cannot reach.
fn pareto_mean_lost(min: f64, shape: f64) -> f64 {
    min * shape / (shape - 1.0) * libm::pow(FINEST, 1.0 - 1.0 / shape)
}

impl Off {
    fn draw(&self, rng: &mut Rng) -> Span {
        Span::from_s_f64(match *self {
            Off::Pareto { min, shape } => pareto(min, shape, rng),
            Off::Exponential { mean } => rng.exponential(mean),
        })
    }
}

impl Cycle {
    /// Mean load of one source, bit/s.
    fn load(&self) -> f64 {
        let packets = self.on.mean();
        packets * f64::from(self.packet) * 8.0 / (packets * self.slot.as_s() + self.pause)
    }
}

struct OnOff {
    /// One per sending node.
    nodes: Vec<NodeSources>,
    bursts: Vec<Burst>,
    cycle: Cycle,
    merge: bool,
    pairs: Vec<(u16, u16)>,
    /// Streams by pair, or by source if each is a separate flow.
    streams: BTreeMap<usize, StreamId>,
    /// Nominal load of a sending node, bit/s.
    nominal: f64,
    stop: Time,
}

/// The sources of one node.
struct NodeSources {
    /// With `merge`: the time at which the shared link can take the next packet.
    free: Time,
    /// Time of the next packet of each source.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    /// The packet that leaves next: its time and its source.
    next: Option<(Time, usize)>,
}

/// State of one source.
struct Burst {
    pair: usize,
    /// Packets left of the burst, including the one that is due.
    left: u64,
    rng: Rng,
}

impl Source for OnOff {
    fn wake(&mut self, net: &mut Net<'_>) {
        let mut earliest = Time::NEVER;
        for node in 0..self.nodes.len() {
            while let Some((at, source)) = self.nodes[node].next
                && at <= net.now()
            {
                self.send(source, net);
                self.advance(node);
            }
            if let Some((at, _)) = self.nodes[node].next {
                earliest = earliest.min(at);
            }
        }
        if earliest < self.stop {
            net.wake_at(earliest);
        }
    }

    fn remark(&self) -> Option<String> {
        let nominal = Rate::bit((self.nominal + 0.5) as u64);
        Some(match self.nodes.len() {
            1 => format!("nominal load {nominal}"),
            nodes => format!("nominal load {nominal} from each of {nodes} nodes"),
        })
    }
}

impl OnOff {
    fn send(&mut self, source: usize, net: &mut Net<'_>) {
        let pair = self.bursts[source].pair;
        let (from, to) = self.pairs[pair];
        let flow = if self.merge { pair } else { source };
        let stream = *self.streams.entry(flow).or_insert_with(|| net.stream(from, to));
        net.datagram(stream, self.cycle.packet);
    }

    /// Finds the packet of a node that leaves next: the one that is due first.
    fn advance(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        node.next = node.due.pop().map(|Reverse((due, source))| {
            let at = if self.merge { due.max(node.free) } else { due };
            node.free = at + self.cycle.slot;
            let next = self.bursts[source].after(due, &self.cycle);
            if next < self.stop {
                node.due.push(Reverse((next, source)));
            }
            (at, source)
        });
    }
}

impl Burst {
    /// A source at a random point of a random cycle, and the time at which its first packet is due.
    fn begin(pair: usize, cycle: &Cycle, start: Time, mut rng: Rng) -> (Burst, Time) {
        let packets = cycle.on.draw(&mut rng);
        let busy = cycle.slot * packets;
        let whole = busy + cycle.off.draw(&mut rng);
        let offset = Span::from_ps(rng.below(whole.as_ps().max(1)));
        let passed = offset.as_ps() / cycle.slot.as_ps();
        if passed < packets {
            let into = Span::from_ps(offset.as_ps() % cycle.slot.as_ps());
            let first = start + cycle.slot.saturating_sub(into);
            if passed + 1 < packets {
                return (Burst { pair, left: packets - passed - 1, rng }, first);
            }
        }
        let left = cycle.on.draw(&mut rng);
        (Burst { pair, left, rng }, start + whole.saturating_sub(offset))
    }

    /// The time of the packet after the one that is due at `due`.
    fn after(&mut self, due: Time, cycle: &Cycle) -> Time {
        self.left -= 1;
        if self.left > 0 {
            return due + cycle.slot;
        }
        self.left = cycle.on.draw(&mut self.rng);
        due + cycle.slot + cycle.off.draw(&mut self.rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Streams;

    /// The mean of rounded Pareto bursts is not a / (a - 1): for a shape of 1.7 and one packet at least it is
    /// 2.37.
    #[test]
    fn the_mean_burst_is_exact() {
        let mut rng = Streams::new(3).rng();
        for on in [
            On::Pareto { min: 1.0, shape: 3.5 },
            On::Pareto { min: 7.3, shape: 3.5 },
            On::exponential(1.0),
            On::exponential(1.4),
            On::exponential(50.0),
        ] {
            let n = 1_000_000;
            let drawn = (0..n).map(|_| on.draw(&mut rng) as f64).sum::<f64>() / f64::from(n);
            assert!((drawn / on.mean() - 1.0).abs() < 0.005, "drawn {drawn}, computed {}", on.mean());
        }
        // Tails too heavy to be sampled: the sum by another method, with the integral of the tail from far
        // out.
        for shape in [1.2, 1.7] {
            let far = 2_000_000;
            let sum: f64 = 1.0 + (1..far).map(|k| libm::pow(f64::from(k) + 0.5, -shape)).sum::<f64>();
            let tail = libm::pow(f64::from(far), 1.0 - shape) / (shape - 1.0);
            let lost = shape / (shape - 1.0) * libm::pow(FINEST, 1.0 - 1.0 / shape);
            let mean = On::Pareto { min: 1.0, shape }.mean();
            assert!((mean / (sum + tail - lost) - 1.0).abs() < 1e-6, "{mean}, {}", sum + tail - lost);
        }
        assert!((On::Pareto { min: 1.0, shape: 1.7 }.mean() - 2.37).abs() < 0.01);
    }

    /// The minimum pause follows from the load: minOFF = minON (N/load - 1) [a/(a-1)] / [b/(b-1)], a for
    /// bursts.
    #[test]
    fn the_load_sets_the_pause() {
        let text = serde_json::json!({
            "rate": "12500kbit", "packet": "500b", "sources": 32, "load": "3400kbit",
            "shape_on": 1.4, "shape_off": 1.2, "merge": true,
        });
        let config: Config = serde_json::from_value(text).unwrap();
        let cycle = config.cycle().unwrap();
        assert!((cycle.load() * 32.0 - 3.4e6).abs() < 1.0, "{}", cycle.load() * 32.0);
        let Off::Pareto { min, shape } = cycle.off else { panic!("pauses are Pareto") };
        let on = cycle.on.mean() * cycle.slot.as_s();
        let expected =
            on * (32.0 * 12.5 / 3.4 - 1.0) / (shape / (shape - 1.0)) / (1.0 - libm::pow(FINEST, 1.0 / 6.0));
        assert!((min / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn invalid_parameters_are_refused() {
        let refusal = |value: serde_json::Value| {
            let config: Config = serde_json::from_value(value).unwrap();
            config.cycle().err().unwrap().to_string()
        };
        assert_eq!(
            refusal(serde_json::json!({ "rate": "1mbit" })),
            "load: the mean pause is missing: write load = \"1mbit\" or off = \"500ms\""
        );
        assert_eq!(
            refusal(serde_json::json!({ "rate": "1mbit", "load": "3mbit", "sources": 2 })),
            "load: 3mbit is more than 2 sources at 1mbit can send"
        );
        assert_eq!(
            refusal(serde_json::json!({ "rate": "1mbit", "off": "1s", "shape_on": 1.0 })),
            "shape_on: 1 has no mean: write a number above 1, for example 1.5"
        );
        assert_eq!(
            refusal(serde_json::json!({ "rate": "1mbit", "off": "1s", "law": "exponential" })),
            "on: exponential bursts need a mean length: write for example on = \"500ms\""
        );
    }
}
