//! `giveway run --trace-port`: the operations of a port's discipline, in a file that `giveway replay-check` runs again.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use disciplines::Spec;
use qdisc::{Invalid, Qdisc, Site};
use record::NewFile;
use replay::{Options, Recording, Tracer, WhenFull};
use scenario::{Build, Cell, Finished, Network, Port, Scenario};
use sim::Segment;

use crate::Outcome;
use crate::export::{Target, places};
use crate::outputs::Kind;

/// `PORT=FILE`.
#[derive(Clone, Debug)]
pub struct PortFile {
    port: String,
    file: PathBuf,
}

impl FromStr for PortFile {
    type Err = String;

    fn from_str(text: &str) -> Result<PortFile, String> {
        match text.split_once('=') {
            Some((port, file)) if !port.is_empty() && !file.is_empty() => {
                Ok(PortFile { port: port.to_owned(), file: file.into() })
            }
            _ => Err("write a port and a file, as in \"home->isp=home.trace\"".to_owned()),
        }
    }
}

/// The traces that the runs of a scenario write: one for each port that was asked for and each discipline, of its first seed.
#[derive(Default)]
pub struct Traces<'a> {
    seed: u64,
    /// Whose ports they are; none where nothing is traced.
    network: Option<&'a Network>,
    /// By discipline.
    runs: Vec<RunTraces>,
}

/// Those of one run.
pub struct RunTraces {
    ports: Vec<(String, Target)>,
}

impl<'a> Traces<'a> {
    /// Makes room for the files, so that a place that takes none is known before anything runs.
    ///
    /// # Errors
    /// A sentence that names the port or the file, and what that means for the program.
    pub fn begin(
        asked: &[PortFile],
        scenario: &'a Scenario,
        force: bool,
    ) -> Result<Traces<'a>, (Outcome, String)> {
        if asked.is_empty() {
            return Ok(Traces::default());
        }
        let host = scenario.host.name();
        let network = scenario.network().ok_or_else(|| {
            let sentence =
                format!("--trace-port is for the ports of a network; the host \"{host}\" has none");
            (Outcome::Wrong, sentence)
        })?;
        let kinds: Vec<&str> = network.disciplines.iter().map(|spec| spec.name()).collect();
        let mut runs: Vec<RunTraces> = kinds.iter().map(|_| RunTraces { ports: Vec::new() }).collect();
        for PortFile { port, file } in asked {
            if !network.ports.iter().any(|there| there.name == *port) {
                let names: Vec<String> =
                    network.ports.iter().map(|port| format!("\"{}\"", port.name)).collect();
                let sentence =
                    format!("--trace-port: no port is called \"{port}\"; there are {}", names.join(", "));
                return Err((Outcome::Wrong, sentence));
            }
            let places = places(file, &kinds);
            Target::may_begin(&places, Kind::Trace, force)?;
            for (run, place) in runs.iter_mut().zip(places) {
                run.ports.push((port.clone(), Target::begin(place)?));
            }
        }
        Ok(Traces { seed: scenario.seeds[0], network: Some(network), runs })
    }

    /// What of this run is traced, if anything is, and the network that it runs on.
    pub fn of(&self, cell: &Cell) -> Option<(&RunTraces, &'a Network)> {
        let run = self.runs.get(cell.discipline).filter(|_| cell.seed == self.seed);
        run.zip(self.network)
    }

    /// What became of the files: a sentence each, and whether that is well.
    pub fn told(&self) -> Vec<(String, bool)> {
        let targets = self.runs.iter().flat_map(|run| &run.ports);
        targets.filter_map(|(_, target)| target.told("operations")).collect()
    }
}

impl RunTraces {
    /// Does a run with disciplines that are traced. A file that cannot be written does not stop it.
    pub fn run(&self, run: &mut dyn FnMut(Build<'_>) -> Option<Finished>) -> Option<Finished> {
        /// A simulation has no clock that it could be late by: what is asked for is there whole. Five megabytes for each port.
        const OPTIONS: Options = Options { slots: 1 << 16, when_full: WhenFull::Wait };
        let program = concat!("giveway ", env!("CARGO_PKG_VERSION"));
        let begin = |target: &Target| -> io::Result<(NewFile, Recording)> {
            let file = target.take()?;
            let recording = Recording::start(file.file().try_clone()?, program, OPTIONS)?;
            Ok((file, recording))
        };
        let begun: Vec<_> = self.ports.iter().map(|(port, target)| (port, target, begin(target))).collect();
        let tracer = |name: &str| -> Option<Tracer> {
            let (.., recording) = begun.iter().find(|(port, ..)| *port == name)?;
            recording.as_ref().ok().map(|(_, recording)| recording.tracer())
        };
        let build = |port: &Port, spec: &Spec, site: &Site| -> Result<Box<dyn Qdisc<Segment>>, Invalid> {
            match tracer(&port.name) {
                Some(tracer) => Ok(Box::new(tracer.build(&port.name, spec, site)?)),
                None => spec.build(site),
            }
        };
        let finished = run(&build)?;
        for (_, target, recording) in begun {
            target.ended(recording.and_then(|(file, recording)| {
                let written = recording.finish()?;
                file.keep()?;
                Ok(written.operations)
            }));
        }
        Some(finished)
    }
}
