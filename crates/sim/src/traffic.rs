//! Who sends what, and when: applications over TCP and UDP. One file each, and one line in the list below.
//!
//! A source is woken at its start and whenever it asked to be; it hears what happens to its connections. It acts
//! through [`Net`], which knows the time.

mod rows;
mod series;

use std::path::PathBuf;

use qdisc::{Bytes, Ending, FlowKind, FlowReport, Invalid, Rate, Rng, Span, Streams, Time};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::net::{Event, Net};
use crate::segment::UDP_HEADER;
use crate::tcp::TcpConfig;

/// An application that runs.
pub trait Source {
    /// It is time: the first call comes at the start, later ones when it asked for them ([`Net::wake_at`]).
    fn wake(&mut self, net: &mut Net<'_>);
    /// Something happened to one of its connections.
    fn on(&mut self, _event: Event, _net: &mut Net<'_>) {}
    /// The run is over: report what is still open. Transfers and streams report themselves.
    fn finish(&mut self, _net: &mut Net<'_>) {}
    /// Between which nodes it flows, sender first, where a file says that: each pair once or more. `None` where the scenario
    /// says it.
    fn named(&self) -> Option<Vec<(u16, u16)>> {
        None
    }
    /// What the user should know about it beside its flows, in one sentence: what it offered, what it refused, why it
    /// stopped early.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// Where a source is put.
#[derive(Clone, Debug)]
pub struct Place {
    /// Pairs of nodes, sender first: one flow, or one process of flows, for each. A file that names nodes counts more.
    pub pairs: Vec<(u16, u16)>,
    /// When it begins.
    pub start: Time,
    /// When it begins nothing new any more.
    pub stop: Time,
    /// TCP as this source uses it.
    pub tcp: TcpConfig,
    /// Where its random numbers come from.
    pub streams: Streams,
    /// What relative file names are relative to.
    pub folder: PathBuf,
    /// Names of the nodes, for sources that read them from files.
    pub nodes: Vec<String>,
}

/// Who says between which nodes a source flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The scenario, with `from` and `to`.
    Scenario,
    /// A file that the source reads.
    File,
    /// The file if it names nodes, otherwise the scenario.
    Either,
}

/// A source's configuration, which builds it. Every file has one, named `Config`.
pub trait Traffic: Clone + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// One line for `giveway list`.
    const SUMMARY: &'static str;
    /// Who says between which nodes it flows. Where a file does, the built source says it, too: [`Source::named`].
    const PLACED: Placed = Placed::Scenario;
    /// Whether the receiver answers, as TCP does: then there must be a way back.
    const ANSWERED: bool = true;
    /// How many flows each pair of nodes has all the time; `None` when flows come and go, or the source cannot tell.
    fn lasting(&self) -> Option<u32> {
        None
    }
    /// The largest IP packet that it sends, where it is not that of TCP; `None` when it cannot tell.
    fn largest(&self) -> Option<Bytes> {
        None
    }
    /// Builds it for a place.
    ///
    /// # Errors
    /// The parameter that makes no sense there, and what to write instead.
    fn build(&self, place: &Place) -> Result<Box<dyn Source>, Invalid>;
}

/// One source of the list.
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
    /// [`Traffic::PLACED`].
    pub placed: Placed,
    /// [`Traffic::ANSWERED`].
    pub answered: bool,
    /// It, from named parameters.
    pub from_json: fn(serde_json::Value) -> Result<TrafficSpec, serde_json::Error>,
}

macro_rules! sources {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// Which source, with its parameters.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Debug, PartialEq)]
        pub enum TrafficSpec {
            $($name($name::Config)),*
        }

        /// Every source, in the order in which they are listed.
        pub const SOURCES: &[TrafficEntry] = &[$(TrafficEntry {
            name: stringify!($name),
            summary: <$name::Config as Traffic>::SUMMARY,
            source: include_str!(concat!("traffic/", stringify!($name), ".rs")),
            schema: || schemars::schema_for!($name::Config),
            placed: <$name::Config as Traffic>::PLACED,
            answered: <$name::Config as Traffic>::ANSWERED,
            from_json: |value| serde_json::from_value(value).map(TrafficSpec::$name),
        }),*];

        impl TrafficSpec {
            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(TrafficSpec::$name(_) => stringify!($name)),*
                }
            }
            /// [`Traffic::PLACED`].
            pub fn placed(&self) -> Placed {
                match self {
                    $(TrafficSpec::$name(_) => <$name::Config as Traffic>::PLACED),*
                }
            }
            /// [`Traffic::ANSWERED`].
            pub fn answered(&self) -> bool {
                match self {
                    $(TrafficSpec::$name(_) => <$name::Config as Traffic>::ANSWERED),*
                }
            }
            /// [`Traffic::lasting`].
            pub fn lasting(&self) -> Option<u32> {
                match self {
                    $(TrafficSpec::$name(config) => config.lasting()),*
                }
            }
            /// [`Traffic::largest`].
            pub fn largest(&self) -> Option<Bytes> {
                match self {
                    $(TrafficSpec::$name(config) => config.largest()),*
                }
            }
            /// Builds it for a place.
            ///
            /// # Errors
            /// The parameter that makes no sense there.
            pub fn build(&self, place: &Place) -> Result<Box<dyn Source>, Invalid> {
                match self {
                    $(TrafficSpec::$name(config) => config.build(place)),*
                }
            }
        }
    };
}

sources! {
    bulk,
    cbr,
    poisson,
    transfers,
    web,
    onoff,
    flow_list,
    datagram_list,
    audio,
    video,
    capture,
    applications,
}

/// A flow for a source to fill in that reports it itself: nothing of it was delivered yet.
pub fn flow(id: u64, (from, to): (u16, u16), start: Time, bytes: u64) -> FlowReport {
    FlowReport {
        id,
        source: 0, // filled in by `Net::report`
        kind: FlowKind::Transfer,
        from,
        to,
        start,
        end: start,
        bytes,
        delivered: 0,
        goodput_bytes: 0,
        packets: 0,
        retransmitted: 0,
        lost: None,
        timeouts: 0,
        delay_mean: Span::ZERO,
        delay_p99: Span::ZERO,
        delay_max: Span::ZERO,
        longest_pause: Span::ZERO,
        paused: Span::ZERO,
        ending: Ending::Unfinished,
    }
}

/// The most flows of one source, all pairs of nodes together. Each takes some hundred bytes from the start; with a TCP
/// connection each, some thousand.
pub const MOST_FLOWS: usize = 100_000;

/// Refuses so many of something for each pair of nodes that a source would have more than [`MOST_FLOWS`].
pub(crate) fn check_count(parameter: &'static str, each: u32, place: &Place) -> Result<(), Invalid> {
    let (pairs, most) = (place.pairs.len().max(1) as u64, MOST_FLOWS as u64);
    if u64::from(each) * pairs <= most {
        return Ok(());
    }
    let message = match pairs {
        1 => format!("{each} are too many: write {most} at most"),
        _ => {
            format!("{each} for each of {pairs} pairs of nodes are too many: write {} at most", most / pairs)
        }
    };
    Err(Invalid::new(parameter, message))
}

/// Refuses what is no IP packet with a UDP datagram in it.
pub(crate) fn check_packet(parameter: &'static str, packet: Bytes) -> Result<u32, Invalid> {
    if (u64::from(UDP_HEADER)..=65_535).contains(&packet.0) {
        return Ok(packet.0 as u32);
    }
    let message = format!("{packet} is not an IP packet: it has 28 bytes of headers, and at most 65,535");
    Err(Invalid::new(parameter, message))
}

/// Refuses a rate at which nothing would ever be sent.
pub(crate) fn check_rate(parameter: &'static str, rate: Rate, example: &str) -> Result<(), Invalid> {
    if rate.as_bit() > 0 {
        return Ok(());
    }
    Err(Invalid::new(parameter, format!("a rate of 0 sends nothing: write for example \"{example}\"")))
}

/// A moment within `spread` after `start`, so that sources do not all begin in the same picosecond.
pub(crate) fn spread(start: Time, over: Span, rng: &mut Rng) -> Time {
    if over.is_zero() { start } else { start + Span::from_ps(rng.below(over.as_ps())) }
}
