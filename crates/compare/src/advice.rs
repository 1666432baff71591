//! The recommendation of a comparison: one discipline, at which rate, why, at what cost, and how sure; then
//! the commands.
//!
//! # The choice
//! The candidates are the disciplines of the comparison that the target can have, and the baseline, which
//! stands for changing nothing. The score of a candidate under a seed is the mean, over all times that users
//! wait for ([`TIMES`], in each direction, if enough values are behind them), of the logarithm of its time
//! divided by the baseline's. So a score is the logarithm of a geometric mean of ratios, and no question
//! counts twice as much because its times are longer. A millisecond is added to each time, because nobody
//! notices a smaller difference. Small packets are often few, such as twenty pings, and their sojourn time is
//! then a lower quantile ([`Tables::carried`]).
//!
//! The best candidate is the one with the lowest mean score over the seeds. Candidates whose score cannot be
//! distinguished from it (paired by seed, 95 %) or differs by less than 2 % are as good. Among these the
//! baseline comes first, since changing nothing is easiest; then a discipline that shapes by itself, which
//! needs one command; then the order of the comparison. A candidate that leaves measurably more transfers
//! unfinished than the baseline is not chosen.
//!
//! # The rate
//! The queue must form where the discipline is. A line's own buffer comes first if it is filled, so the
//! shaper is a little slower than the line. The chosen discipline is simulated once more as it is deployed,
//! with its shaper in front of the line. The figures of the recommendation come from this simulation. If it
//! is not better than the baseline there, the recommendation is to make no change.

mod commands;
mod target;

use giveway_disciplines::{Needs, Spec};
use giveway_measure::{DisciplineRow, Estimate, Table, label};
use giveway_qdisc::Rate;
use giveway_record::{Commands, Recommendation};
use giveway_workload::Direction;
use serde_json::{Value, json};

use super::deployed::Shaped;
use super::link::Link;
use super::situation::{Situation, Trust};
use super::tables::{COSTS, Change, SMALL_PACKETS, Tables, WORTH, list, with_interval};

pub use commands::Block;
pub use target::Target;

/// The times that users wait for.
const TIMES: [&str; 8] = [
    "page_load_p50_s",
    "page_load_p95_s",
    "fct_p50_s",
    "fct_p95_s",
    "fct_le3MB_p50_s",
    "fct_gt3MB_p50_s",
    "voice_delay_p99_s",
    SMALL_PACKETS,
];
/// An imperceptible difference, seconds.
const UNNOTICED: f64 = 0.001;
/// The number of largest gains that are reported.
const MAX_GAINS: usize = 2;

/// A difference that is not shown, as a share of the value.
const SAME: f64 = 0.001;
/// The metrics that are reported at the recommended rate.
const AT_THE_RATE: [&str; 9] = [
    "page_load_p50_s",
    "page_load_p95_s",
    "page_load_p99_s",
    "fct_p50_s",
    "fct_p95_s",
    "fct_p99_s",
    "fct_gt3MB_p50_s",
    "voice_delay_p99_s",
    "goodput_bps",
];

/// Options of the recommendation.
#[derive(Clone, Debug)]
pub struct AdviceOptions {
    /// The equipment.
    pub target: Target,
    /// The interface towards the provider, in commands.
    pub wan: String,
    /// The rate of the shaper as a share of the line's, 0 to 1.
    pub shaped: f64,
}

impl Default for AdviceOptions {
    fn default() -> AdviceOptions {
        AdviceOptions { target: Target::Tc, wan: "WAN".to_owned(), shaped: 0.95 }
    }
}

/// A recommendation.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The discipline; `None` recommends no change.
    pub discipline: Option<String>,
    /// Rates of the shaper, upstream and downstream.
    pub rates: (Rate, Rate),
    /// The recommendation in one sentence.
    pub summary: String,
    /// Reasons, cost and certainty: a heading and a sentence each.
    pub reasons: Vec<(&'static str, String)>,
    /// The commands.
    pub commands: Vec<Block>,
    /// The discipline as it is deployed, with its shaper in front of the line; `None` if not simulated.
    pub deployed: Option<DisciplineRow>,
}

/// A discipline that may be recommended.
struct Candidate<'a> {
    row: &'a DisciplineRow,
    spec: Spec,
    /// Its score under each seed; the baseline's is 0.
    scores: Vec<f64>,
}

/// The recommendation for a link; `None` if nothing was compared, or the capture does not allow findings.
/// `deploy` simulates a discipline with its shaper in front of the line, and returns its row of the table;
/// `None` if it did not finish.
pub fn of(
    table: &Table,
    link: &Link,
    situation: &Situation,
    options: &AdviceOptions,
    deploy: &dyn Fn(&Shaped<'_>) -> Option<DisciplineRow>,
) -> Option<Advice> {
    if table.rows.len() < 2 || situation.trust() == Trust::None {
        return None;
    }
    let tables = Tables::new(table);
    let shaped = |rate: Rate| Rate::bit((rate.as_bit() as f64 * options.shaped) as u64);
    let rates = (shaped(link.up), shaped(link.down));
    let Some((candidates, refused)) = candidates(&tables, options.target) else {
        return Some(nothing(
            rates,
            "No time that users wait for was measured often enough to compare.".to_owned(),
            situation,
        ));
    };
    if situation.is_idle(&tables) {
        let why = format!("The link is not the bottleneck. {}", situation.load(&tables));
        return Some(nothing(rates, why, situation));
    }
    let (chosen, equals) = choose(&candidates);
    let base = tables.name(&candidates[0].row.qdisc).to_owned();
    if chosen == 0 {
        let why = format!(
            "No discipline that {} can have shortens the times that users wait for by a measurable {:.0} % against {base}.",
            options.target,
            100.0 * WORTH
        );
        return Some(nothing(rates, why, situation));
    }
    let candidate = &candidates[chosen];
    let name = tables.name(&candidate.row.qdisc).to_owned();
    let by_itself = candidate.spec.in_linux().is_some_and(|linux| linux.shapes);
    let in_front = Shaped {
        spec: &candidate.spec,
        by_itself: by_itself && options.target != Target::Giveway,
        rates: (commands::whole(rates.0), commands::whole(rates.1)),
        line: &candidates[0].spec,
    };
    let deployed = if options.shaped < 1.0 { deploy(&in_front) } else { None };
    let beside = |row: &DisciplineRow| {
        let of = |qdisc: &str| table.rows.iter().find(|row| row.qdisc == qdisc).cloned();
        let with = |first: Option<DisciplineRow>| Table {
            rows: first.into_iter().chain([row.clone()]).collect(),
            ..table.clone()
        };
        (Tables::new(&with(of(&candidates[0].row.qdisc))), Tables::new(&with(of(&candidate.row.qdisc))))
    };
    let compared = deployed.as_ref().map(beside);
    let again = compared
        .as_ref()
        .and_then(|(to_base, _)| Some((to_base, self::candidates(to_base, options.target)?.0)));
    if let Some((_, two)) = &again
        && choose(two).0 == 0
    {
        let why = worse(candidate, two.get(1), (&name, &base), options.shaped);
        return Some(Advice { deployed, ..nothing(rates, why, situation) });
    }
    // The figures are those at the recommended rate, if they are known.
    let (seen, best) = again.as_ref().map_or((&tables, candidate), |(to_base, two)| (*to_base, &two[1]));
    let place = commands::Place { wan: &options.wan, up: rates.0, down: rates.1 };
    let fallback = candidates[1..].iter().find(|other| {
        let without = |spec: &Spec| spec.in_linux().is_some_and(|linux| !linux.shapes);
        by_itself && without(&other.spec)
    });
    let commands = commands::of(options.target, &candidate.spec, fallback.map(|other| &other.spec), &place);
    let mut reasons = vec![("Why", why(seen, best, &base))];
    reasons.push(("Rate", rate(options.shaped)));
    reasons.extend(compared.iter().flat_map(|(_, to_itself)| at_this_rate(to_itself, options.shaped)));
    reasons.push(("Cost", cost(seen, best, (options.shaped, again.is_some()))));
    let equals: Vec<String> = equals
        .into_iter()
        .filter(|at| *at != chosen)
        .map(|at| tables.name(&candidates[at].row.qdisc).to_owned())
        .collect();
    reasons.push(("How sure", sure(seen, best, &equals, situation)));
    if !refused.is_empty() {
        reasons.push(("Not chosen", refused.join(" ")));
    }
    let rate = match rates {
        (up, down) if up == down => format!("{} in both directions", shown(up)),
        (up, down) => format!("{} upstream and {} downstream", shown(up), shown(down)),
    };
    let summary = format!("{name} at {rate}");
    let discipline = Some(candidate.row.qdisc.clone());
    Some(Advice { discipline, rates, summary, reasons, commands, deployed })
}

/// The reason against a discipline that is better at the rate of the line only.
fn worse(
    candidate: &Candidate<'_>,
    deployed: Option<&Candidate<'_>>,
    (name, base): (&str, &str),
    shaped: f64,
) -> String {
    let before = 100.0 * libm::exp(mean(&candidate.scores));
    let at = format!("With its shaper at {:.0} % of it, in front of the line,", 100.0 * shaped);
    let begin = format!(
        "At the rate of the line, {name} would shorten the times that users wait for to {before:.0} % of those with {base}."
    );
    let now = deployed.map(|deployed| percent(&deployed.scores));
    match now {
        Some((now, interval)) => format!("{begin} {at} they are {now}{interval}."),
        None => format!("{begin} {at} it leaves more transfers unfinished."),
    }
}

/// The score of each discipline over all seeds as a ratio to the baseline, with its short name; `None` for a
/// discipline without a time to compare. The baseline has 1.
pub fn ranking(table: &Table) -> Vec<(String, Option<f64>)> {
    let tables = Tables::new(table);
    let name = |row: &DisciplineRow| tables.name(&row.qdisc).to_owned();
    let rows = table.rows.iter().enumerate();
    rows.map(|(at, row)| (name(row), scores(&tables, at).map(|scores| libm::exp(mean(&scores))))).collect()
}

/// The advice to make no change.
fn nothing(rates: (Rate, Rate), why: String, situation: &Situation) -> Advice {
    let mut reasons = vec![("Why", why)];
    reasons.extend(situation.doubt().map(|doubt| ("How sure", doubt)));
    Advice {
        discipline: None,
        rates,
        summary: "Change nothing".to_owned(),
        reasons,
        commands: Vec::new(),
        deployed: None,
    }
}

/// The candidates, the baseline first, and sentences on better disciplines that are none; `None` without a
/// time to compare.
fn candidates(tables: &Tables, target: Target) -> Option<(Vec<Candidate<'_>>, Vec<String>)> {
    let rows = &tables.table(Direction::Up).rows;
    let mut candidates = Vec::new();
    let mut others = Vec::new();
    let mut starving = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let spec: Spec = row.qdisc.parse().ok()?;
        let scores = scores(tables, at)?;
        let usable = spec.needs() == Needs::Nothing;
        let candidate = Candidate { row, spec, scores };
        if usable && leaves_more_unfinished(tables, &row.qdisc) {
            starving.push(candidate);
        } else if at == 0 || (usable && commands::can_have(target, &candidate.spec)) {
            candidates.push(candidate);
        } else if usable {
            others.push(candidate);
        }
    }
    let best = candidates.iter().min_by(|a, b| mean(&a.scores).total_cmp(&mean(&b.scores)))?;
    let better = |other: &&Candidate<'_>| {
        !as_good(&best.scores, &other.scores) && mean(&other.scores) < mean(&best.scores)
    };
    let names = |some: &[Candidate<'_>]| -> Vec<String> {
        some.iter().filter(better).map(|other| tables.name(&other.row.qdisc).to_owned()).collect()
    };
    let reported =
        |names: Vec<String>, what: String| (!names.is_empty()).then(|| format!("{} {what}.", list(&names)));
    let refused = [
        reported(names(&others), format!("would be better, but {target} does not have it")),
        reported(names(&starving), "would be better, but leaves more transfers unfinished".to_owned()),
    ];
    Some((candidates, refused.into_iter().flatten().collect()))
}

fn leaves_more_unfinished(tables: &Tables, qdisc: &str) -> bool {
    let worse = |direction| {
        let changes = tables.changes(direction, "flows_incomplete");
        changes.iter().any(|change| change.row.qdisc == qdisc && change.is_worse())
    };
    worse(Direction::Up) || worse(Direction::Down)
}

/// The score of a discipline under each seed; `None` without a time to compare.
fn scores(tables: &Tables, at: usize) -> Option<Vec<f64>> {
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

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// True if the second score cannot be distinguished from the first, or differs by too little.
fn as_good(one: &[f64], other: &[f64]) -> bool {
    let pairs = one.iter().zip(other).map(|(one, other)| Some(other - one)).collect();
    let difference = Estimate::over(pairs);
    let change = difference.mean.unwrap_or(0.0).abs();
    change <= difference.ci95.unwrap_or(0.0) || change < WORTH
}

/// The index of the recommended candidate, and the indices of all that are as good as the best.
fn choose(candidates: &[Candidate<'_>]) -> (usize, Vec<usize>) {
    let score = |at: &usize| mean(&candidates[*at].scores);
    let best =
        (0..candidates.len()).min_by(|a, b| score(a).total_cmp(&score(b))).expect("the baseline is there");
    let good = |at: &usize| as_good(&candidates[best].scores, &candidates[*at].scores);
    let equals: Vec<usize> = (0..candidates.len()).filter(good).collect();
    let shapes = |at: &&usize| candidates[**at].spec.in_linux().is_some_and(|linux| linux.shapes);
    let chosen = match equals[0] {
        0 => 0,
        first => equals.iter().find(shapes).copied().unwrap_or(first),
    };
    (chosen, equals)
}

/// The change of each time that users wait for, with its clause.
fn changes<'a>(tables: &'a Tables, candidate: &Candidate<'_>) -> Vec<(Change<'a>, String)> {
    let mut found = Vec::new();
    for direction in [Direction::Up, Direction::Down] {
        for metric in times(tables, direction) {
            let mut all = tables.changes(direction, metric).into_iter();
            let Some(change) = all.find(|change| change.row.qdisc == candidate.row.qdisc) else { continue };
            let clause = change.clause(metric, direction);
            found.push((change, clause));
        }
    }
    found
}

/// The gain over all times, and the largest single ones.
fn why(tables: &Tables, candidate: &Candidate<'_>, base: &str) -> String {
    let changes = changes(tables, candidate);
    let times = changes.len();
    let better = changes.iter().filter(|(change, _)| change.is_better());
    let mut gains: Vec<(f64, &String)> = better.map(|(change, text)| (change.gain(), text)).collect();
    gains.sort_by(|a, b| b.0.total_cmp(&a.0));
    let reported: Vec<String> = gains.into_iter().take(MAX_GAINS).map(|(_, text)| text.clone()).collect();
    let reported = if reported.is_empty() { String::new() } else { format!(": {}", list(&reported)) };
    let (typical, interval) = percent(&candidate.scores);
    format!(
        "the {times} times that users wait for are {typical} of those with {base}, as a geometric mean{interval}{reported}."
    )
}

/// The geometric mean of ratios in percent, and its interval in parentheses, from their logarithms.
fn percent(scores: &[f64]) -> (String, String) {
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

/// The figures at the recommended rate, each with its difference to that at the rate of the line: a heading
/// and a text for each direction. The first row of the tables is the discipline at the rate of the line, the
/// second one with its shaper.
fn at_this_rate(tables: &Tables, shaped: f64) -> Vec<(&'static str, String)> {
    let what = format!(
        "simulated with the shaper at {:.0} %, in front of the line and its fifo, with the same traffic and seeds. In \
         parentheses is the difference to 100 %.",
        100.0 * shaped
    );
    let mut reasons = vec![("At this rate", what)];
    for (direction, heading) in [(Direction::Up, "Upstream"), (Direction::Down, "Downstream")] {
        let figure = |metric: &str| {
            let change = tables.changes(direction, metric).into_iter().next()?;
            let within = change.row.metric(metric)?.ci95;
            let is_same = (change.after - change.before).abs() <= SAME * change.before.abs();
            let difference = if is_same { "the same".to_owned() } else { change.difference(metric) };
            Some(format!("{} {} ({difference})", label(metric), with_interval(metric, change.after, within)))
        };
        let figures: Vec<String> = AT_THE_RATE.into_iter().filter_map(figure).collect();
        if !figures.is_empty() {
            reasons.push((heading, format!("{}.", figures.join(", "))));
        }
    }
    reasons
}

fn rate(shaped: f64) -> String {
    if shaped >= 1.0 {
        return "the rate of the line. A queue in the modem is out of reach of any discipline, so a rate a little below the \
                line's is safer: --shape 95."
            .to_owned();
    }
    format!(
        "{:.0} % of the line's, so that the queue forms here and not in the modem, whose buffer no discipline reaches. If \
         delays stay long, lower it (--shape); if the line's rate varies, take the lowest.",
        100.0 * shaped
    )
}

/// The values that become worse. `includes` is true if the tables include the shaper.
fn cost(tables: &Tables, candidate: &Candidate<'_>, (shaped, includes): (f64, bool)) -> String {
    let mut worse = Vec::new();
    for metric in COSTS {
        for (direction, _) in tables.iter() {
            let metric = tables.carried(*direction, metric);
            let changes = tables.changes(*direction, metric);
            let own = |change: &&Change<'_>| change.row.qdisc == candidate.row.qdisc && change.is_worse();
            worse.extend(changes.iter().find(own).map(|change| change.clause(metric, *direction)));
        }
    }
    let rate = (shaped < 1.0).then(|| {
        let which = if includes { "these figures include" } else { "the comparison above does not include" };
        format!("{:.0} % of the rate, which {which}", 100.0 * (1.0 - shaped))
    });
    match (rate, worse.is_empty()) {
        (Some(rate), true) => format!("{rate}; nothing else that was measured often enough becomes worse."),
        (Some(rate), false) => format!("{rate}; {}.", list(&worse)),
        (None, true) => "nothing that was measured often enough becomes worse.".to_owned(),
        (None, false) => format!("{}.", list(&worse)),
    }
}

fn sure(tables: &Tables, candidate: &Candidate<'_>, equals: &[String], situation: &Situation) -> String {
    let better = candidate.scores.iter().filter(|score| **score < 0.0).count();
    let mut text = match tables.seeds {
        1 => "one run, so nothing is known about chance; --seeds 5 adds intervals.".to_owned(),
        seeds if situation.resample.is_some() => format!(
            "better in {better} of {seeds} runs. Each run has another draw of stretches of the capture of {}, so the intervals \
             include how much the traffic of this capture varies. Another evening may still differ.",
            situation.resample.unwrap_or_default()
        ),
        seeds => format!(
            "better in {better} of {seeds} runs. Runs differ in when connections begin, not in what they transfer: {seeds} seeds \
             are not {seeds} evenings, and the capture of another evening may differ (--bootstrap varies the traffic as well)."
        ),
    };
    if !equals.is_empty() {
        text.push_str(&format!(" As good within the uncertainty: {}.", list(equals)));
    }
    if let Some(doubt) = situation.doubt() {
        text.push_str(&format!(" {doubt}"));
    }
    text
}

/// A rate for people, with up to three decimals.
fn shown(rate: Rate) -> String {
    let mbit = format!("{:.3}", rate.as_bit() as f64 / 1e6);
    format!("{} Mbit/s", mbit.trim_end_matches('0').trim_end_matches('.'))
}

impl Advice {
    /// The recommendation for a report.
    pub fn recommendation(&self) -> Recommendation {
        let commands = |block: &Block| Commands { title: block.title.clone(), lines: block.lines.clone() };
        Recommendation {
            summary: self.summary.clone(),
            reasons: self.reasons.iter().map(|(what, text)| ((*what).to_owned(), text.clone())).collect(),
            commands: self.commands.iter().map(commands).collect(),
        }
    }

    /// The recommendation for programs: rates in bit/s.
    pub fn to_json(&self) -> Value {
        let reasons: serde_json::Map<String, Value> = self
            .reasons
            .iter()
            .map(|(what, text)| (what.to_lowercase().replace(' ', "_"), json!(text)))
            .collect();
        let commands: Vec<Value> =
            self.commands.iter().map(|block| json!({ "title": block.title, "lines": block.lines })).collect();
        json!({
            "discipline": self.discipline,
            "rate_upstream_bps": self.rates.0.as_bit(),
            "rate_downstream_bps": self.rates.1.as_bit(),
            "summary": self.summary,
            "reasons": reasons,
            "commands": commands,
            "deployed": self.deployed.as_ref().map(deployed),
        })
    }
}

/// The metrics of a deployed discipline with a value.
fn deployed(row: &DisciplineRow) -> Value {
    let known = row.metrics.iter().filter(|(_, value)| value.mean.is_some());
    let metrics: serde_json::Map<String, Value> =
        known.map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({ "metrics": metrics })
}

#[cfg(test)]
mod tests {
    use giveway_measure::Fingerprint;

    use super::*;

    /// Downloads with this median and 95th percentile, and calls with this delay, under three seeds.
    fn row(qdisc: &str, median: [f64; 3], slow: f64, call: f64) -> DisciplineRow {
        let at = |metric: &str, values: [f64; 3]| {
            let values = values.iter().map(|value| Some(*value)).collect();
            (format!("at.{}.{metric}", Link::port(Direction::Down)), Estimate::over(values))
        };
        let metrics = vec![
            at("flows_completed", [30.0; 3]),
            at("flows_incomplete", [0.0; 3]),
            at("fct_p50_s", median),
            at("fct_p95_s", [slow; 3]),
            at("voice_delay_p99_s", [call; 3]),
            at("sojourn_p99_s", [call; 3]),
            at("utilization", [0.8; 3]),
        ];
        DisciplineRow { qdisc: qdisc.to_owned(), seeds: vec![1, 2, 3], metrics }
    }

    fn advice(rows: Vec<DisciplineRow>, target: Target) -> Advice {
        deploying(rows, target, &|_| None)
    }

    fn deploying(
        rows: Vec<DisciplineRow>,
        target: Target,
        deploy: &dyn Fn(&Shaped<'_>) -> Option<DisciplineRow>,
    ) -> Advice {
        let table = Table { rows, fingerprint: Fingerprint::EMPTY, events: 0, bottleneck_packets: None };
        let link = Link { up: Rate::mbit(2), down: Rate::mbit(16), rtt: None, resample: None, hours: None };
        let situation = Situation { missing: 0.0, stretch: 1.0, resample: None };
        of(&table, &link, &situation, &AdviceOptions { target, ..AdviceOptions::default() }, deploy)
            .expect("there are rows")
    }

    /// Summary, reasons and commands, a line each.
    fn written(advice: &Advice) -> String {
        let Recommendation { summary, reasons, commands } = advice.recommendation();
        let reasons = reasons.into_iter().map(|(what, text)| format!("{what}: {text}"));
        let commands =
            commands.into_iter().map(|block| format!("{}: {}", block.title, block.lines.join("; ")));
        let lines = [format!("Recommendation: {summary}.")].into_iter().chain(reasons).chain(commands);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Loss of calls is not a time that users wait for, but it is a cost.
    #[test]
    fn every_loss_is_a_cost() {
        let lossy = |mut row: DisciplineRow, loss: f64| {
            let values = vec![Some(loss); 3];
            row.metrics
                .push((format!("at.{}.voice_loss", Link::port(Direction::Down)), Estimate::over(values)));
            row
        };
        let cost = |loss| {
            let rows = vec![lossy(fifo(), 0.001), lossy(row("cake", [0.5; 3], 1.0, 0.01), loss)];
            let advice = advice(rows, Target::Tc);
            advice.reasons.iter().find(|(what, _)| *what == "Cost").expect("there is one").1.clone()
        };
        assert!(cost(0.001).contains("nothing else"), "{}", cost(0.001));
        assert!(
            cost(0.05).contains("packet loss of calls downstream is 5.00 % instead of"),
            "{}",
            cost(0.05)
        );
    }

    /// Small packets of one direction with these waits: median, 95th and 99th percentile.
    fn small(qdisc: &str, packets: f64, waits: [f64; 3]) -> DisciplineRow {
        let at = |metric: &str, value: f64| {
            (format!("at.{}.{metric}", Link::port(Direction::Up)), Estimate::over(vec![Some(value); 3]))
        };
        let metrics = vec![
            at("small_sojourn_packets", packets),
            at("small_sojourn_p50_s", waits[0]),
            at("small_sojourn_p95_s", waits[1]),
            at("small_sojourn_p99_s", waits[2]),
            at("sojourn_p99_s", 0.6),
        ];
        DisciplineRow { qdisc: qdisc.to_owned(), seeds: vec![1, 2, 3], metrics }
    }

    /// The highest quantile of the sojourn times of small packets decides that enough of them are behind.
    #[test]
    fn few_small_packets_are_a_reason_to_change() {
        let advice = |packets, waits| {
            advice(
                vec![small("fifo", packets, [0.3, 0.4, 0.5]), small("fq_codel", packets, waits)],
                Target::Tc,
            )
        };
        for (packets, label) in [
            (99.0, "95th percentile of the sojourn times of small packets"),
            (100.0, "99th percentile of the sojourn times of small packets"),
            (20.0, "95th percentile of the sojourn times of small packets"),
            (19.0, "median sojourn time of small packets"),
        ] {
            let advice = advice(packets, [0.01, 0.02, 0.03]);
            assert_eq!(advice.discipline.as_deref(), Some("fq_codel"), "{packets}");
            let why = &advice.reasons[0].1;
            assert!(why.contains(&format!("the {label} upstream is")), "{why}");
        }
        assert_eq!(advice(99.0, [0.3, 0.4, 0.1]).discipline, None, "the 99th percentile is one packet");
        assert_eq!(advice(4.0, [0.01, 0.02, 0.03]).discipline, None, "four packets say nothing");
    }

    fn fifo() -> DisciplineRow {
        row("fifo limit 100p", [1.0, 1.1, 0.9], 4.0, 0.4)
    }

    #[test]
    fn cake_is_recommended_with_its_commands() {
        let rows = vec![
            fifo(),
            row("fq_codel", [0.5, 0.6, 0.4], 1.0, 0.01),
            row("cake", [0.5, 0.61, 0.4], 1.0, 0.01),
            row("efd limit 100p", [0.3, 0.3, 0.3], 0.5, 0.005),
        ];
        let advice = advice(rows, Target::Tc);
        assert_eq!(advice.discipline.as_deref(), Some("cake"), "as good as fq_codel, with one command");
        insta::assert_snapshot!(written(&advice));
    }

    #[test]
    fn another_target_has_other_disciplines() {
        let rows =
            || vec![fifo(), row("cake", [0.5; 3], 1.0, 0.01), row("efd limit 100p", [0.3; 3], 0.5, 0.005)];
        assert_eq!(advice(rows(), Target::Openwrt).discipline.as_deref(), Some("cake"));
        assert_eq!(advice(rows(), Target::Giveway).discipline.as_deref(), Some("efd limit 100p"));
        assert_eq!(advice(rows(), Target::Any).discipline.as_deref(), Some("efd limit 100p"));
    }

    /// A discipline that needs to know the future, or a reservation, is never recommended.
    #[test]
    fn what_nobody_can_have_is_not_recommended() {
        let rows = vec![fifo(), row("srpt", [0.1; 3], 0.1, 0.001), row("wf2q", [0.1; 3], 0.1, 0.001)];
        assert_eq!(advice(rows, Target::Any).summary, "Change nothing");
    }

    #[test]
    fn a_link_that_is_no_bottleneck_is_left_alone() {
        let rows = vec![row("fifo limit 100p", [1.0; 3], 4.0, 0.004), row("cake", [0.5; 3], 1.0, 0.001)];
        let advice = advice(rows, Target::Tc);
        assert_eq!((advice.discipline, advice.commands), (None, Vec::new()));
        assert!(advice.reasons[0].1.starts_with("The link is not the bottleneck."), "{:?}", advice.reasons);
    }

    /// Differences of both signs are chance.
    #[test]
    fn chance_changes_nothing() {
        let rows = vec![fifo(), row("cake", [1.2, 0.8, 0.9], 4.0, 0.4)];
        assert_eq!(advice(rows, Target::Tc).summary, "Change nothing");
    }

    #[test]
    fn a_discipline_that_leaves_transfers_unfinished_is_not_chosen() {
        let mut starving = row("cake", [0.1; 3], 0.1, 0.001);
        starving.metrics[1].1 = Estimate::over(vec![Some(3.0); 3]);
        let rows = vec![fifo(), starving, row("fq_codel", [0.5; 3], 1.0, 0.01)];
        assert_eq!(advice(rows, Target::Tc).discipline.as_deref(), Some("fq_codel"));
    }

    /// With the shaper the figures are those that `deploy` returns.
    #[test]
    fn the_figures_are_those_of_the_deployed_discipline() {
        let rows = vec![fifo(), row("cake", [0.5, 0.625, 0.375], 1.0, 0.01)];
        let deploy = |shaped: &Shaped<'_>| {
            assert_eq!(shaped.rates, (Rate::kbit(1900), Rate::kbit(15_200)));
            assert!(shaped.by_itself, "cake has a bandwidth");
            assert_eq!(shaped.line.to_string(), "fifo limit 100p");
            Some(row("cake", [0.625, 0.75, 0.5], 1.25, 0.02))
        };
        let advice = deploying(rows, Target::Tc, &deploy);
        assert_eq!(advice.discipline.as_deref(), Some("cake"));
        let text = written(&advice);
        assert!(
            text.contains(
                "the 99th percentile of the delay of calls downstream is 20.0 ms instead of 400 ms"
            ),
            "{text}"
        );
        assert!(text.contains("median flow completion time 625 ± 311 ms (125 ± 0 ms more)"), "{text}");
        assert!(text.contains("Cost: 5 % of the rate, which these figures include"), "{text}");
        let json = advice.to_json();
        assert_eq!(json["deployed"]["metrics"]["at.far->local.fct_p95_s"]["mean"], 1.25);
    }

    #[test]
    fn a_discipline_that_is_no_better_when_deployed_is_not_recommended() {
        let rows = || vec![fifo(), row("cake", [0.5; 3], 1.0, 0.01)];
        let same = deploying(rows(), Target::Tc, &|_| Some(row("cake", [1.0, 1.1, 0.9], 4.0, 0.4)));
        assert_eq!((same.discipline, same.commands), (None, Vec::new()));
        assert!(same.reasons[0].1.ends_with("in front of the line, they are 100 %."), "{:?}", same.reasons);
        let mut starving = row("cake", [0.5; 3], 1.0, 0.01);
        starving.metrics[1].1 = Estimate::over(vec![Some(3.0); 3]);
        let starved = deploying(rows(), Target::Tc, &|_| Some(starving.clone()));
        assert!(
            starved.reasons[0].1.ends_with("it leaves more transfers unfinished."),
            "{:?}",
            starved.reasons
        );
    }

    /// The rate of the line needs no second simulation.
    #[test]
    fn the_whole_rate_is_simulated_once() {
        let rows = vec![fifo(), row("cake", [0.5; 3], 1.0, 0.01)];
        let table = Table { rows, fingerprint: Fingerprint::EMPTY, events: 0, bottleneck_packets: None };
        let link = Link { up: Rate::mbit(2), down: Rate::mbit(16), rtt: None, resample: None, hours: None };
        let situation = Situation { missing: 0.0, stretch: 1.0, resample: None };
        let options = AdviceOptions { shaped: 1.0, ..AdviceOptions::default() };
        let advice = of(&table, &link, &situation, &options, &|_| panic!("nothing is deployed"));
        assert_eq!(advice.expect("there are rows").deployed, None);
    }
}
