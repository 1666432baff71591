//! Routes: shortest paths from each node to each destination, computed when a destination is first looked up.
//!
//! Several paths may be equally short. [`Routing`] selects the one that a packet takes: the first, or one by
//! a hash (equal-cost multi-path, RFC 2992 section 1).

use std::cell::OnceCell;

use giveway_qdisc::{FlowKey, Meta, NextHops};
use petgraph::Direction::Incoming;
use petgraph::algo::dijkstra;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{EdgeRef, Reversed};

use crate::segment::Segment;

/// The choice among equally short paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// The path whose next link has the lowest number.
    #[default]
    First,
    /// A path by a hash of the flow and the node: all packets of a flow take the same path. The two
    /// directions of a connection are two flows.
    Flow,
    /// A path by a hash of the flow, the node and the fields of the packet that distinguish it from others of
    /// its flow. Packets of a flow can overtake each other.
    Packet,
}

/// The next link from each node towards each destination.
///
/// The memory grows with the number of destinations looked up, not with the square of the number of nodes: a
/// network of 10,000 links with a few flows needs a few tables. Hosts that are attached to the same node
/// share one table.
#[derive(Debug)]
pub struct Routes {
    /// Each link with its number and its cost.
    graph: DiGraph<(), (u32, u32)>,
    /// The choice among equally short paths.
    routing: Routing,
    /// Routes by destination.
    towards: Vec<OnceCell<Towards>>,
}

/// The routes to one destination.
#[derive(Debug)]
enum Towards {
    /// The next link by node. A number from [`GROUP`] is not a link: `NONE` if no route exists, and otherwise
    /// `GROUP` and the index of a group of equally good links in `groups`, which is their number followed by
    /// the links.
    Table { next: Box<[u32]>, groups: Box<[u32]> },
    /// All links to the destination come from the node `gateway`: packets go there and then over `link`.
    Behind { gateway: u16, link: u32 },
}

const NONE: u32 = u32::MAX;
/// The lowest number that is not a link.
const GROUP: u32 = 1 << 31;

impl Routes {
    /// Shortest paths over links given as (from, to, cost), in order of their numbers. Among equal paths the
    /// one whose next link has the lowest number is taken. A cost must not be 0, or two paths that lead back
    /// to each other could be equally short.
    pub fn new(nodes: usize, links: impl Iterator<Item = (u16, u16, u32)>) -> Routes {
        Routes::with(Routing::First, nodes, links)
    }

    /// Like [`new`](Routes::new), with another choice among equal paths.
    pub fn with(routing: Routing, nodes: usize, links: impl Iterator<Item = (u16, u16, u32)>) -> Routes {
        Routes::over(routing, nodes, links.zip(0..).map(|(link, number)| (number, link)))
    }

    /// Shortest paths over a part of the links, given with their numbers in ascending order.
    pub(crate) fn over(
        routing: Routing,
        nodes: usize,
        links: impl Iterator<Item = (u32, (u16, u16, u32))>,
    ) -> Routes {
        let mut graph: DiGraph<(), (u32, u32)> = DiGraph::new();
        for _ in 0..nodes {
            graph.add_node(());
        }
        for (number, (from, to, cost)) in links {
            graph.add_edge(node(from), node(to), (number, cost));
        }
        Routes { graph, routing, towards: std::iter::repeat_with(OnceCell::new).take(nodes).collect() }
    }

    /// The choice among equally short paths.
    pub(crate) fn routing(&self) -> Routing {
        self.routing
    }

    /// The next link from `at` towards `to`; `None` if no route exists, and at the destination itself. Among
    /// equally good links it is the first, whatever the routing.
    #[inline]
    pub fn next(&self, at: u16, to: u16) -> Option<u32> {
        self.next_by(at, to, |links| links[0])
    }

    /// The next link of a packet from `at` towards its destination, `None` as with [`next`](Routes::next).
    #[inline]
    pub fn next_of(&self, at: u16, meta: &Meta, segment: &Segment) -> Option<u32> {
        self.next_by(at, meta.to, |links| {
            let own = if self.routing == Routing::Packet { identity(segment) } else { 0 };
            // The upper half of the product is uniform over the links if the hash is uniform.
            let hash = spread(meta.flow, at, own);
            links[((u128::from(hash) * links.len() as u128) >> 64) as usize]
        })
    }

    /// All equally good next links from `at` towards `to`: one with [`Routing::First`], none without a route.
    pub fn all(&self, at: u16, to: u16) -> Vec<u32> {
        let mut all = Vec::new();
        let first = self.next_by(at, to, |links| {
            all.extend(links);
            links[0]
        });
        if all.is_empty() { first.into_iter().collect() } else { all }
    }

    /// The next link from `at` towards `to`, which `choose` takes from several equally good ones.
    #[inline]
    fn next_by(&self, at: u16, to: u16, choose: impl FnOnce(&[u32]) -> u32) -> Option<u32> {
        let (next, groups) = match self.towards[usize::from(to)].get_or_init(|| self.compute(to)) {
            Towards::Table { next, groups } => (&next[..], &groups[..]),
            _ if at == to => return None,
            Towards::Behind { gateway, link } if *gateway == at => return Some(*link),
            Towards::Behind { gateway, .. } => self.table(*gateway),
        };
        let link = next[usize::from(at)];
        if link < GROUP {
            return Some(link);
        }
        if link == NONE {
            return None;
        }
        let start = (link - GROUP) as usize;
        Some(choose(&groups[start + 1..][..groups[start] as usize]))
    }

    /// The next hops after `at` on the route of a packet, at most `depth` of them; `target` returns the
    /// receiving node of a link.
    pub fn next_hops(
        &self,
        at: u16,
        (meta, segment): (&Meta, &Segment),
        depth: usize,
        target: impl Fn(u32) -> u16,
    ) -> NextHops {
        let mut node = at;
        NextHops::new(
            std::iter::from_fn(|| {
                node = target(self.next_of(node, meta, segment)?);
                Some(node)
            })
            .take(depth.min(NextHops::MAX)),
        )
    }

    /// The table towards a node that several nodes have links to.
    fn table(&self, gateway: u16) -> (&[u32], &[u32]) {
        match self.towards[usize::from(gateway)].get_or_init(|| self.compute(gateway)) {
            Towards::Table { next, groups } => (next, groups),
            Towards::Behind { .. } => {
                unreachable!("`behind` returns a gateway only if several nodes have links to it")
            }
        }
    }

    fn compute(&self, to: u16) -> Towards {
        if let Some(behind) = self.behind(to) {
            return behind;
        }
        let distances = dijkstra(Reversed(&self.graph), node(to), None, |edge| u64::from(edge.weight().1));
        let mut groups = Vec::new();
        let mut shortest = Vec::new();
        let next = self.graph.node_indices().map(|from| {
            if from == node(to) {
                return NONE;
            }
            let Some(distance) = distances.get(&from) else { return NONE };
            let is_shortest = |target: NodeIndex, cost: u32| {
                distances.get(&target).is_some_and(|rest| rest + u64::from(cost) == *distance)
            };
            let edges = self.graph.edges(from);
            shortest.clear();
            shortest.extend(
                edges.filter(|edge| is_shortest(edge.target(), edge.weight().1)).map(|edge| edge.weight().0),
            );
            if self.routing == Routing::First || shortest.len() == 1 {
                return *shortest.iter().min().expect("a shortest path begins with a link");
            }
            // In the order of their numbers, so that the choice does not depend on the order of edges.
            shortest.sort_unstable();
            let group = GROUP + groups.len() as u32;
            groups.push(shortest.len() as u32);
            groups.extend_from_slice(&shortest);
            group
        });
        Towards::Table { next: next.collect(), groups: groups.into_boxed_slice() }
    }

    /// The routes to a node with links from only one other node; `None` if several nodes have links to it, or
    /// if there are several equally good links. The other node must have a table, so several nodes must have
    /// links to it.
    fn behind(&self, to: u16) -> Option<Towards> {
        let gateway = self.graph.neighbors_directed(node(to), Incoming).next()?;
        let leads = |target: NodeIndex, only: NodeIndex| {
            self.graph.neighbors_directed(target, Incoming).all(|from| from == only)
        };
        let before = self.graph.neighbors_directed(gateway, Incoming).next()?;
        if !leads(node(to), gateway) || leads(gateway, before) {
            return None;
        }
        let links =
            || self.graph.edges_connecting(gateway, node(to)).map(|edge| (edge.weight().1, edge.weight().0));
        let (cost, link) = links().min()?;
        if self.routing != Routing::First && links().filter(|(other, _)| *other == cost).count() > 1 {
            return None;
        }
        Some(Towards::Behind { gateway: gateway.index() as u16, link })
    }

    /// Number of tables computed so far.
    #[cfg(test)]
    fn tables(&self) -> usize {
        self.towards.iter().filter(|cell| matches!(cell.get(), Some(Towards::Table { .. }))).count()
    }
}

/// The fields that distinguish a packet from others of its flow: numbers of its data and of those that it
/// acknowledges, and its send time, in which a retransmission differs.
fn identity(segment: &Segment) -> u64 {
    giveway_qdisc::hash::mix(segment.seq ^ u64::from(segment.sent) << 32, segment.ack)
}

/// The hash of a flow at a node, and of a packet with `own` fields: the finaliser of SplitMix64 (Steele, Lea
/// and Flood, "Fast splittable pseudorandom number generators", 2014, figure 17). It must differ in all bits
/// from node to node. Otherwise all flows that one switch sends to the next would take one link there.
fn spread(flow: FlowKey, at: u16, own: u64) -> u64 {
    let mut hash = (flow.0 ^ own).wrapping_add(u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

fn node(number: u16) -> NodeIndex {
    NodeIndex::new(usize::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_shortest_route_is_taken_and_ties_go_to_the_first_link() {
        // 0 - 1 - 3 and 0 - 2 - 3, and a direct but expensive 0 - 3.
        let links = [(0, 1, 1), (1, 3, 1), (0, 2, 1), (2, 3, 1), (0, 3, 5)];
        let routes = Routes::new(5, links.into_iter());
        assert_eq!(routes.next(0, 3), Some(0));
        assert_eq!(routes.next(1, 3), Some(1));
        assert_eq!(routes.next(3, 0), None, "links have one direction");
        assert_eq!(routes.next(0, 4), None);
        let packet = (&Meta { to: 3, ..Meta::default() }, &Segment::default());
        let next_hops = routes.next_hops(0, packet, 4, |link| links[link as usize].1);
        assert_eq!(next_hops.iter().collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn only_destinations_that_are_looked_up_cost_memory_and_hosts_of_a_node_share_a_table() {
        // 9,999 hosts around node 0.
        let links = (1..10_000).flat_map(|host| [(0, host, 1), (host, 0, 1)]);
        let routes = Routes::new(10_000, links);
        assert_eq!(routes.tables(), 0);
        for host in 2..10_000 {
            assert_eq!(routes.next(1, host), Some(1), "to the node in the middle");
            assert_eq!(routes.next(0, host), Some(2 * u32::from(host) - 2), "to host {host}");
            assert_eq!(routes.next(host, host), None, "the destination itself");
        }
        assert_eq!(routes.tables(), 1);
    }

    /// Two leaves with a host each, 0 and 1, and eight spines in two layers: the leaf 2 has links to the
    /// nodes 4 to 7, each of these to the nodes 8 and 9 or 10 and 11 and so on, up to 16 and 17; all of them
    /// lead to the leaf 3. The number of the link from a leaf to the first layer is its place, 0 to 3.
    fn two_layers() -> Vec<(u16, u16, u32)> {
        let first = (4..8).map(|node| (2, node, 1));
        let second = (4..8).flat_map(|node| [2 * node, 2 * node + 1].map(|next| (node, next, 1)));
        let last = (8..16).map(|node| (node, 3, 1));
        first.chain(second).chain(last).chain([(0, 2, 1), (3, 1, 1)]).collect()
    }

    fn flow(number: u64) -> Meta {
        // Keys of flows are hashes.
        Meta { flow: FlowKey(spread(FlowKey(number), 0, 0)), to: 1, ..Meta::default() }
    }

    /// Nodes of the two layers that a packet crosses, as places 0 to 3 and 0 to 1.
    fn crossed(routes: &Routes, meta: &Meta, segment: &Segment) -> (usize, usize) {
        let links = two_layers();
        let packet = (meta, segment);
        let hops: Vec<u16> = routes.next_hops(0, packet, 5, |link| links[link as usize].1).iter().collect();
        let [2, first, second, 3, 1] = hops[..] else { panic!("{hops:?}") };
        (usize::from(first - 4), usize::from(second % 2))
    }

    #[test]
    fn flows_are_spread_evenly_and_each_layer_is_independent_of_the_one_before() {
        const N: u64 = 80_000;
        let routes = Routes::with(Routing::Flow, 18, two_layers().into_iter());
        let mut paths = [[0_u64; 2]; 4];
        for number in 0..N {
            let (first, second) = crossed(&routes, &flow(number), &Segment::default());
            paths[first][second] += 1;
        }
        // Five standard deviations of a binomial count with the probability 1/8.
        let error = 5.0 * (N as f64 * 7.0 / 64.0).sqrt();
        for count in paths.as_flattened() {
            assert!((*count as f64 - N as f64 / 8.0).abs() < error, "{paths:?}");
        }
    }

    #[test]
    fn packets_of_a_flow_take_one_path_by_flow_and_all_paths_by_packet() {
        let segments = || (0..4_000).map(|number| Segment { seq: 1 + 1460 * number, ..Segment::default() });
        let paths = |routing| {
            let routes = Routes::with(routing, 18, two_layers().into_iter());
            let mut paths: Vec<_> = segments().map(|segment| crossed(&routes, &flow(7), &segment)).collect();
            paths.sort_unstable();
            let counts = paths.chunk_by(|a, b| a == b).map(<[_]>::len);
            counts.collect::<Vec<_>>()
        };
        assert_eq!(paths(Routing::First), [4_000]);
        assert_eq!(paths(Routing::Flow), [4_000]);
        let sprayed = paths(Routing::Packet);
        // Five standard deviations of a binomial count with the probability 1/8 around 500.
        assert!(sprayed.len() == 8 && sprayed.iter().all(|count| count.abs_diff(500) < 105), "{sprayed:?}");
    }

    #[test]
    fn flows_leave_a_link_that_is_down_and_no_other_path() {
        let all = Routes::with(Routing::Flow, 18, two_layers().into_iter());
        let up = two_layers().into_iter().zip(0..).filter(|(_, number)| *number != 2);
        let left = Routes::over(Routing::Flow, 18, up.map(|(link, number)| (number, link)));
        assert_eq!(left.all(2, 1), [0, 1, 3]);
        assert_eq!(left.all(0, 1).len(), 1, "the link to the leaf");
        assert!((0..1_000).all(|number| crossed(&left, &flow(number), &Segment::default()).0 != 2));
        assert!((0..1_000).any(|number| crossed(&all, &flow(number), &Segment::default()).0 == 2));
    }

    #[test]
    fn equal_links_to_a_host_share_its_flows_too() {
        let links = [(0, 1, 1), (1, 0, 1), (2, 1, 1), (1, 2, 1), (1, 2, 1)];
        let routes = Routes::with(Routing::Flow, 3, links.into_iter());
        assert_eq!(routes.all(1, 2), [3, 4]);
        assert_eq!(routes.all(0, 2), [0]);
        assert_eq!(routes.next(1, 2), Some(3), "the first, whatever the routing");
    }

    /// A second implementation: the routes of all pairs, by relaxing every link until nothing changes.
    fn all_pairs(nodes: usize, links: &[(u16, u16, u32)]) -> Vec<Option<u32>> {
        let mut next = vec![None; nodes * nodes];
        for to in 0..nodes {
            let mut far = vec![u64::MAX; nodes];
            far[to] = 0;
            for _ in 0..nodes {
                for (a, b, cost) in links {
                    let through = far[usize::from(*b)].saturating_add(u64::from(*cost));
                    far[usize::from(*a)] = far[usize::from(*a)].min(through);
                }
            }
            for from in (0..nodes).filter(|from| *from != to && far[*from] != u64::MAX) {
                let first = links.iter().position(|(a, b, cost)| {
                    usize::from(*a) == from
                        && far[usize::from(*b)].saturating_add(u64::from(*cost)) == far[from]
                });
                next[from * nodes + to] = first.map(|link| link as u32);
            }
        }
        next
    }

    proptest! {
        #[test]
        fn every_route_is_that_of_all_pairs(
            nodes in 1_usize..12,
            links in proptest::collection::vec((0_u16..12, 0_u16..12, 1_u32..4), 0..40),
        ) {
            let inside = |(from, to, _): &(u16, u16, u32)| {
                from != to && usize::from(*from) < nodes && usize::from(*to) < nodes
            };
            let links: Vec<_> = links.into_iter().filter(inside).collect();
            let routes = Routes::new(nodes, links.iter().copied());
            let expected = all_pairs(nodes, &links);
            for from in 0..nodes {
                for to in 0..nodes {
                    let link = routes.next(from as u16, to as u16);
                    prop_assert_eq!(link, expected[from * nodes + to], "from {} to {}", from, to);
                }
            }
        }
    }
}
