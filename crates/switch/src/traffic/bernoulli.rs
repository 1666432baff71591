//! Independent arrivals: in each slot, a packet arrives at an input or none does.
//!
//! In every slot a packet arrives at an input with probability load / (mean size), with all of its cells at
//! once. With packets of one cell this is the traffic of the cell-switching literature. With larger packets
//! it is burstier than a link can be; a link delivers one cell per slot, as in [`onoff`](super::onoff).

use std::sync::Arc;

use giveway_qdisc::{Invalid, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mixed::{Mixed, Packets};
use super::{Arrival, Silence, Source, Traffic, TrafficContext, TrafficSources};
use crate::draws::Geometric;
use crate::packet::Sizes;
use crate::rates::Pattern;

/// Independent arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Load of each input, in cells per slot. With a matrix, its factor.
    pub load: f64,
    /// Distribution of the load over the outputs.
    #[serde(default)]
    pub pattern: Pattern,
    /// Sizes of packets.
    #[serde(default = "cells")]
    pub sizes: Sizes,
    /// Permit loads above the rate of an output link.
    #[serde(default)]
    pub overload: bool,
}

fn cells() -> Sizes {
    Sizes::Fixed(1)
}

impl Traffic for Config {
    const SUMMARY: &'static str = "each slot a packet or none, independently; cells unless sizes are given";

    fn build(&self, context: &TrafficContext) -> Result<TrafficSources, Invalid> {
        let mixed = Mixed::new(context, self.load, &self.pattern, &self.sizes, self.overload)?;
        let source = |input: usize| -> Box<dyn Source> {
            let load = mixed.rates.input(input);
            if load <= 0.0 {
                return Box::new(Silence);
            }
            let probability = (load / mixed.mean).min(1.0);
            let rng = Mixed::rng(context, input);
            Box::new(Bernoulli {
                packets: mixed.packets(input),
                gap: Arc::new(Geometric::new(probability)),
                rng,
                slot: 0,
            })
        };
        let sources = (0..context.ports).map(source).collect();
        Ok(TrafficSources { kinds: mixed.kinds(), serial: false, sources, rates: Some(mixed.rates) })
    }
}

struct Bernoulli {
    packets: Arc<Packets>,
    gap: Arc<Geometric>,
    rng: Rng,
    /// The first slot in which the next packet can arrive.
    slot: u64,
}

impl Source for Bernoulli {
    fn next(&mut self) -> Option<Arrival> {
        let first = self.slot + self.gap.draw(&mut self.rng);
        self.slot = first + 1;
        let (kind, to) = self.packets.draw(&mut self.rng);
        Some(Arrival { first, to, kind })
    }
}
