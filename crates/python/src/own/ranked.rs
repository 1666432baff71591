//! A queue by ranks, whose ranks a function in Python computes: a push-in first-out queue (PIFO).
//!
//! Sivaraman et al., "Programmable Packet Scheduling at Line Rate", SIGCOMM 2016, section 2. The packet with
//! the smallest rank leaves first; among equal ranks, the one that arrived first. The paper leaves open what
//! a full queue does. Here the packet that would leave last makes room, which may be the new one.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use giveway_qdisc::{Backlog, Cx, DropReason, Limit, Next, Packet, Qdisc};
use giveway_sim::Segment;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::failure::At;
use super::packet::{self, in_words};

/// A rank and a number. Ranks are not NaN.
#[derive(Clone, Copy, PartialEq)]
struct Key(f64, u64);

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// The queue.
pub struct Ranked {
    rank: Py<PyAny>,
    limit: Limit,
    queue: BTreeMap<Key, Packet<Segment>>,
    backlog: Backlog,
    count: u64,
    failure: At,
}

impl Ranked {
    /// A queue with a function from a packet to its rank.
    pub fn new(rank: Py<PyAny>, limit: Limit, failure: At) -> Ranked {
        Ranked { rank, limit, queue: BTreeMap::new(), backlog: Backlog::default(), count: 0, failure }
    }

    fn rank_of(&self, py: Python<'_>, packet: &Packet<Segment>) -> PyResult<f64> {
        let rank: f64 =
            self.rank.call1(py, (packet::Packet::shown(packet.meta, self.count),))?.extract(py)?;
        if rank.is_nan() {
            return Err(PyValueError::new_err("the rank is not a number"));
        }
        Ok(rank)
    }

    fn take(&mut self, key: Key) -> Packet<Segment> {
        let packet = self.queue.remove(&key).expect("the key is in the queue");
        self.backlog.sub(packet.meta.bytes);
        packet
    }
}

impl Qdisc<Segment> for Ranked {
    fn enqueue(&mut self, pkt: Packet<Segment>, cx: &mut Cx<'_, Segment>) {
        if self.failure.is_set() {
            cx.drop(pkt, DropReason::Reset);
            return self.reset(cx);
        }
        let rank = Python::attach(|py| {
            self.rank_of(py, &pkt).map_err(|cause| {
                let about = in_words(self.count, &pkt.meta);
                self.failure.raised(py, "the rank", &about, cx.now(), cause);
            })
        });
        let Ok(rank) = rank else {
            cx.drop(pkt, DropReason::Reset);
            return self.reset(cx);
        };
        let key = Key(rank, self.count);
        self.count += 1;
        while !self.limit.admits(self.backlog, pkt.meta.bytes) {
            match self.queue.last_key_value().map(|(last, _)| *last) {
                Some(last) if key < last => {
                    let last = self.take(last);
                    cx.drop(last, DropReason::Pushout);
                }
                _ => return cx.drop(pkt, DropReason::Overlimit),
            }
        }
        self.backlog.add(pkt.meta.bytes);
        self.queue.insert(key, pkt);
    }

    fn dequeue(&mut self, _: &mut Cx<'_, Segment>) -> Next<Segment> {
        match self.queue.first_key_value().map(|(first, _)| *first) {
            Some(first) => Next::Packet(self.take(first)),
            None => Next::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
        self.backlog = Backlog::default();
        std::mem::take(&mut self.queue).into_values().for_each(|packet| cx.drop(packet, DropReason::Reset));
    }
}
