//! Fat tree: three layers of equal switches with k ports, and full bisection bandwidth.
//!
//! # Principles
//! - k pods have k/2 edge switches and k/2 aggregation switches each, with a link between each two of
//!   different layers. The switch `edge2-1` is the first edge switch of the second pod, and `agg2-1` its
//!   first aggregation switch. Each edge switch has k/2 hosts, numbered along the edge switches: `h1` to
//!   `h(k^3/4)`.
//! - The (k/2)^2 core switches are `core1`, `core2`, ... The i-th aggregation switch of each pod has links to
//!   the i-th group of k/2 of them.
//! - Hosts of different pods have (k/2)^2 equally short paths, and hosts of different edge switches of a pod
//!   k/2. The key `routes` of the scenario selects the one that a packet takes.
//!
//! # Cost
//! - k^3/4 hosts, 5 k^2/4 switches and 3 k^3/4 links: with k = 16 1,024 hosts, 320 switches and 3,072 links.
//!
//! # References
//! - Al-Fares, Loukissas and Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008,
//!   section 3.1.

use std::path::Path;

use giveway_qdisc::{Invalid, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Edge, End, Shape, Size, host, not_zero, switch};

/// Parameters of `fat_tree`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of ports of each switch, an even number from 2 to 16.
    pub k: u32,
    /// Rate of the links of hosts.
    pub rate: Rate,
    /// Propagation delay of the links of hosts.
    pub delay: Span,
    /// Rate of the links between switches. Default: the rate of hosts.
    #[serde(default)]
    pub switch_rate: Option<Rate>,
    /// Propagation delay of the links between switches. Default: the delay of hosts.
    #[serde(default)]
    pub switch_delay: Option<Span>,
}

/// Maximum number of ports of a switch.
const MAX: u32 = 16;

impl Shape for Config {
    const SUMMARY: &'static str = "three layers of switches with k ports, and k^3/4 hosts";
    const SIZED_BY: &'static str = "a smaller k";

    fn size(&self, _: &Path) -> Result<Size, Invalid> {
        let k = u64::from(self.k);
        if !self.k.is_multiple_of(2) {
            let message = match self.k {
                1 => "an edge switch has k/2 hosts: write an even number, for example k = 2".to_owned(),
                _ => {
                    format!("{k} is odd: write an even number, for example k = {}", (k - 1).min(MAX.into()))
                }
            };
            return Err(Invalid::new("k", message));
        }
        if !(2..=MAX).contains(&self.k) {
            let hosts = u128::from(k) * u128::from(k) * u128::from(k) / 4;
            let message =
                format!("a fat tree of {k} has {hosts} hosts: write an even number from 2 to {MAX}");
            return Err(Invalid::new("k", message));
        }
        not_zero("rate", self.rate)?;
        self.switch_rate.map_or(Ok(self.rate), |rate| not_zero("switch_rate", rate))?;
        Ok(Size { nodes: k * k * k / 4 + 5 * k * k / 4, links: 3 * k * k * k / 4, tables: k * k / 2 })
    }

    fn edges(&self, _: &Path) -> Result<Vec<Edge>, Invalid> {
        let (pods, half) = (u64::from(self.k), u64::from(self.k / 2));
        let below = (self.rate, self.delay);
        let above = (self.switch_rate.unwrap_or(self.rate), self.switch_delay.unwrap_or(self.delay));
        let in_pod = |layer: &str, pod: u64, number: u64| End::Switch(format!("{layer}{pod}-{number}"));
        let mut edges = Vec::new();
        for pod in 1..=pods {
            for edge in 1..=half {
                let before = ((pod - 1) * half + edge - 1) * half;
                let hosts = (1..=half).map(|number| host(before + number));
                edges.extend(hosts.map(|host| Edge::new(host, in_pod("edge", pod, edge), below)));
            }
        }
        for pod in 1..=pods {
            for edge in 1..=half {
                let uplinks = (1..=half).map(|agg| (in_pod("edge", pod, edge), in_pod("agg", pod, agg)));
                edges.extend(uplinks.map(|(from, to)| Edge::new(from, to, above)));
            }
        }
        for pod in 1..=pods {
            for agg in 1..=half {
                let cores = (1..=half).map(|core| switch("core", (agg - 1) * half + core));
                edges.extend(cores.map(|core| Edge::new(in_pod("agg", pod, agg), core, above)));
            }
        }
        Ok(edges)
    }
}
