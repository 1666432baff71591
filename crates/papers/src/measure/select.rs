//! Selections of flows and samples of a record. Several measures share them.

use std::collections::BTreeMap;

use giveway_measure::{QueueRow, Record};
use giveway_qdisc::{Backlog, Ending, FlowKind, FlowReport, Rate, Span, Time};
use serde::Deserialize;

/// The treatment of transfers that did not complete, in a mean of completion times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unfinished {
    /// Unfinished transfers are left out, as in papers.
    #[default]
    LeftOut,
    /// Unfinished transfers count with their age: the time from their start to the end of the run.
    AtTheirAge,
}

/// The size of a transfer that did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Size {
    /// The bytes that the application wanted to send.
    Asked,
    /// The bytes that arrived.
    Delivered,
}

/// Data in a full segment, bytes.
const SEGMENT: u64 = 1460;

/// Transfers that started within the measurement interval.
pub(crate) fn transfers(record: &Record) -> impl Iterator<Item = &FlowReport> {
    let transfers = record.flows.iter().filter(|flow| flow.kind == FlowKind::Transfer);
    transfers.filter(|flow| record.layout.measures(flow.start))
}

/// True if the flow belongs to `source`. Without a source, every flow does.
pub(super) fn is_of(record: &Record, source: Option<&str>, flow: &FlowReport) -> bool {
    source.is_none_or(|source| names(source, &record.layout.source_name(flow.source)))
}

/// True if the pattern `source` matches the traffic with the name `traffic`. A star at its end matches any
/// rest.
pub(crate) fn names(source: &str, traffic: &str) -> bool {
    match source.strip_suffix('*') {
        Some(beginning) => traffic.starts_with(beginning),
        None => traffic == source,
    }
}

/// The long-lived flows of a source, or of all: endless transfers and streams of datagrams. They are in the
/// order of the scenario: by source, then by the nodes at their ends.
pub(crate) fn lasting<'a>(record: &'a Record, source: Option<&str>) -> Vec<&'a FlowReport> {
    let last = |flow: &&FlowReport| matches!(flow.kind, FlowKind::Endless | FlowKind::Datagrams);
    let flows = record.flows.iter().filter(last).filter(|flow| is_of(record, source, flow));
    let mut flows: Vec<&FlowReport> = flows.collect();
    flows.sort_by_key(|flow| (flow.source, flow.from, flow.to, flow.id));
    flows
}

/// The throughput of a flow at its receiver within the measurement interval, bit/s, with the bytes of
/// [`ip_bytes`].
pub(super) fn throughput(flow: &FlowReport, record: &Record) -> f64 {
    ip_bytes(flow, flow.goodput_bytes) * 8.0 / record.layout.measured_time().as_s()
}

/// The bytes of a flow as papers count them, for `data` bytes of its data. Papers count datagrams as whole IP
/// packets, as shares of the rate of a link, and transfers by their data. All datagrams of a stream are
/// assumed to have the mean length of those that arrived.
pub(super) fn ip_bytes(flow: &FlowReport, data: u64) -> f64 {
    let arrived = flow.lost.map_or(0, |lost| flow.packets - lost);
    let header = f64::from(giveway_sim::segment::UDP_HEADER) * arrived as f64;
    let share = if flow.delivered > 0 { header / flow.delivered as f64 } else { 0.0 };
    data as f64 * (1.0 + share)
}

/// The flows of a source. Groups are left out, because their transfers are reported as well.
pub(super) fn of_source<'a>(record: &'a Record, source: &'a str) -> impl Iterator<Item = &'a FlowReport> {
    let flows = record.flows.iter().filter(|flow| flow.kind != FlowKind::Group);
    flows.filter(move |flow| is_of(record, Some(source), flow))
}

/// The number of packets of a source, or of all, that the measured ports dropped within the measurement
/// interval.
pub(super) fn dropped(record: &Record, source: Option<&str>) -> Option<f64> {
    let metrics = &record.summary.metrics;
    let Some(source) = source else { return metrics.value("drops") };
    let mut all: Vec<&String> = record.layout.source_names.iter().collect();
    all.sort_unstable();
    all.dedup();
    let mine = all.into_iter().filter(|traffic| names(source, traffic));
    mine.map(|traffic| metrics.value(&format!("src.{traffic}.drops")))
        .try_fold(0.0, |sum, drops| Some(sum + drops?))
}

/// The largest one-way delay of the datagrams of a source, seconds; `None` if none arrived.
pub(super) fn largest_delay(record: &Record, source: &str) -> Option<f64> {
    let delays = of_source(record, source).map(|flow| flow.delay_max).filter(|delay| !delay.is_zero());
    delays.max().map(Span::as_s)
}

/// The backlog of the bottleneck within the measurement interval, packets: its samples, or their means over
/// windows.
pub(super) fn queue(record: &Record, window: Option<Span>) -> Vec<f64> {
    let samples = held(record).filter(|(time, _)| record.layout.measures(*time));
    let samples = samples.map(|(time, held)| (time, held.packets as f64));
    match window {
        None => samples.map(|(_, held)| held).collect(),
        Some(window) => means(samples, record.layout.from, window).map(|(_, held)| held).collect(),
    }
}

/// The samples of the bottleneck's backlog.
pub(crate) fn held(record: &Record) -> impl Iterator<Item = (Time, Backlog)> + '_ {
    at_bottleneck(record).filter_map(|row| Some((row.time, row.backlog?)))
}

/// The samples of the bottleneck, of the whole run.
fn at_bottleneck(record: &Record) -> impl Iterator<Item = &QueueRow> {
    let port = record.layout.bottleneck();
    record.queue.iter().filter(move |row| Some(row.port) == port)
}

/// Means over consecutive windows from `from` on, each with the time of its end. A window without samples is
/// left out.
pub(crate) fn means(
    samples: impl Iterator<Item = (Time, f64)>,
    from: Time,
    window: Span,
) -> impl Iterator<Item = (Time, f64)> {
    let mut windows: BTreeMap<u64, (f64, u64)> = BTreeMap::new();
    for (time, value) in samples {
        let entry = windows.entry(time.since(from).as_ps() / window.as_ps().max(1)).or_default();
        *entry = (entry.0 + value, entry.1 + 1);
    }
    windows.into_iter().map(move |(at, (sum, count))| (from + window * (at + 1), sum / count as f64))
}

/// The throughputs of the long-lived flows of a source, or of all, in the order of the scenario, bit/s.
pub(crate) fn throughputs(record: &Record, source: Option<&str>) -> Vec<f64> {
    lasting(record, source).into_iter().map(|flow| throughput(flow, record)).collect()
}

/// A rate in bit/s.
pub(crate) fn bits_per_s(rate: Rate) -> f64 {
    rate.bytes_per_s() * 8.0
}

/// The samples of a gauge at the bottleneck, of the whole run.
pub(crate) fn gauge<'a>(record: &'a Record, name: &'a str) -> impl Iterator<Item = (Time, f64)> + 'a {
    at_bottleneck(record).filter_map(move |row| match row.gauge {
        Some((known, value)) if known == name => Some((row.time, value)),
        _ => None,
    })
}

/// The transfers that did not complete: those that were aborted, and those that were unfinished at the end of
/// the run.
pub(crate) fn incomplete(record: &Record) -> impl Iterator<Item = &FlowReport> {
    transfers(record).filter(|flow| flow.ending != Ending::Completed)
}

/// The completion time of a transfer, or its age at the end of the run, seconds; `None` if it does not count.
pub(crate) fn time(flow: &FlowReport, record: &Record, unfinished: Unfinished) -> Option<f64> {
    let counts = flow.ending == Ending::Completed || unfinished == Unfinished::AtTheirAge;
    counts.then(|| record.layout.age(flow).as_s())
}

/// The largest transfers that started in the first half of the measurement interval; of equal ones the
/// earliest. Sizes and start times are the same under every discipline, so the selection is, too.
pub(crate) fn largest_transfers(record: &Record, count: usize) -> Vec<&FlowReport> {
    let (from, until) = (record.layout.from, record.layout.until);
    let half: Time = from + until.since(from).scale(1, 2);
    let mut flows: Vec<&FlowReport> = transfers(record).filter(|flow| flow.start < half).collect();
    flows.sort_by_key(|flow| (std::cmp::Reverse(flow.bytes), flow.start, flow.id));
    flows.truncate(count);
    flows
}

/// The number of segments for a number of bytes. The last segment may be short.
pub(crate) fn segments(bytes: u64) -> u64 {
    bytes.div_ceil(SEGMENT)
}

impl Size {
    /// The size of a transfer, segments.
    pub fn of(self, flow: &FlowReport) -> u64 {
        match self {
            Size::Asked => segments(flow.bytes),
            Size::Delivered => segments(flow.delivered),
        }
    }
}

/// True if a number is in a range with both ends; without `to` the range has no upper end.
pub(super) fn within(number: u64, from: u64, to: Option<u64>) -> bool {
    from <= number && to.is_none_or(|to| number <= to)
}

/// The mean completion time of the transfers of a source, or of all, with sizes in this range of segments;
/// seconds.
pub(super) fn response(
    record: &Record,
    source: Option<&str>,
    (from, to): (u64, Option<u64>),
    unfinished: Unfinished,
) -> Option<f64> {
    let of_source = transfers(record).filter(|flow| is_of(record, source, flow));
    let of_size = of_source.filter(|flow| within(segments(flow.bytes), from, to));
    mean(of_size.filter_map(|flow| time(flow, record, unfinished)))
}

/// The arithmetic mean; `None` without values.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// The share of flows for which `is` returns true; `None` without flows.
pub(super) fn share<'a>(
    flows: impl Iterator<Item = &'a FlowReport>,
    is: impl Fn(&FlowReport) -> bool,
) -> Option<f64> {
    mean(flows.map(|flow| f64::from(u8::from(is(flow)))))
}

/// The streams of datagrams of a source, or of all, in the order of [`lasting`].
pub(crate) fn datagrams<'a>(record: &'a Record, source: Option<&str>) -> Vec<&'a FlowReport> {
    let streams = lasting(record, source).into_iter();
    streams.filter(|flow| flow.kind == FlowKind::Datagrams).collect()
}
