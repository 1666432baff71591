//! Sub-queues of a link, by where its packets go afterwards: the tree of burst shaping queueing (Darlagiannis, Karsten and
//! Steinmetz 2003), with the orders in which it is served and the victims that it can name.
//!
//! The root stands for the neighbour; a child stands for a next hop beyond its parent, down to a depth. Each node has a queue of
//! its own, for the packets that end there or that are not followed any further, and all of them share one slab.
//!
//! Branches are made when a packet asks for them, and stay. When there are too many, those that hold nothing go, all at once,
//! and the others keep their order: who is served next does not depend on it, since empty branches have no turn.

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
    /// How many nodes there are when branches without packets are forgotten.
    full: usize,
    /// Nodes that were forgotten: their memory is used again.
    spare: Vec<Node>,
    /// For the new numbers of nodes when some are forgotten.
    renamed: Vec<u32>,
    /// The most nodes that there ever were.
    most: usize,
}

#[derive(Debug)]
struct Held<P> {
    pkt: Packet<P>,
    /// In whose queue it is, and its neighbours there.
    node: u32,
    before: Option<Place>,
    behind: Option<Place>,
}

#[derive(Debug, Default)]
struct Node {
    /// Its queue: packets that go no further, or are not followed further.
    first: Option<Place>,
    last: Option<Place>,
    own: Backlog,
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
            largest: Largest { by_packets: Fullest::with_capacity(packets), ..Largest::default() },
            full: shape.branches.max(2),
            spare: Vec::new(),
            renamed: Vec::new(),
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
        let node = &mut self.nodes[at];
        let item = Held { pkt, node: at as u32, before: node.last, behind: None };
        let place = self.packets.push_back(&mut self.arrivals, item);
        match node.last.replace(place) {
            Some(last) => self.packets[last].behind = Some(place),
            None => node.first = Some(place),
        }
        node.own.add(bytes);
        if node.own.packets == 1 && !node.children.is_empty() {
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
                let nth = nth_of(self.nodes[at].own.packets, draw());
                self.take(at, nth)
            }
            Pick::HeadOfHeaviest => self.take(self.heaviest(), 0),
            Pick::Next => self.take(self.next(), 0),
            Pick::Random => {
                let mut nth = nth_of(self.held().packets, draw());
                let mut at = 0;
                while nth >= self.nodes[at].own.packets {
                    nth -= self.nodes[at].own.packets;
                    at += 1;
                }
                self.take(at, nth)
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
        self.largest.clear();
        self.full = self.shape.branches.max(2);
    }

    /// The nodes, as state per flow.
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
        if node.children.len() == 1 && node.own.packets > 0 {
            // Until now there was nobody to take turns with.
            node.turns.wake(0, self.shape.inner.turns(node.own_share));
        }
        let slower = rate.is_some_and(|rate| node.slowest.is_none_or(|slowest| rate < slowest));
        let slowest = if slower { rate } else { node.slowest };
        node.slowest = slowest;
        let (place, depth) = (node.children.len() as u32, node.depth + 1);
        // What is spare has no branches and no packets, but room for them.
        let Node { children, turns, .. } = self.spare.pop().unwrap_or_default();
        let share = Share { weight: weight(rate, slowest), deficit: 0 };
        let above = parent as u32;
        self.nodes.push(Node {
            children,
            turns,
            share,
            parent: above,
            place,
            depth,
            hop,
            rate,
            ..Node::default()
        });
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
            return (node.own.packets > 0).then_some(at);
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
            let mut most = measure.of(node.own);
            let mut best = at;
            for child in node.children.iter().map(|child| *child as usize) {
                let size = measure.of(self.nodes[child].held);
                if size > most {
                    (best, most) = (child, size);
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
    fn take(&mut self, at: usize, nth: u64) -> (Place, Packet<P>) {
        let place = self.nth(at, nth);
        let Held { pkt, before, behind, .. } = self.packets.remove(&mut self.arrivals, place);
        let bytes = pkt.bytes();
        let node = &mut self.nodes[at];
        match before {
            Some(before) => self.packets[before].behind = behind,
            None => node.first = behind,
        }
        match behind {
            Some(behind) => self.packets[behind].before = before,
            None => node.last = before,
        }
        node.own.sub(bytes);
        if node.own.packets == 0 && !node.children.is_empty() {
            node.turns.sleep(0, self.shape.inner.turns(node.own_share));
            node.end_visit(0);
            node.own_share.deficit = 0;
        }
        self.count_out(at, bytes);
        if self.shape.largest.is_some() {
            self.largest.shrank(&self.nodes, at);
        }
        (place, pkt)
    }

    /// Where a packet of a queue is, from the nearer end.
    #[inline]
    fn nth(&self, at: usize, nth: u64) -> Place {
        let node = &self.nodes[at];
        let from_first = 2 * nth < node.own.packets;
        let (mut place, steps) =
            if from_first { (node.first, nth) } else { (node.last, node.own.packets - 1 - nth) };
        for _ in 0..steps {
            let item = &self.packets[place.expect("the queue holds that packet")];
            place = if from_first { item.behind } else { item.before };
        }
        place.expect("the queue holds that packet")
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
        let HopTree { nodes, branches, packets, renamed, spare, shape, .. } = self;
        renamed.clear();
        let mut kept = 0;
        for (at, node) in nodes.iter().enumerate() {
            let stays = at == 0 || node.held.packets > 0;
            renamed.push(if stays { kept } else { GONE });
            kept += u32::from(stays);
        }
        let stays = |child: &u32| renamed[*child as usize] != GONE;
        for node in nodes.iter_mut() {
            let children = &node.children;
            // Places are counted from the own queue, which always stays.
            let renumbered = |place: u32| {
                let before = children.iter().take((place as usize).saturating_sub(1));
                place.min(1) + before.filter(|child| stays(child)).count() as u32
            };
            node.turn = node.turn.renumbered(renumbered);
            node.visit = node.visit.map(renumbered);
            node.look = renumbered(node.look);
            node.children.retain(stays);
            node.children.iter_mut().for_each(|child| *child = renamed[*child as usize]);
            node.look %= node.places();
            node.parent = renamed[node.parent as usize];
            node.turns.clear();
            if node.own.packets > 0 && !node.children.is_empty() {
                node.turns.wake(0, shape.inner.turns(node.own_share));
            }
        }
        let mut next = 0;
        for (at, name) in renamed.iter().enumerate() {
            if *name != GONE {
                nodes.swap(next, at);
                next += 1;
            }
        }
        spare.extend(nodes.drain(next..));
        branches.clear();
        for parent in 0..nodes.len() {
            let children = std::mem::take(&mut nodes[parent].children);
            let slowest = children.iter().filter_map(|child| nodes[*child as usize].rate).min();
            for (place, child) in (1..).zip(&children) {
                let node = &mut nodes[*child as usize];
                node.place = place;
                node.share.weight = weight(node.rate, slowest);
                let (hop, share) = (node.hop, node.share);
                let number = NonZeroU32::new(*child).expect("the root is nobody's branch");
                branches.entry(branch(parent, hop), || number);
                nodes[parent].turns.wake(place, shape.inner.turns(share));
            }
            nodes[parent].slowest = slowest;
            nodes[parent].children = children;
        }
        for (at, node) in (0..).zip(nodes.iter()) {
            let mut place = node.first;
            while let Some(each) = place {
                packets[each].node = at;
                place = packets[each].behind;
            }
        }
        if let Some(measure) = shape.largest {
            self.largest.recount(measure, nodes);
        }
        self.full = self.shape.branches.max(2).max(2 * self.nodes.len());
    }

    #[inline]
    fn first_bytes(&self, at: usize) -> u32 {
        let first = self.nodes[at].first.expect("the chosen queue holds a packet");
        self.packets[first].pkt.bytes()
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
    fn of(self, held: Backlog) -> u64 {
        match self {
            Measure::Bytes => held.bytes,
            Measure::Packets => held.packets,
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
/// While all packets have one length the most bytes are the most packets, and that is known in constant time for as many queues
/// as [`Fullest`] takes. Otherwise a heap counts, until nothing is held again.
#[derive(Debug, Default)]
struct Largest {
    by_packets: Fullest,
    heap: LongestQueue,
    counts: Counts,
}

/// What knows the largest queue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counts {
    /// The counts of packets, which all have this length where it matters; zero when nothing is held.
    Packets(u32),
    Heap,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts::Packets(0)
    }
}

impl Largest {
    /// A node's queue has one packet more.
    #[inline]
    fn grew(&mut self, measure: Measure, nodes: &[Node], at: usize, bytes: u32) {
        match self.counts {
            Counts::Packets(length)
                if at < Fullest::MOST && (length == bytes || length == 0 || measure == Measure::Packets) =>
            {
                self.counts = Counts::Packets(bytes);
                self.by_packets.grew(at, nodes[at].own.packets as usize);
            }
            Counts::Packets(_) => {
                self.by_packets.clear();
                self.counts = Counts::Heap;
                self.tell_heap(measure, nodes);
            }
            Counts::Heap => self.heap.grew(at as u32, nodes[at].rank(measure, at)),
        }
    }

    /// A node's queue has one packet less.
    #[inline]
    fn shrank(&mut self, nodes: &[Node], at: usize) {
        if self.counts != Counts::Heap {
            self.by_packets.shrank(at, nodes[at].own.packets as usize);
        }
        // With many nodes the heap goes on: counting would hardly last.
        if nodes[0].held == Backlog::ZERO && nodes.len() <= Fullest::MOST {
            self.counts = Counts::default();
        }
    }

    /// The first of the largest.
    #[inline]
    fn first(&mut self, measure: Measure, nodes: &[Node]) -> usize {
        let first = match self.counts {
            Counts::Packets(_) => self.by_packets.first(),
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
    fn recount(&mut self, measure: Measure, nodes: &[Node]) {
        self.clear();
        self.counts = Counts::Heap;
        self.tell_heap(measure, nodes);
    }

    fn clear(&mut self) {
        self.by_packets.clear();
        self.heap.clear();
        self.counts = Counts::default();
    }

    fn tell_heap(&mut self, measure: Measure, nodes: &[Node]) {
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.own.packets > 0) {
            self.heap.grew(at as u32, node.rank(measure, at));
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

#[cfg(test)]
mod tests;
