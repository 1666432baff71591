//! Rows become Parquet. Times are in seconds, sizes in bytes; what is missing is null.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use qdisc::{DropReason, Ending, FlowKind, FlowReport};

use crate::folder::{Cell, Digest, Hashing};
use crate::metrics::{Summary, unnamed};
use crate::rows::Record;

/// Rows of a row group: what a reader holds in memory at a time.
const GROUP_ROWS: usize = 1 << 17;

/// The columns of a table: name, values, whether a value may be missing.
type Columns = Vec<(&'static str, ArrayRef, bool)>;

/// One row per flow. `response_s` only of completed transfers and groups.
pub(crate) fn flows(record: &Record) -> Result<RecordBatch, ArrowError> {
    let flows = &record.flows;
    let whole_thing = |flow: &FlowReport| matches!(flow.kind, FlowKind::Transfer | FlowKind::Group);
    let completed = |flow: &&FlowReport| whole_thing(flow) && flow.ending == Ending::Completed;
    let response =
        |flow: &FlowReport| Some(flow).filter(completed).map(|flow| flow.end.since(flow.start).as_s());
    // Whether its response time is one of the summary.
    let measured = |flow: &FlowReport| record.layout.measures(flow.start);
    let delay = |flow: &FlowReport, delay: qdisc::Span| (!flow.delay_mean.is_zero()).then_some(delay.as_s());
    let pause =
        |flow: &FlowReport, pause: qdisc::Span| (!flow.longest_pause.is_zero()).then_some(pause.as_s());
    batch(vec![
        ("id", whole(flows, |flow| flow.id), false),
        ("source", text(flows, |flow| record.layout.source_name(flow.source)), false),
        ("kind", text(flows, |flow| flow.kind.name().to_owned()), false),
        ("from", text(flows, |flow| record.layout.node_name(flow.from)), false),
        ("to", text(flows, |flow| record.layout.node_name(flow.to)), false),
        ("start_s", real(flows, |flow| Some(flow.start.as_s())), false),
        ("measured", Arc::new(BooleanArray::from_iter(flows.iter().map(|flow| Some(measured(flow))))), false),
        ("end_s", real(flows, |flow| Some(flow.end.as_s())), false),
        ("response_s", real(flows, response), true),
        ("ending", text(flows, |flow| flow.ending.name().to_owned()), false),
        ("bytes", whole(flows, |flow| flow.bytes), false),
        ("delivered", whole(flows, |flow| flow.delivered), false),
        ("delivered_measured", whole(flows, |flow| flow.delivered_measured), false),
        ("packets", whole(flows, |flow| flow.packets), false),
        ("retransmitted", whole(flows, |flow| flow.retransmitted), false),
        ("lost", whole(flows, |flow| flow.lost), false),
        ("timeouts", whole(flows, |flow| flow.timeouts), false),
        ("delay_mean_s", real(flows, |flow| delay(flow, flow.delay_mean)), true),
        ("delay_p99_s", real(flows, |flow| delay(flow, flow.delay_p99)), true),
        ("delay_max_s", real(flows, |flow| delay(flow, flow.delay_max)), true),
        ("longest_pause_s", real(flows, |flow| pause(flow, flow.longest_pause)), true),
        ("paused_s", real(flows, |flow| pause(flow, flow.paused)), true),
    ])
}

/// One row per sample with `packets` and `bytes`, then one per gauge with `gauge` and `value`.
pub(crate) fn queue(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.queue;
    let gauges = rows.iter().map(|row| row.gauge.map(|(name, _)| name));
    batch(vec![
        ("time_s", real(rows, |row| Some(row.time.as_s())), false),
        ("port", text(rows, |row| record.layout.port_name(row.port)), false),
        ("packets", maybe_whole(rows, |row| row.held.map(|held| held.packets)), true),
        ("bytes", maybe_whole(rows, |row| row.held.map(|held| held.bytes)), true),
        ("gauge", Arc::new(StringArray::from_iter(gauges)), true),
        ("value", real(rows, |row| row.gauge.map(|(_, value)| value)), true),
    ])
}

/// One row per port; a column for each reason to drop.
pub(crate) fn links(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.links;
    let mut columns: Columns = vec![
        ("port", text(rows, |row| record.layout.port_name(row.port)), false),
        ("rate_bps", maybe_whole(rows, |row| row.rate.map(|rate| rate.as_bit())), true),
        ("utilization", real(rows, |row| row.utilization), true),
        ("arrived_packets", maybe_whole(rows, |row| row.arrived.map(|all| all.packets)), true),
        ("arrived_bytes", maybe_whole(rows, |row| row.arrived.map(|all| all.bytes)), true),
        ("sent_packets", maybe_whole(rows, |row| row.sent.map(|all| all.packets)), true),
        ("sent_bytes", maybe_whole(rows, |row| row.sent.map(|all| all.bytes)), true),
        ("dropped_packets", whole(rows, |row| row.dropped.packets), false),
        ("dropped_bytes", whole(rows, |row| row.dropped.bytes), false),
        ("marked_packets", whole(rows, |row| row.marked), false),
    ];
    for why in DropReason::ALL {
        columns.push((why.name(), whole(rows, |row| row.drops[why as usize]), false));
    }
    for why in DropReason::ALL {
        let measured = maybe_whole(rows, |row| row.drops_measured.map(|drops| drops[why as usize]));
        columns.push((measured_name(why), measured, true));
    }
    batch(columns)
}

/// The column of drops within the measured part.
pub(crate) const fn measured_name(why: DropReason) -> &'static str {
    match why {
        DropReason::Overlimit => "overlimit_measured",
        DropReason::Pushout => "pushout_measured",
        DropReason::Early => "early_measured",
        DropReason::Congested => "congested_measured",
        DropReason::FlowLimit => "flow_limit_measured",
        DropReason::TooLarge => "too_large_measured",
        DropReason::NoClass => "no_class_measured",
        DropReason::Policy => "policy_measured",
        DropReason::Reset => "reset_measured",
        DropReason::Wire => "wire_measured",
        DropReason::Unreachable => "unreachable_measured",
    }
}

/// Distributions of waiting times: one row per port, kind of packets and share.
pub(crate) fn delays(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.delays;
    batch(vec![
        ("port", text(rows, |row| record.layout.port_name(row.port)), false),
        ("what", text(rows, |row| row.what.name().to_owned()), false),
        ("share", real(rows, |row| Some(row.share)), false),
        ("delay_s", real(rows, |row| Some(row.delay_s)), false),
    ])
}

/// Who got how much: one row per port, stretch of time and source.
pub(crate) fn shares(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.shares;
    batch(vec![
        ("time_s", real(rows, |row| Some(row.time.as_s())), false),
        ("span_s", real(rows, |row| Some(row.span.as_s())), false),
        ("port", text(rows, |row| record.layout.port_name(row.port)), false),
        ("source", text(rows, |row| record.layout.source_name(row.source)), false),
        ("bytes", whole(rows, |row| row.bytes), false),
    ])
}

/// Samples of senders: one row per sample and flow; `id` is that of the table of flows.
pub(crate) fn senders(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.progress;
    batch(vec![
        ("time_s", real(rows, |row| Some(row.time.as_s())), false),
        ("id", whole(rows, |row| row.id), false),
        ("acked", whole(rows, |row| row.acked), false),
        ("window", whole(rows, |row| row.window), false),
    ])
}

/// How often flows became backlogged: one row per port and flow.
pub(crate) fn episodes(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.episodes;
    batch(vec![
        ("port", text(rows, |row| record.layout.port_name(row.port)), false),
        ("flow", text(rows, |row| format!("{:016x}", row.flow.0)), false),
        ("packets", whole(rows, |row| row.packets), false),
        ("bytes", whole(rows, |row| row.bytes), false),
        ("data_packets", whole(rows, |row| row.data_packets), false),
        ("episodes", whole(rows, |row| row.episodes), false),
    ])
}

/// How bursty it is what goes on: one row per port and link beyond.
pub(crate) fn bursts(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.bursts;
    let onward = rows.iter().map(|row| row.onward.map(|node| record.layout.node_name(node)));
    let mut columns: Columns = vec![
        ("port", text(rows, |row| record.layout.port_name(row.port)), false),
        ("onward", Arc::new(StringArray::from_iter(onward)), true),
        ("packets", whole(rows, |row| row.packets), false),
        ("runs", whole(rows, |row| row.runs), false),
        ("run_longest", whole(rows, |row| row.run_longest), false),
        ("run_weighted", real(rows, |row| Some(row.run_weighted)), false),
    ];
    let windows = ["idc_1ms", "idc_10ms", "idc_100ms", "idc_1s"];
    columns.extend(
        windows.iter().enumerate().map(|(at, name)| (*name, real(rows, |row| row.dispersions[at]), true)),
    );
    columns.push(("peakedness", real(rows, |row| row.peakedness), true));
    batch(columns)
}

/// One row per run, a column for each metric that any of them has.
pub(crate) fn summary(runs: &[(Cell, Summary)]) -> Result<RecordBatch, ArrowError> {
    let mut names: Vec<&str> = Vec::new();
    for (_, run) in runs {
        let new: Vec<&str> =
            run.metrics.iter().map(|(name, _)| name).filter(|name| !names.contains(name)).collect();
        names.extend(new);
    }
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("qdisc", text(runs, |(cell, _)| cell.qdisc.clone()), false),
        ("seed", whole(runs, |(cell, _)| cell.seed), false),
        ("fingerprint", text(runs, |(_, run)| run.fingerprint.to_string()), false),
    ];
    for name in names {
        let value = |(_, run): &(Cell, Summary)| run.metrics.entry(name).unwrap_or_else(|| unnamed(name));
        columns.push((name, real(runs, value), true));
    }
    batch(columns)
}

/// Writes a table and hands it to the disk.
pub(crate) fn write(path: &Path, rows: &RecordBatch) -> Result<Digest, ParquetError> {
    let mut writer = writer(path, rows)?;
    writer.write(rows)?;
    close(writer)
}

/// Writes the tables of several runs below each other, with their discipline and seed in front, in this order. Holds
/// one row group at a time.
pub(crate) fn merge<'a>(
    path: &Path,
    parts: impl IntoIterator<Item = (&'a Cell, std::path::PathBuf)>,
) -> Result<Digest, ParquetError> {
    without_panics(|| merge_parts(path, parts))
}

/// Reads a table with `read`. The crates that read Parquet (arrow-buffer 60.1) panic on some changed bytes. A table whose digest
/// is right has them only when somebody computed the digest anew, and then that is an error of the table like any other.
pub(crate) fn without_panics<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let read = catch_unwind(AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Err(ParquetError::General("its content is no table of a run".to_owned())))
}

fn merge_parts<'a>(
    path: &Path,
    parts: impl IntoIterator<Item = (&'a Cell, std::path::PathBuf)>,
) -> Result<Digest, ParquetError> {
    let mut merged: Option<ArrowWriter<Hashing<File>>> = None;
    for (cell, part) in parts {
        let file =
            File::open(&part).map_err(|e| ParquetError::General(format!("{}: {e}", part.display())))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
        // A table without rows has no batches, but its columns still count.
        let empty = RecordBatch::new_empty(reader.schema().clone());
        for rows in std::iter::once(Ok(empty)).chain(reader.build()?) {
            let rows = with_cell(cell, &rows?)?;
            let writer = match &mut merged {
                Some(writer) => writer,
                None => merged.insert(writer(path, &rows)?),
            };
            writer.write(&rows)?;
        }
    }
    close(merged.ok_or_else(|| ParquetError::General("there is nothing to merge".to_owned()))?)
}

fn with_cell(cell: &Cell, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let each = vec![(); rows.num_rows()];
    let schema = rows.schema();
    let kept = schema.fields().iter().zip(rows.columns());
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("qdisc", text(&each, |()| cell.qdisc.clone()), false),
        ("seed", whole(&each, |()| cell.seed), false),
    ];
    columns.extend(kept.map(|(field, column)| (field.name().as_str(), column.clone(), field.is_nullable())));
    batch(columns)
}

fn writer(path: &Path, rows: &RecordBatch) -> Result<ArrowWriter<Hashing<File>>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("giveway ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    ArrowWriter::try_new(Hashing::new(File::create(path)?), rows.schema(), Some(properties))
}

fn close(writer: ArrowWriter<Hashing<File>>) -> Result<Digest, ParquetError> {
    let (file, digest) = writer.into_inner()?.finish();
    file.sync_all()?;
    Ok(digest)
}

fn batch(columns: Vec<(&str, ArrayRef, bool)>) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_from_iter_with_nullable(columns)
}

fn whole<T>(rows: &[T], value: impl Fn(&T) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(rows.iter().map(value)))
}

fn maybe_whole<T>(rows: &[T], value: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter(rows.iter().map(value)))
}

fn real<T>(rows: &[T], value: impl Fn(&T) -> Option<f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter(rows.iter().map(value)))
}

fn text<T>(rows: &[T], value: impl Fn(&T) -> String) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.iter().map(value)))
}
