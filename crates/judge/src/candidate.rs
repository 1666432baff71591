//! Candidates: disciplines that can run behind an observer and a hidden change.

use std::cell::RefCell;
use std::path::Path;

use giveway_evaluate::EvaluateError;
use giveway_files::input;
use giveway_measure::Record;
use giveway_observe::observe_network;
use giveway_qdisc::{LinkContext, Qdisc};
use giveway_record::Digest;
use giveway_scenario::{Backend, Build, Queue, Scenario, Trial, discipline};
use giveway_sim::Segment;
use giveway_wasm::{Failure, Limits, Mistake, Module};

use crate::perturbation::{Perturbation, Perturbed};
use crate::rejected::{Code, Rejected};
use crate::watch::{Notes, Seen, Watched};

/// The result of a run of a candidate.
pub struct Ran {
    /// The record.
    pub record: Record,
    /// The observations at each judged link.
    pub seen: Vec<Seen>,
    /// The fuel that all calls used, and the packets that arrived; zeros for a candidate without fuel.
    pub fuel: (u64, u64),
}

/// The reason for a run without a result.
pub enum Failed {
    /// The caller stopped it.
    Stopped,
    /// The candidate made a mistake.
    Rejected(Rejected),
    /// The scenario cannot run.
    Other(EvaluateError),
}

/// A discipline that is judged.
pub trait Candidate: Sync {
    /// Its name in results.
    fn name(&self) -> &str;

    /// The specification that stands for it in a scenario.
    fn stands_for(&self) -> &str;

    /// The facts that decide its runs, besides the scenario and the seed. Two candidates with the same ones
    /// have equal runs.
    fn identity(&self) -> Vec<u8> {
        self.name().into()
    }

    /// Runs a scenario with a seed. Every judged link runs the candidate behind an observer, and behind the
    /// hidden change if there is one: see [`Around`].
    ///
    /// # Errors
    /// If the caller stopped the run, or the candidate made a mistake.
    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        perturbation: Option<&Perturbation>,
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Result<Ran, Failed>;
}

/// An observer and a hidden change, in which a candidate is wrapped.
pub struct Around {
    perturbation: Option<Perturbation>,
    notes: Notes,
}

impl Around {
    /// An observer, and a hidden change if there is one.
    pub fn new(perturbation: Option<&Perturbation>) -> Around {
        Around { perturbation: perturbation.cloned(), notes: Notes::default() }
    }

    /// The candidate at a link. `build` makes it for the link as it sees it.
    ///
    /// # Errors
    /// If `build` fails.
    pub fn wrap<E>(
        &self,
        context: &LinkContext,
        build: impl FnOnce(&LinkContext) -> Result<Box<dyn Qdisc<Segment>>, E>,
    ) -> Result<Box<dyn Qdisc<Segment>>, E> {
        Ok(match &self.perturbation {
            None => Box::new(Watched::new(build(context)?, &self.notes)),
            Some(perturbation) => {
                let inner = build(&perturbation.context(context))?;
                let inner = Perturbed::new(inner, context.rate, perturbation.clone());
                Box::new(Watched::new(inner, &self.notes))
            }
        })
    }

    /// The observations, once the run has ended.
    pub fn seen(&self) -> Vec<Seen> {
        self.notes.take()
    }
}

/// Runs a scenario in which `build` makes the discipline of every judged link, behind an observer and the
/// hidden change. Returns the record, and the observations at each judged link; `None` if `keep_running`
/// stops it.
pub fn run_built(
    scenario: &Scenario,
    seed: u64,
    perturbation: Option<&Perturbation>,
    build: Build<'_>,
    keep_running: &dyn Fn(f64) -> bool,
) -> Option<(Record, Vec<Seen>)> {
    let Backend::Network(network) = &scenario.backend else { return None };
    let around = Around::new(perturbation);
    let trial = Trial { discipline: 0, name: String::new(), seed };
    let observed = observe_network(network, false, |recorder| {
        let built: Build<'_> = &|port, spec, context| match port.queue {
            Queue::Compare => around.wrap(context, |context| build(port, spec, context)),
            _ => discipline(spec, context),
        };
        giveway_observe::run_built(network, &trial, built, recorder, keep_running)
    });
    observed.map(|(record, _)| (record, around.seen()))
}

/// A discipline of this program, with its parameters.
pub struct BuiltIn {
    spec: String,
}

impl BuiltIn {
    /// The discipline of a specification.
    pub fn new(spec: &str) -> BuiltIn {
        BuiltIn { spec: spec.to_owned() }
    }
}

impl Candidate for BuiltIn {
    fn name(&self) -> &str {
        &self.spec
    }

    fn stands_for(&self) -> &str {
        &self.spec
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        perturbation: Option<&Perturbation>,
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Result<Ran, Failed> {
        let build: Build<'_> = &|_, spec, context| discipline(spec, context);
        let (record, seen) =
            run_built(scenario, seed, perturbation, build, keep_running).ok_or(Failed::Stopped)?;
        Ok(Ran { record, seen, fuel: (0, 0) })
    }
}

/// A program in WebAssembly.
pub struct Program {
    name: String,
    module: Module,
    /// The digest of the module, and its limits.
    identity: String,
}

impl Program {
    /// The program of a module, of which `bytes` are the file.
    pub fn new(name: &str, module: Module, bytes: &[u8]) -> Program {
        let identity = format!("{} {module:?}", Digest::of_bytes(bytes).sha256);
        Program { name: name.to_owned(), module, identity }
    }
}

impl Candidate for Program {
    fn name(&self) -> &str {
        &self.name
    }

    fn stands_for(&self) -> &str {
        STAND_IN
    }

    fn identity(&self) -> Vec<u8> {
        self.identity.clone().into()
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        perturbation: Option<&Perturbation>,
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Result<Ran, Failed> {
        let failure = Failure::default();
        let broken = RefCell::new(None);
        let build: Build<'_> = &|_, spec, context| {
            match giveway_wasm::Queue::<Segment>::new(&self.module, context, &failure) {
                Ok(queue) => Ok(Box::new(queue) as Box<dyn Qdisc<Segment>>),
                Err(error) => {
                    // The run ends before its first event.
                    *broken.borrow_mut() = Some(Rejected::new(Code::Module, error.to_string()));
                    discipline(spec, context)
                }
            }
        };
        let watched = |done: f64| !failure.is_set() && broken.borrow().is_none() && keep_running(done);
        let ran = run_built(scenario, seed, perturbation, build, &watched);
        if let Some(rejected) = broken.take() {
            return Err(Failed::Rejected(rejected));
        }
        if let Some(mistake) = failure.mistake() {
            let code = match &mistake {
                Mistake::Fuel { .. } => Code::Fuel,
                Mistake::Memory { .. } => Code::Memory,
                Mistake::Trapped { .. } => Code::Crash,
                Mistake::Broken { .. } => Code::Contract,
            };
            return Err(Failed::Rejected(Rejected::new(code, mistake.to_string())));
        }
        let (record, seen) = ran.ok_or(Failed::Stopped)?;
        Ok(Ran { record, seen, fuel: failure.fuel() })
    }
}

/// The specification that stands for a program in a scenario.
pub const STAND_IN: &str = "fifo";

/// The ending of the name of a module.
const MODULE: &str = ".wasm";

/// The candidate of a name: the module of a file `NAME.wasm`, or a discipline of this program. The inner
/// error is the reason for which the module is rejected before it runs.
///
/// # Errors
/// If the file cannot be read.
pub fn named(name: &str, limits: Limits) -> std::io::Result<Result<Box<dyn Candidate + Send>, Rejected>> {
    if !name.ends_with(MODULE) {
        return Ok(Ok(Box::new(BuiltIn::new(name))));
    }
    let bytes = input::read(Path::new(name))?;
    Ok(match Module::read(&bytes, limits) {
        Ok(module) => Ok(Box::new(Program::new(name, module, &bytes))),
        Err(error) => Err(Rejected::new(Code::Module, error.to_string())),
    })
}
