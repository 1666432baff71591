//! The network to simulate: nodes and links.

use giveway_links::{Impairments, MediumSpec};
use giveway_qdisc::{Qdisc, Rate, Share, Span, Time};

use crate::routes::{Routes, Routing};
use crate::segment::Segment;

/// One direction of a link to simulate: its port with a discipline, its transmitter and its wire.
pub struct LinkPlan {
    /// Name, such as "home->isp", unique among the links: the random numbers of the link, and its rank among
    /// events at the same time, depend on it.
    pub name: String,
    /// Sending node.
    pub from: u16,
    /// Receiving node.
    pub to: u16,
    /// Rate of the transmitter; the mean if it varies.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// Upper bound of the extra delay of each packet, which is uniform from zero to this. Packets keep their
    /// order.
    pub jitter: Span,
    /// Probability that the wire loses a packet, independently of all others.
    pub loss: Share,
    /// The varying quantities on the link, and further impairments of the wire.
    pub impairments: Impairments,
    /// Cost of the link for the choice of routes, at least 1. With 1 everywhere, routes have the fewest hops.
    pub cost: u32,
    /// Times at which the link fails and comes back, in ascending order ([`crate::outage`]).
    pub outages: Vec<(Time, Time)>,
    /// The number of the medium that it shares with other links, and the largest length of its packets, in
    /// bytes. `None` for a separate link.
    pub medium: Option<(u16, u32)>,
    /// The discipline at the port.
    pub qdisc: Box<dyn Qdisc<Segment>>,
}

impl LinkPlan {
    /// The shortest time that a packet needs on the wire.
    pub fn least_delay(&self) -> Span {
        self.impairments.least_delay(self.delay)
    }
}

/// A medium that several links share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediumPlan {
    /// Name, unique among the media: its random numbers depend on it.
    pub name: String,
    /// Its parameters.
    pub spec: MediumSpec,
}

/// An error in a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// No route leads from the first node to the second.
    Unreachable(u16, u16),
}

/// A network that can be simulated.
pub struct Network {
    pub(crate) nodes: usize,
    pub(crate) links: Vec<LinkPlan>,
    pub(crate) media: Vec<MediumPlan>,
    routing: Routing,
}

impl Network {
    /// Largest number of nodes of a network: node numbers have 16 bits.
    pub const MAX_NODES: usize = 65_534;

    /// A network of `nodes` nodes, numbered from zero, without links.
    ///
    /// # Panics
    /// If there are more than [`Network::MAX_NODES`] nodes.
    pub fn new(nodes: usize) -> Network {
        assert!(nodes <= Network::MAX_NODES, "node numbers have 16 bits");
        Network { nodes, links: Vec::new(), media: Vec::new(), routing: Routing::First }
    }

    /// This network with another choice among equal routes, which is [`Routing::First`] by default.
    pub fn with_routing(self, routing: Routing) -> Network {
        Network { routing, ..self }
    }

    /// Adds one direction of a link and returns its number, which is also the number of its port.
    pub fn link(&mut self, plan: LinkPlan) -> u32 {
        self.links.push(plan);
        self.links.len() as u32 - 1
    }

    /// Adds a medium and returns its number.
    ///
    /// # Panics
    /// With 2^16 media.
    pub fn medium(&mut self, plan: MediumPlan) -> u16 {
        self.media.push(plan);
        u16::try_from(self.media.len() - 1).expect("there are fewer media")
    }

    /// The links, by number, to change them.
    pub fn links_mut(&mut self) -> &mut [LinkPlan] {
        &mut self.links
    }

    /// The shortest routes by cost.
    pub fn routes(&self) -> Routes {
        Routes::with(self.routing, self.nodes, self.links.iter().map(|link| (link.from, link.to, link.cost)))
    }
}
