//! What a comparison comes to: who is helped, by how much, and what it costs; each with its uncertainty.
//!
//! Disciplines meet the same arrivals under each seed, so differences are taken seed by seed and their interval is that
//! of the mean difference (Student's t, 95 %). What is within it, or below two percent, is not called a difference.

use record::{Estimate, Row, Table};
use workload::Way;

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

/// What people wait for, the most telling first; lower is better throughout.
const WAITS: [Question; 3] = [
    question("page_p50_s", "median page", Kind::Time),
    question("fct_p50_s", "median transfer", Kind::Time),
    question("fct_p95_s", "95th percentile of the transfers", Kind::Time),
];

/// What calls and games feel.
const DELAYS: [Question; 2] = [
    question("voice_delay_p99_s", "99th percentile of the delay of calls", Kind::Time),
    question("small_sojourn_p99_s", "99th percentile of the waiting time of small packets", Kind::Time),
];

/// What may get worse.
const COSTS: [Question; 7] = [
    question("fct_gt3MB_p50_s", "median transfer above 3 MB", Kind::Time),
    question("fct_le3MB_p50_s", "median transfer of 300 kB to 3 MB", Kind::Time),
    question("fct_p99_s", "99th percentile of the transfers", Kind::Time),
    question("page_p95_s", "95th percentile of the pages", Kind::Time),
    question("voice_delay_p99_s", "99th percentile of the delay of calls", Kind::Time),
    question("voice_loss", "loss of calls", Kind::Share),
    question("flows_incomplete", "number of transfers that did not finish", Kind::Count),
];

/// The two directions of a table, each with its rows.
struct Ways {
    tables: Vec<(Way, Table)>,
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
    let ways = Ways {
        tables: [Way::Up, Way::Down].map(|way| (way, table.at(&Link::port(way)))).into(),
        seeds: first.seeds.len(),
    };
    if table.rows.len() == 1 {
        return vec![format!("Only {} was run: name another with --qdisc to compare.", short(first))];
    }
    let mut said = Vec::new();
    let mut winners: Vec<String> = Vec::new();
    let waits: &[Question] = if mode == Mode::Flows { &WAITS } else { &[] };
    for questions in [waits, &DELAYS] {
        if let Some((sentence, winner)) = ways.help(questions) {
            said.push(sentence);
            winners.extend(winner.filter(|winner| !winners.contains(winner)));
        }
    }
    for winner in &winners {
        said.push(ways.cost(winner));
    }
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
    /// Who helps most with the first of these questions that has an answer.
    fn help(&self, questions: &[Question]) -> Option<(String, Option<String>)> {
        let mut nothing = None;
        for question in questions {
            for way in self.by_baseline(*question) {
                let changes = self.changes(way, *question);
                let before = changes.first()?.before;
                let best = changes
                    .iter()
                    .filter(|change| change.is_better())
                    .min_by(|a, b| a.after.total_cmp(&b.after));
                if let Some(best) = best {
                    return Some((self.helped(way, *question, best, &changes), Some(best.row.qdisc.clone())));
                }
                nothing.get_or_insert_with(|| {
                    let baseline = short(self.baseline(way));
                    let (what, before) = (question.what, question.kind.text(before));
                    format!(
                        "No discipline improves the {what} {} on {baseline}, {before}, beyond the uncertainty.",
                        way.name()
                    )
                });
            }
        }
        nothing.map(|sentence| (sentence, None))
    }

    fn helped(&self, way: Way, question: Question, best: &Change<'_>, changes: &[Change<'_>]) -> String {
        let Question { what, kind, .. } = question;
        // Who cannot be told from the best is named with it.
        let close = |change: &&Change<'_>| {
            change.row.qdisc != best.row.qdisc
                && change.is_better()
                && change.after - best.after <= change.within.unwrap_or(0.0) + best.within.unwrap_or(0.0)
        };
        let close: Vec<String> = changes.iter().filter(close).map(|change| short(change.row)).collect();
        let also = if close.is_empty() {
            String::new()
        } else {
            format!(
                "; {} {} as good within the uncertainty",
                list(&close),
                if close.len() == 1 { "is" } else { "are" }
            )
        };
        let worst = changes.iter().filter(|change| change.is_worse()).map(|change| short(change.row));
        let worse: Vec<String> = worst.collect();
        let worse =
            if worse.is_empty() { String::new() } else { format!("; {} made it longer", list(&worse)) };
        format!(
            "{} helps: the {what} {} goes from {} with {} to {}{} ({}){also}{worse}.",
            short(best.row),
            way.name(),
            kind.text(best.before),
            short(self.baseline(way)),
            kind.text(best.after),
            best.interval(kind),
            best.percent(),
        )
    }

    /// What got worse with the winner, in either direction.
    fn cost(&self, winner: &str) -> String {
        let mut worse: Vec<(f64, String)> = Vec::new();
        for question in COSTS {
            for (way, _) in &self.tables {
                for change in self.changes(*way, question) {
                    if change.row.qdisc == winner && change.is_worse() {
                        let Question { what, kind, .. } = question;
                        let text = format!(
                            "the {what} {} goes from {} to {}{}",
                            way.name(),
                            kind.text(change.before),
                            kind.text(change.after),
                            change.interval(kind)
                        );
                        worse.push((
                            (change.after - change.before) / change.before.max(f64::MIN_POSITIVE),
                            text,
                        ));
                    }
                }
            }
        }
        worse.sort_by(|a, b| b.0.total_cmp(&a.0));
        let name =
            self.tables[0].1.rows.iter().find(|row| row.qdisc == winner).map(short).unwrap_or_default();
        let told: Vec<String> = worse.into_iter().take(2).map(|(_, text)| text).collect();
        match told.as_slice() {
            [] => format!("Nothing that was measured gets worse with {name} beyond the uncertainty."),
            some => format!("What {name} costs: {}.", some.join(", and ")),
        }
    }

    /// Why nothing differs.
    fn idle(&self) -> String {
        let busiest = self
            .tables
            .iter()
            .filter_map(|(way, table)| Some((*way, table.rows.first()?.metric("utilization")?.mean?)));
        match busiest.max_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((way, used)) if used < 0.5 => format!(
                "The link is used to {:.0} % at most ({}): queues hardly form, and what forms no queue needs no discipline.",
                100.0 * used,
                way.name()
            ),
            Some((way, used)) => {
                format!("The busier direction ({}) is used to {:.0} %.", way.name(), 100.0 * used)
            }
            None => "Nothing was measured that could be compared.".to_owned(),
        }
    }

    /// Directions in which the baseline has this metric, the worse first.
    fn by_baseline(&self, question: Question) -> Vec<Way> {
        let value = |table: &Table| table.rows.first()?.metric(question.metric)?.mean;
        let mut known: Vec<(f64, Way)> =
            self.tables.iter().filter_map(|(way, table)| Some((value(table)?, *way))).collect();
        known.sort_by(|a, b| b.0.total_cmp(&a.0));
        known.into_iter().map(|(_, way)| way).collect()
    }

    fn table(&self, way: Way) -> &Table {
        let found = self.tables.iter().find(|(known, _)| *known == way);
        &found.expect("both directions are there").1
    }

    fn baseline(&self, way: Way) -> &Row {
        &self.table(way).rows[0]
    }

    /// Every other discipline against the first.
    fn changes(&self, way: Way, question: Question) -> Vec<Change<'_>> {
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

    fn interval(&self, kind: Kind) -> String {
        self.within.map(|within| format!(" ± {}", kind.text(within))).unwrap_or_default()
    }

    fn percent(&self) -> String {
        let share = (self.after - self.before) / self.before * 100.0;
        format!("{:.0} % {}", share.abs(), if share < 0.0 { "less" } else { "more" })
    }
}

impl Kind {
    fn text(self, value: f64) -> String {
        match self {
            Kind::Time => time(value),
            Kind::Count => format!("{value:.1}").trim_end_matches(".0").to_owned(),
            Kind::Share => format!("{:.2} %", 100.0 * value),
        }
    }
}

/// Three digits, in the unit that suits.
fn time(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        s if s >= 1.0 => (seconds, "s"),
        s if s >= 1e-3 => (seconds * 1e3, "ms"),
        _ => (seconds * 1e6, "µs"),
    };
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// A discipline without its parameters.
fn short(row: &Row) -> String {
    row.qdisc.split_whitespace().next().unwrap_or_default().to_owned()
}

fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [several @ .., last] => format!("{} and {last}", several.join(", ")),
    }
}
