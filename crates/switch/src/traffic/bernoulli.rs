//! Each slot a packet or none, independently of all others.
//!
//! In every slot a packet arrives at an input with probability load / (mean size), all of its cells at once. With packets
//! of one cell this is the traffic of the cell-switching literature. With larger ones it is burstier than any link is: a
//! link brings one cell a slot, as [`onoff`](super::onoff) has it.

use std::sync::Arc;

use qdisc::{Invalid, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrival, Mixed, Offered, Packets, Place, Silence, Source, Traffic};
use crate::draws::Geometric;
use crate::packet::Sizes;
use crate::rates::Pattern;

/// Independent arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Cells that each input is offered per slot; of a matrix, what multiplies it.
    pub load: f64,
    /// How that spreads over the outputs.
    #[serde(default)]
    pub pattern: Pattern,
    /// How large packets are.
    #[serde(default = "cells")]
    pub sizes: Sizes,
    /// Outputs may be asked to take more than their links do.
    #[serde(default)]
    pub overload: bool,
}

fn cells() -> Sizes {
    Sizes::Fixed(1)
}

impl Traffic for Config {
    const SUMMARY: &'static str = "each slot a packet or none, independently; cells unless sizes are given";

    fn build(&self, place: &Place) -> Result<Offered, Invalid> {
        let mixed = Mixed::new(place, self.load, &self.pattern, &self.sizes, self.overload)?;
        let source = |input: usize| -> Box<dyn Source> {
            let load = mixed.rates.input(input);
            if load <= 0.0 {
                return Box::new(Silence);
            }
            let odds = (load / mixed.mean).min(1.0);
            let rng = Mixed::rng(place, input);
            Box::new(Bernoulli {
                packets: mixed.packets(input),
                gap: Arc::new(Geometric::new(odds)),
                rng,
                slot: 0,
            })
        };
        let sources = (0..place.ports).map(source).collect();
        Ok(Offered { kinds: mixed.kinds(), serial: false, sources, rates: Some(mixed.rates) })
    }
}

struct Bernoulli {
    packets: Arc<Packets>,
    gap: Arc<Geometric>,
    rng: Rng,
    /// The first slot in which something can arrive again.
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
