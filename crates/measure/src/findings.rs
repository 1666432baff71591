//! Findings: the results of a table as sentences.
//!
//! Disciplines have the same arrivals under each seed, so differences are taken seed by seed, and of times
//! as ratios ([`Difference`](crate::difference::Difference)).

mod crossbar;
mod ranking;

use crate::metrics::label;
use crate::table::{DisciplineRow, Table};

use self::ranking::{Ranking, certainty, list, value};

/// Metrics that users notice, in the order of the sentences.
const BENEFITS: [&str; 5] = ["page_load_p50_s", "fct_p50_s", "fct_p99_s", SMALL_PACKETS, "jain"];

const SMALL_PACKETS: &str = "small_sojourn_p99_s";
/// The metric that replaces the sojourn time of small packets if there are none.
const ALL_PACKETS: &str = "sojourn_p99_s";

/// Metrics that may become worse.
const COSTS: [&str; 3] = ["goodput_bps", "flows_incomplete", "bytes_incomplete"];

/// The findings of a table: the best discipline for each metric, its cost, and the uncertainty.
pub fn findings(table: &Table) -> Vec<String> {
    if crossbar::is_crossbar(table) {
        return crossbar::findings(table);
    }
    let known = |metric: &'static str| Some((metric, Ranking::new(table, metric)?));
    let instead = |metric: &'static str| match known(metric) {
        None if metric == SMALL_PACKETS => known(ALL_PACKETS),
        found => found,
    };
    let benefits: Vec<(&str, Ranking<'_>)> = BENEFITS.into_iter().filter_map(instead).collect();
    let mut sentences: Vec<String> =
        benefits.iter().map(|(metric, ranking)| ranking.sentence(metric)).collect();
    if table.rows.len() > 1 {
        let leaders: Vec<&DisciplineRow> =
            benefits.iter().flat_map(|(_, ranking)| ranking.leaders()).collect();
        sentences.extend(COSTS.into_iter().filter_map(|metric| cost(table, metric, &leaders)));
    } else {
        sentences
            .extend(COSTS.into_iter().filter_map(known).map(|(metric, ranking)| ranking.sentence(metric)));
    }
    if sentences.is_empty() {
        return vec!["No metric was measured that could be compared.".to_owned()];
    }
    sentences.push(certainty(table));
    sentences
}

/// The disciplines of a table without a measurable difference to the best in this metric, in the order of
/// their means; none if it was not measured.
pub fn leaders<'a>(table: &'a Table, metric: &str) -> Vec<&'a str> {
    let Some(ranking) = Ranking::new(table, metric) else { return Vec::new() };
    ranking.rows[..ranking.leaders].iter().map(|(row, _)| row.qdisc.as_str()).collect()
}

/// The cost of the leaders in this metric, or its ranking if there are no leaders; `None` if it was not
/// measured.
fn cost(table: &Table, metric: &str, leaders: &[&DisciplineRow]) -> Option<String> {
    let ranking = Ranking::new(table, metric)?;
    let mut costs: Vec<String> = Vec::new();
    for (row, name) in &ranking.rows[ranking.leaders..] {
        if leaders.iter().any(|leader| leader.qdisc == row.qdisc) {
            costs.push(format!("{} with {name}", value(row, metric)));
        }
    }
    let (best, name) = &ranking.rows[0];
    let noun = label(metric);
    // Without a difference, the sentence on the number of transfers is enough.
    if costs.is_empty() && metric == "bytes_incomplete" {
        return None;
    }
    Some(match costs.as_slice() {
        [] if ranking.leaders == ranking.rows.len() && ranking.certain => {
            format!("No measurable difference in the {noun}: {}.", ranking.range(metric, &ranking.rows))
        }
        [] if leaders.is_empty() => ranking.sentence(metric),
        [] => format!(
            "These disciplines have no measurable cost in the {noun}; the best value is {} with {name}.",
            value(best, metric)
        ),
        costs => {
            let costs = list(&costs.iter().map(String::as_str).collect::<Vec<_>>());
            let best = format!("compared with {} with {name}", value(best, metric));
            // One seed does not prove a cost.
            match ranking.certain {
                true => format!("Cost: the {noun} is {costs}, {best}."),
                false => format!("The {noun} is {costs}, {best}."),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fingerprint, Metrics, Summary, Trial};

    /// A metric with its value for each seed.
    type Seeds<'a> = (&'a str, &'a [f64]);

    /// Runs of these disciplines.
    fn table(values: &[(&str, &[Seeds<'_>])]) -> Table {
        let mut runs = Vec::new();
        for (qdisc, metrics) in values {
            for seed in 0..metrics[0].1.len() {
                let mut named = Metrics::default();
                metrics.iter().for_each(|(name, values)| named.push(*name, Some(values[seed])));
                let trial = Trial { qdisc: (*qdisc).to_owned(), seed: seed as u64 + 1 };
                runs.push((trial, Summary { fingerprint: Fingerprint::EMPTY, events: 0, metrics: named }));
            }
        }
        Table::new(&runs)
    }

    /// Three seeds, a little apart: intervals of ± 2.48 % of the mean.
    fn about(mean: f64) -> [f64; 3] {
        [0.99, 1.0, 1.01].map(|factor| mean * factor)
    }

    #[test]
    fn one_is_ahead_and_pays_for_it() {
        let table = table(&[
            ("fifo limit 300p", &[("fct_p50_s", &about(0.4)), ("goodput_bps", &about(9.9e6))]),
            ("drr limit 300p", &[("fct_p50_s", &about(0.06)), ("goodput_bps", &about(9.8e6))]),
            ("efd limit 300p", &[("fct_p50_s", &about(0.05)), ("goodput_bps", &about(9.0e6))]),
        ]);
        insta::assert_snapshot!(findings(&table).join("\n"), @r"
        efd has the lowest median flow completion time: 50.0 ± 1.2 ms; the next is 60.0 ± 1.5 ms with drr, the last 400 ± 10 ms with fifo.
        Cost: the goodput is 9.00 ± 0.22 Mbit/s with efd, compared with 9.90 ± 0.25 Mbit/s with fifo.
        Means over 3 seeds; ± is half the width of the 95 % confidence interval. Differences are taken seed by seed, those of times as ratios, and reported only if their own interval excludes equality.
        ");
    }

    #[test]
    fn some_have_no_measurable_difference() {
        let table = table(&[
            ("fifo", &[("small_sojourn_p99_s", &about(0.4)), ("flows_incomplete", &[3.0, 4.0, 3.0])]),
            (
                "drr",
                &[("small_sojourn_p99_s", &[0.0052, 0.005, 0.0051]), ("flows_incomplete", &[3.0, 4.0, 3.0])],
            ),
            ("efd", &[("small_sojourn_p99_s", &about(0.005)), ("flows_incomplete", &[3.0, 4.0, 3.0])]),
        ]);
        insta::assert_snapshot!(findings(&table).join("\n"), @r"
        efd and drr have the lowest 99th percentile of the sojourn times of small packets (5.00 ± 0.12 ms to 5.10 ± 0.25 ms), without a measurable difference between them; 400 ± 10 ms with fifo.
        No measurable difference in the number of unfinished transfers: 3.33 ± 1.43.
        Means over 3 seeds; ± is half the width of the 95 % confidence interval. Differences are taken seed by seed, those of times as ratios, and reported only if their own interval excludes equality.
        ");
    }

    #[test]
    fn nobody_is_ahead() {
        let table =
            table(&[("fifo", &[("fct_p99_s", &about(2.0))]), ("drr", &[("fct_p99_s", &[2.03, 1.99, 2.01])])]);
        insta::assert_snapshot!(findings(&table).join("\n"), @r"
        No measurable difference in the 99th percentile of the flow completion times: 2.00 ± 0.05 s to 2.01 ± 0.05 s.
        Means over 3 seeds; ± is half the width of the 95 % confidence interval. Differences are taken seed by seed, those of times as ratios, and reported only if their own interval excludes equality.
        ");
    }

    /// The intervals of the means overlap, 1.00 ± 0.25 and 0.95 ± 0.24, but each seed has the same difference
    /// of 5 %.
    #[test]
    fn a_difference_under_every_seed_is_measurable() {
        let table = table(&[
            ("fifo", &[("fct_p50_s", &[0.9, 1.0, 1.1])]),
            ("drr", &[("fct_p50_s", &[0.855, 0.95, 1.045])]),
        ]);
        assert_eq!(
            findings(&table)[0],
            "drr has the lowest median flow completion time: 950 ± 236 ms; 1.00 ± 0.25 s with fifo."
        );
    }

    #[test]
    fn what_reads_the_same_is_the_same() {
        let table = table(&[("fifo", &[("jain", &[0.999_9])]), ("drr", &[("jain", &[0.999_8])])]);
        assert_eq!(findings(&table)[0], "No difference in the fairness (Jain's index): 1.000.");
    }

    #[test]
    fn one_seed_has_no_interval() {
        let table = table(&[("fifo", &[("fct_p99_s", &[2.0])]), ("drr", &[("fct_p99_s", &[2.01])])]);
        insta::assert_snapshot!(findings(&table).join("\n"), @r"
        fifo has the lowest 99th percentile of the flow completion times: 2.00 s; 2.01 s with drr.
        There is one seed, and so no confidence interval: small differences may be chance. Run more seeds.
        ");
    }

    /// The arbiters of a switch. With one, short packets hardly wait, which costs slots of the outputs;
    /// another does not carry the load.
    #[test]
    fn a_switch_has_waits_load_and_lost_slots() {
        let row = |short: f64, crossed: f64, blocked: f64, stable: f64| {
            [
                ("short_wait_mean_slots", about(short)),
                ("offered", about(0.8)),
                ("throughput", about(crossed)),
                ("output_blocked", about(blocked)),
                ("stable", [stable; 3]),
            ]
        };
        let rows = [row(65.0, 0.8, 0.0, 1.0), row(0.05, 0.8, 0.037, 1.0), row(900.0, 0.6, 0.0, 0.0)];
        let each = rows.iter().zip(["islip", "p_spf", "fifo"]);
        let rows: Vec<(&str, Vec<Seeds<'_>>)> = each
            .map(|(row, name)| {
                (name, row.iter().map(|(metric, seeds)| (*metric, seeds.as_slice())).collect())
            })
            .collect();
        let rows: Vec<(&str, &[Seeds<'_>])> =
            rows.iter().map(|(name, row)| (*name, row.as_slice())).collect();
        insta::assert_snapshot!(findings(&table(&rows)).join("\n"), @r"
        The backlog grows until the end with fifo (in 3 of 3 seeds). Such waits depend on the length of the run: do not compare them.
        p_spf has the lowest mean wait of short packets: 0.050 ± 0.001 slots; the next is 65 ± 2 slots with islip, the last 900 ± 22 slots with fifo.
        Of 0.800 ± 0.020 cells per slot and port that are offered, fewer cross: 0.600 ± 0.015 with fifo.
        Cost: the share of blocked slots is 3.7 ± 0.1 % with p_spf: the output is idle, because its input sends a short packet to another output.
        Means over 3 seeds; ± is half the width of the 95 % confidence interval. Differences are taken seed by seed, those of times as ratios, and reported only if their own interval excludes equality.
        ");
        let carried = findings(&table(&rows[..2])).join("\n");
        assert!(carried.contains("Every arbiter carries the offered load of 0.800 ± 0.020"), "{carried}");
        assert!(!carried.contains("grows"), "{carried}");
    }

    #[test]
    fn one_discipline_and_nothing_at_all() {
        let alone = table(&[("fifo limit 5p", &[("fct_p99_s", &[2.0]), ("goodput_bps", &[5e6])])]);
        insta::assert_snapshot!(findings(&alone).join("\n"), @r"
        The 99th percentile of the flow completion times is 2.00 s with fifo.
        The goodput is 5.00 Mbit/s with fifo.
        There is one seed, and so no confidence interval: small differences may be chance. Run more seeds.
        ");
        let nothing = table(&[("fifo", &[("utilization", &[0.5])])]);
        assert_eq!(findings(&nothing), ["No metric was measured that could be compared."]);
    }
}
