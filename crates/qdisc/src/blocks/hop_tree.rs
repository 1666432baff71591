//! Sub-queues of a link by the next hops of its packets: the tree of burst shaping queueing (Darlagiannis,
//! Karsten and Steinmetz 2003), with its service orders and drop policies.
//!
//! The root stands for the neighbour, and a child for a next hop after its parent, down to a depth. Each node
//! has a queue for the packets whose listed route ends there. All queues share one slab.
//!
//! `node.rs` has the state of a node, `branches.rs` creates and removes branches, `order.rs` selects the next
//! packet, `evict.rs` selects a packet to drop, and `largest.rs` finds the largest queue.

mod branches;
mod evict;
mod largest;
mod node;
mod order;

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::evict::Pick;
use self::largest::Largest;
pub use self::largest::Measure;
use self::node::{Node, ONE, Share};
use super::FlowMap;
use crate::backlog::Backlog;
use crate::cx::{Cx, DropReason};
use crate::packet::{NextHops, Packet};
use crate::qdisc::{Downstream, FlowTable, Next};
use crate::store::{List, Place, Slots};
use crate::units::Time;

/// Service order of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServiceOrder {
    /// Round robin at each node over its own queue and its branches. Empty ones are skipped.
    #[default]
    Corrected,
    /// As in the paper's listing: each node inspects one place per call, and the next place at the next call.
    /// An empty place yields no packet.
    Literal,
    /// As in the paper's listing, with its second advance after a branch that yielded a packet.
    Double,
    /// Order of arrival, regardless of branches.
    Fifo,
}

/// Division of the turns of a node among its own queue and its branches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Inner {
    /// A packet per turn; turns in proportion to weights, spread out.
    #[default]
    Smooth,
    /// Deficit round robin: a turn has the bytes of the largest packet of the link, times the weight.
    Deficit,
    /// Smoothed round robin: a turn has the bytes of the largest packet of the link; turns in proportion to
    /// weights, spread out.
    Srr,
}

/// Parameters of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of next hops after the neighbour that have branches.
    pub depth: usize,
    /// Service order.
    pub order: ServiceOrder,
    /// Division of turns.
    pub inner: Inner,
    /// True if weights follow from the rates of links, as far as these are known.
    pub weighted: bool,
    /// The largest packet of the link, in bytes.
    pub most: u32,
    /// Measure of the largest queue; `None` if the largest queue is never requested.
    pub largest: Option<Measure>,
    /// Number of nodes above which empty branches are removed.
    pub branches: usize,
}

/// The tree.
#[derive(Debug)]
pub struct HopTree<P> {
    shape: Shape,
    downstream: Downstream,
    /// In the order of their creation; the root comes first.
    nodes: Vec<Node>,
    /// The branch of a node towards a next hop.
    branches: FlowMap<NonZeroU32>,
    /// Node of each list of first hops: one look-up at any depth.
    routes: FlowMap<NonZeroU32>,
    packets: Slots<Packet<P>>,
    backlog: Backlog,
    arrivals: Arrivals,
    largest: Largest,
    /// Number of nodes at which empty branches are removed.
    full: usize,
    /// Removed nodes, whose memory is used again.
    spare: Vec<Node>,
    /// Buffer for the new numbers of nodes while branches are removed.
    renamed: Vec<u32>,
    /// Buffer for the backlog of each node and of everything below.
    sums: Vec<u64>,
    /// Largest number of nodes so far.
    most: usize,
}

/// Node of each packet in the order of arrival, for [`ServiceOrder::Fifo`] only.
#[derive(Debug)]
struct Arrivals {
    /// Node of each packet. Entries come and go with the packets, so a packet has the same place in both
    /// slabs.
    nodes: Slots<u32>,
    order: List,
}

/// Initial capacity of the table of routes.
const ROUTES: usize = 256;

impl<P> HopTree<P> {
    /// An empty tree with capacity for `packets` packets. It grows on demand.
    pub fn new(shape: Shape, downstream: Downstream, packets: usize) -> HopTree<P> {
        let root = Node { hop: downstream.neighbour, ..Node::default() };
        let arrivals = if shape.order == ServiceOrder::Fifo { packets } else { 0 };
        HopTree {
            shape: Shape { depth: shape.depth.min(NextHops::MAX), ..shape },
            downstream,
            nodes: vec![root],
            branches: FlowMap::default(),
            // The table is much larger than the number of routes, so that hardly any look-up has to probe a
            // second slot.
            routes: FlowMap::with_capacity(ROUTES),
            packets: Slots::with_capacity(packets),
            backlog: Backlog::ZERO,
            arrivals: Arrivals { nodes: Slots::with_capacity(arrivals), order: List::default() },
            largest: Largest::with_capacity(packets),
            full: shape.branches.max(2),
            spare: Vec::new(),
            renamed: Vec::new(),
            sums: Vec::new(),
            most: 1,
        }
    }

    /// Enqueues a packet in the queue of its route.
    #[inline]
    pub fn push(&mut self, pkt: Packet<P>) -> Place {
        if self.nodes.len() >= self.full {
            self.prune();
        }
        let at = self.find(pkt.meta.next_hops);
        self.count_in(at, pkt.bytes());
        let place = self.packets.push_back(&mut self.nodes[at].queue, pkt);
        if self.shape.order == ServiceOrder::Fifo {
            let same = self.arrivals.nodes.push_back(&mut self.arrivals.order, at as u32);
            debug_assert_eq!(same, place, "a packet has one place");
        }
        place
    }

    /// Dequeues the next packet. The literal orders may find none although there is a backlog; they then
    /// return `again` as the time of the next call.
    #[inline]
    pub fn pop(&mut self, again: Time) -> Next<P> {
        let at = match self.shape.order {
            ServiceOrder::Corrected | ServiceOrder::Fifo if self.backlog().packets == 0 => {
                return Next::Empty;
            }
            ServiceOrder::Corrected => self.give_turns(),
            ServiceOrder::Fifo => self.oldest(),
            // The position advances even if there is no packet.
            ServiceOrder::Literal | ServiceOrder::Double => match self.look(0) {
                Some(at) => at,
                None if self.backlog().packets == 0 => return Next::Empty,
                None => return Next::At(again),
            },
        };
        let first = self.first(at);
        let pkt = self.packets.remove(&mut self.nodes[at].queue, first);
        self.count_out(at, first, pkt.bytes());
        Next::Packet(pkt)
    }

    /// Packets and bytes in the tree.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Drops all packets, queue by queue or in the order of arrival, and removes all branches.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some(at) = self.arrivals.nodes.pop_front(&mut self.arrivals.order) {
            // In the order of arrival the oldest packet is always the first of its own queue.
            let first = self.packets.pop_front(&mut self.nodes[at as usize].queue);
            cx.drop(first.expect("the oldest packet is the first of its queue"), DropReason::Reset);
        }
        for node in &mut self.nodes {
            while let Some(pkt) = self.packets.pop_front(&mut node.queue) {
                cx.drop(pkt, DropReason::Reset);
            }
        }
        let hop = self.downstream.neighbour;
        self.nodes.clear();
        self.nodes.push(Node { hop, ..Node::default() });
        self.branches.clear();
        self.routes.clear();
        self.backlog = Backlog::ZERO;
        self.largest.clear();
        self.full = self.shape.branches.max(2);
    }

    /// Size of the state: a node counts as a flow.
    pub fn table(&self) -> FlowTable {
        let turns: u64 = self.nodes.iter().map(|node| node.turns.bytes()).sum();
        let children: usize = self.nodes.iter().map(|node| node.children.capacity()).sum();
        let (table, routes) = (self.branches.table(), self.routes.table());
        FlowTable {
            flows: self.nodes.len() as u64,
            most: self.most as u64,
            entry_bytes: table.entry_bytes
                + routes.entry_bytes
                + size_of::<Node>() as u32
                + size_of::<u32>() as u32,
            bytes: table.bytes
                + routes.bytes
                + turns
                + (children * size_of::<u32>() + self.nodes.capacity() * size_of::<Node>()) as u64,
        }
    }

    /// Counts a packet that joins the queue of a node. A node that was empty joins the turns of its parent,
    /// and so on upwards.
    #[inline]
    fn count_in(&mut self, at: usize, bytes: u32) {
        self.backlog.add(bytes);
        let node = &mut self.nodes[at];
        node.own.add(bytes);
        // The first packet of the queue: it was not in the turns before.
        if node.own.packets == 1 {
            self.wake(at);
        }
        if let Some(measure) = self.shape.largest {
            self.largest.grew(measure, &self.nodes, self.backlog, at, bytes);
        }
    }

    /// Counts a packet that leaves the queue of a node.
    #[inline]
    fn count_out(&mut self, at: usize, place: Place, bytes: u32) {
        self.backlog.sub(bytes);
        let node = &mut self.nodes[at];
        node.own.sub(bytes);
        if node.own.packets == 0 {
            self.sleep(at);
        }
        if self.shape.largest.is_some() {
            self.largest.shrank(&self.nodes, self.backlog, at);
        }
        if self.shape.order == ServiceOrder::Fifo {
            self.arrivals.nodes.remove(&mut self.arrivals.order, place);
        }
    }

    /// The queue of a node becomes backlogged: it joins the turns.
    #[inline(never)]
    fn wake(&mut self, at: usize) {
        let Some((mut at, mut place, mut share)) = self.own_place(at) else { return };
        loop {
            let node = &mut self.nodes[at];
            let waited = node.turns.any();
            node.turns.wake(place, self.shape.inner.turns(share));
            // A node that already had a backlogged place takes part in the turns above.
            if waited || at == 0 {
                return;
            }
            (at, place, share) = (node.parent as usize, node.place, node.share);
        }
    }

    /// The queue of a node becomes empty: it leaves the turns, and its deficit is reset.
    #[inline(never)]
    fn sleep(&mut self, at: usize) {
        // Also reset if the branches with which it shared turns have been removed meanwhile.
        let emptied = &mut self.nodes[at];
        emptied.own_share.deficit = 0;
        emptied.end_visit(0);
        let Some((mut at, mut place, mut share)) = self.own_place(at) else { return };
        loop {
            self.share_mut(at, place).deficit = 0;
            let node = &mut self.nodes[at];
            node.turns.sleep(place, self.shape.inner.turns(share));
            node.end_visit(place);
            // A node with another backlogged place stays in the turns above.
            if node.turns.any() || at == 0 {
                return;
            }
            (at, place, share) = (node.parent as usize, node.place, node.share);
        }
    }

    /// Node, place and share with which the queue of `at` takes turns: at the node itself, or at its parent
    /// if the node has no branches. A root without branches has no turns.
    #[inline]
    fn own_place(&self, at: usize) -> Option<(usize, u32, Share)> {
        let node = &self.nodes[at];
        if !node.children.is_empty() {
            return Some((at, 0, node.own_share));
        }
        (at != 0).then_some((node.parent as usize, node.place, node.share))
    }

    /// Place of the first packet of a queue that is not empty.
    #[inline]
    fn first(&self, at: usize) -> Place {
        self.packets.front_place(&self.nodes[at].queue).expect("the queue has a packet")
    }
}

impl Inner {
    /// Weight of a place in the order of turns.
    #[inline]
    fn turns(self, share: Share) -> u64 {
        match self {
            Inner::Smooth | Inner::Srr => share.weight,
            Inner::Deficit => ONE,
        }
    }

    /// Bytes of a turn.
    #[inline]
    fn allowance(self, most: u32, share: Share) -> u64 {
        match self {
            Inner::Smooth | Inner::Srr => u64::from(most),
            Inner::Deficit => u64::from(most) * share.weight / ONE,
        }
    }
}

#[cfg(test)]
mod tests;
