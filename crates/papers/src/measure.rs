//! One number of one run.

use qdisc::{Ending, FlowKind, FlowReport, Span, Time};
use record::Record;
use serde::Deserialize;

/// What is measured. Sizes are in full segments of 1,460 bytes, both ends included; without an end all larger ones count.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Measure {
    /// A metric of the run's summary, by its name.
    Metric { name: String },
    /// Mean response time of transfers of these sizes, seconds.
    Response {
        #[serde(default)]
        from: u64,
        #[serde(default)]
        to: Option<u64>,
        #[serde(default)]
        unfinished: Unfinished,
    },
    /// How much longer transfers just above a size take than those just below: the ratio of mean response times.
    Step { below: [u64; 2], above: [u64; 2] },
    /// Share of the transfers of these sizes that completed.
    Completed {
        #[serde(default)]
        from: u64,
        #[serde(default)]
        to: Option<u64>,
    },
    /// Of the transfers that did not complete, the share of these sizes.
    ShareOfIncomplete {
        #[serde(default)]
        from: u64,
        #[serde(default)]
        to: Option<u64>,
        size: Size,
    },
    /// Mean size of the transfers that did not complete, segments.
    MeanOfIncomplete { size: Size },
    /// The longest time without progress of the largest transfers, seconds.
    LongestPause { largest: usize },
    /// Sum of their pauses of more than half a second, seconds.
    Paused { largest: usize },
    /// Retransmission timeouts of the largest transfers.
    Timeouts { largest: usize },
    /// Data packets per time that a flow became backlogged, of flows with so many packets, SYN and the like not counted.
    PacketsPerFragment {
        #[serde(default)]
        from: u64,
        #[serde(default)]
        to: Option<u64>,
    },
    /// Of the flows that a table with this probability per packet catches, the share that has at most so many packets:
    /// expected, from the packets that each sent.
    ShortShareOfInserted { probability: f64, to: u64 },
    /// Bytes that a source of datagrams sent.
    OfferedBytes { source: String },
}

/// What becomes of transfers that did not complete in a mean of response times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unfinished {
    /// They are left out, as papers do.
    #[default]
    LeftOut,
    /// They count with the time from their start to the end of the run.
    AtTheirAge,
}

/// Which size of a transfer that did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Size {
    /// What the application wanted to send.
    Asked,
    /// What arrived.
    Delivered,
}

/// Data in a full segment, bytes.
const SEGMENT: u64 = 1460;

impl Measure {
    /// The number; `None` where there is nothing to measure.
    pub fn of(&self, record: &Record) -> Option<f64> {
        let value = match self {
            Measure::Metric { name } => record.summary.metrics.value(name),
            Measure::Response { from, to, unfinished } => response(record, *from, *to, *unfinished),
            Measure::Step { below, above } => {
                let mean = |[from, to]: [u64; 2]| response(record, from, Some(to), Unfinished::LeftOut);
                Some(mean(*above)? / mean(*below)?)
            }
            Measure::Completed { from, to } => {
                let of_size = || transfers(record).filter(|flow| within(segments(flow.bytes), *from, *to));
                share(of_size(), |flow| flow.ending == Ending::Completed)
            }
            Measure::ShareOfIncomplete { from, to, size } => {
                share(incomplete(record), |flow| within(size.of(flow), *from, *to))
            }
            Measure::MeanOfIncomplete { size } => mean(incomplete(record).map(|flow| size.of(flow) as f64)),
            Measure::LongestPause { largest } => {
                let pauses = largest_transfers(record, *largest).into_iter().map(|flow| flow.longest_pause);
                pauses.max().map(Span::as_s)
            }
            Measure::Paused { largest } => {
                let pauses = largest_transfers(record, *largest).into_iter().map(|flow| flow.paused.as_s());
                pauses.reduce(|a, b| a + b)
            }
            Measure::Timeouts { largest } => {
                let timeouts =
                    largest_transfers(record, *largest).into_iter().map(|flow| flow.timeouts as f64);
                timeouts.reduce(|a, b| a + b)
            }
            Measure::PacketsPerFragment { from, to } => {
                let flows = record.episodes.iter().filter(|row| within(row.data_packets, *from, *to));
                let (packets, fragments) = flows.fold((0, 0), |(packets, fragments), row| {
                    (packets + row.packets, fragments + row.episodes)
                });
                (fragments > 0).then(|| packets as f64 / fragments as f64)
            }
            Measure::ShortShareOfInserted { probability, to } => {
                let caught = |flow: &&FlowReport| 1.0 - libm::pow(1.0 - probability, flow.packets as f64);
                let short = |flow: &&FlowReport| flow.packets <= *to;
                let all: f64 = transfers(record).map(|flow| caught(&flow)).sum();
                let short: f64 = transfers(record).filter(short).map(|flow| caught(&flow)).sum();
                (all > 0.0).then(|| short / all)
            }
            Measure::OfferedBytes { source } => {
                let name = |flow: &&FlowReport| record.layout.source_name(flow.source) == *source;
                let streams =
                    record.flows.iter().filter(|flow| flow.kind == FlowKind::Datagrams).filter(name);
                streams.map(|flow| flow.bytes as f64).reduce(|a, b| a + b)
            }
        };
        value.filter(|number| number.is_finite())
    }

    /// Whether it needs the record of how often flows became backlogged.
    pub fn needs_episodes(&self) -> bool {
        matches!(self, Measure::PacketsPerFragment { .. })
    }

    /// What it is called beside a number.
    pub fn words(&self) -> String {
        let sizes = |from: &u64, to: &Option<u64>| match (*from, *to) {
            (0, None) => "all transfers".to_owned(),
            (0, Some(to)) => format!("transfers up to {to} segments"),
            (from, None) => format!("transfers from {from} segments"),
            (from, Some(to)) => format!("transfers of {from} to {to} segments"),
        };
        match self {
            Measure::Metric { name } => match name.as_str() {
                "flow_table_mean" => "flows tracked, mean".to_owned(),
                "flow_table_max" => "flows tracked, most".to_owned(),
                "flows_completed" => "transfers completed".to_owned(),
                "utilization" => "utilization".to_owned(),
                "src.cbr.loss" => "loss of the stream".to_owned(),
                "src.ftp.retransmitted" => "segments of the transfers sent again".to_owned(),
                "src.ftp.goodput_bps" => "goodput of the transfers".to_owned(),
                other => other.to_owned(),
            },
            Measure::Response { from, to, unfinished } => {
                let aged = match unfinished {
                    Unfinished::LeftOut => "",
                    Unfinished::AtTheirAge => ", unfinished ones at their age",
                };
                format!("mean response time of {}{aged}", sizes(from, to))
            }
            Measure::Step { below, above } => format!(
                "response time of {} to {} over {} to {} segments",
                above[0], above[1], below[0], below[1]
            ),
            Measure::Completed { from, to } => format!("share completed of {}", sizes(from, to)),
            Measure::ShareOfIncomplete { from, to, .. } => {
                format!("share of {} among the incomplete", sizes(from, to))
            }
            Measure::MeanOfIncomplete { .. } => "mean size of the incomplete, segments".to_owned(),
            Measure::LongestPause { largest } => format!("longest pause of the {largest} largest"),
            Measure::Paused { largest } => format!("pauses of the {largest} largest, in all"),
            Measure::Timeouts { largest } => format!("timeouts of the {largest} largest"),
            Measure::PacketsPerFragment { from, to } => {
                format!("packets per fragment of {}", sizes(from, to).replace("segments", "packets"))
            }
            Measure::ShortShareOfInserted { to, .. } => {
                format!("share of flows of up to {to} packets in the table")
            }
            Measure::OfferedBytes { source } => format!("bytes sent by {source}"),
        }
    }

    /// Its unit: what stands behind a number of it.
    pub fn unit(&self) -> Unit {
        match self {
            Measure::Metric { name } if name.ends_with("_bps") => Unit::Rate,
            Measure::Metric { name } if name.ends_with("_s") => Unit::Seconds,
            Measure::Metric { name } if name == "utilization" || name.ends_with("loss") => Unit::Share,
            Measure::Metric { name } if name.ends_with("retransmitted") => Unit::Share,
            Measure::Metric { .. } => Unit::Plain,
            Measure::Response { .. } | Measure::LongestPause { .. } | Measure::Paused { .. } => Unit::Seconds,
            Measure::Completed { .. } | Measure::ShareOfIncomplete { .. } => Unit::Share,
            Measure::ShortShareOfInserted { .. } => Unit::Share,
            Measure::OfferedBytes { .. } => Unit::Bytes,
            Measure::Step { .. }
            | Measure::MeanOfIncomplete { .. }
            | Measure::Timeouts { .. }
            | Measure::PacketsPerFragment { .. } => Unit::Plain,
        }
    }
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Plain,
    Seconds,
    Share,
    Bytes,
    Rate,
}

/// Transfers that began within the measured part.
pub(crate) fn transfers(record: &Record) -> impl Iterator<Item = &FlowReport> {
    let transfers = record.flows.iter().filter(|flow| flow.kind == FlowKind::Transfer);
    transfers.filter(|flow| record.layout.measures(flow.start))
}

/// Those that did not complete: neither given up nor unfinished ones were torn down properly.
pub(crate) fn incomplete(record: &Record) -> impl Iterator<Item = &FlowReport> {
    transfers(record).filter(|flow| flow.ending != Ending::Completed)
}

/// Response time in seconds, or the age at the end of the run.
pub(crate) fn time(flow: &FlowReport, record: &Record, unfinished: Unfinished) -> Option<f64> {
    let counts = flow.ending == Ending::Completed || unfinished == Unfinished::AtTheirAge;
    counts.then(|| record.layout.age(flow).as_s())
}

/// The largest transfers that were asked for in the first half of the measured part; of equals the earliest. Sizes and
/// times are the same under every discipline, so these are.
pub(crate) fn largest_transfers(record: &Record, count: usize) -> Vec<&FlowReport> {
    let (from, until) = (record.layout.from, record.layout.until);
    let half: Time = from + until.since(from).scale(1, 2);
    let mut flows: Vec<&FlowReport> = transfers(record).filter(|flow| flow.start < half).collect();
    flows.sort_by_key(|flow| (std::cmp::Reverse(flow.bytes), flow.start, flow.id));
    flows.truncate(count);
    flows
}

/// Full segments that so many bytes fill, the last one counted whole.
pub(crate) fn segments(bytes: u64) -> u64 {
    bytes.div_ceil(SEGMENT)
}

impl Size {
    pub fn of(self, flow: &FlowReport) -> u64 {
        match self {
            Size::Asked => segments(flow.bytes),
            Size::Delivered => segments(flow.delivered),
        }
    }
}

fn within(number: u64, from: u64, to: Option<u64>) -> bool {
    from <= number && to.is_none_or(|to| number <= to)
}

fn response(record: &Record, from: u64, to: Option<u64>, unfinished: Unfinished) -> Option<f64> {
    let of_size = transfers(record).filter(|flow| within(segments(flow.bytes), from, to));
    mean(of_size.filter_map(|flow| time(flow, record, unfinished)))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// The share of flows that `is` says yes to.
fn share<'a>(flows: impl Iterator<Item = &'a FlowReport>, is: impl Fn(&FlowReport) -> bool) -> Option<f64> {
    mean(flows.map(|flow| f64::from(u8::from(is(flow)))))
}
