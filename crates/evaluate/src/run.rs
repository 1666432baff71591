//! The runs of a card: every cell with every discipline and seed.
//!
//! A run is a pure function of the scenario, the discipline and the seed, so a card has the same bits with
//! any number of threads. Threads take tasks of one cell with one seed, in which all disciplines have the
//! same arrivals.

use std::panic::{AssertUnwindSafe, catch_unwind};

use giveway_measure::Record;
use giveway_observe::{layout, observe};
use giveway_runner::{Frontend, Progress, Unit, in_order, panic_message};
use giveway_scenario::{Draft, Scenario, Trial};

use crate::cells::Cell;
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

/// The part of a record that a card keeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The metrics of the cell, in its order; `None` if one was not measured.
    pub values: Vec<Option<f64>>,
    /// The difference between the shares of two equal transfers, -1 to 1; `None` if the cell has no such
    /// pair.
    pub lead: Option<f64>,
    /// The fingerprint of all events.
    pub fingerprint: String,
    /// The packets that the judged link has sent.
    pub packets: u64,
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
}

/// The name of long transfers. If a cell has exactly two, they are equal in everything but the seed.
const PAIR: &str = "bulk";

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
    Ok(Prepared { cell, scenario })
}

/// The outcomes of cells: by cell, discipline and seed.
///
/// # Errors
/// The first run that failed, by cell and seed; or the front end stopped it.
pub fn run(
    cells: &[Prepared<'_>],
    jobs: usize,
    title: &str,
    frontend: &dyn Frontend,
) -> Result<Outcomes, EvaluateError> {
    let tasks = tasks(cells);
    let runs: usize = cells.iter().map(|prepared| prepared.scenario.trials().len()).sum();
    let progress = Progress::new(frontend, title, runs, Unit::Runs);
    let rows = in_order(tasks.len(), jobs, |place, wanted| {
        let (cell, seed) = tasks[place];
        with_seed(&cells[cell], seed, &progress, &|| !frontend.stopped() && wanted())
    })?;
    let mut outcomes: Outcomes =
        cells.iter().map(|prepared| vec![Vec::new(); prepared.scenario.compared().len()]).collect();
    for ((cell, _), row) in tasks.iter().zip(rows) {
        for (discipline, outcome) in row.into_iter().enumerate() {
            outcomes[*cell][discipline].push(outcome);
        }
    }
    Ok(outcomes)
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
    bed: &mut BedRuns<'_>,
    title: &str,
    frontend: &dyn Frontend,
) -> Result<Outcomes, EvaluateError> {
    let runs: usize = cells.iter().map(|prepared| prepared.scenario.trials().len()).sum();
    let progress = Progress::new(frontend, title, runs, Unit::Runs);
    let mut outcomes = Outcomes::new();
    for prepared in cells {
        let mut of_cell = vec![Vec::new(); prepared.scenario.compared().len()];
        for trial in prepared.scenario.trials() {
            let part = progress.part();
            let record = bed(&prepared.scenario, &trial)?;
            part.done(1.0);
            of_cell[trial.discipline].push(outcome(prepared, &record));
        }
        outcomes.push(of_cell);
    }
    Ok(outcomes)
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

/// The place of a cell with a seed, for all cells and their seeds.
pub fn tasks(cells: &[Prepared<'_>]) -> Vec<(usize, u64)> {
    let cells = cells.iter().enumerate();
    cells.flat_map(|(cell, prepared)| prepared.scenario.seeds.iter().map(move |seed| (cell, *seed))).collect()
}

/// The outcomes of all disciplines of a cell with a seed.
fn with_seed(
    prepared: &Prepared<'_>,
    seed: u64,
    progress: &Progress,
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<Outcome>, EvaluateError> {
    let Prepared { cell, scenario } = prepared;
    let trials: Vec<Trial> = scenario.trials().into_iter().filter(|trial| trial.seed == seed).collect();
    let mut outcomes = Vec::new();
    for trial in trials {
        let part = progress.part();
        let advance = |share: f64| {
            part.done(share);
            go_on()
        };
        let found = catch_unwind(AssertUnwindSafe(|| observe(scenario, &trial, false, &advance)));
        let record = found.map_err(|panic| EvaluateError::Failed {
            discipline: trial.name.clone(),
            cell: cell.name.clone(),
            seed,
            why: panic_message(panic.as_ref()),
        })?;
        let Some((record, _)) = record else { return Err(EvaluateError::Stopped) };
        part.done(1.0);
        outcomes.push(outcome(prepared, &record));
    }
    Ok(outcomes)
}

/// The part of a record that a card keeps.
pub fn outcome(prepared: &Prepared<'_>, record: &Record) -> Outcome {
    let measures = &prepared.cell.measures;
    let layout = layout(&prepared.scenario, false);
    let bulk: Vec<f64> = record
        .flows
        .iter()
        .filter(|flow| layout.source_names.get(usize::from(flow.source)).is_some_and(|name| name == PAIR))
        .map(|flow| flow.goodput_bytes as f64)
        .collect();
    let lead = match bulk[..] {
        [one, other] if one + other > 0.0 => Some((one - other) / (one + other)),
        _ => None,
    };
    let judged = record.links.iter().filter(|link| layout.measured.contains(&link.port));
    Outcome {
        values: measures.iter().map(|measure| record.summary.metrics.value(&measure.metric)).collect(),
        lead,
        fingerprint: record.summary.fingerprint.to_string(),
        packets: judged.filter_map(|link| link.sent).map(|sent| sent.packets).sum(),
    }
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
