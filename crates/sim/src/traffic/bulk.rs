//! Bulk: transfers that last as long as the run, or a given number of bytes. Backups, uploads, long downloads.
//!
//! # Principles
//! - One TCP connection per pair of nodes, which always has data to send.
//! - Connections begin within `spread` of the start, each at a random moment, since flows that begin in the same
//!   picosecond stay in step.
//!
//! # Deviations
//! - None.
//!
//! # Cost
//! - One connection per flow.
//!
//! # References
//! - "Bulk transfer" of RFC 5166 section 2.3; ns-2's FTP over TCP.

use qdisc::{Bytes, Invalid, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Place, Source, Traffic, check_count, spread};
use crate::net::Net;

/// Parameters of `bulk`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How many connections each pair of nodes has.
    pub flows: u32,
    /// Bytes per connection; without it they never end.
    pub size: Option<Bytes>,
    /// Connections begin at a random moment within this time after the start.
    pub spread: Span,
}

impl Default for Config {
    fn default() -> Config {
        Config { flows: 1, size: None, spread: Span::ms(100) }
    }
}

impl Traffic for Config {
    const SUMMARY: &'static str = "TCP connections that always have data to send, or a given number of bytes";

    fn lasting(&self) -> Option<u32> {
        Some(self.flows)
    }

    fn build(&self, place: &Place) -> Result<Box<dyn Source>, Invalid> {
        if self.size == Some(Bytes(0)) {
            return Err(Invalid::new(
                "size",
                "a transfer of 0 bytes sends nothing: leave size out for no end",
            ));
        }
        check_count("flows", self.flows, place)?;
        let mut rng = place.streams.rng();
        let mut starts: Vec<(Time, u16, u16)> = (0..self.flows)
            .flat_map(|_| &place.pairs)
            .map(|(from, to)| (spread(place.start, self.spread, &mut rng), *from, *to))
            .filter(|(at, ..)| *at < place.stop)
            .collect();
        // Latest first, so that the next one is taken from the end.
        starts.sort_by(|a, b| b.cmp(a));
        Ok(Box::new(Bulk { starts, size: self.size }))
    }
}

struct Bulk {
    starts: Vec<(Time, u16, u16)>,
    size: Option<Bytes>,
}

impl Source for Bulk {
    fn wake(&mut self, net: &mut Net<'_>) {
        while let Some((_, from, to)) = self.starts.pop_if(|(at, ..)| *at <= net.now()) {
            net.transfer(from, to, self.size.map(|size| size.0));
        }
        if let Some((at, ..)) = self.starts.last() {
            net.wake_at(*at);
        }
    }
}
