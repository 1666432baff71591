//! The runs of a paper's study.

use std::panic::{AssertUnwindSafe, catch_unwind};

use giveway_papers::{Job, Results, Study};
use rayon::prelude::*;

use crate::frontend::{Frontend, Progress, panic_message};
use crate::{Outcome, RunnerError, pool};

/// Runs every job of a study on `threads` threads (0: one for each processor), until the user stops it. Jobs
/// that measure real time run first, one after the other.
///
/// # Errors
/// When the threads cannot be started. A job that fails is reported to the front end, and the others
/// continue.
pub fn run(study: &Study, threads: u16, frontend: &dyn Frontend) -> Result<(Results, Outcome), RunnerError> {
    let jobs = study.jobs();
    let pool = pool(threads)?;
    // The bar counts simulated seconds, because runs differ tenfold in length.
    let seconds: Vec<u64> = jobs.iter().map(|job| (study.weight(job).as_s() as u64).max(1)).collect();
    let progress = Progress::new(frontend, study.id(), seconds.iter().sum::<u64>() as usize);
    let one = |(job, seconds): (&Job, &u64)| {
        if frontend.stopped() {
            return Ok(None);
        }
        let part = progress.part_of_length(*seconds);
        let go_on = |share: f64| {
            part.done(share);
            !frontend.stopped()
        };
        // The other runs continue if this one panics.
        let running = AssertUnwindSafe(|| study.run(job, &go_on));
        catch_unwind(running)
            .map_err(|panic| format!("{} failed: {}", study.name(job), panic_message(panic.as_ref())))
    };
    let (timed, others): (Vec<usize>, Vec<usize>) =
        (0..jobs.len()).partition(|at| study.is_timed(&jobs[*at]));
    let at = |at: &usize| (*at, one((&jobs[*at], &seconds[*at])));
    let mut ran: Vec<_> = timed.iter().map(at).collect();
    ran.extend(pool.install(|| others.par_iter().with_max_len(1).map(at).collect::<Vec<_>>()));
    ran.sort_by_key(|(at, _)| *at);
    drop(progress);
    let mut outcome = if frontend.stopped() { Outcome::Interrupted } else { Outcome::Done };
    let observed = ran.into_iter().map(|(_, ran)| {
        ran.unwrap_or_else(|sentence| {
            frontend.message(&sentence);
            outcome = outcome.max(Outcome::Failed);
            None
        })
    });
    let observed = observed.collect();
    Ok((study.finish(&jobs, observed), outcome))
}
