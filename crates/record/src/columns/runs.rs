//! Tables over all runs: the summary and the metrics.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use giveway_measure::{Discipline, MetricName, Summary, Trial, named, unnamed};
use giveway_qdisc::Quantity;

use super::arrays::{real, text, whole};
use super::tables;

/// The summary: one row per run, a column for each parameter of any discipline, and one for each metric of
/// any run.
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
    push(qdisc.field(&DataType::Utf8), text(runs, |(trial, _)| &*trial.qdisc));
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
            Some(MetricName { definition, .. }) => {
                tables::described(field, definition.unit.symbol(), definition.description)
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

/// The column of a parameter: its name, its unit, and true if its values are texts. Equal names with
/// different units are different columns, since a limit may count packets or bytes.
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

/// The metrics in the long form: one row per metric and run.
pub(crate) fn metrics(runs: &[(Trial, Summary)]) -> Result<RecordBatch, ArrowError> {
    let all = runs.iter().flat_map(|(trial, run)| {
        run.metrics.iter().filter_map(move |(name, value)| Some((trial, name, named(name), value?)))
    });
    let rows: Vec<_> = all.collect();
    let maybe = |value: &dyn Fn(&MetricName<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(StringArray::from_iter(rows.iter().map(|(_, _, named, _)| value(named.as_ref()?))))
    };
    let unit =
        |named: &Option<MetricName<'_>>| named.map_or("1", |named| named.definition.unit.symbol()).to_owned();
    tables::METRICS.batch(vec![
        text(&rows, |(trial, ..)| &*trial.qdisc),
        whole(&rows, |(trial, ..)| trial.seed),
        maybe(&|named| named.source.map(str::to_owned)),
        maybe(&|named| named.port.map(str::to_owned)),
        maybe(&|named| named.class.map(str::to_owned)),
        text(&rows, |(_, name, named, _)| named.map_or(*name, |named| named.metric).to_owned()),
        real(&rows, |(.., value)| Some(*value)),
        text(&rows, |(_, _, named, _)| unit(named)),
    ])
}
