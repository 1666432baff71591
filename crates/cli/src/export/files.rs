//! The files of an export: which run writes which, and that they are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use qdisc::Probe;
use scenario::{Cell, Finished, Network, Scenario};
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
    /// Packets written, or what went wrong.
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
            let target = Target { place, outcome: OnceLock::new() };
            target.make().map_err(|error| target.sentence(&error))?;
            exports.files.push(target);
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
        let mut well = true;
        let mut sentences = Vec::new();
        for target in &self.files {
            match target.outcome.get() {
                Some(Ok(packets)) => {
                    sentences.push(format!("{} has {packets} packets", target.place.display()));
                }
                Some(Err(error)) => {
                    well = false;
                    sentences.push(target.sentence(error));
                }
                None => {}
            }
        }
        (sentences, well)
    }
}

/// What was not finished is not kept.
impl Drop for Exports<'_> {
    fn drop(&mut self) {
        for target in &self.files {
            if !matches!(target.outcome.get(), Some(Ok(_))) {
                // It may be gone already.
                let _ = fs::remove_file(target.beside());
            }
        }
    }
}

impl Target {
    /// Makes the file beside its place. A device or a folder is not replaced.
    fn make(&self) -> io::Result<File> {
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
        probe: &mut R,
        go_on: &dyn Fn(f64) -> bool,
    ) -> Option<Finished> {
        let out = self.make().map(|file| BufWriter::with_capacity(1 << 18, file));
        let finished = match out.and_then(|out| Exporter::new(out, network, cell)) {
            Ok(exporter) => {
                let mut both = Both { first: probe, exporter };
                let finished = network.run(cell, &mut both, go_on)?;
                let _ = self.outcome.set(both.exporter.finish().and_then(|written| self.keep(written)));
                finished
            }
            Err(error) => {
                let _ = self.outcome.set(Err(error));
                network.run(cell, probe, go_on)?
            }
        };
        Some(finished)
    }

    /// Puts the finished file in its place.
    fn keep(&self, (out, packets): (BufWriter<File>, u64)) -> io::Result<u64> {
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(self.beside(), &self.place)?;
        Ok(packets)
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
fn places(file: &Path, kinds: &[&str]) -> Vec<PathBuf> {
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
