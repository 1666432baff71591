//! Tables of the classes of disciplines, one for each level of the tree.

use std::collections::BTreeMap;

use crate::figures::NumberStyle;
use crate::metrics::short_label;
use crate::table::{DisciplineRow, Estimate, Table};
use crate::terminal::Style;

/// Maximum number of classes of a level that are listed one by one. Of more, the extremes are.
const MAX: usize = 16;

/// The classes of one discipline, by level, with the columns of their tables.
struct Classes<'a> {
    /// Metrics of each class, in the order in which the discipline visits them.
    all: Vec<(&'a str, BTreeMap<&'a str, &'a Estimate>)>,
}

/// The metrics of the columns.
const COLUMNS: [&str; 7] =
    ["rate_bps", "ceil_bps", "throughput_bps", "borrowed", "drop_share", "wait_mean_s", "wait_max_s"];

/// The heading of a column with its unit, and the size of the unit.
fn heading(metric: &str) -> (String, f64) {
    let name = format!("class.line.{metric}");
    let (scale, unit) = NumberStyle::of(&name).unit(std::iter::empty());
    (format!("{} {unit}", short_label(&name)), scale)
}

impl Table {
    /// The classes of the disciplines as text: a table for each discipline and each level of its tree. Empty
    /// if no discipline has classes.
    pub fn render_classes(&self, style: Style) -> String {
        self.rows.iter().map(|row| of_row(row, style)).collect()
    }
}

fn of_row(row: &DisciplineRow, style: Style) -> String {
    let classes = Classes::of(row);
    let levels = classes.all.iter().map(|(path, _)| level(path)).max().unwrap_or(0);
    let mut text = String::new();
    for level in 1..=levels {
        text.push_str(&format!(
            "\n{}: {}",
            row.qdisc.split(' ').next().unwrap_or_default(),
            classes.title(level)
        ));
        text.push_str(&classes.render(level, style));
    }
    text
}

/// Level of a class, by its path: 1 directly at the link.
fn level(path: &str) -> usize {
    path.matches('/').count() + 1
}

impl<'a> Classes<'a> {
    fn of(row: &'a DisciplineRow) -> Classes<'a> {
        let mut all: Vec<(&str, BTreeMap<&str, &Estimate>)> = Vec::new();
        for (name, estimate) in &row.metrics {
            let Some((path, metric)) = name.strip_prefix("class.").and_then(|rest| rest.rsplit_once('.'))
            else {
                continue;
            };
            // The metrics of a class follow each other.
            if all.last().is_none_or(|(last, _)| *last != path) {
                all.push((path, BTreeMap::new()));
            }
            if let Some((_, metrics)) = all.last_mut() {
                metrics.insert(metric, estimate);
            }
        }
        Classes { all }
    }

    /// Numbers of the classes of a level.
    fn at(&self, wanted: usize) -> Vec<usize> {
        (0..self.all.len()).filter(|class| level(self.all[*class].0) == wanted).collect()
    }

    fn mean(&self, class: usize, metric: &str) -> f64 {
        self.all[class].1.get(metric).and_then(|estimate| estimate.mean).unwrap_or_default()
    }

    fn title(&self, level: usize) -> String {
        let classes = self.at(level);
        let sent: f64 = classes.iter().map(|class| self.mean(*class, "throughput_bps")).sum();
        let noun = if classes.len() == 1 { "class" } else { "classes" };
        format!("level {level}, {} {noun}, {:.3} Mbit/s together\n", classes.len(), sent / 1e6)
    }

    /// The classes that are listed, each with a remark.
    fn listed(&self, level: usize) -> Vec<(usize, String)> {
        let mut classes = self.at(level);
        if classes.len() <= MAX {
            return classes.into_iter().map(|class| (class, String::new())).collect();
        }
        let order = |metric: &'static str| {
            move |one: &usize, other: &usize| self.mean(*one, metric).total_cmp(&self.mean(*other, metric))
        };
        classes.sort_by(order("throughput_bps"));
        let by_rate = [(0, "least sent"), (classes.len() / 2, "median"), (classes.len() - 1, "most sent")];
        let mut listed: Vec<(usize, String)> =
            by_rate.into_iter().map(|(at, remark)| (classes[at], remark.to_owned())).collect();
        for metric in ["wait_mean_s", "drop_share"] {
            let remark = format!("maximum {}", short_label(&format!("class.line.{metric}")));
            listed.extend(classes.iter().copied().max_by(order(metric)).map(|class| (class, remark)));
        }
        listed
    }

    fn render(&self, level: usize, style: Style) -> String {
        let sign = if style.ascii { "+-" } else { "\u{b1}" };
        let listed = self.listed(level);
        let known = |metric: &&str| listed.iter().any(|(class, _)| self.all[*class].1.contains_key(metric));
        let columns: Vec<(&str, (String, f64))> =
            COLUMNS.into_iter().filter(known).map(|metric| (metric, heading(metric))).collect();
        let mut rows = vec![
            std::iter::once(String::new())
                .chain(columns.iter().map(|(_, (heading, _))| heading.clone()))
                .collect::<Vec<String>>(),
        ];
        for (class, remark) in listed {
            let (path, metrics) = &self.all[class];
            let name = if remark.is_empty() { (*path).to_owned() } else { format!("{path} ({remark})") };
            let cells =
                columns.iter().map(|(metric, (_, scale))| cell(metrics.get(metric).copied(), *scale, sign));
            rows.push(std::iter::once(name).chain(cells).collect());
        }
        aligned(&rows)
    }
}

/// Rows with the first column to the left and all others to the right.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let length = |text: &String| text.chars().count();
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| length(&row[column])).max().unwrap_or_default())
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    rows.iter().map(line).collect()
}

/// A mean with its confidence interval, if it is not a constant, in three digits.
fn cell(estimate: Option<&Estimate>, scale: f64, sign: &str) -> String {
    let Some((estimate, mean)) = estimate.and_then(|each| Some((each, each.mean? / scale))) else {
        return "-".to_owned();
    };
    let decimals = match mean.abs() {
        small if small < 10.0 => 2,
        medium if medium < 100.0 => 1,
        _ => 0,
    };
    match estimate.ci95 {
        Some(half) if half > 0.0 => format!("{mean:.decimals$}{sign}{:.decimals$}", half / scale),
        _ => format!("{mean:.decimals$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fingerprint, Metrics, Summary, Trial};

    /// Two seeds of a tree with a class of `homes` homes, of which each sends its number in Mbit/s.
    fn table(homes: u64) -> Table {
        let run = |seed: u64| {
            let mut metrics = Metrics::default();
            metrics.push("goodput_bps", Some(1e6));
            metrics.push("class.line.rate_bps", Some(1e8));
            metrics.push("class.line.throughput_bps", Some(5e7 + seed as f64 * 1e6));
            for home in 1..=homes {
                let mut push =
                    |name: &str, value| metrics.push(format!("class.line/home{home}.{name}"), value);
                push("rate_bps", Some(2e6));
                push("throughput_bps", Some(home as f64 * 1e6));
                push("borrowed", Some(0.25));
                push("drop_share", (home > 1).then_some(0.01));
                push("wait_mean_s", Some(0.001 * (homes - home) as f64));
            }
            (
                Trial { qdisc: "htb classes []".into(), seed },
                Summary { fingerprint: Fingerprint::EMPTY, events: 0, metrics },
            )
        };
        Table::new(&[run(1), run(2)])
    }

    const STYLE: Style = Style { width: 100, ascii: true, detailed: false };

    #[test]
    fn a_level_has_a_table() {
        insta::assert_snapshot!(table(2).render_classes(STYLE), @r"
        htb: level 1, 1 class, 51.500 Mbit/s together
              rate Mbit/s  sent Mbit/s
        line          100    51.5+-6.4

        htb: level 2, 2 classes, 3.000 Mbit/s together
                    rate Mbit/s  sent Mbit/s  borrowed %  drops %  mean wait ms
        line/home1         2.00         1.00        25.0        -          1.00
        line/home2         2.00         2.00        25.0     1.00          0.00
        ");
    }

    #[test]
    fn of_many_classes_the_extremes_are_listed() {
        insta::assert_snapshot!(table(40).render_classes(STYLE), @r"
        htb: level 1, 1 class, 51.500 Mbit/s together
              rate Mbit/s  sent Mbit/s
        line          100    51.5+-6.4

        htb: level 2, 40 classes, 820.000 Mbit/s together
                                        rate Mbit/s  sent Mbit/s  borrowed %  drops %  mean wait ms
        line/home1 (least sent)                2.00         1.00        25.0        -          39.0
        line/home21 (median)                   2.00         21.0        25.0     1.00          19.0
        line/home40 (most sent)                2.00         40.0        25.0     1.00          0.00
        line/home1 (maximum mean wait)         2.00         1.00        25.0        -          39.0
        line/home40 (maximum drops)            2.00         40.0        25.0     1.00          0.00
        ");
    }
}
