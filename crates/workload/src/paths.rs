//! Paths: the round trips without queues between the capture point and hosts.
//!
//! All packets between the capture point and a host cross the same path, whichever host they come from. So the
//! smallest round trip of all flows of a host is its path. One of a single flow may include queueing delay.

use std::collections::BTreeMap;

use giveway_qdisc::FiveTuple;

use crate::model::{Side, Workload};

/// Smallest round trips between the capture point and hosts, ns.
pub(crate) struct Paths {
    least: BTreeMap<[u8; 16], u64>,
}

/// From the capture point to the client and back, and to the server and back, ns.
pub(crate) type RoundTrips = (Option<u64>, Option<u64>);

impl Paths {
    /// The smallest of these round trips, each to the hosts of a flow.
    pub fn of(trips: impl Iterator<Item = (FiveTuple, RoundTrips)>) -> Paths {
        let mut least = BTreeMap::new();
        for (tuple, (client, server)) in trips {
            for (host, trip) in [(tuple.from, client), (tuple.to, server)] {
                if let Some(trip) = trip {
                    let known = least.entry(host).or_insert(trip);
                    *known = trip.min(*known);
                }
            }
        }
        Paths { least }
    }

    /// The smallest round trip from the capture point to an end of a connection.
    pub fn to(&self, tuple: &FiveTuple, side: Side) -> Option<u64> {
        self.least.get(if side == Side::Client { &tuple.from } else { &tuple.to }).copied()
    }

    /// The round-trip time between the hosts. If only one part of the path is measured, the other is zero.
    pub fn rtt(&self, tuple: &FiveTuple) -> Option<u64> {
        let parts = [self.to(tuple, Side::Client), self.to(tuple, Side::Server)];
        let rtt = parts.into_iter().flatten().reduce(u64::saturating_add)?;
        // A longer time cannot be a measurement: the clocks of a damaged capture jump.
        (rtt <= Workload::LONGEST).then_some(rtt)
    }
}
