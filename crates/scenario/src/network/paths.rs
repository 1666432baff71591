//! The paths that packets take: the ports between two nodes.

use sim::Routes;

use super::topology::Port;

/// The ports of a network with the routes over them. Routes are computed for the destinations that are asked for, so
/// whoever asks more than once keeps this.
pub(crate) struct Paths<'a> {
    ports: &'a [Port],
    routes: Routes,
}

impl<'a> Paths<'a> {
    /// Paths over these ports between so many nodes.
    pub fn new(nodes: usize, ports: &'a [Port]) -> Paths<'a> {
        let links = ports.iter().map(|port| (port.from, port.to, port.cost));
        Paths { ports, routes: Routes::new(nodes, links) }
    }

    /// The numbers of the ports from one node to another, in their order; `None` where no path leads.
    pub fn path(&self, from: u16, to: u16) -> Option<Vec<usize>> {
        let mut ports = Vec::new();
        let mut at = from;
        while at != to {
            let port = self.routes.next(at, to)? as usize;
            ports.push(port);
            at = self.ports[port].to;
        }
        Some(ports)
    }

    /// Whether a path leads from one node to another.
    pub fn leads(&self, from: u16, to: u16) -> bool {
        from == to || self.routes.next(from, to).is_some()
    }
}
