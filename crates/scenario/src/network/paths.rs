//! The paths of packets: the ports between two nodes.

use giveway_sim::Routes;

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
        Paths::over(nodes, &links)
    }

    /// Paths over links, each as its first node, its second node and its cost, in the order of their ports.
    pub fn over(nodes: usize, links: &[(u16, u16, u32)]) -> Paths {
        Paths {
            targets: links.iter().map(|(_, to, _)| *to).collect(),
            routes: Routes::new(nodes, links.iter().copied()),
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

    /// True if there is a path from one node to another.
    pub fn connects(&self, from: u16, to: u16) -> bool {
        from == to || self.routes.next(from, to).is_some()
    }
}
