//! The paths that packets take: the ports between two nodes.

use giveway_sim::Routes;

use super::topology::Port;

/// The routes of a network. They are computed for the destinations that are asked for, so whoever asks more than once keeps
/// this.
pub(crate) struct Paths {
    /// Where each port leads, by number.
    targets: Vec<u16>,
    routes: Routes,
}

impl Paths {
    /// Paths over these ports between so many nodes.
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

    /// The numbers of the ports from one node to another, in their order; `None` where no path leads.
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

    /// Whether a path leads from one node to another.
    pub fn leads(&self, from: u16, to: u16) -> bool {
        from == to || self.routes.next(from, to).is_some()
    }
}
