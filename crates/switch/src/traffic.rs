//! What arrives at the inputs, and when. One file each, and one line in the list below.
//!
//! Every input has a source of its own with its own random stream, so that what arrives does not depend on what the
//! switch does with it: all arbiters meet the same packets.

use std::path::PathBuf;
use std::sync::Arc;

use qdisc::{Invalid, Rng, Streams};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::draws::Alias;
use crate::packet::{Kind, Sizes};
use crate::rates::{Pattern, Rates};

/// A packet that arrives at an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Slot in which its first cell is there.
    pub first: u64,
    /// Its output.
    pub to: u16,
    /// Which of the kinds of [`Offered::kinds`].
    pub kind: u16,
}

/// What arrives at one input.
pub trait Source: Send {
    /// The next packet. `first` grows by at least one from packet to packet, and where cells come one after the other
    /// ([`Offered::serial`]) by at least the size of the packet. `None`: nothing ever again.
    fn next(&mut self) -> Option<Arrival>;

    /// The next packets, as many as `into` has room for; fewer when there are no more. For who wants many, one call.
    fn fill(&mut self, into: &mut Vec<Arrival>) {
        while into.len() < into.capacity() {
            match self.next() {
                Some(arrival) => into.push(arrival),
                None => return,
            }
        }
    }
}

/// Where traffic is put.
#[derive(Clone, Debug)]
pub struct Place {
    /// How many inputs and outputs there are.
    pub ports: usize,
    /// Where its random numbers come from.
    pub streams: Streams,
    /// What names of files are relative to.
    pub folder: PathBuf,
}

/// Traffic for all inputs.
pub struct Offered {
    /// Kinds of packets, by number.
    pub kinds: Vec<Kind>,
    /// Whether the cells of a packet come one after the other, a slot each, rather than all at once.
    pub serial: bool,
    /// A source for each input.
    pub sources: Vec<Box<dyn Source>>,
    /// What is offered on average, where that is known.
    pub rates: Option<Rates>,
}

/// Traffic's configuration, which builds it. Every file has one, named `Config`.
pub trait Traffic: Clone + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// One line for `giveway list`.
    const SUMMARY: &'static str;
    /// Builds it for a switch.
    ///
    /// # Errors
    /// The parameter that makes no sense there, and what to write instead.
    fn build(&self, place: &Place) -> Result<Offered, Invalid>;
}

/// One kind of traffic of the list.
#[derive(Clone, Copy)]
pub struct TrafficEntry {
    /// How it is written.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Its source file, whose header explains it.
    pub source: &'static str,
    /// Its parameters: JSON Schema of its `Config`.
    pub schema: fn() -> Schema,
    /// It, from named parameters.
    pub from_json: fn(serde_json::Value) -> Result<TrafficSpec, serde_json::Error>,
}

macro_rules! sources {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// Which traffic, with its parameters.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Debug, PartialEq)]
        pub enum TrafficSpec {
            $($name($name::Config)),*
        }

        /// Every kind of traffic, in the order in which they are listed.
        pub const SOURCES: &[TrafficEntry] = &[$(TrafficEntry {
            name: stringify!($name),
            summary: <$name::Config as Traffic>::SUMMARY,
            source: include_str!(concat!("traffic/", stringify!($name), ".rs")),
            schema: || schemars::schema_for!($name::Config),
            from_json: |value| serde_json::from_value(value).map(TrafficSpec::$name),
        }),*];

        impl TrafficSpec {
            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(TrafficSpec::$name(_) => stringify!($name)),*
                }
            }
            /// Builds it for a switch.
            ///
            /// # Errors
            /// The parameter that makes no sense there.
            pub fn build(&self, place: &Place) -> Result<Offered, Invalid> {
                match self {
                    $(TrafficSpec::$name(config) => config.build(place)),*
                }
            }
        }
    };
}

sources! {
    bernoulli,
    onoff,
    list,
    trace,
}

/// What sources with a matrix of loads and a mix of sizes share.
struct Mixed {
    parts: Vec<(Kind, f64)>,
    /// Mean size, in cells.
    mean: f64,
    rates: Rates,
    /// What the inputs have that spread their load alike over all outputs.
    alike: Arc<Packets>,
}

impl Mixed {
    fn new(
        place: &Place,
        load: f64,
        pattern: &Pattern,
        sizes: &Sizes,
        overload: bool,
    ) -> Result<Mixed, Invalid> {
        let parts = sizes.parts()?;
        let rates = Rates::new(pattern, place.ports, load)?;
        rates.check(overload)?;
        let mean = parts.iter().map(|(kind, share)| f64::from(kind.cells) * share).sum();
        let alike = Arc::new(Packets::new(&parts, &vec![1.0; place.ports]));
        Ok(Mixed { parts, mean, rates, alike })
    }

    fn kinds(&self) -> Vec<Kind> {
        self.parts.iter().map(|(kind, _)| *kind).collect()
    }

    /// What the packets of an input are like.
    fn packets(&self, input: usize) -> Arc<Packets> {
        let row = self.rates.row(input);
        match row.iter().all(|rate| *rate == row[0]) {
            true => Arc::clone(&self.alike),
            false => Arc::new(Packets::new(&self.parts, row)),
        }
    }

    /// The random numbers of an input.
    fn rng(place: &Place, input: usize) -> Rng {
        place.streams.within("input").within(&input.to_string()).rng()
    }
}

/// Draws packets: how large, and for whom.
#[derive(Debug)]
struct Packets {
    /// Size of each kind, in cells.
    cells: Vec<u32>,
    sizes: Alias<u16>,
    to: Alias<u16>,
    /// Kind and output at once, where that is a small table.
    both: Option<Alias<(u16, u16)>>,
}

/// The largest table of [`Packets::both`].
const BOTH: usize = 512;

impl Packets {
    /// With the shares of the kinds, and the shares of the outputs.
    fn new(parts: &[(Kind, f64)], outputs: &[f64]) -> Packets {
        let sizes: Vec<(u16, f64)> = (0..).zip(parts.iter().map(|(_, share)| *share)).collect();
        let to: Vec<(u16, f64)> = (0..).zip(outputs.iter().copied()).collect();
        let both = (parts.len() * outputs.len() <= BOTH).then(|| {
            let of = |(kind, share): &(u16, f64)| -> Vec<((u16, u16), f64)> {
                to.iter().map(|(output, odds)| ((*kind, *output), share * odds)).collect()
            };
            Alias::new(&sizes.iter().flat_map(of).collect::<Vec<_>>())
        });
        let cells = parts.iter().map(|(kind, _)| kind.cells).collect();
        Packets { cells, sizes: Alias::new(&sizes), to: Alias::new(&to), both }
    }

    /// The number of a kind, and an output.
    #[inline]
    fn draw(&self, rng: &mut Rng) -> (u16, u16) {
        match &self.both {
            Some(both) => both.pick(rng.word()),
            None => (self.sizes.pick(rng.word()), self.to.pick(rng.word())),
        }
    }
}

/// An input at which nothing arrives.
struct Silence;

impl Source for Silence {
    fn next(&mut self) -> Option<Arrival> {
        None
    }
}
