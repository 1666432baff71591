//! The runs of a paper's study.

use std::convert::Infallible;
use std::path::Path;

use giveway_papers::{Job, KeptRun, Observed, Results, Study};
use giveway_record::dataset::Row;
use giveway_trials::{Ended, Frontend, Identity, Lines, Runs, Store, Turn, Unit};

use crate::{Outcome, RunnerError};

/// Rights of the file of finished runs, before the mask of the process.
const RIGHTS: u32 = 0o666;

/// Runs every job of a study on `threads` threads, until the user stops it. Jobs that measure real time run
/// first, one after the other. Finished runs are kept in the file `kept` until all have finished, so that the
/// next call continues where this one stopped.
///
/// # Errors
/// When the file cannot be written. A job that fails is reported to the front end, and the others continue.
pub fn run(
    study: &Study,
    threads: usize,
    kept: &Path,
    frontend: &dyn Frontend,
) -> Result<(Results, Outcome), RunnerError> {
    let jobs = study.jobs();
    let explain = || format!("cannot write {}", kept.display());
    let store: Lines<KeptRun> =
        Lines::open(kept, &study.identity(), RIGHTS, frontend).map_err(RunnerError::io(explain()))?;
    if store.found() > 0 {
        frontend.message(&format!("resuming: {} of {} runs finished before", store.found(), jobs.len()));
    }
    // The name of a run has its seed.
    let identity = Identity::of_text(&study.identity());
    // The bar counts simulated seconds, because runs differ tenfold in length.
    let seconds = |job: &Job| (study.weight(job).as_s() as u64).max(1);
    let length = jobs.iter().map(seconds).sum::<u64>() as usize;
    let runs = Runs::new(frontend, study.id(), length, Unit::Seconds, threads);
    let one = |job: &Job, turn: &Turn<'_>| -> Result<Option<Observed>, String> {
        let row = Row { key: identity.key(&study.name(job), 0), ..Row::default() };
        if let Some(run) = store.find(&row) {
            turn.skip_length(seconds(job));
            return Ok(Some(run.into()));
        }
        match turn.trial_of_length(seconds(job), |keep_running| study.run(job, keep_running)) {
            Ended::Finished(observed) => {
                // A run that cannot be kept is repeated by the next call.
                let _ = store.keep(row.with(KeptRun::of(&observed)));
                Ok(Some(observed))
            }
            Ended::Stopped => Ok(None),
            Ended::Failed(why) => Err(format!("{} failed: {why}", study.name(job))),
        }
    };
    let (timed, others): (Vec<usize>, Vec<usize>) =
        (0..jobs.len()).partition(|place| study.is_timed(&jobs[*place]));
    let mut ran: Vec<_> = timed.iter().map(|place| (*place, one(&jobs[*place], &runs.turn()))).collect();
    let Ok(rest) = runs.all(others.len(), |number, turn| {
        Ok::<_, Infallible>((others[number], one(&jobs[others[number]], turn)))
    });
    ran.extend(rest);
    ran.sort_by_key(|(place, _)| *place);
    drop(runs);
    let mut outcome = if frontend.stopped() { Outcome::Interrupted } else { Outcome::Done };
    let observed = ran.into_iter().map(|(_, ran)| {
        ran.unwrap_or_else(|sentence| {
            frontend.message(&sentence);
            outcome = outcome.max(Outcome::Failed);
            None
        })
    });
    let observed = observed.collect();
    let results = study.finish(&jobs, observed);
    if results.finished == results.planned {
        store.remove();
    } else {
        frontend.message("the study is incomplete; the same command resumes it");
    }
    Ok((results, outcome))
}
