//! Runs the trials of a plan that its folder does not have yet.
//!
//! Threads take tasks, each of which is a point with a seed: all disciplines of a task have the same
//! arrivals, so their differences are paired. Tasks are in a random order of points, seed by seed. So the
//! data set is representative while it grows, and the time left can be estimated from what is done.
//!
//! Memory does not grow with the number of trials that run: rows are written in parts. Resuming needs 8 bytes
//! for each finished trial, and a precision 16 bytes for each trial.

use std::path::Path;
use std::sync::Arc;

use giveway_record::dataset::Part;
use giveway_trials::{Frontend, Reuse};

use crate::error::SweepError;
use crate::folder::{Manifest, Shard, SweepFolder};
use crate::plan::Plan;
use crate::precision::Precision;
use crate::reuse::begin;
use crate::round::Round;
use crate::state::Done;

/// Runs the trials that are missing, on `jobs` threads, and sorts the data set at the end. `reuse` has
/// trials of other folders.
///
/// # Errors
/// If a part cannot be written or read. Finished trials are kept, and the same call goes on from there.
pub fn run(
    plan: &Plan,
    folder: &mut SweepFolder,
    shard: Shard,
    jobs: usize,
    reuse: &Reuse,
    frontend: &dyn Frontend,
) -> Result<Done, SweepError> {
    let (mut state, mut done) = begin(plan, folder, shard, jobs, reuse, frontend)?;
    let most = plan.seeds().len();
    let (mut from, mut until) = (0, Round::first(plan));
    loop {
        let until_now = plan.request().until.as_ref();
        let open: Option<Arc<[u64]>> =
            until_now.map(|precision| state.open(plan, shard, precision, from).into());
        if open.as_ref().is_some_and(|points| points.is_empty()) {
            break;
        }
        let round = Round { plan, shard, seeds: from..until, open, jobs };
        let (ran, failed, stopped) = round.run(folder, &mut state, frontend)?;
        done.ran += ran;
        done.failed += failed;
        if stopped {
            return Ok(done);
        }
        if until == most {
            break;
        }
        (from, until) = (until, Precision::next(until).min(most));
    }
    folder.complete()?;
    done.complete = true;
    Ok(done)
}

/// The failed trials of the sweep in `dir`, as parts.
///
/// # Errors
/// As [`parts_of`].
pub fn failed_parts_of(dir: &Path) -> Result<Vec<Part>, SweepError> {
    manifest_of(dir)?.failed(dir)
}

/// The parts of the sweep in `dir`, for [`run`].
///
/// # Errors
/// If the folder does not belong to a sweep, or is damaged.
pub fn parts_of(dir: &Path) -> Result<Vec<Part>, SweepError> {
    manifest_of(dir)?.trials(dir)
}

/// The manifest of the sweep in `dir`.
///
/// # Errors
/// If the folder does not belong to a sweep, or its manifest is damaged.
pub(crate) fn manifest_of(dir: &Path) -> Result<Manifest, SweepError> {
    let found = Manifest::read(dir)?;
    found.ok_or_else(|| SweepError::Usage(format!("{} is not the folder of a sweep", dir.display())))
}
