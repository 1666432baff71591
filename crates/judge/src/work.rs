//! The runs of a candidate.

use giveway_evaluate::{EvaluateError, Outcome, Prepared, outcome, tasks};
use giveway_runner::{Frontend, Progress, Unit, in_order};

use crate::candidate::{Candidate, Failed, Ran};
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

/// The end of runs without result.
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

/// Runs a candidate in cells, each with all its seeds. Returns the outcomes by cell and seed.
pub fn all(
    candidate: &dyn Candidate,
    cells: &[Prepared<'_>],
    twist: Option<&Twist>,
    jobs: usize,
    title: &str,
    frontend: &dyn Frontend,
) -> Result<Vec<Vec<Observed>>, Ended> {
    let tasks = tasks(cells);
    let progress = Progress::new(frontend, title, tasks.len(), Unit::Runs);
    let found = in_order(tasks.len(), jobs, |place, wanted| -> Result<Observed, Ended> {
        let (cell, seed) = tasks[place];
        let part = progress.part();
        let go_on = |share: f64| {
            part.done(share);
            !frontend.stopped() && wanted()
        };
        let prepared = &cells[cell];
        let ran = candidate.run(&prepared.scenario, seed, twist, &go_on);
        part.done(1.0);
        let Ran { record, seen, fuel } = ran.map_err(|failed| match failed {
            Failed::Rejected(rejected) => Ended::Rejected(rejected.at(&prepared.cell.name, seed)),
            Failed::Other(error) => Ended::Other(error),
            Failed::Stopped => Ended::Other(EvaluateError::Stopped),
        })?;
        Ok(Observed { outcome: outcome(prepared, &record), seen, fuel })
    })?;
    let mut outcomes: Vec<Vec<Observed>> = cells.iter().map(|_| Vec::new()).collect();
    for ((cell, _), observed) in tasks.iter().zip(found) {
        outcomes[*cell].push(observed);
    }
    Ok(outcomes)
}
