//! Tables of runs in memory, as batches of Arrow: the tables of a run folder, without the folder.
//!
//! A table of several runs starts with the columns `qdisc` and `seed`, as the tables at the top of a run
//! folder do. Columns of text are views (`Utf8View`), in which equal texts are stored once: libraries of data
//! frames take them over without a copy. The files of a run folder have plain text (`Utf8`) instead, which
//! older readers understand as well.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, new_null_array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use giveway_files::Dir;
use giveway_measure::{Discipline, Layout, Record, Summary, Trial, unnamed};
use parquet::errors::ParquetError;

use crate::columns::{self, tables};
use crate::dataset::Part;
use crate::folder::{TABLES, tables_of};

/// A table of runs: batches with one schema.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The columns, with unit and description in their metadata.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

/// A table that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Runs do not have a table of this name.
    #[error("there is no table \"{name}\"; the tables are {known}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names of all tables, separated by commas.
        known: String,
    },
    /// The runs of this scenario do not have the table.
    #[error("these runs have no table \"{name}\": set {key} = true in [record] of the scenario")]
    Off {
        /// The name of the table.
        name: String,
        /// The key of `[record]` that turns it on.
        key: String,
    },
    /// A column does not fit.
    #[error("the table \"{name}\" cannot be made")]
    Columns {
        /// The name of the table.
        name: String,
        /// The error of the library.
        source: ArrowError,
    },
    /// A file of a run folder cannot be read.
    #[error("cannot read the table \"{name}\" of {folder}", folder = folder.display())]
    File {
        /// The name of the table.
        name: String,
        /// The run folder.
        folder: std::path::PathBuf,
        /// The error of the library.
        source: ParquetError,
    },
}

/// The names of all tables: the names of the files of a run folder, without `.parquet`.
pub fn names() -> impl Iterator<Item = &'static str> {
    tables::TABLES.into_iter().map(|table| stem(table.file))
}

fn stem(file: &'static str) -> &'static str {
    file.strip_suffix(".parquet").unwrap_or(file)
}

/// The table `name` of these runs, with a batch for each run.
///
/// # Errors
/// If there is no such table, or the scenario does not turn it on.
pub fn of_runs(name: &str, layout: &Layout, runs: &[(Trial, Record)]) -> Result<Frame, FrameError> {
    if !TABLES.iter().any(|(file, _)| stem(file) == name) {
        return Err(unknown(name));
    }
    let Some((_, make)) = tables_of(layout).find(|(file, _)| stem(file) == name) else {
        return Err(FrameError::Off { name: name.to_owned(), key: name.to_owned() });
    };
    let one = |(trial, record): &(Trial, Record)| columns::with_trial(trial, &make(record)?);
    let batches = runs.iter().map(one).collect::<Result<Vec<_>, _>>();
    batches.and_then(Frame::new).map_err(|source| FrameError::Columns { name: name.to_owned(), source })
}

/// The table `summary`: a row for each run.
///
/// # Errors
/// If two metrics have one name.
pub fn summary(disciplines: &[Discipline], runs: &[(Trial, Summary)]) -> Result<Frame, FrameError> {
    let made = columns::summary(disciplines, runs).and_then(|rows| Frame::new(vec![rows]));
    made.map_err(|source| FrameError::Columns { name: stem(tables::SUMMARY.file).to_owned(), source })
}

/// The table `metrics`: a row for each metric of each run.
///
/// # Errors
/// None that a caller can cause.
pub fn metrics(runs: &[(Trial, Summary)]) -> Result<Frame, FrameError> {
    let made = columns::metrics(runs).and_then(|rows| Frame::new(vec![rows]));
    made.map_err(|source| FrameError::Columns { name: stem(tables::METRICS.file).to_owned(), source })
}

/// The table `name` of a run folder.
///
/// # Errors
/// If there is no such table, or its file cannot be read.
pub(crate) fn of_folder(name: &str, folder: &Dir) -> Result<Frame, FrameError> {
    let Some(table) = tables::TABLES.into_iter().find(|table| stem(table.file) == name) else {
        return Err(unknown(name));
    };
    if matches!(folder.kind(table.file), Ok(None)) {
        return Err(FrameError::Off { name: name.to_owned(), key: name.to_owned() });
    }
    let read = || Ok(Frame::new(columns::read(folder.file(table.file)?)?)?);
    let (read, folder) = (read(), folder.path().to_owned());
    read.map_err(|source| FrameError::File { name: name.to_owned(), folder, source })
}

/// The parts of a data set as one table. A part that lacks a column has nulls there, or the default of a
/// metric.
///
/// # Errors
/// If a file cannot be read.
pub fn of_parts(name: &str, folder: &Path, parts: &[Part]) -> Result<Frame, FrameError> {
    let read = || -> Result<Frame, ParquetError> {
        let mut batches: Vec<RecordBatch> = Vec::new();
        for part in parts {
            batches.extend(columns::read(part.file()?)?);
        }
        let mut fields: Vec<FieldRef> = Vec::new();
        for batch in &batches {
            for field in batch.schema().fields() {
                if !fields.iter().any(|known| known.name() == field.name()) {
                    // A part without the column has nulls.
                    fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
                }
            }
        }
        let schema = Arc::new(Schema::new(fields));
        let united = batches.iter().map(|batch| {
            let columns = schema.fields().iter().map(|field| match batch.column_by_name(field.name()) {
                Some(column) => Arc::clone(column),
                None => match unnamed(field.name()) {
                    Some(value) => Arc::new(Float64Array::from_value(value, batch.num_rows())),
                    None => new_null_array(field.data_type(), batch.num_rows()),
                },
            });
            RecordBatch::try_new(Arc::clone(&schema), columns.collect())
        });
        Ok(Frame::new(united.collect::<Result<Vec<_>, _>>()?)?)
    };
    read().map_err(|source| FrameError::File { name: name.to_owned(), folder: folder.to_owned(), source })
}

fn unknown(name: &str) -> FrameError {
    FrameError::Unknown { name: name.to_owned(), known: names().collect::<Vec<_>>().join(", ") }
}

impl Frame {
    /// A table of these batches, at least one, with views in place of texts.
    fn new(batches: Vec<RecordBatch>) -> Result<Frame, ArrowError> {
        let batches = batches.iter().map(with_views).collect::<Result<Vec<_>, _>>()?;
        let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        Ok(Frame { schema, batches })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// The batch with each column of text as views.
fn with_views(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let fields = schema.fields().iter().map(|field| {
        let kind =
            if *field.data_type() == DataType::Utf8 { DataType::Utf8View } else { field.data_type().clone() };
        Field::new(field.name(), kind, field.is_nullable()).with_metadata(field.metadata().clone())
    });
    let schema = Schema::new(fields.collect::<Vec<_>>()).with_metadata(schema.metadata().clone());
    let columns = batch.columns().iter().map(|column| match column.data_type() {
        DataType::Utf8 => views(column),
        _ => Arc::clone(column),
    });
    RecordBatch::try_new(Arc::new(schema), columns.collect())
}

fn views(texts: &ArrayRef) -> ArrayRef {
    let mut views = StringViewBuilder::with_capacity(texts.len()).with_deduplicate_strings();
    texts.as_string::<i32>().iter().for_each(|text| views.append_option(text));
    Arc::new(views.finish())
}
