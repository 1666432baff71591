//! Leaf and spine: hosts at leaf switches, and a link from each leaf to each spine.
//!
//! # Principles
//! - The leaves are `leaf1`, `leaf2`, ..., the spines `spine1`, `spine2`, ... Hosts are numbered along the
//!   leaves: with 16 hosts at each leaf, `h1` to `h16` are at `leaf1`, and `h17` is the first at `leaf2`.
//! - Hosts of different leaves have as many equally short paths as there are spines. The key `routes` of the
//!   scenario selects the one that a packet takes.
//!
//! # Cost
//! - leaves (hosts + 1) + spines nodes, and leaves (hosts + spines) links.
//!
//! # References
//! - Greenberg et al., "VL2: A scalable and flexible data center network", SIGCOMM 2009, section 4.1,
//!   describes a Clos network of this kind with one more layer.

use std::path::Path;

use giveway_qdisc::{Invalid, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Edge, Shape, Size, at_least_one, host, not_zero, switch};

/// Parameters of `leaf_spine`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of leaves.
    pub leaves: u32,
    /// Number of spines.
    pub spines: u32,
    /// Number of hosts at each leaf.
    pub hosts: u32,
    /// Rate of the links of hosts.
    pub rate: Rate,
    /// Propagation delay of the links of hosts.
    pub delay: Span,
    /// Rate of the links between leaves and spines. Default: the rate of hosts.
    #[serde(default)]
    pub spine_rate: Option<Rate>,
    /// Propagation delay of the links between leaves and spines. Default: the delay of hosts.
    #[serde(default)]
    pub spine_delay: Option<Span>,
}

impl Shape for Config {
    const SUMMARY: &'static str = "hosts at leaf switches, and a link from each leaf to each spine";
    const SIZED_BY: &'static str = "fewer leaves, spines or hosts";

    fn size(&self, _: &Path) -> Result<Size, Invalid> {
        let leaves = at_least_one("leaves", self.leaves, 4)?;
        let spines = at_least_one("spines", self.spines, 2)?;
        let hosts = at_least_one("hosts", self.hosts, 16)?;
        not_zero("rate", self.rate)?;
        self.spine_rate.map_or(Ok(self.rate), |rate| not_zero("spine_rate", rate))?;
        Ok(Size {
            nodes: leaves.saturating_mul(hosts + 1).saturating_add(spines),
            links: leaves.saturating_mul(hosts + spines),
            tables: leaves,
        })
    }

    fn edges(&self, _: &Path) -> Result<Vec<Edge>, Invalid> {
        let (leaves, spines, hosts) = (u64::from(self.leaves), u64::from(self.spines), u64::from(self.hosts));
        let below = (self.rate, self.delay);
        let above = (self.spine_rate.unwrap_or(self.rate), self.spine_delay.unwrap_or(self.delay));
        let host_links = (1..=leaves * hosts)
            .map(|number| Edge::new(host(number), switch("leaf", (number - 1) / hosts + 1), below));
        let uplinks = (1..=leaves).flat_map(|leaf| {
            (1..=spines).map(move |spine| Edge::new(switch("leaf", leaf), switch("spine", spine), above))
        });
        Ok(host_links.chain(uplinks).collect())
    }
}
