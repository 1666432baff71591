//! A field: disciplines that have run in all cells with the same arrivals, and their states.

use giveway_measure::Record;
use giveway_record::dataset::Measured;
use giveway_scenario::Scenario;
use giveway_trials::{Frontend, Store};

use crate::cells::{Cell, JudgedMetric};
use crate::error::EvaluateError;
use crate::question::Question;
use crate::run::{BedRuns, Outcome, Outcomes, Timing, mean, prepare, run, run_on_bed};
use crate::states::{GAP, SUSPICION, States, clusters, winners};
use crate::verdict::{Compared, Pair, compare};

/// Runs a scenario with a seed and with a discipline of the caller, which has no specification.
pub type OwnRuns<'a> = dyn FnMut(&Scenario, u64) -> Result<Record, EvaluateError> + 'a;

/// The backend that runs the disciplines.
pub enum Backend<'a, 'b> {
    /// In the simulator.
    Simulator,
    /// In the simulator; the first one is the caller's.
    Own(&'a mut OwnRuns<'b>),
    /// On a test bed.
    Bed(&'a mut BedRuns<'b>),
}

impl Backend<'_, '_> {
    /// The timing of hosts without another request.
    fn timing(&self) -> Timing {
        match self {
            Backend::Simulator | Backend::Own(_) => Timing::Ideal,
            Backend::Bed(_) => Timing::Real,
        }
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
    fn concerns(&self, measure: &JudgedMetric) -> bool {
        match &self.metric {
            Some(metric) => *metric == measure.metric,
            None => measure.question == Question::Fair,
        }
    }
}

/// The disciplines of a field. The first one may be the caller's, which has a name and no specification.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entrants<'a> {
    /// The specifications, and in front of them the name of a discipline of the caller.
    pub specs: &'a [String],
    /// True if the first one is the caller's.
    pub own: bool,
}

impl<'a> Entrants<'a> {
    /// Disciplines that all have a specification.
    pub fn of(specs: &'a [String]) -> Entrants<'a> {
        Entrants { specs, own: false }
    }
}

/// Consecutive seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    /// The first one.
    pub first: u64,
    /// Their number.
    pub count: u32,
}

impl Seeds {
    /// The seeds, in order.
    pub fn numbers(self) -> Vec<u64> {
        (self.first..self.first + u64::from(self.count)).collect()
    }

    /// As many seeds, after these.
    fn next(self) -> Seeds {
        Seeds { first: self.first + u64::from(self.count), ..self }
    }
}

/// The form in which cells run.
#[derive(Clone, Copy, Debug)]
struct Form<'a> {
    seeds: &'a [u64],
    timing: Timing,
    /// True for the short form.
    short: bool,
}

/// Disciplines that have run in all cells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// By cell, discipline and seed.
    pub outcomes: Outcomes,
    /// The disciplines with two states.
    pub unstable: Vec<Unstable>,
}

impl Field {
    /// The number of disciplines.
    pub fn disciplines(&self) -> usize {
        self.outcomes.first().map_or(0, Vec::len)
    }

    /// Appends the disciplines of another field to this one's. Returns the place of the first.
    pub fn extend(&mut self, other: Field) -> usize {
        let before = self.disciplines();
        for (cell, more) in self.outcomes.iter_mut().zip(other.outcomes) {
            cell.extend(more);
        }
        let moved = |found: Unstable| Unstable { discipline: before + found.discipline, ..found };
        self.unstable.extend(other.unstable.into_iter().map(moved));
        before
    }

    /// True if the mean of a metric in a cell says nothing about a discipline.
    pub fn is_unstable(&self, discipline: usize, cell: usize, measure: &JudgedMetric) -> bool {
        let here = |found: &&Unstable| (found.discipline, found.cell) == (discipline, cell);
        self.unstable.iter().filter(here).any(|found| found.concerns(measure))
    }

    /// The mean of a metric of a discipline over the seeds that measured it.
    pub fn mean(&self, discipline: usize, cell: usize, measure: usize) -> Option<f64> {
        mean(&self.outcomes[cell][discipline], measure)
    }

    /// The comparisons of a discipline with baselines, by baseline, cell and metric, corrected together.
    pub fn compared(&self, cells: &[Cell], candidate: usize, baselines: &[usize]) -> Vec<Compared> {
        // By cell, metric and discipline: the candidate, then the baselines.
        let compared: Vec<usize> = std::iter::once(candidate).chain(baselines.iter().copied()).collect();
        let values = |cell: usize, measure: usize, discipline: usize| -> Vec<Option<f64>> {
            self.outcomes[cell][discipline].iter().map(|outcome| outcome.values[measure]).collect()
        };
        let tables: Vec<Vec<Vec<Vec<Option<f64>>>>> = cells
            .iter()
            .enumerate()
            .map(|(cell, each)| {
                let of_measure = |m| compared.iter().map(|discipline| values(cell, m, *discipline)).collect();
                (0..each.measures.len()).map(of_measure).collect()
            })
            .collect();
        let mut pairs = Vec::new();
        for (place, baseline) in baselines.iter().enumerate() {
            for (cell, each) in cells.iter().enumerate() {
                for (number, measure) in each.measures.iter().enumerate() {
                    let of_measure = &tables[cell][number];
                    let unstable = |discipline| self.is_unstable(discipline, cell, measure);
                    pairs.push(Pair {
                        measure,
                        candidate: &of_measure[0],
                        baseline: &of_measure[place + 1],
                        unstable: unstable(candidate) || unstable(*baseline),
                    });
                }
            }
        }
        compare(&pairs)
    }
}

/// Runs disciplines in cells.
pub(crate) struct Bench<'a, 'b> {
    /// The cells.
    pub cells: &'a [Cell],
    /// The number of threads.
    pub jobs: usize,
    /// The backend that runs them.
    pub backend: Backend<'a, 'b>,
    /// The finished runs, of this card and of others: none runs twice.
    pub store: &'a dyn Store<Measured>,
    /// Shows the progress, and may stop.
    pub frontend: &'a dyn Frontend,
}

impl Bench<'_, '_> {
    /// The outcomes of disciplines in all cells with these seeds.
    pub fn outcomes(
        &mut self,
        entrants: Entrants<'_>,
        seeds: &[u64],
        timing: Timing,
        short: bool,
        title: &str,
    ) -> Result<Outcomes, EvaluateError> {
        let form = Form { seeds, timing, short };
        // A discipline of the caller has no place in a scenario.
        let specs = &entrants.specs[usize::from(entrants.own)..];
        if specs.is_empty() {
            return Ok(vec![Vec::new(); self.cells.len()]);
        }
        let wanted: Vec<(usize, &[String])> = (0..self.cells.len()).map(|cell| (cell, specs)).collect();
        let mut outcomes = self.run(&wanted, form, title)?;
        if entrants.own {
            for (cell, outcomes) in outcomes.iter_mut().enumerate() {
                outcomes.insert(0, self.of_own(form, cell, &specs[0])?);
            }
        }
        Ok(outcomes)
    }

    /// The outcomes of disciplines in cells, each with the place of the cell.
    fn run(
        &mut self,
        wanted: &[(usize, &[String])],
        Form { seeds, timing, short }: Form<'_>,
        title: &str,
    ) -> Result<Outcomes, EvaluateError> {
        let prepare =
            |(cell, specs): &(usize, &[String])| prepare(&self.cells[*cell], specs, seeds, timing, short);
        let prepared = wanted.iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
        match &mut self.backend {
            Backend::Bed(bed) => run_on_bed(&prepared, self.store, *bed, title, self.frontend),
            Backend::Simulator | Backend::Own(_) => {
                run(&prepared, self.store, self.jobs, title, self.frontend)
            }
        }
    }

    /// A field with these seeds.
    pub fn field(
        &mut self,
        entrants: Entrants<'_>,
        seeds: Seeds,
        short: bool,
        title: &str,
    ) -> Result<Field, EvaluateError> {
        let outcomes = self.outcomes(entrants, &seeds.numbers(), self.backend.timing(), short, title)?;
        let unstable = self.unstable(entrants, &outcomes, seeds, short)?;
        Ok(Field { outcomes, unstable })
    }

    /// The disciplines with two states. A suspicion is tested with as many fresh seeds.
    fn unstable(
        &mut self,
        entrants: Entrants<'_>,
        outcomes: &Outcomes,
        seeds: Seeds,
        short: bool,
    ) -> Result<Vec<Unstable>, EvaluateError> {
        let fresh = seeds.next().numbers();
        let mut suspects: Vec<(usize, usize)> = Vec::new();
        for (cell, of_cell) in outcomes.iter().enumerate() {
            for (discipline, of_discipline) in of_cell.iter().enumerate() {
                if !found_in(&self.cells[cell], of_discipline, SUSPICION).is_empty() {
                    suspects.push((cell, discipline));
                }
            }
        }
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        let form = Form { seeds: &fresh, timing: self.backend.timing(), short };
        let is_own = |discipline: usize| discipline == 0 && entrants.own;
        let built_in = suspects.iter().filter(|(_, discipline)| !is_own(*discipline));
        let spec = |discipline: usize| std::slice::from_ref(&entrants.specs[discipline]);
        let wanted: Vec<_> = built_in.map(|(cell, discipline)| (*cell, spec(*discipline))).collect();
        let mut found = self.run(&wanted, form, "runs that disagree")?.into_iter().flatten();
        let mut confirmed = Vec::new();
        for (cell, discipline) in suspects {
            let mut all = outcomes[cell][discipline].clone();
            all.extend(match is_own(discipline) {
                true => self.of_own(form, cell, &entrants.specs[1])?,
                false => found.next().expect("each suspect has run"),
            });
            for (metric, states) in found_in(&self.cells[cell], &all, GAP) {
                confirmed.push(Unstable { discipline, cell, metric, states });
            }
        }
        Ok(confirmed)
    }

    /// The outcomes of the discipline of the caller in a cell, by seed. It runs in place of `other`, since a
    /// scenario has at least one discipline with a specification.
    fn of_own(
        &mut self,
        Form { seeds, timing, short }: Form<'_>,
        cell: usize,
        other: &str,
    ) -> Result<Vec<Outcome>, EvaluateError> {
        let cell = &self.cells[cell];
        let prepared = prepare(cell, &[other.to_owned()], seeds, timing, short)?;
        let Backend::Own(own) = &mut self.backend else {
            unreachable!("a field with a discipline of the caller runs it")
        };
        let mut outcomes = Vec::new();
        for seed in seeds {
            if self.frontend.stopped() {
                return Err(EvaluateError::Stopped);
            }
            let record = own(&prepared.scenario, *seed)?;
            outcomes.push(Outcome::of(cell, &Measured::of(&record.summary)));
        }
        Ok(outcomes)
    }
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
        if let Some(states) = clusters(&measured, limit, gap) {
            found.push((Some(measure.metric.clone()), states));
        }
    }
    let leads: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.lead).collect();
    if let Some(states) = winners(&leads) {
        found.push((None, states));
    }
    found
}
