//! Transfers: downloads of random sizes that start at random times, whether earlier ones have ended or not.
//!
//! # Principles
//! - Arrivals are a Poisson process, given by its rate or by the load that it offers: `load / mean size`. All
//!   pairs of nodes share one process; each arrival picks its pair at random, which is the same as a process
//!   for each.
//! - Times, sizes and pairs come from three streams of random numbers, and a transfer that is refused draws
//!   its numbers, too. So the n-th arrival has the same time, size and pair under every discipline.
//! - Under more load than a link carries, open arrivals pile up without end. `concurrent` bounds their
//!   number, as users and servers do: further arrivals are refused, or wait. A refused transfer is reported
//!   as aborted with nothing delivered, and the completion time of one that waits includes the wait. Without
//!   either, a discipline that serves nobody would look good.
//!
//! # Deviations
//! - `load` counts application bytes; headers and retransmissions come on top (about 3 % with full segments).
//! - A transfer counts as concurrent until both ends have closed, which is a little after its last byte.
//!
//! # Cost
//! - One connection per transfer; a draw from a Zipf or empirical distribution is a binary search.
//!
//! # References
//! - Poisson arrivals of sessions: Paxson and Floyd, "Wide-area traffic: the failure of Poisson modeling",
//!   1995, section 3, which shows that they hold for sessions though not for packets.

use std::collections::VecDeque;

use giveway_qdisc::{Ending, Invalid, Rate, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Source, SourceContext, Traffic, check_rate, flow};
use crate::counters::Pauses;
use crate::net::{Event, Net, Protocol};
use crate::sizes::{Sampler, Sizes};

/// Parameters of `transfers`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Arrivals per second, all pairs together. Give this or `load`.
    #[serde(default)]
    pub per_second: Option<f64>,
    /// Offered load, all pairs together: arrivals per second times the mean size. Give this or `per_second`.
    #[serde(default)]
    pub load: Option<Rate>,
    /// Distribution of transfer sizes.
    pub size: Sizes,
    /// Largest number of concurrent transfers, all pairs together; without it there is no bound.
    #[serde(default)]
    pub concurrent: Option<u32>,
    /// Treatment of arrivals while `concurrent` transfers are running.
    #[serde(default)]
    pub cap_policy: CapPolicy,
    /// Number of arrivals after which the source ends; without it arrivals go on.
    #[serde(default)]
    pub count: Option<u64>,
}

/// Treatment of arrivals while the largest number of transfers is running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapPolicy {
    /// They are refused, and reported as aborted.
    #[default]
    Refuse,
    /// They start when an earlier one ends, first come first served.
    Wait,
}

impl Traffic for Config {
    const SUMMARY: &'static str = "TCP transfers of random sizes that arrive at random times (Poisson)";

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        self.build_over(Protocol::Tcp, context)
    }
}

impl Config {
    /// Builds the source, with connections of this protocol.
    pub(super) fn build_over(
        &self,
        protocol: Protocol,
        context: &SourceContext,
    ) -> Result<Box<dyn Source>, Invalid> {
        let sampler = self.size.sampler("size", context.tcp.mss, &context.folder)?;
        let per_second = match (self.per_second, self.load) {
            (Some(_), Some(_)) => {
                return Err(Invalid::new(
                    "load",
                    "load and per_second both set the rate of arrivals: leave one out",
                ));
            }
            (None, None) => {
                return Err(Invalid::new(
                    "load",
                    "the rate of arrivals is missing: write load = \"8mbit\" or per_second = 5.0",
                ));
            }
            (Some(rate), None) if rate > 0.0 && rate.is_finite() => rate,
            (Some(rate), None) => {
                let message = format!("{rate} arrivals per second; write a positive number, for example 5.0");
                return Err(Invalid::new("per_second", message));
            }
            (None, Some(load)) => {
                check_rate("load", load, "8mbit")?;
                load.bytes_per_s() / sampler.mean()
            }
        };
        if self.concurrent == Some(0) {
            return Err(Invalid::new(
                "concurrent",
                "with 0 transfers at once none ever begins: leave it out for no bound",
            ));
        }
        let mut transfers = Transfers {
            next: context.start,
            mean_gap_s: 1.0 / per_second,
            times: context.streams.within("times").rng(),
            sizes: context.streams.within("sizes").rng(),
            choices: context.streams.within("pairs").rng(),
            pairs: context.pairs.clone(),
            sampler,
            protocol,
            stop: context.stop,
            left: if context.pairs.is_empty() { 0 } else { self.count.unwrap_or(u64::MAX) },
            most: self.concurrent.unwrap_or(u32::MAX),
            policy: self.cap_policy,
            running: 0,
            queued: VecDeque::new(),
            arrived: 0,
            refused: 0,
            delayed: 0,
        };
        transfers.schedule();
        Ok(Box::new(transfers))
    }
}

struct Transfers {
    /// Time of the next arrival.
    next: Time,
    mean_gap_s: f64,
    times: Rng,
    sizes: Rng,
    choices: Rng,
    pairs: Vec<(u16, u16)>,
    sampler: Sampler,
    protocol: Protocol,
    stop: Time,
    left: u64,
    most: u32,
    policy: CapPolicy,
    running: u32,
    queued: VecDeque<Arrival>,
    arrived: u64,
    refused: u64,
    delayed: u64,
}

#[derive(Clone, Copy)]
struct Arrival {
    at: Time,
    from: u16,
    to: u16,
    bytes: u64,
}

impl Source for Transfers {
    fn wake(&mut self, net: &mut Net<'_>) {
        while self.next <= net.now() && self.next < self.stop {
            self.arrive(net);
            self.schedule();
        }
        if self.next < self.stop {
            net.wake_at(self.next);
        }
    }

    fn on(&mut self, event: Event, net: &mut Net<'_>) {
        if matches!(event, Event::Closed(_) | Event::Aborted(_)) {
            self.running -= 1;
            if let Some(arrival) = self.queued.pop_front() {
                self.begin(arrival, net);
            }
        }
    }

    fn finish(&mut self, net: &mut Net<'_>) {
        for arrival in std::mem::take(&mut self.queued) {
            report(arrival, Ending::Unfinished, net);
        }
    }

    fn remark(&self) -> Option<String> {
        (self.refused + self.delayed > 0).then(|| {
            let Transfers { arrived, refused, delayed, .. } = self;
            format!("of {arrived} transfers that arrived, {refused} were refused and {delayed} had to wait")
        })
    }

    fn offered(&self) -> Option<String> {
        self.sampler.offered(1.0 / self.mean_gap_s)
    }
}

impl Transfers {
    fn schedule(&mut self) {
        self.next = match self.left {
            0 => Time::NEVER,
            _ => self.next + Span::from_s_f64(self.times.exponential(self.mean_gap_s)),
        };
    }

    fn arrive(&mut self, net: &mut Net<'_>) {
        let (from, to) = self.pairs[self.choices.below(self.pairs.len() as u64) as usize];
        let arrival = Arrival { at: net.now(), from, to, bytes: self.sampler.draw(&mut self.sizes) };
        self.left -= 1;
        self.arrived += 1;
        if self.running < self.most {
            return self.begin(arrival, net);
        }
        match self.policy {
            CapPolicy::Refuse => {
                self.refused += 1;
                report(arrival, Ending::Aborted, net);
            }
            CapPolicy::Wait => {
                self.delayed += 1;
                self.queued.push_back(arrival);
            }
        }
    }

    fn begin(&mut self, arrival: Arrival, net: &mut Net<'_>) {
        self.running += 1;
        let Arrival { at, from, to, bytes } = arrival;
        net.transfer_over(self.protocol, (from, to), Some(bytes), at);
    }
}

/// Reports a transfer that never started.
fn report(arrival: Arrival, ending: Ending, net: &mut Net<'_>) {
    let id = net.flow_id();
    let pair = (arrival.from, arrival.to);
    let whole = flow(id, pair, arrival.at, arrival.bytes);
    let (longest_pause, paused) = Pauses::since(arrival.at).until(net.now());
    net.report(giveway_qdisc::FlowReport { end: net.now(), ending, longest_pause, paused, ..whole });
}
