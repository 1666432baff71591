//! Sub-queues of a link, by where its packets go afterwards: the tree of burst shaping queueing (Darlagiannis, Karsten and
//! Steinmetz 2003), with the orders in which it is served and the victims that it can name.
//!
//! The root stands for the neighbour; a child stands for a next hop beyond its parent, down to a depth. Each node has a queue of
//! its own, for the packets that end there or that are not followed any further, and all of them share one slab.
//!
//! How branches come and go is in `branches.rs`, who is served next in `order.rs`, who has the most in `largest.rs`.

mod branches;
mod largest;
mod order;

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::largest::Largest;
use super::{FlowMap, Turn, Turns};
use crate::cx::{Cx, DropReason};
use crate::packet::{NextHops, Packet};
use crate::qdisc::{Backlog, Downstream, FlowTable, Next};
use crate::store::{List, Place, Slots};
use crate::units::{Rate, Time};

/// In what order a tree gives its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Round robin at each node, over its own queue and its branches. What is empty has no turn.
    #[default]
    Corrected,
    /// As the paper's listing reads: one look per node, and the next look is at the next place. A look at an empty place gives
    /// nothing.
    Literal,
    /// The same, with the listing's second advance after a branch that gave a packet.
    Double,
    /// In the order of arrival, whatever the branches.
    Fifo,
}

/// How a node shares its turns among its own queue and its branches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Inner {
    /// A packet per turn, turns by weight, spread out.
    #[default]
    Smooth,
    /// Deficit round robin: the largest packet of the link times the weight, in bytes, per turn.
    Deficit,
    /// Smoothed round robin: the largest packet of the link, in bytes, per turn; turns by weight, spread out.
    Srr,
}

/// What makes a queue the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// The most bytes.
    #[default]
    Bytes,
    /// The most packets.
    Packets,
}

/// Which packet has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The oldest of the largest queue: the queue of one node, without its branches.
    HeadOfLargest,
    /// Any of the largest queue.
    RandomInLargest,
    /// The oldest of the queue that is reached from the root by going to the largest part of each node: its queue, or a branch
    /// with all that is below it.
    HeadOfHeaviest,
    /// The oldest of the queue that would be served next.
    Next,
    /// Any at all.
    Random,
}

/// What a tree is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many hops beyond the neighbour have branches.
    pub depth: usize,
    /// In what order packets leave.
    pub order: Order,
    /// How turns are shared.
    pub inner: Inner,
    /// Whether weights follow from the rates of links, where they are known.
    pub weighted: bool,
    /// The largest packet of the link, in bytes.
    pub most: u32,
    /// What makes a queue the largest; none when nobody will ask.
    pub largest: Option<Measure>,
    /// Above so many nodes, branches without packets go.
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
    /// Where packets wait, by the first hops of their way: found at once, whatever the depth.
    ways: FlowMap<NonZeroU32>,
    packets: Slots<Packet<P>>,
    backlog: Backlog,
    arrivals: Arrivals,
    largest: Largest,
    /// How many nodes there are when branches without packets are forgotten.
    full: usize,
    /// Nodes that were forgotten: their memory is used again.
    spare: Vec<Node>,
    /// For the new numbers of nodes when some are forgotten.
    renamed: Vec<u32>,
    /// For what is held at each node and below.
    sums: Vec<u64>,
    /// The most nodes that there ever were.
    most: usize,
}

/// Where packets wait, in the order of their arrival. Only [`Order::Fifo`] needs to know.
#[derive(Debug)]
struct Arrivals {
    /// By node. Things come and go here as packets do, so that the places are the same.
    nodes: Slots<u32>,
    order: List,
}

#[derive(Debug, Default)]
struct Node {
    /// Packets that go no further, or are not followed further.
    queue: List,
    /// What its queue holds.
    own: Backlog,
    /// Place 0 is the own queue, place `i` the branch `children[i - 1]`.
    children: Vec<u32>,
    /// The places that hold packets, as soon as there are branches.
    turns: Turns,
    turn: Turn,
    /// Where turns are measured in bytes: the place that has the turn.
    visit: Option<u32>,
    /// The place that the listing's next look is at.
    look: u32,
    parent: u32,
    /// Its place at its parent.
    place: u32,
    /// What the own queue gets.
    own_share: Share,
    /// What the node gets from its parent.
    share: Share,
    hop: u16,
    /// Of the link to it, where it is known.
    rate: Option<Rate>,
    /// Of the slowest link to a branch.
    slowest: Option<Rate>,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    /// In units of [`ONE`].
    weight: u64,
    /// What it may send before its next turn, in bytes.
    deficit: u64,
}

/// For so many ways there is room from the beginning.
const WAYS: usize = 256;

/// A weight of 1. Weights are rounded to a sixteenth.
const ONE: u64 = 16;

impl Default for Share {
    fn default() -> Share {
        Share { weight: ONE, deficit: 0 }
    }
}

impl<P> HopTree<P> {
    /// An empty tree, with room for so many packets before it first grows.
    pub fn new(shape: Shape, downstream: Downstream, packets: usize) -> HopTree<P> {
        let root = Node { hop: downstream.neighbour, ..Node::default() };
        let arrivals = if shape.order == Order::Fifo { packets } else { 0 };
        HopTree {
            shape: Shape { depth: shape.depth.min(NextHops::MOST), ..shape },
            downstream,
            nodes: vec![root],
            branches: FlowMap::default(),
            // With much more room than ways, hardly any two are at one slot, and no look-up has to try the next one.
            ways: FlowMap::with_capacity(WAYS),
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

    /// Puts a packet into the queue that it belongs to.
    #[inline]
    pub fn push(&mut self, pkt: Packet<P>) -> Place {
        if self.nodes.len() >= self.full {
            self.prune();
        }
        let at = self.find(pkt.meta.next_hops);
        self.count_in(at, pkt.bytes());
        let place = self.packets.push_back(&mut self.nodes[at].queue, pkt);
        if self.shape.order == Order::Fifo {
            let same = self.arrivals.nodes.push_back(&mut self.arrivals.order, at as u32);
            debug_assert_eq!(same, place, "a packet has one place");
        }
        place
    }

    /// The packet that leaves next. Literal orders may find none although packets are held: then they look again at `again`.
    #[inline]
    pub fn pop(&mut self, again: Time) -> Next<P> {
        let at = match self.shape.order {
            Order::Corrected | Order::Fifo if self.backlog().packets == 0 => return Next::Empty,
            Order::Corrected => self.give_turns(),
            Order::Fifo => self.oldest(),
            // A look passes whether anything is held or not.
            Order::Literal | Order::Double => match self.look(0) {
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

    /// Takes the packet that has to go, and says where it was: that is the place of the packet that came last, or another one.
    /// `draw` is uniform in 0 to 1.
    ///
    /// # Panics
    /// When nothing is held, or when the shape does not know the largest queue and it is asked for.
    pub fn evict(&mut self, pick: Pick, draw: impl FnOnce() -> f64) -> (Place, Packet<P>) {
        let (at, nth) = match pick {
            Pick::HeadOfLargest => (self.largest(), 0),
            Pick::RandomInLargest => {
                let at = self.largest();
                (at, nth_of(self.nodes[at].own.packets, draw()))
            }
            Pick::HeadOfHeaviest => (self.heaviest(), 0),
            Pick::Next => (self.next(), 0),
            Pick::Random => {
                let mut nth = nth_of(self.backlog().packets, draw());
                let mut at = 0;
                while nth >= self.nodes[at].own.packets {
                    nth -= self.nodes[at].own.packets;
                    at += 1;
                }
                (at, nth)
            }
        };
        let place =
            self.packets.nth_place(&self.nodes[at].queue, nth as usize).expect("the queue holds that packet");
        let pkt = self.packets.remove(&mut self.nodes[at].queue, place);
        self.count_out(at, place, pkt.bytes());
        (place, pkt)
    }

    /// What is held.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Gives every packet up, queue by queue or in the order of arrival, and forgets every branch.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some(at) = self.arrivals.nodes.pop_front(&mut self.arrivals.order) {
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
        self.ways.clear();
        self.backlog = Backlog::ZERO;
        self.largest.clear();
        self.full = self.shape.branches.max(2);
    }

    /// The nodes, as state per flow.
    pub fn table(&self) -> FlowTable {
        let turns: u64 = self.nodes.iter().map(|node| node.turns.bytes()).sum();
        let children: usize = self.nodes.iter().map(|node| node.children.capacity()).sum();
        let (table, ways) = (self.branches.table(), self.ways.table());
        FlowTable {
            flows: self.nodes.len() as u64,
            most: self.most as u64,
            entry_bytes: table.entry_bytes
                + ways.entry_bytes
                + size_of::<Node>() as u32
                + size_of::<u32>() as u32,
            bytes: table.bytes
                + ways.bytes
                + turns
                + (children * size_of::<u32>() + self.nodes.capacity() * size_of::<Node>()) as u64,
        }
    }

    /// A packet more in the queue of a node. Whoever had none begins to wait for turns, and so on upwards.
    #[inline]
    fn count_in(&mut self, at: usize, bytes: u32) {
        self.backlog.add(bytes);
        let node = &mut self.nodes[at];
        node.own.add(bytes);
        if node.own.packets == 1 {
            self.wake(at);
        }
        if let Some(measure) = self.shape.largest {
            self.largest.grew(measure, &self.nodes, self.backlog, at, bytes);
        }
    }

    /// A packet less in the queue of a node.
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
        if self.shape.order == Order::Fifo {
            self.arrivals.nodes.remove(&mut self.arrivals.order, place);
        }
    }

    /// The queue of a node holds packets now.
    #[inline(never)]
    fn wake(&mut self, at: usize) {
        let Some((mut at, mut place, mut share)) = self.own_place(at) else { return };
        loop {
            let node = &mut self.nodes[at];
            let waited = node.turns.any();
            node.turns.wake(place, self.shape.inner.turns(share));
            // Where others waited already, the node itself has its turns above.
            if waited || at == 0 {
                return;
            }
            (at, place, share) = (node.parent as usize, node.place, node.share);
        }
    }

    /// The queue of a node holds no packets any more. Who has none left keeps nothing for the next time.
    #[inline(never)]
    fn sleep(&mut self, at: usize) {
        // Also where the branches that it took turns with have been forgotten meanwhile.
        let emptied = &mut self.nodes[at];
        emptied.own_share.deficit = 0;
        emptied.end_visit(0);
        let Some((mut at, mut place, mut share)) = self.own_place(at) else { return };
        loop {
            self.share_mut(at, place).deficit = 0;
            let node = &mut self.nodes[at];
            node.turns.sleep(place, self.shape.inner.turns(share));
            node.end_visit(place);
            if node.turns.any() || at == 0 {
                return;
            }
            (at, place, share) = (node.parent as usize, node.place, node.share);
        }
    }

    /// Where the queue of a node has its turns, which place that is and what it gets: at the node itself, or where the node has
    /// no branches, at its parent. The root alone has no turns.
    #[inline]
    fn own_place(&self, at: usize) -> Option<(usize, u32, Share)> {
        let node = &self.nodes[at];
        if !node.children.is_empty() {
            return Some((at, 0, node.own_share));
        }
        (at != 0).then_some((node.parent as usize, node.place, node.share))
    }

    /// Where the first packet of a queue is that holds one.
    #[inline]
    fn first(&self, at: usize) -> Place {
        self.packets.front_place(&self.nodes[at].queue).expect("the queue holds a packet")
    }
}

impl Node {
    /// Whether it or anything below holds packets.
    #[inline]
    fn holds(&self) -> bool {
        self.own.packets > 0 || self.turns.any()
    }

    /// How many places it has: its own queue and its branches.
    #[inline]
    fn places(&self) -> u32 {
        self.children.len() as u32 + 1
    }

    #[inline]
    fn end_visit(&mut self, place: u32) {
        if self.visit == Some(place) {
            self.visit = None;
        }
    }
}

impl Inner {
    /// The weight by which turns are given.
    #[inline]
    fn turns(self, share: Share) -> u64 {
        match self {
            Inner::Smooth | Inner::Srr => share.weight,
            Inner::Deficit => ONE,
        }
    }

    /// What a turn allows, in bytes.
    #[inline]
    fn allowance(self, most: u32, share: Share) -> u64 {
        match self {
            Inner::Smooth | Inner::Srr => u64::from(most),
            Inner::Deficit => u64::from(most) * share.weight / ONE,
        }
    }
}

/// The number of one of `count` things, for a draw in 0 to 1.
fn nth_of(count: u64, draw: f64) -> u64 {
    ((draw * count as f64) as u64).min(count - 1)
}

#[cfg(test)]
mod tests;
