//! Star: hosts around one switch.
//!
//! # Principles
//! - The switch is `s1`, and the hosts are `h1` to `hN`, each with a link to the switch.
//!
//! # Cost
//! - N + 1 nodes and N links.

use std::path::Path;

use giveway_qdisc::{Invalid, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Edge, Shape, Size, at_least_one, host, not_zero, switch};

/// Parameters of `star`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of hosts.
    pub hosts: u32,
    /// Rate of every link.
    pub rate: Rate,
    /// Propagation delay of every link.
    pub delay: Span,
}

impl Shape for Config {
    const SUMMARY: &'static str = "hosts around one switch";
    const SIZED_BY: &'static str = "fewer hosts";

    fn size(&self, _: &Path) -> Result<Size, Invalid> {
        let hosts = at_least_one("hosts", self.hosts, 16)?;
        not_zero("rate", self.rate)?;
        Ok(Size { nodes: hosts + 1, links: hosts, tables: 1 })
    }

    fn edges(&self, _: &Path) -> Result<Vec<Edge>, Invalid> {
        let link = |number| Edge::new(host(number), switch("s", 1), (self.rate, self.delay));
        Ok((1..=u64::from(self.hosts)).map(link).collect())
    }
}
