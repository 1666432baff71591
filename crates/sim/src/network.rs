//! Nodes and links.

use qdisc::{Qdisc, Rate, Share, Span, Time};

use crate::routes::Routes;
use crate::segment::Segment;

/// One direction of a link: the port where packets wait, the transmitter, and the wire.
pub struct LinkPlan {
    /// What it is called, such as "home->isp". No two links share a name: its random numbers, and its turn among events at
    /// the same time, depend on it.
    pub name: String,
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
    /// What the link costs when routes are chosen, at least 1; 1 counts hops.
    pub cost: u32,
    /// When it is down, from and to, one after the other: see [`crate::engine`].
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

impl Network {
    /// The most nodes that a network has: their numbers have 16 bits.
    pub const MOST_NODES: usize = 65_534;

    /// A network of `nodes` nodes, numbered from zero, without links.
    ///
    /// # Panics
    /// With more than [`Network::MOST_NODES`] nodes.
    pub fn new(nodes: usize) -> Network {
        assert!(nodes <= Network::MOST_NODES, "node numbers have 16 bits");
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
