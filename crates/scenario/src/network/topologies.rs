//! Topologies: tables that write many links with systematic names of nodes. Each kind is a file, and a line
//! in the list below.
//!
//! Hosts are h1, h2, ... in every kind but `edges`. The prefix of a table stands before all its names, so
//! that one scenario can have several topologies, and `[[link]]`s between them.

use std::collections::BTreeSet;
use std::path::Path;

use giveway_qdisc::{Bytes, Invalid, Rate, Share, Span};
use giveway_sim::Network;
use giveway_spec::Entry;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::hints::grouped;

/// The configuration of a kind of topology. Every file of a kind has one, named `Config`.
pub trait Shape: Clone + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// Summary in one line.
    const SUMMARY: &'static str;
    /// The keys that make it smaller, for messages.
    const SIZED_BY: &'static str;

    /// Its size. It is computed without building anything, since a topology may be too large for memory.
    ///
    /// # Errors
    /// The parameter that is invalid, and a value to write instead.
    fn size(&self, folder: &Path) -> Result<Size, Invalid>;
    /// Its links, in the order of their numbers. `folder` is what file names are relative to.
    ///
    /// # Errors
    /// As [`Shape::size`].
    fn edges(&self, folder: &Path) -> Result<Vec<Edge>, Invalid>;
}

/// The size of a topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// The number of nodes.
    pub nodes: u64,
    /// The number of links, each with two directions.
    pub links: u64,
    /// The number of destinations that need a table of routes: switches with hosts.
    pub tables: u64,
}

/// A link of a topology, both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// One end.
    pub from: End,
    /// The other end.
    pub to: End,
    /// The rate.
    pub rate: Rate,
    /// The propagation delay.
    pub delay: Span,
    /// The cost in routing.
    pub cost: u32,
    /// The largest packet; `None` for the value in the table.
    pub mtu: Option<Bytes>,
    /// The probability that a packet is lost.
    pub loss: Share,
    /// The largest extra delay.
    pub jitter: Span,
    /// False for a link from `from` to `to` only.
    pub back: bool,
}

/// An end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A host, with its name before the prefix.
    Host(String),
    /// A switch.
    Switch(String),
}

impl End {
    /// The name, without the prefix.
    pub fn name(&self) -> &str {
        let (End::Host(name) | End::Switch(name)) = self;
        name
    }
}

impl Edge {
    /// A link without options.
    pub fn new(from: End, to: End, (rate, delay): (Rate, Span)) -> Edge {
        Edge {
            from,
            to,
            rate,
            delay,
            cost: 1,
            mtu: None,
            loss: Share::default(),
            jitter: Span::ZERO,
            back: true,
        }
    }
}

/// The host with a number, from 1.
fn host(number: u64) -> End {
    End::Host(format!("h{number}"))
}

/// The switch of a layer with a number, from 1.
fn switch(layer: &str, number: u64) -> End {
    End::Switch(format!("{layer}{number}"))
}

/// Maximum memory for ports and routes of a network, in bytes, by [`Size::memory`].
const MAX_MEMORY: u64 = 4 << 30;

/// Maximum number of ports in a network, two for each link with both directions. A star with the maximum
/// number of nodes has half as many.
pub(super) const MAX_PORTS: usize = 262_144;

impl Size {
    /// An upper estimate of the memory of ports and routes, in bytes.
    fn memory(&self) -> u64 {
        /// A port in the scenario and in a run: 6.0 to 6.5 kB were measured in stars of 10,000 to 65,000
        /// hosts with `fifo`. It is more where lists of the ports have just doubled.
        const PORT: u64 = 6_656;
        let ports = self.links.saturating_mul(2);
        // A table has four bytes for the next link of each node, for the length of a group of equally good
        // links at each node, and for each port in at most one group.
        let table = self.nodes.saturating_mul(2).saturating_add(ports).saturating_mul(4);
        ports.saturating_mul(PORT).saturating_add(self.tables.saturating_mul(table))
    }

    /// The reason for which a topology of this size is refused, and what to write instead.
    fn refusal(&self, sized_by: &str) -> Option<(String, String)> {
        let too_many = |what: &str, number: u64, most: usize| {
            (number > most as u64).then(|| {
                let number = grouped(usize::try_from(number).unwrap_or(usize::MAX));
                let help = format!("a network has at most {} {what}: write {sized_by}", grouped(most));
                (format!("it has {number} {what}"), help)
            })
        };
        let ports = self.links.saturating_mul(2);
        let refusal =
            too_many("nodes", self.nodes, Network::MAX_NODES).or_else(|| too_many("ports", ports, MAX_PORTS));
        if refusal.is_some() {
            return refusal;
        }
        let gib = |bytes: u64| bytes.div_ceil(1 << 30);
        let memory = self.memory();
        (memory > MAX_MEMORY).then(|| {
            (
                format!("its ports and routes take {} GiB of memory", gib(memory)),
                format!("a network has at most {} GiB for them: write {sized_by}", gib(MAX_MEMORY)),
            )
        })
    }
}

/// An entry of the list of topologies.
pub type TopologyEntry = Entry<TopologySpec>;

macro_rules! topologies {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        giveway_spec::named_enum! {
            /// A topology by its kind, with its parameters.
            pub enum TopologySpec {
                $($name($name::Config)),*
            }
        }

        /// Every kind of topology, in the order of lists.
        pub static TOPOLOGIES: &[TopologyEntry] = &[$(Entry::of::<$name::Config>(
            stringify!($name),
            <$name::Config as Shape>::SUMMARY,
            giveway_spec::header!(include_str!(concat!("topologies/", stringify!($name), ".rs"))),
        )),*];

        impl TopologySpec {
            /// Its size: [`Shape::size`].
            ///
            /// # Errors
            /// The parameter that is invalid.
            pub fn size(&self, folder: &Path) -> Result<Size, Invalid> {
                match self {
                    $(TopologySpec::$name(config) => config.size(folder)),*
                }
            }
            /// Its links: [`Shape::edges`].
            ///
            /// # Errors
            /// The parameter that is invalid.
            pub fn edges(&self, folder: &Path) -> Result<Vec<Edge>, Invalid> {
                match self {
                    $(TopologySpec::$name(config) => config.edges(folder)),*
                }
            }
            /// The keys that make it smaller: [`Shape::SIZED_BY`].
            fn sized_by(&self) -> &'static str {
                match self {
                    $(TopologySpec::$name(_) => <$name::Config as Shape>::SIZED_BY),*
                }
            }
        }
    };
}

topologies! {
    dumbbell,
    parking_lot,
    star,
    leaf_spine,
    fat_tree,
    edges,
}

impl TopologySpec {
    /// The reason for which the topology is too large, and what to write instead.
    ///
    /// # Errors
    /// The parameter that is invalid.
    pub fn refusal(&self, folder: &Path) -> Result<Option<(String, String)>, Invalid> {
        Ok(self.size(folder)?.refusal(self.sized_by()))
    }
}

/// Refuses a number of 0.
fn at_least_one(parameter: &'static str, number: u32, example: u32) -> Result<u64, Invalid> {
    match number {
        0 => Err(Invalid::new(
            parameter,
            format!("must be at least 1: write for example {parameter} = {example}"),
        )),
        _ => Ok(number.into()),
    }
}

/// Refuses a rate of 0.
fn not_zero(parameter: &'static str, rate: Rate) -> Result<Rate, Invalid> {
    match rate.as_bit() {
        0 => Err(Invalid::new(parameter, "must be above 0: write for example \"10 Gbit/s\"")),
        _ => Ok(rate),
    }
}

/// The size of a list of links.
fn size_of(edges: &[Edge]) -> Size {
    let ends = || edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
    let nodes: BTreeSet<&str> = ends().map(End::name).collect();
    let gateways = edges.iter().filter_map(|edge| match (&edge.from, &edge.to) {
        (End::Host(_), End::Switch(name)) | (End::Switch(name), End::Host(_)) => Some(name.as_str()),
        _ => None,
    });
    let gateways: BTreeSet<&str> = gateways.collect();
    Size { nodes: nodes.len() as u64, links: edges.len() as u64, tables: gateways.len() as u64 }
}
