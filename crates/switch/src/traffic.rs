//! Traffic at the inputs of a switch: one file for each kind, and one line in the registry below.
//!
//! Every input uses its own source with its own random stream. Arrivals do not depend on the switch, so all
//! arbiters get the same packets.

use std::path::PathBuf;

use giveway_qdisc::{Invalid, Streams};
use giveway_spec::Entry;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::packet::PacketKind;
use crate::rates::Rates;

/// The arrival of a packet at an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Slot of its first cell.
    pub first: u64,
    /// Its output.
    pub to: u16,
    /// Its kind, as an index of [`TrafficSources::kinds`].
    pub kind: u16,
}

/// The packets that arrive at one input.
pub trait Source: Send {
    /// The next packet; `None` when there are no more. `first` grows by at least one from packet to packet,
    /// and by at least the size of the packet where cells arrive one after the other
    /// ([`TrafficSources::serial`]).
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
pub struct TrafficSources {
    /// Kinds of packets, by number.
    pub kinds: Vec<PacketKind>,
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
    fn build(&self, context: &TrafficContext) -> Result<TrafficSources, Invalid>;
}

mod mixed;

macro_rules! sources {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        giveway_spec::named_enum! {
            /// A kind of traffic with its parameters.
            pub enum TrafficSpec {
                $($name($name::Config)),*
            }
        }

        /// All kinds of traffic, in the order in which they are listed.
        pub static SOURCES: &[Entry<TrafficSpec>] = &[$(Entry::of::<$name::Config>(
            stringify!($name),
            <$name::Config as Traffic>::SUMMARY,
            giveway_spec::header!(include_str!(concat!("traffic/", stringify!($name), ".rs"))),
        )),*];

        impl TrafficSpec {
            /// Builds the sources for a switch.
            ///
            /// # Errors
            /// The parameter that cannot be used there.
            pub fn build(&self, context: &TrafficContext) -> Result<TrafficSources, Invalid> {
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
