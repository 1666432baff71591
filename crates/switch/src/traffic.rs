//! Traffic at the inputs of a switch: one file for each kind, and one line in the registry below.
//!
//! Every input has its own source with its own random stream. Arrivals do not depend on the switch, so all
//! arbiters get the same packets.

use std::path::PathBuf;

use giveway_qdisc::{Invalid, Streams};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::packet::Kind;
use crate::rates::Rates;

/// The arrival of a packet at an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Slot of its first cell.
    pub first: u64,
    /// Its output.
    pub to: u16,
    /// Its kind, as an index of [`Offered::kinds`].
    pub kind: u16,
}

/// The packets that arrive at one input.
pub trait Source: Send {
    /// The next packet; `None` when there are no more. `first` grows by at least one from packet to packet,
    /// and by at least the size of the packet where cells arrive one after the other ([`Offered::serial`]).
    fn next(&mut self) -> Option<Arrival>;

    /// Appends the next packets to `into` up to its capacity, or fewer when there are no more.
    fn fill(&mut self, into: &mut Vec<Arrival>) {
        while into.len() < into.capacity() {
            match self.next() {
                Some(arrival) => into.push(arrival),
                None => return,
            }
        }
    }
}

/// The switch for which traffic is built.
#[derive(Clone, Debug)]
pub struct TrafficContext {
    /// Number of inputs, and of outputs.
    pub ports: usize,
    /// Source of random numbers.
    pub streams: Streams,
    /// Folder to which file names are relative.
    pub folder: PathBuf,
}

/// Traffic for all inputs.
pub struct Offered {
    /// Kinds of packets, by number.
    pub kinds: Vec<Kind>,
    /// `true` if the cells of a packet arrive one after the other, one per slot; `false` if all arrive at
    /// once.
    pub serial: bool,
    /// A source for each input.
    pub sources: Vec<Box<dyn Source>>,
    /// Mean loads, where they are known.
    pub rates: Option<Rates>,
}

/// The configuration of a kind of traffic, from which the traffic is built. Every file has one, named
/// `Config`.
pub trait Traffic: Clone + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// Description in one line, for `giveway list`.
    const SUMMARY: &'static str;

    /// Builds the sources for a switch.
    ///
    /// # Errors
    /// The parameter that cannot be used there, and what to write instead.
    fn build(&self, context: &TrafficContext) -> Result<Offered, Invalid>;
}

/// A kind of traffic in the registry.
#[derive(Clone, Copy)]
pub struct TrafficEntry {
    /// Name in scenarios.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Text of its source file, whose header is its documentation.
    pub source: &'static str,
    /// JSON Schema of its `Config`.
    pub schema: fn() -> Schema,
    /// Reads its parameters.
    pub from_json: fn(serde_json::Value) -> Result<TrafficSpec, serde_json::Error>,
}

mod mixed;

macro_rules! sources {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// A kind of traffic with its parameters.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Debug, PartialEq)]
        pub enum TrafficSpec {
            $($name($name::Config)),*
        }

        /// All kinds of traffic, in the order in which they are listed.
        pub const SOURCES: &[TrafficEntry] = &[$(TrafficEntry {
            name: stringify!($name),
            summary: <$name::Config as Traffic>::SUMMARY,
            source: include_str!(concat!("traffic/", stringify!($name), ".rs")),
            schema: || schemars::schema_for!($name::Config),
            from_json: |value| serde_json::from_value(value).map(TrafficSpec::$name),
        }),*];

        impl TrafficSpec {
            /// The name in the registry.
            pub fn name(&self) -> &'static str {
                match self {
                    $(TrafficSpec::$name(_) => stringify!($name)),*
                }
            }
            /// Builds the sources for a switch.
            ///
            /// # Errors
            /// The parameter that cannot be used there.
            pub fn build(&self, context: &TrafficContext) -> Result<Offered, Invalid> {
                match self {
                    $(TrafficSpec::$name(config) => config.build(context)),*
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

/// The source of an input without traffic.
struct Silence;

impl Source for Silence {
    fn next(&mut self) -> Option<Arrival> {
        None
    }
}
