//! The metrics of the tables: their groups, headings and digits. The terminal and the report share them.

mod number_style;
mod plan;

use self::plan::{COMPLETION_TIMES, DETAILED, GROUPS, SWITCH};
use crate::metrics::{Unit, is_carried, named, short_label, size_class};
use crate::table::{DisciplineRow, Estimate};

pub use self::number_style::{NumberStyle, RATE, TIME};

/// A column with its numbers as text.
pub struct TextColumn {
    /// The lines of the heading: title and unit.
    pub heading: [String; 2],
    /// The text of each row.
    pub cells: Vec<String>,
    /// The width of the widest text, characters.
    pub width: usize,
}

/// Columns under one title.
pub struct Group {
    /// The title above its columns.
    pub title: String,
    /// Its columns, left to right.
    pub columns: Vec<TextColumn>,
}

/// The groups of columns for which any of these rows has a value.
pub fn groups(rows: &[&DisciplineRow], ascii: bool, detailed: bool) -> Vec<Group> {
    let known = |metric: &str| rows.iter().any(|row| row.mean(metric).is_some());
    let write = |title: &str, columns: &[Column]| Group {
        title: title.to_owned(),
        columns: columns.iter().map(|column| column.write(columns, rows, ascii, detailed)).collect(),
    };
    let plan: &[(&str, &[&str])] = if detailed { &DETAILED } else { &GROUPS };
    let mut written = Vec::new();
    let known_groups =
        SWITCH.iter().chain(plan).filter(|(_, metrics)| metrics.iter().any(|name| known(name)));
    for (title, metrics) in known_groups {
        written.push(write(title, &columns(title, metrics)));
        if detailed && *title == COMPLETION_TIMES {
            let known = |class: &(String, [String; 4])| class.1[1..].iter().any(|name| known(name));
            let classes: Vec<(String, [String; 4])> = classes(rows).into_iter().filter(known).collect();
            // A single class would repeat the group.
            let shown = if classes.len() > 1 { classes } else { Vec::new() };
            written.extend(shown.iter().map(|(title, metrics)| write(title, &columns(title, metrics))));
        }
    }
    let hurst: Vec<Column> = hurst(rows).into_iter().filter(|column| known(&column.metric)).collect();
    if !hurst.is_empty() {
        written.push(write("Hurst parameter", &hurst));
    }
    written
}

/// A column: its heading, its metric, and the kind of its numbers.
struct Column {
    title: String,
    metric: String,
    kind: NumberStyle,
}

/// The columns of a group, with the short labels of their metrics. A heading leaves out what the title of the
/// group, or the heading before, has said already.
fn columns(title: &str, metrics: &[impl AsRef<str>]) -> Vec<Column> {
    let mut said = title.to_owned();
    let column = |metric: &str| {
        let label = short_label(metric);
        let first = said.split(' ').next().unwrap_or_default();
        let rest = label.strip_prefix(first).and_then(|rest| rest.strip_prefix(' '));
        let heading = if label == title { "" } else { rest.unwrap_or(&label) };
        let column =
            Column { title: heading.to_owned(), metric: metric.to_owned(), kind: NumberStyle::of(metric) };
        said = label;
        column
    };
    metrics.iter().map(AsRef::as_ref).map(column).collect()
}

/// The Hurst parameter of each source that the metrics name.
fn hurst(rows: &[&DisciplineRow]) -> Vec<Column> {
    let names = rows.first().into_iter().flat_map(|row| row.metrics.iter().map(|(name, _)| name));
    let column = |metric: &String| {
        let source = metric.strip_prefix("src.")?.strip_suffix(".hurst")?;
        Some(Column { title: source.to_owned(), metric: metric.clone(), kind: NumberStyle::Index })
    };
    names.filter_map(column).collect()
}

/// Completion times by size, a title with metrics for each class that the metrics name.
fn classes(rows: &[&DisciplineRow]) -> Vec<(String, [String; 4])> {
    let names = rows.first().into_iter().flat_map(|row| row.metrics.iter().map(|(name, _)| name.as_str()));
    let class = |name: &str| {
        let class = name.strip_prefix("fct_")?.strip_suffix("_p50_s")?;
        let title = size_class(class)?;
        let [p50, p95, p99] = ["p50", "p95", "p99"].map(|quantile| format!("fct_{class}_{quantile}_s"));
        Some((title, [format!("flows_{class}_completed"), p50, p95, p99]))
    };
    names.filter_map(class).collect()
}

impl Column {
    /// Columns of one kind in a group share a unit, so that they compare. If `carried` is true, a quantile
    /// with too few values behind it is left out.
    fn write(&self, group: &[Column], rows: &[&DisciplineRow], ascii: bool, carried: bool) -> TextColumn {
        fn shown<'a>(row: &'a DisciplineRow, metric: &str, carried: bool) -> Option<&'a Estimate> {
            row.metric(metric).filter(|_| !carried || is_carried(row, metric))
        }
        let alike = group.iter().filter(|column| column.kind == self.kind);
        let of = |column: &Column| -> Vec<f64> {
            rows.iter().filter_map(|row| shown(row, &column.metric, carried)?.mean).collect()
        };
        let (scale, mut unit) = self.kind.unit(alike.flat_map(of));
        if self.title.is_empty() && unit.is_empty() {
            unit = named(&self.metric).map_or(Unit::Number, |named| named.definition.unit).symbol();
        }
        let estimates: Vec<Option<&Estimate>> =
            rows.iter().map(|row| shown(row, &self.metric, carried)).collect();
        let unit = if ascii { unit.replace('µ', "u") } else { unit.to_owned() };
        let cells: Vec<String> =
            estimates.iter().map(|estimate| self.kind.cell(*estimate, scale, ascii)).collect();
        let heading = [self.title.clone(), unit];
        let width = heading.iter().chain(&cells).map(|text| text.chars().count()).max().unwrap_or(0);
        TextColumn { heading, cells, width }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state of a discipline: mean and maximum number of flows, and bytes per flow.
    #[test]
    fn the_state_of_a_discipline() {
        let one = |value: f64| Estimate { mean: Some(value), ci95: None, per_seed: vec![Some(value)] };
        let metrics = [("flow_table_mean", 4.5), ("flow_table_max", 24.0), ("flow_table_entry_bytes", 16.0)];
        let metrics = metrics.map(|(name, value)| (name.to_owned(), one(value))).into();
        let row = DisciplineRow { qdisc: "efd".into(), seeds: vec![1], metrics };
        let groups = groups(&[&row], true, true);
        let shown_found = groups.iter().flat_map(|group| &group.columns);
        let shown_found: Vec<String> =
            shown_found.map(|column| [column.heading.join(" "), column.cells.join("")].join(": ")).collect();
        assert_eq!(shown_found, ["table flows: 4.50", "max flows: 24", "per flow B: 16.0"]);
        assert_eq!(groups[0].title, "state");
    }

    /// With measured bursts: the groups of a port, and the sources with enough packets.
    #[test]
    fn burstiness_has_columns_where_it_is_measured() {
        let one = |value| Estimate { mean: value, ci95: None, per_seed: vec![value] };
        let metrics = [
            ("run_length_mean", Some(1.25)),
            ("run_length_weighted", Some(3.0)),
            ("arrivals_idc_10ms", Some(12.25)),
            ("downstream_idc_10ms", Some(8.0)),
            ("src.background.hurst", Some(0.8123)),
            ("src.background.hurst_rs", Some(0.7)),
            ("src.calls.hurst", None),
        ];
        let metrics = metrics.map(|(name, value)| (name.to_owned(), one(value))).into();
        let row = DisciplineRow { qdisc: "efd".into(), seeds: vec![1], metrics };
        let shown_found: Vec<String> = groups(&[&row], true, false)
            .iter()
            .flat_map(|group| group.columns.iter().map(move |column| (group, column)))
            .map(|(group, column)| {
                format!("{}/{}: {}", group.title, column.heading.join(" ").trim_end(), column.cells.join(""))
            })
            .collect();
        assert_eq!(
            shown_found,
            [
                "runs to a next hop/mean pkts: 1.25",
                "runs to a next hop/of a packet pkts: 3",
                "IDC, 10 ms/in: 12.2",
                "IDC, 10 ms/out: 8",
                "Hurst parameter/background: 0.812",
            ]
        );
    }

    /// The smallest number sets the unit, unless the largest would have more than five digits.
    #[test]
    fn units_suit_the_column() {
        let unit = |means: &[f64]| TIME.unit(means.iter().copied()).1;
        assert_eq!(unit(&[0.0052, 0.9]), "ms");
        assert_eq!(unit(&[0.000_012, 0.35]), "ms");
        assert_eq!(unit(&[0.000_012, 0.035]), "µs");
        assert_eq!(unit(&[2.0, 9.0]), "s");
        assert_eq!(unit(&[0.0, 0.0]), "ms");
        assert_eq!(unit(&[5_000_000.0]), "s");
    }
}
