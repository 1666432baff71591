//! QUIC: transfers over QUIC connections, one after another, at random times, or without an end.
//!
//! # Principles
//! - Each transfer has its own connection, with one stream: the counterpart of `bulk` and of `transfers`.
//! - Without `per_second` and `load` there are `flows` connections for each pair of nodes, as in `bulk`. With
//!   one of them transfers arrive at random times, as in `transfers`, and `sizes` may be a distribution.
//! - The table `[quic]` has the parameters of the connections.
//!
//! # Deviations
//! - Web pages over QUIC, with many streams in a connection, are `kind = "web"` with `transport = "quic"`.
//!
//! # Cost
//! - One connection per transfer.
//!
//! # References
//! - RFC 9000, RFC 9001, RFC 9002.

use giveway_qdisc::{Bytes, Invalid, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::transfers::CapPolicy;
use super::{Source, SourceContext, Traffic, bulk, transfers};
use crate::net::Protocol;
use crate::sizes::Sizes;

/// Parameters of `quic`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of connections of each pair of nodes, unless transfers arrive at random. Default: 1.
    pub flows: Option<u32>,
    /// Bytes of a transfer; without it connections never end.
    pub size: Option<Bytes>,
    /// Connections start at a random time within this time after the start. Default: 100 ms, and with
    /// `stagger` none.
    pub spread: Option<Span>,
    /// Time between the beginnings of two connections; the first starts with the source.
    pub stagger: Option<Span>,
    /// Transfers arrive at random: so many per second, all pairs together.
    pub per_second: Option<f64>,
    /// Transfers arrive at random: the load that they offer, all pairs together.
    pub load: Option<Rate>,
    /// Distribution of the sizes of transfers that arrive at random, in place of `size`.
    pub sizes: Option<Sizes>,
    /// Largest number of concurrent transfers that arrive at random; without it there is no bound.
    pub concurrent: Option<u32>,
    /// Treatment of arrivals while `concurrent` transfers are running.
    pub cap_policy: Option<CapPolicy>,
    /// Number of random arrivals after which the source ends; without it arrivals go on.
    pub count: Option<u64>,
}

impl Config {
    fn arrives_at_random(&self) -> bool {
        self.per_second.is_some() || self.load.is_some()
    }

    /// The first key of the list that is written.
    fn written(&self, random: bool) -> Option<&'static str> {
        let keys = match random {
            true => [
                ("sizes", self.sizes.is_some()),
                ("concurrent", self.concurrent.is_some()),
                ("cap_policy", self.cap_policy.is_some()),
                ("count", self.count.is_some()),
            ],
            false => [
                ("size", self.size.is_some() && self.sizes.is_some()),
                ("flows", self.flows.is_some()),
                ("spread", self.spread.is_some()),
                ("stagger", self.stagger.is_some()),
            ],
        };
        keys.into_iter().find(|(_, written)| *written).map(|(key, _)| key)
    }

    fn at_random(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        if let Some(key) = self.written(false) {
            let message = match key {
                "size" => "size and sizes both set the size: leave one out",
                _ => "transfers arrive at random: leave it out, or per_second and load",
            };
            return Err(Invalid::new(key, message));
        }
        let Some(size) = self.sizes.clone().or(self.size.map(Sizes::Fixed)) else {
            let message = "transfers that arrive at random need one: write for example size = \"1mb\"";
            return Err(Invalid::new("size", message));
        };
        let config = transfers::Config {
            per_second: self.per_second,
            load: self.load,
            size,
            concurrent: self.concurrent,
            cap_policy: self.cap_policy.unwrap_or_default(),
            count: self.count,
        };
        config.build_over(Protocol::Quic, context)
    }

    fn lasting_ones(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        if let Some(key) = self.written(true) {
            let message = "it belongs to transfers that arrive at random: write per_second or load besides";
            return Err(Invalid::new(key, message));
        }
        let Config { flows, size, spread, stagger, .. } = *self;
        let config = bulk::Config { flows: flows.unwrap_or(1), size, spread, stagger };
        config.build_over(Protocol::Quic, context)
    }
}

impl Traffic for Config {
    const SUMMARY: &'static str =
        "QUIC transfers: lasting ones, or of random sizes that arrive at random times";

    fn lasting(&self) -> Option<u32> {
        (!self.arrives_at_random()).then(|| self.flows.unwrap_or(1))
    }

    fn protocol(&self) -> Protocol {
        Protocol::Quic
    }

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        if self.arrives_at_random() { self.at_random(context) } else { self.lasting_ones(context) }
    }
}
