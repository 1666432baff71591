//! The card of a discipline: verdicts against each baseline, cell by cell and question by question.

use giveway_document::Tone;
use giveway_measure::short_names;
use giveway_record::dataset::Measured;
use giveway_trials::{Frontend, Memory, Store};
use serde::Serialize;

use crate::best::{Best, best};
use crate::cells::Cell;
use crate::cost::cost;
use crate::error::EvaluateError;
use crate::field::{Backend, Bench, Entrants, Field, Seeds, Unstable};
use crate::parameters::Variable;
use crate::pooled::{Pooled, pooled};
use crate::question::Question;
use crate::run::{Outcomes, Timing};
use crate::sensitivity::{Sensitivity, sensitivity};
use crate::verdict::{Compared, Verdict};

/// The request of a card.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The discipline.
    pub candidate: String,
    /// The baselines.
    pub against: Vec<String>,
    /// The number of seeds, at least 2.
    pub seeds: u32,
    /// The first of them, 1 to [`MAX_FIRST_SEED`]. Another one repeats the card with other seeds.
    pub first_seed: u64,
    /// The cells.
    pub cells: Vec<Cell>,
    /// True for the short form of the cells.
    pub short: bool,
    /// True to repeat everything with the timing of real machines.
    pub timing: bool,
    /// The number of settings that are tried to find the own best of each discipline; 0 for none.
    pub tune: u32,
    /// True to change each parameter of the discipline by 20 %.
    pub sensitivity: bool,
    /// The number of threads.
    pub jobs: usize,
    /// True for a test bed: real hosts, in the place of the simulator.
    pub bed: bool,
    /// The source of a discipline of the caller, whose name is `candidate`; `None` for a specification.
    pub source: Option<String>,
}

/// The largest first seed of a card. The seeds of the search for an own best are above all that follow.
pub const MAX_FIRST_SEED: u64 = 800_000;

impl Request {
    /// The seeds.
    pub(crate) fn seeds(&self) -> Seeds {
        Seeds { first: self.first_seed, count: self.seeds }
    }
}

/// A card.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The request.
    pub request: Request,
    /// Short names: of the discipline, then of the baselines.
    pub names: Vec<String>,
    /// The comparisons, baseline by baseline and cell by cell.
    pub lines: Vec<Line>,
    /// The mean gains over the metrics of a question, baseline by baseline.
    pub pooled: Vec<Pooled>,
    /// The disciplines with two states.
    pub unstable: Vec<Unstable>,
    /// All outcomes with ideal timing: by cell, discipline and seed. The discipline is the first.
    pub outcomes: Outcomes,
    /// The runs, and the packets that judged links sent in them.
    pub size: (u64, u64),
    /// The comparison of the disciplines at their own best; `None` if it was not asked for.
    pub best: Option<Best>,
    /// The verdicts that change with a parameter; `None` if they were not asked for.
    pub sensitivity: Option<Sensitivity>,
}

/// A comparison of the discipline with a baseline in one metric of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The place of the baseline.
    pub baseline: usize,
    /// The place of the cell; `None` for the cost.
    pub cell: Option<usize>,
    /// The question.
    pub question: Question,
    /// The metric.
    pub metric: String,
    /// True if a higher value is better.
    pub high: bool,
    /// The comparison with ideal timing.
    pub compared: Compared,
    /// The verdict with the timing of real machines; `None` if that was not run.
    pub measured: Option<Verdict>,
}

impl Line {
    /// True if the verdict is the opposite with the timing of real machines.
    pub fn flips(&self) -> bool {
        self.measured.is_some_and(|measured| measured.contradicts(self.compared.verdict))
    }
}

/// The verdicts on a question against a baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// The number of metrics in which the discipline is better.
    pub better: u32,
    /// The number in which it is worse.
    pub worse: u32,
    /// The number without a difference that matters.
    pub same: u32,
    /// The number of undecided ones.
    pub unknown: u32,
    /// The number of verdicts that are the opposite with the timing of real machines.
    pub flips: u32,
    /// The verdict on the mean gain over all metrics of the question; `None` if they have no common unit.
    pub pooled: Option<Verdict>,
}

impl Counts {
    pub(crate) fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Better => self.better += 1,
            Verdict::Worse => self.worse += 1,
            Verdict::Same => self.same += 1,
            Verdict::Unknown => self.unknown += 1,
        }
    }

    /// The numbers with a sign each: `+12 =9 ?3`.
    pub(crate) fn signs(&self) -> String {
        let numbers = [(self.better, "+"), (self.worse, "-"), (self.same, "="), (self.unknown, "?")];
        let some = numbers.into_iter().filter(|(count, _)| *count > 0);
        some.map(|(count, sign)| format!("{sign}{count}")).collect::<Vec<_>>().join(" ")
    }

    /// The verdict in a word or two.
    pub fn label(&self) -> &'static str {
        match (self.better, self.worse) {
            (0, 0) if self.pooled == Some(Verdict::Better) => "better in sum",
            (0, 0) if self.pooled == Some(Verdict::Worse) => "worse in sum",
            (0, 0) if self.same > 0 && self.same >= self.unknown => "no difference",
            (0, 0) => "undecided",
            (_, 0) => "better",
            (0, _) => "worse",
            _ => "both",
        }
    }

    /// The verdict and the numbers in one line. An exclamation mark says that a verdict is the opposite with
    /// the timing of real machines.
    pub(crate) fn in_one_line(&self) -> String {
        format!("{} ({}){}", self.label(), self.signs(), self.mark())
    }

    /// The verdict in a word or two, with an exclamation mark as in [`Counts::in_one_line`].
    pub(crate) fn word(&self) -> String {
        format!("{}{}", self.label(), self.mark())
    }

    /// The tone of the verdict. Better in some metrics and worse in others is neither.
    pub(crate) fn tone(&self) -> Tone {
        match self.label() {
            "better" | "better in sum" => Tone::Good,
            "worse" | "worse in sum" => Tone::Bad,
            "no difference" => Tone::Same,
            "undecided" => Tone::Open,
            _ => Tone::Plain,
        }
    }

    fn mark(&self) -> &'static str {
        if self.flips > 0 { "!" } else { "" }
    }
}

/// Runs the card. `backend` runs a discipline of the caller if the request has the source of one, and it is a
/// test bed if the request asks for it.
///
/// # Errors
/// If a discipline is wrong, a run failed, or the front end stopped it.
pub fn evaluate(
    request: Request,
    backend: Backend<'_, '_>,
    frontend: &dyn Frontend,
) -> Result<Card, EvaluateError> {
    evaluate_with(request, backend, &Memory::default(), frontend)
}

/// Like [`evaluate`]. Runs that the store has are taken from it, and it keeps the others: a card that was
/// stopped resumes, and the baselines of several cards run once.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_with(
    request: Request,
    backend: Backend<'_, '_>,
    store: &dyn Store<Measured>,
    frontend: &dyn Frontend,
) -> Result<Card, EvaluateError> {
    let Request { candidate, against, seeds, cells, timing, source, .. } = &request;
    if *seeds < 2 {
        return Err(EvaluateError::Usage("a verdict needs at least two seeds: write --seeds 10".to_owned()));
    }
    if against.is_empty() {
        return Err(EvaluateError::Usage(
            "nothing to compare with: write --against fq_codel,cake".to_owned(),
        ));
    }
    let mut disciplines = vec![candidate.clone()];
    for baseline in against {
        if disciplines.contains(baseline) {
            return Err(EvaluateError::Usage(format!(
                "{baseline} is compared twice: write --against with other disciplines"
            )));
        }
        disciplines.push(baseline.clone());
    }
    let mut bench = Bench { cells, jobs: request.jobs, backend, store, frontend };
    let entrants = Entrants { specs: &disciplines, own: source.is_some() };
    let field = bench.field(entrants, request.seeds(), request.short, "card")?;
    let baselines: Vec<usize> = (1..disciplines.len()).collect();
    let compared = field.compared(cells, 0, &baselines);
    let pooled = pooled(&field, cells, 0, &baselines);
    let measured = if *timing {
        let numbers = request.seeds().numbers();
        let title = "timing of real machines";
        let outcomes = bench.outcomes(entrants, &numbers, Timing::Measured, request.short, title)?;
        Some(Field { outcomes, unstable: field.unstable.clone() }.compared(cells, 0, &baselines))
    } else {
        None
    };
    let (best, sensitivity) = varied(&request, entrants, &field, &mut bench)?;
    // Nobody has counted the instructions of a discipline of the caller.
    let counted = if source.is_some() { "" } else { candidate };
    let mut lines = Vec::new();
    let mut places = compared.into_iter().enumerate();
    for (baseline, spec) in against.iter().enumerate() {
        for (cell, each) in cells.iter().enumerate() {
            for measure in &each.measures {
                let (place, compared) = places.next().expect("every measure was compared");
                lines.push(Line {
                    baseline,
                    cell: Some(cell),
                    question: measure.question,
                    metric: measure.metric.clone(),
                    high: measure.high,
                    compared,
                    measured: measured.as_ref().map(|measured| measured[place].verdict),
                });
            }
        }
        lines.extend(cost(counted, spec).into_iter().map(|(metric, compared)| Line {
            baseline,
            cell: None,
            question: Question::Cost,
            metric,
            high: false,
            compared,
            measured: None,
        }));
    }
    let Field { outcomes, unstable } = field;
    let all = outcomes.iter().flatten().flatten();
    let packets = all.clone().map(|outcome| outcome.packets).sum();
    let size = (all.count() as u64, packets);
    let specs: Vec<&str> = disciplines.iter().map(String::as_str).collect();
    let names = short_names(&specs);
    Ok(Card { names, lines, pooled, unstable, outcomes, size, best, sensitivity, request })
}

/// The disciplines at their own best, and the discipline with changed parameters, as far as the request asks
/// for them. Both run in the short form.
fn varied(
    request: &Request,
    entrants: Entrants<'_>,
    field: &Field,
    bench: &mut Bench<'_, '_>,
) -> Result<(Option<Best>, Option<Sensitivity>), EvaluateError> {
    let candidate = if entrants.own { None } else { Variable::of(&request.candidate) };
    let shifts = candidate.filter(|_| request.sensitivity);
    if request.tune == 0 && shifts.is_none() {
        return Ok((None, request.sensitivity.then(Sensitivity::default)));
    }
    let mut short = match request.short {
        true => field.clone(),
        false => bench.field(entrants, request.seeds(), true, "short form")?,
    };
    let best = match request.tune {
        0 => None,
        budget => Some(best(entrants, budget, request.seeds(), &mut short, bench)?),
    };
    let sensitivity = match shifts {
        Some(candidate) => {
            Some(sensitivity(&candidate, request.against.len(), request.seeds(), &mut short, bench)?)
        }
        None => request.sensitivity.then(Sensitivity::default),
    };
    Ok((best, sensitivity))
}

impl Card {
    /// The verdicts on a question against a baseline.
    pub fn counts(&self, question: Question, baseline: usize) -> Counts {
        let pooled = self.pooled(question, baseline).map(|pooled| pooled.verdict);
        let mut counts = Counts { pooled, ..Counts::default() };
        for line in &self.lines {
            if line.question == question && line.baseline == baseline {
                counts.add(line.compared.verdict);
                counts.flips += u32::from(line.flips());
            }
        }
        counts
    }

    /// The mean gain over a baseline in the metrics of a question; `None` if they have no common unit.
    pub fn pooled(&self, question: Question, baseline: usize) -> Option<&Pooled> {
        self.pooled.iter().find(|one| (one.question, one.baseline) == (question, baseline))
    }

    /// The questions that the cells answer.
    pub fn questions(&self) -> Vec<Question> {
        Question::ALL
            .into_iter()
            .filter(|question| self.lines.iter().any(|line| line.question == *question))
            .collect()
    }

    /// The median ratio of the values of the discipline to a baseline's over the metrics of a question. Above
    /// 1 the discipline has the better values. `None` without positive values.
    pub fn ratio(&self, question: Question, baseline: usize) -> Option<f64> {
        let mut ratios: Vec<f64> = self
            .lines
            .iter()
            .filter(|line| line.question == question && line.baseline == baseline)
            .filter_map(|line| {
                let difference = line.compared.difference.as_ref()?;
                let (before, after) = (difference.before, difference.after);
                let ratio = if line.high { after / before } else { before / after };
                (before > 0.0 && after > 0.0).then_some(ratio)
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied()
    }
}
