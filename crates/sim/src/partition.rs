//! Divides a network into parts that threads can simulate in parallel ([`crate::parallel`]).
//!
//! # Rules
//! - A source stays together with all nodes that it uses: it sees both ends of its connections at once.
//! - The ends of a link whose delay is shorter than the window stay together. So a packet that leaves a part
//!   arrives a window later at the earliest, and for that time the parts need no news of each other.
//!
//! [`crate::division`] chooses a division.

use std::fmt;

use giveway_qdisc::{PortId, Span};

use crate::plan::SourcePlan;

/// A division of a network into parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The part of each node.
    pub(crate) part_of: Vec<u16>,
    /// The part of each port, which is the part of its node.
    pub(crate) ports: Vec<u16>,
    /// Number of parts.
    pub(crate) parts: usize,
    /// The shortest delay of a link between two parts; for a single part it has no meaning.
    pub(crate) window: Span,
    /// The reason if there is a single part.
    pub(crate) whole: Option<Whole>,
}

/// The reason for which a network is not divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// One thread was asked for.
    OneThread,
    /// Sources, and links without delay, tie all nodes together that have work.
    Tied,
    /// A part has most of the work: this percentage.
    Uneven(u64),
    /// In a window of this length a part has this much work, in packets at plain queues, which is less than
    /// what it takes to wait for the others.
    Short(Span, u64),
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whole::OneThread => write!(f, "one thread was asked for"),
            Whole::Tied => write!(f, "its traffic, and its links without delay, tie all nodes together"),
            Whole::Uneven(percent) => write!(f, "one part would have {percent} % of the work"),
            Whole::Short(window, packets) => write!(
                f,
                "a thread would wait for the others after each {window} of simulated time, in which it has the \
                 work of {packets} packets"
            ),
        }
    }
}

impl Partition {
    /// Maximum number of parts of a network.
    pub const MAX: usize = 64;

    /// All nodes in one part.
    pub fn whole(nodes: usize, why: Whole) -> Partition {
        Partition {
            part_of: vec![0; nodes],
            ports: Vec::new(),
            parts: 1,
            window: Span::ZERO,
            whole: Some(why),
        }
    }

    /// Number of parts, at least 1.
    pub fn parts(&self) -> usize {
        self.parts
    }
    /// The part of a node.
    pub fn part_of(&self, node: u16) -> u16 {
        self.part_of[usize::from(node)]
    }
    /// The part of a port.
    pub fn part_of_port(&self, port: PortId) -> u16 {
        self.ports.get(port.0 as usize).copied().unwrap_or(0)
    }
    /// The part of a source, which has all nodes that it uses.
    pub fn part_with(&self, source: &SourcePlan) -> u16 {
        match source.pairs.as_deref() {
            Some([(from, _), ..]) => self.part_of(*from),
            _ => 0,
        }
    }
    /// The simulated time for which parts need no news of each other: the shortest delay of a link between
    /// two of them.
    pub fn window(&self) -> Span {
        self.window
    }
    /// The reason for which there is a single part.
    pub fn why_whole(&self) -> Option<Whole> {
        self.whole
    }
}
