//! The trials of a sweep as one data set: Parquet files ("parts") of one form, which are written while the
//! sweep runs and read together.
//!
//! A row is a trial: its key, the number of its point in the sweep, its discipline and seed, the values of
//! the parameters that the sweep varies, and its metrics. A part contains a column for each metric that any
//! of its rows has, so parts may have different columns; readers unite them by name. Trials that failed are
//! in separate files, with the reason in place of metrics.
//!
//! A part is written next to its place, synced to the disk, and then renamed, so it is complete or absent. It
//! does not change afterwards, so it can be read while the sweep goes on. Its digest is kept elsewhere, and
//! without it no part is read ([`Part`]).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use giveway_files::Dir;
use giveway_measure::{METRICS, MetricName, Metrics, Summary, named, unnamed};
use giveway_qdisc::Quantity;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

use crate::columns::tables::{DATASET, FAILED, described};
use crate::columns::{self, real, text, whole};
use crate::folder::{FolderError, RIGHTS, beside, write_error};
use crate::seal::{Damage, Digest};

/// A column for a parameter that a sweep varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key in the scenario, such as `link.0.rate`.
    pub key: String,
    /// The name of the column, such as `link_0_rate_bps`.
    pub column: String,
    /// The unit of its numbers: "bit/s", "s", "B", "packets", or "1"; `None` if the values are texts.
    pub unit: Option<&'static str>,
}

/// A trial of a data set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row<R> {
    /// Identifies the scenario, the discipline, the seed and the version of the simulation.
    pub key: u128,
    /// The number of the point in the sweep.
    pub point: u64,
    /// The discipline as the scenario writes it.
    pub discipline: String,
    /// The discipline with the parameters that vary.
    pub qdisc: String,
    /// The seed.
    pub seed: u64,
    /// The value of each axis; `None` for an axis that does not concern this discipline.
    pub axes: Vec<Option<Quantity>>,
    /// The result of the trial.
    pub result: R,
}

impl Row<()> {
    /// The trial with this result.
    pub fn with<R>(self, result: R) -> Row<R> {
        let Row { key, point, discipline, qdisc, seed, axes, result: () } = self;
        Row { key, point, discipline, qdisc, seed, axes, result }
    }
}

/// The results of a finished trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The fingerprint of all events.
    pub fingerprint: String,
    /// The number of events.
    pub events: u64,
    /// The names of the metrics, in order. Rows of one part share them.
    #[serde(with = "names")]
    pub names: Arc<[String]>,
    /// The value of each metric; `None` if it is missing.
    pub values: Vec<Option<f64>>,
}

impl Measured {
    /// The results of a run.
    pub fn of(summary: &Summary) -> Measured {
        Measured {
            fingerprint: summary.fingerprint.to_string(),
            events: summary.events,
            names: summary.metrics.iter().map(|(name, _)| name.to_owned()).collect(),
            values: summary.metrics.iter().map(|(_, value)| value).collect(),
        }
    }

    /// The results as a run has them; `None` if the fingerprint is not one.
    pub fn summary(&self) -> Option<Summary> {
        let mut metrics = Metrics::default();
        for (name, value) in self.names.iter().zip(&self.values) {
            metrics.push(name.clone(), *value);
        }
        Some(Summary { fingerprint: self.fingerprint.parse().ok()?, events: self.events, metrics })
    }

    /// The value of a metric; `None` if it is missing.
    pub fn value(&self, name: &str) -> Option<f64> {
        match self.names.iter().position(|known| known == name) {
            Some(place) => self.values[place],
            None => unnamed(name),
        }
    }
}

/// Names that rows share, as a list.
mod names {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(names: &Arc<[String]>, serializer: S) -> Result<S::Ok, S::Error> {
        names.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[String]>, D::Error> {
        Vec::<String>::deserialize(deserializer).map(Arc::from)
    }
}

/// The reason for which a trial failed.
pub type Reason = String;

/// A part whose bytes were those that its digest was taken of when it was opened.
#[derive(Clone, Debug)]
pub struct Part {
    /// The folder of the sweep.
    dir: Dir,
    /// The path inside that folder.
    name: String,
}

impl Part {
    /// Opens a part by its path inside the folder of its sweep: compares all of its bytes with its digest.
    ///
    /// # Errors
    /// If they differ, or the file cannot be read.
    pub fn open(dir: &Dir, name: &str, digest: &Digest) -> Result<Part, Damage> {
        digest.check_in(dir, name)?;
        Ok(Part { dir: dir.clone(), name: name.to_owned() })
    }

    /// The path inside the folder of the sweep, such as `trials/part-00000000.parquet`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn bytes(&self) -> Result<Vec<u8>, Damage> {
        self.dir.read(&self.name).map_err(|error| self.damage(error))
    }

    /// The rows of all columns, or of some.
    fn rows(&self, columns: Option<&[&str]>) -> Result<Vec<RecordBatch>, Damage> {
        let read = self.reader().and_then(|mut reader| {
            columns::without_panics(|| {
                if let Some(names) = columns {
                    let mask = columns::named(reader.parquet_schema(), names.iter().copied());
                    reader = reader.with_projection(mask);
                }
                Ok(reader.build()?.collect::<Result<Vec<_>, _>>()?)
            })
        });
        read.map_err(|error| self.damage(error))
    }

    pub(crate) fn file(&self) -> io::Result<File> {
        self.dir.file(&self.name)
    }

    fn reader(&self) -> Result<ParquetRecordBatchReaderBuilder<File>, ParquetError> {
        let file = self.file()?;
        columns::without_panics(|| ParquetRecordBatchReaderBuilder::try_new(file))
    }

    fn damage(&self, why: impl ToString) -> Damage {
        Damage::new(&self.path(), why)
    }
}

/// Writes finished trials as a part, named by its path in the folder of the sweep. Returns its digest.
///
/// # Errors
/// If it cannot be written; then nothing is at that place.
pub fn write(dir: &Dir, name: &str, axes: &[Axis], rows: &[Row<Measured>]) -> Result<Digest, FolderError> {
    put(dir, name, || finished(axes, rows))
}

/// Writes failed trials as a part, as [`write()`].
///
/// # Errors
/// As there.
pub fn write_failed(
    dir: &Dir,
    name: &str,
    axes: &[Axis],
    rows: &[Row<Reason>],
) -> Result<Digest, FolderError> {
    put(dir, name, || failed(axes, rows))
}

/// Writes a table next to its place, and renames it.
fn put(
    dir: &Dir,
    name: &str,
    table: impl FnOnce() -> Result<RecordBatch, ArrowError>,
) -> Result<Digest, FolderError> {
    let (place, hidden) = (dir.path().join(name), beside(Path::new(name), "tmp"));
    let file = dir.new_file(&hidden, RIGHTS).map_err(|source| write_error(&place, source))?;
    let written = table().map_err(ParquetError::from).and_then(|rows| columns::write(file, &rows));
    let put = written.map_err(|source| FolderError::Table { path: place.clone(), source });
    let put = put.and_then(|digest| {
        dir.rename(&hidden, name).map_err(|source| write_error(&place, source)).map(|()| digest)
    });
    if put.is_err() {
        // The first error is reported.
        let _ = dir.remove_file(&hidden);
    }
    put
}

/// The columns that identify trials.
fn identity<R>(axes: &[Axis], rows: &[Row<R>]) -> (Vec<Field>, Vec<ArrayRef>) {
    let [key, point, discipline, qdisc, seed, ..] = DATASET.columns else {
        unreachable!("the data set has these columns")
    };
    let mut fields = vec![
        key.field(&DataType::Utf8),
        point.field(&DataType::UInt64),
        discipline.field(&DataType::Utf8),
        qdisc.field(&DataType::Utf8),
        seed.field(&DataType::UInt64),
    ];
    let mut columns = vec![
        text(rows, |row| format!("{:032x}", row.key)),
        whole(rows, |row| row.point),
        text(rows, |row| row.discipline.clone()),
        text(rows, |row| row.qdisc.clone()),
        whole(rows, |row| row.seed),
    ];
    for (place, axis) in axes.iter().enumerate() {
        let about =
            format!("The key {} of the scenario; null if it does not concern the discipline.", axis.key);
        let values: ArrayRef = match axis.unit {
            Some(_) => real(rows, |row| match &row.axes[place] {
                Some(Quantity::Number(number, _)) => Some(*number),
                _ => None,
            }),
            None => Arc::new(StringArray::from_iter(rows.iter().map(|row| match &row.axes[place] {
                Some(Quantity::Text(text)) => Some(text.as_str()),
                _ => None,
            }))),
        };
        let field = Field::new(&axis.column, values.data_type().clone(), true);
        fields.push(described(field, axis.unit.unwrap_or_default(), &about));
        columns.push(values);
    }
    (fields, columns)
}

fn finished(axes: &[Axis], rows: &[Row<Measured>]) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = identity(axes, rows);
    let [.., events, fingerprint] = DATASET.columns else { unreachable!("the data set has these columns") };
    fields.extend([events.field(&DataType::UInt64), fingerprint.field(&DataType::Utf8)]);
    arrays.push(whole(rows, |row| row.result.events));
    arrays.push(text(rows, |row| row.result.fingerprint.clone()));
    for (name, values) in metrics(rows) {
        let field = Field::new(&name, DataType::Float64, true);
        fields.push(match named(&name) {
            Some(MetricName { definition, .. }) => {
                described(field, definition.unit.symbol(), definition.description)
            }
            None => field,
        });
        arrays.push(real(&values, |value| *value));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// The metrics that any row has, with the value of each row. Their order depends on their names only, so
/// equal rows give equal columns. A metric is left out if all rows lack it, or if it is a number of drops and
/// zero in all rows.
fn metrics(rows: &[Row<Measured>]) -> Vec<(String, Vec<Option<f64>>)> {
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    // Rows of one scenario have the same names, mostly as one list.
    let mut last: Option<(&Arc<[String]>, Vec<usize>)> = None;
    for (number, row) in rows.iter().enumerate() {
        let names = &row.result.names;
        if last.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, names) && *known != names) {
            let places = names.iter().map(|name| {
                *place.entry(name).or_insert_with(|| {
                    found.push((name.clone(), vec![unnamed(name); rows.len()]));
                    found.len() - 1
                })
            });
            last = Some((names, places.collect()));
        }
        let places = last.iter().flat_map(|(_, places)| places);
        for (place, value) in places.zip(&row.result.values) {
            found[*place].1[number] = *value;
        }
    }
    found.retain(|(name, values)| values.iter().any(|value| *value != unnamed(name)));
    found.sort_by_cached_key(|(name, _)| {
        let MetricName { metric, source, port, class, .. } = match named(name) {
            Some(named) => named,
            None => return (usize::MAX, usize::MAX, name.clone()),
        };
        // Those of the whole run come first, then those of sources, classes and ports.
        let of = [source, class, port].iter().position(Option::is_some).map_or(0, |place| place + 1);
        let defined = METRICS.iter().position(|one| one.names.contains(&metric));
        (of, defined.unwrap_or(usize::MAX), name.clone())
    });
    found
}

fn failed(axes: &[Axis], rows: &[Row<Reason>]) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut columns) = identity(axes, rows);
    let [reason] = FAILED.columns else { unreachable!("the table of failures has this column") };
    fields.push(reason.field(&DataType::Utf8));
    columns.push(text(rows, |row| row.result.clone()));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// The identity of a trial in a part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    /// The key.
    pub key: u128,
    /// The number of the point.
    pub point: u64,
    /// The discipline as the scenario writes it.
    pub discipline: String,
    /// The seed.
    pub seed: u64,
}

/// The trials of a part, in the order of its rows.
///
/// # Errors
/// If the file cannot be read, or is not a part of a data set.
pub fn known(part: &Part) -> Result<Vec<Known>, Damage> {
    let mut found = Vec::new();
    let names = ["key", "point", "discipline", "seed"];
    for batch in part.rows(Some(&names))? {
        let column = |name: &str| batch.column_by_name(name).map(Arc::as_ref);
        let (Some(keys), Some(disciplines), Some(points), Some(seeds)) = (
            column("key").and_then(|column| column.as_string_opt::<i32>()),
            column("discipline").and_then(|column| column.as_string_opt::<i32>()),
            column("point").and_then(|column| column.as_primitive_opt::<UInt64Type>()),
            column("seed").and_then(|column| column.as_primitive_opt::<UInt64Type>()),
        ) else {
            return Err(part.damage("it has no columns key, point, discipline and seed"));
        };
        for number in 0..batch.num_rows() {
            let key = u128::from_str_radix(keys.value(number), 16)
                .map_err(|_| part.damage("it has a key that is not 32 hexadecimal digits"))?;
            let discipline = disciplines.value(number).to_owned();
            found.push(Known { key, point: points.value(number), discipline, seed: seeds.value(number) });
        }
    }
    Ok(found)
}

/// The columns of varied keys of a part: those between the seed and the number of events.
///
/// # Errors
/// If the file cannot be read.
pub fn axes(part: &Part) -> Result<Vec<Axis>, Damage> {
    let batches = part.rows(None)?;
    let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(Vec::new()) };
    let varied = schema.fields().iter().skip_while(|field| field.name() != "seed").skip(1);
    let varied = varied.take_while(|field| field.name() != "events");
    let axis = |field: &Arc<Field>| Axis {
        key: field.name().clone(),
        column: field.name().clone(),
        unit: (*field.data_type() == DataType::Float64).then_some("1"),
    };
    Ok(varied.map(axis).collect())
}

/// All trials of a part. `axes` are the columns of parameters; all other columns of numbers are metrics.
///
/// # Errors
/// If the file cannot be read, or does not have these columns.
pub fn read(part: &Part, axes: &[Axis]) -> Result<Vec<Row<Measured>>, Damage> {
    let mut rows = Vec::new();
    for batch in part.rows(None)? {
        append(&batch, axes, &mut rows)
            .map_err(|missing| part.damage(format!("it has no column {missing}, or one of another type")))?;
    }
    Ok(rows)
}

/// Adds the rows of a batch. The error is the name of a column that is missing.
fn append(batch: &RecordBatch, axes: &[Axis], rows: &mut Vec<Row<Measured>>) -> Result<(), String> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| name.to_owned());
    let texts = |name: &str| column(name)?.as_string_opt::<i32>().ok_or_else(|| name.to_owned());
    let wholes = |name: &str| column(name)?.as_primitive_opt::<UInt64Type>().ok_or_else(|| name.to_owned());
    let (keys, disciplines, qdiscs) = (texts("key")?, texts("discipline")?, texts("qdisc")?);
    let (points, seeds, events) = (wholes("point")?, wholes("seed")?, wholes("events")?);
    let fingerprints = texts("fingerprint")?;
    let fixed: Vec<&str> = DATASET.columns.iter().map(|column| column.name).collect();
    let schema = batch.schema();
    let is_metric = |name: &str| !fixed.contains(&name) && !axes.iter().any(|axis| axis.column == name);
    let metrics: Vec<_> = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .filter(|(field, _)| is_metric(field.name()))
        .filter_map(|(field, column)| Some((field.name(), column.as_primitive_opt::<Float64Type>()?)))
        .collect();
    let names: Arc<[String]> = metrics.iter().map(|(name, _)| (*name).clone()).collect();
    let of_axes: Vec<Vec<Option<Quantity>>> =
        axes.iter().map(|axis| values(column(&axis.column)?, axis)).collect::<Result<_, String>>()?;
    for number in 0..batch.num_rows() {
        let value =
            |column: &arrow_array::Float64Array| column.is_valid(number).then(|| column.value(number));
        rows.push(Row {
            key: u128::from_str_radix(keys.value(number), 16).map_err(|_| "key".to_owned())?,
            point: points.value(number),
            discipline: disciplines.value(number).to_owned(),
            qdisc: qdiscs.value(number).to_owned(),
            seed: seeds.value(number),
            axes: of_axes.iter().map(|values| values[number].clone()).collect(),
            result: Measured {
                fingerprint: fingerprints.value(number).to_owned(),
                events: events.value(number),
                names: Arc::clone(&names),
                values: metrics.iter().map(|(_, column)| value(column)).collect(),
            },
        });
    }
    Ok(())
}

/// One metric of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The number of the point.
    pub point: u64,
    /// The discipline as the scenario writes it.
    pub discipline: String,
    /// The seed.
    pub seed: u64,
    /// The value of each axis; `None` for an axis that does not concern this discipline.
    pub axes: Vec<Option<Quantity>>,
    /// The value of the metric; `None` if it is missing.
    pub value: Option<f64>,
}

/// A metric of all trials of a part. Other metrics are not read.
///
/// # Errors
/// If the file cannot be read, or does not have these columns.
pub fn samples(part: &Part, axes: &[Axis], metric: &str) -> Result<Vec<Sample>, Damage> {
    let mut names = vec!["point", "discipline", "seed", metric];
    names.extend(axes.iter().map(|axis| axis.column.as_str()));
    let mut samples = Vec::new();
    for batch in part.rows(Some(&names))? {
        let missing = |name: String| part.damage(format!("it has no column {name}, or one of another type"));
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| missing(name.to_owned()));
        let whole = |name: &str| {
            let column = column(name)?.as_primitive_opt::<UInt64Type>();
            column.ok_or_else(|| missing(name.to_owned()))
        };
        let (points, seeds) = (whole("point")?, whole("seed")?);
        let disciplines = column("discipline")?.as_string_opt::<i32>();
        let disciplines = disciplines.ok_or_else(|| missing("discipline".to_owned()))?;
        let of_axes: Vec<Vec<Option<Quantity>>> = axes
            .iter()
            .map(|axis| values(column(&axis.column)?, axis).map_err(missing))
            .collect::<Result<_, Damage>>()?;
        // A part without the metric has none, or only its default.
        let found = batch.column_by_name(metric).and_then(|column| column.as_primitive_opt::<Float64Type>());
        for number in 0..batch.num_rows() {
            let value = match found {
                Some(column) => column.is_valid(number).then(|| column.value(number)),
                None => unnamed(metric),
            };
            samples.push(Sample {
                point: points.value(number),
                discipline: disciplines.value(number).to_owned(),
                seed: seeds.value(number),
                axes: of_axes.iter().map(|values| values[number].clone()).collect(),
                value,
            });
        }
    }
    Ok(samples)
}

/// The names of the metrics of a part, in their order.
///
/// # Errors
/// If the file cannot be read.
pub fn metric_names(part: &Part) -> Result<Vec<String>, Damage> {
    let reader = part.reader().map_err(|error| part.damage(error))?;
    let fields = reader.schema().fields().iter().skip_while(|field| field.name() != "fingerprint").skip(1);
    Ok(fields.map(|field| field.name().clone()).collect())
}

/// The values of an axis.
fn values(column: &ArrayRef, axis: &Axis) -> Result<Vec<Option<Quantity>>, String> {
    let wrong = || axis.column.clone();
    Ok(match axis.unit {
        Some(unit) => {
            let numbers = column.as_primitive_opt::<Float64Type>().ok_or_else(wrong)?;
            numbers.iter().map(|number| Some(Quantity::Number(number?, unit))).collect()
        }
        None => {
            let texts = column.as_string_opt::<i32>().ok_or_else(wrong)?;
            texts.iter().map(|text| Some(Quantity::Text(text?.to_owned()))).collect()
        }
    })
}
