//! A field: disciplines that have run in all cells with the same arrivals, and their states.

use std::collections::BTreeMap;

use giveway_measure::Record;
use giveway_runner::Frontend;
use giveway_scenario::Scenario;

use crate::cells::{Cell, Measure};
use crate::error::EvaluateError;
use crate::question::Question;
use crate::run::{BedRuns, Outcome, Outcomes, Prepared, Timing, mean, outcome, prepare, run, run_on_bed};
use crate::states::{GAP, SUSPICION, States, clusters, winners};
use crate::verdict::{Compared, Pair, compare};

/// Runs a scenario with a seed and with a discipline of the caller, which has no specification.
pub type OwnRuns<'a> = dyn FnMut(&Scenario, u64) -> Result<Record, EvaluateError> + 'a;

/// The way in which disciplines run.
pub enum Means<'a, 'b> {
    /// In the simulator.
    Simulator,
    /// In the simulator; the first one is the caller's.
    Own(&'a mut OwnRuns<'b>),
    /// On a test bed.
    Bed(&'a mut BedRuns<'b>),
}

impl Means<'_, '_> {
    /// The timing of hosts without another request.
    fn timing(&self) -> Timing {
        match self {
            Means::Simulator | Means::Own(_) => Timing::Ideal,
            Means::Bed(_) => Timing::Real,
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
    fn concerns(&self, measure: &Measure) -> bool {
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

/// Outcomes that have been computed: a run is a pure function of the cell, the discipline and the seed, so
/// nothing runs twice on a card, and several cards run a baseline once.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<Asked, BTreeMap<(String, String), Vec<Outcome>>>);

/// The way in which cells run: their seeds, the timing, and true for the short form.
type Asked = (Vec<u64>, Timing, bool);

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
    pub fn is_unstable(&self, discipline: usize, cell: usize, measure: &Measure) -> bool {
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
pub(crate) struct Runs<'a, 'b> {
    /// The cells.
    pub cells: &'a [Cell],
    /// The number of threads.
    pub jobs: usize,
    /// The way in which disciplines run.
    pub means: Means<'a, 'b>,
    /// The outcomes of other cards with the same cells.
    pub known: &'a mut Known,
    /// Shows the progress, and may stop.
    pub frontend: &'a dyn Frontend,
}

impl Runs<'_, '_> {
    /// The outcomes of disciplines in all cells with these seeds.
    pub fn outcomes(
        &mut self,
        entrants: Entrants<'_>,
        seeds: &[u64],
        timing: Timing,
        short: bool,
        title: &str,
    ) -> Result<Outcomes, EvaluateError> {
        let asked = (seeds.to_vec(), timing, short);
        // A discipline of the caller has no place in a scenario.
        let specs = &entrants.specs[usize::from(entrants.own)..];
        let all = (0..self.cells.len()).flat_map(|cell| specs.iter().map(move |spec| (cell, &**spec)));
        self.run(&asked, all, title)?;
        let mut outcomes: Outcomes = (0..self.cells.len())
            .map(|cell| specs.iter().map(|spec| self.known(&asked, cell, spec).to_vec()).collect())
            .collect();
        if entrants.own {
            for (cell, outcomes) in outcomes.iter_mut().enumerate() {
                outcomes.insert(0, self.of_own(&asked, cell, &specs[0])?);
            }
        }
        Ok(outcomes)
    }

    /// Runs those disciplines in cells that have not run yet. A discipline comes with the place of its cell.
    fn run<'c>(
        &mut self,
        asked: &Asked,
        wanted: impl Iterator<Item = (usize, &'c str)>,
        title: &str,
    ) -> Result<(), EvaluateError> {
        let known = self.known.0.entry(asked.clone()).or_default();
        let key = |cell: usize, spec: &str| (self.cells[cell].name.clone(), spec.to_owned());
        let mut new: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (cell, spec) in wanted.filter(|(cell, spec)| !known.contains_key(&key(*cell, spec))) {
            new.entry(cell).or_default().push(spec.to_owned());
        }
        if new.is_empty() {
            return Ok(());
        }
        let (seeds, timing, short) = asked;
        let prepared: Vec<Prepared<'_>> = new
            .iter()
            .map(|(cell, specs)| prepare(&self.cells[*cell], specs, seeds, *timing, *short))
            .collect::<Result<_, _>>()?;
        let found = match &mut self.means {
            Means::Bed(bed) => run_on_bed(&prepared, *bed, title, self.frontend)?,
            Means::Simulator | Means::Own(_) => run(&prepared, self.jobs, title, self.frontend)?,
        };
        for ((cell, specs), found) in new.iter().zip(found) {
            for (spec, outcomes) in specs.iter().zip(found) {
                known.insert(key(*cell, spec), outcomes);
            }
        }
        Ok(())
    }

    /// The outcomes of a discipline that has run in a cell, by seed.
    fn known(&self, asked: &Asked, cell: usize, spec: &str) -> &[Outcome] {
        let key = (self.cells[cell].name.clone(), spec.to_owned());
        &self.known.0[asked][&key]
    }

    /// A field with the seeds 1 to `seeds`.
    pub fn field(
        &mut self,
        entrants: Entrants<'_>,
        seeds: u32,
        short: bool,
        title: &str,
    ) -> Result<Field, EvaluateError> {
        let numbers: Vec<u64> = (1..=u64::from(seeds)).collect();
        let outcomes = self.outcomes(entrants, &numbers, self.means.timing(), short, title)?;
        let unstable = self.unstable(entrants, &outcomes, seeds, short)?;
        Ok(Field { outcomes, unstable })
    }

    /// The disciplines with two states. A suspicion is tested with as many fresh seeds.
    fn unstable(
        &mut self,
        entrants: Entrants<'_>,
        outcomes: &Outcomes,
        seeds: u32,
        short: bool,
    ) -> Result<Vec<Unstable>, EvaluateError> {
        let fresh: Vec<u64> = (1..=u64::from(seeds)).map(|seed| u64::from(seeds) + seed).collect();
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
        let asked = (fresh, self.means.timing(), short);
        let is_own = |discipline: usize| discipline == 0 && entrants.own;
        let built_in = suspects.iter().filter(|(_, discipline)| !is_own(*discipline));
        let wanted = built_in.map(|(cell, discipline)| (*cell, &*entrants.specs[*discipline]));
        self.run(&asked, wanted, "runs that disagree")?;
        let mut confirmed = Vec::new();
        for (cell, discipline) in suspects {
            let mut all = outcomes[cell][discipline].clone();
            if is_own(discipline) {
                all.extend(self.of_own(&asked, cell, &entrants.specs[1])?);
            } else {
                all.extend_from_slice(self.known(&asked, cell, &entrants.specs[discipline]));
            }
            for (metric, states) in found_in(&self.cells[cell], &all, GAP) {
                confirmed.push(Unstable { discipline, cell, metric, states });
            }
        }
        Ok(confirmed)
    }

    /// The outcomes of the discipline of the caller in a cell, by seed. It runs in place of `other`, since a
    /// scenario has at least one discipline with a specification.
    fn of_own(&mut self, asked: &Asked, cell: usize, other: &str) -> Result<Vec<Outcome>, EvaluateError> {
        let (seeds, timing, short) = asked;
        let prepared = prepare(&self.cells[cell], &[other.to_owned()], seeds, *timing, *short)?;
        let Means::Own(own) = &mut self.means else {
            unreachable!("a field with a discipline of the caller runs it")
        };
        let mut outcomes = Vec::new();
        for seed in seeds {
            if self.frontend.stopped() {
                return Err(EvaluateError::Stopped);
            }
            outcomes.push(outcome(&prepared, &own(&prepared.scenario, *seed)?));
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
