//! Flow keys: the hash of a packet's addresses, ports and protocol.

use crate::hash::SipHasher;
use crate::packet::FlowKey;

/// Addresses, ports and protocol of a packet, which identify its flow. The two directions of a connection are
/// two flows.
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
    /// The tuple of the opposite direction.
    pub fn reversed(self) -> FiveTuple {
        FiveTuple { from: self.to, to: self.from, from_port: self.to_port, to_port: self.from_port, ..self }
    }

    /// Flow key of the tuple, by a keyed hash.
    pub fn key(&self, hasher: &SipHasher) -> FlowKey {
        let mut bytes = [0; 37];
        bytes[..16].copy_from_slice(&self.from);
        bytes[16..32].copy_from_slice(&self.to);
        bytes[32..34].copy_from_slice(&self.from_port.to_be_bytes());
        bytes[34..36].copy_from_slice(&self.to_port.to_be_bytes());
        bytes[36] = self.protocol;
        FlowKey(hasher.hash(&bytes))
    }

    /// Exclusive or of addresses and ports, in 32 bits: the flow hash of the TRR paper (Chen and Chen, about
    /// 2000), section 3.2. The paper has IPv4 only; an IPv6 address contributes all four of its words.
    ///
    /// Flows collide easily. Both directions of a connection have the same word, and so do two connections
    /// with swapped ports.
    pub fn xor(&self) -> u32 {
        let words = |address: &[u8; 16]| {
            let (words, _) = address.as_chunks::<4>();
            words.iter().fold(0, |all, word| all ^ u32::from_be_bytes(*word))
        };
        // The prefix of IPv4-mapped addresses is in both addresses, so it cancels out.
        words(&self.from) ^ words(&self.to) ^ u32::from(self.from_port) ^ u32::from(self.to_port)
    }
}

/// Hash function of flow keys.
#[derive(Clone, Copy, Debug)]
pub enum FlowHash {
    /// A keyed hash of 64 bits, which backends use.
    Keyed(SipHasher),
    /// [`FiveTuple::xor`] modulo a prime, as in the TRR paper. Flows that share a bucket share a key, and so
    /// are one flow.
    XorMod(u32),
}

impl FlowHash {
    /// The hash of the TRR paper with 1,021 buckets. The paper does not give its prime.
    pub const PUBLISHED: FlowHash = FlowHash::XorMod(1021);

    /// The flow key of a tuple.
    ///
    /// # Panics
    /// If the number of buckets is zero.
    pub fn key(&self, tuple: &FiveTuple) -> FlowKey {
        match self {
            FlowHash::Keyed(hasher) => tuple.key(hasher),
            FlowHash::XorMod(prime) => FlowKey(u64::from(tuple.xor() % prime)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn tuple(from: [u8; 4], from_port: u16, to: [u8; 4], to_port: u16) -> FiveTuple {
        let mapped = |[a, b, c, d]: [u8; 4]| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d];
        FiveTuple { from: mapped(from), to: mapped(to), from_port, to_port, protocol: 17 }
    }

    const A: [u8; 4] = [192, 0, 2, 1];
    const B: [u8; 4] = [198, 51, 100, 7];

    /// Both directions of a call, both directions with swapped ports, and the next call: five flows, one
    /// word.
    #[test]
    fn exclusive_or_distinguishes_few_flows() {
        let flows = [
            tuple(A, 5004, B, 6000),
            tuple(B, 6000, A, 5004),
            tuple(A, 6000, B, 5004),
            tuple(B, 5004, A, 6000),
            tuple(A, 5005, B, 6001),
        ];
        let word = 0xc000_0201 ^ 0xc633_6407 ^ 5004 ^ 6000;
        assert_eq!(flows.map(|flow| flow.xor()), [word; 5]);
        assert_eq!(flows.map(|flow| FlowHash::XorMod(101).key(&flow)), [FlowKey(61); 5]);
        let keyed = FlowHash::Keyed(SipHasher::new(1, 2));
        assert_eq!(flows.iter().map(|flow| keyed.key(flow)).collect::<BTreeSet<_>>().len(), 5);
        assert_eq!(keyed.key(&flows[0]), flows[0].key(&SipHasher::new(1, 2)));
    }

    /// A thousand calls between two hosts, whose ports increase together as telephones choose them, share few
    /// of 1,021 buckets.
    #[test]
    fn parallel_sessions_share_buckets() {
        let calls: Vec<FiveTuple> =
            (0..1000).map(|call| tuple(A, 5004 + 2 * call, B, 6000 + 2 * call)).collect();
        let buckets =
            |hash: FlowHash| calls.iter().map(|call| hash.key(call).0 % 1021).collect::<BTreeSet<_>>().len();
        let published = buckets(FlowHash::PUBLISHED);
        let keyed = buckets(FlowHash::Keyed(SipHasher::new(1, 2)));
        // At random, 1,000 flows would occupy about 638 buckets.
        assert!((580..700).contains(&keyed), "{keyed}");
        assert_eq!(published, 35);
    }
}
