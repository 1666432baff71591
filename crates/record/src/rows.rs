//! What one run leaves: rows for the tables on disk, and the summary.

use qdisc::{Backlog, FlowReport, PortId, Rate, Time};

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
}
