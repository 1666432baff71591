//! Single columns of a Parquet table, row by row.

use std::io;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use giveway_files::Dir;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;

use crate::columns;
use crate::report::error::{ReportError, file_error};

/// Visits the rows of a table in a folder. `visit` is called with the batch, which has the columns in the
/// order of
/// `columns`, and the number of the row in it.
pub(super) fn rows(
    dir: &Dir,
    inside: &Path,
    columns: &[&str],
    mut visit: impl FnMut(&RecordBatch, usize),
) -> Result<(), ReportError> {
    let path = &dir.path().join(inside);
    let file = dir.file(inside).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            file_error(path, "it is missing, and a report needs all trials of its folder")
        }
        _ => file_error(path, error),
    })?;
    let read = columns::without_panics(|| {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
        let wanted = columns::named(builder.parquet_schema(), columns.iter().copied());
        for batch in builder.with_projection(wanted).build()? {
            let batch = batch?;
            let place = |name: &&str| {
                batch.schema().index_of(name).map_err(|_| ParquetError::General(format!("no column {name}")))
            };
            let order = columns.iter().map(place).collect::<Result<Vec<usize>, _>>()?;
            let batch = batch.project(&order)?;
            (0..batch.num_rows()).for_each(|row| visit(&batch, row));
        }
        Ok(())
    });
    read.map_err(|error| file_error(path, error))
}

pub(super) fn text(batch: &RecordBatch, column: usize) -> &arrow_array::StringArray {
    batch.column(column).as_string()
}

pub(super) fn real(batch: &RecordBatch, column: usize, row: usize) -> Option<f64> {
    let values = batch.column(column).as_primitive::<Float64Type>();
    values.is_valid(row).then(|| values.value(row))
}

pub(super) fn whole(batch: &RecordBatch, column: usize, row: usize) -> Option<u64> {
    let values = batch.column(column).as_primitive::<UInt64Type>();
    values.is_valid(row).then(|| values.value(row))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn table() -> RecordBatch {
        let names =
            (0..200).map(|row| Some(format!("row {}", row % 7))).collect::<arrow_array::StringArray>();
        let values = (0..200)
            .map(|row| (row % 3 > 0).then_some(f64::from(row)))
            .collect::<arrow_array::Float64Array>();
        let counts = (0..200).map(|row| (row % 5 > 0).then_some(row)).collect::<arrow_array::UInt64Array>();
        RecordBatch::try_from_iter_with_nullable([
            ("name", std::sync::Arc::new(names) as arrow_array::ArrayRef, false),
            ("value", std::sync::Arc::new(values), true),
            ("count", std::sync::Arc::new(counts), true),
        ])
        .unwrap()
    }

    /// A table with one changed byte, for each byte in turn, is read or refused; no reader panics.
    #[test]
    fn a_table_with_a_changed_byte_is_refused_or_read() {
        let dir = tempfile::tempdir().unwrap();
        let (path, open) = (dir.path().join("table.parquet"), Dir::open(dir.path()).unwrap());
        columns::write(fs::File::create(&path).unwrap(), &table()).unwrap();
        let bytes = fs::read(&path).unwrap();
        let (mut refused, mut caught) = (0, 0);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            fs::write(&path, changed).unwrap();
            let mut seen = 0.0;
            let read = rows(&open, Path::new("table.parquet"), &["name", "value", "count"], |batch, row| {
                let length = text(batch, 0).value(row).len() as f64;
                seen +=
                    length + real(batch, 1, row).unwrap_or(0.0) + whole(batch, 2, row).unwrap_or(0) as f64;
            });
            if let Err(error) = read {
                refused += 1;
                let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                caught += usize::from(source.contains("it does not contain a table of a run"));
            }
        }
        assert!(refused > 100, "{refused} of {} changes are refused", bytes.len());
        assert!(caught > 0, "no change makes the Parquet crates panic any more: without_panics can go");
    }
}
