//! The context of a call as Python sees it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use giveway_qdisc::{DropReason, Ecn, Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::held::Shared;
use super::packet::Packet;

/// The time of a call, and its drops and marks. A queue has one object for all calls.
#[pyclass(frozen, module = "giveway")]
pub struct Context {
    now: AtomicU64,
    shared: Arc<Shared>,
    pending: Mutex<Pending>,
}

/// The drops and marks of a call, by the slots of the packets.
#[derive(Default)]
pub struct Pending {
    pub drops: Vec<(u32, DropReason)>,
    pub marks: Vec<u32>,
}

impl Context {
    pub fn new(shared: &Arc<Shared>) -> Context {
        Context { now: AtomicU64::new(0), shared: Arc::clone(shared), pending: Mutex::default() }
    }

    /// Sets the time of the call that starts.
    #[inline]
    pub fn begin(&self, now: Time) {
        self.now.store(now.as_ps(), Ordering::Relaxed);
    }

    /// The time of the last call.
    pub fn time(&self) -> Time {
        Time::from_ps(self.now.load(Ordering::Relaxed))
    }

    /// Applies the drops and marks so far with `apply`, and forgets them.
    #[inline]
    pub fn settle(&self, apply: impl FnOnce(&mut Pending)) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if !pending.drops.is_empty() || !pending.marks.is_empty() {
            apply(&mut pending);
            pending.drops.clear();
            pending.marks.clear();
        }
    }

    fn check(&self, packet: &Packet) -> PyResult<()> {
        if !packet.is_of(&self.shared) {
            let message = format!("{} is not in this queue", packet.in_words());
            return Err(PyValueError::new_err(message));
        }
        if packet.is_settled() {
            let message = format!("{} was sent or dropped before", packet.in_words());
            return Err(PyValueError::new_err(message));
        }
        Ok(())
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Context {
    /// The time of this call, seconds.
    #[getter]
    fn now(&self) -> f64 {
        self.time().as_s()
    }

    /// The time of this call, picoseconds.
    #[getter]
    fn now_ps(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Drops a packet.
    #[pyo3(signature = (packet, reason = "overlimit"))]
    fn drop(&self, packet: &Bound<'_, Packet>, reason: &str) -> PyResult<()> {
        let packet = packet.get();
        let Some(why) = DropReason::ALL.into_iter().find(|known| known.name() == reason) else {
            let names: Vec<&str> = DropReason::ALL.iter().map(|known| known.name()).collect();
            let message = format!("unknown reason \"{reason}\"; the reasons are {}", names.join(", "));
            return Err(PyValueError::new_err(message));
        };
        self.check(packet)?;
        packet.settle();
        self.pending().drops.push((packet.slot, why));
        Ok(())
    }

    /// Marks a packet. False if its transport does not support ECN.
    fn mark(&self, packet: &Bound<'_, Packet>) -> PyResult<bool> {
        let packet = packet.get();
        self.check(packet)?;
        if packet.meta.ecn == Ecn::NotCapable {
            return Ok(false);
        }
        self.pending().marks.push(packet.slot);
        Ok(true)
    }

    /// The answer that no packet may leave before a time, in seconds.
    fn wait_until(&self, time: f64) -> PyResult<Wait> {
        Ok(Wait { until: Time::ZERO + span(time)? })
    }

    /// The answer that no packet may leave for a number of seconds from now.
    fn wait(&self, seconds: f64) -> PyResult<Wait> {
        Ok(Wait { until: self.time() + span(seconds)? })
    }
}

/// A number of seconds, to the picosecond.
pub fn span(seconds: f64) -> PyResult<Span> {
    if seconds.is_finite() && (0.0..1e7).contains(&seconds) {
        return Ok(Span::from_s_f64(seconds));
    }
    Err(PyValueError::new_err(format!("{seconds} s is not a time of a simulation")))
}

/// The answer of `dequeue` that no packet may leave before a time.
#[pyclass(frozen, module = "giveway")]
pub struct Wait {
    pub until: Time,
}

#[pymethods]
impl Wait {
    /// The time, seconds.
    #[getter]
    fn until(&self) -> f64 {
        self.until.as_s()
    }

    fn __repr__(&self) -> String {
        format!("<wait until {} s>", self.until.as_s())
    }
}
