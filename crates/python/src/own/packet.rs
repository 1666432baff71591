//! A packet as Python sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use giveway_qdisc::{Ecn, Meta};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use super::held::Shared;

/// The metadata of a packet, and the right to send or drop it once.
#[pyclass(frozen, freelist = 256, module = "giveway")]
pub struct Packet {
    pub meta: Meta,
    pub number: u64,
    pub slot: u32,
    /// True once the packet was sent or dropped.
    settled: AtomicBool,
    shared: Option<Arc<Shared>>,
}

impl Packet {
    /// The packet in a slot of a queue.
    #[inline]
    pub fn queued(meta: Meta, (slot, number): (u32, u64), shared: &Arc<Shared>) -> Packet {
        Packet { meta, number, slot, settled: AtomicBool::new(false), shared: Some(Arc::clone(shared)) }
    }

    /// A packet that can only be read.
    pub fn shown(meta: Meta, number: u64) -> Packet {
        Packet { meta, number, slot: 0, settled: AtomicBool::new(true), shared: None }
    }

    /// Gives the right away. False if it was given before.
    #[inline]
    pub fn settle(&self) -> bool {
        !self.settled.swap(true, Ordering::Relaxed)
    }

    /// True once the packet was sent or dropped.
    pub fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed)
    }

    /// True if the packet is one of this queue.
    #[inline]
    pub fn is_of(&self, queue: &Arc<Shared>) -> bool {
        self.shared.as_ref().is_some_and(|shared| Arc::ptr_eq(shared, queue))
    }

    /// The packet in a few words, for messages.
    pub fn in_words(&self) -> String {
        in_words(self.number, &self.meta)
    }
}

/// A packet in a few words, for messages.
pub fn in_words(number: u64, meta: &Meta) -> String {
    format!("packet {number} ({} bytes of flow {:x})", meta.bytes, meta.flow.0)
}

impl Drop for Packet {
    fn drop(&mut self) {
        if let (Some(shared), false) = (&self.shared, *self.settled.get_mut()) {
            shared.forget(self.number);
        }
    }
}

#[pymethods]
impl Packet {
    /// IP length, bytes.
    #[getter]
    fn bytes(&self) -> u32 {
        self.meta.bytes
    }
    /// Key of the flow.
    #[getter]
    fn flow(&self) -> u64 {
        self.meta.flow.0
    }
    /// Number among the packets of the queue.
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }
    /// Time of arrival, seconds.
    #[getter]
    fn arrived(&self) -> f64 {
        self.meta.arrived.as_s()
    }
    /// Time of arrival, picoseconds.
    #[getter]
    fn arrived_ps(&self) -> u64 {
        self.meta.arrived.as_ps()
    }
    /// Traffic class.
    #[getter]
    fn traffic_class(&self) -> u16 {
        self.meta.class
    }
    /// DSCP.
    #[getter]
    fn dscp(&self) -> u8 {
        self.meta.header.dscp().number()
    }
    /// ECN field when the packet arrived.
    #[getter]
    fn ecn(&self) -> &'static str {
        match self.meta.ecn {
            Ecn::NotCapable => "not-ect",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Marked => "ce",
        }
    }
    /// Number of the source host.
    #[getter]
    fn source(&self) -> u16 {
        self.meta.from
    }
    /// Number of the destination host.
    #[getter]
    fn destination(&self) -> u16 {
        self.meta.to
    }
    /// Bytes that the flow sent before.
    #[getter]
    fn offset(&self) -> u32 {
        self.meta.offset
    }
    /// Bytes that the flow has still to send; 0 if unknown.
    #[getter]
    fn remaining(&self) -> u32 {
        self.meta.remaining
    }
    /// Reserved rate of the flow, bit/s; 0 for none.
    #[getter]
    fn reserved(&self) -> u64 {
        self.meta.reserved.as_bit()
    }
    fn __repr__(&self) -> String {
        format!("<{}>", self.in_words())
    }
    /// Packets are in the order of their numbers, for `sorted` and `heapq`. A packet is equal to itself only,
    /// as an object is by default: packets of two queues may have one number.
    fn __richcmp__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, op: CompareOp) -> Py<PyAny> {
        let py = slf.py();
        let Ok(other) = other.cast::<Packet>() else { return py.NotImplemented() };
        let (one, two) = (slf.get().number, other.get().number);
        let holds = match op {
            CompareOp::Eq => slf.is(other),
            CompareOp::Ne => !slf.is(other),
            CompareOp::Lt => one < two,
            CompareOp::Le => one < two || slf.is(other),
            CompareOp::Gt => one > two,
            CompareOp::Ge => one > two || slf.is(other),
        };
        pyo3::types::PyBool::new(py, holds).to_owned().into_any().unbind()
    }
    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        // Objects are aligned: the lowest bits are zero.
        (slf.as_ptr() as isize) >> 4
    }
}
