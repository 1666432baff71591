//! What one run leaves: rows for the tables on disk, and the summary.

use giveway_qdisc::{Backlog, FlowKey, FlowReport, PortId, Rate, Span, Time};

use crate::counts::Drops;
use crate::layout::Layout;
use crate::summary::Summary;

/// Everything that is kept of one run.
#[derive(Clone, Debug)]
pub struct Record {
    /// The metrics, and the fingerprint.
    pub summary: Summary,
    /// Every flow, in the order of the names of the sources, then of the flows' numbers.
    pub flows: Vec<FlowReport>,
    /// The samples of queues, in the order of time; empty unless [`Layout::keep_series`].
    pub queue: Vec<QueueRow>,
    /// Every recorded port, in the order of the ports' numbers.
    pub links: Vec<LinkRow>,
    /// How long packets waited at the measured ports, as distributions; empty unless [`Layout::keep_series`].
    pub delays: Vec<DelayRow>,
    /// Who got how much of the measured ports; empty unless [`Layout::keep_series`].
    pub shares: Vec<ShareRow>,
    /// The samples of senders, in the order of time; empty unless [`Layout::senders`].
    pub progress: Vec<ProgressRow>,
    /// How often flows became backlogged, by port and flow; empty unless [`Layout::episodes`].
    pub episodes: Vec<EpisodeRow>,
    /// What goes on from the measured ports, by port and link beyond; empty unless [`Layout::bursts`].
    pub bursts: Vec<BurstRow>,
    /// What things are called.
    pub layout: Layout,
}

/// One number of one sample of a port. A sample is one row with what is held, followed by one row for each gauge of
/// the discipline, so that averages over a column never count a sample twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueRow {
    /// When.
    pub time: Time,
    /// Where.
    pub port: PortId,
    /// What is held; `None` in the row of a gauge.
    pub held: Option<Backlog>,
    /// A gauge of the discipline and its value; `None` in the row of what is held.
    pub gauge: Option<(&'static str, f64)>,
}

/// A point of a distribution of sojourn times: `share` of the packets waited no longer than `delay_s`. Of packets that
/// were sent within the measurement interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayRow {
    /// Where.
    pub port: PortId,
    /// Of which packets.
    pub what: Packets,
    /// 0 to 1, ascending; closer to each other towards 1.
    pub share: f64,
    /// Sojourn time in seconds.
    pub delay_s: f64,
}

/// Which packets a distribution is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// Of at most [`Layout::small_packet_bytes`].
    Small,
    /// All of them.
    All,
}

impl Packets {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Packets::Small => "small",
            Packets::All => "all",
        }
    }
}

/// What one traffic source got of a port within one stretch of the measurement interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRow {
    /// When the stretch begins.
    pub time: Time,
    /// How long it is; the last one may be shorter than the others.
    pub span: Span,
    /// Where.
    pub port: PortId,
    /// Who: the place of the source in the scenario.
    pub source: u16,
    /// What was put on the link, bytes.
    pub bytes: u64,
}

/// How far a sender was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressRow {
    /// When.
    pub time: Time,
    /// The source of the flow: its place in the scenario.
    pub source: u16,
    /// The flow's number, as in [`FlowReport::id`].
    pub id: u64,
    /// Data bytes that were acknowledged, all in order.
    pub acked: u64,
    /// Congestion window, bytes.
    pub window: u64,
}

/// How often a flow became backlogged at a port, and what came of it there, in the whole run.
///
/// An episode begins when a packet of the flow comes to the port while nothing of the flow is queued there, whether it
/// is kept or refused; a packet on the wire is not queued. This is a fragment of the EFD paper, section 3, as far as the
/// port can see it from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeRow {
    /// Where.
    pub port: PortId,
    /// The flow, by the key of its packets. One direction of a connection.
    pub flow: FlowKey,
    /// Packets that came, those that were dropped included.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them that carry data: more than 64 bytes.
    pub data_packets: u64,
    /// How many episodes there were.
    pub episodes: u64,
}

/// How bursty the packets are that a port sent and that go on from its neighbour to one node: what the queue of that link
/// gets to see of this one. Of packets that were sent within the measurement interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstRow {
    /// Where.
    pub port: PortId,
    /// Where they go on to; `None`: they end at the neighbour.
    pub onward: Option<u16>,
    /// How many they are.
    pub packets: u64,
    /// Their runs: packets that the port sent one after the other, with none between them that goes elsewhere.
    pub runs: u64,
    /// The longest run, packets.
    pub run_longest: u64,
    /// Mean over the packets of the length of the run that each is in, packets.
    pub run_weighted: f64,
    /// Variance over mean of packets in windows of 1 ms, 10 ms, 100 ms and 1 s; `None` where fewer than two windows fit
    /// into the measurement interval.
    pub dispersions: [Option<f64>; 4],
    /// Peakedness for exponential holding times of 10 ms on average: 1 for Poisson streams.
    pub peakedness: Option<f64>,
}

/// What went over a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRow {
    /// Which port.
    pub port: PortId,
    /// The rate of the link, if the layout has it.
    pub rate: Option<Rate>,
    /// What came to the port in the whole run. Known for measured ports, and for those whose books the host told.
    pub arrived: Option<Backlog>,
    /// What was put on the link in the whole run; known as `arrived` is.
    pub sent: Option<Backlog>,
    /// What the queue lost in the whole run. Losses on the wire are not among these.
    pub dropped: Backlog,
    /// Packets marked in the whole run.
    pub marked: u64,
    /// Share of the measured time for which the link was busy, 0 to 1; only of measured ports whose rate is known.
    pub utilization: Option<f64>,
    /// Packets lost in the whole run for each reason, in the order of [`giveway_qdisc::DropReason::ALL`].
    pub drops: Drops,
    /// Packets lost within the measurement interval for each reason, in the same order; only of measured ports.
    pub drops_measured: Option<Drops>,
}
