//! The tables of one trial, from its record.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, StringArray};
use arrow_schema::ArrowError;
use giveway_measure::{DelaySummary, Record};
use giveway_qdisc::{DropReason, Ending, FlowKind, FlowReport};

use super::arrays::{maybe_whole, real, text, whole};
use super::tables;

/// The flows: one row per flow.
pub(crate) fn flows(record: &Record) -> Result<RecordBatch, ArrowError> {
    let flows = &record.flows;
    let has_size = |flow: &FlowReport| matches!(flow.kind, FlowKind::Transfer | FlowKind::Group);
    let completed = |flow: &&FlowReport| has_size(flow) && flow.ending == Ending::Completed;
    let fct = |flow: &FlowReport| Some(flow).filter(completed).map(|flow| flow.end.since(flow.start).as_s());
    let in_interval = |flow: &FlowReport| record.layout.measures(flow.start);
    let delay =
        |flow: &FlowReport, delay: giveway_qdisc::Span| (!flow.delay_mean.is_zero()).then_some(delay.as_s());
    // Only streams of datagrams have a 99th percentile and a maximum.
    let of_datagrams = |flow: &FlowReport, span: giveway_qdisc::Span| {
        delay(flow, span).filter(|_| flow.kind == FlowKind::Datagrams)
    };
    let pause = |flow: &FlowReport, pause: giveway_qdisc::Span| {
        (!flow.longest_pause.is_zero()).then_some(pause.as_s())
    };
    tables::FLOWS.batch(vec![
        text(flows, |flow| record.layout.source_name(flow.source)),
        whole(flows, |flow| flow.id),
        text(flows, |flow| flow.kind.name()),
        text(flows, |flow| record.layout.node_name(flow.from)),
        text(flows, |flow| record.layout.node_name(flow.to)),
        real(flows, |flow| Some(flow.start.as_s())),
        Arc::new(BooleanArray::from_iter(flows.iter().map(|flow| Some(in_interval(flow))))),
        real(flows, |flow| Some(flow.end.as_s())),
        real(flows, fct),
        text(flows, |flow| flow.ending.name()),
        whole(flows, |flow| flow.bytes),
        whole(flows, |flow| flow.delivered),
        whole(flows, |flow| flow.goodput_bytes),
        whole(flows, |flow| flow.packets),
        whole(flows, |flow| flow.retransmitted),
        whole(flows, |flow| flow.causes.after_timeout),
        whole(flows, |flow| flow.causes.probes),
        whole(flows, |flow| flow.causes.needless),
        maybe_whole(flows, |flow| flow.lost),
        whole(flows, |flow| flow.timeouts),
        real(flows, |flow| delay(flow, flow.delay_mean)),
        real(flows, |flow| of_datagrams(flow, flow.delay_p99)),
        real(flows, |flow| of_datagrams(flow, flow.delay_max)),
        real(flows, |flow| pause(flow, flow.longest_pause)),
        real(flows, |flow| pause(flow, flow.paused)),
    ])
}

/// The backlogs: one row per sample.
pub(crate) fn queue(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<_> = record.queue.iter().filter_map(|row| Some((row, row.backlog?))).collect();
    tables::QUEUE.batch(vec![
        real(&rows, |(row, _)| Some(row.time.as_s())),
        text(&rows, |(row, _)| record.layout.port_name(row.port)),
        whole(&rows, |(_, backlog)| backlog.packets),
        whole(&rows, |(_, backlog)| backlog.bytes),
    ])
}

/// The gauges: one row per gauge and sample.
pub(crate) fn gauges(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<_> = record.queue.iter().filter_map(|row| Some((row, row.gauge?))).collect();
    tables::GAUGES.batch(vec![
        real(&rows, |(row, _)| Some(row.time.as_s())),
        text(&rows, |(row, _)| record.layout.port_name(row.port)),
        text(&rows, |(_, (name, _))| *name),
        real(&rows, |(_, (_, value))| Some(*value)),
    ])
}

/// The links: one row per port, with two columns for each drop reason.
pub(crate) fn links(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.links;
    let mut columns = vec![
        text(rows, |row| record.layout.port_name(row.port)),
        maybe_whole(rows, |row| row.rate.map(|rate| rate.as_bit())),
        real(rows, |row| row.utilization),
        maybe_whole(rows, |row| row.arrived.map(|all| all.packets)),
        maybe_whole(rows, |row| row.arrived.map(|all| all.bytes)),
        maybe_whole(rows, |row| row.sent.map(|all| all.packets)),
        maybe_whole(rows, |row| row.sent.map(|all| all.bytes)),
        whole(rows, |row| row.dropped.packets),
        whole(rows, |row| row.dropped.bytes),
        whole(rows, |row| row.marked),
    ];
    columns.extend(DropReason::ALL.map(|why| whole(rows, |row| row.drops[why as usize])));
    columns.extend(
        DropReason::ALL
            .map(|why| maybe_whole(rows, |row| row.drops_measured.map(|drops| drops[why as usize]))),
    );
    tables::LINKS.batch(columns)
}

/// The columns of drops within the measurement interval, by reason.
pub(crate) fn drops_in_interval() -> [&'static str; DropReason::ALL.len()] {
    let columns = tables::LINKS.columns;
    DropReason::ALL.map(|why| columns[columns.len() - DropReason::ALL.len() + why as usize].name)
}

/// Distributions of sojourn times: one row per port, kind of packets and share.
pub(crate) fn sojourn(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.sojourn_times;
    tables::SOJOURN.batch(vec![
        text(rows, |row| record.layout.port_name(row.port)),
        text(rows, |row| row.what.name()),
        real(rows, |row| Some(row.share)),
        real(rows, |row| Some(row.sojourn_s)),
    ])
}

/// Bytes sent: one row per port, stretch of time and source.
pub(crate) fn shares(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.shares;
    tables::SHARES.batch(vec![
        real(rows, |row| Some(row.time.as_s())),
        real(rows, |row| Some(row.span.as_s())),
        text(rows, |row| record.layout.port_name(row.port)),
        text(rows, |row| record.layout.source_name(row.source)),
        whole(rows, |row| row.bytes),
    ])
}

/// Delays over time: one row per port, stretch of time and group of sources.
pub(crate) fn delays(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.delays;
    let packets = |delayed: Option<DelaySummary>| delayed.map_or(0, |delayed| delayed.packets);
    tables::DELAYS.batch(vec![
        real(rows, |row| Some(row.time.as_s())),
        real(rows, |row| Some(row.span.as_s())),
        text(rows, |row| &*row.port),
        text(rows, |row| &*row.source),
        whole(rows, |row| packets(row.sojourn)),
        real(rows, |row| row.sojourn.map(|delayed| delayed.mean_s)),
        real(rows, |row| row.sojourn.map(|delayed| delayed.max_s)),
        whole(rows, |row| packets(row.one_way)),
        real(rows, |row| row.one_way.map(|delayed| delayed.mean_s)),
        real(rows, |row| row.one_way.map(|delayed| delayed.max_s)),
        maybe_whole(rows, |row| row.rate.map(|rate| rate.as_bit())),
    ])
}

/// Samples of senders: one row per sample and flow.
pub(crate) fn senders(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.progress;
    tables::SENDERS.batch(vec![
        real(rows, |row| Some(row.time.as_s())),
        text(rows, |row| record.layout.source_name(row.source)),
        whole(rows, |row| row.id),
        whole(rows, |row| row.acked),
        whole(rows, |row| row.window),
        whole(rows, |row| row.flight),
        real(rows, |row| (!row.rtt.is_zero()).then(|| row.rtt.as_s())),
        maybe_whole(rows, |row| (row.pacing_rate.as_bit() > 0).then(|| row.pacing_rate.as_bit())),
        maybe_whole(rows, |row| (row.delivery_rate.as_bit() > 0).then(|| row.delivery_rate.as_bit())),
    ])
}

/// Episodes of backlogged flows: one row per port and flow.
pub(crate) fn episodes(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.episodes;
    tables::EPISODES.batch(vec![
        text(rows, |row| record.layout.port_name(row.port)),
        text(rows, |row| format!("{:016x}", row.flow.0)),
        whole(rows, |row| row.packets),
        whole(rows, |row| row.bytes),
        whole(rows, |row| row.data_packets),
        whole(rows, |row| row.episodes),
    ])
}

/// Burstiness of departures: one row per port and next hop.
pub(crate) fn bursts(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.bursts;
    let next_hops = rows.iter().map(|row| row.next_hop.map(|node| record.layout.node_name(node)));
    let mut columns = vec![
        text(rows, |row| record.layout.port_name(row.port)),
        Arc::new(StringArray::from_iter(next_hops)),
        whole(rows, |row| row.packets),
        whole(rows, |row| row.runs),
        whole(rows, |row| row.run_longest),
        real(rows, |row| Some(row.run_weighted)),
    ];
    columns.extend((0..4).map(|window| real(rows, |row| row.dispersions[window])));
    columns.push(real(rows, |row| row.peakedness));
    tables::BURSTS.batch(columns)
}
