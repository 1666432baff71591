//! Bulk: transfers that last as long as the run, or a given number of bytes. Backups, uploads, long
//! downloads.
//!
//! # Principles
//! - One TCP connection per pair of nodes, which always has data to send.
//! - Connections begin within `spread` of the start, each at a random time, since flows that begin in the
//!   same picosecond stay synchronised.
//! - A study of convergence needs flows that start one after the other: with `stagger` flow k starts exactly
//!   k times `stagger` after the source, and nothing is random.
//! - Flows are counted from 0: the first flow of each pair of nodes in the order in which the scenario writes
//!   them, then the second of each pair, and so on. With `stagger` the flow numbers in reports follow this
//!   order: the k-th smallest `id` among the flows of the source is flow k. Without, flows are alike and
//!   numbered as they start.
//!
//! # Deviations
//! - None.
//!
//! # Cost
//! - One connection per flow.
//!
//! # References
//! - "Bulk transfer" of RFC 5166, section 2.3; ns-2's FTP over TCP.

use giveway_qdisc::{Bytes, Invalid, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::series::Series;
use super::{MAX_CONNECTIONS, Source, SourceContext, Traffic, check_count, spread};
use crate::net::{Net, Protocol};

/// Parameters of `bulk`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of connections of each pair of nodes.
    pub flows: u32,
    /// Bytes per connection; without it connections never end.
    pub size: Option<Bytes>,
    /// Connections start at a random time within this time after the start. Default: 100 ms, and with
    /// `stagger` none.
    pub spread: Option<Span>,
    /// Time between the beginnings of two connections; the first starts with the source.
    pub stagger: Option<Span>,
}

/// Default of `spread` without `stagger`.
const SPREAD: Span = Span::ms(100);

impl Default for Config {
    fn default() -> Config {
        Config { flows: 1, size: None, spread: None, stagger: None }
    }
}

impl Traffic for Config {
    const SUMMARY: &'static str = "TCP connections that always have data to send, or a given number of bytes";

    fn lasting(&self) -> Option<u32> {
        Some(self.flows)
    }

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        self.build_over(Protocol::Tcp, context)
    }
}

/// Start of a connection, and its nodes.
type Start = (Time, u16, u16);

impl Config {
    /// Builds the source, with connections of this protocol.
    pub(super) fn build_over(
        &self,
        protocol: Protocol,
        context: &SourceContext,
    ) -> Result<Box<dyn Source>, Invalid> {
        if self.size == Some(Bytes(0)) {
            return Err(Invalid::new(
                "size",
                "a transfer of 0 bytes sends nothing: leave size out for no end",
            ));
        }
        check_count("flows", self.flows, MAX_CONNECTIONS, context)?;
        let mut starts = match (self.stagger, self.spread) {
            (Some(stagger), Some(_)) => {
                let message = format!(
                    "with a stagger of {stagger} each flow begins at a fixed time, and nothing is spread: leave \
                     spread or stagger out"
                );
                return Err(Invalid::new("spread", message));
            }
            (Some(stagger), None) => self.one_by_one(stagger, context)?,
            (None, spread) => self.at_random(spread.unwrap_or(SPREAD), context),
        };
        // The latest first, so that the next one is taken from the end.
        starts.reverse();
        Ok(Box::new(Bulk { starts, size: self.size, protocol }))
    }

    /// The pairs of all flows, in the order of their numbers.
    fn flows<'a>(&self, context: &'a SourceContext) -> impl Iterator<Item = &'a (u16, u16)> + use<'a> {
        (0..self.flows).flat_map(|_| &context.pairs)
    }

    /// All starts, the earliest first.
    fn one_by_one(&self, stagger: Span, context: &SourceContext) -> Result<Vec<Start>, Invalid> {
        let count = u64::from(self.flows) * context.pairs.len() as u64;
        let series = Series::new(stagger, count, false, context)?;
        let flows = self.flows(context).zip(0..);
        Ok(flows.map(|((from, to), number)| (series.begin(number), *from, *to)).collect())
    }

    /// The starts before the source's stop, the earliest first.
    fn at_random(&self, over: Span, context: &SourceContext) -> Vec<Start> {
        let mut rng = context.streams.rng();
        let flows = self.flows(context);
        let starts = flows.map(|(from, to)| (spread(context.start, over, &mut rng), *from, *to));
        let mut starts: Vec<Start> = starts.filter(|(at, ..)| *at < context.stop).collect();
        starts.sort_unstable();
        starts
    }
}

struct Bulk {
    /// The latest first.
    starts: Vec<Start>,
    size: Option<Bytes>,
    protocol: Protocol,
}

impl Source for Bulk {
    fn wake(&mut self, net: &mut Net<'_>) {
        while let Some((_, from, to)) = self.starts.pop_if(|(at, ..)| *at <= net.now()) {
            let bytes = self.size.map(|size| size.0);
            net.transfer_over(self.protocol, (from, to), bytes, net.now());
        }
        if let Some((at, ..)) = self.starts.last() {
            net.wake_at(*at);
        }
    }
}
