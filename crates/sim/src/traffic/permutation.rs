//! Permutation: each host sends to one other host, and each receives from one.
//!
//! # Principles
//! - The receivers are a permutation of the hosts that leaves no host in its place, drawn uniformly from all
//!   such permutations: permutations are drawn until one has no host in its place, which takes e attempts on
//!   average.
//! - In a network with full bisection bandwidth every flow could have the rate of its access link. The rates
//!   that flows do get show how well routes spread the load.
//!
//! # Cost
//! - One connection for each host.
//!
//! # References
//! - Al-Fares et al., "Hedera: dynamic flow scheduling for data center networks", NSDI 2010, section 6.1, has
//!   this as its random bijective pattern.

use giveway_qdisc::{Bytes, Invalid, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NodeOrigin, Source, SourceContext, Traffic, check_hosts, spread};
use crate::net::Net;

/// Parameters of `permutation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Bytes that each host sends; without it connections never end.
    pub size: Option<Bytes>,
    /// Connections start at a random time within this time after the start.
    pub spread: Span,
}

impl Traffic for Config {
    const SUMMARY: &'static str = "a TCP connection from each host to another host, no two to the same";
    const PLACED: NodeOrigin = NodeOrigin::Among;

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        check_hosts(context)?;
        if self.size == Some(Bytes(0)) {
            let message = "a transfer of 0 bytes sends nothing: leave size out for no end";
            return Err(Invalid::new("size", message));
        }
        let receivers = derangement(&context.hosts, &mut context.streams.within("pairs").rng());
        let mut times = context.streams.within("times").rng();
        let pairs = context.hosts.iter().zip(receivers);
        let starts = pairs.map(|(from, to)| (spread(context.start, self.spread, &mut times), *from, to));
        let mut starts: Vec<_> = starts.filter(|(at, ..)| *at < context.stop).collect();
        // The latest first, so that the next one is taken from the end.
        starts.sort_unstable_by(|a, b| b.cmp(a));
        Ok(Box::new(Permutation { starts, size: self.size }))
    }
}

/// A permutation of at least two different hosts in which none keeps its place.
fn derangement(hosts: &[u16], rng: &mut Rng) -> Vec<u16> {
    loop {
        let mut drawn = hosts.to_vec();
        // Fisher and Yates.
        for last in (1..drawn.len()).rev() {
            drawn.swap(last, rng.below(last as u64 + 1) as usize);
        }
        if drawn.iter().zip(hosts).all(|(to, from)| to != from) {
            return drawn;
        }
    }
}

struct Permutation {
    /// Start, sender and receiver of each connection, the latest first.
    starts: Vec<(Time, u16, u16)>,
    size: Option<Bytes>,
}

impl Source for Permutation {
    fn wake(&mut self, net: &mut Net<'_>) {
        while let Some((_, from, to)) = self.starts.pop_if(|(at, ..)| *at <= net.now()) {
            net.transfer(from, to, self.size.map(|size| size.0));
        }
        if let Some((at, ..)) = self.starts.last() {
            net.wake_at(*at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Streams;
    use std::collections::BTreeMap;

    #[test]
    fn every_derangement_of_four_hosts_is_equally_likely() {
        const N: u32 = 90_000;
        let mut rng = Streams::new(3).rng();
        let mut seen: BTreeMap<Vec<u16>, u32> = BTreeMap::new();
        for _ in 0..N {
            *seen.entry(derangement(&[7, 8, 9, 10], &mut rng)).or_default() += 1;
        }
        assert_eq!(seen.len(), 9, "there are 9 derangements of 4");
        // Five standard deviations of a binomial count with the probability 1/9.
        let error = 5.0 * f64::from(N * 8 / 81).sqrt();
        assert!(seen.values().all(|count| (f64::from(*count) - f64::from(N / 9)).abs() < error), "{seen:?}");
    }

    #[test]
    fn two_hosts_send_to_each_other() {
        assert_eq!(derangement(&[1, 2], &mut Streams::new(1).rng()), [2, 1]);
    }
}
