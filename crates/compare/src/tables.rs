//! The tables of both directions as differences to the baseline, for findings and for the recommendation.
//!
//! Disciplines have the same arrivals under each seed, so differences are taken seed by seed. Their interval
//! is computed for the mean difference (Student's t, 95 %).
//!
//! A gain counts if it is at least 2 %, has enough values behind it, and passes Holm's correction over all
//! differences among which a gain is looked for: of a hundred differences without a cause, five are outside
//! their interval. A loss counts as soon as it is outside its own interval, so that no cost is hidden.

use giveway_measure::figures::NumberStyle;
use giveway_measure::{
    Difference, DisciplineRow, Estimate, Table, behind, holm, is_carried, label, short_names,
};
use giveway_workload::Direction;

use super::link::Link;
use super::mode::word;

/// Smaller differences, as a share of the baseline's value, are not reported, even if they are certain.
pub(super) const WORTH: f64 = 0.02;
/// The probability of even one gain that is none.
const LEVEL: f64 = 0.05;
/// An imperceptible difference, seconds.
pub(super) const UNNOTICED: f64 = 0.001;
/// With fewer transfers there is no finding.
pub(super) const FEWEST: f64 = 5.0;

/// The sojourn time of small packets, in lists that do not depend on the number of packets.
/// [`Tables::carried`] replaces it by a quantile that enough packets are behind.
pub(super) const SMALL_PACKETS: &str = "small_sojourn_p99_s";
/// The quantiles of the sojourn time of small packets, the highest first.
pub(super) const SMALL_QUANTILES: [&str; 3] = [SMALL_PACKETS, "small_sojourn_p95_s", "small_sojourn_p50_s"];

/// The metrics in which a gain is looked for.
pub(super) const GAINS: [&str; 6] =
    ["page_load_p50_s", "page_load_p95_s", "fct_p50_s", "fct_p95_s", "voice_delay_p99_s", SMALL_PACKETS];

/// The metrics in which a loss is looked for: all those in which a gain counts, and more.
pub(super) const COSTS: [&str; 11] = [
    "fct_gt3MB_p50_s",
    "fct_le3MB_p50_s",
    "fct_p50_s",
    "fct_p95_s",
    "fct_p99_s",
    "page_load_p50_s",
    "page_load_p95_s",
    "voice_delay_p99_s",
    "voice_loss",
    SMALL_PACKETS,
    "flows_incomplete",
];

/// The tables of both directions. The first row of each is the baseline.
pub(super) struct Tables {
    tables: [(Direction, Table); 2],
    /// The spec of each discipline, with a short name that distinguishes it from the others. The baseline is
    /// named with its parameters.
    names: Vec<(String, String)>,
    /// The highest quantile of the sojourn time of small packets that all disciplines have enough packets
    /// for, in each direction.
    small: [&'static str; 2],
    /// Runs of each discipline.
    pub seeds: usize,
    /// Direction, metric and row of each gain or loss that passes the correction.
    certain: Vec<(Direction, &'static str, usize)>,
    /// The number of differences among which gains are looked for.
    pub looked_at: usize,
    /// The smallest number of values behind a median.
    fewest: f64,
}

/// The difference between a discipline and the baseline in one metric.
pub(super) struct Change<'a> {
    pub row: &'a DisciplineRow,
    pub before: f64,
    pub after: f64,
    /// Half the interval of the difference; `None` with one run.
    pub within: Option<f64>,
    /// True if it passes the correction, or has one run only.
    certain: bool,
}

impl Tables {
    /// The tables of both directions of a table with rows. A difference needs [`FEWEST`] values.
    pub fn new(table: &Table) -> Tables {
        Tables::of(table, &GAINS, FEWEST)
    }

    /// The tables of both directions, in which these metrics are looked at. A median needs `fewest` values
    /// behind it, and other quantiles as many as they always need. The same transfers are under each seed,
    /// so the difference of a single upload is known, too.
    pub fn of(table: &Table, metrics: &[&'static str], fewest: f64) -> Tables {
        let specs: Vec<&str> = table.rows.iter().map(|row| row.qdisc.as_str()).collect();
        let mut names: Vec<(String, String)> =
            specs.iter().map(|spec| (*spec).to_owned()).zip(short_names(&specs)).collect();
        if let Some((spec, name)) = names.first_mut() {
            // The size of the first queue decides all differences.
            name.clone_from(spec);
        }
        let tables = [Direction::Up, Direction::Down].map(|way| (way, table.at(&Link::port(way))));
        let small = [0, 1].map(|at: usize| highest_quantile(&tables[at].1.rows, fewest));
        let mut tested = Vec::new();
        for (direction, table) in &tables {
            for metric in metrics.iter().copied() {
                let metric = if metric == SMALL_PACKETS { small[*direction as usize] } else { metric };
                for at in 1..table.rows.len() {
                    let is_known = |at: usize| enough(&table.rows[at], metric, fewest);
                    let known = (is_known(0) && is_known(at)).then_some(());
                    let p_value = known.and_then(|()| {
                        Difference::between(table.rows[0].metric(metric)?, table.rows[at].metric(metric)?)?
                            .p_value()
                    });
                    tested.extend(p_value.map(|p_value| ((*direction, metric, at), p_value)));
                }
            }
        }
        let p_values: Vec<f64> = tested.iter().map(|(_, p_value)| *p_value).collect();
        let counts = holm(&p_values, LEVEL);
        let looked_at = tested.len();
        let certain = tested.into_iter().zip(counts).filter(|(_, counts)| *counts).map(|((what, _), _)| what);
        let seeds = table.rows.first().map_or(0, |row| row.seeds.len());
        Tables { certain: certain.collect(), tables, names, small, seeds, looked_at, fewest }
    }

    /// Both directions with their tables.
    pub fn iter(&self) -> impl Iterator<Item = &(Direction, Table)> {
        self.tables.iter()
    }

    /// The short name of a discipline.
    pub fn name<'a>(&'a self, qdisc: &'a str) -> &'a str {
        let named = self.names.iter().find(|(spec, _)| spec == qdisc);
        named.map_or(qdisc, |(_, name)| name)
    }

    /// The row of the baseline.
    pub fn baseline(&self, direction: Direction) -> &DisciplineRow {
        &self.table(direction).rows[0]
    }

    /// The table of one direction.
    pub fn table(&self, direction: Direction) -> &Table {
        &self.tables[direction as usize].1
    }

    /// The metric that stands for a metric in one direction: a lower quantile for the sojourn time of small
    /// packets, if too few packets are behind the 99th percentile, and the same for all others. A ping each
    /// second for a minute has a median and a 95th percentile only.
    pub fn carried(&self, direction: Direction, metric: &'static str) -> &'static str {
        if metric == SMALL_PACKETS { self.small[direction as usize] } else { metric }
    }

    /// The mean of a metric with the baseline; `None` if too few values are behind it.
    pub fn before(&self, direction: Direction, metric: &str) -> Option<f64> {
        let row = self.baseline(direction);
        row.metric(metric)?.mean.filter(|_| enough(row, metric, self.fewest))
    }

    /// The differences of all other disciplines to the baseline, without those that have too few values.
    pub fn changes(&self, direction: Direction, metric: &str) -> Vec<Change<'_>> {
        let rows = &self.table(direction).rows;
        let Some(base) = rows[0].metric(metric).filter(|_| enough(&rows[0], metric, self.fewest)) else {
            return Vec::new();
        };
        let certain = |at: usize| self.seeds < 2 || self.certain.contains(&(direction, metric, at));
        let others = rows.iter().enumerate().skip(1).filter(|(_, row)| enough(row, metric, self.fewest));
        others.filter_map(|(at, row)| Change::new(base, row, metric, certain(at))).collect()
    }
}

/// The highest quantile of the sojourn time of small packets that every row has enough packets for; the
/// lowest one if there is none.
fn highest_quantile(rows: &[DisciplineRow], fewest: f64) -> &'static str {
    let all_have = |metric: &&str| {
        rows.iter().all(|row| {
            row.metric(metric).is_some_and(|value| value.mean.is_some()) && enough(row, metric, fewest)
        })
    };
    let lowest = SMALL_QUANTILES[SMALL_QUANTILES.len() - 1];
    SMALL_QUANTILES.into_iter().find(all_have).unwrap_or(lowest)
}

/// True if enough values are behind a metric of a row: `fewest` for a median, more for higher quantiles.
fn enough(row: &DisciplineRow, metric: &str, fewest: f64) -> bool {
    is_carried(row, metric) && number_behind(row, metric).is_none_or(|count| count >= fewest)
}

/// The mean number of values behind a metric of a row; `None` for other metrics than quantiles.
pub(super) fn number_behind(row: &DisciplineRow, metric: &str) -> Option<f64> {
    behind(metric).and_then(|(count, _)| row.metric(&count)?.mean)
}

impl<'a> Change<'a> {
    fn new(base: &Estimate, row: &'a DisciplineRow, metric: &str, certain: bool) -> Option<Change<'a>> {
        let Difference { before, after, ci95, .. } = Difference::between(base, row.metric(metric)?)?;
        Some(Change { row, before, after, within: ci95, certain })
    }

    /// True if it is better, and that is certain.
    pub fn is_better(&self) -> bool {
        self.certain && self.before - self.after > WORTH * self.before
    }

    /// True if it is outside its interval and worse.
    pub fn is_worse(&self) -> bool {
        let loss = self.after - self.before;
        loss > self.within.unwrap_or(0.0) && loss > WORTH * self.before.abs()
    }

    /// The share of the baseline's value that is saved.
    pub fn gain(&self) -> f64 {
        (self.before - self.after) / self.before
    }

    /// The change of a metric as a clause: "the goodput upstream is 3.00 Mbit/s instead of 2.00 Mbit/s".
    pub fn clause(&self, metric: &str, direction: Direction) -> String {
        let (after, before) = (text(metric, self.after), text(metric, self.before));
        format!("the {} {} is {after} instead of {before}", label(metric), word(direction))
    }

    /// The difference with its interval, both in the unit of the metric that suits them.
    pub fn difference(&self, metric: &str) -> String {
        let change = self.after - self.before;
        let word = if change < 0.0 { "less" } else { "more" };
        let (one, unit) = unit(metric, change.abs().max(self.within.unwrap_or(0.0)));
        let space = if unit.is_empty() { "" } else { " " };
        match self.within {
            Some(within) => {
                format!("{} ± {}{space}{unit} {word}", digits(change.abs() / one), digits(within / one))
            }
            None => format!("{}{space}{unit} {word}", digits(change.abs() / one)),
        }
    }
}

/// The unit that suits a value of a metric: its size and its name.
fn unit(metric: &str, value: f64) -> (f64, &'static str) {
    NumberStyle::of(metric).unit(std::iter::once(value.abs()))
}

/// A value of a metric with its unit.
pub(super) fn text(metric: &str, value: f64) -> String {
    let (one, unit) = unit(metric, value);
    format!("{} {unit}", digits(value / one)).trim_end().to_owned()
}

/// A number with three significant digits.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Names in a sentence.
pub(super) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [several @ .., last] => format!("{} and {last}", several.join(", ")),
    }
}

/// A text with a capital at its beginning.
pub(super) fn capital(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}
