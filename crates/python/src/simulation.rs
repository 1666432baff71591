//! A simulation that is run step by step, read and changed.
//!
//! A step holds the GIL, because a simulation belongs to one thread. Several simulations in one process run
//! one after the other.

use giveway_disciplines::Spec;
use giveway_observe::{Sojourns, Steps};
use giveway_qdisc::{LinkContext, PortId, Qdisc, Rate, Share, Span, Time};
use giveway_runner::manifest;
use giveway_scenario::{Port, Queue, Stepped, Trial};
use giveway_sim::Segment;
use giveway_spec::{Number, SpecType as _};
use giveway_trials::identity_text;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::own::failure::Failure;
use crate::own::packet::Packet;
use crate::own::traffic::{self, OwnTraffic};
use crate::own::{Own, new};
use crate::results::{Memory, Results};
use crate::scenario::Scenario;

/// The number of parts of a simulation after which signals are asked for.
const PARTS: u64 = 500;

/// A trial in progress.
#[pyclass(unsendable, module = "giveway._giveway")]
pub struct Simulation {
    running: Option<Steps>,
    failure: Failure,
    scenario: Py<Scenario>,
    name: String,
    seed: u64,
    part: Span,
}

#[pymethods]
impl Simulation {
    /// Prepares the first discipline of a scenario, or one in Python, with sources in Python and a seed.
    /// `series` keeps samples over time.
    #[new]
    fn create(
        py: Python<'_>,
        scenario: Py<Scenario>,
        own: Option<Own>,
        traffic: Vec<OwnTraffic>,
        seed: u64,
        series: bool,
    ) -> PyResult<Simulation> {
        let read = &scenario.get().read;
        let Some(network) = read.network() else {
            let message = format!(
                "only networks run step by step, and this scenario has the backend \"{}\"",
                read.backend.name()
            );
            return Err(errors::failed(py, &message));
        };
        let first = read.trials().into_iter().next().expect("a scenario has a trial");
        let name = own.as_ref().map_or(first.name, |own| own.name.clone());
        let trial = Trial { discipline: 0, name: name.clone(), seed };
        let failure = Failure::default();
        let build = |port: &Port, spec: &Spec, context: &LinkContext| {
            let own = own.as_ref().filter(|_| port.queue == Queue::Compare && !failure.is_set());
            match own.map(|own| new(py, own, &port.name, context, &failure)) {
                Some(Ok(qdisc)) => Ok(qdisc),
                Some(Err(error)) => {
                    failure.set(error);
                    giveway_scenario::discipline(spec, context)
                }
                None => giveway_scenario::discipline(spec, context),
            }
        };
        let mut plan = network.plan_built(&trial, &build);
        if !failure.is_set() {
            traffic::replace(py, (network, &mut plan), &traffic, &trial, &failure)?;
        }
        let running = Steps::of_plan(network, &trial, plan, series);
        if let Some(error) = failure.take() {
            return Err(error);
        }
        let part = read.duration.scale(1, PARTS).max(Span::ns(1));
        Ok(Simulation { running: Some(running), failure, name, seed, part, scenario: scenario.clone_ref(py) })
    }

    /// Handles all events up to this time, picoseconds.
    fn step(&mut self, py: Python<'_>, until: u64) -> PyResult<()> {
        let part = self.part;
        let running = self.running()?;
        let until = Time::from_ps(until).min(running.trial().until());
        while running.trial().now() < until {
            let next = (running.trial().now() + part).min(until);
            running.step_to(next);
            if next < until {
                py.check_signals()?;
            }
        }
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The time and the end, picoseconds.
    #[getter]
    fn times(&self) -> PyResult<(u64, u64)> {
        let stepped = self.read()?.trial();
        Ok((stepped.now().as_ps(), stepped.until().as_ps()))
    }

    /// The number of events so far.
    #[getter]
    fn events(&self) -> PyResult<u64> {
        Ok(self.read()?.trial().sim().events())
    }

    /// The names of all ports.
    #[getter]
    fn ports(&self) -> PyResult<Vec<String>> {
        Ok(self.read()?.trial().port_names().map(str::to_owned).collect())
    }

    /// The number of a port.
    fn port(&self, name: &str) -> PyResult<u32> {
        let stepped = self.read()?.trial();
        let found = stepped.port(name).map(|port| port.0);
        found.ok_or_else(|| {
            let names: Vec<&str> = stepped.port_names().collect();
            PyKeyError::new_err(format!("there is no port \"{name}\"; the ports are {}", names.join(", ")))
        })
    }

    /// The counters of a port: packets and bytes that arrived, were sent, were dropped, and are queued;
    /// packets that were marked; the rate, bit/s.
    #[allow(clippy::type_complexity, reason = "the package gives names to the numbers")]
    fn counters(&self, port: u32) -> PyResult<([u64; 8], u64, u64)> {
        let port = self.port_of(port)?;
        let counters = port.counters();
        let backlog = counters.backlog();
        let [arrived, sent, dropped] = [counters.arrived, counters.sent, counters.dropped];
        let numbers = [
            arrived.packets,
            arrived.bytes,
            sent.packets,
            sent.bytes,
            dropped.packets,
            dropped.bytes,
            backlog.packets,
            backlog.bytes,
        ];
        Ok((numbers, counters.marked, port.rate().as_bit()))
    }

    /// The packets of a port since the last call: packets and bytes sent, the sum and the largest of their
    /// sojourn times in seconds, packets dropped.
    fn since(&mut self, port: u32) -> PyResult<(u64, u64, f64, f64, u64)> {
        let Sojourns { packets, bytes, sum, most, dropped } = self.running()?.since(PortId(port));
        Ok((packets, bytes, sum.as_s(), most.as_s(), dropped))
    }

    /// The gauges of the discipline at a port, and its flow table.
    fn gauges<'py>(&self, py: Python<'py>, port: u32) -> PyResult<Bound<'py, PyDict>> {
        let port = self.port_of(port)?;
        let found = PyDict::new(py);
        let mut failed = None;
        port.gauges(&mut |name, value| {
            failed = failed.take().or(found.set_item(name, value).err());
        });
        for (name, value) in port.flow_table().named() {
            found.set_item(name, value)?;
        }
        failed.map_or(Ok(found), Err)
    }

    /// The packets in a queue, in order of arrival. The queue is watched from the first call on, which
    /// returns None if packets are queued already.
    fn queue(&mut self, port: u32) -> PyResult<Option<Vec<Packet>>> {
        let backlog = self.port_of(port)?.counters().backlog().packets;
        let stepped = self.running()?.trial_mut();
        let port = PortId(port);
        let packets = |stepped: &Stepped| -> Option<Vec<Packet>> {
            Some(stepped.queue(port)?.map(|(number, meta)| Packet::shown(*meta, number)).collect())
        };
        if let Some(found) = packets(stepped) {
            return Ok(Some(found));
        }
        stepped.watch(port);
        Ok((backlog == 0).then(Vec::new))
    }

    /// Watches a queue from now on.
    fn watch(&mut self, port: u32) -> PyResult<()> {
        self.port_of(port)?;
        self.running()?.trial_mut().watch(PortId(port));
        Ok(())
    }

    /// Replaces the discipline of a port.
    fn change(&mut self, port: u32, spec: &str) -> PyResult<()> {
        let spec: Spec = spec.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
        self.running()?.replace(PortId(port), &spec).map_err(refused)
    }

    /// Sets parameters of the discipline of a port, in the order of their names, in basic units.
    fn set_numbers(&mut self, port: u32, actions: &Bound<'_, Actions>, values: Vec<f64>) -> PyResult<()> {
        let Actions { spec, numbers } = actions.get();
        let values: Vec<_> = numbers.iter().zip(values).collect();
        let spec = Spec::catalogue().with_numbers(spec, &values).map_err(refused)?;
        self.running()?.replace(PortId(port), &spec).map_err(refused)
    }

    /// Replaces the discipline of a port by one in Python.
    fn change_to_own(&mut self, py: Python<'_>, port: u32, own: Own) -> PyResult<()> {
        let failure = self.failure.clone();
        let running = self.running()?;
        let name = running.trial().port_names().nth(port as usize).unwrap_or_default().to_owned();
        let context = running.trial_mut().context(PortId(port)).map_err(refused)?;
        let qdisc: Box<dyn Qdisc<Segment>> = new(py, &own, &name, &context, &failure)?;
        running.replace_by(PortId(port), qdisc).map_err(refused)
    }

    /// Changes the rate of a link, in the words of `tc`.
    fn set_rate(&mut self, port: u32, rate: &str) -> PyResult<()> {
        let rate: Rate = rate.parse().map_err(|error| PyValueError::new_err(format!("rate: {error}")))?;
        self.running()?.change_rate(PortId(port), rate).map_err(refused)
    }

    /// Changes the delay of a link.
    fn set_delay(&mut self, port: u32, delay: &str) -> PyResult<()> {
        let delay: Span = delay.parse().map_err(|error| PyValueError::new_err(format!("delay: {error}")))?;
        self.running()?.trial_mut().change_delay(PortId(port), delay).map_err(refused)
    }

    /// Changes the probability that a link loses a packet.
    fn set_loss(&mut self, port: u32, loss: f64) -> PyResult<()> {
        let loss = Share::new(loss).ok_or_else(|| {
            PyValueError::new_err(format!("loss: {loss} is not a probability between 0 and 1"))
        })?;
        self.running()?.trial_mut().change_loss(PortId(port), loss).map_err(refused)
    }

    /// Ends the trial, and returns its results.
    fn finish(&mut self, py: Python<'_>, provenance: (String, String)) -> PyResult<Results> {
        let (record, _) = self.running.take().ok_or_else(ended)?.finish();
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let scenario = self.scenario.get();
        let mut manifest = manifest(&scenario.read, &scenario.name, provenance);
        manifest.disciplines = match manifest.disciplines.first() {
            Some(known) if known.qdisc == self.name => vec![known.clone()],
            _ => vec![giveway_measure::Discipline::named(&self.name)],
        };
        manifest.seeds = vec![self.seed];
        let _ = py;
        let trial = giveway_measure::Trial { qdisc: self.name.clone(), seed: self.seed };
        Ok(Results::new(Memory {
            runs: vec![(trial, record)],
            manifest,
            asked: format!("{}# run step by step, and changed\n", identity_text(&scenario.read)),
            scenario: scenario.read.text(),
            planned: 1,
        }))
    }
}

/// Parameters of a discipline whose values are numbers, which change often: their text is parsed once.
#[pyclass(frozen, module = "giveway._giveway")]
pub struct Actions {
    spec: Spec,
    numbers: Vec<Number>,
}

#[pymethods]
impl Actions {
    /// The parameters `names` of a discipline, which sets them.
    #[new]
    fn new(spec: &str, names: Vec<String>) -> PyResult<Actions> {
        let spec: Spec = spec.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
        let all = Spec::catalogue().numbers(&spec);
        let find = |name: &String| {
            let found = all.iter().find(|number| number.name == *name).cloned();
            found.ok_or_else(|| PyValueError::new_err(format!("{name}: it has no values that are numbers")))
        };
        let numbers = names.iter().map(find).collect::<PyResult<_>>()?;
        Ok(Actions { spec, numbers })
    }

    /// The values of the parameters in basic units.
    #[getter]
    fn values(&self) -> Vec<f64> {
        self.numbers.iter().map(|number| number.value).collect()
    }
}

impl Simulation {
    fn running(&mut self) -> PyResult<&mut Steps> {
        self.running.as_mut().ok_or_else(ended)
    }

    fn read(&self) -> PyResult<&Steps> {
        self.running.as_ref().ok_or_else(ended)
    }

    fn port_of(&self, number: u32) -> PyResult<&giveway_qdisc::Port<Segment>> {
        let found = self.read()?.trial().sim().port(number);
        found.ok_or_else(|| PyKeyError::new_err(format!("there is no port {number}")))
    }
}

fn ended() -> PyErr {
    PyRuntimeError::new_err("the simulation has ended: make another one")
}

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
