//! The score of a discipline: how much it shortens the times that users wait for.
//!
//! The score under a seed is the mean, over all these times ([`TIMES`], in each direction, if enough values
//! are behind them), of the logarithm of the time divided by the baseline's. So a score is the logarithm of a
//! geometric mean of ratios, and no question counts twice as much because its times are longer. A millisecond
//! is added to each time, because a smaller difference is imperceptible. Small packets are often few, such as
//! twenty pings, and their sojourn time is then a lower quantile ([`Tables::carried`]).
//!
//! Scores cannot be distinguished if their difference is within its interval (paired by seed, 95 %) or below
//! 2 %.

use giveway_disciplines::Needs;
use giveway_measure::{DisciplineRow, Estimate, Table};
use giveway_workload::Direction;

use super::super::pair::{Pair, shapes};
use super::super::tables::{SMALL_PACKETS, Tables, UNNOTICED, WORTH, list};
use super::commands;
use super::target::Target;

/// The times that users wait for.
pub(super) const TIMES: [&str; 8] = [
    "page_load_p50_s",
    "page_load_p95_s",
    "fct_p50_s",
    "fct_p95_s",
    "fct_le3MB_p50_s",
    "fct_gt3MB_p50_s",
    "voice_delay_p99_s",
    SMALL_PACKETS,
];

/// A discipline that may be recommended.
pub(super) struct Candidate<'a> {
    pub row: &'a DisciplineRow,
    pub pair: &'a Pair,
    /// Its score under each seed; the baseline's is 0.
    pub scores: Vec<f64>,
}

/// The baseline, and the disciplines that a target can have, the most promising first.
pub(super) struct Field<'a> {
    pub baseline: Candidate<'a>,
    pub others: Vec<Candidate<'a>>,
    /// Better disciplines that the target does not have, as a sentence.
    pub refused: Option<String>,
}

/// The field of a comparison; `None` without a time to compare.
pub(super) fn field<'a>(tables: &'a Tables, pairs: &'a [Pair], target: Target) -> Option<Field<'a>> {
    let rows = &tables.table(Direction::Up).rows;
    let mut candidates = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let pair = pairs.iter().find(|pair| pair.name() == row.qdisc)?;
        candidates.push(Candidate { row, pair, scores: scores(tables, at)? });
    }
    let mut candidates = candidates.into_iter();
    let baseline = candidates.next()?;
    let usable = candidates.filter(|one| one.pair.iter().all(|spec| spec.needs() == Needs::Nothing));
    let (mut others, missing): (Vec<_>, Vec<_>) =
        usable.partition(|one| commands::can_have(target, one.pair));
    // Among those as good as the best, one that shapes by itself comes first: it needs one command.
    let best = others.iter().min_by(|a, b| mean(&a.scores).total_cmp(&mean(&b.scores)));
    let best = best.map(|best| best.scores.clone()).unwrap_or_default();
    let is_worse = |one: &Candidate<'_>| !as_good(&best, &one.scores);
    let rank = |one: &Candidate<'_>| (is_worse(one), !is_worse(one) && !one.pair.iter().all(shapes));
    others.sort_by(|a, b| rank(a).cmp(&rank(b)).then(mean(&a.scores).total_cmp(&mean(&b.scores))));
    let better =
        |one: &&Candidate<'_>| mean(&one.scores) < mean(&best).min(0.0) && !as_good(&best, &one.scores);
    let names: Vec<String> =
        missing.iter().filter(better).map(|one| tables.name(&one.row.qdisc).to_owned()).collect();
    let refused = (!names.is_empty())
        .then(|| format!("{} would be better, but {target} does not have it.", list(&names)));
    Some(Field { baseline, others, refused })
}

/// The score of each discipline over all seeds as a ratio to the baseline, with its short name; `None` for a
/// discipline without a time to compare. The baseline has 1.
pub fn ranking(table: &Table) -> Vec<(String, Option<f64>)> {
    let tables = Tables::new(table);
    let name = |row: &DisciplineRow| tables.name(&row.qdisc).to_owned();
    let rows = table.rows.iter().enumerate();
    rows.map(|(at, row)| (name(row), scores(&tables, at).map(|scores| libm::exp(mean(&scores))))).collect()
}

/// The score of a row under each seed; `None` without a time to compare.
pub(super) fn scores(tables: &Tables, at: usize) -> Option<Vec<f64>> {
    let mut logarithms: Vec<Vec<f64>> = vec![Vec::new(); tables.seeds];
    for direction in [Direction::Up, Direction::Down] {
        for metric in times(tables, direction) {
            let rows = &tables.table(direction).rows;
            let values =
                |row: &DisciplineRow| row.metric(metric).map(|value: &Estimate| value.per_seed.clone());
            let (Some(before), Some(after)) = (values(&rows[0]), values(&rows[at])) else { continue };
            for ((of_seed, before), after) in logarithms.iter_mut().zip(before).zip(after) {
                let ratio =
                    before.zip(after).map(|(before, after)| (after + UNNOTICED) / (before + UNNOTICED));
                of_seed.extend(ratio.map(libm::log));
            }
        }
    }
    logarithms
        .iter()
        .all(|of_seed| !of_seed.is_empty())
        .then(|| logarithms.iter().map(|one| mean(one)).collect())
}

/// The times of one direction that were measured often enough. Small packets count where no stream looks like
/// a call, which has most of them otherwise.
fn times(tables: &Tables, direction: Direction) -> Vec<&'static str> {
    let known = |metric: &str| tables.before(direction, metric).is_some();
    let counts = |metric: &&str| *metric != SMALL_PACKETS || !known("voice_delay_p99_s");
    let times = TIMES.into_iter().filter(counts).map(|metric| tables.carried(direction, metric));
    times.filter(|metric| known(metric)).collect()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// True if the second score cannot be distinguished from the first, or differs by too little.
pub(super) fn as_good(one: &[f64], other: &[f64]) -> bool {
    let pairs = one.iter().zip(other).map(|(one, other)| Some(other - one)).collect();
    let difference = Estimate::over(pairs);
    let change = difference.mean.unwrap_or(0.0).abs();
    change <= difference.ci95.unwrap_or(0.0) || change < WORTH
}

/// The geometric mean of ratios in percent, and its interval in parentheses, from their logarithms.
pub(super) fn percent(scores: &[f64]) -> (String, String) {
    let over = Estimate::over(scores.iter().map(|score| Some(*score)).collect());
    let percent = |logarithm: f64| 100.0 * libm::exp(logarithm);
    let typical = over.mean.unwrap_or(0.0);
    let whole = |logarithm: f64| format!("{:.0}", percent(logarithm));
    let ends = over.ci95.map(|half| (whole(typical - half), whole(typical + half)));
    // An interval without width in whole percent says nothing.
    let interval = ends.filter(|(low, high)| low != high);
    let interval =
        interval.map_or(String::new(), |(low, high)| format!(" (95 % interval {low} to {high} %)"));
    (format!("{} %", whole(typical)), interval)
}
