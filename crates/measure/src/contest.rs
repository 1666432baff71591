//! A contest of senders: every pair of them shares its own link, and a matrix shows who gets how much.
//!
//! The senders of a pair are two groups of sources, and the pair of a sender with itself is one group with
//! both.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::table::{DisciplineRow, Estimate, Table};
use crate::terminal::Style;

/// The senders of a contest, and the names under which the metrics of their pairs are found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contest {
    /// The names, in the order of rows and columns.
    pub senders: Vec<String>,
    /// For each row and column, the group of sources of the row's sender on the link that it shares with the
    /// column's.
    pub groups: Vec<Vec<String>>,
    /// For each row and column, the port that both share.
    pub ports: Vec<Vec<String>>,
}

impl Contest {
    /// The share of `one` in what arrives from it and `other`, from 0 to 1.
    fn share(&self, row: &DisciplineRow, one: usize, other: usize) -> Estimate {
        let goodput =
            |one: usize, other: usize| row.metric(&format!("src.{}.goodput_bps", self.groups[one][other]));
        let (Some(mine), Some(theirs)) = (goodput(one, other), goodput(other, one)) else {
            return Estimate::over(vec![None; row.seeds.len()]);
        };
        let share = |(mine, theirs): (&Option<f64>, &Option<f64>)| {
            let (mine, theirs) = ((*mine)?, (*theirs)?);
            (mine + theirs > 0.0).then(|| mine / (mine + theirs))
        };
        Estimate::over(mine.per_seed.iter().zip(&theirs.per_seed).map(share).collect())
    }

    /// Jain's index of the flows of a sender that shares its link with others of its kind.
    fn alike<'a>(&self, row: &'a DisciplineRow, one: usize) -> Option<&'a Estimate> {
        row.metric(&format!("src.{}.jain", self.groups[one][one]))
    }

    /// A metric of the link of a pair, such as `sojourn_p50_s`.
    fn of_link<'a>(
        &self,
        row: &'a DisciplineRow,
        one: usize,
        other: usize,
        metric: &str,
    ) -> Option<&'a Estimate> {
        row.metric(&format!("at.{}.{metric}", self.ports[one][other]))
    }

    /// The matrices of a table as text: for each discipline the shares, and the median sojourn times.
    pub fn render(&self, table: &Table, style: Style) -> String {
        let sign = if style.ascii { "+-" } else { "±" };
        let mut text = String::new();
        for row in &table.rows {
            let shares = self.matrix(|one, other| match one == other {
                true => cell(self.alike(row, one), 1.0, |_| 2, sign),
                false => {
                    cell(Some(&self.share(row, one, other)), 0.01, |share| usize::from(share < 10.0), sign)
                }
            });
            let delays = self.matrix(|one, other| match one <= other {
                true => cell(self.of_link(row, one, other, "sojourn_p50_s"), 1e-3, three_digits, sign),
                false => String::new(),
            });
            let qdisc = &row.qdisc;
            text.push_str(&format!("{qdisc}: share of the row's sender beside the column's, %\n{shares}\n"));
            text.push_str(&format!("{qdisc}: median sojourn time on the link of both, ms\n{delays}\n"));
        }
        text.push_str("On the diagonal of shares is Jain's index of two alike: 1 is an equal share.\n");
        text
    }

    /// A square of cells with the names of the senders on two sides.
    fn matrix(&self, cell: impl Fn(usize, usize) -> String) -> String {
        const BETWEEN: usize = 2;
        let count = self.senders.len();
        let cells: Vec<Vec<String>> =
            (0..count).map(|one| (0..count).map(|other| cell(one, other)).collect()).collect();
        let length = |text: &str| text.chars().count();
        let first = self.senders.iter().map(|name| length(name)).max().unwrap_or_default();
        // The words of a long name stand below each other.
        let heads: Vec<Vec<&str>> = self.senders.iter().map(|name| name.split(' ').collect()).collect();
        let widths: Vec<usize> = (0..count)
            .map(|at| {
                let words = heads[at].iter().map(|word| length(word));
                let below = cells.iter().map(|row| length(&row[at]));
                words.chain(below).max().unwrap_or_default() + BETWEEN
            })
            .collect();
        let lines = heads.iter().map(Vec::len).max().unwrap_or_default();
        let mut text = String::new();
        let mut line = |name: &str, cells: &dyn Fn(usize) -> String| {
            let cells: String =
                (0..count).map(|at| format!("{:>width$}", cells(at), width = widths[at])).collect();
            text.push_str(format!("{name:<first$}{cells}").trim_end());
            text.push('\n');
        };
        for at in 0..lines {
            line("", &|column| {
                let words = &heads[column];
                (at + words.len()).checked_sub(lines).map_or("", |word| words[word]).to_owned()
            });
        }
        for (name, row) in self.senders.iter().zip(&cells) {
            line(name, &|column| row[column].clone());
        }
        text
    }

    /// A sentence about each discipline: how far shares are from equal ones, and whose are the extremes.
    pub fn findings(&self, table: &Table) -> Vec<String> {
        table.rows.iter().filter_map(|row| self.finding(row)).collect()
    }

    /// The mean share of each sender over its rivals, in the order of the senders, from 0 to 1.
    pub fn mean_shares(&self, row: &DisciplineRow) -> Vec<Option<f64>> {
        self.shares(row).iter().map(|line| mean(line.iter().copied())).collect()
    }

    /// The mean distance of the shares from 0.5, over all pairs of different senders.
    pub fn distance(&self, row: &DisciplineRow) -> Option<f64> {
        mean(self.shares(row).iter().flatten().map(|share| share.map(|share| (share - 0.5).abs())))
    }

    fn finding(&self, row: &DisciplineRow) -> Option<String> {
        let distance = self.distance(row)?;
        let means = self.mean_shares(row).into_iter().zip(&self.senders);
        let means: Vec<(f64, &String)> = means.filter_map(|(share, name)| Some((share?, name))).collect();
        let most = means.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
        let least = means.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
        Some(format!(
            "{}: shares are {:.0} points from equal ones on average. {} has the most, {:.0} % of what it and its rival get, and {} the \
             least, {:.0} %.",
            row.qdisc,
            100.0 * distance,
            most.1,
            100.0 * most.0,
            least.1,
            100.0 * least.0
        ))
    }

    /// The shares under one discipline as JSON: an object for each row, with an object for each column that
    /// has `mean`, `ci95` and `per_seed`.
    pub fn to_json(&self, row: &DisciplineRow) -> Value {
        let all = || self.senders.iter().enumerate();
        let of_row = |one| -> Map<String, Value> {
            let others = all().filter(|(other, _)| *other != one);
            others.map(|(other, name)| (name.clone(), json!(self.share(row, one, other)))).collect()
        };
        Value::Object(all().map(|(one, name)| (name.clone(), Value::Object(of_row(one)))).collect())
    }

    /// The mean shares under one discipline, by row and column, from 0 to 1. The diagonal is missing.
    pub fn shares(&self, row: &DisciplineRow) -> Vec<Vec<Option<f64>>> {
        let count = self.senders.len();
        let mean = |one, other| if one == other { None } else { self.share(row, one, other).mean };
        (0..count).map(|one| (0..count).map(|other| mean(one, other)).collect()).collect()
    }
}

/// The mean of the known values.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let known: Vec<f64> = values.flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// The decimals of a number with three digits, or two below ten.
fn three_digits(number: f64) -> usize {
    match number {
        number if number < 10.0 => 2,
        number if number < 100.0 => 1,
        _ => 0,
    }
}

/// Mean and half the width of the interval. `decimals` applies to a mean.
fn cell(estimate: Option<&Estimate>, scale: f64, decimals: impl Fn(f64) -> usize, sign: &str) -> String {
    let Some((estimate, mean)) = estimate.and_then(|each| Some((each, each.mean? / scale))) else {
        return "-".to_owned();
    };
    let decimals = decimals(mean);
    match estimate.ci95 {
        None => format!("{mean:.decimals$}"),
        Some(half) => format!("{mean:.decimals$}{sign}{:.decimals$}", half / scale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fingerprint, Metrics, Summary, Trial};

    fn contest() -> Contest {
        let square = |cells: [[&str; 2]; 2]| cells.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        Contest {
            senders: vec!["reno".into(), "bbr version 3".into()],
            groups: square([
                ["reno beside itself", "reno beside bbr"],
                ["bbr beside reno", "bbr beside itself"],
            ]),
            ports: square([["a->b", "c->d"], ["c->d", "e->f"]]),
        }
    }

    fn run(seed: u64, goodputs: [f64; 2]) -> (Trial, Summary) {
        let mut metrics = Metrics::default();
        metrics.push("src.reno beside bbr.goodput_bps", Some(goodputs[0]));
        metrics.push("src.bbr beside reno.goodput_bps", Some(goodputs[1]));
        metrics.push("src.reno beside itself.jain", Some(0.99));
        metrics.push("at.c->d.sojourn_p50_s", Some(0.0123));
        let summary = Summary { fingerprint: Fingerprint::EMPTY, events: 0, metrics };
        (Trial { qdisc: "fifo".into(), seed }, summary)
    }

    /// 1 of 4 and 3 of 4 Mbit/s: shares of 25 and 75 %.
    #[test]
    fn the_matrix_has_shares_and_delays() {
        let table = Table::new(&[run(1, [1e6, 3e6])]);
        insta::assert_snapshot!(contest().render(&table, Style::default()), @r"
        fifo: share of the row's sender beside the column's, %
                                 bbr
                             version
                       reno        3
        reno           0.99       25
        bbr version 3    75        -

        fifo: median sojourn time on the link of both, ms
                                 bbr
                             version
                       reno        3
        reno              -     12.3
        bbr version 3              -

        On the diagonal of shares is Jain's index of two alike: 1 is an equal share.
        ");
        assert_eq!(contest().shares(&table.rows[0]), [[None, Some(0.25)], [Some(0.75), None]]);
        insta::assert_snapshot!(contest().findings(&table).join("\n"), @r"fifo: shares are 25 points from equal ones on average. bbr version 3 has the most, 75 % of what it and its rival get, and reno the least, 25 %.");
    }

    /// A seed in which nothing arrived has no share, and does not count as zero.
    #[test]
    fn a_seed_without_traffic_does_not_count() {
        let table = Table::new(&[run(1, [1e6, 3e6]), run(2, [0.0, 0.0])]);
        let share = contest().share(&table.rows[0], 0, 1);
        assert_eq!((share.mean, share.per_seed), (Some(0.25), vec![Some(0.25), None]));
    }
}
