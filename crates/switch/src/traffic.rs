//! What arrives at the inputs, and when. One file each, and one line in the list below.
//!
//! Every input has a source of its own with its own random stream, so that what arrives does not depend on what the
//! switch does with it: all schedulers meet the same packets.

use qdisc::{Invalid, Rng, Streams};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::draws::Alias;
use crate::packet::{Class, Kind, Sampler, Sizes};
use crate::rates::{Pattern, Rates};

/// A packet that arrives at an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Slot in which its first cell is there.
    pub first: u64,
    /// Slot in which its last cell is there.
    pub last: u64,
    /// Its output.
    pub to: u16,
    /// Cells.
    pub cells: u32,
    /// Which of the kinds of [`Offered::kinds`].
    pub kind: u16,
    /// Its class.
    pub class: Class,
}

/// What arrives at one input.
pub trait Source: Send {
    /// The next packet; `first` never decreases. `None`: nothing ever again.
    fn next(&mut self) -> Option<Arrival>;
}

/// Where traffic is put.
#[derive(Clone, Debug)]
pub struct Place {
    /// How many inputs and outputs there are.
    pub ports: usize,
    /// Where its random numbers come from.
    pub streams: Streams,
}

/// Traffic for all inputs.
pub struct Offered {
    /// Kinds of packets, by number.
    pub kinds: Vec<Kind>,
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
}

/// What sources with a matrix of loads and a mix of sizes share.
struct Mixed {
    kinds: Vec<Kind>,
    sizes: Sampler,
    rates: Rates,
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
        let sizes = Sampler::new(&parts);
        Ok(Mixed { kinds: parts.into_iter().map(|(kind, _)| kind).collect(), sizes, rates })
    }

    /// The random numbers of an input.
    fn rng(place: &Place, input: usize) -> Rng {
        place.streams.within("input").within(&input.to_string()).rng()
    }
}

/// Draws packets: how large, and for whom.
#[derive(Clone, Debug)]
struct Packets {
    kinds: Vec<Kind>,
    sizes: Sampler,
    to: Destinations,
}

/// For whom the packets of an input are.
#[derive(Clone, Debug)]
enum Destinations {
    /// All outputs alike.
    Uniform(u64),
    By(Alias),
}

impl Packets {
    fn new(mixed: &Mixed, input: usize) -> Packets {
        let row = mixed.rates.row(input);
        let alike = row.iter().all(|rate| *rate == row[0]);
        let to =
            if alike { Destinations::Uniform(row.len() as u64) } else { Destinations::By(Alias::new(row)) };
        Packets { kinds: mixed.kinds.clone(), sizes: mixed.sizes.clone(), to }
    }

    /// An output.
    #[inline]
    fn destination(&self, rng: &mut Rng) -> u16 {
        match &self.to {
            Destinations::Uniform(ports) => rng.below(*ports) as u16,
            Destinations::By(table) => table.pick(rng.word()) as u16,
        }
    }

    /// A kind and its number.
    #[inline]
    fn kind(&self, rng: &mut Rng) -> (u16, Kind) {
        let kind = if self.kinds.len() == 1 { 0 } else { self.sizes.pick(rng.word()) };
        (kind as u16, self.kinds[kind])
    }
}

/// An input at which nothing arrives.
struct Silence;

impl Source for Silence {
    fn next(&mut self) -> Option<Arrival> {
        None
    }
}
