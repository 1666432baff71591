//! `--trace-port`: the operations of a port's discipline, in a file that `giveway replay-check` replays.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use giveway_disciplines::Spec;
use giveway_qdisc::{Invalid, LinkContext, Qdisc};
use giveway_record::NewFile;
use giveway_replay::{Options, Recording, Tracer, WhenFull};
use giveway_scenario::{Build, Finished, Network, Port, Scenario, Trial};
use giveway_sim::Segment;

use crate::RunnerError;
use crate::export::{Target, places};
use crate::outputs::Kind;
use giveway_trials::Frontend;

/// The text is not a [`PortFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a port and a file, as in \"home->isp=home.trace\"")]
pub struct PortFileError;

/// A port and the file for its operations, as `PORT=FILE` on the command line.
#[derive(Clone, Debug)]
pub struct PortFile {
    port: String,
    file: PathBuf,
}

impl FromStr for PortFile {
    type Err = PortFileError;

    fn from_str(text: &str) -> Result<PortFile, PortFileError> {
        match text.split_once('=') {
            Some((port, file)) if !port.is_empty() && !file.is_empty() => {
                Ok(PortFile { port: port.to_owned(), file: file.into() })
            }
            _ => Err(PortFileError),
        }
    }
}

/// The traces that the trials of a scenario write: one for each named port and each discipline, of the first
/// seed.
#[derive(Default)]
pub struct Traces<'a> {
    seed: u64,
    /// The network of the ports; `None` if nothing is traced.
    network: Option<&'a Network>,
    /// The traces of each discipline.
    runs: Vec<RunTraces>,
}

/// The traces of one trial.
pub struct RunTraces {
    ports: Vec<(String, Target)>,
}

impl<'a> Traces<'a> {
    /// Creates the files, so that a file that cannot be written is reported before anything runs.
    ///
    /// # Errors
    /// When the scenario has no such port, or a file may not or cannot be written.
    pub fn begin(
        asked: &[PortFile],
        scenario: &'a Scenario,
        force: bool,
        frontend: &dyn Frontend,
    ) -> Result<Traces<'a>, RunnerError> {
        if asked.is_empty() {
            return Ok(Traces::default());
        }
        let backend = scenario.backend.name();
        let network = scenario.network().ok_or_else(|| {
            RunnerError::Usage(format!(
                "--trace-port needs the ports of a network, and this scenario has the backend \"{backend}\""
            ))
        })?;
        let kinds: Vec<&str> = network.disciplines.iter().map(|spec| spec.name()).collect();
        let mut runs: Vec<RunTraces> = kinds.iter().map(|_| RunTraces { ports: Vec::new() }).collect();
        for PortFile { port, file } in asked {
            if !network.ports.iter().any(|there| there.name == *port) {
                let names: Vec<String> =
                    network.ports.iter().map(|port| format!("\"{}\"", port.name)).collect();
                return Err(RunnerError::Usage(format!(
                    "--trace-port: unknown port \"{port}\"; the ports are {}",
                    names.join(", ")
                )));
            }
            let places = places(file, &kinds);
            Target::may_begin(&places, Kind::Trace, force, frontend)?;
            for (run, place) in runs.iter_mut().zip(places) {
                run.ports.push((port.clone(), Target::begin(place)?));
            }
        }
        Ok(Traces { seed: scenario.seeds[0], network: Some(network), runs })
    }

    /// The traces that this trial writes, and its network; `None` if it writes none.
    pub fn of(&self, trial: &Trial) -> Option<(&RunTraces, &'a Network)> {
        let run = self.runs.get(trial.discipline).filter(|_| trial.seed == self.seed);
        run.zip(self.network)
    }

    /// A sentence on each file, with true if the file is complete. Files of runs that did not end are left
    /// out.
    pub fn ended(&self) -> Vec<(String, bool)> {
        let targets = self.runs.iter().flat_map(|run| &run.ports);
        targets.filter_map(|(_, target)| target.report("operations")).collect()
    }
}

impl RunTraces {
    /// Runs a trial with traced disciplines. The run continues if a file cannot be written.
    pub fn run(&self, run: &mut dyn FnMut(Build<'_>) -> Option<Finished>) -> Option<Finished> {
        // A simulation can wait for the disk, so the trace is complete. The slots of a port take five
        // megabytes.
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
        let build =
            |port: &Port, spec: &Spec, context: &LinkContext| -> Result<Box<dyn Qdisc<Segment>>, Invalid> {
                match tracer(&port.name) {
                    Some(tracer) => Ok(Box::new(tracer.build(&port.name, spec, context)?)),
                    None => giveway_scenario::discipline(spec, context),
                }
            };
        let finished = run(&build)?;
        for (_, target, recording) in begun {
            target.set_outcome(recording.and_then(|(file, recording)| {
                let written = recording.finish()?;
                file.keep()?;
                Ok(written.operations)
            }));
        }
        Some(finished)
    }
}
