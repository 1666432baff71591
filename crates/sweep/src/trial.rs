//! Runs the trials of one point with one seed.

use giveway_measure::Record;
use giveway_observe::observe;
use giveway_record::dataset::{Measured, Reason, Row};
use giveway_scenario::Scenario;
use giveway_trials::{Ended, Turn};

use crate::plan::{OutsideTrial, Plan, Point};

/// Finished and failed trials of a task.
pub type Rows = (Vec<Row<Measured>>, Vec<Row<Reason>>);

/// Runs a trial of a discipline from outside with a seed. The error is the reason of a failed trial; `None`
/// stops the work.
pub type RunOutside<'a> = dyn FnMut(&Scenario, &OutsideTrial, u64) -> Option<Result<Record, String>> + 'a;

/// Runs disciplines at a point with a seed, until the turn is over. A discipline from outside fails.
pub fn execute(plan: &Plan, point: u64, seed: usize, disciplines: &[usize], turn: &Turn<'_>) -> Rows {
    let refuse: &mut RunOutside<'_> =
        &mut |_, trial, _| Some(Err(format!("{} runs only where it was defined", trial.name)));
    execute_with(plan, point, seed, disciplines, turn, refuse)
}

/// Like [`execute`], with trials of disciplines from outside, which `run_outside` runs.
pub fn execute_with(
    plan: &Plan,
    point: u64,
    seed: usize,
    disciplines: &[usize],
    turn: &Turn<'_>,
    run_outside: &mut RunOutside<'_>,
) -> Rows {
    let (mut finished, mut failed) = (Vec::new(), Vec::new());
    let row = |key: u128, discipline: usize, qdisc: String| Row {
        key,
        point,
        discipline: plan.disciplines().nth(discipline).unwrap_or_default().to_owned(),
        qdisc,
        seed: plan.seeds()[seed],
        axes: plan.values(point, discipline),
        result: (),
    };
    let at: Point = match plan.point(point) {
        Ok(at) => at,
        Err(error) => {
            for discipline in disciplines {
                let written = plan.disciplines().nth(*discipline).unwrap_or_default().to_owned();
                failed.push(row(0, *discipline, written).with(error.to_string()));
                turn.skip();
            }
            return (finished, failed);
        }
    };
    for trial in at.scenario.trials() {
        let runs = trial.discipline < plan.built_in() && disciplines.contains(&trial.discipline);
        if trial.seed != plan.seeds()[seed] || !runs {
            continue;
        }
        let known = row(at.key(&trial.name, trial.seed), trial.discipline, trial.name.clone());
        match turn.trial(|keep_running| observe(&at.scenario, &trial, false, keep_running)) {
            Ended::Finished((record, _)) => finished.push(known.with(Measured::of(&record.summary))),
            Ended::Stopped => break,
            Ended::Failed(why) => failed.push(known.with(why)),
        }
    }
    for (number, outside) in plan.outside().iter().enumerate() {
        let discipline = plan.built_in() + number;
        if !disciplines.contains(&discipline) {
            continue;
        }
        let (trial, seed) = (plan.outside_trial(point, number), plan.seeds()[seed]);
        let known = row(at.outside_key(outside, &trial.name, seed), discipline, trial.name.clone());
        match run_outside(&at.scenario, &trial, seed) {
            Some(Ok(record)) => finished.push(known.with(Measured::of(&record.summary))),
            Some(Err(why)) => failed.push(known.with(why)),
            None => break,
        }
    }
    (finished, failed)
}
