//! What one run leaves: rows for the tables on disk, and the summary.

use qdisc::{Backlog, FlowReport, PortId, Rate, Span, Time};

use crate::layout::Layout;
use crate::meter::Drops;
use crate::metrics::Summary;

/// Everything that is kept of one run.
#[derive(Clone, Debug)]
pub struct Record {
    /// The metrics, and the fingerprint.
    pub summary: Summary,
    /// Every flow, in the order of the flows' numbers.
    pub flows: Vec<FlowReport>,
    /// The samples of queues, in the order of time; empty unless [`Layout::keep_series`].
    pub queue: Vec<QueueRow>,
    /// Every recorded port, in the order of the ports' numbers.
    pub links: Vec<LinkRow>,
    /// How long packets waited at the measured ports, as distributions; empty unless [`Layout::keep_series`].
    pub delays: Vec<DelayRow>,
    /// Who got how much of the measured ports; empty unless [`Layout::keep_series`].
    pub shares: Vec<ShareRow>,
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

/// A point of a distribution of waiting times: `share` of the packets waited no longer than `delay_s`. Of packets that
/// were sent within the measured part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayRow {
    /// Where.
    pub port: PortId,
    /// Of which packets.
    pub what: Packets,
    /// 0 to 1, ascending; closer to each other towards 1.
    pub share: f64,
    /// Waiting time in seconds.
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

/// What one traffic source got of a port within one stretch of the measured part.
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
    /// Packets lost in the whole run for each reason, in the order of [`qdisc::DropReason::ALL`].
    pub drops: Drops,
    /// The same within the measured part; only of measured ports.
    pub drops_measured: Option<Drops>,
}
