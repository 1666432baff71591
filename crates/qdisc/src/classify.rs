//! Turns headers into [`Meta`]: flow keys, and the host's classifier.

use crate::hash::SipHasher;
use crate::packet::{FlowKey, Meta};
use crate::units::Time;

/// Fills in what disciplines decide by. A host has one per port; it may keep state (edge routers count flows).
pub trait Classifier<P> {
    /// Completes `meta` for a packet that arrives at `now`.
    fn classify(&mut self, meta: &mut Meta, payload: &P, now: Time);
}

/// Addresses, ports and protocol: what tells flows apart. Direction matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FiveTuple {
    /// Source address; IPv4 as an IPv4-mapped IPv6 address.
    pub from: [u8; 16],
    /// Destination address, likewise.
    pub to: [u8; 16],
    /// Source port; 0 where the protocol has none, or the fragment does not carry it.
    pub from_port: u16,
    /// Destination port, likewise.
    pub to_port: u16,
    /// IP protocol number.
    pub protocol: u8,
}

impl FiveTuple {
    /// The tuple as seen in the other direction.
    pub fn reversed(self) -> FiveTuple {
        FiveTuple { from: self.to, to: self.from, from_port: self.to_port, to_port: self.from_port, ..self }
    }

    /// Its flow key under `hasher`.
    pub fn key(&self, hasher: &SipHasher) -> FlowKey {
        let mut bytes = [0; 37];
        bytes[..16].copy_from_slice(&self.from);
        bytes[16..32].copy_from_slice(&self.to);
        bytes[32..34].copy_from_slice(&self.from_port.to_be_bytes());
        bytes[34..36].copy_from_slice(&self.to_port.to_be_bytes());
        bytes[36] = self.protocol;
        FlowKey(hasher.hash(&bytes))
    }
}
