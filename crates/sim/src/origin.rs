//! Names and numbers of flows and connections, taken from the source that they belong to.
//!
//! The key and the number of a flow, and its rank among events at the same time, do not depend on the other
//! sources of the run.

use std::collections::BTreeMap;

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{FiveTuple, Streams};

use crate::event_queue::{Class, Rank};
use crate::plan::SourcePlan;

/// The numbering of one source.
pub(crate) struct Origin {
    /// Rank of the source among events at the same time.
    rank: Rank,
    /// Hash of the source's name: part of the addresses of its flows.
    hash: u64,
    /// Position of the source in its group, and the number of sources in the group. Flows of a group are
    /// numbered round-robin.
    position: (u64, u64),
    /// Number of flows so far.
    flows: u64,
    /// Number of client ports used so far.
    ports: u64,
    /// Number of connections so far.
    connections: u64,
}

impl Origin {
    /// The numbering of a source that has not sent yet.
    pub fn new(name: &str, position: (u64, u64), streams: &Streams) -> Origin {
        let rank = Rank::of(Class::Packet, &streams.within("source").within(name));
        // The key is fixed: addresses do not depend on the seed.
        let hash = SipHasher::new(0, 0).hash(name.as_bytes());
        Origin { rank, hash, position, flows: 0, ports: 0, connections: 0 }
    }

    /// The rank of the source among events at the same time.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The number of a new flow.
    pub fn flow(&mut self) -> u64 {
        let (position, of) = self.position;
        self.flows += 1;
        (self.flows - 1) * of + position
    }

    /// The rank of a new connection.
    pub fn connection(&mut self) -> Rank {
        self.connections += 1;
        self.rank.numbered(Class::Connection, self.connections)
    }

    /// The 5-tuple of a new flow: addresses come from the nodes, ports count up.
    pub fn tuple(&mut self, from: u16, to: u16, protocol: u8) -> FiveTuple {
        self.ports += 1;
        let address = |node: u16| {
            let mut address = [0; 16];
            address[10..12].copy_from_slice(&[0xff, 0xff]);
            let [high, low] = node.to_be_bytes();
            address[12..].copy_from_slice(&[10, high, low, 1]);
            address
        };
        let mut from_address = address(from);
        // After 64,000 flows of a source the client takes another address, as many clients at a node would
        // have.
        let lap = (self.ports / 64_000) as u32;
        from_address[..4].copy_from_slice(&lap.to_be_bytes());
        // 48 bits distinguish the clients of two sources at one node.
        from_address[4..10].copy_from_slice(&self.hash.to_be_bytes()[..6]);
        FiveTuple {
            from: from_address,
            to: address(to),
            from_port: 1024 + (self.ports % 64_000) as u16,
            to_port: 80,
            protocol,
        }
    }
}

/// The numbering of each source, by its number.
pub(crate) fn origins(sources: &[SourcePlan], streams: &Streams) -> Vec<Origin> {
    let numbered = sources.iter().zip(places(sources));
    numbered.map(|(source, position)| Origin::new(&source.name, position, streams)).collect()
}

/// The position of each source in its group, in the order of the names, and the number of sources in the
/// group.
pub fn places(sources: &[SourcePlan]) -> Vec<(u64, u64)> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in sources {
        groups.entry(&source.group).or_default().push(&source.name);
    }
    groups.values_mut().for_each(|names| names.sort_unstable());
    let position = |source: &SourcePlan| {
        let group = &groups[source.group.as_str()];
        let position = group.binary_search(&source.name.as_str()).expect("each source is in its group");
        (position as u64, group.len() as u64)
    };
    sources.iter().map(position).collect()
}
