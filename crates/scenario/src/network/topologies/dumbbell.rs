//! Dumbbell: hosts on two sides of one bottleneck.
//!
//! # Principles
//! - The bottleneck is the link between the switches `s1` and `s2`. With N hosts on each side, `h1` to `hN`
//!   are at `s1`, and the next N at `s2`.
//!
//! # Cost
//! - 2 N + 2 nodes and 2 N + 1 links.

use std::path::Path;

use giveway_qdisc::{Invalid, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Edge, Shape, Size, at_least_one, host, not_zero, switch};

/// Parameters of `dumbbell`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of hosts on each side.
    pub hosts: u32,
    /// Rate of the links of hosts.
    pub host_rate: Rate,
    /// Propagation delay of the links of hosts.
    pub host_delay: Span,
    /// Rate of the bottleneck.
    pub rate: Rate,
    /// Propagation delay of the bottleneck.
    pub delay: Span,
}

impl Shape for Config {
    const SUMMARY: &'static str = "hosts on two sides of one bottleneck";
    const SIZED_BY: &'static str = "fewer hosts";

    fn size(&self, _: &Path) -> Result<Size, Invalid> {
        let hosts = at_least_one("hosts", self.hosts, 8)?;
        not_zero("host_rate", self.host_rate)?;
        not_zero("rate", self.rate)?;
        Ok(Size { nodes: 2 * hosts + 2, links: 2 * hosts + 1, tables: 2 })
    }

    fn edges(&self, _: &Path) -> Result<Vec<Edge>, Invalid> {
        let hosts = u64::from(self.hosts);
        let bottleneck = Edge::new(switch("s", 1), switch("s", 2), (self.rate, self.delay));
        let link = |number| {
            let side = if number <= hosts { 1 } else { 2 };
            Edge::new(host(number), switch("s", side), (self.host_rate, self.host_delay))
        };
        Ok(std::iter::once(bottleneck).chain((1..=2 * hosts).map(link)).collect())
    }
}
