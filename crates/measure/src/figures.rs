//! What the tables show: which metrics, in which groups, under which headings, and how a number is written. The terminal
//! and the report use the same.

use std::borrow::Cow;

use crate::table::{Estimate, Row};

/// A column: its heading, what it shows, and how.
pub(crate) struct Column {
    pub title: Cow<'static, str>,
    pub metric: Cow<'static, str>,
    pub kind: Kind,
}

/// What kind of number a column has.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// A share, shown in percent.
    Percent,
    /// 0 to 1, three decimals.
    Index,
    /// A number of things.
    Count(&'static str),
    /// A quantity with a ladder of units: how much one of the unit is, and its name.
    Ladder(&'static [(f64, &'static str)]),
}

/// Times, from nanoseconds to seconds.
pub const TIME: Kind = Kind::Ladder(&[(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")]);
/// Rates, from bit/s to Gbit/s.
pub const RATE: Kind = Kind::Ladder(&[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s")]);
/// Sizes, from bytes to gigabytes.
pub const SIZE: Kind = Kind::Ladder(&[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")]);

const fn column(title: &'static str, metric: &'static str, kind: Kind) -> Column {
    Column { title: Cow::Borrowed(title), metric: Cow::Borrowed(metric), kind }
}

const CALLS: (&str, &[Column]) = (
    "calls",
    &[
        column("mean", "voice_delay_mean_s", TIME),
        column("p99", "voice_delay_p99_s", TIME),
        column("lost", "voice_loss", Kind::Percent),
    ],
);

const RUNS: (&str, &[Column]) = (
    "runs to a next node",
    &[
        column("mean", "run_length_mean", Kind::Count("pkts")),
        column("of a packet", "run_length_weighted", Kind::Count("pkts")),
    ],
);
const DISPERSION: (&str, &[Column]) = (
    "IDC, 10 ms",
    &[
        column("in", "arrivals_idc_10ms", Kind::Count("")),
        column("onward", "downstream_idc_10ms", Kind::Count("")),
    ],
);
const PEAKEDNESS: (&str, &[Column]) = (
    "peakedness",
    &[
        column("in", "arrivals_peakedness", Kind::Count("")),
        column("onward", "downstream_peakedness", Kind::Count("")),
    ],
);

/// Of a switch, in slots.
const SWITCH: [(&str, &[Column]); 5] = [
    (
        "cells per slot",
        &[column("offered", "offered", Kind::Index), column("crossed", "throughput", Kind::Index)],
    ),
    (
        "waiting",
        &[
            column("mean", "wait_mean_slots", Kind::Count("slots")),
            column("short", "short_wait_mean_slots", Kind::Count("slots")),
            column("p99", "short_wait_p99_slots", Kind::Count("slots")),
            column("long", "long_wait_mean_slots", Kind::Count("slots")),
            column("p99", "long_wait_p99_slots", Kind::Count("slots")),
        ],
    ),
    (
        "delay",
        &[
            column("fabric", "delay_mean_slots", Kind::Count("slots")),
            column("with link", "through_mean_slots", Kind::Count("slots")),
        ],
    ),
    (
        "outputs",
        &[
            column("blocked", "output_blocked", Kind::Percent),
            column("unmatched", "output_unmatched", Kind::Percent),
        ],
    ),
    ("backlog", &[column("at the end", "backlog_cells", Kind::Count("cells"))]),
];

/// Columns that belong together.
const GROUPS: [(&str, &[Column]); 11] = [
    (
        "link",
        &[
            column("used", "utilization", Kind::Percent),
            column("goodput", "goodput_bps", RATE),
            column("Jain", "jain", Kind::Index),
        ],
    ),
    (
        RESPONSES,
        &[
            column("p50", "fct_p50_s", TIME),
            column("p95", "fct_p95_s", TIME),
            column("p99", "fct_p99_s", TIME),
        ],
    ),
    (
        "page load",
        &[
            column("p50", "page_load_p50_s", TIME),
            column("p95", "page_load_p95_s", TIME),
            column("not done", "pages_incomplete", Kind::Count("")),
        ],
    ),
    (
        "unfinished",
        &[column("", "flows_incomplete", Kind::Count("flows")), column("", "bytes_incomplete", SIZE)],
    ),
    CALLS,
    (
        "sojourn time",
        &[
            column("small p99", "small_sojourn_p99_s", TIME),
            column("p50", "sojourn_p50_s", TIME),
            column("p99", "sojourn_p99_s", TIME),
        ],
    ),
    (
        "delay of a flow",
        &[column("median", "flow_delay_p50_s", TIME), column("p95", "flow_delay_p95_s", TIME)],
    ),
    (
        "queue",
        &[
            column("mean", "backlog_mean_packets", Kind::Count("pkts")),
            column("drops", "drops", Kind::Count("")),
            column("marks", "marks", Kind::Count("")),
            column("table", "flow_table_mean", Kind::Count("flows")),
        ],
    ),
    RUNS,
    DISPERSION,
    PEAKEDNESS,
];

/// What is told about one direction of a link, in the order in which it matters to its users.
const DETAILED: [(&str, &[Column]); 10] = [
    (
        "page load",
        &[
            column("p50", "page_load_p50_s", TIME),
            column("p95", "page_load_p95_s", TIME),
            column("p99", "page_load_p99_s", TIME),
            column("not done", "pages_incomplete", Kind::Count("")),
        ],
    ),
    (
        RESPONSES,
        &[
            column("p50", "fct_p50_s", TIME),
            column("p95", "fct_p95_s", TIME),
            column("p99", "fct_p99_s", TIME),
            column("not done", "flows_incomplete", Kind::Count("")),
        ],
    ),
    CALLS,
    (
        "sojourn time",
        &[
            column("small p50", "small_sojourn_p50_s", TIME),
            column("p99", "small_sojourn_p99_s", TIME),
            column("all p50", "sojourn_p50_s", TIME),
            column("p99", "sojourn_p99_s", TIME),
        ],
    ),
    (
        "link",
        &[
            column("used", "utilization", Kind::Percent),
            column("through", "goodput_bps", RATE),
            column("Jain", "jain_large", Kind::Index),
        ],
    ),
    (
        "queue",
        &[
            column("mean", "backlog_mean_packets", Kind::Count("pkts")),
            column("drops", "drops", Kind::Count("")),
            column("marks", "marks", Kind::Count("")),
        ],
    ),
    (
        "state",
        &[
            column("mean", "flow_table_mean", Kind::Count("flows")),
            column("most", "flow_table_max", Kind::Count("flows")),
            column("per flow", "flow_table_entry_bytes", SIZE),
        ],
    ),
    RUNS,
    DISPERSION,
    PEAKEDNESS,
];

/// The group that sizes follow where they are told.
const RESPONSES: &str = "completion time";

/// A column with its numbers written out.
pub struct Written {
    /// Its title and its unit.
    pub heading: [String; 2],
    /// One for each row.
    pub cells: Vec<String>,
    /// Of the widest of these, in characters.
    pub width: usize,
}

/// Written columns under one title.
pub struct Group {
    /// The title above its columns.
    pub title: Cow<'static, str>,
    /// Its columns, left to right.
    pub columns: Vec<Written>,
}

/// All groups that these rows have something in. What no row has would only take room: completion times where nothing is
/// transferred, a table of flows.
pub fn groups(rows: &[&Row], ascii: bool, detailed: bool) -> Vec<Group> {
    let known = |column: &Column| rows.iter().any(|row| row.mean(&column.metric).is_some());
    let write = |title: Cow<'static, str>, columns: &[Column]| Group {
        title,
        columns: columns.iter().map(|column| column.write(columns, rows, ascii)).collect(),
    };
    let plan: &[(&str, &[Column])] = if detailed { &DETAILED } else { &GROUPS };
    let mut written = Vec::new();
    for (title, columns) in SWITCH.iter().chain(plan).filter(|(_, columns)| columns.iter().any(known)) {
        written.push(write(Cow::Borrowed(title), columns));
        if detailed && *title == RESPONSES {
            let known = |class: &(String, [Column; 3])| class.1.iter().any(known);
            let classes: Vec<(String, [Column; 3])> = classes(rows).into_iter().filter(known).collect();
            // The only class would say the same again.
            let told = if classes.len() > 1 { classes } else { Vec::new() };
            written.extend(told.into_iter().map(|(title, columns)| write(Cow::Owned(title), &columns)));
        }
    }
    let hurst: Vec<Column> = hurst(rows).into_iter().filter(known).collect();
    if !hurst.is_empty() {
        written.push(write(Cow::Borrowed("Hurst parameter"), &hurst));
    }
    written
}

/// How self-similar each source is, a column for each that the metrics name.
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
fn classes(rows: &[&Row]) -> Vec<(String, [Column; 3])> {
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
        // "30kB" as people write it.
        let digits = size.trim_end_matches(char::is_alphabetic);
        let title = format!("{sign} {digits} {}", &size[digits.len()..]);
        Some((title, ["p50", "p95", "p99"].map(column)))
    };
    names.filter_map(class).collect()
}

impl Column {
    /// Columns of one kind in a group share a unit, so that they compare.
    fn write(&self, group: &[Column], rows: &[&Row], ascii: bool) -> Written {
        let alike = group.iter().filter(|column| column.kind == self.kind);
        let means = alike.flat_map(|column| rows.iter().filter_map(|row| row.metric(&column.metric)?.mean));
        let (scale, unit) = self.kind.unit(means);
        let estimates: Vec<Option<&Estimate>> = rows.iter().map(|row| row.metric(&self.metric)).collect();
        let unit = if ascii { unit.replace('µ', "u") } else { unit.to_owned() };
        let cells: Vec<String> =
            estimates.iter().map(|estimate| self.kind.cell(*estimate, scale, ascii)).collect();
        let heading = [self.title.clone().into_owned(), unit];
        let width = heading.iter().chain(&cells).map(|text| text.chars().count()).max().unwrap_or(0);
        Written { heading, cells, width }
    }
}

impl Kind {
    /// How much one of the unit is, and its name. The smallest number sets the unit, unless that makes the largest
    /// unreadable.
    pub fn unit(self, means: impl Iterator<Item = f64>) -> (f64, &'static str) {
        let ladder = match self {
            Kind::Percent => return (0.01, "%"),
            Kind::Index => return (1.0, ""),
            Kind::Count(unit) => return (1.0, unit),
            Kind::Ladder(ladder) => ladder,
        };
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for mean in means.filter(|mean| *mean > 0.0) {
            least = least.min(mean);
            most = most.max(mean);
        }
        let fits = |(one, _): &&(f64, &str)| *one <= least;
        let smallest = ladder.iter().rfind(fits).map_or(ladder[0].0, |(one, _)| *one);
        let readable = |(one, _): &&(f64, &str)| *one >= smallest && most / one < 1e5;
        let nothing_to_show = least.is_infinite();
        let found = if nothing_to_show { None } else { ladder.iter().find(readable) };
        *found.unwrap_or(if nothing_to_show { &ladder[ladder.len() / 2] } else { &ladder[ladder.len() - 1] })
    }

    /// A number as it stands in its cell: mean and half width of the interval, with the same decimals.
    pub fn cell(self, estimate: Option<&Estimate>, scale: f64, ascii: bool) -> String {
        let Some((estimate, mean)) = estimate.and_then(|e| e.mean.map(|mean| (e, mean / scale))) else {
            return "-".to_owned();
        };
        let decimals = self.decimals(mean);
        match estimate.ci95 {
            None => format!("{mean:.decimals$}"),
            Some(half) => {
                let sign = if ascii { "+-" } else { "±" };
                format!("{mean:.decimals$}{sign}{half:.decimals$}", half = half / scale)
            }
        }
    }

    /// Three significant digits; counts that are whole stay whole.
    fn decimals(self, value: f64) -> usize {
        match self {
            Kind::Index => 3,
            Kind::Percent => 1,
            Kind::Count(_) if value.fract() == 0.0 || value >= 1000.0 => 0,
            _ if value == 0.0 || value >= 100.0 => 0,
            _ if value >= 10.0 => 1,
            _ if value >= 1.0 => 2,
            _ => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a discipline remembers: how many flows on average, how many at most, and bytes for each.
    #[test]
    fn the_state_of_a_discipline() {
        let one = |value: f64| Estimate { mean: Some(value), ci95: None, per_seed: vec![Some(value)] };
        let metrics = [("flow_table_mean", 4.5), ("flow_table_max", 24.0), ("flow_table_entry_bytes", 16.0)];
        let metrics = metrics.map(|(name, value)| (name.to_owned(), one(value))).into();
        let row = Row { qdisc: "efd".into(), seeds: vec![1], metrics };
        let groups = groups(&[&row], true, true);
        let told = groups.iter().flat_map(|group| &group.columns);
        let told: Vec<String> =
            told.map(|column| [column.heading.join(" "), column.cells.join("")].join(": ")).collect();
        assert_eq!(told, ["mean flows: 4.50", "most flows: 24", "per flow B: 16.0"]);
        assert_eq!(groups[0].title, "state");
    }

    /// Where bursts were measured: the groups of a port, and the sources that there is enough of.
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
        let told: Vec<String> = groups(&[&row], true, false)
            .iter()
            .flat_map(|group| group.columns.iter().map(move |column| (group, column)))
            .map(|(group, column)| {
                format!("{}/{}: {}", group.title, column.heading.join(" ").trim_end(), column.cells.join(""))
            })
            .collect();
        assert_eq!(
            told,
            [
                "runs to a next node/mean pkts: 1.25",
                "runs to a next node/of a packet pkts: 3",
                "IDC, 10 ms/in: 12.2",
                "IDC, 10 ms/onward: 8",
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
