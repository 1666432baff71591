//! Bursts and pauses; cells arrive one per slot, as on a link.
//!
//! An input is OFF for a number of slots, then ON for a number of packets, which arrive one after the other,
//! a cell per slot. With one packet per burst this is the model of the P-SPF paper (section 5): OFF is
//! geometric on 0, 1, 2, ... slots, so that the load can reach 1 (the paper does not say whether 0 is
//! possible; without it the load ends at 0.891), and every packet has its own destination. With more than
//! one, the packets of a burst have one destination, as in the literature on bursty traffic, unless
//! `scattered`.
//!
//! The lengths of both states have a geometric or a Pareto distribution: `{ pareto = 1.5 }`. The load is
//! exact: the mean pause is the mean burst times (1 - load)/load.

use std::sync::Arc;

use giveway_qdisc::{Invalid, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mixed::{Mixed, Packets};
use super::{Arrival, Silence, Source, Traffic, TrafficContext, TrafficSources};
use crate::draws::{Geometric, Lomax};
use crate::packet::Sizes;
use crate::rates::Pattern;

/// Bursts and pauses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Load of each input, in cells per slot. With a matrix, its factor.
    pub load: f64,
    /// Distribution of the load over the outputs.
    #[serde(default)]
    pub pattern: Pattern,
    /// Sizes of packets. Default: the mix of the P-SPF paper.
    #[serde(default)]
    pub sizes: Sizes,
    /// Mean length of a burst, in packets.
    #[serde(default = "one")]
    pub burst: f64,
    /// Distribution of the length of bursts.
    #[serde(default)]
    pub on: Law,
    /// Distribution of the length of pauses.
    #[serde(default)]
    pub off: Law,
    /// Every packet of a burst has its own destination.
    #[serde(default)]
    pub scattered: bool,
    /// Permit loads above the rate of an output link.
    #[serde(default)]
    pub overload: bool,
}

fn one() -> f64 {
    1.0
}

/// A distribution of lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Geometric, without memory.
    #[default]
    Geometric,
    /// Pareto with this exponent, above 1. Up to 2 the variance is infinite.
    Pareto(f64),
}

#[derive(Clone, Debug)]
enum Lengths {
    Always(u64),
    Geometric(Geometric),
    Pareto(Lomax),
}

impl Lengths {
    /// A distribution on 0, 1, 2, ... with this mean.
    fn new(parameter: &'static str, law: Law, mean: f64) -> Result<Lengths, Invalid> {
        match law {
            Law::Pareto(shape) if !(shape.is_finite() && shape > 1.0) => Err(Invalid::new(
                parameter,
                format!("an exponent of {shape} has no mean: write at least 1.05"),
            )),
            _ if mean <= 0.0 => Ok(Lengths::Always(0)),
            Law::Geometric => Ok(Lengths::Geometric(Geometric::new(1.0 / (1.0 + mean)))),
            Law::Pareto(shape) => Ok(Lengths::Pareto(Lomax::new(shape, mean))),
        }
    }

    #[inline]
    fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Lengths::Always(length) => *length,
            Lengths::Geometric(law) => law.draw(rng),
            Lengths::Pareto(law) => law.draw(rng),
        }
    }
}

impl Traffic for Config {
    const SUMMARY: &'static str =
        "bursts and pauses, geometric or Pareto; one packet per burst as in the P-SPF paper";

    fn build(&self, context: &TrafficContext) -> Result<TrafficSources, Invalid> {
        if !(self.burst.is_finite() && self.burst >= 1.0) {
            let message = format!("{}: a burst has at least 1 packet on average", self.burst);
            return Err(Invalid::new("burst", message));
        }
        let mixed = Mixed::new(context, self.load, &self.pattern, &self.sizes, self.overload)?;
        let on = Arc::new(Lengths::new("on", self.on, self.burst - 1.0)?);
        // Inputs with the same load share a table, which then stays in the cache.
        let mut off: Vec<(f64, Arc<Lengths>)> = Vec::new();
        let mut sources: Vec<Box<dyn Source>> = Vec::with_capacity(context.ports);
        for input in 0..context.ports {
            let load = mixed.rates.input(input);
            if load <= 0.0 {
                sources.push(Box::new(Silence));
                continue;
            }
            let pause = self.burst * mixed.mean * (1.0 - load) / load;
            let known = off.iter().find(|(mean, _)| *mean == pause).map(|(_, law)| Arc::clone(law));
            let law = match known {
                Some(law) => law,
                None => {
                    let law = Arc::new(Lengths::new("off", self.off, pause)?);
                    off.push((pause, Arc::clone(&law)));
                    law
                }
            };
            sources.push(Box::new(OnOff {
                packets: mixed.packets(input),
                on: Arc::clone(&on),
                off: law,
                scattered: self.scattered,
                rng: Mixed::rng(context, input),
                slot: 0,
                left: 0,
                to: 0,
            }));
        }
        Ok(TrafficSources { kinds: mixed.kinds(), serial: true, sources, rates: Some(mixed.rates) })
    }
}

struct OnOff {
    packets: Arc<Packets>,
    on: Arc<Lengths>,
    off: Arc<Lengths>,
    scattered: bool,
    rng: Rng,
    /// The first slot in which the link is free again.
    slot: u64,
    /// Packets of this burst that have not arrived.
    left: u64,
    /// Output of this burst.
    to: u16,
}

impl OnOff {
    #[inline]
    fn packet(&mut self) -> Arrival {
        let begins = self.left == 0;
        if begins {
            self.slot += self.off.draw(&mut self.rng);
            self.left = 1 + self.on.draw(&mut self.rng);
        }
        self.left -= 1;
        let (kind, to) = self.packets.draw(&mut self.rng);
        if begins || self.scattered {
            self.to = to;
        }
        let first = self.slot;
        self.slot += u64::from(self.packets.cells[usize::from(kind)]);
        Arrival { first, to: self.to, kind }
    }
}

impl Source for OnOff {
    fn next(&mut self) -> Option<Arrival> {
        Some(self.packet())
    }

    fn fill(&mut self, into: &mut Vec<Arrival>) {
        let room = into.capacity() - into.len();
        let (Lengths::Always(0), Lengths::Geometric(off), Some(both)) =
            (&*self.on, &*self.off, &self.packets.both)
        else {
            into.extend((0..room).map(|_| self.packet()));
            return;
        };
        // The same draws for the usual case of one packet per burst. It is twice as fast, and arrivals take a
        // third of the time of a slot.
        let (cells, mut slot, mut rng) = (&self.packets.cells, self.slot, self.rng.clone());
        into.extend((0..room).map(|_| {
            let first = slot + off.draw(&mut rng);
            let (kind, to) = both.pick(rng.word());
            slot = first + u64::from(cells[usize::from(kind)]);
            Arrival { first, to, kind }
        }));
        (self.slot, self.rng) = (slot, rng);
    }
}
