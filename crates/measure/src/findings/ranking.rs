//! The rows of a table by one metric, and the words about them.

use crate::difference::Difference;
use crate::figures::NumberStyle;
use crate::metrics::{Better, better, label};
use crate::names::short_names;
use crate::table::{DisciplineRow, Table};

/// The mean of a metric in a row, with its interval and its unit.
pub(super) fn value(row: &DisciplineRow, metric: &str) -> String {
    let (estimate, kind) = (row.metric(metric), NumberStyle::of(metric));
    let (scale, unit) = kind.unit(estimate.and_then(|e| e.mean).into_iter());
    let number = kind.cell(estimate, scale, false).replace('±', " ± ");
    let unit = match (&*number, unit) {
        ("1", "slots") => "slot",
        ("1", "packets") => "packet",
        ("1", "flows") => "flow",
        ("1", "cells") => "cell",
        _ => unit,
    };
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// The rows of a table with a metric, the best mean first.
#[derive(Debug)]
pub(super) struct Ranking<'a> {
    pub rows: Vec<(&'a DisciplineRow, String)>,
    /// Number of rows at the top without a measurable difference to the first.
    pub leaders: usize,
    /// True if every row has an interval.
    pub certain: bool,
}

impl<'a> Ranking<'a> {
    /// Ranks the rows that have the metric; `None` if there are none.
    pub fn new(table: &'a Table, metric: &str) -> Option<Ranking<'a>> {
        let specs: Vec<&str> = table.rows.iter().map(|row| row.qdisc.as_str()).collect();
        let named = table.rows.iter().zip(short_names(&specs));
        let mut rows: Vec<(&DisciplineRow, String)> =
            named.filter(|(row, _)| row.mean(metric).is_some()).collect();
        // Stable, so that equals stay in the order of the scenario.
        rows.sort_by(|(a, _), (b, _)| {
            let means = [a, b].map(|row| row.mean(metric).expect("rows without the metric were left out"));
            let order = means[0].total_cmp(&means[1]);
            if better(metric) == Better::Low { order } else { order.reverse() }
        });
        let first = rows.first()?.0.metric(metric)?;
        // Values with equal texts count as equal, even if digits that are not shown differ.
        let shown = value(rows[0].0, metric);
        let same = |(row, _): &&(&DisciplineRow, String)| {
            let difference = row.metric(metric).and_then(|other| Difference::of(metric, first, other));
            difference.is_some_and(|found| !found.is_measurable()) || value(row, metric) == shown
        };
        let leaders = rows.iter().take_while(same).count();
        let certain = rows.iter().all(|(row, _)| row.metric(metric).is_some_and(|e| e.ci95.is_some()));
        Some(Ranking { leaders, certain, rows })
    }

    /// The rows without a measurable difference to the best; none if that is all rows.
    pub fn leaders(&self) -> Vec<&'a DisciplineRow> {
        let leading = if self.leaders < self.rows.len() { self.leaders } else { 0 };
        self.rows[..leading].iter().map(|(row, _)| *row).collect()
    }

    /// The ranking as a sentence.
    pub fn sentence(&self, metric: &str) -> String {
        let noun = label(metric);
        let most = if better(metric) == Better::Low { "lowest" } else { "highest" };
        let (best, rest) = self.rows.split_at(self.leaders);
        let with = |place: &(&DisciplineRow, String)| format!("{} with {}", value(place.0, metric), place.1);
        let others = match rest {
            [] => String::new(),
            [only] => format!("; {}", with(only)),
            [next, .., last] => format!("; the next is {}, the last {}", with(next), with(last)),
        };
        match best {
            [only] if rest.is_empty() => format!("The {noun} is {}.", with(only)),
            [only] => format!("{} has the {most} {noun}: {}{others}.", only.1, value(only.0, metric)),
            several => {
                let names: Vec<&str> = several.iter().map(|(_, name)| name.as_str()).collect();
                let range = self.range(metric, several);
                match (rest, self.certain) {
                    ([], true) => format!("No measurable difference in the {noun}: {range}."),
                    ([], false) => format!("No difference in the {noun}: {range}."),
                    _ => format!(
                        "{} have the {most} {noun} ({range}), without a measurable difference between them{others}.",
                        list(&names)
                    ),
                }
            }
        }
    }

    /// The values from the best of these rows to the worst.
    pub fn range(&self, metric: &str, rows: &[(&DisciplineRow, String)]) -> String {
        let ends =
            [rows.first(), rows.last()].map(|end| value(end.expect("there are several rows").0, metric));
        if ends[0] == ends[1] { ends[0].clone() } else { format!("{} to {}", ends[0], ends[1]) }
    }
}

/// The sentence on the uncertainty.
pub(super) fn certainty(table: &Table) -> String {
    match table.rows.iter().map(|row| row.seeds.len()).min().unwrap_or(0) {
        0 | 1 => {
            "There is one seed, and so no confidence interval: small differences may be chance. Run more seeds."
                .to_owned()
        }
        seeds => format!(
            "Means over {seeds} seeds; ± is half the width of the 95 % confidence interval. Differences are taken seed by \
             seed, those of times as ratios, and reported only if their own interval excludes equality."
        ),
    }
}

/// "a", "a and b", "a, b and c".
pub(super) fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
