//! The runs of a search: one arbiter of the switch at a load.

use giveway_qdisc::units::nearest;
use giveway_scenario::{Crossbar, Scenario, Trial};
use giveway_switch::traffic::TrafficSpec;
use giveway_switch::{Outcome as Ran, Sim, Spec};
use giveway_trials::{Ended, Frontend, Runs, Turn, Unit};

use crate::RunnerError;

/// The question of a search.
#[derive(Clone, Copy, Debug)]
pub enum Question<'a> {
    /// The largest stable load of each arbiter of the scenario.
    Capacity,
    /// The load at which two arbiters are equal in a metric.
    Crossover {
        /// The arbiters, as a scenario names them; they need not be in the scenario.
        pair: &'a [String; 2],
        /// The name of the metric.
        metric: &'a str,
    },
}

/// The reason why a search has no result.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The user stopped the search.
    #[error("the search was interrupted")]
    Interrupted,
    /// The traffic of the switch has no load.
    #[error(transparent)]
    Load(#[from] Box<RunnerError>),
    /// A run failed.
    #[error("{arbiter} at {load} with seed {seed} failed: {reason}")]
    Failed {
        /// The spec of the arbiter.
        arbiter: String,
        /// The load of the run.
        load: f64,
        /// The seed of the run.
        seed: u64,
        /// The message of the panic.
        reason: String,
    },
    /// A run has no value of the metric.
    #[error("{arbiter} with seed {seed} at a load of {load}: {metric} could not be measured")]
    NotMeasured {
        /// The spec of the arbiter.
        arbiter: String,
        /// The load of the run.
        load: f64,
        /// The seed of the run.
        seed: u64,
        /// The name of the metric.
        metric: String,
    },
}

/// A search on one switch.
pub struct Search<'a> {
    frontend: &'a dyn Frontend,
    /// The number of threads.
    pub(super) jobs: usize,
    pub(super) question: Question<'a>,
    /// The switch, with the arbiters in question.
    pub(super) crossbar: Crossbar,
    pub(super) seeds: Vec<u64>,
    /// The first interval of loads.
    pub(super) between: (f64, f64),
    /// The width of the last interval.
    pub(super) width: f64,
    progress: Runs<'a>,
}

impl<'a> Search<'a> {
    /// A search that halves the interval `between` until it is as narrow as `width`. `name` is shown at the
    /// progress bar; `jobs` is the number of threads.
    ///
    /// # Errors
    /// [`RunnerError::Usage`] if the scenario has no parameter to search.
    pub fn new(
        name: &str,
        scenario: &Scenario,
        question: Question<'a>,
        between: (f64, f64),
        width: f64,
        (jobs, frontend): (usize, &'a dyn Frontend),
    ) -> Result<Search<'a>, RunnerError> {
        let crossbar = crossbar(scenario, question, between)?;
        let (low, high) = between;
        // Both ends, and one load for each halving of the interval.
        let questions = 2 + ((high - low) / width).log2().ceil().max(0.0) as usize;
        let rows = match question {
            Question::Capacity => crossbar.arbiters.len(),
            Question::Crossover { .. } => 1,
        };
        let progress = Runs::new(frontend, name, rows * questions, Unit::Runs, jobs);
        Ok(Search {
            frontend,
            jobs,
            question,
            crossbar,
            seeds: scenario.seeds.clone(),
            between,
            width,
            progress,
        })
    }

    /// Runs tasks on `jobs` threads, and returns their results in order. The progress bar counts points of
    /// the search, each of which has several runs.
    ///
    /// # Errors
    /// The error of the first task that has one.
    pub(super) fn all<R: Send>(
        &self,
        count: usize,
        jobs: usize,
        task: impl Fn(usize, &Turn<'_>) -> Result<R, SearchError> + Sync,
    ) -> Result<Vec<R>, SearchError> {
        Runs::hidden(self.frontend, jobs).all(count, task)
    }

    /// Moves the progress bar on by a point.
    pub(super) fn tried(&self) {
        self.progress.turn().skip();
    }

    /// Runs the switch `times` as long as in the scenario.
    ///
    /// # Errors
    /// When the user stopped it, or the run failed.
    pub(super) fn run(
        &self,
        turn: &Turn<'_>,
        arbiter: usize,
        load: f64,
        seed: u64,
        times: u64,
    ) -> Result<Ran, SearchError> {
        let mut crossbar = at_load(&self.crossbar, load).map_err(Box::new)?;
        crossbar.slots *= times;
        crossbar.warmup *= times;
        let trial = trial(&crossbar, arbiter, seed);
        match turn.trial(|keep_running| crossbar.run(&trial, keep_running)) {
            Ended::Finished(ran) => Ok(ran),
            Ended::Stopped => Err(SearchError::Interrupted),
            Ended::Failed(reason) => Err(SearchError::Failed { arbiter: trial.name, load, seed, reason }),
        }
    }
}

/// The switch with the arbiters of the question.
///
/// # Errors
/// [`RunnerError::Usage`] if the scenario, an arbiter, the metric or an end of the interval is not valid.
fn crossbar(
    scenario: &Scenario,
    question: Question<'_>,
    between: (f64, f64),
) -> Result<Crossbar, RunnerError> {
    let giveway_scenario::Backend::Switch(crossbar) = &scenario.backend else {
        let message = "giveway plan capacity needs a switch, and this scenario runs on a network";
        return Err(RunnerError::Usage(message.to_owned()));
    };
    let mut crossbar = crossbar.clone();
    if let Question::Crossover { pair, .. } = question {
        let arbiter = |text: &String| -> Result<Spec, RunnerError> {
            let spec: Spec =
                text.parse().map_err(|error| RunnerError::Usage(format!("--crossover: {error}")))?;
            spec.check(crossbar.ports)
                .map_err(|invalid| RunnerError::Usage(format!("--crossover: {text}: {invalid}")))?;
            Ok(spec)
        };
        crossbar.arbiters = pair.iter().map(arbiter).collect::<Result<_, _>>()?;
    }
    for load in [between.0, between.1] {
        let plan = at_load(&crossbar, load)?.plan(&trial(&crossbar, 0, 0));
        let sim = Sim::new(&plan)
            .map_err(|invalid| RunnerError::Usage(format!("--between: at a load of {load}: {invalid}")))?;
        let Question::Crossover { metric, .. } = question else { continue };
        // The outcome of a run that has not started has the names of all metrics.
        let names: Vec<String> = sim.outcome().numbers().into_iter().map(|(name, _)| name).collect();
        if !names.iter().any(|name| name == metric) {
            let near = nearest(metric, names.iter().map(String::as_str));
            let help = near.map_or("giveway run --json shows all".to_owned(), |near| {
                format!("did you mean \"{near}\"?")
            });
            return Err(RunnerError::Usage(format!(
                "--metric: a switch does not measure \"{metric}\"; {help}"
            )));
        }
    }
    Ok(crossbar)
}

/// Returns a copy of the switch whose traffic offers the load `load`.
fn at_load(crossbar: &Crossbar, load: f64) -> Result<Crossbar, RunnerError> {
    let mut crossbar = crossbar.clone();
    match &mut crossbar.traffic {
        TrafficSpec::bernoulli(config) => config.load = load,
        TrafficSpec::onoff(config) => config.load = load,
        other => {
            let name = other.name();
            return Err(RunnerError::Usage(format!(
                "the traffic \"{name}\" has no load to search; write kind = \"onoff\" or \"bernoulli\""
            )));
        }
    }
    Ok(crossbar)
}

/// The trial of one of the arbiters with this seed.
fn trial(crossbar: &Crossbar, arbiter: usize, seed: u64) -> Trial {
    Trial { discipline: arbiter, name: crossbar.arbiters[arbiter].to_string(), seed }
}
