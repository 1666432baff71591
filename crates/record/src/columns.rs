//! Rows become Parquet. Times are in seconds, sizes in bytes; what is missing is null. `tables.rs` lists the columns.

pub(crate) mod tables;

use std::collections::BTreeSet;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use giveway_measure::{Discipline, Named, Record, Summary, Trial, named, unnamed};
use giveway_qdisc::{DropReason, Ending, FlowKind, FlowReport, Quantity};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::folder::{Digest, Hashing};

/// Rows of a row group: what a reader holds in memory at a time.
const GROUP_ROWS: usize = 1 << 17;

/// One row per flow.
pub(crate) fn flows(record: &Record) -> Result<RecordBatch, ArrowError> {
    let flows = &record.flows;
    let whole_thing = |flow: &FlowReport| matches!(flow.kind, FlowKind::Transfer | FlowKind::Group);
    let completed = |flow: &&FlowReport| whole_thing(flow) && flow.ending == Ending::Completed;
    let fct = |flow: &FlowReport| Some(flow).filter(completed).map(|flow| flow.end.since(flow.start).as_s());
    let in_interval = |flow: &FlowReport| record.layout.measures(flow.start);
    let delay =
        |flow: &FlowReport, delay: giveway_qdisc::Span| (!flow.delay_mean.is_zero()).then_some(delay.as_s());
    // The 99th percentile and the largest are known of datagrams only.
    let of_datagrams = |flow: &FlowReport, span: giveway_qdisc::Span| {
        delay(flow, span).filter(|_| flow.kind == FlowKind::Datagrams)
    };
    let pause = |flow: &FlowReport, pause: giveway_qdisc::Span| {
        (!flow.longest_pause.is_zero()).then_some(pause.as_s())
    };
    tables::FLOWS.batch(vec![
        text(flows, |flow| record.layout.source_name(flow.source)),
        whole(flows, |flow| flow.id),
        text(flows, |flow| flow.kind.name().to_owned()),
        text(flows, |flow| record.layout.node_name(flow.from)),
        text(flows, |flow| record.layout.node_name(flow.to)),
        real(flows, |flow| Some(flow.start.as_s())),
        Arc::new(BooleanArray::from_iter(flows.iter().map(|flow| Some(in_interval(flow))))),
        real(flows, |flow| Some(flow.end.as_s())),
        real(flows, fct),
        text(flows, |flow| flow.ending.name().to_owned()),
        whole(flows, |flow| flow.bytes),
        whole(flows, |flow| flow.delivered),
        whole(flows, |flow| flow.goodput_bytes),
        whole(flows, |flow| flow.packets),
        whole(flows, |flow| flow.retransmitted),
        maybe_whole(flows, |flow| flow.lost),
        whole(flows, |flow| flow.timeouts),
        real(flows, |flow| delay(flow, flow.delay_mean)),
        real(flows, |flow| of_datagrams(flow, flow.delay_p99)),
        real(flows, |flow| of_datagrams(flow, flow.delay_max)),
        real(flows, |flow| pause(flow, flow.longest_pause)),
        real(flows, |flow| pause(flow, flow.paused)),
    ])
}

/// One row per sample of a backlog.
pub(crate) fn queue(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<_> = record.queue.iter().filter_map(|row| Some((row, row.held?))).collect();
    tables::QUEUE.batch(vec![
        real(&rows, |(row, _)| Some(row.time.as_s())),
        text(&rows, |(row, _)| record.layout.port_name(row.port)),
        whole(&rows, |(_, held)| held.packets),
        whole(&rows, |(_, held)| held.bytes),
    ])
}

/// One row per gauge and sample.
pub(crate) fn gauges(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<_> = record.queue.iter().filter_map(|row| Some((row, row.gauge?))).collect();
    tables::GAUGES.batch(vec![
        real(&rows, |(row, _)| Some(row.time.as_s())),
        text(&rows, |(row, _)| record.layout.port_name(row.port)),
        text(&rows, |(_, (name, _))| (*name).to_owned()),
        real(&rows, |(_, (_, value))| Some(*value)),
    ])
}

/// One row per port; two columns for each reason to drop.
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
    let rows = &record.delays;
    tables::SOJOURN.batch(vec![
        text(rows, |row| record.layout.port_name(row.port)),
        text(rows, |row| row.what.name().to_owned()),
        real(rows, |row| Some(row.share)),
        real(rows, |row| Some(row.delay_s)),
    ])
}

/// Who got how much: one row per port, stretch of time and source.
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

/// Samples of senders: one row per sample and flow.
pub(crate) fn senders(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.progress;
    tables::SENDERS.batch(vec![
        real(rows, |row| Some(row.time.as_s())),
        text(rows, |row| record.layout.source_name(row.source)),
        whole(rows, |row| row.id),
        whole(rows, |row| row.acked),
        whole(rows, |row| row.window),
    ])
}

/// How often flows became backlogged: one row per port and flow.
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

/// How bursty it is what goes on: one row per port and link beyond.
pub(crate) fn bursts(record: &Record) -> Result<RecordBatch, ArrowError> {
    let rows = &record.bursts;
    let onward = rows.iter().map(|row| row.onward.map(|node| record.layout.node_name(node)));
    let mut columns = vec![
        text(rows, |row| record.layout.port_name(row.port)),
        Arc::new(StringArray::from_iter(onward)),
        whole(rows, |row| row.packets),
        whole(rows, |row| row.runs),
        whole(rows, |row| row.run_longest),
        real(rows, |row| Some(row.run_weighted)),
    ];
    columns.extend((0..4).map(|window| real(rows, |row| row.dispersions[window])));
    columns.push(real(rows, |row| row.peakedness));
    tables::BURSTS.batch(columns)
}

/// One row per run, a column for each parameter that any of the disciplines has, and one for each metric that any of the
/// runs has.
pub(crate) fn summary(
    disciplines: &[Discipline],
    runs: &[(Trial, Summary)],
) -> Result<RecordBatch, ArrowError> {
    let mut names: Vec<&str> = Vec::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (_, run) in runs {
        names.extend(run.metrics.iter().map(|(name, _)| name).filter(|name| known.insert(name)));
    }
    let of = |trial: &Trial| disciplines.iter().find(|discipline| discipline.qdisc == trial.qdisc);
    let [qdisc, discipline, seed, fingerprint] = tables::SUMMARY.columns else {
        unreachable!("the summary has these columns")
    };
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    let mut push = |field: Field, values: ArrayRef| {
        fields.push(field);
        columns.push(values);
    };
    push(qdisc.field(&DataType::Utf8), text(runs, |(trial, _)| trial.qdisc.clone()));
    let written = |trial: &Trial| of(trial).map_or(&trial.qdisc, |discipline| &discipline.written).clone();
    push(discipline.field(&DataType::Utf8), text(runs, |(trial, _)| written(trial)));
    for (field, values) in parameters(runs, &of) {
        push(field, values);
    }
    push(seed.field(&DataType::UInt64), whole(runs, |(trial, _)| trial.seed));
    push(fingerprint.field(&DataType::Utf8), text(runs, |(_, run)| run.fingerprint.to_string()));
    for name in names {
        let value = |(_, run): &(Trial, Summary)| run.metrics.entry(name).unwrap_or_else(|| unnamed(name));
        let field = Field::new(name, DataType::Float64, true);
        let field = match named(name) {
            Some(Named { definition, .. }) => {
                tables::described(field, definition.unit.symbol(), definition.what)
            }
            None => field,
        };
        push(field, real(runs, value));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// The columns of the disciplines' parameters: one for each name and unit.
fn parameters<'a>(
    runs: &[(Trial, Summary)],
    of: &impl Fn(&Trial) -> Option<&'a Discipline>,
) -> Vec<(Field, ArrayRef)> {
    const WHAT: &str = "A parameter of the discipline; null of those that have none of this name.";
    let mut known: Vec<(String, &'static str, bool)> = Vec::new();
    for parameter in runs.iter().filter_map(|(trial, _)| of(trial)).flat_map(|one| &one.parameters) {
        let new = column(parameter);
        if !known.contains(&new) {
            known.push(new);
        }
    }
    let values = |wanted: &(String, &'static str, bool)| {
        let found = |trial: &Trial| {
            let parameter = of(trial)?.parameters.iter().find(|parameter| column(parameter) == *wanted);
            parameter.map(|(_, value)| value)
        };
        let (name, unit, is_text) = wanted;
        let values: ArrayRef = if *is_text {
            Arc::new(StringArray::from_iter(runs.iter().map(|(trial, _)| match found(trial)? {
                Quantity::Text(text) => Some(text),
                Quantity::Number(..) => None,
            })))
        } else {
            real(runs, |(trial, _)| match found(trial)? {
                Quantity::Number(number, _) => Some(*number),
                Quantity::Text(_) => None,
            })
        };
        let field = Field::new(name, values.data_type().clone(), true);
        (tables::described(field, unit, WHAT), values)
    };
    known.iter().map(values).collect()
}

/// The column of a parameter: its name, its unit, and whether it holds text. Equal names with different units are different
/// columns, since a limit may count packets or bytes.
fn column((name, value): &(String, Quantity)) -> (String, &'static str, bool) {
    match value {
        Quantity::Text(_) => (format!("param.{name}"), "", true),
        Quantity::Number(_, unit) => {
            let ending = match *unit {
                "packets" => "_packets",
                "B" => "_bytes",
                "s" => "_s",
                "bit/s" => "_bps",
                _ => "",
            };
            (format!("param.{name}{ending}"), unit, false)
        }
    }
}

/// One row per metric and run.
pub(crate) fn metrics(runs: &[(Trial, Summary)]) -> Result<RecordBatch, ArrowError> {
    let all = runs.iter().flat_map(|(trial, run)| {
        run.metrics.iter().filter_map(move |(name, value)| Some((trial, name, named(name), value?)))
    });
    let rows: Vec<_> = all.collect();
    let maybe = |value: &dyn Fn(&Named<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(StringArray::from_iter(rows.iter().map(|(_, _, named, _)| value(named.as_ref()?))))
    };
    let unit =
        |named: &Option<Named<'_>>| named.map_or("1", |named| named.definition.unit.symbol()).to_owned();
    tables::METRICS.batch(vec![
        text(&rows, |(trial, ..)| trial.qdisc.clone()),
        whole(&rows, |(trial, ..)| trial.seed),
        maybe(&|named| named.source.map(str::to_owned)),
        maybe(&|named| named.port.map(str::to_owned)),
        text(&rows, |(_, name, named, _)| named.map_or(*name, |named| named.metric).to_owned()),
        real(&rows, |(.., value)| Some(*value)),
        text(&rows, |(_, _, named, _)| unit(named)),
    ])
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
    parts: impl IntoIterator<Item = (&'a Trial, std::path::PathBuf)>,
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
    parts: impl IntoIterator<Item = (&'a Trial, std::path::PathBuf)>,
) -> Result<Digest, ParquetError> {
    let mut merged: Option<ArrowWriter<Hashing<File>>> = None;
    for (trial, part) in parts {
        let file =
            File::open(&part).map_err(|e| ParquetError::General(format!("{}: {e}", part.display())))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
        // A table without rows has no batches, but its columns still count.
        let empty = RecordBatch::new_empty(reader.schema().clone());
        for rows in std::iter::once(Ok(empty)).chain(reader.build()?) {
            let rows = with_trial(trial, &rows?)?;
            let writer = match &mut merged {
                Some(writer) => writer,
                None => merged.insert(writer(path, &rows)?),
            };
            writer.write(&rows)?;
        }
    }
    close(merged.ok_or_else(|| ParquetError::General("there is nothing to merge".to_owned()))?)
}

fn with_trial(trial: &Trial, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let each = vec![(); rows.num_rows()];
    let [qdisc, seed] = tables::OF_RUN;
    let mut fields = vec![qdisc.field(&DataType::Utf8), seed.field(&DataType::UInt64)];
    fields.extend(rows.schema().fields().iter().map(|field| field.as_ref().clone()));
    let mut columns: Vec<ArrayRef> =
        vec![text(&each, |()| trial.qdisc.clone()), whole(&each, |()| trial.seed)];
    columns.extend(rows.columns().iter().cloned());
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
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
