//! The files of an export: which run writes which, and that they are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use qdisc::Probe;
use scenario::{Build, Cell, Finished, Network, Scenario};
use sim::Segment;

use super::{Both, Exporter};

/// The files that the runs of a scenario write: one for the first seed of each discipline.
#[derive(Default)]
pub struct Exports<'a> {
    seed: u64,
    /// Whose packets are written; none where nothing is.
    network: Option<&'a Network>,
    /// In the order of the disciplines.
    files: Vec<Target>,
}

/// A file that one run writes: beside its place, until it is whole.
pub struct Target {
    place: PathBuf,
    /// Packets or operations written, or what went wrong.
    outcome: OnceLock<io::Result<u64>>,
}

/// What was not finished is not kept.
impl Drop for Target {
    fn drop(&mut self) {
        if !matches!(self.outcome.get(), Some(Ok(_))) {
            // It may be gone already.
            let _ = fs::remove_file(self.beside());
        }
    }
}

impl<'a> Exports<'a> {
    /// No files.
    pub fn none() -> Exports<'a> {
        Exports::default()
    }

    /// Makes room for the files, so that a place that takes none is known before anything runs.
    ///
    /// # Errors
    /// A sentence that names the file, or says why there is nothing to write.
    pub fn begin(file: &Path, scenario: &'a Scenario) -> Result<Exports<'a>, String> {
        let host = scenario.host.name();
        let network = scenario.network().ok_or_else(|| {
            format!("--export writes the packets of a network; the host \"{host}\" has none that others could read")
        })?;
        let seed = scenario.seeds[0];
        let kinds: Vec<&str> = network.disciplines.iter().map(|spec| spec.name()).collect();
        // Made one by one, so that those that are there are removed when the next cannot be made.
        let mut exports = Exports { seed, network: Some(network), files: Vec::new() };
        for place in places(file, &kinds) {
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
    /// A file that is to be written at `place`. Makes it once, so that a place that takes none is known before anything runs.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn begin(place: PathBuf) -> Result<Target, String> {
        let target = Target { place, outcome: OnceLock::new() };
        match target.make() {
            Ok(_) => Ok(target),
            Err(error) => Err(target.sentence(&error)),
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

    /// Makes the file beside its place. A device or a folder is not replaced.
    pub fn make(&self) -> io::Result<File> {
        if fs::metadata(&self.place).is_ok_and(|there| !there.is_file()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "what is there is not a file"));
        }
        File::create(self.beside())
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
        let out = self.make().map(|file| BufWriter::with_capacity(1 << 18, file));
        let finished = match out.and_then(|out| Exporter::new(out, network, cell)) {
            Ok(exporter) => {
                let mut both = Both { first: probe, exporter };
                let finished = network.run_built(cell, build, &mut both, go_on)?;
                let kept = both.exporter.finish().and_then(|(out, packets)| {
                    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
                    self.keep(&file).map(|()| packets)
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

    /// Puts the finished file in its place.
    ///
    /// # Errors
    /// What the system says.
    pub fn keep(&self, file: &File) -> io::Result<()> {
        file.sync_all()?;
        fs::rename(self.beside(), &self.place)
    }

    /// A hidden name in the same folder.
    fn beside(&self) -> PathBuf {
        let name = self.place.file_name().unwrap_or_default().to_string_lossy();
        self.place.with_file_name(format!(".{name}.tmp"))
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
