//! Nodes, links and the ways between them.

use petgraph::algo::dijkstra;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{EdgeRef, Reversed};
use qdisc::{Ahead, Qdisc, Rate, Share, Span, Time};

use crate::segment::Segment;

/// One direction of a link: the port where packets wait, the transmitter, and the wire.
pub struct LinkPlan {
    /// Node that sends.
    pub from: u16,
    /// Node that receives.
    pub to: u16,
    /// Rate of the transmitter.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// Extra delay, drawn evenly between zero and this for each packet; order is kept.
    pub jitter: Span,
    /// Packets lost on the wire, each independently.
    pub loss: Share,
    /// What the link costs when routes are chosen; 1 counts hops.
    pub cost: u32,
    /// When it is down, from and to, one after the other: see [`crate::world`].
    pub outages: Vec<(Time, Time)>,
    /// The discipline at its port.
    pub qdisc: Box<dyn Qdisc<Segment>>,
}

/// Why a network cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// No way leads from the first node to the second.
    Unreachable(u16, u16),
}

/// A network that can be simulated.
pub struct Network {
    pub(crate) nodes: usize,
    pub(crate) links: Vec<LinkPlan>,
}

/// Which link leads from each node towards each destination.
#[derive(Debug)]
pub struct Routes {
    nodes: usize,
    /// By node times number of nodes plus destination; `NONE` where no way leads.
    next: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Network {
    /// A network of `nodes` nodes, numbered from zero, without links.
    ///
    /// # Panics
    /// With more than 65,534 nodes.
    pub fn new(nodes: usize) -> Network {
        assert!(nodes < usize::from(u16::MAX), "node numbers have 16 bits");
        Network { nodes, links: Vec::new() }
    }

    /// Adds one direction of a link and returns its number, which is also the number of its port.
    pub fn link(&mut self, plan: LinkPlan) -> u32 {
        self.links.push(plan);
        self.links.len() as u32 - 1
    }

    /// Shortest paths by cost; among equals the link that was added first.
    pub fn routes(&self) -> Routes {
        Routes::new(self.nodes, self.links.iter().map(|link| (link.from, link.to, link.cost)))
    }
}

impl Routes {
    /// Shortest paths over links given as (from, to, cost), in order of their numbers.
    pub fn new(nodes: usize, links: impl Iterator<Item = (u16, u16, u32)>) -> Routes {
        Routes::over(nodes, links.zip(0..).map(|(link, number)| (number, link)))
    }

    /// The same over some of the links, given with their numbers, ascending.
    pub(crate) fn over(nodes: usize, links: impl Iterator<Item = (u32, (u16, u16, u32))>) -> Routes {
        let mut graph: DiGraph<(), (u32, u32)> = DiGraph::new();
        for _ in 0..nodes {
            graph.add_node(());
        }
        for (number, (from, to, cost)) in links {
            let (from, to) = (NodeIndex::new(usize::from(from)), NodeIndex::new(usize::from(to)));
            graph.add_edge(from, to, (number, cost));
        }
        let mut next = vec![NONE; nodes * nodes];
        for to in 0..nodes {
            let distances =
                dijkstra(Reversed(&graph), NodeIndex::new(to), None, |edge| u64::from(edge.weight().1));
            for from in (0..nodes).filter(|from| *from != to) {
                let Some(distance) = distances.get(&NodeIndex::new(from)) else { continue };
                let best = graph
                    .edges(NodeIndex::new(from))
                    .filter(|edge| {
                        let beyond = distances.get(&edge.target());
                        beyond.is_some_and(|beyond| beyond + u64::from(edge.weight().1) == *distance)
                    })
                    .map(|edge| edge.weight().0)
                    .min();
                next[from * nodes + to] = best.expect("a shortest path begins with a link");
            }
        }
        Routes { nodes, next }
    }

    /// The link from `at` towards `to`.
    #[inline]
    pub fn next(&self, at: u16, to: u16) -> Option<u32> {
        let link = self.next[usize::from(at) * self.nodes + usize::from(to)];
        (link != NONE).then_some(link)
    }

    /// The nodes beyond `at` on the way to `to`, at most `depth` of them; `target` tells where a link ends.
    pub fn ahead(&self, at: u16, to: u16, depth: usize, target: impl Fn(u32) -> u16) -> Ahead {
        let mut node = at;
        Ahead::new(
            std::iter::from_fn(|| {
                node = target(self.next(node, to)?);
                Some(node)
            })
            .take(depth.min(Ahead::MOST)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_is_taken_and_ties_go_to_the_first_link() {
        // 0 - 1 - 3 and 0 - 2 - 3, and a direct but dear 0 - 3.
        let links = [(0, 1, 1), (1, 3, 1), (0, 2, 1), (2, 3, 1), (0, 3, 5)];
        let routes = Routes::new(5, links.into_iter());
        assert_eq!(routes.next(0, 3), Some(0));
        assert_eq!(routes.next(1, 3), Some(1));
        assert_eq!(routes.next(3, 0), None, "links have one direction");
        assert_eq!(routes.next(0, 4), None);
        let ahead = routes.ahead(0, 3, 4, |link| links[link as usize].1);
        assert_eq!(ahead.iter().collect::<Vec<_>>(), [1, 3]);
    }
}
