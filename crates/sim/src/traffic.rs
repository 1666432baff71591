//! Sources of traffic: applications over TCP and UDP. Each is a file, and a line in the list below.
//!
//! A source is woken at its start and at the times that it sets; it receives the events of its connections.
//! It acts through [`Net`], which has the time.

mod rows;
mod series;

use std::path::PathBuf;

use giveway_qdisc::{Bytes, Causes, Ending, FlowKind, FlowReport, Invalid, Rate, Rng, Span, Streams, Time};
use giveway_spec::Entry;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::net::{Event, Net, Protocol};
use crate::quic::QuicConfig;
use crate::segment::UDP_HEADER;
use crate::tcp::TcpConfig;

/// A running application.
pub trait Source {
    /// Wakes the source: first at its start, then at the times that it sets ([`Net::wake_at`]).
    fn wake(&mut self, net: &mut Net<'_>);
    /// Receives an event of one of its connections.
    fn on(&mut self, _event: Event, _net: &mut Net<'_>) {}
    /// Ends the run: the source reports its flows that are still open. Transfers and streams report
    /// themselves.
    fn finish(&mut self, _net: &mut Net<'_>) {}
    /// The pairs of nodes between which the source sends, sender first, if a file names them; a pair may
    /// occur more than once. `None` if the scenario names them.
    fn named(&self) -> Option<Vec<(u16, u16)>> {
        None
    }
    /// A remark for the user, in addition to the flows, in one sentence: the load offered, transfers refused,
    /// the reason of an early stop.
    fn remark(&self) -> Option<String> {
        None
    }
    /// The mean size of its transfers and their rate, in one sentence, if they follow from an empirical
    /// distribution.
    fn offered(&self) -> Option<String> {
        None
    }
}

/// The context that a source is built for.
#[derive(Clone, Debug)]
pub struct SourceContext {
    /// Pairs of nodes, sender first: one flow, or one process of flows, for each. A file that names nodes has
    /// priority.
    pub pairs: Vec<(u16, u16)>,
    /// Hosts among which a source draws its pairs; empty unless it is [`NodeOrigin::Among`].
    pub hosts: Vec<u16>,
    /// Sum of the rates of the links that leave these hosts.
    pub access: Rate,
    /// Start of the source.
    pub start: Time,
    /// Time from which the source starts no new flow.
    pub stop: Time,
    /// Parameters of the TCP connections of the source.
    pub tcp: TcpConfig,
    /// Parameters of its QUIC connections.
    pub quic: QuicConfig,
    /// Random streams of the source.
    pub streams: Streams,
    /// Folder that relative file names are relative to.
    pub folder: PathBuf,
    /// Names of the nodes by number, for sources that read them from files.
    pub nodes: Vec<String>,
}

/// The origin of the nodes of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOrigin {
    /// The scenario names them with `from` and `to`.
    Scenario,
    /// A file that the source reads names them.
    File,
    /// The file if it has columns for nodes, otherwise the scenario.
    Either,
    /// The scenario names a set of hosts with `hosts`, and the source draws its pairs among them.
    Among,
}

/// The configuration of a source, which builds it. Every file of a source has one, named `Config`.
pub trait Traffic: Clone + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// Summary in one line, for `giveway list`.
    const SUMMARY: &'static str;
    /// The origin of its nodes. If a file names them, the built source returns them: [`Source::named`].
    const PLACED: NodeOrigin = NodeOrigin::Scenario;
    /// True if the receiver sends packets, as TCP does, so that a route in the reverse direction must exist.
    const ANSWERED: bool = true;
    /// Number of flows that each pair of nodes has during the whole run; `None` if flows come and go, or if
    /// it is not known.
    fn lasting(&self) -> Option<u32> {
        None
    }
    /// The largest IP packet that it sends; `None` if that is the one of TCP, or if it is not known.
    fn largest(&self) -> Option<Bytes> {
        None
    }
    /// The protocol of its connections.
    fn protocol(&self) -> Protocol {
        Protocol::Tcp
    }
    /// Builds the source for its context.
    ///
    /// # Errors
    /// The parameter that is invalid in this context, and a value to write instead.
    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid>;
}

/// An entry of the list of sources.
#[derive(Clone, Copy)]
pub struct TrafficEntry {
    /// Name, summary and parameters.
    pub entry: Entry<TrafficSpec>,
    /// The origin of its nodes: [`Traffic::PLACED`].
    pub placed: NodeOrigin,
    /// True if the receiver sends packets: [`Traffic::ANSWERED`].
    pub answered: bool,
}

macro_rules! sources {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        giveway_spec::named_enum! {
            /// A source by name, with its parameters.
            pub enum TrafficSpec {
                $($name($name::Config)),*
            }
        }

        /// Every source, in the order of `giveway list`.
        pub static SOURCES: &[TrafficEntry] = &[$(TrafficEntry {
            entry: Entry::of::<$name::Config>(
                stringify!($name),
                <$name::Config as Traffic>::SUMMARY,
                giveway_spec::header!(include_str!(concat!("traffic/", stringify!($name), ".rs"))),
            ),
            placed: <$name::Config as Traffic>::PLACED,
            answered: <$name::Config as Traffic>::ANSWERED,
        }),*];

        impl TrafficSpec {
            /// The origin of its nodes: [`Traffic::PLACED`].
            pub fn placed(&self) -> NodeOrigin {
                match self {
                    $(TrafficSpec::$name(_) => <$name::Config as Traffic>::PLACED),*
                }
            }
            /// True if the receiver sends packets: [`Traffic::ANSWERED`].
            pub fn answered(&self) -> bool {
                match self {
                    $(TrafficSpec::$name(_) => <$name::Config as Traffic>::ANSWERED),*
                }
            }
            /// Number of flows that last the whole run: [`Traffic::lasting`].
            pub fn lasting(&self) -> Option<u32> {
                match self {
                    $(TrafficSpec::$name(config) => config.lasting()),*
                }
            }
            /// The largest IP packet: [`Traffic::largest`].
            pub fn largest(&self) -> Option<Bytes> {
                match self {
                    $(TrafficSpec::$name(config) => config.largest()),*
                }
            }
            /// The protocol of its connections: [`Traffic::protocol`].
            pub fn protocol(&self) -> Protocol {
                match self {
                    $(TrafficSpec::$name(config) => config.protocol()),*
                }
            }
            /// Builds the source for its context.
            ///
            /// # Errors
            /// The parameter that is invalid in this context.
            pub fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
                match self {
                    $(TrafficSpec::$name(config) => config.build(context)),*
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
    quic,
    web,
    onoff,
    flow_list,
    datagram_list,
    audio,
    video,
    capture,
    applications,
    permutation,
    incast,
    all_to_all,
}

/// A report to fill in, for a source that reports its flows itself. Nothing is delivered yet.
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
        causes: Causes::default(),
        lost: None,
        timeouts: 0,
        delay_mean: Span::ZERO,
        delay_p50: Span::ZERO,
        delay_p95: Span::ZERO,
        delay_p99: Span::ZERO,
        delay_max: Span::ZERO,
        longest_pause: Span::ZERO,
        paused: Span::ZERO,
        ending: Ending::Unfinished,
    }
}

/// Largest number of flows of one source, all pairs of nodes together. Each takes some hundred bytes from the
/// start, and some thousand with what it records.
pub const MAX_FLOWS: usize = 100_000;

/// Largest number of connections of one source that keeps nothing for each but its start. A connection takes
/// about a kilobyte.
pub const MAX_CONNECTIONS: usize = 1_000_000;

/// Rejects a number of flows per pair of nodes with which a source would have more than `most`, for example
/// [`MAX_FLOWS`].
pub(crate) fn check_count(
    parameter: &'static str,
    each: u32,
    most: usize,
    context: &SourceContext,
) -> Result<(), Invalid> {
    let (pairs, most) = (context.pairs.len().max(1) as u64, most as u64);
    if u64::from(each) * pairs <= most {
        return Ok(());
    }
    let message = match pairs {
        1 => format!("{each} are too many: write at most {most}"),
        _ => {
            format!("{each} for each of {pairs} pairs of nodes are too many: write at most {}", most / pairs)
        }
    };
    Err(Invalid::new(parameter, message))
}

/// Rejects a set of hosts in which no host can send to another.
pub(crate) fn check_hosts(context: &SourceContext) -> Result<(), Invalid> {
    if context.hosts.len() >= 2 {
        return Ok(());
    }
    let message = "traffic among hosts needs two of them: write for example \"h[1-16]\"";
    Err(Invalid::new("hosts", message))
}

/// Rejects a length that an IP packet with a UDP datagram cannot have.
pub(crate) fn check_packet(parameter: &'static str, packet: Bytes) -> Result<u32, Invalid> {
    if (u64::from(UDP_HEADER)..=65_535).contains(&packet.0) {
        return Ok(packet.0 as u32);
    }
    let message =
        format!("{packet} is not the length of an IP packet with a UDP datagram: write 28 to 65,535 bytes");
    Err(Invalid::new(parameter, message))
}

/// Rejects a rate of zero.
pub(crate) fn check_rate(parameter: &'static str, rate: Rate, example: &str) -> Result<(), Invalid> {
    if rate.as_bit() > 0 {
        return Ok(());
    }
    Err(Invalid::new(parameter, format!("a rate of 0 sends nothing: write for example \"{example}\"")))
}

/// A random time within `over` after `start`, so that sources do not all start in the same picosecond.
pub(crate) fn spread(start: Time, over: Span, rng: &mut Rng) -> Time {
    if over.is_zero() { start } else { start + Span::from_ps(rng.below(over.as_ps())) }
}
