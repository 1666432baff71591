//! Parking lot: a chain of bottlenecks, with hosts at every switch.
//!
//! # Principles
//! - With N hops there are the switches `s1` to `s(N+1)`, and a bottleneck between each and the next. Hosts
//!   are numbered along the chain: with two hosts at each switch, `h1` and `h2` are at `s1`, `h3` and `h4` at
//!   `s2`.
//! - The usual traffic is a long flow from the first switch to the last, and cross traffic over each hop.
//!   With two hosts at each switch, the long flow can have the odd hosts and the cross traffic the even ones.
//!
//! # Cost
//! - (N + 1) (hosts + 1) nodes and (N + 1) hosts + N links.

use std::path::Path;

use giveway_qdisc::{Invalid, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Edge, Shape, Size, at_least_one, host, not_zero, switch};

/// Parameters of `parking_lot`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of bottlenecks in a row.
    pub hops: u32,
    /// Number of hosts at each switch.
    #[serde(default = "one")]
    pub hosts: u32,
    /// Rate of the links of hosts.
    pub host_rate: Rate,
    /// Propagation delay of the links of hosts.
    pub host_delay: Span,
    /// Rate of each bottleneck.
    pub rate: Rate,
    /// Propagation delay of each bottleneck.
    pub delay: Span,
}

fn one() -> u32 {
    1
}

impl Shape for Config {
    const SUMMARY: &'static str = "a chain of bottlenecks, with hosts at every switch";
    const SIZED_BY: &'static str = "fewer hops, or fewer hosts";

    fn size(&self, _: &Path) -> Result<Size, Invalid> {
        let hops = at_least_one("hops", self.hops, 3)?;
        let hosts = at_least_one("hosts", self.hosts, 1)?;
        not_zero("host_rate", self.host_rate)?;
        not_zero("rate", self.rate)?;
        let switches = hops + 1;
        let hosts = switches.saturating_mul(hosts);
        Ok(Size {
            nodes: switches.saturating_add(hosts),
            links: hops.saturating_add(hosts),
            tables: switches,
        })
    }

    fn edges(&self, _: &Path) -> Result<Vec<Edge>, Invalid> {
        let (hops, hosts) = (u64::from(self.hops), u64::from(self.hosts));
        let chain =
            (1..=hops).map(|hop| Edge::new(switch("s", hop), switch("s", hop + 1), (self.rate, self.delay)));
        let link = |number: u64| {
            let at = (number - 1) / hosts + 1;
            Edge::new(host(number), switch("s", at), (self.host_rate, self.host_delay))
        };
        Ok(chain.chain((1..=(hops + 1) * hosts).map(link)).collect())
    }
}
