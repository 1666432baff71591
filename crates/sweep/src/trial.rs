//! Runs the trials of one point with one seed.

use giveway_observe::observe;
use giveway_record::dataset::{Measured, Reason, Row};
use giveway_trials::{Ended, Turn};

use crate::plan::{Plan, Point};

/// Finished and failed trials of a task.
pub type Rows = (Vec<Row<Measured>>, Vec<Row<Reason>>);

/// Runs disciplines at a point with a seed, until the turn is over.
pub fn execute(plan: &Plan, point: u64, seed: usize, disciplines: &[usize], turn: &Turn<'_>) -> Rows {
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
        if trial.seed != plan.seeds()[seed] || !disciplines.contains(&trial.discipline) {
            continue;
        }
        let known = row(at.key(&trial.name, trial.seed), trial.discipline, trial.name.clone());
        match turn.trial(|keep_running| observe(&at.scenario, &trial, false, keep_running)) {
            Ended::Finished((record, _)) => finished.push(known.with(Measured::of(&record.summary))),
            Ended::Stopped => break,
            Ended::Failed(why) => failed.push(known.with(why)),
        }
    }
    (finished, failed)
}
