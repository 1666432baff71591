//! The record of a run: rows for the tables on disk, and the summary.

use giveway_qdisc::{Backlog, FlowKey, FlowReport, PortId, Rate, Span, Time};

use crate::counts::Drops;
use crate::layout::Layout;
use crate::summary::Summary;

/// The recorded data of one run.
#[derive(Clone, Debug)]
pub struct Record {
    /// The metrics and the fingerprint.
    pub summary: Summary,
    /// Every flow, in the order of the names of the sources, then of the numbers of the flows.
    pub flows: Vec<FlowReport>,
    /// The samples of the measured ports, in the order of time; empty unless [`Layout::keep_series`].
    pub queue: Vec<QueueRow>,
    /// Every recorded port, in the order of the numbers.
    pub links: Vec<LinkRow>,
    /// Distributions of sojourn times at the measured ports; empty unless [`Layout::keep_series`].
    pub sojourn_times: Vec<SojournRow>,
    /// Bytes that the measured ports sent for each source over time; empty unless [`Layout::keep_series`].
    pub shares: Vec<ShareRow>,
    /// Delays of the packets of each source over time, port by port; empty unless [`Layout::keep_series`].
    pub delays: Vec<DelayRow>,
    /// The samples of senders, in the order of time; empty unless [`Layout::senders`].
    pub progress: Vec<ProgressRow>,
    /// Episodes by port and flow; empty unless [`Layout::episodes`].
    pub episodes: Vec<EpisodeRow>,
    /// Burstiness of departures, by port and next hop; empty unless [`Layout::bursts`].
    pub bursts: Vec<BurstRow>,
    /// The plan of the recording, with the names of ports, nodes and sources.
    pub layout: Layout,
}

/// One number of one sample of a port. A sample is one row with the backlog, and one row for each gauge of
/// the discipline, so that averages over a column count each sample once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueRow {
    /// The time of the sample.
    pub time: Time,
    /// The port.
    pub port: PortId,
    /// The backlog; `None` in the row of a gauge.
    pub backlog: Option<Backlog>,
    /// A gauge of the discipline and its value; `None` in the row of the backlog.
    pub gauge: Option<(&'static str, f64)>,
}

/// A point of a distribution of sojourn times: the share of the packets with a sojourn time of at most
/// `sojourn_s`, among the packets that were sent within the measurement interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SojournRow {
    /// The port.
    pub port: PortId,
    /// The packets of the distribution.
    pub what: Packets,
    /// The share, 0 to 1, in ascending order; points are denser towards 1.
    pub share: f64,
    /// Sojourn time in seconds.
    pub sojourn_s: f64,
}

/// The packets of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// Packets up to [`Layout::small_packet_bytes`].
    Small,
    /// The long packets of a switch, a class.
    Large,
    /// All packets.
    All,
}

impl Packets {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Packets::Small => "small",
            Packets::Large => "large",
            Packets::All => "all",
        }
    }

    /// The packets with this name in tables; all packets if there are none.
    pub fn named(name: &str) -> Packets {
        let some = [Packets::Small, Packets::Large].into_iter().find(|packets| packets.name() == name);
        some.unwrap_or(Packets::All)
    }
}

/// The bytes that a port sent for one traffic source in one stretch of the measurement interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRow {
    /// Start of the stretch.
    pub time: Time,
    /// Length of the stretch. The last one may be shorter.
    pub span: Span,
    /// The port.
    pub port: PortId,
    /// The number of the source in the scenario.
    pub source: u16,
    /// Bytes put on the link.
    pub bytes: u64,
}

/// Delays of the packets of one group of sources in one stretch of the measurement interval, at one port.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayRow {
    /// Start of the stretch.
    pub time: Time,
    /// Length of the stretch. The last one may be shorter.
    pub span: Span,
    /// Name of the port.
    pub port: String,
    /// Name of the sources.
    pub source: String,
    /// Sojourn times at the port of the packets whose transmission started in the stretch; `None`
    /// without any.
    pub sojourn: Option<DelaySummary>,
    /// One-way delays of the data packets that crossed the port and reached their receiver in the stretch;
    /// `None` without any, or if the backend does not know when packets were sent.
    pub one_way: Option<DelaySummary>,
    /// The mean rate that the link offered in the stretch; `None` if its rate does not vary.
    pub rate: Option<Rate>,
}

/// The number of packets, at least one, and the mean and the largest of their delays. A quantile would need a
/// histogram for each source and stretch; the largest delay is exact, also over several stretches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelaySummary {
    /// Number of packets.
    pub packets: u64,
    /// The mean delay, seconds.
    pub mean_s: f64,
    /// The largest delay, seconds.
    pub max_s: f64,
}

impl DelaySummary {
    /// The delays of both groups of packets together.
    pub fn and(self, other: DelaySummary) -> DelaySummary {
        let packets = self.packets + other.packets;
        let sum_s = self.mean_s * self.packets as f64 + other.mean_s * other.packets as f64;
        DelaySummary { packets, mean_s: sum_s / packets as f64, max_s: self.max_s.max(other.max_s) }
    }
}

/// The progress of a sender at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressRow {
    /// The time of the sample.
    pub time: Time,
    /// The number of the flow's source in the scenario.
    pub source: u16,
    /// The flow's number, as in [`FlowReport::id`].
    pub id: u64,
    /// Data bytes acknowledged in order.
    pub acked: u64,
    /// Congestion window, bytes.
    pub window: u64,
    /// Bytes in flight: sent and not acknowledged cumulatively.
    pub flight: u64,
    /// Smoothed round-trip time; zero before the first measurement.
    pub rtt: Span,
    /// Rate of the pacer; zero without one.
    pub pacing_rate: Rate,
    /// Latest sample of the delivery rate; zero if the sender takes none.
    pub delivery_rate: Rate,
}

/// The episodes of a flow at a port, and its packets there, in the whole run.
///
/// An episode starts when a packet of the flow arrives at the port while no packet of the flow is queued
/// there, even if the packet is dropped. A packet on the wire is not queued. The EFD paper, section 3, calls
/// an episode a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeRow {
    /// The port.
    pub port: PortId,
    /// The flow, by the key of its packets. One direction of a connection.
    pub flow: FlowKey,
    /// Packets that arrived, including dropped ones.
    pub packets: u64,
    /// Bytes of the packets that arrived.
    pub bytes: u64,
    /// Packets that arrived with data, which have more than 64 bytes.
    pub data_packets: u64,
    /// Number of episodes.
    pub episodes: u64,
}

/// Burstiness of the departures from a port to one next hop: the arrivals that the queue of the next link
/// gets from this port. Only packets that were sent within the measurement interval count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstRow {
    /// The port.
    pub port: PortId,
    /// The node behind the neighbour of the port; `None` for packets that end at the neighbour.
    pub next_hop: Option<u16>,
    /// Number of packets.
    pub packets: u64,
    /// Number of runs. A run is consecutive packets of the port to the same next hop.
    pub runs: u64,
    /// The longest run, packets.
    pub run_longest: u64,
    /// Length of a run as a packet sees it: the mean over the packets of the length of their run, packets.
    pub run_weighted: f64,
    /// Variance over mean of packets in windows of 1 ms, 10 ms, 100 ms and 1 s; `None` if fewer than two
    /// windows fit into the measurement interval.
    pub dispersions: [Option<f64>; 4],
    /// Peakedness for exponential holding times of 10 ms on average: 1 for Poisson streams.
    pub peakedness: Option<f64>,
}

/// The counters of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRow {
    /// The port in front of the link.
    pub port: PortId,
    /// The rate of the link, if the layout has it.
    pub rate: Option<Rate>,
    /// Arrivals at the port in the whole run. Known for measured ports, and for ports whose counters the
    /// backend reported.
    pub arrived: Option<Backlog>,
    /// Packets put on the link in the whole run; known if `arrived` is.
    pub sent: Option<Backlog>,
    /// Packets dropped by the queue in the whole run, without losses on the wire.
    pub dropped: Backlog,
    /// Packets marked in the whole run.
    pub marked: u64,
    /// Share of the measurement interval for which the link was busy, 0 to 1; only for measured ports with a
    /// known rate.
    pub utilization: Option<f64>,
    /// Packets lost in the whole run by reason, in the order of [`giveway_qdisc::DropReason::ALL`].
    pub drops: Drops,
    /// Packets lost within the measurement interval by reason, in the same order; only for measured ports.
    pub drops_measured: Option<Drops>,
}
