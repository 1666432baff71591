//! The recommendation of a comparison: one discipline, in which directions, at which rate, what it changes,
//! at what cost, and how sure; then the commands.
//!
//! # The choice
//! The candidates are the disciplines of the comparison that the target can have. Their scores in the
//! comparison ([`score`]) give the order in which they are tried. A candidate is tried in each direction that
//! has a queue, and in both: each of these setups is simulated once more as it is deployed, with its shaper
//! in front of the line ([`deployed`](super::deployed)). All figures of the recommendation come from these
//! simulations.
//!
//! A setup is recommended if a time that users wait for becomes certainly shorter, the score is better, and
//! nothing becomes measurably worse by more than the price of the shaper ([`mod@effects`]): a loss
//! disqualifies, in either direction. Among setups of a candidate that are as good within the uncertainty,
//! one direction comes before both. If no setup of a candidate qualifies, the next candidate is tried, up to
//! [`TRIES`]. If none does, the recommendation is to change nothing, with the effects of the best setup.
//!
//! There is no recommendation from a part of the runs.
//!
//! # The rate
//! The queue must form where the discipline is. A line's own buffer comes first if it is filled, so the
//! shaper is a little slower than the line.

mod commands;
mod effects;
mod overhead;
mod score;
mod sentences;
mod target;

use giveway_measure::{DisciplineRow, Table};
use giveway_qdisc::Rate;
use giveway_record::{Commands, Effects, Recommendation};
use giveway_workload::Direction;
use serde_json::{Value, json};

use super::deployed::Shaped;
use super::link::Link;
use super::pair::{self, Pair};
use super::sides::Sides;
use super::situation::{Situation, Trust};
use super::tables::Tables;

use self::effects::effects;
use self::score::{Candidate, Field, as_good, field, mean};

pub use commands::Block;
pub use effects::{Effect, Verdict};
pub use overhead::Overhead;
pub use score::ranking;
pub use target::Target;

/// The maximum number of disciplines that are simulated as they are deployed.
const TRIES: usize = 3;

/// Options of the recommendation.
#[derive(Clone, Debug)]
pub struct AdviceOptions {
    /// The equipment.
    pub target: Target,
    /// The interface towards the provider, in commands; `None` if it is not known.
    pub wan: Option<String>,
    /// The rate of the shaper as a share of the line's, 0 to 1.
    pub shaped: f64,
    /// The bytes that the line adds to packets; `None` if they are not known.
    pub overhead: Option<Overhead>,
}

impl Default for AdviceOptions {
    fn default() -> AdviceOptions {
        AdviceOptions { target: Target::Tc, wan: None, shaped: 0.95, overhead: None }
    }
}

/// A recommendation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// The recommended setup; `None` recommends no change.
    pub setup: Option<Setup>,
    /// The recommendation in one sentence.
    pub summary: String,
    /// The setup of the effects: the recommended one, or else the best one that was tried.
    pub tried: Option<Tried>,
    /// Reasons, cost and certainty: a heading and a sentence each.
    pub reasons: Vec<(&'static str, String)>,
    /// The commands.
    pub commands: Vec<Block>,
}

/// A discipline with the directions in which it is set up.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The discipline, as the comparison names it.
    pub discipline: String,
    /// The directions.
    pub sides: Sides,
    /// The rate of the shaper upstream; `None` if it stays as it is.
    pub up: Option<Rate>,
    /// The rate of the shaper downstream; `None` if it stays as it is.
    pub down: Option<Rate>,
}

/// A setup that was simulated as it is deployed.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The setup in words, as in "cake upstream only".
    pub name: String,
    /// The first discipline of the comparison, which stands for no change.
    pub baseline: String,
    /// Each time and each loss that was measured.
    pub effects: Vec<Effect>,
    /// Its metrics, with the names that they have in the comparison.
    pub row: DisciplineRow,
}

/// A question for a recommendation.
pub struct Question<'a> {
    /// The table of the comparison. Its first row is the baseline.
    pub table: &'a Table,
    /// The disciplines of the comparison in both directions.
    pub pairs: &'a [Pair],
    /// The number of runs that the comparison has when it is complete.
    pub planned: usize,
    /// The link.
    pub link: &'a Link,
    /// Facts about the capture and the link.
    pub situation: &'a Situation,
    /// Options of the recommendation.
    pub options: &'a AdviceOptions,
    /// Simulates a discipline with its shaper in front of the line, and returns its row of the table; `None`
    /// if it did not finish.
    pub deploy: &'a dyn Fn(&Shaped<'_>) -> Option<DisciplineRow>,
    /// Simulates the baseline and a setup with the least or the greatest think times that the capture allows;
    /// `None` if it leaves none open.
    pub rethink: Option<&'a Rethink<'a>>,
}

/// The rows of the baseline and of a setup with other think times, named as scenarios do; `None` if a
/// simulation did not finish.
pub type Rethink<'a> = dyn Fn(&Shaped<'_>, &'static str) -> Option<[DisciplineRow; 2]> + 'a;

/// A setup of a candidate, with its results.
struct Simulated {
    sides: Sides,
    row: DisciplineRow,
    effects: Vec<Effect>,
    /// The score under each seed.
    scores: Vec<f64>,
}

impl Simulated {
    /// True if it makes a time certainly shorter and no other one measurably worse.
    fn qualifies(&self) -> bool {
        self.is_trade() && self.effects.iter().all(|effect| effect.verdict != Verdict::Worse)
    }

    /// True if it makes some times certainly shorter, more than it makes others longer.
    fn is_trade(&self) -> bool {
        let gains = |effect: &Effect| effect.is_reason && effect.verdict == Verdict::Better;
        self.effects.iter().any(gains) && mean(&self.scores) < 0.0
    }
}

/// The recommendation for a link; `None` if nothing was compared, or the capture does not allow findings.
pub fn of(question: &Question<'_>) -> Option<Advice> {
    let Question { table, situation, options, .. } = *question;
    if question.pairs.len() < 2 || situation.trust() == Trust::None {
        return None;
    }
    let finished: usize = table.rows.iter().map(|row| row.seeds.len()).sum();
    if finished < question.planned {
        return Some(unfinished(finished, question.planned));
    }
    let tables = Tables::new(table);
    let Some(field) = field(&tables, question.pairs, options.target) else {
        let why = "No time that users wait for was measured often enough to compare.";
        return Some(nothing(why.to_owned(), situation));
    };
    if situation.is_idle(&tables) {
        let why = format!("The link is not the bottleneck. {}", situation.load(&tables));
        return Some(nothing(why, situation));
    }
    let mut rejected: Vec<(&Candidate<'_>, Simulated)> = Vec::new();
    for candidate in field.others.iter().take(TRIES) {
        let Some(simulated) = simulate(question, &field, candidate, situation.queues(&tables)) else {
            return Some(unfinished(finished, question.planned));
        };
        let (chosen, others) = choose(simulated);
        if let Some(chosen) = chosen {
            return Some(recommend(question, &tables, &field, candidate, chosen, &others));
        }
        rejected.extend(others.into_iter().map(|one| (candidate, one)));
    }
    let best = rejected.into_iter().min_by(|a, b| mean(&a.1.scores).total_cmp(&mean(&b.1.scores)));
    let base = tables.name(&field.baseline.row.qdisc);
    let Some((candidate, best)) = best else {
        return Some(nothing(sentences::no_candidate(options.target, base), situation));
    };
    let name = format!("{} {}", tables.name(&candidate.row.qdisc), best.sides);
    let mut advice =
        nothing(sentences::rejected(&name, base, &best.effects, &best.scores, options.target), situation);
    if best.is_trade() {
        advice.summary = format!("Change nothing, unless you accept the losses of {name}");
        advice.commands = setup_of(question, &field, candidate, best.sides);
        if let Some(first) = advice.commands.first_mut() {
            first.title = format!("If you accept the losses: {}", first.title);
        }
    }
    advice.tried = Some(Tried { name, baseline: base.to_owned(), effects: best.effects, row: best.row });
    Some(advice)
}

/// The setups of a candidate in the directions that have a queue; `None` if a simulation did not finish.
fn simulate(
    question: &Question<'_>,
    field: &Field<'_>,
    candidate: &Candidate<'_>,
    queues: [bool; 2],
) -> Option<Vec<Simulated>> {
    let has_queue = |sides: &&Sides| {
        [Direction::Up, Direction::Down].into_iter().all(|way| !sides.includes(way) || queues[way as usize])
    };
    let mut rows = vec![question.table.rows[0].clone()];
    let mut setups = Vec::new();
    for sides in Sides::ALL.iter().filter(has_queue) {
        let row = (question.deploy)(&shaped(question, field, candidate, *sides))?;
        // The row of each setup needs a name of its own in the table.
        rows.push(DisciplineRow { qdisc: sides.to_string(), ..row.clone() });
        setups.push((*sides, row));
    }
    let tables = Tables::of(&Table { rows, ..question.table.clone() }, &effects::METRICS, 1.0);
    let each = setups.into_iter().enumerate().map(|(at, (sides, row))| Simulated {
        sides,
        effects: effects(&tables, &sides.to_string(), question.options.shaped),
        scores: score::scores(&tables, at + 1).unwrap_or_default(),
        row,
    });
    Some(each.collect())
}

/// A candidate as it is deployed in these directions.
fn shaped<'a>(
    question: &Question<'a>,
    field: &Field<'a>,
    candidate: &Candidate<'a>,
    sides: Sides,
) -> Shaped<'a> {
    Shaped {
        pair: candidate.pair,
        by_itself: question.options.target != Target::Giveway,
        rates: rates(question, sides),
        line: field.baseline.pair,
    }
}

/// The score of a setup under each seed, with other think times; `None` if it is not known.
fn rethought(question: &Question<'_>, setup: &Shaped<'_>, think: &'static str) -> Option<Vec<f64>> {
    let rows = question.rethink?(setup, think)?;
    let mut rows = rows.to_vec();
    rows[1].qdisc = think.to_owned();
    score::scores(&Tables::of(&Table { rows, ..question.table.clone() }, &effects::METRICS, 1.0), 1)
}

/// The rates of the shaper in both directions.
fn rates(question: &Question<'_>, sides: Sides) -> [Option<Rate>; 2] {
    let shaped = |rate: Rate| Rate::bit((rate.as_bit() as f64 * question.options.shaped) as u64);
    [Direction::Up, Direction::Down]
        .map(|way| sides.includes(way).then(|| commands::whole(shaped(question.link.rate(way)))))
}

/// The recommended setup, and the others. One direction comes before both, if they are as good.
fn choose(mut simulated: Vec<Simulated>) -> (Option<Simulated>, Vec<Simulated>) {
    let score = |one: &Simulated| mean(&one.scores);
    let qualified = || simulated.iter().enumerate().filter(|(_, one)| one.qualifies());
    let best = qualified().min_by(|a, b| score(a.1).total_cmp(&score(b.1)));
    let chosen = best.map(|(best, one)| {
        let is_single = |one: &Simulated| one.sides != Sides::Both;
        let as_good =
            |(_, other): &(usize, &Simulated)| is_single(other) && as_good(&one.scores, &other.scores);
        qualified().filter(|_| !is_single(one)).find(as_good).map_or(best, |(at, _)| at)
    });
    let chosen = chosen.map(|at| simulated.remove(at));
    (chosen, simulated)
}

fn recommend(
    question: &Question<'_>,
    tables: &Tables,
    field: &Field<'_>,
    candidate: &Candidate<'_>,
    chosen: Simulated,
    others: &[Simulated],
) -> Advice {
    let Question { situation, options, .. } = *question;
    let name = tables.name(&candidate.row.qdisc).to_owned();
    let base = tables.name(&field.baseline.row.qdisc).to_owned();
    let rates = rates(question, chosen.sides);
    let mut commands = setup_of(question, field, candidate, chosen.sides);
    commands.push(commands::check(options.target, options.wan.as_deref(), rates));
    let mut reasons = vec![("Why", sentences::why(&chosen.effects, &chosen.scores, &base))];
    reasons.push(("Rate", sentences::rate(options.shaped)));
    reasons.extend(sentences::overhead(options.overhead, situation).map(|text| ("Overhead", text)));
    reasons.push(("Cost", sentences::cost(&chosen.effects, options.shaped)));
    let equals = field
        .others
        .iter()
        .filter(|other| other.row.qdisc != candidate.row.qdisc && as_good(&candidate.scores, &other.scores));
    let equals: Vec<String> = equals.map(|other| tables.name(&other.row.qdisc).to_owned()).collect();
    reasons.push(("How sure", sentences::sure(&chosen.scores, &equals, situation)));
    let setup = shaped(question, field, candidate, chosen.sides);
    let bounds = ["least", "most"].map(|think| rethought(question, &setup, think));
    if let [Some(least), Some(most)] = bounds {
        reasons.push(("Think times", sentences::thinks(&chosen.scores, &least, &most, &base)));
    }
    let not_chosen: Vec<String> = others
        .iter()
        .map(|one| sentences::not_chosen(one.sides, &one.effects, &one.scores, &chosen.scores))
        .chain(field.refused.clone())
        .collect();
    if !not_chosen.is_empty() {
        reasons.push(("Not chosen", not_chosen.join(" ")));
    }
    reasons.push(("Check", sentences::check(&chosen.effects)));
    reasons.push(("After a reboot", sentences::reboot(options.target).to_owned()));
    let [up, down] = rates;
    Advice {
        summary: sentences::summary(&name, rates),
        setup: Some(Setup { discipline: candidate.row.qdisc.clone(), sides: chosen.sides, up, down }),
        tried: Some(Tried {
            name: format!("{name} {}", chosen.sides),
            baseline: base,
            effects: chosen.effects,
            row: chosen.row,
        }),
        reasons,
        commands,
    }
}

/// The commands for a candidate in these directions.
fn setup_of(
    question: &Question<'_>,
    field: &Field<'_>,
    candidate: &Candidate<'_>,
    sides: Sides,
) -> Vec<Block> {
    let options = question.options;
    let shapes = |pair: &Pair| pair.iter().any(pair::shapes);
    let fallback = field.others.iter().find(|other| shapes(candidate.pair) && !shapes(other.pair));
    let place = commands::Place {
        wan: options.wan.as_deref(),
        rates: rates(question, sides),
        overhead: options.overhead,
    };
    commands::of(options.target, candidate.pair, fallback.map(|other| other.pair), &place)
}

/// The advice to make no change.
fn nothing(why: String, situation: &Situation) -> Advice {
    let mut reasons = vec![("Why", why)];
    reasons.extend(situation.doubt().map(|doubt| ("How sure", doubt)));
    Advice { summary: "Change nothing".to_owned(), reasons, ..Advice::default() }
}

/// The answer while runs are missing.
fn unfinished(finished: usize, planned: usize) -> Advice {
    let why = format!(
        "{finished} of {planned} runs of the comparison are finished. A recommendation needs all of them, and then the runs \
         of the setups. With --out DIR, the same command resumes the comparison."
    );
    Advice { summary: "None yet".to_owned(), reasons: vec![("Why", why)], ..Advice::default() }
}

impl Advice {
    /// The recommendation for a report.
    pub fn recommendation(&self) -> Recommendation {
        let commands = |block: &Block| Commands { title: block.title.clone(), lines: block.lines.clone() };
        Recommendation {
            summary: self.summary.clone(),
            effects: self.tried.as_ref().map(Tried::table),
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
        let setup = self.setup.as_ref();
        let bps = |rate: Option<Rate>| rate.map(Rate::as_bit);
        json!({
            "discipline": setup.map(|setup| &setup.discipline),
            "directions": setup.map(|setup| setup.sides.word()),
            "rate_upstream_bps": setup.and_then(|setup| bps(setup.up)),
            "rate_downstream_bps": setup.and_then(|setup| bps(setup.down)),
            "summary": self.summary,
            "tried": self.tried.as_ref().map(|tried| &tried.name),
            "effects": self.tried.as_ref().map(|tried| tried.effects.iter().map(Effect::to_json).collect::<Vec<_>>()),
            "reasons": reasons,
            "commands": commands,
            "deployed": self.tried.as_ref().map(|tried| deployed(&tried.row)),
        })
    }
}

impl Tried {
    /// The effects as a table of texts.
    pub fn table(&self) -> Effects {
        let row = |effect: &Effect| {
            [
                effect.name(),
                effect.text(effect.before),
                effect.text(effect.after),
                effect.difference.clone(),
                effect.certainty().to_owned(),
            ]
        };
        Effects {
            head: ["", &self.baseline, &self.name, "change", "certain"].map(str::to_owned),
            rows: self.effects.iter().map(row).collect(),
        }
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
mod tests;
