//! A discipline whose methods are written in Python.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use giveway_qdisc::{Backlog, Cx, DropReason, Next, Packet, Qdisc, Rate, Span, Time};
use giveway_sim::Segment;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::context::{Context, Wait};
use super::failure::At;
use super::held::Held;
use super::packet::{self, in_words};
use super::patience::Patience;

/// Waits in a row that are too many within [`SHORTEST`] of simulated time. These are ten million per second:
/// more than a link needs to look at its queue, and few enough for a run to end.
const WAITS: u32 = 10_000;

/// The time for the first [`WAITS`] waits in a row, at least.
const SHORTEST: Span = Span::ms(1);

/// A discipline in Python, with the packets of its queue.
pub struct Written {
    enqueue: Py<PyAny>,
    dequeue: Py<PyAny>,
    gauges: Option<Py<PyAny>>,
    rate_changed: Option<Py<PyAny>>,
    context: Py<Context>,
    held: Held,
    /// Waits without an arrival or a departure between them.
    waits: Patience,
    failure: At,
}

impl Written {
    /// The discipline of an object.
    ///
    /// # Errors
    /// If it lacks a method.
    pub fn new(object: &Bound<'_, PyAny>, failure: At) -> PyResult<Written> {
        let py = object.py();
        let method = |name: &str| -> PyResult<Py<PyAny>> {
            let found = object.getattr(name).ok().filter(|method| method.is_callable());
            found.map(Bound::unbind).ok_or_else(|| {
                let class = object.get_type();
                PyTypeError::new_err(format!(
                    "{class} has no method {name}: a discipline needs enqueue(packet, cx) and dequeue(cx)"
                ))
            })
        };
        let held = Held::default();
        Ok(Written {
            enqueue: method("enqueue")?,
            dequeue: method("dequeue")?,
            gauges: method("gauges").ok(),
            rate_changed: method("rate_changed").ok(),
            context: Py::new(py, Context::new(held.shared()))?,
            held,
            waits: Patience::default(),
            failure,
        })
    }

    /// Applies the drops and marks of a call, and checks that no packet was forgotten.
    fn settle(&mut self, py: Python<'_>, cx: &mut Cx<'_, Segment>) {
        self.context.get().settle(|pending| {
            // A packet may be marked and then dropped in one call.
            for slot in pending.marks.drain(..) {
                if let Some(packet) = self.held.get_mut(slot) {
                    cx.mark(packet);
                }
            }
            for (slot, why) in pending.drops.drain(..) {
                cx.drop(self.held.take(slot), why);
            }
        });
        if let Some(number) = self.held.forgotten() {
            let message = format!(
                "packet {number} was forgotten: it was neither sent nor dropped, and no object holds it any more. \
                 Keep it, or call cx.drop(packet)"
            );
            self.failure.broken(py, &message, "", cx.now());
        }
    }

    /// After a failure no packet stays, because nobody would send it.
    fn give_up(&mut self, cx: &mut Cx<'_, Segment>) {
        self.held.drain().for_each(|packet| cx.drop(packet, DropReason::Reset));
    }

    /// The answer of `dequeue`.
    fn answered(&mut self, answer: &Bound<'_, PyAny>, now: Time) -> Next<Segment> {
        let py = answer.py();
        let backlog = self.held.backlog();
        if answer.is_none() {
            if backlog.packets > 0 {
                let message = format!(
                    "dequeue returned None, and {} packets are queued. Return one of them, or cx.wait(seconds) to hold \
                     them back",
                    backlog.packets
                );
                self.failure.broken(py, &message, "", now);
            }
            return Next::Empty;
        }
        if let Ok(packet) = answer.cast::<packet::Packet>() {
            let packet = packet.get();
            if !packet.is_of(self.held.shared()) {
                self.failure.broken(
                    py,
                    "dequeue returned a packet of another queue",
                    &packet.in_words(),
                    now,
                );
                return Next::Empty;
            }
            if !packet.settle() {
                let message = "dequeue returned a packet that was sent or dropped before";
                self.failure.broken(py, message, &packet.in_words(), now);
                return Next::Empty;
            }
            self.waits.renew();
            return Next::Packet(self.held.take(packet.slot));
        }
        if let Ok(wait) = answer.cast::<Wait>() {
            let until = wait.get().until;
            if until <= now {
                let message = format!("dequeue waits until {} s, which is not in the future", until.as_s());
                self.failure.broken(py, &message, "", now);
                return Next::Empty;
            }
            if backlog.packets == 0 {
                return Next::Empty;
            }
            if !self.waits.lasts(now, (WAITS, SHORTEST)) {
                let message = format!(
                    "dequeue has waited {WAITS} times within {SHORTEST} of simulated time, and no packet has left or \
                     arrived: wait until the time at which a packet may leave"
                );
                self.failure.broken(py, &message, "", now);
                return Next::Empty;
            }
            return Next::At(until);
        }
        let kind = answer.get_type();
        let message = format!(
            "dequeue returned {kind}; return a packet, cx.wait(seconds), or None if no packet is queued"
        );
        self.failure.broken(py, &message, "", now);
        Next::Empty
    }
}

impl Qdisc<Segment> for Written {
    fn enqueue(&mut self, pkt: Packet<Segment>, cx: &mut Cx<'_, Segment>) {
        if self.failure.is_set() {
            cx.drop(pkt, DropReason::Reset);
            return self.give_up(cx);
        }
        self.waits.renew();
        Python::attach(|py| {
            let now = cx.now();
            let meta = pkt.meta;
            let place = self.held.add(pkt);
            self.context.get().begin(now);
            let object = Py::new(py, packet::Packet::queued(meta, place, self.held.shared()));
            let called = object.and_then(|object| self.enqueue.call1(py, (object, &self.context)));
            // The object of a packet that the method did not keep is freed here.
            match called.map(drop) {
                Ok(()) => self.settle(py, cx),
                Err(cause) => {
                    self.settle(py, cx);
                    self.failure.raised(py, "enqueue", &in_words(place.1, &meta), now, cause);
                }
            }
        });
        if self.failure.is_set() {
            self.give_up(cx);
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, Segment>) -> Next<Segment> {
        if self.failure.is_set() {
            self.give_up(cx);
            return Next::Empty;
        }
        let next = Python::attach(|py| {
            let now = cx.now();
            self.context.get().begin(now);
            match self.dequeue.call1(py, (&self.context,)) {
                Ok(answer) => {
                    // Drops come first: the answer is about what is left.
                    self.settle(py, cx);
                    let next = self.answered(answer.bind(py), now);
                    drop(answer);
                    next
                }
                Err(cause) => {
                    self.failure.raised(py, "dequeue", "", now, cause);
                    self.settle(py, cx);
                    Next::Empty
                }
            }
        });
        if self.failure.is_set() {
            self.give_up(cx);
        }
        next
    }

    fn backlog(&self) -> Backlog {
        self.held.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
        self.give_up(cx);
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        let Some(method) = &self.rate_changed else { return };
        Python::attach(|py| {
            self.context.get().begin(now);
            if let Err(cause) = method.call1(py, (rate.as_bit(), &self.context)) {
                self.failure.raised(py, "rate_changed", "", now, cause);
            }
        });
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let Some(method) = self.gauges.as_ref().filter(|_| !self.failure.is_set()) else { return };
        Python::attach(|py| {
            let visited = method.call0(py).and_then(|found| {
                let dict = found
                    .bind(py)
                    .cast::<PyDict>()
                    .map_err(|_| PyTypeError::new_err("gauges returns a dict"))?;
                for (name, value) in dict.iter() {
                    visit(interned(&name.extract::<String>()?), value.extract()?);
                }
                Ok(())
            });
            if let Err(cause) = visited {
                let now = self.context.get().time();
                self.failure.raised(py, "gauges", "", now, cause);
            }
        });
    }
}

/// The text with a lifetime without end. Each different text is kept once, and programs have few names.
fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeMap<String, &'static str>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(text) {
        return known;
    }
    let leaked: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(text.to_owned(), leaked);
    leaked
}

const _: fn() = || {
    // Objects of packets may be freed by any thread of the interpreter.
    fn shared<T: Send + Sync>() {}
    shared::<Arc<super::held::Shared>>();
};
