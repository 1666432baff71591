//! What a comparison comes to: who is helped, by how much, and what it costs; each with its uncertainty.
//!
//! Disciplines meet the same arrivals under each seed, so differences are taken seed by seed and their interval is that
//! of the mean difference (Student's t, 95 %). What is within it, or below two percent, is not called a difference.

use giveway_measure::{Estimate, Row, Table, short_names};
use giveway_workload::Direction;

use super::Mode;
use super::link::Link;

/// A difference smaller than this is not worth a sentence, however certain.
const WORTH: f64 = 0.02;

/// What is asked of each discipline.
#[derive(Clone, Copy)]
struct Question {
    metric: &'static str,
    /// As the subject of a sentence: what takes or is what.
    what: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Takes so long.
    Time,
    /// So many.
    Count,
    /// A share of something.
    Share,
}

const fn question(metric: &'static str, what: &'static str, kind: Kind) -> Question {
    Question { metric, what, kind }
}

/// What people wait for: how it is called, how many must have completed under the first discipline, and its metrics.
const WAITS: [Subject; 2] = [
    Subject {
        what: "page",
        enough: ("pages_completed", 5.0),
        metrics: [
            question("page_load_p50_s", "median", Kind::Time),
            question("page_load_p95_s", "95th percentile", Kind::Time),
        ],
    },
    Subject {
        what: "transfer",
        enough: ("flows_completed", 10.0),
        metrics: [
            question("fct_p50_s", "median", Kind::Time),
            question("fct_p95_s", "95th percentile", Kind::Time),
        ],
    },
];

/// Something that people wait for.
#[derive(Clone, Copy)]
struct Subject {
    what: &'static str,
    enough: (&'static str, f64),
    metrics: [Question; 2],
}

/// What calls and games feel.
const DELAYS: [Question; 2] = [
    question("voice_delay_p99_s", "99th percentile of the delay of calls", Kind::Time),
    question("small_sojourn_p99_s", "99th percentile of the sojourn time of small packets", Kind::Time),
];

/// What may get worse.
const COSTS: [Question; 7] = [
    question("fct_gt3MB_p50_s", "median transfer above 3 MB", Kind::Time),
    question("fct_le3MB_p50_s", "median transfer of 300 kB to 3 MB", Kind::Time),
    question("fct_p99_s", "99th percentile of the transfers", Kind::Time),
    question("page_load_p95_s", "95th percentile of the pages", Kind::Time),
    question("voice_delay_p99_s", "99th percentile of the delay of calls", Kind::Time),
    question("voice_loss", "loss of calls", Kind::Share),
    question("flows_incomplete", "number of transfers that did not finish", Kind::Count),
];

/// The two directions of a table, each with its rows.
struct Ways {
    tables: Vec<(Direction, Table)>,
    /// Each discipline with its short name, which tells it from the others.
    names: Vec<(String, String)>,
    /// Runs of each discipline.
    seeds: usize,
}

/// How a discipline differs from the first.
struct Change<'a> {
    row: &'a Row,
    before: f64,
    after: f64,
    /// Half the interval of the difference; none with one run.
    within: Option<f64>,
}

/// The findings of a comparison, as sentences.
pub fn of(table: &Table, mode: Mode) -> Vec<String> {
    let Some(first) = table.rows.first() else { return vec!["No run finished.".to_owned()] };
    let specs: Vec<&str> = table.rows.iter().map(|row| row.qdisc.as_str()).collect();
    let names = specs.iter().map(|spec| (*spec).to_owned()).zip(short_names(&specs)).collect();
    let ways = Ways {
        names,
        tables: [Direction::Up, Direction::Down].map(|way| (way, table.at(&Link::port(way)))).into(),
        seeds: first.seeds.len(),
    };
    if table.rows.len() == 1 {
        return vec![format!(
            "Only {} was run: name another with --qdisc to compare.",
            ways.name(&first.qdisc)
        )];
    }
    let mut said = Vec::new();
    let mut winners: Vec<String> = Vec::new();
    let waits = if mode == Mode::Flows { ways.waits() } else { None };
    for (sentence, winner) in [waits, ways.delays()].into_iter().flatten() {
        said.push(sentence);
        winners.extend(winner.filter(|winner| !winners.contains(winner)));
    }
    said.extend(ways.costs(&winners));
    if winners.is_empty() {
        said.push(ways.idle());
    }
    if ways.seeds < 2 && mode == Mode::Flows {
        said.push(
            "One run of each: how much of this is chance is not known; --seeds 5 would tell.".to_owned(),
        );
    }
    said
}

impl Ways {
    /// Who shortens what people wait for, in the direction in which they wait longer, all in all: told for pages or
    /// transfers, of which more is gained, with its median and its 95th percentile.
    fn waits(&self) -> Option<(String, Option<String>)> {
        let mut best: Option<(f64, Direction, Subject, Question)> = None;
        let mut known = None;
        let waited = |table: &Table| {
            let value = |name| table.rows[0].metric(name).and_then(|metric| metric.mean);
            value("flows_completed").zip(value("fct_mean_s")).map_or(0.0, |(count, mean)| count * mean)
        };
        let longer = self.tables.iter().max_by(|a, b| waited(&a.1).total_cmp(&waited(&b.1)));
        if let Some((way, table)) = longer {
            let enough = |subject: &&Subject| {
                let count = table.rows[0].metric(subject.enough.0).and_then(|count| count.mean);
                count.is_some_and(|count| count >= subject.enough.1)
            };
            for subject in WAITS.iter().filter(enough) {
                known.get_or_insert((*way, *subject));
                for question in subject.metrics {
                    let gains = self.changes(*way, question);
                    let gain = gains.iter().filter(|change| change.is_better()).map(Change::gain);
                    let Some(gain) = gain.max_by(f64::total_cmp) else { continue };
                    if best.is_none_or(|(most, ..)| gain > most) {
                        best = Some((gain, *way, *subject, question));
                    }
                }
            }
        }
        let Some((_, way, subject, question)) = best else {
            let (way, subject) = known?;
            let baseline = self.baseline(way);
            let told = subject.metrics.iter().filter_map(|question| {
                let value = baseline.metric(question.metric)?.mean?;
                Some(format!("{} {}", question.what, question.kind.text(value)))
            });
            let told = list(&told.collect::<Vec<_>>());
            let (what, name) = (subject.what, self.name(&baseline.qdisc));
            return Some((
                format!(
                    "No discipline shortens the {what}s {} beyond the uncertainty ({told} with {name}).",
                    way.name()
                ),
                None,
            ));
        };
        let changes = self.changes(way, question);
        let winner =
            changes.iter().filter(|change| change.is_better()).min_by(|a, b| a.after.total_cmp(&b.after))?;
        let (name, base) = (self.name(&winner.row.qdisc), self.name(&self.baseline(way).qdisc));
        let (mut better, mut other) = (Vec::new(), Vec::new());
        let mut all_better = true;
        for question in subject.metrics {
            let changes = self.changes(way, question);
            let Some(change) = changes.iter().find(|change| change.row.qdisc == winner.row.qdisc) else {
                continue;
            };
            let Question { what, kind, .. } = question;
            let (after, before) = (kind.text(change.after), kind.text(change.before));
            let difference = change.difference(kind);
            all_better &= !change.is_worse();
            match change.is_better() {
                true => better.push(format!("{what} {after} instead of {before} ({difference})")),
                false if change.is_worse() => {
                    other.push(format!("but its {what} is {after} instead of {before} ({difference})"));
                }
                false => other.push(format!("{what} {after} against {before} ({difference})")),
            }
        }
        let told = [better, other].concat().join(", ");
        let (subjects, way) = (capital(subject.what) + "s", way.name());
        let gain = match all_better {
            true => format!("{subjects} {way} are shorter with {name} than with {base}"),
            false => format!("{subjects} {way} are shorter in part with {name} than with {base}"),
        };
        let sentence = format!("{gain}: {told}{}.", self.others(winner, &changes));
        Some((sentence, Some(winner.row.qdisc.clone())))
    }

    /// Who helps calls, or small packets where there are no calls, in the direction in which they are worse off.
    fn delays(&self) -> Option<(String, Option<String>)> {
        let (question, way) =
            DELAYS.iter().find_map(|question| Some((*question, self.worse_way(*question)?)))?;
        let changes = self.changes(way, question);
        let (what, kind, name) = (question.what, question.kind, self.name(&self.baseline(way).qdisc));
        let winner =
            changes.iter().filter(|change| change.is_better()).min_by(|a, b| a.after.total_cmp(&b.after));
        let Some(winner) = winner else {
            let before = kind.text(self.baseline(way).metric(question.metric)?.mean?);
            let sentence = format!(
                "No discipline improves the {what} {} on {name}'s {before} beyond the uncertainty.",
                way.name()
            );
            return Some((sentence, None));
        };
        let sentence = format!(
            "The {what} {} is {} with {} instead of {} with {name} ({}){}.",
            way.name(),
            kind.text(winner.after),
            self.name(&winner.row.qdisc),
            kind.text(winner.before),
            winner.difference(kind),
            self.others(winner, &changes),
        );
        Some((sentence, Some(winner.row.qdisc.clone())))
    }

    /// What got worse with those that help, in either direction.
    fn costs(&self, winners: &[String]) -> Vec<String> {
        let mut free: Vec<String> = Vec::new();
        let mut said = Vec::new();
        for winner in winners {
            let name = self.name(winner).to_owned();
            match self.cost(winner) {
                Some(cost) => said.push(format!("What {name} costs: {cost}.")),
                None => free.push(name),
            }
        }
        if !free.is_empty() {
            let sentence = "Nothing that was measured gets worse with";
            said.push(format!("{sentence} {} beyond the uncertainty.", free.join(" or ")));
        }
        said
    }

    /// The two largest losses of a discipline, in shares of what the first has.
    fn cost(&self, winner: &str) -> Option<String> {
        let mut worse: Vec<(f64, String)> = Vec::new();
        for question in COSTS {
            for (way, table) in &self.tables {
                let page = &WAITS[0];
                let pages = table.rows[0].metric(page.enough.0).and_then(|count| count.mean).unwrap_or(0.0);
                if question.metric.starts_with(page.what) && pages < page.enough.1 {
                    continue; // too few to speak of percentiles
                }
                let changes = self.changes(*way, question);
                let mine = changes.iter().filter(|change| change.row.qdisc == winner && change.is_worse());
                worse.extend(mine.map(|change| {
                    let Question { what, kind, .. } = question;
                    let (before, after) = (kind.text(change.before), kind.text(change.after));
                    let text = format!(
                        "the {what} {} is {after} instead of {before} ({})",
                        way.name(),
                        change.difference(kind)
                    );
                    (-change.gain(), text)
                }));
            }
        }
        worse.sort_by(|a, b| b.0.total_cmp(&a.0));
        let told: Vec<String> = worse.into_iter().take(2).map(|(_, text)| text).collect();
        (!told.is_empty()).then(|| told.join(", and "))
    }

    /// Why nothing differs.
    fn idle(&self) -> String {
        let busiest = self
            .tables
            .iter()
            .filter_map(|(way, table)| Some((*way, table.rows.first()?.metric("utilization")?.mean?)));
        match busiest.max_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((way, used)) if used < 0.5 => format!(
                "The link is used to {:.0} % at most ({}): queues hardly form, and where none forms no discipline helps.",
                100.0 * used,
                way.name()
            ),
            Some((way, used)) => {
                format!("The busier direction ({}) is used to {:.0} %.", way.name(), 100.0 * used)
            }
            None => "Nothing was measured that could be compared.".to_owned(),
        }
    }

    /// The direction in which the first discipline is worse off.
    fn worse_way(&self, question: Question) -> Option<Direction> {
        let value = |table: &Table| table.rows.first()?.metric(question.metric)?.mean;
        let known = self.tables.iter().filter_map(|(way, table)| Some((value(table)?, *way)));
        known.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, way)| way)
    }

    /// Who cannot be told from the best, and who is worse than the first.
    fn others(&self, best: &Change<'_>, changes: &[Change<'_>]) -> String {
        let close = |change: &&Change<'_>| {
            change.row.qdisc != best.row.qdisc
                && change.is_better()
                && change.after - best.after <= change.within.unwrap_or(0.0) + best.within.unwrap_or(0.0)
        };
        let names = |some: &mut dyn Iterator<Item = &Change<'_>>| {
            some.map(|change| self.name(&change.row.qdisc).to_owned()).collect::<Vec<_>>()
        };
        let close = names(&mut changes.iter().filter(close));
        let worse = names(&mut changes.iter().filter(|change| change.is_worse()));
        let verb = |names: &[String]| if names.len() == 1 { "does" } else { "do" };
        let mut text = String::new();
        if !close.is_empty() {
            text.push_str(&format!("; {} {} as well within the uncertainty", list(&close), verb(&close)));
        }
        if !worse.is_empty() {
            text.push_str(&format!("; {} {} worse than the first", list(&worse), verb(&worse)));
        }
        text
    }

    /// What a discipline is called here.
    fn name<'a>(&'a self, qdisc: &'a str) -> &'a str {
        let named = self.names.iter().find(|(spec, _)| spec == qdisc);
        named.map_or(qdisc, |(_, name)| name)
    }

    fn table(&self, way: Direction) -> &Table {
        let found = self.tables.iter().find(|(known, _)| *known == way);
        &found.expect("both directions are there").1
    }

    fn baseline(&self, way: Direction) -> &Row {
        &self.table(way).rows[0]
    }

    /// Every other discipline against the first.
    fn changes(&self, way: Direction, question: Question) -> Vec<Change<'_>> {
        let rows = &self.table(way).rows;
        let Some(base) = rows[0].metric(question.metric) else { return Vec::new() };
        rows[1..].iter().filter_map(|row| Change::new(base, row, question)).collect()
    }
}

impl<'a> Change<'a> {
    fn new(base: &Estimate, row: &'a Row, question: Question) -> Option<Change<'a>> {
        let other = row.metric(question.metric)?;
        let pairs = base.per_seed.iter().zip(&other.per_seed);
        let pairs: Vec<(f64, f64)> = pairs.filter_map(|(before, after)| (*before).zip(*after)).collect();
        let difference = Estimate::over(pairs.iter().map(|(before, after)| Some(after - before)).collect());
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / pairs.len() as f64;
        let before = mean(&mut pairs.iter().map(|pair| pair.0));
        difference.mean.map(|change| Change { row, before, after: before + change, within: difference.ci95 })
    }

    fn is_better(&self) -> bool {
        let gain = self.before - self.after;
        gain > self.within.unwrap_or(0.0) && gain > WORTH * self.before
    }

    fn is_worse(&self) -> bool {
        let loss = self.after - self.before;
        loss > self.within.unwrap_or(0.0) && loss > WORTH * self.before.abs()
    }

    /// What share of the first's is saved.
    fn gain(&self) -> f64 {
        (self.before - self.after) / self.before
    }

    /// The difference with its interval, both in one unit.
    fn difference(&self, kind: Kind) -> String {
        let change = self.after - self.before;
        let word = if change < 0.0 { "less" } else { "more" };
        let (one, unit) = kind.unit(change.abs().max(self.within.unwrap_or(0.0)));
        let space = if unit.is_empty() { "" } else { " " };
        match self.within {
            Some(within) => {
                format!("{} ± {}{space}{unit} {word}", digits(change.abs() / one), digits(within / one))
            }
            None => format!("{}{space}{unit} {word}", digits(change.abs() / one)),
        }
    }
}

impl Kind {
    /// How much one of the unit is that suits a value, and its name.
    fn unit(self, value: f64) -> (f64, &'static str) {
        match self {
            Kind::Time if value >= 1.0 => (1.0, "s"),
            Kind::Time if value >= 1e-3 => (1e-3, "ms"),
            Kind::Time => (1e-6, "µs"),
            Kind::Count => (1.0, ""),
            Kind::Share => (0.01, "%"),
        }
    }

    fn text(self, value: f64) -> String {
        let (one, unit) = self.unit(value.abs());
        format!("{} {unit}", digits(value / one)).trim_end().to_owned()
    }
}

/// Three digits.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

fn capital(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [several @ .., last] => format!("{} and {last}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_measure::Fingerprint;

    /// A discipline with metrics of one direction each, and their values under three seeds.
    fn row(qdisc: &str, metrics: &[(Direction, &str, [f64; 3])]) -> Row {
        let named = metrics.iter().map(|(way, name, values)| {
            let values = values.iter().map(|value| Some(*value)).collect();
            (format!("at.{}.{name}", Link::port(*way)), Estimate::over(values))
        });
        Row { qdisc: qdisc.to_owned(), seeds: vec![1, 2, 3], metrics: named.collect() }
    }

    fn table(rows: Vec<Row>) -> Table {
        Table { rows, fingerprint: Fingerprint::EMPTY, events: 0, bottleneck_packets: None }
    }

    /// Twenty transfers down, of which the median takes `median` seconds, and the largest class `large`.
    fn transfers(qdisc: &str, median: [f64; 3], large: [f64; 3]) -> Row {
        row(
            qdisc,
            &[
                (Direction::Down, "flows_completed", [20.0; 3]),
                (Direction::Down, "fct_mean_s", median),
                (Direction::Down, "fct_p50_s", median),
                (Direction::Down, "fct_p95_s", [4.0; 3]),
                (Direction::Down, "fct_gt3MB_p50_s", large),
                (Direction::Down, "utilization", [0.9; 3]),
            ],
        )
    }

    /// The differences are -0.8, -0.8 and -0.8 s, and +2, +2.1 and +1.9 s: t(2) = 4.303 times 0.1/√3 is 0.25.
    #[test]
    fn the_gain_and_its_price() {
        let rows = vec![
            transfers("fifo limit 100p", [1.0, 1.1, 0.9], [20.0, 21.0, 19.0]),
            transfers("efd limit 100p", [0.2, 0.3, 0.1], [22.0, 23.1, 20.9]),
        ];
        let expected = [
            "Transfers down are shorter with efd than with fifo: median 200 ms instead of 1.00 s (800 ± 0.00 ms less), \
             95th percentile 4.00 s against 4.00 s (0 ± 0 µs more).",
            "What efd costs: the median transfer above 3 MB down is 22.0 s instead of 20.0 s (2.00 ± 0.25 s more).",
        ];
        assert_eq!(of(&table(rows), Mode::Flows), expected);
    }

    /// On the average 0.1 s less, but once more and twice less: 4.303 times 0.3/√3 is 0.75.
    #[test]
    fn what_may_be_chance_is_no_finding() {
        let rows =
            vec![transfers("fifo", [1.0, 1.0, 1.0], [20.0; 3]), transfers("pie", [0.6, 0.9, 1.2], [20.0; 3])];
        let expected = [
            "No discipline shortens the transfers down beyond the uncertainty (median 1.00 s and 95th percentile 4.00 s \
             with fifo).",
            "The busier direction (down) is used to 90 %.",
        ];
        assert_eq!(of(&table(rows), Mode::Flows), expected);
    }

    /// Who is as good as the best is named with it, who is worse than the first as well.
    #[test]
    fn calls_are_told_for_the_direction_that_suffers() {
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
        let said = of(&table(rows), Mode::Replay);
        assert_eq!(
            said[0],
            "The 99th percentile of the delay of calls up is 7.00 ms with fq_codel instead of 500 ms with fifo (493 ± \
             2.48 ms less); drr does as well within the uncertainty; prio does worse than the first."
        );
        assert_eq!(said[1], "Nothing that was measured gets worse with fq_codel beyond the uncertainty.");
        assert_eq!(said.len(), 2);
    }

    /// What helps one half and hurts the other is told as that.
    #[test]
    fn a_gain_that_has_two_sides_is_told_with_both() {
        let worse = |qdisc: &str, median: [f64; 3], slow: [f64; 3]| {
            let mut row = transfers(qdisc, median, [1.0; 3]);
            row.metrics[3].1 = Estimate::over(slow.iter().map(|value| Some(*value)).collect());
            row
        };
        let rows = vec![worse("fifo", [1.0; 3], [4.0; 3]), worse("efd", [0.5; 3], [8.0, 8.1, 7.9])];
        assert_eq!(
            of(&table(rows), Mode::Flows)[0],
            "Transfers down are shorter in part with efd than with fifo: median 500 ms instead of 1.00 s (500 ± 0 ms \
             less), but its 95th percentile is 8.00 s instead of 4.00 s (4.00 ± 0.25 s more)."
        );
    }

    /// Two of one kind are told apart by what differs.
    #[test]
    fn two_of_a_kind_have_different_names() {
        let rows = vec![
            transfers("fifo limit 1000p", [1.0; 3], [1.0; 3]),
            transfers("fifo limit 100p", [0.5; 3], [1.0; 3]),
        ];
        let said = of(&table(rows), Mode::Flows);
        assert!(
            said[0]
                .starts_with("Transfers down are shorter with fifo limit 100p than with fifo limit 1000p:"),
            "{said:?}"
        );
    }

    #[test]
    fn an_idle_link_and_a_lonely_discipline_are_told_as_such() {
        let idle = |qdisc: &str| {
            let mut row = transfers(qdisc, [0.2; 3], [1.0; 3]);
            row.metrics.last_mut().unwrap().1 = Estimate::over(vec![Some(0.1); 3]);
            row
        };
        let said = of(&table(vec![idle("fifo"), idle("efd")]), Mode::Flows);
        assert!(
            said.last().unwrap().starts_with("The link is used to 10 % at most (down): queues hardly form")
        );
        let alone = of(&table(vec![idle("fifo limit 100p")]), Mode::Flows);
        assert_eq!(alone, ["Only fifo was run: name another with --qdisc to compare."]);
        assert_eq!(of(&table(vec![]), Mode::Flows), ["No run finished."]);
    }
}
