//! Sources of traffic that are written in Python: objects with `wake(cx)`.
//!
//! A source in Python takes the place of the source of an entry of the traffic, and keeps everything else of
//! it: its name, its nodes, its start and its end, the class and the DSCP of its packets. Each pair of nodes
//! has an object of its own. Its random numbers depend on the seed of the run and the name of the entry only.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use giveway_qdisc::{Span, Streams, Time};
use giveway_scenario::{Network, Trial};
use giveway_sim::net::{Net, StreamId};
use giveway_sim::traffic::MAX_FLOWS;
use giveway_sim::{Plan, Source};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::context::{Wait, span};
use super::failure::{At, Failure};
use super::patience::Patience;
use crate::errors;

/// A source in Python, as the package describes it.
#[derive(FromPyObject)]
pub struct OwnTraffic {
    /// The name of the class.
    pub name: String,
    /// The name of the traffic whose source it replaces.
    pub replaces: String,
    /// A function from the description of a flow to a new source.
    pub make: Py<PyAny>,
    /// The text of its source code.
    pub source: String,
}

/// The lengths of IP packets with a UDP datagram, bytes.
const LENGTHS: std::ops::RangeInclusive<u32> = 28..=65_535;

/// Packets of one call, at most.
const MOST: usize = 100_000;

/// Calls in a row that are too many within [`FASTEST`].
const CALLS: u32 = 10_000;

/// With a packet of the smallest length at each call, this is more than 2 Tbit/s.
const FASTEST: Span = Span::us(1);

/// Puts sources in Python into the plan of a trial, in place of sources of the scenario.
///
/// # Errors
/// There is no such traffic, or a constructor raised an exception.
pub fn replace(
    py: Python<'_>,
    (network, plan): (&Network, &mut Plan),
    traffic: &[OwnTraffic],
    trial: &Trial,
    failure: &Failure,
) -> PyResult<()> {
    for own in traffic {
        let mut known = false;
        for (stream, planned) in network.traffic.iter().zip(&mut plan.sources) {
            if stream.name != own.replaces {
                continue;
            }
            known = true;
            let streams = Streams::new(trial.seed).within("traffic").within(&stream.id).within("python");
            let mut flows = Vec::new();
            for (number, pair) in stream.pairs.iter().enumerate() {
                let [from, to] = [pair.0, pair.1].map(|node| network.nodes[usize::from(node)].as_str());
                let flow = PyDict::new(py);
                flow.set_item("name", &stream.name)?;
                flow.set_item("source", from)?;
                flow.set_item("destination", to)?;
                flow.set_item("start", planned.start.as_s())?;
                flow.set_item("stop", stream.stop.as_s())?;
                flow.set_item("seed", streams.within(&number.to_string()).rng().word())?;
                let object = own.make.bind(py).call1((flow,))?;
                let wake = object.getattr("wake").ok().filter(|method| method.is_callable());
                let wake = wake.ok_or_else(|| {
                    let class = object.get_type();
                    PyTypeError::new_err(format!(
                        "{class} has no method wake: a source of traffic needs wake(cx)"
                    ))
                })?;
                flows.push(Flow {
                    wake: wake.unbind(),
                    sender: Py::new(py, Sender::default())?,
                    pair: *pair,
                    streams: BTreeMap::new(),
                    calls: Patience::default(),
                    at: failure.of_traffic(&own.name, &format!("{}, {from}->{to}", stream.name)),
                });
            }
            let order = (0..flows.len()).map(|number| Reverse((planned.start, number))).collect();
            planned.source = Box::new(Written { flows, order, stop: stream.stop });
        }
        if !known {
            let names: Vec<&str> = network.traffic.iter().map(|stream| stream.name.as_str()).collect();
            let message =
                format!("there is no traffic \"{}\"; the traffic is {}", own.replaces, names.join(", "));
            return Err(errors::failed(py, &message));
        }
    }
    Ok(())
}

/// The objects of an entry of the traffic.
struct Written {
    flows: Vec<Flow>,
    /// The time of the next call of each. At equal times, the first pair of nodes comes first.
    order: BinaryHeap<Reverse<(Time, usize)>>,
    stop: Time,
}

/// The object of a pair of nodes.
struct Flow {
    wake: Py<PyAny>,
    sender: Py<Sender>,
    pair: (u16, u16),
    streams: BTreeMap<u32, StreamId>,
    calls: Patience,
    at: At,
}

impl Source for Written {
    fn wake(&mut self, net: &mut Net<'_>) {
        let now = net.now();
        while let Some(Reverse((time, number))) = self.order.peek().copied()
            && time <= now
        {
            self.order.pop();
            let flow = &mut self.flows[number];
            if flow.at.is_set() {
                return;
            }
            let next = Python::attach(|py| flow.call(py, net));
            if let Some(next) = next.filter(|next| *next < self.stop) {
                self.order.push(Reverse((next, number)));
            }
        }
        if let Some(Reverse((next, _))) = self.order.peek() {
            net.wake_at(*next);
        }
    }
}

impl Flow {
    /// Calls the object, and sends its packets. Returns the time of the next call.
    fn call(&mut self, py: Python<'_>, net: &mut Net<'_>) -> Option<Time> {
        let now = net.now();
        self.sender.get().begin(now);
        let answer = self.wake.call1(py, (&self.sender,));
        for (flow, bytes) in self.sender.get().take() {
            let (from, to) = self.pair;
            let stream = *self.streams.entry(flow).or_insert_with(|| net.stream(from, to));
            net.datagram(stream, bytes);
        }
        let answer = match answer {
            Ok(answer) => answer.into_bound(py),
            Err(cause) => {
                self.at.raised(py, "wake", "", now, cause);
                return None;
            }
        };
        if answer.is_none() {
            return None;
        }
        let Ok(wait) = answer.cast::<Wait>() else {
            let kind = answer.get_type();
            let message = format!(
                "wake returned {kind}; return cx.wait(seconds), cx.wait_until(time), or None if nothing more is sent"
            );
            self.at.broken(py, &message, "", now);
            return None;
        };
        let until = wait.get().until;
        if until <= now {
            let message = format!("wake waits until {} s, which is not in the future", until.as_s());
            self.at.broken(py, &message, "", now);
            return None;
        }
        if !self.calls.lasts(now, (CALLS, FASTEST)) {
            let message =
                format!("wake was called {CALLS} times within {FASTEST} of simulated time: wait longer");
            self.at.broken(py, &message, "", now);
            return None;
        }
        Some(until)
    }
}

/// The time of a call of a source, and its packets. A source has one object for all calls.
#[pyclass(frozen, module = "giveway")]
#[derive(Default)]
pub struct Sender(Mutex<Sending>);

#[derive(Default)]
struct Sending {
    now: Time,
    /// The number of the flow, and the length, of each packet.
    packets: Vec<(u32, u32)>,
}

impl Sender {
    fn begin(&self, now: Time) {
        self.sending().now = now;
    }

    fn take(&self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.sending().packets)
    }

    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Sender {
    /// The time of this call, seconds.
    #[getter]
    fn now(&self) -> f64 {
        self.sending().now.as_s()
    }

    /// The time of this call, picoseconds.
    #[getter]
    fn now_ps(&self) -> u64 {
        self.sending().now.as_ps()
    }

    /// Sends a packet.
    #[pyo3(signature = (bytes, *, flow = 0))]
    fn send(&self, bytes: u32, flow: u32) -> PyResult<()> {
        if !LENGTHS.contains(&bytes) {
            let message =
                format!("{bytes} bytes are not the length of an IP packet with a UDP datagram: 28 to 65535");
            return Err(PyValueError::new_err(message));
        }
        if flow as usize >= MAX_FLOWS {
            let message = format!("flow {flow}: flows have the numbers 0 to {}", MAX_FLOWS - 1);
            return Err(PyValueError::new_err(message));
        }
        let mut sending = self.sending();
        if sending.packets.len() >= MOST {
            let message = format!("a call of wake sends at most {MOST} packets: send the others later");
            return Err(PyValueError::new_err(message));
        }
        sending.packets.push((flow, bytes));
        Ok(())
    }

    /// The answer that the next call comes at a time, in seconds.
    fn wait_until(&self, time: f64) -> PyResult<Wait> {
        Ok(Wait { until: Time::ZERO + span(time)? })
    }

    /// The answer that the next call comes after a number of seconds.
    fn wait(&self, seconds: f64) -> PyResult<Wait> {
        Ok(Wait { until: self.sending().now + span(seconds)? })
    }
}
