//! The metrics of the tables: their groups, headings and digits. The terminal and the report share them.

mod kind;
mod plan;

use std::borrow::Cow;

use self::plan::{COMPLETION_TIMES, Column, DETAILED, GROUPS, SWITCH};
use crate::metrics::is_carried;
use crate::table::{Estimate, Row};

pub use self::kind::{Kind, RATE, SIZE, TIME};

/// A column with its numbers as text.
pub struct Written {
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
    pub title: Cow<'static, str>,
    /// Its columns, left to right.
    pub columns: Vec<Written>,
}

/// The groups of columns for which any of these rows has a value.
pub fn groups(rows: &[&Row], ascii: bool, detailed: bool) -> Vec<Group> {
    let known = |column: &Column| rows.iter().any(|row| row.mean(&column.metric).is_some());
    let write = |title: Cow<'static, str>, columns: &[Column]| Group {
        title,
        columns: columns.iter().map(|column| column.write(columns, rows, ascii, detailed)).collect(),
    };
    let plan: &[(&str, &[Column])] = if detailed { &DETAILED } else { &GROUPS };
    let mut written = Vec::new();
    for (title, columns) in SWITCH.iter().chain(plan).filter(|(_, columns)| columns.iter().any(known)) {
        written.push(write(Cow::Borrowed(title), columns));
        if detailed && *title == COMPLETION_TIMES {
            let known = |class: &(String, [Column; 4])| class.1[1..].iter().any(known);
            let classes: Vec<(String, [Column; 4])> = classes(rows).into_iter().filter(known).collect();
            // A single class would repeat the group.
            let shown = if classes.len() > 1 { classes } else { Vec::new() };
            written.extend(shown.into_iter().map(|(title, columns)| write(Cow::Owned(title), &columns)));
        }
    }
    let hurst: Vec<Column> = hurst(rows).into_iter().filter(known).collect();
    if !hurst.is_empty() {
        written.push(write(Cow::Borrowed("Hurst parameter"), &hurst));
    }
    written
}

/// The Hurst parameter of each source that the metrics name.
fn hurst(rows: &[&Row]) -> Vec<Column> {
    let names = rows.first().into_iter().flat_map(|row| row.metrics.iter().map(|(name, _)| name));
    let column = |metric: &String| {
        let source = metric.strip_prefix("src.")?.strip_suffix(".hurst")?;
        let title = Cow::Owned(source.to_owned());
        Some(Column { title, metric: Cow::Owned(metric.clone()), kind: Kind::Index })
    };
    names.filter_map(column).collect()
}

/// Completion times by size, a group for each class that the metrics name.
fn classes(rows: &[&Row]) -> Vec<(String, [Column; 4])> {
    let names = rows.first().into_iter().flat_map(|row| row.metrics.iter().map(|(name, _)| name.as_str()));
    let class = |name: &str| {
        let class = name.strip_prefix("fct_")?.strip_suffix("_p50_s")?;
        let (word, size) = class.split_at_checked(2)?;
        let sign = match word {
            "le" => "up to",
            "gt" => "above",
            _ => return None,
        };
        let column = |title: &'static str| Column {
            title: Cow::Borrowed(title),
            metric: Cow::Owned(format!("fct_{class}_{title}_s")),
            kind: TIME,
        };
        // "30kB" becomes "30 kB".
        let digits = size.trim_end_matches(char::is_alphabetic);
        let title = format!("{sign} {digits} {}", &size[digits.len()..]);
        let [p50, p95, p99] = ["p50", "p95", "p99"].map(column);
        let metric = Cow::Owned(format!("flows_{class}_completed"));
        Some((title, [Column { title: Cow::Borrowed("n"), metric, kind: Kind::Number }, p50, p95, p99]))
    };
    names.filter_map(class).collect()
}

impl Column {
    /// Columns of one kind in a group share a unit, so that they compare. If `carried` is true, a quantile
    /// with too few values behind it is left out.
    fn write(&self, group: &[Column], rows: &[&Row], ascii: bool, carried: bool) -> Written {
        fn shown<'a>(row: &'a Row, metric: &str, carried: bool) -> Option<&'a Estimate> {
            row.metric(metric).filter(|_| !carried || is_carried(row, metric))
        }
        let alike = group.iter().filter(|column| column.kind == self.kind);
        let of = |column: &Column| -> Vec<f64> {
            rows.iter().filter_map(|row| shown(row, &column.metric, carried)?.mean).collect()
        };
        let (scale, unit) = self.kind.unit(alike.flat_map(of));
        let estimates: Vec<Option<&Estimate>> =
            rows.iter().map(|row| shown(row, &self.metric, carried)).collect();
        let unit = if ascii { unit.replace('µ', "u") } else { unit.to_owned() };
        let cells: Vec<String> =
            estimates.iter().map(|estimate| self.kind.cell(*estimate, scale, ascii)).collect();
        let heading = [self.title.clone().into_owned(), unit];
        let width = heading.iter().chain(&cells).map(|text| text.chars().count()).max().unwrap_or(0);
        Written { heading, cells, width }
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
        let row = Row { qdisc: "efd".into(), seeds: vec![1], metrics };
        let groups = groups(&[&row], true, true);
        let shown_found = groups.iter().flat_map(|group| &group.columns);
        let shown_found: Vec<String> =
            shown_found.map(|column| [column.heading.join(" "), column.cells.join("")].join(": ")).collect();
        assert_eq!(shown_found, ["mean flows: 4.50", "most flows: 24", "per flow B: 16.0"]);
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
        let row = Row { qdisc: "efd".into(), seeds: vec![1], metrics };
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
