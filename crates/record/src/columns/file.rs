//! Parquet files: writing, and merging the files of several trials.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};
use giveway_measure::Trial;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::SchemaDescriptor;

use super::arrays::{text, whole};
use super::tables;
use crate::seal::{Digest, Hashing};

/// Rows of a row group. A reader needs memory for one group.
const GROUP_ROWS: usize = 1 << 17;

/// Writes a table to an empty file, and syncs it to the disk.
pub(crate) fn write(file: File, rows: &RecordBatch) -> Result<Digest, ParquetError> {
    let mut writer = writer(file, rows)?;
    writer.write(rows)?;
    close(writer)
}

/// Writes the tables of several trials into one empty file, in this order, with the discipline and the seed
/// as the first columns. It needs memory for one row group.
pub(crate) fn merge<'a>(
    file: File,
    parts: impl IntoIterator<Item = (&'a Trial, io::Result<File>)>,
) -> Result<Digest, ParquetError> {
    without_panics(|| merge_parts(file, parts))
}

/// Reads a whole table. A table without rows is one batch.
pub(crate) fn read(file: File) -> Result<Vec<RecordBatch>, ParquetError> {
    without_panics(|| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)?.with_batch_size(GROUP_ROWS);
        let empty = RecordBatch::new_empty(reader.schema().clone());
        let batches = reader.build()?.collect::<Result<Vec<_>, _>>()?;
        Ok(if batches.is_empty() { vec![empty] } else { batches })
    })
}

/// Reads a table with `read`, and returns a panic as an error. The crates that read Parquet (arrow-buffer
/// 60.1) panic on some changed bytes, which a table with a matching digest has only if the digest was forged.
pub(crate) fn without_panics<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let read = catch_unwind(AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Err(ParquetError::General("it does not contain a table of a run".to_owned())))
}

/// The columns of a table with these names. `ProjectionMask::columns` would divide a name at its dots, and
/// find no metric of a group of sources.
pub(crate) fn named<'a>(
    table: &SchemaDescriptor,
    names: impl IntoIterator<Item = &'a str>,
) -> ProjectionMask {
    let fields = table.root_schema().get_fields();
    let place = |name: &str| fields.iter().position(|field| field.name() == name);
    ProjectionMask::roots(table, names.into_iter().filter_map(place))
}

fn merge_parts<'a>(
    file: File,
    parts: impl IntoIterator<Item = (&'a Trial, io::Result<File>)>,
) -> Result<Digest, ParquetError> {
    let mut file = Some(file);
    let mut merged: Option<ArrowWriter<Hashing<File>>> = None;
    for (trial, part) in parts {
        let reader = ParquetRecordBatchReaderBuilder::try_new(part?)?;
        // A table without rows has no batches, but its columns still count.
        let empty = RecordBatch::new_empty(reader.schema().clone());
        for rows in std::iter::once(Ok(empty)).chain(reader.build()?) {
            let rows = with_trial(trial, &rows?)?;
            let writer = match &mut merged {
                Some(writer) => writer,
                None => {
                    let file = file.take().expect("there is one writer");
                    merged.insert(writer(file, &rows)?)
                }
            };
            writer.write(&rows)?;
        }
    }
    close(merged.ok_or_else(|| ParquetError::General("there is nothing to merge".to_owned()))?)
}

/// The table with the discipline and the seed as the first columns.
pub(crate) fn with_trial(trial: &Trial, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let each = vec![(); rows.num_rows()];
    let [qdisc, seed] = tables::OF_RUN;
    let mut fields = vec![qdisc.field(&DataType::Utf8), seed.field(&DataType::UInt64)];
    fields.extend(rows.schema().fields().iter().map(|field| field.as_ref().clone()));
    let mut columns: Vec<ArrayRef> =
        vec![text(&each, |()| trial.qdisc.clone()), whole(&each, |()| trial.seed)];
    columns.extend(rows.columns().iter().cloned());
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn writer(file: File, rows: &RecordBatch) -> Result<ArrowWriter<Hashing<File>>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("giveway ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    ArrowWriter::try_new(Hashing::new(file), rows.schema(), Some(properties))
}

fn close(writer: ArrowWriter<Hashing<File>>) -> Result<Digest, ParquetError> {
    let (file, digest) = writer.into_inner()?.finish();
    file.sync_all()?;
    Ok(digest)
}
