//! Who has the most.

use super::{HopTree, Measure, Node};
use crate::blocks::{Fullest, LongestQueue, Rank};
use crate::qdisc::Backlog;

/// Which queue is the largest.
///
/// Nothing is counted before somebody asks. Then, while all packets have one length, the most bytes are the most packets, and
/// that is known in constant time for as many queues as [`Fullest`] takes. Otherwise a heap counts. When nothing is held any
/// more, counting ends.
#[derive(Debug)]
pub(super) struct Largest {
    by_packets: Fullest,
    heap: LongestQueue,
    counts: Counts,
    /// The length of all packets that are held, or [`MIXED`]. Where packets are counted it does not matter.
    length: u64,
}

/// Packets of several lengths.
const MIXED: u64 = u64::MAX;

/// What knows the largest queue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counts {
    Nothing,
    Packets,
    Heap,
}

impl<P> HopTree<P> {
    /// The node with the largest queue; of equal ones the first.
    pub(super) fn largest(&mut self) -> usize {
        let measure = self.shape.largest.expect("the shape knows the largest queue");
        self.largest.first(measure, &self.nodes)
    }

    /// The node at the end of the largest parts.
    pub(super) fn heaviest(&mut self) -> usize {
        let measure = self.shape.largest.unwrap_or_default();
        let HopTree { nodes, sums, .. } = self;
        sums.clear();
        sums.extend(nodes.iter().map(|node| measure.of(node.own)));
        // Branches are younger than what they branch from, so the last is summed up first.
        for (at, node) in nodes.iter().enumerate().skip(1).rev() {
            sums[node.parent as usize] += sums[at];
        }
        let mut at = 0;
        loop {
            let node = &nodes[at];
            let mut most = measure.of(node.own);
            let mut best = at;
            for child in node.children.iter().map(|child| *child as usize) {
                if sums[child] > most {
                    (best, most) = (child, sums[child]);
                }
            }
            if best == at {
                return at;
            }
            at = best;
        }
    }
}

impl Largest {
    /// Room for queues of so many packets before it first grows.
    pub(super) fn with_capacity(packets: usize) -> Largest {
        Largest {
            by_packets: Fullest::with_capacity(packets),
            heap: LongestQueue::default(),
            counts: Counts::Nothing,
            length: MIXED,
        }
    }

    /// A node's queue has one packet more.
    #[inline]
    pub(super) fn grew(&mut self, measure: Measure, nodes: &[Node], backlog: Backlog, at: usize, bytes: u32) {
        if u64::from(bytes) != self.length && measure == Measure::Bytes {
            // Unless it is the only one, there are several lengths now.
            self.length = if backlog.packets == 1 { bytes.into() } else { MIXED };
        }
        match self.counts {
            Counts::Nothing => {}
            Counts::Packets if at < Fullest::MOST && self.packets_say_it(measure) => {
                self.by_packets.grew(at, nodes[at].own.packets as usize);
            }
            Counts::Packets => self.count_in_heap(measure, nodes),
            Counts::Heap => self.heap.grew(at as u32, nodes[at].rank(measure, at)),
        }
    }

    /// A node's queue has one packet less.
    #[inline]
    pub(super) fn shrank(&mut self, nodes: &[Node], backlog: Backlog, at: usize) {
        match self.counts {
            Counts::Nothing => return,
            Counts::Packets => self.by_packets.shrank(at, nodes[at].own.packets as usize),
            Counts::Heap => {}
        }
        // With many nodes the heap goes on: asking all of them again would cost more.
        if backlog.packets == 0 && nodes.len() <= Fullest::MOST {
            self.counts = Counts::Nothing;
        }
    }

    /// The first of the largest.
    #[inline]
    fn first(&mut self, measure: Measure, nodes: &[Node]) -> usize {
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
        first.expect("packets are held")
    }

    /// The nodes have other numbers.
    pub(super) fn recount(&mut self) {
        self.by_packets.clear();
        self.heap.clear();
        self.counts = Counts::Nothing;
    }

    /// Nothing is backlog.
    pub(super) fn clear(&mut self) {
        self.recount();
        self.length = MIXED;
    }

    #[cold]
    fn begin(&mut self, measure: Measure, nodes: &[Node]) {
        if nodes.len() > Fullest::MOST || !self.packets_say_it(measure) {
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
            self.heap.grew(at as u32, node.rank(measure, at));
        }
    }

    /// Whether the most packets are the most of what is measured.
    #[inline]
    fn packets_say_it(&self, measure: Measure) -> bool {
        measure == Measure::Packets || self.length != MIXED
    }
}

impl Measure {
    #[inline]
    fn of(self, backlog: Backlog) -> u64 {
        match self {
            Measure::Bytes => backlog.bytes,
            Measure::Packets => backlog.packets,
        }
    }
}

impl Node {
    /// Its queue; of equal ones the node that was created first ranks higher.
    #[inline]
    fn rank(&self, measure: Measure, at: usize) -> Rank {
        Rank { length: measure.of(self.own), ticket: at as u64 }
    }
}
