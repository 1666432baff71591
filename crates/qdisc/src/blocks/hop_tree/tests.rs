use super::branches::weight;
use super::*;
use crate::packet::FlowKey;
use crate::units::Rate;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SHAPE: Shape = Shape {
    depth: 1,
    order: ServiceOrder::Corrected,
    inner: Inner::Smooth,
    weighted: true,
    most: 500,
    largest: Some(Measure::Bytes),
    branches: 1024,
};

/// Packets of 500 bytes, written as "name hop hop" with the nodes after node 3, the neighbour.
fn fill(tree: &mut HopTree<String>, arrivals: &str) {
    for arrival in arrivals.split(", ") {
        let mut words = arrival.split(' ');
        let name = words.next().unwrap().to_owned();
        let mut pkt = Packet::new(FlowKey(0), 500, name);
        pkt.meta.next_hops = NextHops::new(words.map(|hop| hop.parse().unwrap()));
        tree.push(pkt);
    }
}

/// Dequeues a packet. With a backlog, a literal order that finds no packet returns the time of the next call.
fn popped<P>(tree: &mut HopTree<P>) -> Option<Packet<P>> {
    let again = Time::ms(7);
    match tree.pop(again) {
        Next::Packet(pkt) => Some(pkt),
        Next::At(at) => {
            assert!(at == again && tree.backlog().packets > 0);
            None
        }
        Next::Empty => {
            assert_eq!(tree.backlog(), Backlog::ZERO);
            None
        }
    }
}

/// Departures in order, with a dash for each call that finds no packet although there is a backlog.
fn drained(tree: &mut HopTree<String>) -> String {
    let mut names = Vec::new();
    while tree.backlog().packets > 0 {
        names.push(popped(tree).map_or("-".to_owned(), |pkt| pkt.payload));
    }
    names.join(" ")
}

fn served(shape: Shape, arrivals: &str) -> String {
    let mut tree = HopTree::new(shape, Downstream::new(3, []), 0);
    fill(&mut tree, arrivals);
    drained(&mut tree)
}

/// Packets for three next hops, and one for the neighbour itself.
const NINE: &str = "a1 4, a2 4, a3 4, b1 5, b2 5, z1, c1 6, a4 4";

#[test]
fn places_are_served_in_turn() {
    assert_eq!(served(SHAPE, NINE), "z1 a1 b1 c1 a2 b2 a3 a4");
    for inner in [Inner::Deficit, Inner::Srr] {
        assert_eq!(served(Shape { inner, ..SHAPE }, NINE), "z1 a1 b1 c1 a2 b2 a3 a4");
    }
    assert_eq!(served(Shape { order: ServiceOrder::Fifo, ..SHAPE }, NINE), "a1 a2 a3 b1 b2 z1 c1 a4");
    assert_eq!(served(Shape { depth: 0, ..SHAPE }, NINE), "a1 a2 a3 b1 b2 z1 c1 a4");
}

#[test]
fn the_literal_listing_sometimes_finds_no_packet() {
    let literal = Shape { order: ServiceOrder::Literal, ..SHAPE };
    assert_eq!(served(literal, NINE), "z1 a1 b1 c1 - a2 b2 - - a3 - - - a4");
    let double = Shape { order: ServiceOrder::Double, ..SHAPE };
    assert_eq!(served(double, NINE), "z1 a1 c1 a2 - - a3 - - a4 - - - b1 - - b2");
}

#[test]
fn branches_have_branches() {
    let two_levels = "x1 4 7, x2 4 7, x3 4 8, y1 5, y2 5, y3 5, r1";
    assert_eq!(served(Shape { depth: 2, ..SHAPE }, two_levels), "r1 x1 y1 x3 y2 x2 y3");
    assert_eq!(served(SHAPE, two_levels), "r1 x1 y1 x2 y2 x3 y3");
}

#[test]
fn faster_links_have_more_turns_spread_out() {
    let served = |inner| {
        let downstream = Downstream::new(3, [((3, 4), Rate::mbit(20)), ((3, 5), Rate::mbit(10))]);
        let mut tree = HopTree::new(Shape { inner, ..SHAPE }, downstream, 0);
        fill(&mut tree, "a1 4, a2 4, a3 4, a4 4, b1 5, b2 5");
        drained(&mut tree)
    };
    assert_eq!(served(Inner::Smooth), "a1 b1 a2 a3 b2 a4");
    assert_eq!(served(Inner::Srr), "a1 b1 a2 a3 b2 a4");
    assert_eq!(served(Inner::Deficit), "a1 a2 b1 a3 a4 b2");
}

#[test]
fn a_later_slower_link_raises_the_weights_of_the_others() {
    let rates = [((3, 4), Rate::mbit(40)), ((3, 5), Rate::mbit(20)), ((3, 6), Rate::mbit(10))];
    let mut tree = HopTree::new(SHAPE, Downstream::new(3, rates), 0);
    let weights =
        |tree: &HopTree<String>| tree.nodes[1..].iter().map(|node| node.share.weight).collect::<Vec<_>>();
    fill(&mut tree, "a1 4, b1 5");
    assert_eq!(weights(&tree), [32, 16]);
    // The link to node 7 is unknown.
    fill(&mut tree, "c1 6, d1 7");
    assert_eq!(weights(&tree), [64, 32, 16, 16]);
    assert_eq!(weight(Some(Rate::mbit(25)), Some(Rate::mbit(10))), 40);
}

#[test]
fn each_pick_selects_its_packet() {
    let evicted = |pick, draw: f64, arrivals| {
        let mut tree = HopTree::new(SHAPE, Downstream::new(3, []), 0);
        fill(&mut tree, arrivals);
        tree.evict(pick, || draw).1.payload
    };
    assert_eq!(evicted(Pick::HeadOfLargest, 0.0, NINE), "a1");
    // With two packets in each branch, the one that was created first is the largest.
    assert_eq!(evicted(Pick::HeadOfLargest, 0.0, "a1 4, b1 5, b2 5, a2 4"), "a1");
    assert_eq!(evicted(Pick::RandomInLargest, 0.5, "a1 4, a2 4, a3 4, b1 5, c1 6"), "a2");
    assert_eq!(evicted(Pick::RandomInLargest, 0.99, NINE), "a4");
    // In the order of creation: the root, then 4, 5, 6.
    assert_eq!([0.0, 0.2, 0.7, 0.99].map(|draw| evicted(Pick::Random, draw, NINE)), ["z1", "a1", "b1", "c1"]);
    assert_eq!(evicted(Pick::Next, 0.0, NINE), "z1");
}

#[test]
fn the_heaviest_branch_need_not_have_the_largest_queue() {
    let mut tree = HopTree::new(Shape { depth: 2, ..SHAPE }, Downstream::default(), 0);
    fill(&mut tree, "x1 4 7, x2 4 8, x3 4 8, y1 5, y2 5, r1");
    assert_eq!(tree.evict(Pick::HeadOfHeaviest, || 0.0).1.payload, "x2");
    assert_eq!(tree.evict(Pick::HeadOfLargest, || 0.0).1.payload, "y1");
}

/// Packets arrive in runs of three to each next hop, and the first next hop has more packets. They leave one
/// by one in turn, until only the longest branch is left.
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
    assert_eq!(runs(ServiceOrder::Fifo), [3, 3, 3, 6, 3, 3, 6, 3, 3, 6]);
    let spread = runs(ServiceOrder::Corrected);
    let (tail, before) = spread.split_last().unwrap();
    assert!(before.iter().all(|run| *run == 1) && before.len() == 27, "{spread:?}");
    assert_eq!(*tail, 12);
}

// -----------------------------------------------------------------------------------------------
// Reference
// -----------------------------------------------------------------------------------------------

/// A simple tree as a reference: it searches every list, and computes every sum when it is needed.
#[derive(Clone)]
struct Reference {
    shape: Shape,
    downstream: Downstream,
    nodes: Vec<Branch>,
}

#[derive(Clone, Default)]
struct Branch {
    hop: u16,
    /// Number and length of each packet.
    own: Vec<(u64, u32)>,
    children: Vec<usize>,
    cursor: usize,
    /// Shares of places, created on demand.
    deficits: BTreeMap<usize, u64>,
    visit: Option<usize>,
    /// Position in the weight spread sequence, and the remaining places of its term.
    term: u64,
    rest: Vec<usize>,
}

impl Reference {
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
    /// Weight in sixteenths.
    fn weight(&self, at: usize, place: usize) -> u64 {
        let rate = |child: &usize| self.downstream.rate(self.nodes[at].hop, self.nodes[*child].hop);
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
    /// Returns the next place with a turn.
    fn turn(&mut self, at: usize) -> usize {
        let places = self.nodes[at].children.len() + 1;
        let equal =
            self.shape.inner == Inner::Deficit || (0..places).all(|place| self.weight(at, place) == 16);
        if equal {
            // The first place from the cursor on, cyclically, that is not empty; the cursor moves behind it.
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
            let found =
                rest.find(|place| self.count(at, *place) > 0 && self.weight(at, *place) & bit(term) != 0);
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
                    *self.nodes[at].deficits.entry(place).or_default() +=
                        u64::from(self.shape.most) * weight / 16;
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
    /// Resets the deficit and the turn of empty places.
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
        let twice = self.shape.order == ServiceOrder::Double && place > 0 && found.is_some();
        self.nodes[at].cursor = (place + 1 + usize::from(twice)) % places;
        found
    }
    fn pop(&mut self) -> Option<(u64, u32)> {
        match self.shape.order {
            ServiceOrder::Corrected => self.pop_at(0),
            ServiceOrder::Literal | ServiceOrder::Double => self.look(0),
            ServiceOrder::Fifo => {
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
                    let below =
                        |child: usize| measure(self.packets_below(child) as usize, self.bytes_below(child));
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
                let next = self.clone().pop().expect("the order always finds a packet");
                (0..self.nodes.len())
                    .map(|at| (at, 0))
                    .find(|(at, _)| self.nodes[*at].own.first() == Some(&next))
                    .unwrap()
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
    prop::collection::vec(1..5u16, 0..4)
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

/// Links between all nodes of the packets' routes; some of them are unknown.
fn downstream() -> impl Strategy<Value = Downstream> {
    let rate = prop_oneof![2 => Just(None), 1 => (1..8u64).prop_map(Some)];
    prop::collection::vec(rate, 16).prop_map(|rates| {
        let link = |(n, rate): (u16, Option<u64>)| rate.map(|rate| ((n / 4, n % 4), Rate::mbit(rate)));
        Downstream::new(0, (0..16).zip(rates).filter_map(link))
    })
}

fn packet(hops: &[u16], bytes: u32, serial: u64) -> Packet<u64> {
    let mut pkt = Packet::new(FlowKey(0), bytes, serial);
    pkt.meta.next_hops = NextHops::new(hops.iter().copied());
    pkt
}

/// A place of the tree: next hops, with none at the end for the own queue of a node.
type Spot = Vec<Option<u16>>;

/// True if a node or any node below it has packets.
fn holds(tree: &HopTree<u64>, node: &Node) -> bool {
    node.own.packets > 0 || node.children.iter().any(|child| holds(tree, &tree.nodes[*child as usize]))
}

/// Checks that every counter equals its sum, and that a place has turns exactly while it has packets.
fn is_consistent(tree: &HopTree<u64>) {
    let mut all = Backlog::ZERO;
    for (at, node) in tree.nodes.iter().enumerate() {
        let mut queued = Backlog::ZERO;
        tree.packets.iter(&node.queue).for_each(|pkt| queued.add(pkt.bytes()));
        assert_eq!(queued, node.own);
        all = all.plus(queued);
        for (place, child) in (1..).zip(&node.children) {
            let child = &tree.nodes[*child as usize];
            assert_eq!((child.parent as usize, child.place), (at, place));
            assert_eq!(node.turns.waiting_from(place) == Some(place), holds(tree, child));
        }
        if !node.children.is_empty() {
            assert_eq!(node.turns.waiting_from(0) == Some(0), node.own.packets > 0);
        }
        assert!(node.look < node.places());
        if tree.shape.order == ServiceOrder::Fifo {
            let arrived = tree.arrivals.nodes.iter(&tree.arrivals.order).filter(|each| **each as usize == at);
            assert_eq!(arrived.count() as u64, node.own.packets);
        }
    }
    assert_eq!(tree.backlog(), all);
    // Without requests the index is empty.
    assert!(tree.shape.order == ServiceOrder::Fifo || tree.arrivals.order.is_empty());
}

proptest! {
    /// Departures and drops equal the reference's, for any tree, weights and lengths.
    #[test]
    fn equals_the_reference(
        ops in ops(),
        downstream in downstream(),
        depth in 0..4usize,
        order in prop::sample::select(&[ServiceOrder::Corrected, ServiceOrder::Literal, ServiceOrder::Double, ServiceOrder::Fifo]),
        inner in prop::sample::select(&[Inner::Smooth, Inner::Deficit, Inner::Srr]),
        (weighted, by_packets) in any::<(bool, bool)>(),
    ) {
        let largest = Some(if by_packets { Measure::Packets } else { Measure::Bytes });
        let shape = Shape { depth, order, inner, weighted, largest, ..SHAPE };
        let mut tree = HopTree::new(shape, downstream.clone(), 0);
        // The comparison restarts when a later, slower branch changes weights in the middle of a term.
        let mut reference = Reference { shape, downstream, nodes: vec![Branch::default()] };
        if weighted && inner != Inner::Deficit {
            // Four branches per node and three levels: more queues than the index by packets has.
            for n in 0..5u16 * 5 * 5 {
                let hops: Vec<u16> = [n / 25, n / 5 % 5, n % 5].into_iter().filter(|hop| *hop > 0).collect();
                tree.push(packet(&hops, 500, 0));
                tree.evict(Pick::Random, || 0.0);
                reference.push(&hops, 0, 500);
                reference.evict(Pick::Random, 0.0);
            }
        }
        for (serial, op) in (1u64..).zip(ops) {
            match op {
                Op::Push(hops, bytes) => {
                    tree.push(packet(&hops, bytes, serial));
                    reference.push(&hops, serial, bytes);
                }
                Op::Pop => {
                    let left = reference.pop().map(|(serial, _)| serial);
                    prop_assert_eq!(popped(&mut tree).map(|pkt| pkt.payload), left);
                }
                Op::Evict(_, _) if tree.backlog().packets == 0 => {}
                Op::Evict(Pick::Next, _) if matches!(order, ServiceOrder::Literal | ServiceOrder::Double) => {}
                Op::Evict(pick, draw) => {
                    prop_assert_eq!(tree.evict(pick, || draw).1.payload, reference.evict(pick, draw));
                }
            }
            is_consistent(&tree);
            prop_assert_eq!(tree.backlog().packets, reference.packets_below(0));
        }
    }

    /// Equal shares: while two places of a node have packets, neither is served twice before the other, and
    /// over any such time their service differs by at most one packet. Packets with the same route keep their
    /// order.
    #[test]
    fn places_take_turns(ops in ops(), depth in 1..4usize) {
        let shape = Shape { depth, weighted: false, ..SHAPE };
        let mut tree = HopTree::new(shape, Downstream::default(), 0);
        // Packets of each place of each node. A place is the path to it, which for an own queue has no hop at
        // its end.
        let mut queued: BTreeMap<Spot, u64> = BTreeMap::new();
        let mut waiting: BTreeMap<u64, Spot> = BTreeMap::new();
        // For two places of one node: the lead of the first, with its lowest and highest value.
        let mut apart: BTreeMap<[Spot; 2], (i64, i64, i64)> = BTreeMap::new();
        let mut last_of: BTreeMap<Spot, u64> = BTreeMap::new();
        let places = |path: &[Option<u16>]| (1..=path.len()).map(|end| path[..end].to_vec()).collect::<Vec<_>>();
        for (serial, op) in (1u64..).zip(ops) {
            let gone = match op {
                Op::Push(hops, bytes) => {
                    let mut path: Spot = hops.iter().copied().take(depth).map(Some).collect();
                    path.push(None);
                    places(&path).into_iter().for_each(|place| *queued.entry(place).or_default() += 1);
                    waiting.insert(serial, path);
                    tree.push(packet(&hops, bytes, serial));
                    continue;
                }
                Op::Pop => {
                    let Some(pkt) = popped(&mut tree) else { continue };
                    let path = &waiting[&pkt.payload];
                    prop_assert!(last_of.insert(path.clone(), pkt.payload).is_none_or(|last| last < pkt.payload));
                    for place in places(path) {
                        let node = &place[..place.len() - 1];
                        let others = queued.iter().filter(|(other, packets)| {
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
                Op::Evict(_, _) if tree.backlog().packets == 0 => continue,
                Op::Evict(pick, draw) => tree.evict(pick, || draw).1.payload,
            };
            for place in places(&waiting.remove(&gone).unwrap()) {
                let packets = queued.get_mut(&place).unwrap();
                *packets -= 1;
                if *packets == 0 {
                    apart.retain(|pair, _| !pair.contains(&place));
                }
            }
        }
    }

    /// A place of weight w has w turns for each turn of a place of weight 1, and w times the bytes if turns
    /// are measured in bytes.
    #[test]
    fn turns_are_shared_by_weight(rates in prop::collection::vec(1..8u64, 1..4), order in any::<prop::sample::Index>()) {
        let inner = [Inner::Smooth, Inner::Deficit, Inner::Srr][order.index(3)];
        let links = (1u16..).zip(&rates).map(|(hop, rate)| ((0, hop), Rate::mbit(*rate)));
        let mut tree = HopTree::new(Shape { inner, ..SHAPE }, Downstream::new(0, links), 0);
        for serial in 0..3000u64 {
            tree.push(packet(&[1 + serial as u16 % rates.len() as u16], 500, serial));
        }
        // So many whole sequences that rounding has no effect, with packets for all of them.
        let mut sent = vec![0.0; rates.len()];
        for _ in 0..900 {
            sent[popped(&mut tree).unwrap().payload as usize % rates.len()] += 1.0;
        }
        let all: u64 = rates.iter().sum();
        for (sent, rate) in sent.iter().zip(&rates) {
            let share = 900.0 * *rate as f64 / all as f64;
            prop_assert!((sent - share).abs() < 0.04 * 900.0, "{sent} of {share}");
        }
    }

    /// The removal of empty branches does not change the departures.
    #[test]
    fn removal_of_empty_branches_changes_no_order(
        ops in ops(),
        known in prop::collection::vec((0..4u16, 0..4u16), 0..8),
        depth in 1..4usize,
        order in prop::sample::select(&[ServiceOrder::Corrected, ServiceOrder::Fifo]),
        inner in prop::sample::select(&[Inner::Smooth, Inner::Deficit, Inner::Srr]),
    ) {
        // Rates are equal, since the removal of the slowest branch would change the weights of the others.
        let equal = Downstream::new(0, known.iter().map(|ends| (*ends, Rate::mbit(1))));
        let shape = Shape { depth, order, inner, ..SHAPE };
        let mut trees = [(); 2].map(|()| HopTree::new(shape, equal.clone(), 0));
        for (serial, op) in (0u64..).zip(ops) {
            for tree in &mut trees {
                match &op {
                    Op::Push(hops, bytes) => { tree.push(packet(hops, *bytes, serial)); },
                    Op::Pop => drop(popped(tree)),
                    Op::Evict(pick, draw) if tree.backlog().packets > 0 => drop(tree.evict(*pick, || *draw)),
                    Op::Evict(_, _) => {}
                }
            }
        }
        let [whole, forgetful] = &mut trees;
        forgetful.prune();
        is_consistent(forgetful);
        prop_assert!(forgetful.nodes[1..].iter().all(|node| holds(forgetful, node)));
        while let Some(left) = popped(whole) {
            prop_assert_eq!(popped(forgetful).map(|pkt| pkt.payload), Some(left.payload));
            if whole.backlog().packets > 0 {
                let victims = [&mut *whole, &mut *forgetful].map(|tree| tree.evict(Pick::HeadOfLargest, || 0.0).1.payload);
                prop_assert_eq!(victims[0], victims[1]);
            }
        }
        prop_assert_eq!(forgetful.backlog(), Backlog::ZERO);
    }

    /// After a flood of next hops the size of the tree is bounded by the backlog.
    #[test]
    fn a_flood_of_next_hops_keeps_the_tree_bounded(ops in prop::collection::vec(any::<bool>(), 1..400), depth in 1..4usize) {
        let mut tree = HopTree::new(Shape { depth, branches: 8, ..SHAPE }, Downstream::default(), 0);
        let mut most = 0;
        for (serial, push) in (0u16..).zip(ops) {
            if push {
                tree.push(packet(&[serial; 3], 500, 0));
            } else {
                let _ = popped(&mut tree);
            }
            is_consistent(&tree);
            most = most.max(tree.backlog().packets as usize);
            prop_assert!(tree.nodes.len() <= (8 + depth).max(2 * (depth * most + 1) + depth));
            prop_assert_eq!(tree.table().flows, tree.nodes.len() as u64);
        }
    }
}

/// The own queue of node 4 has the turn when its only branch is removed, and is empty when the node has a
/// branch again.
#[test]
fn a_turn_ends_with_the_queue_after_a_removal_of_branches() {
    for inner in [Inner::Deficit, Inner::Srr] {
        let mut tree = HopTree::new(Shape { depth: 2, inner, ..SHAPE }, Downstream::new(3, []), 0);
        fill(&mut tree, "a1 4, a2 4, b1 4 7");
        assert_eq!(popped(&mut tree).unwrap().payload, "a1");
        assert_eq!(tree.evict(Pick::Random, || 0.99).1.payload, "b1");
        tree.prune();
        assert_eq!(popped(&mut tree).unwrap().payload, "a2");
        fill(&mut tree, "b2 4 7");
        assert_eq!(drained(&mut tree), "b2");
    }
}

#[test]
fn a_reset_restores_the_initial_state() {
    for (order, drained_again) in [
        (ServiceOrder::Corrected, "z1 a1 b1 c1 a2 b2 a3 a4"),
        (ServiceOrder::Fifo, "a1 a2 a3 b1 b2 z1 c1 a4"),
    ] {
        let mut tree = HopTree::new(Shape { order, ..SHAPE }, Downstream::new(3, []), 0);
        fill(&mut tree, NINE);
        let mut out = crate::cx::Outbox::default();
        tree.reset(&mut Cx::new(crate::Time::ZERO, &mut out));
        assert_eq!((out.dropped.len(), tree.backlog(), tree.table().flows), (8, Backlog::ZERO, 1));
        fill(&mut tree, NINE);
        assert_eq!(drained(&mut tree), drained_again);
    }
}
