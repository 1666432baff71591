//! All to all: transfers between hosts that are drawn at random, as in a data centre.
//!
//! # Principles
//! - Arrivals are a Poisson process. Each draws its sender from all hosts, and its receiver from all others,
//!   both uniformly.
//! - The load is given as a fraction of the access rate, which is the sum of the rates of the links that
//!   leave the hosts, or as a rate. The rate of arrivals is the load divided by the mean size.
//! - Times, sizes and pairs come from three streams of random numbers. So the n-th arrival has the same time,
//!   size and pair under every discipline.
//!
//! # Deviations
//! - The load counts application bytes; headers and retransmissions come on top (about 3 % with full
//!   segments).
//! - Published studies keep connections open between transfers. Here each transfer is a new connection, with
//!   its handshake and slow start.
//!
//! # Cost
//! - One connection per transfer; the number of pairs costs nothing.
//!
//! # References
//! - Alizadeh et al., "pFabric: minimal near-optimal datacenter transport", SIGCOMM 2013, section 5.1.

use giveway_qdisc::{Invalid, Rate, Rng, Share, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NodeOrigin, Source, SourceContext, Traffic, check_hosts, check_rate};
use crate::net::Net;
use crate::sizes::{Sampler, Sizes};

/// Parameters of `all_to_all`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Offered load as a fraction of the rate at which all hosts together can send, such as "60 %". Give this
    /// or `load`.
    #[serde(default)]
    pub fraction: Option<Share>,
    /// Offered load of all hosts together. Give this or `fraction`.
    #[serde(default)]
    pub load: Option<Rate>,
    /// Distribution of transfer sizes.
    pub size: Sizes,
    /// Number of arrivals after which the source ends; without it arrivals go on.
    #[serde(default)]
    pub count: Option<u64>,
}

impl Traffic for Config {
    const SUMMARY: &'static str = "TCP transfers of random sizes between random pairs of hosts (Poisson)";
    const PLACED: NodeOrigin = NodeOrigin::Among;

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        check_hosts(context)?;
        let sampler = self.size.sampler("size", context.tcp.mss, &context.folder)?;
        let offered = self.offered(context.access)?;
        let mut source = AllToAll {
            next: context.start,
            mean_gap_s: sampler.mean() / offered,
            times: context.streams.within("times").rng(),
            sizes: context.streams.within("sizes").rng(),
            choices: context.streams.within("pairs").rng(),
            hosts: context.hosts.clone(),
            sampler,
            stop: context.stop,
            left: self.count.unwrap_or(u64::MAX),
        };
        source.schedule();
        Ok(Box::new(source))
    }
}

impl Config {
    /// The offered load in bytes per second.
    fn offered(&self, access: Rate) -> Result<f64, Invalid> {
        match (self.fraction, self.load) {
            (Some(_), Some(_)) => {
                Err(Invalid::new("load", "load and fraction both set the rate of arrivals: leave one out"))
            }
            (None, None) => {
                let message = "the load is missing: write fraction = \"60 %\" or load = \"8 Gbit/s\"";
                Err(Invalid::new("fraction", message))
            }
            (Some(fraction), None) if fraction.get() > 0.0 => Ok(fraction.get() * access.bytes_per_s()),
            (Some(_), None) => {
                Err(Invalid::new("fraction", "a load of 0 sends nothing: write for example \"60 %\""))
            }
            (None, Some(load)) => {
                check_rate("load", load, "8 Gbit/s")?;
                Ok(load.bytes_per_s())
            }
        }
    }
}

struct AllToAll {
    /// Time of the next arrival.
    next: Time,
    mean_gap_s: f64,
    times: Rng,
    sizes: Rng,
    choices: Rng,
    hosts: Vec<u16>,
    sampler: Sampler,
    stop: Time,
    left: u64,
}

impl Source for AllToAll {
    fn wake(&mut self, net: &mut Net<'_>) {
        while self.next <= net.now() && self.next < self.stop {
            let (from, to) = self.pair();
            net.transfer(from, to, Some(self.sampler.draw(&mut self.sizes)));
            self.left -= 1;
            self.schedule();
        }
        if self.next < self.stop {
            net.wake_at(self.next);
        }
    }

    fn offered(&self) -> Option<String> {
        self.sampler.offered(1.0 / self.mean_gap_s)
    }
}

impl AllToAll {
    fn schedule(&mut self) {
        self.next = match self.left {
            0 => Time::NEVER,
            _ => self.next + Span::from_s_f64(self.times.exponential(self.mean_gap_s)),
        };
    }

    /// A sender, and a receiver among the other hosts.
    fn pair(&mut self) -> (u16, u16) {
        let count = self.hosts.len() as u64;
        let from = self.choices.below(count);
        let other = self.choices.below(count - 1);
        let to = if other < from { other } else { other + 1 };
        (self.hosts[from as usize], self.hosts[to as usize])
    }
}
