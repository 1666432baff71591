//! The runs of a candidate: in order, on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use giveway_evaluate::{EvaluateError, Outcome, Prepared, outcome};
use giveway_runner::{Frontend, Progress, Unit};

use crate::candidate::{Around, Candidate, Failed};
use crate::rejected::Rejected;
use crate::twist::Twist;
use crate::watch::Seen;

/// The outcome of a run of a candidate.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The part that a card keeps.
    pub outcome: Outcome,
    /// The observations at each judged link.
    pub seen: Vec<Seen>,
    /// The fuel of all calls, and the packets that arrived.
    pub fuel: (u64, u64),
}

/// The end of runs that have no result.
pub enum Ended {
    /// The candidate made a mistake. It is the first in the order of cells and seeds.
    Rejected(Rejected),
    /// A run failed, or the front end stopped it.
    Other(EvaluateError),
}

impl From<EvaluateError> for Ended {
    fn from(error: EvaluateError) -> Ended {
        Ended::Other(error)
    }
}

type Slot = Mutex<Option<Result<Observed, Failed>>>;

/// Runs a candidate in cells, each with all its seeds. Returns the outcomes by cell and seed.
pub fn all(
    candidate: &dyn Candidate,
    cells: &[Prepared<'_>],
    twist: Option<&Twist>,
    jobs: usize,
    title: &str,
    frontend: &dyn Frontend,
) -> Result<Vec<Vec<Observed>>, Ended> {
    let tasks: Vec<(usize, u64)> = cells
        .iter()
        .enumerate()
        .flat_map(|(cell, prepared)| prepared.scenario.seeds.iter().map(move |seed| (cell, *seed)))
        .collect();
    let progress = Progress::new(frontend, title, tasks.len(), Unit::Runs);
    let next = AtomicUsize::new(0);
    // The first task that ended without a result. Those before it still run, so that the first mistake is
    // the same with any number of threads.
    let ended = AtomicUsize::new(usize::MAX);
    let slots: Vec<Slot> = tasks.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some((cell, seed)) = tasks.get(place) else { return };
            if place > ended.load(Ordering::Relaxed) {
                return;
            }
            let part = progress.part();
            let go_on = |share: f64| {
                part.done(share);
                !frontend.stopped() && place <= ended.load(Ordering::Relaxed)
            };
            let prepared = &cells[*cell];
            let around = Around::new(twist.cloned());
            let found = candidate.run(&prepared.scenario, *seed, &around, &go_on);
            if found.is_err() {
                ended.fetch_min(place, Ordering::Relaxed);
            }
            part.done(1.0);
            let found = found.map(|ran| Observed {
                outcome: outcome(prepared, &ran.record),
                seen: ran.seen,
                fuel: ran.fuel,
            });
            *slots[place].lock().expect("no thread panics with it") = Some(found);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.max(1) {
            scope.spawn(work);
        }
        work();
    });
    let mut outcomes: Vec<Vec<Observed>> = cells.iter().map(|_| Vec::new()).collect();
    for ((cell, seed), slot) in tasks.iter().zip(slots) {
        match slot.into_inner().expect("no thread panics with it") {
            Some(Ok(observed)) => outcomes[*cell].push(observed),
            Some(Err(Failed::Rejected(rejected))) => {
                return Err(Ended::Rejected(rejected.at(&cells[*cell].cell.name, *seed)));
            }
            Some(Err(Failed::Other(error))) => return Err(Ended::Other(error)),
            Some(Err(Failed::Stopped)) | None => return Err(Ended::Other(EvaluateError::Stopped)),
        }
    }
    Ok(outcomes)
}
