//! The runs of a card: every cell with every discipline and seed.

use giveway_measure::Record;
use giveway_observe::observe;
use giveway_qdisc::Quantity;
use giveway_record::dataset::{Axis, Measured, Row};
use giveway_scenario::{Draft, Scenario, Trial};
use giveway_trials::{Digests, Ended, Frontend, Identity, Runs, Store, Unit};
use serde::{Deserialize, Serialize};

use crate::cells::{Cell, place};
use crate::error::EvaluateError;

/// The timing of the hosts in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timing {
    /// Hosts act at once, as in most simulations.
    Ideal,
    /// Hosts are late and send in bursts, as measured on real machines.
    Measured,
    /// Hosts are real, on a test bed.
    Real,
}

impl Timing {
    /// The name in data sets.
    fn name(self) -> &'static str {
        match self {
            Timing::Ideal => "ideal",
            Timing::Measured => "measured",
            Timing::Real => "real",
        }
    }
}

/// The part of the results of a run that a card uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The metrics of the cell, in its order; `None` if one was not measured.
    pub values: Vec<Option<f64>>,
    /// The difference between the shares of two equal transfers, -1 to 1; `None` if the cell has no such
    /// pair.
    pub lead: Option<f64>,
    /// The fingerprint of all events.
    pub fingerprint: String,
    /// The packets that the judged links sent in the measurement interval.
    pub packets: u64,
}

impl Outcome {
    /// The outcome of a run in a cell.
    pub fn of(cell: &Cell, run: &Measured) -> Outcome {
        Outcome {
            values: cell.measures.iter().map(|measure| run.value(&measure.metric)).collect(),
            lead: run.value(PAIR),
            fingerprint: run.fingerprint.clone(),
            packets: run.value("sojourn_packets").unwrap_or_default() as u64,
        }
    }
}

/// The mean of a metric, by its place, over the runs that measured it; `None` if none did.
pub fn mean(outcomes: &[Outcome], measure: usize) -> Option<f64> {
    let measured: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.values[measure]).collect();
    (!measured.is_empty()).then(|| measured.iter().sum::<f64>() / measured.len() as f64)
}

/// Runs a trial of a scenario on a test bed.
pub type BedRuns<'a> = dyn FnMut(&Scenario, &Trial) -> Result<Record, EvaluateError> + 'a;

/// Outcomes by cell, discipline and seed.
pub type Outcomes = Vec<Vec<Vec<Outcome>>>;

/// A cell that is ready to run: its scenario with the compared disciplines.
pub struct Prepared<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The scenario.
    pub scenario: Scenario,
    timing: Timing,
    short: bool,
}

/// The lead of one of two long transfers. If a cell has exactly two of this name, they are equal in
/// everything but the seed.
const PAIR: &str = "src.bulk.lead";

/// The columns of a data set of cards that say in which form a cell ran.
pub fn axes() -> Vec<Axis> {
    let axis = |name: &str| Axis { key: name.to_owned(), column: name.to_owned(), unit: None };
    ["cell", "timing", "form"].map(axis).into()
}

impl Prepared<'_> {
    /// The trials with their keys, seed by seed: the runs of a seed share their arrivals.
    pub fn trials(&self) -> Vec<(Trial, Row<()>)> {
        let identity = Identity::of(&self.scenario, &Digests::default());
        let written: Vec<String> = self.scenario.compared().into_iter().map(|one| one.written).collect();
        let form = if self.short { "short" } else { "long" };
        let axes = [&*self.cell.name, self.timing.name(), form].map(|text| Some(Quantity::Text(text.into())));
        let point = place(&self.cell.name).unwrap_or(usize::MAX);
        let mut trials = self.scenario.trials();
        trials.sort_by_key(|trial| self.scenario.seeds.iter().position(|seed| *seed == trial.seed));
        let row = |trial: Trial| {
            let row = Row {
                key: identity.key(&trial.name, trial.seed),
                point: point as u64,
                discipline: written[trial.discipline].clone(),
                qdisc: trial.name.clone(),
                seed: trial.seed,
                axes: axes.to_vec(),
                result: (),
            };
            (trial, row)
        };
        trials.into_iter().map(row).collect()
    }
}

/// The flag that messages about the disciplines name.
const FLAG: &str = "evaluate";

/// Prepares a cell for disciplines and seeds.
///
/// # Errors
/// If a discipline is wrong, or does not fit the scenario.
pub fn prepare<'a>(
    cell: &'a Cell,
    disciplines: &[String],
    seeds: &[u64],
    timing: Timing,
    short: bool,
) -> Result<Prepared<'a>, EvaluateError> {
    let listed: Vec<String> = disciplines.iter().map(|spec| format!("{spec:?}")).collect();
    let mut draft =
        Draft::parse(&cell.scenario, "").assign(FLAG, &format!("disciplines=[{}]", listed.join(", ")));
    match timing {
        Timing::Ideal => {}
        Timing::Measured => draft = draft.assign(FLAG, "timing=\"measured\""),
        Timing::Real => draft = on_bed(draft),
    }
    let mut scenario = draft.finish().map_err(Box::new)?;
    if short {
        scenario = scenario.short().map_err(Box::new)?;
    }
    scenario.seeds = seeds.to_vec();
    Ok(Prepared { cell, scenario, timing, short })
}

/// The outcomes of cells: by cell, discipline and seed. Runs in the store are taken from it, and it
/// keeps the others.
///
/// # Errors
/// The first run that failed, by cell and seed; or the front end stopped it. The store keeps what finished.
pub fn run(
    cells: &[Prepared<'_>],
    store: &dyn Store<Measured>,
    jobs: usize,
    title: &str,
    frontend: &dyn Frontend,
) -> Result<Outcomes, EvaluateError> {
    let (trials, rows) = all(cells);
    let runs = Runs::new(frontend, title, trials.len(), Unit::Runs, jobs);
    let found = runs.kept(&rows, store, |place, turn| {
        let (cell, trial) = &trials[place];
        let Prepared { cell, scenario, .. } = &cells[*cell];
        match turn.trial(|keep_running| observe(scenario, trial, false, keep_running)) {
            Ended::Finished((record, _)) => Ok(Measured::of(&record.summary)),
            Ended::Stopped => Err(EvaluateError::Stopped),
            Ended::Failed(why) => Err(EvaluateError::Failed {
                discipline: trial.name.clone(),
                cell: cell.name.clone(),
                seed: trial.seed,
                why,
            }),
        }
    })?;
    Ok(sorted(cells, &trials, &found))
}

/// The trials of all cells, each with the place of its cell, and their rows.
fn all(cells: &[Prepared<'_>]) -> (Vec<(usize, Trial)>, Vec<Row<()>>) {
    let of_cell = |(cell, prepared): (usize, &Prepared<'_>)| {
        prepared.trials().into_iter().map(move |(trial, row)| ((cell, trial), row))
    };
    cells.iter().enumerate().flat_map(of_cell).unzip()
}

/// The results of trials as outcomes by cell, discipline and seed.
fn sorted(cells: &[Prepared<'_>], trials: &[(usize, Trial)], found: &[Measured]) -> Outcomes {
    let mut outcomes: Outcomes =
        cells.iter().map(|prepared| vec![Vec::new(); prepared.scenario.compared().len()]).collect();
    for ((cell, trial), measured) in trials.iter().zip(found) {
        outcomes[*cell][trial.discipline].push(Outcome::of(cells[*cell].cell, measured));
    }
    outcomes
}

/// A cell as a scenario for a test bed. It is measured until its end, without a time for transfers to end.
pub fn on_bed(draft: Draft) -> Draft {
    let keys = ["backend=\"live\"", "cooldown=\"0s\"", "short.cooldown=\"0s\""];
    keys.iter().fold(draft, |draft, key| draft.assign(FLAG, key))
}

/// Like [`run`], on a test bed, one run after the other.
///
/// # Errors
/// If the test bed fails, or the front end stopped it.
pub fn run_on_bed(
    cells: &[Prepared<'_>],
    store: &dyn Store<Measured>,
    bed: &mut BedRuns<'_>,
    title: &str,
    frontend: &dyn Frontend,
) -> Result<Outcomes, EvaluateError> {
    let (trials, rows) = all(cells);
    let runs = Runs::new(frontend, title, trials.len(), Unit::Runs, 1);
    let mut found = Vec::new();
    for ((cell, trial), row) in trials.iter().zip(rows) {
        let known = store.find(&row);
        let measured = match known {
            Some(measured) => measured,
            None => {
                let measured = Measured::of(&bed(&cells[*cell].scenario, trial)?.summary);
                store.keep(row.with(measured.clone()))?;
                measured
            }
        };
        runs.turn().skip();
        found.push(measured);
    }
    store.flush()?;
    Ok(sorted(cells, &trials, &found))
}

/// The cells in which a test bed can run these disciplines, and the others, each with the reason.
pub fn emulated(cells: &[Cell], disciplines: &[String], short: bool) -> (Vec<Cell>, Vec<(Cell, String)>) {
    let (mut can, mut cannot) = (Vec::new(), Vec::new());
    for cell in cells {
        match prepare(cell, disciplines, &[1], Timing::Real, short) {
            Ok(_) => can.push(cell.clone()),
            Err(error) => cannot.push((cell.clone(), error.to_string())),
        }
    }
    (can, cannot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::cells;

    #[test]
    fn a_test_bed_emulates_most_cells_and_names_what_it_cannot() {
        for short in [false, true] {
            let (can, cannot) = emulated(&cells(), &["efd".to_owned()], short);
            assert!(can.len() > 40, "{}", can.len());
            assert_eq!(can.len() + cannot.len(), cells().len());
            let why = |name: &str| cannot.iter().find(|(cell, _)| cell.name == name).map(|(_, why)| &**why);
            assert!(can.iter().any(|cell| cell.name == "varying/step"));
            assert!(why("varying/policer").is_some_and(|why| why.contains("no policers")), "{cannot:?}");
        }
        // The rate of a discipline in the kernel is constant.
        let bpf = ["bpf:efd".to_owned(), "kernel:fq_codel".to_owned()];
        let (can, _) = emulated(&cells(), &bpf, true);
        assert!(can.iter().any(|cell| cell.name == "rrul/tcp-8-down"));
        assert!(can.iter().all(|cell| cell.name != "varying/step"));
    }
}
