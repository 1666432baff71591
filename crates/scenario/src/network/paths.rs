//! The paths of packets: the ports between two nodes.

use std::collections::BTreeSet;

use giveway_qdisc::Span;
use giveway_sim::{Routes, Routing};

use super::topology::Port;

/// The paths of a network. The routes to a destination are computed at the first use, and cached.
pub(crate) struct Paths {
    /// The receiving node of each port, by number of the port.
    targets: Vec<u16>,
    routes: Routes,
}

impl Paths {
    /// Paths between `nodes` nodes over these ports.
    pub fn new(nodes: usize, ports: &[Port]) -> Paths {
        let links: Vec<(u16, u16, u32)> = ports.iter().map(|port| (port.from, port.to, port.cost)).collect();
        Paths::over(Routing::First, nodes, &links)
    }

    /// Paths over links with a choice among equally short ones. A link is given as its first node, its second
    /// node and its cost, in the order of their ports.
    pub fn over(routing: Routing, nodes: usize, links: &[(u16, u16, u32)]) -> Paths {
        Paths {
            targets: links.iter().map(|(_, to, _)| *to).collect(),
            routes: Routes::with(routing, nodes, links.iter().copied()),
        }
    }

    /// The numbers of the ports from one node to another, in order; `None` without a path.
    pub fn path(&self, from: u16, to: u16) -> Option<Vec<usize>> {
        let mut ports = Vec::new();
        let mut at = from;
        while at != to {
            let port = self.routes.next(at, to)? as usize;
            ports.push(port);
            at = self.targets[port];
        }
        Some(ports)
    }

    /// The propagation delay from one node to another over these ports. Zero without a path.
    pub fn delay(&self, from: u16, to: u16, ports: &[Port]) -> Span {
        let path = self.path(from, to).unwrap_or_default();
        path.iter().fold(Span::ZERO, |sum, at| sum + ports[*at].delay)
    }

    /// The numbers of the ports on any of the equally short paths from one node to another that packets may
    /// take.
    pub fn all(&self, from: u16, to: u16) -> Vec<usize> {
        let mut ports = Vec::new();
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for port in self.routes.all(at, to) {
                let port = port as usize;
                ports.push(port);
                if seen.insert(self.targets[port]) {
                    open.push(self.targets[port]);
                }
            }
        }
        ports
    }

    /// True if there is a path from one node to another.
    pub fn connects(&self, from: u16, to: u16) -> bool {
        from == to || self.routes.next(from, to).is_some()
    }
}
