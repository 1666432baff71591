//! The runs of a candidate.

use giveway_evaluate::{EvaluateError, Outcome, Prepared};
use giveway_measure::Record;
use giveway_record::FolderError;
use giveway_record::dataset::{Measured, Row};
use giveway_trials::{Digests, Ended as Trial, Frontend, Identity, Runs, Store, Unit};
use serde::{Deserialize, Serialize};

use crate::candidate::{Candidate, Failed, Ran};
use crate::perturbation::Perturbation;
use crate::rejected::{Code, Rejected};
use crate::watch::Seen;

/// The outcome of a run of a candidate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Observed {
    /// The part that a card uses.
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

impl From<FolderError> for Ended {
    fn from(error: FolderError) -> Ended {
        Ended::Other(error.into())
    }
}

/// The purpose of runs.
#[derive(Clone, Copy)]
pub struct Purpose<'a> {
    /// The name in the display of the progress.
    pub title: &'a str,
    /// The hidden change in each cell with each seed.
    pub perturbation: Option<&'a dyn Fn(&str, u64) -> Perturbation>,
    /// True for runs that a secret has drawn: a mistake in them says its kind only.
    pub secret: bool,
    /// True for runs that are compared with runs before: those are no replacement for them.
    pub again: bool,
}

/// The stores of finished runs, which a judgement that was stopped does not repeat.
#[derive(Clone, Copy)]
pub struct Stores<'a> {
    /// The runs of the candidate.
    pub candidate: &'a dyn Store<Observed>,
    /// The runs of the baseline.
    pub baseline: &'a dyn Store<Measured>,
}

/// Runs a candidate in cells.
pub struct Bench<'a> {
    /// The stores of finished runs.
    pub stores: Stores<'a>,
    /// The number of threads.
    pub jobs: usize,
    /// Shows the progress, and may stop.
    pub frontend: &'a dyn Frontend,
}

impl Bench<'_> {
    /// Runs a candidate in cells, each with all its seeds. Returns the outcomes by cell and seed.
    pub fn all(
        &self,
        candidate: &dyn Candidate,
        cells: &[Prepared<'_>],
        purpose: Purpose<'_>,
    ) -> Result<Vec<Vec<Observed>>, Ended> {
        let mut tasks: Vec<(usize, u64, Option<Perturbation>)> = Vec::new();
        let mut rows: Vec<Row<()>> = Vec::new();
        for (cell, prepared) in cells.iter().enumerate() {
            let identity = Identity::of(&prepared.scenario, &Digests::default());
            for seed in &prepared.scenario.seeds {
                let perturbation = purpose.perturbation.map(|drawn| drawn(&prepared.cell.name, *seed));
                // What decides the run besides the scenario and the seed, with a mark at the end of each part.
                let change = format!("{perturbation:?}\0{}", purpose.again).into_bytes();
                let identity = identity.with(&[candidate.identity(), change].join(&0));
                tasks.push((cell, *seed, perturbation));
                rows.push(Row { key: identity.key(candidate.name(), *seed), seed: *seed, ..Row::default() });
            }
        }
        let runs = Runs::new(self.frontend, purpose.title, tasks.len(), Unit::Runs, self.jobs);
        let found = runs.kept(&rows, self.stores.candidate, |place, turn| -> Result<Observed, Ended> {
            let (cell, seed, perturbation) = &tasks[place];
            let (prepared, seed) = (&cells[*cell], *seed);
            let ended = turn.trial(|keep_running| {
                let ran = candidate.run(&prepared.scenario, seed, perturbation.as_ref(), keep_running);
                (!matches!(ran, Err(Failed::Stopped))).then_some(ran)
            });
            match ended {
                Trial::Finished(Ok(Ran { record, seen, fuel })) => {
                    Ok(Observed { outcome: outcome(prepared, &record), seen, fuel })
                }
                Trial::Finished(Err(Failed::Rejected(rejected))) => {
                    Err(Ended::Rejected(match purpose.secret {
                        true => Rejected::veiled(rejected.code),
                        // A program that cannot be set up fails in every run.
                        false if rejected.code == Code::Module => rejected,
                        false => rejected.at(&prepared.cell.name, seed),
                    }))
                }
                Trial::Finished(Err(Failed::Other(error))) => Err(Ended::Other(error)),
                Trial::Finished(Err(Failed::Stopped)) | Trial::Stopped => {
                    Err(Ended::Other(EvaluateError::Stopped))
                }
                Trial::Failed(why) => Err(Ended::Other(EvaluateError::Failed {
                    discipline: candidate.name().to_owned(),
                    cell: if purpose.secret {
                        "a cell of the secret".to_owned()
                    } else {
                        prepared.cell.name.clone()
                    },
                    seed: if purpose.secret { 0 } else { seed },
                    why,
                })),
            }
        })?;
        let mut outcomes: Vec<Vec<Observed>> = cells.iter().map(|_| Vec::new()).collect();
        for ((cell, ..), observed) in tasks.iter().zip(found) {
            outcomes[*cell].push(observed);
        }
        Ok(outcomes)
    }
}

/// The outcome of a record.
fn outcome(prepared: &Prepared<'_>, record: &Record) -> Outcome {
    Outcome::of(prepared.cell, &Measured::of(&record.summary))
}
