//! Routes: shortest paths from each node to each destination, computed when a destination is first looked up.

use std::cell::OnceCell;

use giveway_qdisc::NextHops;
use petgraph::Direction::Incoming;
use petgraph::algo::dijkstra;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{EdgeRef, Reversed};

/// The next link from each node towards each destination.
///
/// The memory grows with the number of destinations looked up, not with the square of the number of nodes: a
/// network of 10,000 links with a few flows needs a few tables. Hosts that are attached to the same node
/// share one table.
#[derive(Debug)]
pub struct Routes {
    /// Each link with its number and its cost.
    graph: DiGraph<(), (u32, u32)>,
    /// Routes by destination.
    towards: Vec<OnceCell<Towards>>,
}

/// The routes to one destination.
#[derive(Debug)]
enum Towards {
    /// The next link by node; `NONE` if no route exists.
    Table(Box<[u32]>),
    /// All links to the destination come from the node `gateway`: packets go there and then over `link`.
    Behind { gateway: u16, link: u32 },
}

const NONE: u32 = u32::MAX;

impl Routes {
    /// Shortest paths over links given as (from, to, cost), in order of their numbers. Among equal paths the
    /// one whose next link has the lowest number is taken. A cost must not be 0, or two paths that lead back
    /// to each other could be equally short.
    pub fn new(nodes: usize, links: impl Iterator<Item = (u16, u16, u32)>) -> Routes {
        Routes::over(nodes, links.zip(0..).map(|(link, number)| (number, link)))
    }

    /// Shortest paths over a part of the links, given with their numbers in ascending order.
    pub(crate) fn over(nodes: usize, links: impl Iterator<Item = (u32, (u16, u16, u32))>) -> Routes {
        let mut graph: DiGraph<(), (u32, u32)> = DiGraph::new();
        for _ in 0..nodes {
            graph.add_node(());
        }
        for (number, (from, to, cost)) in links {
            graph.add_edge(node(from), node(to), (number, cost));
        }
        Routes { graph, towards: std::iter::repeat_with(OnceCell::new).take(nodes).collect() }
    }

    /// The next link from `at` towards `to`; `None` if no route exists, and at the destination itself.
    #[inline]
    pub fn next(&self, at: u16, to: u16) -> Option<u32> {
        let link = match self.towards[usize::from(to)].get_or_init(|| self.compute(to)) {
            Towards::Table(next) => next[usize::from(at)],
            _ if at == to => NONE,
            Towards::Behind { gateway, link } if *gateway == at => *link,
            Towards::Behind { gateway, .. } => self.table(*gateway)[usize::from(at)],
        };
        (link != NONE).then_some(link)
    }

    /// The next hops after `at` on the route to `to`, at most `depth` of them; `target` returns the receiving
    /// node of a link.
    pub fn next_hops(&self, at: u16, to: u16, depth: usize, target: impl Fn(u32) -> u16) -> NextHops {
        let mut node = at;
        NextHops::new(
            std::iter::from_fn(|| {
                node = target(self.next(node, to)?);
                Some(node)
            })
            .take(depth.min(NextHops::MOST)),
        )
    }

    /// The table towards a node that several nodes have links to.
    fn table(&self, gateway: u16) -> &[u32] {
        match self.towards[usize::from(gateway)].get_or_init(|| self.compute(gateway)) {
            Towards::Table(next) => next,
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
        let next = self.graph.node_indices().map(|from| {
            if from == node(to) {
                return NONE;
            }
            let Some(distance) = distances.get(&from) else { return NONE };
            let shortest = self.graph.edges(from).filter(|edge| {
                let rest = distances.get(&edge.target());
                rest.is_some_and(|rest| rest + u64::from(edge.weight().1) == *distance)
            });
            shortest.map(|edge| edge.weight().0).min().expect("a shortest path begins with a link")
        });
        Towards::Table(next.collect())
    }

    /// The routes to a node with links from only one other node; `None` if several nodes have links to it.
    /// The other node must have a table, so several nodes must have links to it.
    fn behind(&self, to: u16) -> Option<Towards> {
        let gateway = self.graph.neighbors_directed(node(to), Incoming).next()?;
        let leads = |target: NodeIndex, only: NodeIndex| {
            self.graph.neighbors_directed(target, Incoming).all(|from| from == only)
        };
        let before = self.graph.neighbors_directed(gateway, Incoming).next()?;
        if !leads(node(to), gateway) || leads(gateway, before) {
            return None;
        }
        let links = self.graph.edges_connecting(gateway, node(to));
        let (_, link) = links.map(|edge| (edge.weight().1, edge.weight().0)).min()?;
        Some(Towards::Behind { gateway: gateway.index() as u16, link })
    }

    /// Number of tables computed so far.
    #[cfg(test)]
    fn tables(&self) -> usize {
        self.towards.iter().filter(|cell| matches!(cell.get(), Some(Towards::Table(_)))).count()
    }
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
        let next_hops = routes.next_hops(0, 3, 4, |link| links[link as usize].1);
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
