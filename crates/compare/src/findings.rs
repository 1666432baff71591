//! The findings of a comparison: the disciplines that help, their gain and their cost, each with its
//! confidence interval.
//!
//! The differences come from [`tables`](super::tables), which says when one counts.

use giveway_measure::{Table, label};
use giveway_workload::Direction;

use super::mode::{Mode, word};
use super::situation::{Situation, Trust};
use super::tables::{COSTS, Change, SMALL_PACKETS, Tables, capital, list, text};

/// A kind of transfer that users wait for.
#[derive(Clone, Copy)]
struct Subject {
    /// Its plural in each direction, upstream first.
    plurals: [&'static str; 2],
    /// Its singular in each direction, upstream first.
    singulars: [&'static str; 2],
    /// The metric of the median.
    median: &'static str,
    /// The metric of the 95th percentile.
    slowest: &'static str,
}

const PAGE: Subject = Subject {
    plurals: ["page loads"; 2],
    singulars: ["page load"; 2],
    median: "page_load_p50_s",
    slowest: "page_load_p95_s",
};
const TRANSFER: Subject = Subject {
    plurals: ["uploads", "downloads"],
    singulars: ["upload", "download"],
    median: "fct_p50_s",
    slowest: "fct_p95_s",
};

/// The metrics of calls and games: the first that was measured is reported.
const DELAYS: [&str; 2] = ["voice_delay_p99_s", SMALL_PACKETS];

/// A finding, and the discipline that it recommends, if any.
type Finding = (String, Option<String>);

/// The findings of a comparison, as sentences. The first row of the table is the baseline.
pub fn of(table: &Table, mode: Mode, situation: &Situation) -> Vec<String> {
    let Some(first) = table.rows.first() else { return vec!["No run finished.".to_owned()] };
    let tables = &Tables::new(table);
    if table.rows.len() == 1 {
        let name = tables.name(&first.qdisc);
        return vec![format!("Only {name} ran; name a second discipline with --qdisc to compare.")];
    }
    let mut findings: Vec<String> = situation.doubt().into_iter().collect();
    if situation.trust() == Trust::None {
        return findings;
    }
    let mut winners: Vec<String> = Vec::new();
    let sentences = Sentences { tables };
    let times = if mode == Mode::Flows { sentences.completion_times() } else { None };
    for (sentence, winner) in [times, sentences.delays()].into_iter().flatten() {
        findings.push(sentence);
        winners.extend(winner.filter(|winner| !winners.contains(winner)));
    }
    findings.extend(sentences.costs(&winners));
    if winners.is_empty() {
        findings.push(situation.load(tables));
    }
    if tables.seeds > 1 && tables.looked_at > 1 {
        findings.push(format!(
            "A gain counts if chance alone would show any among all {} differences in less than 5 % of comparisons (Holm).",
            tables.looked_at
        ));
    }
    if tables.seeds < 2 && mode == Mode::Flows {
        findings.push(
            "Each discipline ran once, so the differences have no confidence intervals; --seeds 5 adds them."
                .to_owned(),
        );
    }
    findings
}

/// The sentences about the tables of both directions.
struct Sentences<'a> {
    tables: &'a Tables,
}

impl Sentences<'_> {
    /// The discipline that shortens page loads or transfers most, in the direction with the longer sum of
    /// completion times. The subject is the one with the larger gain. Both its median and its 95th percentile
    /// are reported.
    fn completion_times(&self) -> Option<Finding> {
        let mut best: Option<(f64, Subject, &'static str)> = None;
        let mut known = None;
        let total = |table: &Table| {
            let value = |name| table.rows[0].metric(name).and_then(|metric| metric.mean);
            value("flows_completed").zip(value("fct_mean_s")).map_or(0.0, |(count, mean)| count * mean)
        };
        let (direction, _) = self.tables.iter().max_by(|a, b| total(&a.1).total_cmp(&total(&b.1)))?;
        let direction = *direction;
        for subject in [PAGE, TRANSFER] {
            if self.tables.before(direction, subject.median).is_none() {
                continue;
            }
            known.get_or_insert(subject);
            for metric in [subject.median, subject.slowest] {
                let changes = self.tables.changes(direction, metric);
                let gain = changes.iter().filter(|change| change.is_better()).map(Change::gain);
                let Some(gain) = gain.max_by(f64::total_cmp) else { continue };
                if best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, subject, metric));
                }
            }
        }
        match best {
            Some((_, subject, metric)) => self.shorter(direction, subject, metric),
            None => Some((self.not_shorter(direction, known?), None)),
        }
    }

    /// The finding on the discipline that is best in `metric`.
    fn shorter(&self, direction: Direction, subject: Subject, metric: &'static str) -> Option<Finding> {
        let changes = self.tables.changes(direction, metric);
        let better = changes.iter().filter(|change| change.is_better());
        let winner = better.min_by(|a, b| a.after.total_cmp(&b.after))?;
        let (name, base) =
            (self.tables.name(&winner.row.qdisc), self.tables.name(&self.tables.baseline(direction).qdisc));
        let own = |metric| {
            let changes = self.tables.changes(direction, metric);
            changes.into_iter().find(|change| change.row.qdisc == winner.row.qdisc)
        };
        let (median, slowest) = (own(subject.median), own(subject.slowest));
        let at = direction as usize;
        // Both metrics are times.
        let numbers = |change: &Change<'_>, base: &str| {
            let (after, before) = (text(metric, change.after), text(metric, change.before));
            format!("{after} instead of {before}{base} ({})", change.difference(metric))
        };
        let same = |change: &Change<'_>| {
            format!("({} and {})", text(metric, change.after), text(metric, change.before))
        };
        let mixed = [&median, &slowest].into_iter().flatten().any(Change::is_worse);
        let sentence = if mixed {
            let (median, slowest) = median.zip(slowest)?;
            let (singular, plural) = (subject.singulars[at], subject.plurals[at]);
            let base = format!(" with {base}");
            match slowest.is_worse() {
                true => format!(
                    "Mixed: with {name} the median {singular} takes {}, but the slowest 5 % take at least {}",
                    numbers(&median, &base),
                    numbers(&slowest, "")
                ),
                false => format!(
                    "Mixed: with {name} the slowest 5 % of the {plural} take at least {}, but the median takes {}",
                    numbers(&slowest, &base),
                    numbers(&median, "")
                ),
            }
        } else {
            let median = median.map(|change| match change.is_better() {
                true => format!("the median takes {}", numbers(&change, "")),
                false => format!("the median shows no measurable difference {}", same(&change)),
            });
            let slowest = slowest.map(|change| match change.is_better() {
                true => format!("the slowest 5 % take at least {}", numbers(&change, "")),
                false => format!("the 95th percentile shows no measurable difference {}", same(&change)),
            });
            let clauses: Vec<String> = median.into_iter().chain(slowest).collect();
            let plural = capital(subject.plurals[at]);
            format!("{plural} are shorter with {name} than with {base}: {}", clauses.join(", and "))
        };
        Some((format!("{sentence}{}.", self.others(winner, &changes)), Some(winner.row.qdisc.clone())))
    }

    /// The finding that no discipline shortens the subject.
    fn not_shorter(&self, direction: Direction, subject: Subject) -> String {
        let baseline = self.tables.baseline(direction);
        let value = |metric| self.tables.before(direction, metric).map(|value| text(metric, value));
        let median = value(subject.median).map(|text| format!("median {text}"));
        let slowest = value(subject.slowest).map(|text| format!("95th percentile {text}"));
        let values: Vec<String> = median.into_iter().chain(slowest).collect();
        format!(
            "No discipline makes {} measurably shorter (with {}: {}).",
            subject.plurals[direction as usize],
            self.tables.name(&baseline.qdisc),
            values.join(", ")
        )
    }

    /// The discipline that shortens the delay of calls most, or of small packets if there are no calls, in
    /// the direction with the longer delays.
    fn delays(&self) -> Option<Finding> {
        let (metric, direction) =
            DELAYS.into_iter().find_map(|metric| Some((metric, self.worse_direction(metric)?)))?;
        let metric = self.tables.carried(direction, metric);
        let (noun, changes) = (label(metric), self.tables.changes(direction, metric));
        let (base, direction_word) =
            (self.tables.name(&self.tables.baseline(direction).qdisc), word(direction));
        let winner =
            changes.iter().filter(|change| change.is_better()).min_by(|a, b| a.after.total_cmp(&b.after));
        let Some(winner) = winner else {
            let before = text(metric, self.tables.before(direction, metric)?);
            let sentence = format!(
                "No discipline measurably improves the {noun} {direction_word} ({before} with {base})."
            );
            return Some((sentence, None));
        };
        let sentence = format!(
            "The {noun} {direction_word} is {} with {} instead of {} with {base} ({}){}.",
            text(metric, winner.after),
            self.tables.name(&winner.row.qdisc),
            text(metric, winner.before),
            winner.difference(metric),
            self.others(winner, &changes),
        );
        Some((sentence, Some(winner.row.qdisc.clone())))
    }

    /// The metrics that become worse with the recommended disciplines, in either direction, as sentences.
    fn costs(&self, winners: &[String]) -> Vec<String> {
        let mut free: Vec<String> = Vec::new();
        let mut costs = Vec::new();
        for winner in winners {
            let name = self.tables.name(winner).to_owned();
            match self.cost(winner) {
                Some(cost) => costs.push(format!("Cost of {name}: {cost}.")),
                None => free.push(name),
            }
        }
        match &free[..] {
            [] => {}
            [one] => costs.push(format!("{one} makes nothing measurably worse.")),
            [one, other] => costs.push(format!("Neither {one} nor {other} makes anything measurably worse.")),
            all => costs.push(format!("None of {} makes anything measurably worse.", list(all))),
        }
        costs
    }

    /// The two largest losses of a discipline, as shares of the baseline's values.
    fn cost(&self, winner: &str) -> Option<String> {
        let mut worse: Vec<(f64, String)> = Vec::new();
        for metric in COSTS {
            for (direction, _) in self.tables.iter() {
                let metric = self.tables.carried(*direction, metric);
                let changes = self.tables.changes(*direction, metric);
                let own = changes.iter().filter(|change| change.row.qdisc == winner && change.is_worse());
                worse.extend(own.map(|change| {
                    let clause = change.clause(metric, *direction);
                    (-change.gain(), format!("{clause} ({})", change.difference(metric)))
                }));
            }
        }
        worse.sort_by(|a, b| b.0.total_cmp(&a.0));
        let largest: Vec<String> = worse.into_iter().take(2).map(|(_, text)| text).collect();
        (!largest.is_empty()).then(|| largest.join(", and "))
    }

    /// The direction in which the baseline is worse.
    fn worse_direction(&self, metric: &'static str) -> Option<Direction> {
        let value = |direction| self.tables.before(direction, self.tables.carried(direction, metric));
        let known = self.tables.iter().filter_map(|(direction, _)| Some((value(*direction)?, *direction)));
        known.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, direction)| direction)
    }

    /// The disciplines that cannot be distinguished from the best, and those that are worse than the
    /// baseline.
    fn others(&self, best: &Change<'_>, changes: &[Change<'_>]) -> String {
        let close = |change: &&Change<'_>| {
            change.row.qdisc != best.row.qdisc
                && change.is_better()
                && change.after - best.after <= change.within.unwrap_or(0.0) + best.within.unwrap_or(0.0)
        };
        let names = |some: &mut dyn Iterator<Item = &Change<'_>>| {
            some.map(|change| self.tables.name(&change.row.qdisc).to_owned()).collect::<Vec<_>>()
        };
        let close = names(&mut changes.iter().filter(close));
        let worse = names(&mut changes.iter().filter(|change| change.is_worse()));
        let mut text = String::new();
        if !close.is_empty() {
            text.push_str(&format!("; no measurable difference to {}", list(&close)));
        }
        if !worse.is_empty() {
            let verb = if worse.len() == 1 { "is" } else { "are" };
            let base = &self.tables.baseline(Direction::Up).qdisc;
            text.push_str(&format!("; {} {verb} worse than {}", list(&worse), self.tables.name(base)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_measure::{DisciplineRow, Estimate, Fingerprint};
    use giveway_qdisc::Span;

    use super::super::link::Link;

    /// A discipline with metrics of one direction each, and their values under three seeds.
    fn row(qdisc: &str, metrics: &[(Direction, &str, [f64; 3])]) -> DisciplineRow {
        let named = metrics.iter().map(|(direction, name, values)| {
            let values = values.iter().map(|value| Some(*value)).collect();
            (format!("at.{}.{name}", Link::port(*direction)), Estimate::over(values))
        });
        DisciplineRow { qdisc: qdisc.to_owned(), seeds: vec![1, 2, 3], metrics: named.collect() }
    }

    fn table(rows: Vec<DisciplineRow>) -> Table {
        Table { rows, fingerprint: Fingerprint::EMPTY, events: 0, bottleneck_packets: None }
    }

    fn reported(table: Table, mode: Mode) -> Vec<String> {
        let mut findings = of(
            &table,
            mode,
            &Situation { missing: 0.0, measured: Span::s(40), resample: None, overhead: None },
        );
        findings.retain(|finding| !finding.ends_with("(Holm)."));
        findings
    }

    /// Twenty downloads; the median takes `median` seconds, and the downloads of the largest class
    /// take `large`.
    fn transfers(qdisc: &str, median: [f64; 3], large: [f64; 3]) -> DisciplineRow {
        row(
            qdisc,
            &[
                (Direction::Down, "flows_completed", [20.0; 3]),
                (Direction::Down, "fct_mean_s", median),
                (Direction::Down, "fct_p50_s", median),
                (Direction::Down, "fct_p95_s", [4.0; 3]),
                (Direction::Down, "fct_gt3MB_p50_s", large),
                (Direction::Down, "sojourn_p99_s", [0.2; 3]),
                (Direction::Down, "utilization", [0.9; 3]),
            ],
        )
    }

    /// The differences are -0.8, -0.8 and -0.8 s, and +2, +2.1 and +1.9 s: t(2) = 4.303 times 0.1/√3 is 0.25.
    #[test]
    fn a_gain_is_reported_with_its_cost() {
        let rows = vec![
            transfers("fifo limit 100p", [1.0, 1.1, 0.9], [20.0, 21.0, 19.0]),
            transfers("efd limit 100p", [0.2, 0.3, 0.1], [22.0, 23.1, 20.9]),
        ];
        let expected = [
            "Downloads are shorter with efd than with fifo limit 100p: the median takes 200 ms instead of 1.00 s (800 ± 0.00 ms less), \
             and the 95th percentile shows no measurable difference (4.00 s and 4.00 s).",
            "Cost of efd: the median completion time of transfers above 3 MB downstream is 22.0 s instead of 20.0 s (2.00 ± \
             0.25 s more).",
        ];
        assert_eq!(reported(table(rows), Mode::Flows), expected);
    }

    /// The mean difference is -0.1 s, with both signs among the seeds: t(2) = 4.303 times 0.3/√3 is 0.75.
    #[test]
    fn a_difference_within_its_interval_is_not_reported() {
        let rows =
            vec![transfers("fifo", [1.0, 1.0, 1.0], [20.0; 3]), transfers("pie", [0.6, 0.9, 1.2], [20.0; 3])];
        let expected = [
            "No discipline makes downloads measurably shorter (with fifo: median 1.00 s, 95th percentile 4.00 s).",
            "In the busier direction (downstream) 1 of 100 packets waits for more than 200 ms; the link sends for 90 % of the \
             40.0 s that are measured.",
        ];
        assert_eq!(reported(table(rows), Mode::Flows), expected);
    }

    /// Disciplines without a measurable difference to the best are named, and those that are worse than the
    /// baseline.
    #[test]
    fn calls_are_reported_for_the_direction_with_longer_delays() {
        let call = |qdisc: &str, up: [f64; 3]| {
            let metrics = [
                (Direction::Up, "voice_delay_p99_s", up),
                (Direction::Down, "voice_delay_p99_s", [0.001; 3]),
            ];
            row(qdisc, &metrics)
        };
        let rows = vec![
            call("fifo limit 100p", [0.5, 0.5, 0.5]),
            call("fq_codel", [0.006, 0.007, 0.008]),
            call("drr limit 100p", [0.007, 0.007, 0.008]),
            call("prio", [0.9, 0.9, 0.9]),
        ];
        let findings = reported(table(rows), Mode::Replay);
        assert_eq!(
            findings[0],
            "The 99th percentile of the delay of calls upstream is 7.00 ms with fq_codel instead of 500 ms with fifo limit \
             100p (493 ± 2.48 ms less); no measurable difference to drr; prio is worse than fifo limit 100p."
        );
        assert_eq!(findings[1], "fq_codel makes nothing measurably worse.");
        assert_eq!(findings.len(), 2);
    }

    /// A discipline that helps the median and hurts the slowest is reported with both.
    #[test]
    fn a_gain_with_a_loss_is_mixed() {
        let worse = |qdisc: &str, median: [f64; 3], slow: [f64; 3]| {
            let mut row = transfers(qdisc, median, [1.0; 3]);
            row.metrics[3].1 = Estimate::over(slow.iter().map(|value| Some(*value)).collect());
            row
        };
        let rows = vec![worse("fifo", [1.0; 3], [4.0; 3]), worse("efd", [0.5; 3], [8.0, 8.1, 7.9])];
        assert_eq!(
            reported(table(rows), Mode::Flows)[0],
            "Mixed: with efd the median download takes 500 ms instead of 1.00 s with fifo (500 ± 0 ms less), but the slowest \
             5 % take at least 8.00 s instead of 4.00 s (4.00 ± 0.25 s more)."
        );
    }

    /// Two disciplines of one kind are distinguished by their parameters.
    #[test]
    fn two_of_a_kind_have_different_names() {
        let rows = vec![
            transfers("fifo limit 1000p", [1.0; 3], [1.0; 3]),
            transfers("fifo limit 100p", [0.5; 3], [1.0; 3]),
        ];
        let findings = reported(table(rows), Mode::Flows);
        assert!(
            findings[0].starts_with("Downloads are shorter with fifo limit 100p than with fifo limit 1000p:"),
            "{findings:?}"
        );
    }

    #[test]
    fn an_idle_link_and_a_single_discipline_are_reported() {
        let idle = |qdisc: &str| {
            let mut row = transfers(qdisc, [0.2; 3], [1.0; 3]);
            row.metrics.last_mut().unwrap().1 = Estimate::over(vec![Some(0.1); 3]);
            let wait = row.metrics.len() - 2;
            row.metrics[wait].1 = Estimate::over(vec![Some(0.0049); 3]);
            row
        };
        let findings = reported(table(vec![idle("fifo"), idle("efd")]), Mode::Flows);
        assert!(
            findings
                .last()
                .unwrap()
                .starts_with("Queues hardly form: 99 of 100 packets wait for at most 4.90 ms (downstream)")
        );
        let alone = reported(table(vec![idle("fifo limit 100p")]), Mode::Flows);
        assert_eq!(alone, ["Only fifo limit 100p ran; name a second discipline with --qdisc to compare."]);
        assert_eq!(reported(table(vec![]), Mode::Flows), ["No run finished."]);
    }

    /// With nine transfers the 95th percentile is their maximum, and with four there is no finding at all.
    #[test]
    fn too_few_transfers_are_no_finding() {
        let few = |count: f64, median: f64, slow: f64| {
            let mut row = transfers("fifo", [median; 3], [1.0; 3]);
            row.metrics[0].1 = Estimate::over(vec![Some(count); 3]);
            row.metrics[3].1 = Estimate::over(vec![Some(slow); 3]);
            row
        };
        let with = |count| {
            let rows =
                vec![few(count, 1.0, 4.0), DisciplineRow { qdisc: "efd".into(), ..few(count, 0.5, 9.0) }];
            reported(table(rows), Mode::Flows)
        };
        assert_eq!(
            with(9.0)[0],
            "Downloads are shorter with efd than with fifo: the median takes 500 ms instead of 1.00 s (500 ± 0 ms less)."
        );
        assert!(with(20.0)[0].starts_with("Mixed:"), "{:?}", with(20.0));
        assert!(with(4.0).iter().all(|finding| !finding.contains("shorter")), "{:?}", with(4.0));
    }

    /// A difference that counts alone does not count among twenty disciplines that differ by chance.
    #[test]
    fn a_gain_among_many_disciplines_needs_more() {
        // Differences of -0.4, -0.5 and -0.6 s: t = 8.66 with two degrees of freedom, p = 0.013.
        let base = || transfers("fifo", [1.0; 3], [1.0; 3]);
        let efd = || transfers("efd", [0.6, 0.5, 0.4], [1.0; 3]);
        let noise = |n: usize| transfers(&format!("fifo limit {n}p"), [1.1, 0.9, 1.0], [1.0; 3]);
        let alone = reported(table(vec![base(), efd()]), Mode::Flows);
        assert!(alone[0].starts_with("Downloads are shorter with efd"), "{alone:?}");
        let rows = [base(), efd()].into_iter().chain((1..20).map(noise)).collect();
        let among = reported(table(rows), Mode::Flows);
        assert!(among[0].starts_with("No discipline makes downloads measurably shorter"), "{among:?}");
    }

    /// More than half of the data are not in the capture.
    #[test]
    fn a_capture_with_holes_has_no_findings() {
        let rows = vec![transfers("fifo", [1.0; 3], [1.0; 3]), transfers("efd", [0.5; 3], [1.0; 3])];
        let findings = of(
            &table(rows),
            Mode::Flows,
            &Situation { missing: 0.6, measured: Span::s(40), resample: None, overhead: None },
        );
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("No findings: 60 %"), "{findings:?}");
    }
}
