//! The files of an export. Each trial writes its own file, under a temporary name next to its place until it
//! is complete.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use giveway_measure::Recorder;
use giveway_record::NewFile;
use giveway_scenario::{Build, Finished, Network, Scenario, Trial};
use giveway_sim::Segment;

use super::Exporter;
use crate::RunnerError;
use crate::outputs::{Kind, may_write};
use giveway_trials::Frontend;

/// The files that the trials of a scenario write: one for the first seed of each discipline.
#[derive(Default)]
pub struct Exports<'a> {
    seed: u64,
    /// The network whose packets are written; `None` if none are.
    network: Option<&'a Network>,
    /// In the order of the disciplines.
    files: Vec<Target>,
}

/// The output file of one trial. It has a temporary name in the same folder until it is complete. An
/// unfinished file is removed.
pub struct Target {
    place: PathBuf,
    /// Taken by the run that writes it.
    file: Mutex<Option<NewFile>>,
    /// The number of packets or operations in the file, or the error; not set if the run did not end.
    outcome: OnceLock<io::Result<u64>>,
}

impl<'a> Exports<'a> {
    /// No files.
    pub fn none() -> Exports<'a> {
        Exports::default()
    }

    /// Creates the files, so that a file that cannot be written is reported before anything runs.
    ///
    /// # Errors
    /// When the scenario has no network, or a file may not or cannot be written.
    pub fn begin(
        file: &Path,
        scenario: &'a Scenario,
        force: bool,
        frontend: &dyn Frontend,
    ) -> Result<Exports<'a>, RunnerError> {
        let backend = scenario.backend.name();
        let network = scenario.network().ok_or_else(|| {
            RunnerError::Unsupported(format!(
                "--export writes the packets of a network, and this scenario has the backend \"{backend}\""
            ))
        })?;
        let seed = scenario.seeds[0];
        let kinds: Vec<&str> = network.disciplines.iter().map(|spec| spec.name()).collect();
        // If a file cannot be created, the files before it are removed when they are dropped.
        let mut exports = Exports { seed, network: Some(network), files: Vec::new() };
        let places = places(file, &kinds);
        Target::may_begin(&places, Kind::Capture, force, frontend)?;
        for place in places {
            exports.files.push(Target::begin(place)?);
        }
        Ok(exports)
    }

    /// The file that this trial writes, and its network; `None` if it writes none.
    pub fn of(&self, trial: &Trial) -> Option<(&Target, &'a Network)> {
        let target = self.files.get(trial.discipline).filter(|_| trial.seed == self.seed);
        target.zip(self.network)
    }

    /// A sentence on each file, with true if the file is complete. Files of runs that did not end are left
    /// out.
    pub fn ended(&self) -> Vec<(String, bool)> {
        self.files.iter().filter_map(|target| target.report("packets")).collect()
    }
}

impl Target {
    /// Checks that a file of this kind may be written at each of `places`: there is no file, or one of the
    /// same kind, or `force` is true.
    ///
    /// # Errors
    /// [`RunnerError::Usage`] for the first place with another file.
    pub fn may_begin(
        places: &[PathBuf],
        kind: Kind,
        force: bool,
        frontend: &dyn Frontend,
    ) -> Result<(), RunnerError> {
        places.iter().try_for_each(|place| may_write(place, kind, force, frontend))
    }

    /// Creates a file that will be moved to `place` when it is complete.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn begin(place: PathBuf) -> Result<Target, RunnerError> {
        let file =
            NewFile::begin(&place).map_err(RunnerError::io(format!("cannot write {}", place.display())))?;
        Ok(Target { place, file: Mutex::new(Some(file)), outcome: OnceLock::new() })
    }

    /// A sentence on the file, with true if the file is complete; `None` if the run did not end.
    pub fn report(&self, what: &str) -> Option<(String, bool)> {
        self.outcome.get().map(|outcome| match outcome {
            Ok(count) => (format!("{} has {count} {what}", self.place.display()), true),
            Err(error) => (self.sentence(error), false),
        })
    }

    /// Records the outcome of the run: the number of packets or operations in the complete file, or the
    /// error.
    pub fn set_outcome(&self, outcome: io::Result<u64>) {
        let _ = self.outcome.set(outcome);
    }

    /// Takes the file, for the run that writes it.
    ///
    /// # Errors
    /// When the file was taken before.
    pub fn take(&self) -> io::Result<NewFile> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        file.ok_or_else(|| io::Error::other("another run has written it already"))
    }

    /// Runs a trial and writes the packets of its queues. `recorder` observes the run as well. If the file
    /// cannot be written, the run continues, and its other results are not affected.
    pub fn run(
        &self,
        network: &Network,
        trial: &Trial,
        build: Build<'_>,
        recorder: &mut Recorder<Segment>,
        go_on: &dyn Fn(f64) -> bool,
    ) -> Option<Finished> {
        let begin = |file: &NewFile| {
            let out = BufWriter::with_capacity(1 << 18, file.file().try_clone()?);
            Exporter::new(out, network, trial)
        };
        let begun = self.take().and_then(|file| Ok((begin(&file)?, file)));
        let finished = match begun {
            Ok((exporter, file)) => {
                let mut both = (recorder, exporter);
                let finished = network.run_built(trial, build, &mut both, go_on)?;
                let kept = both.1.finish().and_then(|(mut out, packets)| {
                    out.flush()?;
                    file.keep().map(|()| packets)
                });
                self.set_outcome(kept);
                finished
            }
            Err(error) => {
                self.set_outcome(Err(error));
                giveway_observe::run_built(network, trial, build, recorder, go_on)?
            }
        };
        Some(finished)
    }

    fn sentence(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}", self.place.display())
    }
}

/// The file of each discipline: `file` itself for one discipline, otherwise FILE-fifo.pcapng and so on, with
/// a number if a kind occurs more than once.
pub fn places(file: &Path, kinds: &[&str]) -> Vec<PathBuf> {
    if kinds.len() == 1 {
        return vec![file.to_owned()];
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let ending = file.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    let same = |kind: &str, among: &[&str]| among.iter().filter(|other| **other == kind).count();
    let places = kinds.iter().enumerate().map(|(at, kind)| {
        let number = match same(kind, kinds) {
            1 => String::new(),
            _ => format!("-{}", same(kind, &kinds[..=at])),
        };
        file.with_file_name(format!("{stem}-{kind}{number}{ending}"))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_discipline_has_its_own_file() {
        let named = |file: &str, kinds: &[&str]| -> Vec<String> {
            places(Path::new(file), kinds).iter().map(|place| place.display().to_string()).collect()
        };
        assert_eq!(named("out/home.pcapng", &["fifo"]), ["out/home.pcapng"]);
        assert_eq!(
            named("out/home.pcapng", &["fifo", "fq_codel"]),
            ["out/home-fifo.pcapng", "out/home-fq_codel.pcapng"]
        );
        assert_eq!(named("home", &["fifo", "drr", "fifo"]), ["home-fifo-1", "home-drr", "home-fifo-2"]);
    }
}
