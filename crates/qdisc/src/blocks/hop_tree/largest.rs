//! The largest queue of a tree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::Node;
use crate::backlog::Backlog;
use crate::blocks::{Fullest, LongestQueue, Rank};

/// Measure of a queue for the largest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// The most bytes.
    #[default]
    Bytes,
    /// The most packets.
    Packets,
}

/// Index of the largest queue.
///
/// It is built at the first request, and given up when the tree is empty. While all packets have the same
/// length, the queue with most bytes is the one with most packets, which [`Fullest`] finds in constant time
/// for up to [`Fullest::MAX`] queues. A heap serves all other cases.
#[derive(Debug)]
pub(super) struct Largest {
    by_packets: Fullest,
    heap: LongestQueue,
    counts: Counts,
    /// Length of all queued packets, or [`MIXED`]. Meaningless if packets are measured.
    length: u64,
}

/// The queued packets differ in length.
const MIXED: u64 = u64::MAX;

/// Data structure that finds the largest queue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counts {
    Nothing,
    Packets,
    Heap,
}

impl Largest {
    /// An index with capacity for queues of `packets` packets. It grows on demand.
    pub(super) fn with_capacity(packets: usize) -> Largest {
        Largest {
            by_packets: Fullest::with_capacity(packets),
            heap: LongestQueue::default(),
            counts: Counts::Nothing,
            length: MIXED,
        }
    }

    /// The queue of a node has got a packet.
    #[inline]
    pub(super) fn grew(&mut self, measure: Measure, nodes: &[Node], backlog: Backlog, at: usize, bytes: u32) {
        if u64::from(bytes) != self.length && measure == Measure::Bytes {
            // Lengths differ, unless this packet is the only one.
            self.length = if backlog.packets == 1 { bytes.into() } else { MIXED };
        }
        match self.counts {
            Counts::Nothing => {}
            Counts::Packets if at < Fullest::MAX && self.packets_decide(measure) => {
                self.by_packets.grew(at, nodes[at].own.packets as usize);
            }
            Counts::Packets => self.count_in_heap(measure, nodes),
            Counts::Heap => self.heap.record_growth(at as u32, nodes[at].rank(measure, at)),
        }
    }

    /// The queue of a node has lost a packet.
    #[inline]
    pub(super) fn shrank(&mut self, nodes: &[Node], backlog: Backlog, at: usize) {
        match self.counts {
            Counts::Nothing => return,
            Counts::Packets => self.by_packets.shrank(at, nodes[at].own.packets as usize),
            Counts::Heap => {}
        }
        // With many nodes the heap is kept: building it again would cost more.
        if backlog.packets == 0 && nodes.len() <= Fullest::MAX {
            self.counts = Counts::Nothing;
        }
    }

    /// The largest queue; the first of several.
    #[inline]
    pub(super) fn first(&mut self, measure: Measure, nodes: &[Node]) -> usize {
        if self.counts == Counts::Nothing {
            self.begin(measure, nodes);
        }
        let first = match self.counts {
            Counts::Nothing | Counts::Packets => self.by_packets.first(),
            Counts::Heap => {
                let longest = self.heap.longest(|at| {
                    let node = nodes.get(at as usize)?;
                    (node.own.packets > 0).then(|| node.rank(measure, at as usize))
                });
                longest.map(|at| at as usize)
            }
        };
        first.expect("there is a backlog")
    }

    /// Starts again after the nodes were renumbered.
    pub(super) fn recount(&mut self) {
        self.by_packets.clear();
        self.heap.clear();
        self.counts = Counts::Nothing;
    }

    /// The tree was emptied.
    pub(super) fn clear(&mut self) {
        self.recount();
        self.length = MIXED;
    }

    #[cold]
    fn begin(&mut self, measure: Measure, nodes: &[Node]) {
        if nodes.len() > Fullest::MAX || !self.packets_decide(measure) {
            return self.count_in_heap(measure, nodes);
        }
        self.counts = Counts::Packets;
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.own.packets > 0) {
            self.by_packets.grew(at, node.own.packets as usize);
        }
    }

    #[cold]
    fn count_in_heap(&mut self, measure: Measure, nodes: &[Node]) {
        self.by_packets.clear();
        self.counts = Counts::Heap;
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.own.packets > 0) {
            self.heap.record_growth(at as u32, node.rank(measure, at));
        }
    }

    /// True if the queue with most packets is the largest.
    #[inline]
    fn packets_decide(&self, measure: Measure) -> bool {
        measure == Measure::Packets || self.length != MIXED
    }
}

impl Measure {
    #[inline]
    pub(super) fn of(self, backlog: Backlog) -> u64 {
        match self {
            Measure::Bytes => backlog.bytes,
            Measure::Packets => backlog.packets,
        }
    }
}

impl Node {
    /// Rank of the queue. Of equal queues, the queue of the node that was created first ranks higher.
    #[inline]
    fn rank(&self, measure: Measure, at: usize) -> Rank {
        Rank { length: measure.of(self.own), ticket: at as u64 }
    }
}
