//! The files of an export: which run writes which, and that they are there whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use qdisc::Probe;
use record::NewFile;
use scenario::{Build, Cell, Finished, Network, Scenario};
use sim::Segment;

use super::{Both, Exporter};
use crate::Outcome;
use crate::outputs::{Kind, may_write};

/// The files that the runs of a scenario write: one for the first seed of each discipline.
#[derive(Default)]
pub struct Exports<'a> {
    seed: u64,
    /// Whose packets are written; none where nothing is.
    network: Option<&'a Network>,
    /// In the order of the disciplines.
    files: Vec<Target>,
}

/// A file that one run writes: beside its place, until it is whole. What was not finished is not kept.
pub struct Target {
    place: PathBuf,
    /// Taken by the run that writes it.
    file: Mutex<Option<NewFile>>,
    /// Packets or operations written, or what went wrong.
    outcome: OnceLock<io::Result<u64>>,
}

impl<'a> Exports<'a> {
    /// No files.
    pub fn none() -> Exports<'a> {
        Exports::default()
    }

    /// Makes room for the files, so that a place that takes none is known before anything runs.
    ///
    /// # Errors
    /// A sentence that names the file, or says why there is nothing to write, and what that means for the program.
    pub fn begin(file: &Path, scenario: &'a Scenario, force: bool) -> Result<Exports<'a>, (Outcome, String)> {
        let host = scenario.host.name();
        let network = scenario.network().ok_or_else(|| {
            let sentence = format!(
                "--export writes the packets of a network; the host \"{host}\" has none that others could read"
            );
            (Outcome::Failed, sentence)
        })?;
        let seed = scenario.seeds[0];
        let kinds: Vec<&str> = network.disciplines.iter().map(|spec| spec.name()).collect();
        // Made one by one, so that those that are there are removed when the next cannot be made.
        let mut exports = Exports { seed, network: Some(network), files: Vec::new() };
        let places = places(file, &kinds);
        Target::may_begin(&places, Kind::Capture, force)?;
        for place in places {
            exports.files.push(Target::begin(place)?);
        }
        Ok(exports)
    }

    /// Where this run is to be written, if it is, and the network that it runs on.
    pub fn of(&self, cell: &Cell) -> Option<(&Target, &'a Network)> {
        let target = self.files.get(cell.discipline).filter(|_| cell.seed == self.seed);
        target.zip(self.network)
    }

    /// What became of the files: a sentence each, and whether all is well. Nothing is said of runs that did not end.
    pub fn told(&self) -> (Vec<String>, bool) {
        let told: Vec<_> = self.files.iter().filter_map(|target| target.told("packets")).collect();
        let well = told.iter().all(|(_, well)| *well);
        (told.into_iter().map(|(sentence, _)| sentence).collect(), well)
    }
}

impl Target {
    /// Checks that a file of the kind `kind` may be written at each of `places`: nothing is there, or such a file, or `force` is given.
    ///
    /// # Errors
    /// A sentence that names the first that may not, and what that means for the program.
    pub fn may_begin(places: &[PathBuf], kind: Kind, force: bool) -> Result<(), (Outcome, String)> {
        let look = |place: &PathBuf| may_write(place, kind, force);
        places.iter().try_for_each(look).map_err(|sentence| (Outcome::Wrong, sentence))
    }

    /// A file that is to be written at `place`. Makes it, so that a place that takes none is known before anything runs.
    ///
    /// # Errors
    /// A sentence that names the file, and what that means for the program.
    pub fn begin(place: PathBuf) -> Result<Target, (Outcome, String)> {
        match NewFile::begin(&place) {
            Ok(file) => Ok(Target { place, file: Mutex::new(Some(file)), outcome: OnceLock::new() }),
            Err(error) => Err((Outcome::Failed, format!("cannot write {}: {error}", place.display()))),
        }
    }

    /// What became of the file, and whether that is well; nothing where the run did not end.
    pub fn told(&self, what: &str) -> Option<(String, bool)> {
        self.outcome.get().map(|outcome| match outcome {
            Ok(count) => (format!("{} has {count} {what}", self.place.display()), true),
            Err(error) => (self.sentence(error), false),
        })
    }

    /// The run ended so: with so many packets or operations in a file that was put in its place, or with an error.
    pub fn ended(&self, outcome: io::Result<u64>) {
        let _ = self.outcome.set(outcome);
    }

    /// The file, for the one run that writes it.
    ///
    /// # Errors
    /// When it was taken before.
    pub fn take(&self) -> io::Result<NewFile> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        file.ok_or_else(|| io::Error::other("it was written before"))
    }

    /// Runs a cell and writes what its queues do; `probe` hears what it would hear without. A file that cannot be
    /// written does not stop the run: its other results are as good as ever.
    pub fn run<R: Probe<Segment>>(
        &self,
        network: &Network,
        cell: &Cell,
        build: Build<'_>,
        probe: &mut R,
        go_on: &dyn Fn(f64) -> bool,
    ) -> Option<Finished> {
        let begin = |file: &NewFile| {
            let out = BufWriter::with_capacity(1 << 18, file.file().try_clone()?);
            Exporter::new(out, network, cell)
        };
        let begun = self.take().and_then(|file| Ok((begin(&file)?, file)));
        let finished = match begun {
            Ok((exporter, file)) => {
                let mut both = Both { first: probe, exporter };
                let finished = network.run_built(cell, build, &mut both, go_on)?;
                let kept = both.exporter.finish().and_then(|(mut out, packets)| {
                    out.flush()?;
                    file.keep().map(|()| packets)
                });
                self.ended(kept);
                finished
            }
            Err(error) => {
                self.ended(Err(error));
                network.run_built(cell, build, probe, go_on)?
            }
        };
        Some(finished)
    }

    fn sentence(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}", self.place.display())
    }
}

/// Where each discipline goes: into the file itself if there is one, otherwise into FILE-fifo.pcapng and so on, with a
/// number where a kind comes more than once.
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
    fn every_discipline_has_a_file_of_its_own() {
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
