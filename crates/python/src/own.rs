//! Disciplines and sources of traffic that are written in Python.
//!
//! A discipline is an object with `enqueue(packet, cx)` and `dequeue(cx)`, under the contract of
//! [`Qdisc`](giveway_qdisc::Qdisc); or a function from a packet to its rank. They run in the calling thread.
//!
//! The packets themselves stay here ([`held`]). Python gets a [`packet::Packet`] for each, with its metadata,
//! and hands it back to send it. So a discipline in Python cannot copy or invent packets, and a mistake is an
//! error that names the packet: one that is sent twice, is sent after it was dropped, or is forgotten. A
//! packet is forgotten if its object is freed before the packet was sent or dropped.

pub mod arbiter;
pub mod context;
pub mod failure;
mod held;
pub mod packet;
mod patience;
mod ranked;
pub mod traffic;
mod written;

use std::cell::Cell;
use std::rc::Rc;

use giveway_disciplines::Spec;
use giveway_judge::Around;
use giveway_measure::Record;
use giveway_observe::{observe_network, recorded_switch};
use giveway_qdisc::{Invalid, Limit, LinkContext, Qdisc};
use giveway_scenario::{Backend, Crossbar, Network, Port, Queue, Scenario, Trial};
use giveway_sim::Segment;
use giveway_switch::Outside;
use giveway_switch::arbiter::ArbiterContext;
use giveway_switch::packet::Class;
use giveway_trials::Frontend;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::failure::Failure;
use self::traffic::OwnTraffic;
use crate::errors;

/// A discipline in Python, as the package describes it.
#[derive(FromPyObject)]
pub struct Own {
    /// The name in results.
    pub name: String,
    /// Its place among all compared disciplines.
    pub place: usize,
    /// A function from the description of a link to a new discipline; or from a packet to its rank.
    pub make: Py<PyAny>,
    /// The limit of a queue by ranks, in the words of `tc`; `None` for an object with methods.
    pub limit: Option<String>,
    /// The text of its source.
    pub source: String,
}

/// A source text as comments of TOML.
pub fn commented(source: &str) -> String {
    source.lines().map(|line| format!("# | {line}\n")).collect()
}

/// A discipline in Python for a link.
///
/// # Errors
/// The exception of its constructor; or its limit is wrong, or it lacks a method.
pub fn new(
    py: Python<'_>,
    own: &Own,
    port: &str,
    context: &LinkContext,
    failure: &Failure,
) -> PyResult<Box<dyn Qdisc<Segment>>> {
    let at = failure.of(&own.name, port);
    if let Some(limit) = &own.limit {
        let wrong = |error| errors::failed(py, &format!("the limit of {}: {error}", own.name));
        let limit: Limit = limit.parse().map_err(wrong)?;
        return Ok(Box::new(ranked::Ranked::new(own.make.clone_ref(py), limit, at)));
    }
    let link = PyDict::new(py);
    link.set_item("name", port)?;
    link.set_item("rate", context.rate.as_bit())?;
    link.set_item("mtu", context.mtu.0)?;
    link.set_item("seed", context.streams.rng().word())?;
    let object = own.make.bind(py).call1((link,))?;
    Ok(Box::new(written::Written::new(&object, at)?))
}

/// The parts of a trial that are written in Python.
#[derive(Clone, Copy, Default)]
pub struct Guests<'a> {
    /// The compared discipline; `None` for one of the scenario.
    pub discipline: Option<&'a Own>,
    /// Sources of traffic.
    pub traffic: &'a [OwnTraffic],
}

/// A scenario, all of whose trials run, and the discipline in Python that stands for its compared one.
pub type Contender<'a> = (&'a Scenario, Option<&'a Own>);

/// The trials of a contender.
pub fn trials((scenario, one): Contender<'_>) -> impl Iterator<Item = Trial> {
    let named = move |trial: Trial| match one {
        Some(one) => Trial { name: one.name.clone(), ..trial },
        None => trial,
    };
    scenario.trials().into_iter().map(named)
}

/// Runs all trials of the contenders, and adds the records. Returns the exception of an interruption; the
/// runs until then are kept.
///
/// # Errors
/// When the scenario is for a test bed, or what is written in Python fails or breaks the contract.
pub fn run_all(
    py: Python<'_>,
    contenders: &[Contender<'_>],
    traffic: &[OwnTraffic],
    progress: Option<&Py<PyAny>>,
    runs: &mut Vec<(giveway_measure::Trial, Record)>,
) -> PyResult<Option<PyErr>> {
    let all: usize = contenders.iter().map(|contender| trials(*contender).count()).sum();
    let mut finished = 0_u32;
    for contender in contenders {
        let guests = Guests { discipline: contender.1, traffic };
        for trial in trials(*contender) {
            let share = |done: f64| (f64::from(finished) + done) / all as f64;
            let keep_running = |done: f64| {
                py.check_signals()?;
                progress.map_or(Ok(()), |progress| progress.call1(py, (share(done),)).map(drop))
            };
            match run_trial(py, contender.0, guests, &trial, &keep_running)? {
                Ok(record) => {
                    runs.push((giveway_measure::Trial { qdisc: trial.name, seed: trial.seed }, record));
                }
                Err(interruption) => return Ok(Some(interruption)),
            }
            finished += 1;
        }
    }
    Ok(None)
}

/// Runs a trial with samples over time. The inner error is an interruption by `keep_running`.
///
/// # Errors
/// As [`run_all`].
pub fn run_trial(
    py: Python<'_>,
    scenario: &Scenario,
    guests: Guests<'_>,
    trial: &Trial,
    keep_running: &dyn Fn(f64) -> PyResult<()>,
) -> PyResult<Result<Record, PyErr>> {
    match (&scenario.backend, guests.discipline) {
        (Backend::Network(network), _) => run_one(py, network, guests, trial, keep_running, Way::WITH_SERIES),
        (Backend::Switch(crossbar), Some(one)) if guests.traffic.is_empty() => {
            run_switch(py, crossbar, one, trial, keep_running)
        }
        (Backend::Switch(_), _) => {
            Err(errors::failed(py, "a source in Python sends on a network, not at a switch"))
        }
        (Backend::Live(_), _) => {
            let message =
                "what is written in Python runs in the simulator, and this scenario is for a test bed";
            Err(errors::failed(py, message))
        }
    }
}

/// Runs one trial of a scenario on a network without samples over time. `frontend` or a signal may stop it.
///
/// # Errors
/// When the discipline fails or breaks the contract, or the front end stopped the run.
pub fn run_with(
    py: Python<'_>,
    scenario: &Scenario,
    one: &Own,
    trial: &Trial,
    frontend: &dyn Frontend,
) -> PyResult<Record> {
    run_here(py, scenario, one, trial, frontend, Way::default())
}

/// Like [`run_with`], with the discipline in what `around` wraps it.
///
/// # Errors
/// As [`run_with`].
pub fn run_around(
    py: Python<'_>,
    scenario: &Scenario,
    one: &Own,
    trial: &Trial,
    frontend: &dyn Frontend,
    around: &Around,
) -> PyResult<Record> {
    run_here(py, scenario, one, trial, frontend, Way { keep_series: false, around: Some(around) })
}

fn run_here(
    py: Python<'_>,
    scenario: &Scenario,
    one: &Own,
    trial: &Trial,
    frontend: &dyn Frontend,
    way: Way<'_>,
) -> PyResult<Record> {
    let Backend::Network(network) = &scenario.backend else {
        return Err(errors::failed(py, "a discipline in Python runs on a network here"));
    };
    let keep_running = |_: f64| match frontend.stopped() {
        true => Err(PyKeyboardInterrupt::new_err(())),
        false => py.check_signals(),
    };
    let guests = Guests { discipline: Some(one), traffic: &[] };
    run_one(py, network, guests, trial, &keep_running, way)?
}

/// The way in which a trial runs.
#[derive(Clone, Copy, Default)]
struct Way<'a> {
    /// True for samples over time.
    keep_series: bool,
    /// The observer and the hidden change, in which the discipline is wrapped.
    around: Option<&'a Around>,
}

impl Way<'_> {
    const WITH_SERIES: Way<'static> = Way { keep_series: true, around: None };
}

/// Runs one trial. The inner error is an interruption by `keep_running`.
fn run_one(
    py: Python<'_>,
    network: &Network,
    guests: Guests<'_>,
    trial: &Trial,
    keep_running: &dyn Fn(f64) -> PyResult<()>,
    way: Way<'_>,
) -> PyResult<Result<Record, PyErr>> {
    let failure = Failure::default();
    let interruption: Rc<Cell<Option<PyErr>>> = Rc::default();
    let build =
        |port: &Port, spec: &Spec, context: &LinkContext| -> Result<Box<dyn Qdisc<Segment>>, Invalid> {
            let compared = port.queue == Queue::Compare && !failure.is_set();
            if let Some(one) = guests.discipline.filter(|_| compared) {
                let make = |context: &LinkContext| new(py, one, &port.name, context, &failure);
                let made = match way.around {
                    Some(around) => around.wrap(context, make),
                    None => make(context),
                };
                match made {
                    Ok(qdisc) => return Ok(qdisc),
                    // The run ends before its first event.
                    Err(error) => failure.set(error),
                }
            }
            giveway_scenario::discipline(spec, context)
        };
    let watched = |done: f64| {
        if failure.is_set() {
            return false;
        }
        match keep_running(done) {
            Ok(()) => true,
            Err(error) => {
                interruption.set(Some(error));
                false
            }
        }
    };
    let mut plan = network.plan_built(trial, &build);
    if !failure.is_set()
        && let Err(error) = traffic::replace(py, (network, &mut plan), guests.traffic, trial, &failure)
    {
        failure.set(error);
    }
    let observed = observe_network(network, way.keep_series, |recorder| {
        giveway_observe::run_plan(network, plan, recorder, &watched)
    });
    let interrupted = failure.is_interruption(py);
    match failure.take() {
        Some(error) if interrupted => return Ok(Err(error)),
        Some(error) => return Err(error),
        None => {}
    }
    if let Some(error) = interruption.take() {
        return Ok(Err(error));
    }
    let (record, _) = observed.expect("a run that was not stopped has a result");
    Ok(Ok(record))
}

/// Runs one trial of a switch with an arbiter in Python. The inner error is an interruption.
fn run_switch(
    py: Python<'_>,
    crossbar: &Crossbar,
    one: &Own,
    trial: &Trial,
    keep_running: &dyn Fn(f64) -> PyResult<()>,
) -> PyResult<Result<Record, PyErr>> {
    let raised = arbiter::Raised::default();
    let interruption: Rc<Cell<Option<PyErr>>> = Rc::default();
    let build = |context: &ArbiterContext, _: Class| -> Box<dyn Outside> {
        let make = || {
            let switch = PyDict::new(py);
            switch.set_item("ports", context.ports)?;
            switch.set_item("seed", context.streams.rng().word())?;
            one.make.call1(py, (switch,))
        };
        Box::new(arbiter::Arbiter::new(py, make, &raised))
    };
    let watched = |done: f64| match keep_running(done) {
        Ok(()) => true,
        Err(error) => {
            interruption.set(Some(error));
            false
        }
    };
    let outcome = crossbar.run_built(trial, &build, &watched);
    match (raised.take(), outcome) {
        (Some(cause), _) if !cause.is_instance_of::<PyException>(py) => Ok(Err(cause)),
        (Some(cause), outcome) => {
            // Without a sentence the arbiter was never made.
            let said = outcome.err().filter(|said| !said.is_empty());
            let message = said.unwrap_or_else(|| cause.to_string());
            let error = errors::raised(py, "DisciplineError", &format!("{}: {message}", one.name));
            error.set_cause(py, Some(cause));
            Err(error)
        }
        (None, Err(mistake)) => {
            Err(errors::raised(py, "DisciplineError", &format!("{}: {mistake}", one.name)))
        }
        (None, Ok(Some(outcome))) => Ok(Ok(recorded_switch(crossbar, true, &outcome))),
        (None, Ok(None)) => Ok(Err(interruption.take().expect("only an interruption stops a run"))),
    }
}
