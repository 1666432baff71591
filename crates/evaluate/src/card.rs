//! The card of a discipline: verdicts against each baseline, cell by cell and question by question.

use giveway_measure::{Record, short_names};
use giveway_runner::Frontend;
use giveway_scenario::Scenario;
use serde::Serialize;

use crate::cells::{Cell, Measure};
use crate::cost::cost;
use crate::error::EvaluateError;
use crate::question::Question;
use crate::run::{Outcome, Outcomes, Prepared, Timing, outcome, prepare, run};
use crate::states::{GAP, SUSPICION, States, heaps, winners};
use crate::verdict::{Compared, Pair, Verdict, compare};

/// The request of a card.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The discipline.
    pub candidate: String,
    /// The baselines.
    pub against: Vec<String>,
    /// The number of seeds, at least 2.
    pub seeds: u32,
    /// The cells.
    pub cells: Vec<Cell>,
    /// True for the short form of the cells.
    pub short: bool,
    /// True to repeat everything with the timing of real machines.
    pub timing: bool,
    /// The number of threads.
    pub jobs: usize,
    /// The source of a discipline of the caller, whose name is `candidate`; `None` for a specification.
    pub source: Option<String>,
}

/// Runs a scenario with a seed and with a discipline of the caller, which has no specification.
pub type OwnRuns<'a> = dyn FnMut(&Scenario, u64) -> Result<Record, EvaluateError> + 'a;

/// A card.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The request.
    pub request: Request,
    /// Short names: of the discipline, then of the baselines.
    pub names: Vec<String>,
    /// The comparisons, baseline by baseline and cell by cell.
    pub lines: Vec<Line>,
    /// The disciplines with two states.
    pub unstable: Vec<Unstable>,
    /// All outcomes with ideal timing: by cell, discipline and seed. The discipline is the first.
    pub outcomes: Outcomes,
    /// The runs, and the packets that judged links sent in them.
    pub size: (u64, u64),
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

/// A discipline with two states in a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Unstable {
    /// The place of the discipline: 0 is the candidate.
    pub discipline: usize,
    /// The place of the cell.
    pub cell: usize,
    /// The metric; `None` if opposite flows win.
    pub metric: Option<String>,
    /// The states.
    pub states: States,
}

impl Unstable {
    /// True if the states make the mean of a metric meaningless. Opposite winners concern shares, and not
    /// delays or the use of the link.
    fn concerns(&self, measure: &Measure) -> bool {
        match &self.metric {
            Some(metric) => *metric == measure.metric,
            None => measure.question == Question::Fair,
        }
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
}

impl Counts {
    fn add(&mut self, line: &Line) {
        match line.compared.verdict {
            Verdict::Better => self.better += 1,
            Verdict::Worse => self.worse += 1,
            Verdict::Same => self.same += 1,
            Verdict::Unknown => self.unknown += 1,
        }
        self.flips += u32::from(line.flips());
    }

    /// The verdict in a word or two.
    pub fn words(&self) -> &'static str {
        match (self.better, self.worse) {
            (0, 0) if self.same > 0 && self.same >= self.unknown => "no difference",
            (0, 0) => "undecided",
            (_, 0) => "better",
            (0, _) => "worse",
            _ => "both",
        }
    }
}

/// Runs the card. `own` runs a discipline of the caller, if the request has the source of one.
///
/// # Errors
/// If a discipline is wrong, a run failed, or the front end stopped it.
pub fn evaluate(
    request: Request,
    own: Option<&mut OwnRuns<'_>>,
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
    let mut work = Work { request: &request, disciplines: &disciplines, own, frontend };
    let outcomes = work.all(Timing::Ideal, "card")?;
    let unstable = work.unstable(&outcomes)?;
    let late = if *timing { Some(work.all(Timing::Measured, "timing of real machines")?) } else { None };
    let compared = comparisons(&request, &outcomes, &unstable);
    let measured = late.map(|late| comparisons(&request, &late, &unstable));
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
    let runs = outcomes.iter().flatten().flatten();
    let packets = runs.clone().map(|outcome| outcome.packets).sum();
    let size = (runs.count() as u64, packets);
    let specs: Vec<&str> = disciplines.iter().map(String::as_str).collect();
    let names = short_names(&specs);
    Ok(Card { names, lines, unstable, outcomes, size, request })
}

/// The values of a metric by seed.
fn values(outcomes: &[Outcome], measure: usize) -> Vec<Option<f64>> {
    outcomes.iter().map(|outcome| outcome.values[measure]).collect()
}

/// The comparisons of all baselines, cells and metrics, in this order.
fn comparisons(request: &Request, outcomes: &Outcomes, unstable: &[Unstable]) -> Vec<Compared> {
    // By cell, discipline and metric.
    let tables: Vec<Vec<Vec<Vec<Option<f64>>>>> = request
        .cells
        .iter()
        .zip(outcomes)
        .map(|(cell, of_cell)| {
            let of_discipline =
                |outcomes: &Vec<Outcome>| (0..cell.measures.len()).map(|m| values(outcomes, m)).collect();
            of_cell.iter().map(of_discipline).collect()
        })
        .collect();
    let mut pairs = Vec::new();
    for baseline in 1..=request.against.len() {
        for (cell, each) in request.cells.iter().enumerate() {
            for (number, measure) in each.measures.iter().enumerate() {
                let concerned = |discipline: usize| {
                    unstable.iter().any(|found| {
                        (found.discipline, found.cell) == (discipline, cell) && found.concerns(measure)
                    })
                };
                pairs.push(Pair {
                    measure,
                    candidate: &tables[cell][0][number],
                    baseline: &tables[cell][baseline][number],
                    unstable: concerned(0) || concerned(baseline),
                });
            }
        }
    }
    compare(&pairs)
}

/// The runs of a card.
struct Work<'a, 'b> {
    request: &'a Request,
    /// The candidate, then the baselines.
    disciplines: &'a [String],
    own: Option<&'a mut OwnRuns<'b>>,
    frontend: &'a dyn Frontend,
}

impl Work<'_, '_> {
    /// All cells with all disciplines and seeds.
    fn all(&mut self, timing: Timing, title: &str) -> Result<Outcomes, EvaluateError> {
        let request = self.request;
        let seeds: Vec<u64> = (1..=u64::from(request.seeds)).collect();
        // A discipline of the caller has no place in a scenario.
        let specs = &self.disciplines[usize::from(request.source.is_some())..];
        let prepared: Vec<Prepared<'_>> = request
            .cells
            .iter()
            .map(|cell| prepare(cell, specs, &seeds, timing, request.short))
            .collect::<Result<_, _>>()?;
        let mut outcomes = run(&prepared, request.jobs, title, self.frontend)?;
        if let Some(own) = self.own.as_deref_mut() {
            for (prepared, outcomes) in prepared.iter().zip(&mut outcomes) {
                outcomes.insert(0, run_own(prepared, own, self.frontend)?);
            }
        }
        Ok(outcomes)
    }

    /// The disciplines with two states. A suspicion is tested with as many fresh seeds.
    fn unstable(&mut self, outcomes: &Outcomes) -> Result<Vec<Unstable>, EvaluateError> {
        let request = self.request;
        let fresh: Vec<u64> =
            (1..=u64::from(request.seeds)).map(|seed| u64::from(request.seeds) + seed).collect();
        let mut suspects: Vec<(usize, usize)> = Vec::new();
        for (cell, of_cell) in outcomes.iter().enumerate() {
            for (discipline, of_discipline) in of_cell.iter().enumerate() {
                if !found_in(&request.cells[cell], of_discipline, SUSPICION).is_empty() {
                    suspects.push((cell, discipline));
                }
            }
        }
        let is_own = |discipline: usize| discipline == 0 && request.source.is_some();
        let mut again = Vec::new();
        for (cell, discipline) in &suspects {
            // A scenario has at least one discipline, also if that of the caller takes its place.
            let spec = if is_own(*discipline) { 1 } else { *discipline };
            let spec = std::slice::from_ref(&self.disciplines[spec]);
            again.push(prepare(&request.cells[*cell], spec, &fresh, Timing::Ideal, request.short)?);
        }
        let mut more = run(&again, request.jobs, "runs that disagree", self.frontend)?;
        if let Some(own) = self.own.as_deref_mut() {
            for (((_, discipline), prepared), more) in suspects.iter().zip(&again).zip(&mut more) {
                if is_own(*discipline) {
                    more[0] = run_own(prepared, own, self.frontend)?;
                }
            }
        }
        let mut confirmed = Vec::new();
        for ((cell, discipline), fresh) in suspects.iter().zip(more) {
            let all: Vec<Outcome> = outcomes[*cell][*discipline].iter().chain(&fresh[0]).cloned().collect();
            for (metric, states) in found_in(&request.cells[*cell], &all, GAP) {
                confirmed.push(Unstable { discipline: *discipline, cell: *cell, metric, states });
            }
        }
        Ok(confirmed)
    }
}

/// The outcomes of a discipline of the caller in a cell, by seed.
fn run_own(
    prepared: &Prepared<'_>,
    own: &mut OwnRuns<'_>,
    frontend: &dyn Frontend,
) -> Result<Vec<Outcome>, EvaluateError> {
    let mut outcomes = Vec::new();
    for seed in &prepared.scenario.seeds {
        if frontend.stopped() {
            return Err(EvaluateError::Stopped);
        }
        outcomes.push(outcome(prepared, &own(&prepared.scenario, *seed)?));
    }
    Ok(outcomes)
}

/// The states that the outcomes of a discipline in a cell show, each with its metric.
fn found_in(cell: &Cell, outcomes: &[Outcome], gap: f64) -> Vec<(Option<String>, States)> {
    let mut found = Vec::new();
    for (number, measure) in cell.measures.iter().enumerate() {
        let measured: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.values[number]).collect();
        let (low, high) = measured.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        });
        let limit = measure.matters.limit(low, high, measure.high);
        if let Some(states) = heaps(&measured, limit, gap) {
            found.push((Some(measure.metric.clone()), states));
        }
    }
    let leads: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.lead).collect();
    if let Some(states) = winners(&leads) {
        found.push((None, states));
    }
    found
}

impl Card {
    /// The verdicts on a question against a baseline.
    pub fn counts(&self, question: Question, baseline: usize) -> Counts {
        let mut counts = Counts::default();
        for line in &self.lines {
            if line.question == question && line.baseline == baseline {
                counts.add(line);
            }
        }
        counts
    }

    /// The questions that the cells answer.
    pub fn questions(&self) -> Vec<Question> {
        Question::ALL
            .into_iter()
            .filter(|question| self.lines.iter().any(|line| line.question == *question))
            .collect()
    }

    /// The median ratio of the values of the discipline to those of a baseline over the metrics of a
    /// question. Above 1 the discipline has the better values. `None` without positive values.
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
