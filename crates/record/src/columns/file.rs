//! Parquet files: writing, and merging the files of several trials.
//!
//! A large table of a trial is not read to be merged: its columns are copied as they are compressed. To read
//! and compress them again takes as long as the simulation of the trial.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};
use giveway_measure::Trial;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{
    ArrowSchemaConverter, ArrowWriter, ProjectionMask, add_encoded_arrow_schema_to_metadata,
    parquet_to_arrow_schema,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;

use super::arrays::{text, whole};
use super::tables;
use crate::seal::{Digest, Hashing};

/// Rows of a row group. A reader needs memory for one group.
const GROUP_ROWS: usize = 1 << 17;

/// Rows of a table from which on it is copied. With fewer rows the description of its columns would be longer
/// than they are.
const COPIED: i64 = 1 << 12;

/// Rows of a table from which on it is compressed. With fewer rows the compressor of a column takes longer to
/// set up than to run.
const COMPRESSED: usize = 1 << 12;

/// Writes a table to an empty file, and syncs it to the disk.
pub(crate) fn write(file: File, rows: &RecordBatch) -> Result<Digest, ParquetError> {
    let mut writer = writer(file, rows, properties(rows.num_rows() >= COMPRESSED))?;
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
    let mut parts = parts.into_iter().peekable();
    let rows = match parts.peek() {
        Some((_, Ok(first))) => footer(first)?.file_metadata().num_rows(),
        _ => 0,
    };
    if rows >= COPIED { copy_parts(file, parts) } else { merge_rows(file, parts) }
}

/// The metadata of a table.
fn footer(file: &File) -> Result<ParquetMetaData, ParquetError> {
    ParquetMetaDataReader::new().parse_and_finish(file)
}

/// Merges tables by copying their columns. Each trial has row groups of its own.
fn copy_parts<'a>(
    file: File,
    parts: impl IntoIterator<Item = (&'a Trial, io::Result<File>)>,
) -> Result<Digest, ParquetError> {
    let mut file = Some(file);
    let mut merged: Option<SerializedFileWriter<Hashing<File>>> = None;
    for (trial, part) in parts {
        let part = part?;
        let footer = footer(&part)?;
        let writer = match &mut merged {
            Some(writer) => writer,
            None => {
                let own = parquet_to_arrow_schema(
                    footer.file_metadata().schema_descr(),
                    footer.file_metadata().key_value_metadata(),
                )?;
                let schema = with_trial(trial, &RecordBatch::new_empty(Arc::new(own)))?.schema();
                let mut properties = properties(true);
                add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
                let columns = ArrowSchemaConverter::new().convert(&schema)?.root_schema_ptr();
                let file = Hashing::new(file.take().expect("there is one writer"));
                merged.insert(SerializedFileWriter::new(file, columns, Arc::new(properties))?)
            }
        };
        for group in footer.row_groups() {
            let count = usize::try_from(group.num_rows())?;
            let mut copied = writer.next_row_group()?;
            // They are not null, so no value has a level.
            let mut next = copied.next_column()?.expect("a table has the columns of its trial");
            let qdisc = ByteArray::from(trial.qdisc.as_str());
            next.typed::<ByteArrayType>().write_batch(&vec![qdisc; count], None, None)?;
            next.close()?;
            let mut next = copied.next_column()?.expect("a table has the columns of its trial");
            next.typed::<Int64Type>().write_batch(&vec![trial.seed.cast_signed(); count], None, None)?;
            next.close()?;
            for column in group.columns() {
                let closed = ColumnCloseResult {
                    bytes_written: u64::try_from(column.compressed_size())?,
                    rows_written: u64::try_from(group.num_rows())?,
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                copied.append_column(&part, closed)?;
            }
            copied.close()?;
        }
    }
    let merged = merged.ok_or_else(|| ParquetError::General("there is nothing to merge".to_owned()))?;
    synced(merged.into_inner()?)
}

/// Merges tables row by row: many small trials share row groups of the usual size.
fn merge_rows<'a>(
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
                    merged.insert(writer(file, &rows, properties(true))?)
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
    let mut columns: Vec<ArrayRef> = vec![text(&each, |()| &*trial.qdisc), whole(&each, |()| trial.seed)];
    columns.extend(rows.columns().iter().cloned());
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn writer(
    file: File,
    rows: &RecordBatch,
    properties: WriterProperties,
) -> Result<ArrowWriter<Hashing<File>>, ParquetError> {
    ArrowWriter::try_new(Hashing::new(file), rows.schema(), Some(properties))
}

/// Neither a dictionary of values nor statistics: both look up each value, and take twice as long as the
/// compression, which finds the repetitions as well.
fn properties(compressed: bool) -> WriterProperties {
    let zstd = Compression::ZSTD(ZstdLevel::default());
    WriterProperties::builder()
        .set_compression(if compressed { zstd } else { Compression::UNCOMPRESSED })
        .set_created_by(concat!("giveway ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .build()
}

fn close(writer: ArrowWriter<Hashing<File>>) -> Result<Digest, ParquetError> {
    synced(writer.into_inner()?)
}

fn synced(file: Hashing<File>) -> Result<Digest, ParquetError> {
    let (file, digest) = file.finish();
    file.sync_all()?;
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};

    use arrow_array::{Float64Array, StringArray, UInt64Array};
    use arrow_schema::Field;

    use super::*;

    /// A table of a trial, with nulls.
    fn table(rows: u64, offset: u64) -> File {
        let fields = [("name", DataType::Utf8), ("value", DataType::Float64), ("count", DataType::UInt64)];
        let field = |(name, kind): &(&str, DataType)| {
            tables::described(Field::new(*name, kind.clone(), *name == "value"), "s", "A value.")
        };
        let schema = Schema::new(fields.iter().map(field).collect::<Vec<_>>());
        let value = |row: u64| (!row.is_multiple_of(7)).then_some((row + offset) as f64 / 3.0);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values((0..rows).map(|row| ["a", "b"][row as usize % 2]))),
            Arc::new(Float64Array::from_iter((0..rows).map(value))),
            Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| u64::MAX - row))),
        ];
        let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        let file = tempfile::tempfile().unwrap();
        write(file.try_clone().unwrap(), &batch).unwrap();
        file
    }

    /// Each row as text, with the metadata of its columns.
    fn rows_of(batch: &RecordBatch) -> Vec<String> {
        let schema = batch.schema();
        let about: Vec<String> =
            schema.fields().iter().map(|field| format!("{} {:?}", field.name(), field.metadata())).collect();
        let cell = |column: &ArrayRef, row: usize| format!("{:?}", column.slice(row, 1));
        let row = |row: usize| batch.columns().iter().map(|column| cell(column, row)).collect::<String>();
        (0..batch.num_rows()).map(|at| format!("{about:?} {}", row(at))).collect()
    }

    #[test]
    fn copied_columns_are_those_that_rows_give() {
        let trials = [("fifo", 3), ("fq_codel", u64::MAX)];
        let trials = trials.map(|(qdisc, seed)| Trial { qdisc: qdisc.to_owned(), seed });
        // The second table is small: the first one decides.
        let parts = || [table(5_000, 0), table(9, 1), table(COPIED as u64, 2)];
        let of = || [&trials[0], &trials[1], &trials[0]].into_iter().zip(parts().map(Ok));
        let merged = |merge: &dyn Fn(File) -> Result<Digest, ParquetError>| {
            let mut file = tempfile::tempfile().unwrap();
            let digest = merge(file.try_clone().unwrap()).unwrap();
            file.seek(SeekFrom::Start(0)).unwrap();
            assert_eq!(digest.bytes, file.metadata().unwrap().len());
            let batches = read(file).unwrap();
            batches.iter().flat_map(rows_of).collect::<Vec<String>>()
        };
        let copied = merged(&|file| merge(file, of()));
        let rows = merged(&|file| merge_rows(file, of()));
        assert_eq!(copied.len(), 5_000 + 9 + 4_096);
        assert!(copied == rows);
    }
}
