//! Sub-queues of a link, by where its packets go afterwards: the tree of burst shaping queueing (Darlagiannis, Karsten and
//! Steinmetz 2003), with the orders in which it is served and the victims that it can name.
//!
//! The root stands for the neighbour; a child stands for a next hop beyond its parent, down to a depth. Each node has a queue of
//! its own, for the packets that end there or that are not followed any further, and all of them share one slab.
//!
//! Branches are made when a packet asks for them, and stay. When there are too many, those that hold nothing go, all at once,
//! and the others keep their order: who is served next does not depend on it, since empty branches have no turn.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FlowMap, Fullest, LongestQueue, Rank, Turn, Turns};
use crate::cx::{Cx, DropReason};
use crate::packet::{Ahead, FlowKey, Packet};
use crate::qdisc::{Backlog, FlowTable, Onward};
use crate::store::{List, Place, Slots};
use crate::units::Rate;

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
    onward: Onward,
    /// In the order of their creation; the root comes first.
    nodes: Vec<Node>,
    /// The branch of a node towards a next hop: see [`branch`].
    branches: FlowMap<NonZeroU32>,
    packets: Slots<Held<P>>,
    /// All packets in the order of arrival.
    arrivals: List,
    largest: Largest,
    /// When to look for branches without packets.
    full: usize,
    /// The most nodes that there ever were.
    most: usize,
}

#[derive(Debug)]
struct Held<P> {
    pkt: Packet<P>,
    node: u32,
}

#[derive(Debug, Default)]
struct Node {
    /// Packets that go no further, or are not followed further.
    own: VecDeque<Place>,
    own_bytes: u64,
    /// With all that is below.
    held: Backlog,
    /// Place 0 is the own queue, place `i` the branch `children[i - 1]`.
    children: Vec<u32>,
    /// The places that hold packets, as soon as there are branches.
    turns: Turns,
    turn: Turn,
    /// Where turns are measured in bytes: the place that has the turn.
    visit: Option<u32>,
    /// The place that the listing's next look is at.
    look: u32,
    /// What the own queue gets.
    own_share: Share,
    /// What the node gets from its parent.
    share: Share,
    parent: u32,
    /// Its place at its parent.
    place: u32,
    depth: usize,
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

/// A weight of 1. Weights are rounded to a sixteenth.
const ONE: u64 = 16;

impl Default for Share {
    fn default() -> Share {
        Share { weight: ONE, deficit: 0 }
    }
}

/// A turn that a node gave, on the way to a packet.
#[derive(Clone, Copy, Default)]
struct Step {
    place: u32,
    /// Where the turns are then; none when the place still has the turn.
    turn: Option<Turn>,
}

type Way = [Step; Ahead::MOST];

impl<P> HopTree<P> {
    /// An empty tree, with room for so many packets before it first grows.
    pub fn new(shape: Shape, onward: Onward, packets: usize) -> HopTree<P> {
        let root = Node { hop: onward.neighbour, ..Node::default() };
        HopTree {
            shape: Shape { depth: shape.depth.min(Ahead::MOST), ..shape },
            onward,
            nodes: vec![root],
            branches: FlowMap::default(),
            packets: Slots::with_capacity(packets),
            arrivals: List::default(),
            largest: Largest::default(),
            full: shape.branches.max(2),
            most: 1,
        }
    }

    /// Puts a packet into the queue that it belongs to.
    #[inline]
    pub fn push(&mut self, pkt: Packet<P>) -> Place {
        if self.nodes.len() >= self.full {
            self.prune();
        }
        let at = self.find(pkt.meta.ahead);
        let bytes = pkt.bytes();
        let place = self.packets.push_back(&mut self.arrivals, Held { pkt, node: at as u32 });
        let node = &mut self.nodes[at];
        node.own.push_back(place);
        node.own_bytes += u64::from(bytes);
        if node.own.len() == 1 && !node.children.is_empty() {
            node.turns.wake(0, self.shape.inner.turns(node.own_share));
        }
        self.count_in(at, bytes);
        if let Some(measure) = self.shape.largest {
            self.largest.grew(measure, &self.nodes, at, bytes);
        }
        place
    }

    /// The packet that leaves next. Literal orders may give none although packets are held.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet<P>> {
        match self.shape.order {
            Order::Corrected | Order::Fifo if self.arrivals.is_empty() => None,
            Order::Corrected => {
                let mut way = Way::default();
                let at = self.choose(0, &mut way);
                self.give_turns(&way, at);
                Some(self.take(at, 0).1)
            }
            Order::Fifo => Some(self.take(self.oldest(), 0).1),
            // A look passes whether anything is held or not.
            Order::Literal | Order::Double => {
                let at = self.look(0)?;
                Some(self.take(at, 0).1)
            }
        }
    }

    /// Takes the packet that has to go, and says where it was: that is the place of the packet that came last, or another one.
    /// `draw` is uniform in 0 to 1.
    ///
    /// # Panics
    /// When nothing is held, or when the shape does not know the largest queue and it is asked for.
    pub fn evict(&mut self, pick: Pick, draw: impl FnOnce() -> f64) -> (Place, Packet<P>) {
        match pick {
            Pick::HeadOfLargest => {
                let at = self.largest();
                self.take(at, 0)
            }
            Pick::RandomInLargest => {
                let at = self.largest();
                let nth = nth_of(self.nodes[at].own.len() as u64, draw());
                self.take(at, nth as usize)
            }
            Pick::HeadOfHeaviest => self.take(self.heaviest(), 0),
            Pick::Next => self.take(self.next(), 0),
            Pick::Random => {
                let mut nth = nth_of(self.held().packets, draw());
                let mut at = 0;
                while nth >= self.nodes[at].own.len() as u64 {
                    nth -= self.nodes[at].own.len() as u64;
                    at += 1;
                }
                self.take(at, nth as usize)
            }
        }
    }

    /// What is held.
    #[inline]
    pub fn held(&self) -> Backlog {
        self.nodes[0].held
    }

    /// Gives every packet up, and forgets every branch.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some(Held { pkt, .. }) = self.packets.pop_front(&mut self.arrivals) {
            cx.drop(pkt, DropReason::Reset);
        }
        let hop = self.onward.neighbour;
        self.nodes.clear();
        self.nodes.push(Node { hop, ..Node::default() });
        self.branches.clear();
        self.largest = Largest::default();
        self.full = self.shape.branches.max(2);
    }

    /// The nodes, as state per flow. The places of packets are not counted.
    pub fn table(&self) -> FlowTable {
        let turns: u64 = self.nodes.iter().map(|node| node.turns.bytes()).sum();
        let children: usize = self.nodes.iter().map(|node| node.children.capacity()).sum();
        let table = self.branches.table();
        FlowTable {
            flows: self.nodes.len() as u64,
            most: self.most as u64,
            entry_bytes: table.entry_bytes + size_of::<Node>() as u32 + size_of::<u32>() as u32,
            bytes: table.bytes
                + turns
                + (children * size_of::<u32>() + self.nodes.capacity() * size_of::<Node>()) as u64,
        }
    }

    /// The node whose queue a packet belongs to; it and the branches on the way are made if they are not there yet.
    #[inline]
    fn find(&mut self, ahead: Ahead) -> usize {
        let mut at = 0;
        for hop in ahead.iter().take(self.shape.depth) {
            at = match self.branches.get(branch(at, hop)) {
                Some(child) => child.get() as usize,
                None => self.create(at, hop),
            };
        }
        at
    }

    #[cold]
    fn create(&mut self, parent: usize, hop: u16) -> usize {
        let index = self.nodes.len() as u32;
        let number = NonZeroU32::new(index).expect("the root is not created");
        self.branches.entry(branch(parent, hop), || number);
        let known = self.shape.weighted.then(|| self.onward.rate(self.nodes[parent].hop, hop)).flatten();
        let rate = known.filter(|rate| rate.as_bit() > 0);
        let node = &mut self.nodes[parent];
        node.children.push(index);
        if node.children.len() == 1 && !node.own.is_empty() {
            // Until now there was nobody to take turns with.
            node.turns.wake(0, self.shape.inner.turns(node.own_share));
        }
        let slower = rate.is_some_and(|rate| node.slowest.is_none_or(|slowest| rate < slowest));
        let slowest = if slower { rate } else { node.slowest };
        node.slowest = slowest;
        let child = Node {
            share: Share { weight: weight(rate, slowest), deficit: 0 },
            parent: parent as u32,
            place: node.children.len() as u32,
            depth: node.depth + 1,
            hop,
            rate,
            ..Node::default()
        };
        self.nodes.push(child);
        self.most = self.most.max(self.nodes.len());
        if slower {
            self.weigh(parent);
        }
        index as usize
    }

    /// The slowest link is another one: the weights of all branches are relative to it.
    fn weigh(&mut self, parent: usize) {
        let slowest = self.nodes[parent].slowest;
        for nth in 0..self.nodes[parent].children.len() {
            let child = self.nodes[parent].children[nth];
            let child = &mut self.nodes[child as usize];
            let (old, waits, place) = (child.share, child.held.packets > 0, child.place);
            child.share.weight = weight(child.rate, slowest);
            let new = child.share;
            if waits {
                let turns = &mut self.nodes[parent].turns;
                turns.sleep(place, self.shape.inner.turns(old));
                turns.wake(place, self.shape.inner.turns(new));
            }
        }
    }

    /// A packet more at a node and above it.
    #[inline]
    fn count_in(&mut self, mut at: usize, bytes: u32) {
        loop {
            let node = &mut self.nodes[at];
            node.held.add(bytes);
            if at == 0 {
                return;
            }
            let (first, place, share) = (node.held.packets == 1, node.place, node.share);
            at = node.parent as usize;
            if first {
                self.nodes[at].turns.wake(place, self.shape.inner.turns(share));
            }
        }
    }

    /// The node whose queue is served next, below a node that holds packets, and the way to it.
    #[inline]
    fn choose(&self, at: usize, way: &mut Way) -> usize {
        let node = &self.nodes[at];
        if node.children.is_empty() {
            return at;
        }
        if let Some(place) = node.visit {
            let chosen = self.choose_at(at, place, way);
            if u64::from(self.first_bytes(chosen)) <= self.share(at, place).deficit {
                way[node.depth] = Step { place, turn: None };
                return chosen;
            }
        }
        let (place, turn) = node.turns.next(node.turn, node.places()).expect("a place holds packets");
        way[node.depth] = Step { place, turn: Some(turn) };
        self.choose_at(at, place, way)
    }

    #[inline]
    fn choose_at(&self, at: usize, place: u32, way: &mut Way) -> usize {
        match place {
            0 => at,
            place => self.choose(self.nodes[at].children[place as usize - 1] as usize, way),
        }
    }

    /// Books the turns on the way to the queue whose first packet leaves now.
    #[inline]
    fn give_turns(&mut self, way: &Way, chosen: usize) {
        let bytes = u64::from(self.first_bytes(chosen));
        let mut at = 0;
        while !self.nodes[at].children.is_empty() {
            let Step { place, turn } = way[self.nodes[at].depth];
            if let Some(turn) = turn {
                self.nodes[at].turn = turn;
            }
            if self.shape.inner != Inner::Smooth {
                let allowance = self.shape.inner.allowance(self.shape.most, self.share(at, place));
                if turn.is_some() {
                    self.nodes[at].visit = Some(place);
                }
                let share = self.share_mut(at, place);
                if turn.is_some() {
                    share.deficit += allowance;
                }
                // A packet above the largest of the link is sent all the same, and takes what there is.
                share.deficit = share.deficit.saturating_sub(bytes);
            }
            match place {
                0 => return,
                place => at = self.nodes[at].children[place as usize - 1] as usize,
            }
        }
    }

    /// One look of the listing, at each node on the way. The next look is at the next place.
    fn look(&mut self, at: usize) -> Option<usize> {
        let node = &mut self.nodes[at];
        let (place, places) = (node.look, node.places());
        node.look = (place + 1) % places;
        if place == 0 {
            return (!node.own.is_empty()).then_some(at);
        }
        let child = node.children[place as usize - 1] as usize;
        let found = self.look(child)?;
        if self.shape.order == Order::Double {
            self.nodes[at].look = (place + 2) % places;
        }
        Some(found)
    }

    /// The node whose queue is served next, where packets are held. Nobody's turn passes.
    fn next(&self) -> usize {
        match self.shape.order {
            Order::Corrected => self.choose(0, &mut Way::default()),
            Order::Fifo => self.oldest(),
            Order::Literal | Order::Double => {
                let mut at = 0;
                loop {
                    let node = &self.nodes[at];
                    if node.children.is_empty() {
                        return at;
                    }
                    let place = node.turns.waiting_from(node.look).or_else(|| node.turns.waiting_from(0));
                    match place.expect("a place holds packets") {
                        0 => return at,
                        place => at = node.children[place as usize - 1] as usize,
                    }
                }
            }
        }
    }

    /// The node that has the oldest packet.
    fn oldest(&self) -> usize {
        self.packets.front(&self.arrivals).expect("packets are held").node as usize
    }

    /// The node with the largest queue.
    #[inline]
    fn largest(&mut self) -> usize {
        let measure = self.shape.largest.expect("the shape knows the largest queue");
        self.largest.first(measure, &self.nodes)
    }

    /// The node at the end of the largest parts.
    fn heaviest(&self) -> usize {
        let measure = self.shape.largest.unwrap_or_default();
        let mut at = 0;
        loop {
            let node = &self.nodes[at];
            let mut most = measure.of(node.own.len() as u64, node.own_bytes);
            let mut best = at;
            for child in node.children.iter().map(|child| *child as usize) {
                let held = self.nodes[child].held;
                if measure.of(held.packets, held.bytes) > most {
                    (best, most) = (child, measure.of(held.packets, held.bytes));
                }
            }
            if best == at {
                return at;
            }
            at = best;
        }
    }

    /// Takes a packet out of a queue: the oldest is the first.
    #[inline]
    fn take(&mut self, at: usize, nth: usize) -> (Place, Packet<P>) {
        let node = &mut self.nodes[at];
        let place = if nth == 0 { node.own.pop_front() } else { node.own.remove(nth) };
        let place = place.expect("the queue holds that packet");
        let Held { pkt, .. } = self.packets.remove(&mut self.arrivals, place);
        let bytes = pkt.bytes();
        node.own_bytes -= u64::from(bytes);
        if node.own.is_empty() && !node.children.is_empty() {
            node.turns.sleep(0, self.shape.inner.turns(node.own_share));
            node.end_visit(0);
            node.own_share.deficit = 0;
        }
        if self.shape.largest.is_some() {
            self.largest.shrank(&self.nodes, at);
        }
        self.count_out(at, bytes);
        (place, pkt)
    }

    /// A packet less at a node and above it. Who has none left keeps nothing for the next time.
    #[inline]
    fn count_out(&mut self, mut at: usize, bytes: u32) {
        loop {
            let node = &mut self.nodes[at];
            node.held.sub(bytes);
            if at == 0 {
                return;
            }
            let (last, place, share) = (node.held.packets == 0, node.place, node.share);
            let parent = node.parent as usize;
            if last {
                node.share.deficit = 0;
                self.nodes[parent].turns.sleep(place, self.shape.inner.turns(share));
                self.nodes[parent].end_visit(place);
            }
            at = parent;
        }
    }

    /// Forgets the branches that hold nothing. What stays is at most what packets are held, times the depth; the next time comes
    /// when there are twice as many nodes, so that nobody can make this happen with each packet.
    #[cold]
    fn prune(&mut self) {
        const GONE: u32 = u32::MAX;
        let mut renamed = Vec::with_capacity(self.nodes.len());
        let mut kept = 0;
        for (at, node) in self.nodes.iter().enumerate() {
            let stays = at == 0 || node.held.packets > 0;
            renamed.push(if stays { kept } else { GONE });
            kept += u32::from(stays);
        }
        for at in 0..self.nodes.len() {
            let children = std::mem::take(&mut self.nodes[at].children);
            let stays = |child: &u32| renamed[*child as usize] != GONE;
            // How many places stay before a place; the own queue always stays.
            let before =
                |place: u32| 1 + children.iter().take(place as usize - 1).filter(|child| stays(child)).count() as u32;
            let renumbered = |place: u32| if place == 0 { 0 } else { before(place) };
            let node = &mut self.nodes[at];
            node.turn = node.turn.renumbered(renumbered);
            node.visit = node.visit.map(renumbered);
            node.look = renumbered(node.look);
            node.children = children.iter().filter(|child| stays(child)).map(|child| renamed[*child as usize]).collect();
            node.look %= node.places();
            node.turns = Turns::default();
            if !node.own.is_empty() && !node.children.is_empty() {
                node.turns.wake(0, self.shape.inner.turns(node.own_share));
            }
            node.parent = renamed[node.parent as usize];
        }
        let mut at = 0;
        self.nodes.retain(|_| {
            at += 1;
            renamed[at - 1] != GONE
        });
        self.branches.clear();
        for parent in 0..self.nodes.len() {
            let children = self.nodes[parent].children.clone();
            let slowest = children.iter().filter_map(|child| self.nodes[*child as usize].rate).min();
            self.nodes[parent].slowest = slowest;
            for (place, child) in (1..).zip(children) {
                let node = &mut self.nodes[child as usize];
                node.place = place;
                node.share.weight = weight(node.rate, slowest);
                let (hop, share) = (node.hop, node.share);
                let number = NonZeroU32::new(child).expect("the root is nobody's branch");
                self.branches.entry(branch(parent, hop), || number);
                self.nodes[parent].turns.wake(place, self.shape.inner.turns(share));
            }
        }
        for (at, node) in self.nodes.iter().enumerate() {
            node.own.iter().for_each(|place| self.packets[*place].node = at as u32);
        }
        if self.shape.largest.is_some() {
            self.largest.recount(&self.nodes);
        }
        self.full = self.shape.branches.max(2).max(2 * self.nodes.len());
    }

    #[inline]
    fn first_bytes(&self, at: usize) -> u32 {
        let first = self.nodes[at].own.front().expect("the chosen queue holds a packet");
        self.packets[*first].pkt.bytes()
    }

    #[inline]
    fn share(&self, at: usize, place: u32) -> Share {
        match place {
            0 => self.nodes[at].own_share,
            place => self.nodes[self.nodes[at].children[place as usize - 1] as usize].share,
        }
    }

    #[inline]
    fn share_mut(&mut self, at: usize, place: u32) -> &mut Share {
        match place {
            0 => &mut self.nodes[at].own_share,
            place => {
                let child = self.nodes[at].children[place as usize - 1];
                &mut self.nodes[child as usize].share
            }
        }
    }
}

impl Node {
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

impl Measure {
    #[inline]
    fn of(self, packets: u64, bytes: u64) -> u64 {
        match self {
            Measure::Bytes => bytes,
            Measure::Packets => packets,
        }
    }
}

/// The branch of a node towards a next hop, as a key of the table.
#[inline]
fn branch(parent: usize, hop: u16) -> FlowKey {
    FlowKey((parent as u64) << 16 | u64::from(hop))
}

/// The rate of a link over the rate of the slowest one beside it; 1 where it is not known.
fn weight(rate: Option<Rate>, slowest: Option<Rate>) -> u64 {
    let (Some(rate), Some(slowest)) = (rate, slowest) else { return ONE };
    let sixteenths = (u128::from(ONE) * u128::from(rate.as_bit()) + u128::from(slowest.as_bit() / 2))
        / u128::from(slowest.as_bit());
    u64::try_from(sixteenths).unwrap_or(u64::MAX).clamp(1, Turns::MOST)
}

/// The number of one of `count` things, for a draw in 0 to 1.
fn nth_of(count: u64, draw: f64) -> u64 {
    ((draw * count as f64) as u64).min(count - 1)
}

/// Which queue is the largest.
///
/// While all packets have one length the most bytes are the most packets, and that is known in constant time. Only with
/// different lengths a heap is needed, until nothing is held again.
#[derive(Debug, Default)]
struct Largest {
    by_packets: Fullest,
    by_bytes: LongestQueue,
    lengths: Lengths,
}

/// The lengths of the packets since nothing was held.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Lengths {
    #[default]
    None,
    All(u32),
    Mixed,
}

impl Largest {
    /// A node's queue has one packet more. Its place in the heap is told, if the heap counts.
    #[inline]
    fn grew(&mut self, measure: Measure, nodes: &[Node], at: usize, bytes: u32) {
        self.by_packets.grew(at as u32, nodes[at].own.len());
        if measure == Measure::Packets {
            return;
        }
        match self.lengths {
            Lengths::All(length) if length == bytes => {}
            Lengths::None => self.lengths = Lengths::All(bytes),
            Lengths::All(_) => {
                self.lengths = Lengths::Mixed;
                self.tell_heap(nodes);
            }
            Lengths::Mixed => self.by_bytes.grew(at as u32, nodes[at].rank(at)),
        }
    }

    /// A node's queue has one packet less.
    #[inline]
    fn shrank(&mut self, nodes: &[Node], at: usize) {
        self.by_packets.shrank(at as u32, nodes[at].own.len());
        if self.by_packets.first().is_none() {
            self.lengths = Lengths::None;
        }
    }

    /// The first of the largest.
    #[inline]
    fn first(&mut self, measure: Measure, nodes: &[Node]) -> usize {
        let first = if measure == Measure::Bytes && self.lengths == Lengths::Mixed {
            self.by_bytes.longest(|at| {
                let node = &nodes[at as usize];
                (!node.own.is_empty()).then(|| node.rank(at as usize))
            })
        } else {
            self.by_packets.first()
        };
        first.expect("packets are held") as usize
    }

    /// The nodes have other numbers.
    fn recount(&mut self, nodes: &[Node]) {
        self.by_packets.clear();
        self.by_bytes.clear();
        for (at, node) in nodes.iter().enumerate() {
            (1..=node.own.len()).for_each(|packets| self.by_packets.grew(at as u32, packets));
        }
        if self.lengths == Lengths::Mixed {
            self.tell_heap(nodes);
        }
    }

    fn tell_heap(&mut self, nodes: &[Node]) {
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| !node.own.is_empty()) {
            self.by_bytes.grew(at as u32, node.rank(at));
        }
    }
}

impl Node {
    /// Its queue by bytes; of equal ones the node that was created first.
    #[inline]
    fn rank(&self, at: usize) -> Rank {
        Rank { length: self.own_bytes, ticket: at as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const SHAPE: Shape = Shape {
        depth: 1,
        order: Order::Corrected,
        inner: Inner::Smooth,
        weighted: true,
        most: 500,
        largest: Some(Measure::Bytes),
        branches: 1024,
    };

    /// Packets of 500 bytes, as "name hop hop": which nodes come after node 3, the neighbour.
    fn fill(tree: &mut HopTree<String>, arrivals: &str) {
        for arrival in arrivals.split(", ") {
            let mut words = arrival.split(' ');
            let name = words.next().unwrap().to_owned();
            let mut pkt = Packet::new(FlowKey(0), 500, name);
            pkt.meta.ahead = Ahead::new(words.map(|hop| hop.parse().unwrap()));
            tree.push(pkt);
        }
    }

    /// What leaves, in order; a dash where nothing does although something is held.
    fn drained(tree: &mut HopTree<String>) -> String {
        let mut names = Vec::new();
        while tree.held().packets > 0 {
            names.push(tree.pop().map_or("-".to_owned(), |pkt| pkt.payload));
        }
        names.join(" ")
    }

    fn served(shape: Shape, arrivals: &str) -> String {
        let mut tree = HopTree::new(shape, Onward::new(3, []), 0);
        fill(&mut tree, arrivals);
        drained(&mut tree)
    }

    /// Three next hops, and a packet for the neighbour itself.
    const NINE: &str = "a1 4, a2 4, a3 4, b1 5, b2 5, z1, c1 6, a4 4";

    #[test]
    fn every_place_in_its_turn() {
        assert_eq!(served(SHAPE, NINE), "z1 a1 b1 c1 a2 b2 a3 a4");
        for inner in [Inner::Deficit, Inner::Srr] {
            assert_eq!(served(Shape { inner, ..SHAPE }, NINE), "z1 a1 b1 c1 a2 b2 a3 a4");
        }
        assert_eq!(served(Shape { order: Order::Fifo, ..SHAPE }, NINE), "a1 a2 a3 b1 b2 z1 c1 a4");
        assert_eq!(served(Shape { depth: 0, ..SHAPE }, NINE), "a1 a2 a3 b1 b2 z1 c1 a4");
    }

    #[test]
    fn the_listing_as_it_is_written_finds_nothing_now_and_then() {
        let literal = Shape { order: Order::Literal, ..SHAPE };
        assert_eq!(served(literal, NINE), "z1 a1 b1 c1 - a2 b2 - - a3 - - - a4");
        let double = Shape { order: Order::Double, ..SHAPE };
        assert_eq!(served(double, NINE), "z1 a1 c1 a2 - - a3 - - a4 - - - b1 - - b2");
    }

    #[test]
    fn branches_have_branches() {
        let two_levels = "x1 4 7, x2 4 7, x3 4 8, y1 5, y2 5, y3 5, r1";
        assert_eq!(served(Shape { depth: 2, ..SHAPE }, two_levels), "r1 x1 y1 x3 y2 x2 y3");
        assert_eq!(served(SHAPE, two_levels), "r1 x1 y1 x2 y2 x3 y3");
    }

    #[test]
    fn faster_links_have_more_turns_but_not_in_a_row() {
        let served = |inner| {
            let onward = Onward::new(3, [((3, 4), Rate::mbit(20)), ((3, 5), Rate::mbit(10))]);
            let mut tree = HopTree::new(Shape { inner, ..SHAPE }, onward, 0);
            fill(&mut tree, "a1 4, a2 4, a3 4, a4 4, b1 5, b2 5");
            drained(&mut tree)
        };
        assert_eq!(served(Inner::Smooth), "a1 b1 a2 a3 b2 a4");
        assert_eq!(served(Inner::Srr), "a1 b1 a2 a3 b2 a4");
        assert_eq!(served(Inner::Deficit), "a1 a2 b1 a3 a4 b2");
    }

    #[test]
    fn a_slower_link_that_shows_up_late_makes_the_others_fast() {
        let rates = [((3, 4), Rate::mbit(40)), ((3, 5), Rate::mbit(20)), ((3, 6), Rate::mbit(10))];
        let mut tree = HopTree::new(SHAPE, Onward::new(3, rates), 0);
        let weights = |tree: &HopTree<String>| tree.nodes[1..].iter().map(|node| node.share.weight).collect::<Vec<_>>();
        fill(&mut tree, "a1 4, b1 5");
        assert_eq!(weights(&tree), [32, 16]);
        // The link to node 7 is not known.
        fill(&mut tree, "c1 6, d1 7");
        assert_eq!(weights(&tree), [64, 32, 16, 16]);
        assert_eq!(weight(Some(Rate::mbit(25)), Some(Rate::mbit(10))), 40);
    }

    #[test]
    fn victims() {
        let evicted = |pick, draw: f64, arrivals| {
            let mut tree = HopTree::new(SHAPE, Onward::new(3, []), 0);
            fill(&mut tree, arrivals);
            tree.evict(pick, || draw).1.payload
        };
        assert_eq!(evicted(Pick::HeadOfLargest, 0.0, NINE), "a1");
        // Two of each: the branch that was created first.
        assert_eq!(evicted(Pick::HeadOfLargest, 0.0, "a1 4, b1 5, b2 5, a2 4"), "a1");
        assert_eq!(evicted(Pick::RandomInLargest, 0.5, "a1 4, a2 4, a3 4, b1 5, c1 6"), "a2");
        assert_eq!(evicted(Pick::RandomInLargest, 0.99, NINE), "a4");
        // In the order of creation: the root, then 4, 5, 6.
        assert_eq!([0.0, 0.2, 0.7, 0.99].map(|draw| evicted(Pick::Random, draw, NINE)), ["z1", "a1", "b1", "c1"]);
        assert_eq!(evicted(Pick::Next, 0.0, NINE), "z1");
    }

    #[test]
    fn the_heaviest_branch_need_not_have_the_largest_queue() {
        let mut tree = HopTree::new(Shape { depth: 2, ..SHAPE }, Onward::default(), 0);
        fill(&mut tree, "x1 4 7, x2 4 8, x3 4 8, y1 5, y2 5, r1");
        assert_eq!(tree.evict(Pick::HeadOfHeaviest, || 0.0).1.payload, "x2");
        assert_eq!(tree.evict(Pick::HeadOfLargest, || 0.0).1.payload, "y1");
    }

    /// Runs of three to each next hop, of which the first has more: what goes to the neighbour in runs of three leaves one by
    /// one, until only the longest branch is left.
    #[test]
    fn runs_are_broken() {
        let arrivals: Vec<String> = (0..13)
            .flat_map(|run| std::iter::repeat_n([4, 5, 6, 4][run % 4], 3))
            .enumerate()
            .map(|(n, hop)| format!("{hop}-{n} {hop}"))
            .collect();
        let runs = |order| {
            let out = served(Shape { order, ..SHAPE }, &arrivals.join(", "));
            let hops: Vec<char> = out.split(' ').map(|name| name.chars().next().unwrap()).collect();
            hops.chunk_by(|a, b| a == b).map(<[char]>::len).collect::<Vec<_>>()
        };
        assert_eq!(runs(Order::Fifo), [3, 3, 3, 6, 3, 3, 6, 3, 3, 6]);
        let spread = runs(Order::Corrected);
        let (tail, before) = spread.split_last().unwrap();
        assert!(before.iter().all(|run| *run == 1) && before.len() == 27, "{spread:?}");
        assert_eq!(*tail, 12);
    }

    // -----------------------------------------------------------------------------------------------
    // The tale
    // -----------------------------------------------------------------------------------------------

    /// The sheet's tree, written as plainly as can be: every list is searched, every number is summed up when it is asked for.
    #[derive(Clone)]
    struct Tale {
        shape: Shape,
        onward: Onward,
        nodes: Vec<Branch>,
    }

    #[derive(Clone, Default)]
    struct Branch {
        hop: u16,
        /// Number and length.
        own: Vec<(u64, u32)>,
        children: Vec<usize>,
        cursor: usize,
        /// Of places, in order of need.
        deficits: BTreeMap<usize, u64>,
        visit: Option<usize>,
        /// Place in the weight spread sequence, and the places of its term that are still to come.
        term: u64,
        rest: Vec<usize>,
    }

    impl Tale {
        fn count(&self, at: usize, place: usize) -> usize {
            if place == 0 {
                return self.nodes[at].own.len();
            }
            let child = self.nodes[at].children[place - 1];
            (0..=self.nodes[child].children.len()).map(|place| self.count(child, place)).sum()
        }
        fn bytes(&self, at: usize) -> u64 {
            self.nodes[at].own.iter().map(|(_, bytes)| u64::from(*bytes)).sum()
        }
        fn bytes_below(&self, at: usize) -> u64 {
            self.bytes(at) + self.nodes[at].children.iter().map(|child| self.bytes_below(*child)).sum::<u64>()
        }
        fn packets_below(&self, at: usize) -> u64 {
            (0..=self.nodes[at].children.len()).map(|place| self.count(at, place) as u64).sum()
        }
        /// In sixteenths.
        fn weight(&self, at: usize, place: usize) -> u64 {
            let rate = |child: &usize| self.onward.rate(self.nodes[at].hop, self.nodes[*child].hop);
            let children = &self.nodes[at].children;
            if place == 0 || !self.shape.weighted {
                return 16;
            }
            let slowest = children.iter().filter_map(rate).min();
            match (rate(&children[place - 1]), slowest) {
                (Some(rate), Some(slowest)) => {
                    (16.0 * rate.as_bit() as f64 / slowest.as_bit() as f64).round() as u64
                }
                _ => 16,
            }
        }
        fn push(&mut self, ahead: &[u16], serial: u64, bytes: u32) {
            let mut at = 0;
            for hop in ahead.iter().take(self.shape.depth) {
                let found = self.nodes[at].children.iter().copied().find(|child| self.nodes[*child].hop == *hop);
                at = found.unwrap_or_else(|| {
                    let new = self.nodes.len();
                    self.nodes.push(Branch { hop: *hop, ..Branch::default() });
                    self.nodes[at].children.push(new);
                    new
                });
            }
            self.nodes[at].own.push((serial, bytes));
        }
        /// The next place that gets a turn.
        fn turn(&mut self, at: usize) -> usize {
            let places = self.nodes[at].children.len() + 1;
            let equal = self.shape.inner == Inner::Deficit || (0..places).all(|place| self.weight(at, place) == 16);
            if equal {
                // Starting at the cursor, cyclically, the first that is not empty; then the cursor goes behind it.
                let place = (0..places)
                    .map(|step| (self.nodes[at].cursor + step) % places)
                    .find(|place| self.count(at, *place) > 0)
                    .unwrap();
                self.nodes[at].cursor = (place + 1) % places;
                return place;
            }
            loop {
                let rest = std::mem::take(&mut self.nodes[at].rest);
                let mut rest = rest.into_iter();
                // Weights may have changed since the term began.
                let bit = |term: u64| 1 << (12 - term.trailing_zeros());
                let term = self.nodes[at].term;
                let found = rest.find(|place| self.count(at, *place) > 0 && self.weight(at, *place) & bit(term) != 0);
                self.nodes[at].rest = rest.collect();
                if let Some(place) = found {
                    return place;
                }
                self.nodes[at].term = if term + 1 == 1 << 13 { 1 } else { term + 1 };
                self.nodes[at].rest = (0..places).collect();
            }
        }
        fn pop_at(&mut self, at: usize) -> Option<(u64, u32)> {
            if self.packets_below(at) == 0 {
                return None;
            }
            if self.nodes[at].children.is_empty() {
                return Some(self.nodes[at].own.remove(0));
            }
            if self.shape.inner == Inner::Smooth {
                let place = self.turn(at);
                return self.pop_place(at, place);
            }
            loop {
                let place = match self.nodes[at].visit {
                    Some(place) => place,
                    None => {
                        let place = self.turn(at);
                        let weight = if self.shape.inner == Inner::Deficit { self.weight(at, place) } else { 16 };
                        *self.nodes[at].deficits.entry(place).or_default() += u64::from(self.shape.most) * weight / 16;
                        self.nodes[at].visit = Some(place);
                        place
                    }
                };
                let (_, bytes) = self.clone().pop_place(at, place).unwrap();
                let deficit = self.nodes[at].deficits.get_mut(&place).unwrap();
                if u64::from(bytes) <= *deficit {
                    *deficit -= u64::from(bytes);
                    let packet = self.pop_place(at, place);
                    self.forget();
                    return packet;
                }
                self.nodes[at].visit = None;
            }
        }
        fn pop_place(&mut self, at: usize, place: usize) -> Option<(u64, u32)> {
            match place {
                0 => Some(self.nodes[at].own.remove(0)),
                place => self.pop_at(self.nodes[at].children[place - 1]),
            }
        }
        /// Who is empty keeps no deficit and no turn.
        fn forget(&mut self) {
            for at in 0..self.nodes.len() {
                for place in 0..=self.nodes[at].children.len() {
                    if self.count(at, place) == 0 {
                        self.nodes[at].deficits.remove(&place);
                        self.nodes[at].visit = self.nodes[at].visit.filter(|visit| *visit != place);
                    }
                }
            }
        }
        fn look(&mut self, at: usize) -> Option<(u64, u32)> {
            let places = self.nodes[at].children.len() + 1;
            let place = self.nodes[at].cursor;
            let found = match place {
                0 if self.nodes[at].own.is_empty() => None,
                0 => Some(self.nodes[at].own.remove(0)),
                place => self.look(self.nodes[at].children[place - 1]),
            };
            let twice = self.shape.order == Order::Double && place > 0 && found.is_some();
            self.nodes[at].cursor = (place + 1 + usize::from(twice)) % places;
            found
        }
        fn pop(&mut self) -> Option<(u64, u32)> {
            match self.shape.order {
                Order::Corrected => self.pop_at(0),
                Order::Literal | Order::Double => self.look(0),
                Order::Fifo => {
                    let oldest = |node: &&mut Branch| node.own[0].0;
                    let first = self.nodes.iter_mut().filter(|node| !node.own.is_empty()).min_by_key(oldest)?;
                    Some(first.own.remove(0))
                }
            }
        }
        fn evict(&mut self, pick: Pick, draw: f64) -> u64 {
            let measure = |packets: usize, bytes: u64| match self.shape.largest {
                Some(Measure::Packets) => packets as u64,
                _ => bytes,
            };
            let own = |at: usize| measure(self.nodes[at].own.len(), self.bytes(at));
            let largest = || {
                let most = (0..self.nodes.len()).map(own).max().unwrap();
                (0..self.nodes.len()).find(|at| own(*at) == most).unwrap()
            };
            let (at, nth) = match pick {
                Pick::HeadOfLargest => (largest(), 0),
                Pick::RandomInLargest => {
                    let at = largest();
                    (at, (draw * self.nodes[at].own.len() as f64).floor() as usize)
                }
                Pick::HeadOfHeaviest => {
                    let mut at = 0;
                    loop {
                        let below = |child: usize| measure(self.packets_below(child) as usize, self.bytes_below(child));
                        let parts: Vec<(usize, u64)> = std::iter::once((at, own(at)))
                            .chain(self.nodes[at].children.iter().map(|child| (*child, below(*child))))
                            .collect();
                        let most = parts.iter().map(|(_, size)| *size).max().unwrap();
                        let (next, _) = parts.iter().find(|(_, size)| *size == most).unwrap();
                        if *next == at {
                            break (at, 0);
                        }
                        at = *next;
                    }
                }
                Pick::Next => {
                    let next = self.clone().pop().expect("only orders that always give a packet");
                    (0..self.nodes.len()).map(|at| (at, 0)).find(|(at, _)| self.nodes[*at].own.first() == Some(&next)).unwrap()
                }
                Pick::Random => {
                    let all: Vec<(usize, usize)> = (0..self.nodes.len())
                        .flat_map(|at| (0..self.nodes[at].own.len()).map(move |nth| (at, nth)))
                        .collect();
                    all[(draw * all.len() as f64).floor() as usize]
                }
            };
            let (serial, _) = self.nodes[at].own.remove(nth);
            self.forget();
            serial
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Push(Vec<u16>, u32),
        Pop,
        Evict(Pick, f64),
    }

    fn hops() -> impl Strategy<Value = Vec<u16>> {
        prop::collection::vec(1..4u16, 0..4)
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let bytes = prop_oneof![Just(500u32), 40..=500u32];
        let pick = prop::sample::select(&[
            Pick::HeadOfLargest,
            Pick::RandomInLargest,
            Pick::HeadOfHeaviest,
            Pick::Next,
            Pick::Random,
        ]);
        let op = prop_oneof![
            5 => (hops(), bytes).prop_map(|(hops, bytes)| Op::Push(hops, bytes)),
            3 => Just(Op::Pop),
            1 => (pick, 0.0..1.0f64).prop_map(|(pick, draw)| Op::Evict(pick, draw)),
        ];
        prop::collection::vec(op, 1..150)
    }

    /// Links between all the nodes that packets name, some of them not known.
    fn onward() -> impl Strategy<Value = Onward> {
        let rate = prop_oneof![2 => Just(None), 1 => (1..8u64).prop_map(Some)];
        prop::collection::vec(rate, 16).prop_map(|rates| {
            let link = |(n, rate): (u16, Option<u64>)| rate.map(|rate| ((n / 4, n % 4), Rate::mbit(rate)));
            Onward::new(0, (0..16).zip(rates).filter_map(link))
        })
    }

    fn packet(hops: &[u16], bytes: u32, serial: u64) -> Packet<u64> {
        let mut pkt = Packet::new(FlowKey(0), bytes, serial);
        pkt.meta.ahead = Ahead::new(hops.iter().copied());
        pkt
    }

    /// Every count is the sum of what it counts, and a place waits for its turn exactly while it holds packets.
    fn is_consistent(tree: &HopTree<u64>) {
        let sum = |a: Backlog, b: Backlog| a.plus(b);
        for (at, node) in tree.nodes.iter().enumerate() {
            let own = node.own.iter().map(|place| &tree.packets[*place]);
            let mut held = Backlog::ZERO;
            own.for_each(|item| {
                assert_eq!(item.node as usize, at);
                held.add(item.pkt.bytes());
            });
            assert_eq!((held.bytes, held.packets), (node.own_bytes, node.own.len() as u64));
            let below = node.children.iter().map(|child| tree.nodes[*child as usize].held).fold(held, sum);
            assert_eq!(node.held, below);
            for (place, child) in (1..).zip(&node.children) {
                let child = &tree.nodes[*child as usize];
                assert_eq!((child.parent as usize, child.place), (at, place));
                assert_eq!(node.turns.waiting_from(place) == Some(place), child.held.packets > 0);
            }
            if !node.children.is_empty() {
                assert_eq!(node.turns.waiting_from(0) == Some(0), !node.own.is_empty());
            }
            assert!(node.look < node.places());
        }
    }

    proptest! {
        /// Packet for packet and victim for victim, for any tree, weights and lengths.
        #[test]
        fn equals_the_tale(
            ops in ops(),
            onward in onward(),
            depth in 0..4usize,
            order in prop::sample::select(&[Order::Corrected, Order::Literal, Order::Double, Order::Fifo]),
            inner in prop::sample::select(&[Inner::Smooth, Inner::Deficit, Inner::Srr]),
            (weighted, by_packets) in any::<(bool, bool)>(),
        ) {
            let largest = Some(if by_packets { Measure::Packets } else { Measure::Bytes });
            let shape = Shape { depth, order, inner, weighted, largest, ..SHAPE };
            let mut tree = HopTree::new(shape, onward.clone(), 0);
            // Weights that a later, slower branch changes in the middle of a term are compared from the beginning.
            let mut tale = Tale { shape, onward, nodes: vec![Branch::default()] };
            if weighted && inner != Inner::Deficit {
                for hops in [vec![], vec![1], vec![2], vec![3]] {
                    for more in [vec![], vec![1], vec![2], vec![3]] {
                        for last in [vec![], vec![1], vec![2], vec![3]] {
                            let hops = [hops.clone(), more.clone(), last].concat();
                            tree.push(packet(&hops, 500, 0));
                            tree.evict(Pick::Random, || 0.0);
                            tale.push(&hops, 0, 500);
                            tale.evict(Pick::Random, 0.0);
                        }
                    }
                }
            }
            for (serial, op) in (1u64..).zip(ops) {
                match op {
                    Op::Push(hops, bytes) => {
                        tree.push(packet(&hops, bytes, serial));
                        tale.push(&hops, serial, bytes);
                    }
                    Op::Pop => {
                        let left = tale.pop().map(|(serial, _)| serial);
                        prop_assert_eq!(tree.pop().map(|pkt| pkt.payload), left);
                    }
                    Op::Evict(_, _) if tree.held().packets == 0 => {}
                    Op::Evict(Pick::Next, _) if matches!(order, Order::Literal | Order::Double) => {}
                    Op::Evict(pick, draw) => {
                        prop_assert_eq!(tree.evict(pick, || draw).1.payload, tale.evict(pick, draw));
                    }
                }
                is_consistent(&tree);
                prop_assert_eq!(tree.held().packets, tale.packets_below(0));
            }
        }

        /// Equal shares: while two places of a node have packets, none of them is served twice before the other; over any time in
        /// which both have, they differ by one packet at most. And packets of one way through the tree keep their order.
        #[test]
        fn places_take_turns(ops in ops(), depth in 1..4usize) {
            let shape = Shape { depth, weighted: false, ..SHAPE };
            let mut tree = HopTree::new(shape, Onward::default(), 0);
            // What each place of each node holds; a place is the way to it, which for an own queue ends in nothing.
            let mut held: BTreeMap<Vec<Option<u16>>, u64> = BTreeMap::new();
            let mut waiting: BTreeMap<u64, Vec<Option<u16>>> = BTreeMap::new();
            // By two places of one node: how far the first is ahead, and the least and most that it was.
            let mut apart: BTreeMap<[Vec<Option<u16>>; 2], (i64, i64, i64)> = BTreeMap::new();
            let mut last_of: BTreeMap<Vec<Option<u16>>, u64> = BTreeMap::new();
            let places = |way: &[Option<u16>]| (1..=way.len()).map(|end| way[..end].to_vec()).collect::<Vec<_>>();
            for (serial, op) in (1u64..).zip(ops) {
                let gone = match op {
                    Op::Push(hops, bytes) => {
                        let mut way: Vec<Option<u16>> = hops.iter().copied().take(depth).map(Some).collect();
                        way.push(None);
                        places(&way).into_iter().for_each(|place| *held.entry(place).or_default() += 1);
                        waiting.insert(serial, way);
                        tree.push(packet(&hops, bytes, serial));
                        continue;
                    }
                    Op::Pop => {
                        let Some(pkt) = tree.pop() else { continue };
                        let way = &waiting[&pkt.payload];
                        prop_assert!(last_of.insert(way.clone(), pkt.payload).is_none_or(|last| last < pkt.payload));
                        for place in places(way) {
                            let node = &place[..place.len() - 1];
                            let others = held.iter().filter(|(other, packets)| {
                                **packets > 0 && **other != place && other.len() == place.len() && other.starts_with(node)
                            });
                            for (other, _) in others {
                                let (first, second) = (place.clone().min(other.clone()), place.clone().max(other.clone()));
                                let step = if first == place { 1 } else { -1 };
                                let (now, least, most) = apart.entry([first, second]).or_default();
                                *now += step;
                                (*least, *most) = ((*least).min(*now), (*most).max(*now));
                                prop_assert!(*most - *least <= 1, "{place:?} is {now} packets ahead");
                            }
                        }
                        pkt.payload
                    }
                    Op::Evict(_, _) if tree.held().packets == 0 => continue,
                    Op::Evict(pick, draw) => tree.evict(pick, || draw).1.payload,
                };
                for place in places(&waiting.remove(&gone).unwrap()) {
                    let packets = held.get_mut(&place).unwrap();
                    *packets -= 1;
                    if *packets == 0 {
                        apart.retain(|pair, _| !pair.contains(&place));
                    }
                }
            }
        }

        /// A place of weight w has w turns for each of a place of weight 1, and the same bytes where turns are bytes.
        #[test]
        fn turns_are_shared_by_weight(rates in prop::collection::vec(1..8u64, 1..4), order in any::<prop::sample::Index>()) {
            let inner = [Inner::Smooth, Inner::Deficit, Inner::Srr][order.index(3)];
            let links = (1u16..).zip(&rates).map(|(hop, rate)| ((0, hop), Rate::mbit(*rate)));
            let mut tree = HopTree::new(Shape { inner, ..SHAPE }, Onward::new(0, links), 0);
            for serial in 0..3000u64 {
                tree.push(packet(&[1 + serial as u16 % rates.len() as u16], 500, serial));
            }
            // So many whole sequences that no rounding is seen, and nobody runs out of packets.
            let mut sent = vec![0.0; rates.len()];
            for _ in 0..900 {
                sent[tree.pop().unwrap().payload as usize % rates.len()] += 1.0;
            }
            let all: u64 = rates.iter().sum();
            for (sent, rate) in sent.iter().zip(&rates) {
                let share = 900.0 * *rate as f64 / all as f64;
                prop_assert!((sent - share).abs() < 0.04 * 900.0, "{sent} of {share}");
            }
        }

        /// When branches are forgotten, what is held leaves as if they had not been.
        #[test]
        fn forgetting_empty_branches_changes_no_order(
            ops in ops(),
            known in prop::collection::vec((0..4u16, 0..4u16), 0..8),
            depth in 1..4usize,
            order in prop::sample::select(&[Order::Corrected, Order::Fifo]),
            inner in prop::sample::select(&[Inner::Smooth, Inner::Deficit, Inner::Srr]),
        ) {
            // Equal rates: a slowest branch that is forgotten would change the weights of the others.
            let equal = Onward::new(0, known.iter().map(|ends| (*ends, Rate::mbit(1))));
            let shape = Shape { depth, order, inner, ..SHAPE };
            let mut trees = [(); 2].map(|()| HopTree::new(shape, equal.clone(), 0));
            for (serial, op) in (0u64..).zip(ops) {
                for tree in &mut trees {
                    match &op {
                        Op::Push(hops, bytes) => drop(tree.push(packet(hops, *bytes, serial))),
                        Op::Pop => drop(tree.pop()),
                        Op::Evict(pick, draw) if tree.held().packets > 0 => drop(tree.evict(*pick, || *draw)),
                        Op::Evict(_, _) => {}
                    }
                }
            }
            let [whole, forgetful] = &mut trees;
            forgetful.prune();
            is_consistent(forgetful);
            prop_assert!(forgetful.nodes[1..].iter().all(|node| node.held.packets > 0));
            while let Some(left) = whole.pop() {
                prop_assert_eq!(forgetful.pop().map(|pkt| pkt.payload), Some(left.payload));
                if whole.held().packets > 0 {
                    let victims = [&mut *whole, &mut *forgetful].map(|tree| tree.evict(Pick::HeadOfLargest, || 0.0).1.payload);
                    prop_assert_eq!(victims[0], victims[1]);
                }
            }
            prop_assert_eq!(forgetful.held(), Backlog::ZERO);
        }

        /// A flood of next hops does not grow the tree beyond what is held.
        #[test]
        fn a_flood_of_next_hops_is_forgotten(ops in prop::collection::vec(any::<bool>(), 1..400), depth in 1..4usize) {
            let mut tree = HopTree::new(Shape { depth, branches: 8, ..SHAPE }, Onward::default(), 0);
            let mut most = 0;
            for (serial, push) in (0u16..).zip(ops) {
                if push {
                    tree.push(packet(&[serial; 3], 500, 0));
                } else {
                    drop(tree.pop());
                }
                is_consistent(&tree);
                most = most.max(tree.held().packets as usize);
                prop_assert!(tree.nodes.len() <= (8 + depth).max(2 * (depth * most + 1) + depth));
                prop_assert_eq!(tree.table().flows, tree.nodes.len() as u64);
            }
        }
    }

    #[test]
    fn a_reset_tree_is_new() {
        let mut tree = HopTree::new(SHAPE, Onward::new(3, []), 0);
        fill(&mut tree, NINE);
        let mut out = crate::cx::Outbox::default();
        tree.reset(&mut Cx::new(crate::Time::ZERO, &mut out));
        assert_eq!((out.dropped.len(), tree.held(), tree.table().flows), (8, Backlog::ZERO, 1));
        fill(&mut tree, NINE);
        assert_eq!(drained(&mut tree), "z1 a1 b1 c1 a2 b2 a3 a4");
    }
}
