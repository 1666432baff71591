//! Packets of a matrix of loads and a mix of sizes, which Bernoulli and on-off traffic draw.

use std::sync::Arc;

use giveway_qdisc::{Invalid, Rng};

use super::TrafficContext;
use crate::draws::Alias;
use crate::packet::{PacketKind, Sizes};
use crate::rates::{Pattern, Rates};

/// The loads and sizes of the packets of all inputs.
pub(super) struct Mixed {
    /// Kinds of packets with their shares, which sum to 1.
    parts: Vec<(PacketKind, f64)>,
    /// Mean size of a packet, in cells.
    pub mean: f64,
    /// Loads of pairs of ports.
    pub rates: Rates,
    /// Distribution of the packets of all inputs that load every output equally.
    uniform: Arc<Packets>,
}

impl Mixed {
    /// Checks and combines the parameters. `overload` permits outputs with more than 1 cell per slot.
    pub fn new(
        context: &TrafficContext,
        load: f64,
        pattern: &Pattern,
        sizes: &Sizes,
        overload: bool,
    ) -> Result<Mixed, Invalid> {
        let parts = sizes.parts()?;
        let rates = Rates::new(pattern, context.ports, load)?;
        rates.check(overload)?;
        let mean = parts.iter().map(|(kind, share)| f64::from(kind.cells) * share).sum();
        let uniform = Arc::new(Packets::new(&parts, &vec![1.0; context.ports]));
        Ok(Mixed { parts, mean, rates, uniform })
    }

    /// The kinds of packets, by number.
    pub fn kinds(&self) -> Vec<PacketKind> {
        self.parts.iter().map(|(kind, _)| *kind).collect()
    }

    /// Distribution of the packets of an input.
    pub fn packets(&self, input: usize) -> Arc<Packets> {
        let row = self.rates.row(input);
        match row.iter().all(|rate| *rate == row[0]) {
            true => Arc::clone(&self.uniform),
            false => Arc::new(Packets::new(&self.parts, row)),
        }
    }

    /// Source of random numbers of an input.
    pub fn rng(context: &TrafficContext, input: usize) -> Rng {
        context.streams.within("input").within(&input.to_string()).rng()
    }
}

/// Distribution of kind and output of a packet.
#[derive(Debug)]
pub(super) struct Packets {
    /// Size of each kind, in cells.
    pub cells: Vec<u32>,
    /// Kind.
    sizes: Alias<u16>,
    /// Output.
    to: Alias<u16>,
    /// Kind and output in one draw, where the table is small.
    pub both: Option<Alias<(u16, u16)>>,
}

/// The largest table of [`Packets::both`].
const BOTH: usize = 512;

impl Packets {
    /// A distribution by the shares of the kinds and of the outputs.
    fn new(parts: &[(PacketKind, f64)], outputs: &[f64]) -> Packets {
        let sizes: Vec<(u16, f64)> = (0..).zip(parts.iter().map(|(_, share)| *share)).collect();
        let to: Vec<(u16, f64)> = (0..).zip(outputs.iter().copied()).collect();
        let both = (parts.len() * outputs.len() <= BOTH).then(|| {
            let of = |(kind, share): &(u16, f64)| -> Vec<((u16, u16), f64)> {
                to.iter().map(|(output, weight)| ((*kind, *output), share * weight)).collect()
            };
            Alias::new(&sizes.iter().flat_map(of).collect::<Vec<_>>())
        });
        let cells = parts.iter().map(|(kind, _)| kind.cells).collect();
        Packets { cells, sizes: Alias::new(&sizes), to: Alias::new(&to), both }
    }

    /// Draws the number of a kind, and an output.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> (u16, u16) {
        match &self.both {
            Some(both) => both.pick(rng.word()),
            None => (self.sizes.pick(rng.word()), self.to.pick(rng.word())),
        }
    }
}
