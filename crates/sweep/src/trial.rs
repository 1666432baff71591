//! Runs the trials of one point with one seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use giveway_observe::observe;
use giveway_record::dataset::{Measured, Reason, Row};
use giveway_runner::{Progress, panic_message};

use crate::plan::{Plan, Point};

/// Finished and failed trials of a task.
pub type Rows = (Vec<Row<Measured>>, Vec<Row<Reason>>);

/// Runs disciplines at a point with a seed.
pub fn execute(
    plan: &Plan,
    point: u64,
    seed: usize,
    disciplines: &[usize],
    progress: &Progress,
    go_on: &(dyn Fn() -> bool + Sync),
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
                failed.push(with(row(0, *discipline, written), error.to_string()));
                progress.part().done(1.0);
            }
            return (finished, failed);
        }
    };
    for trial in at.scenario.trials() {
        if trial.seed != plan.seeds()[seed] || !disciplines.contains(&trial.discipline) {
            continue;
        }
        let part = progress.part();
        let advance = |share: f64| {
            part.done(share);
            go_on()
        };
        if !go_on() {
            break;
        }
        let known = row(at.key(&trial.name, trial.seed), trial.discipline, trial.name.clone());
        match catch_unwind(AssertUnwindSafe(|| observe(&at.scenario, &trial, false, &advance))) {
            Ok(Some((record, _))) => finished.push(with(known, Measured::of(&record.summary))),
            // The front end stopped it.
            Ok(None) => break,
            Err(panic) => failed.push(with(known, panic_message(panic.as_ref()))),
        }
        part.done(1.0);
    }
    (finished, failed)
}

fn with<R>(row: Row<()>, result: R) -> Row<R> {
    let Row { key, point, discipline, qdisc, seed, axes, result: () } = row;
    Row { key, point, discipline, qdisc, seed, axes, result }
}
