//! Other numbers of flows and hosts, by a permutation with a key.
//!
//! A mask would not do: the exclusive or of two numbers, such as source and destination, stays the same under
//! it, and their order under an addition. A Feistel network with a keyed function in each round is a
//! permutation whatever the function is (Luby and Rackoff, SIAM J. Comput. 17(2), 1988), and four rounds hide
//! its structure.

use giveway_qdisc::{FlowKey, Meta, Rng};

/// The rounds of the networks.
const ROUNDS: usize = 4;

/// The keys of the permutations of flows and of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    flows: [u64; ROUNDS],
    hosts: [u64; ROUNDS],
}

impl Names {
    /// Keys from a stream of random numbers.
    pub fn drawn(rng: &mut Rng) -> Names {
        let mut keys = || std::array::from_fn(|_| rng.word());
        Names { flows: keys(), hosts: keys() }
    }

    /// Metadata with other numbers.
    pub fn hide(&self, meta: Meta) -> Meta {
        let host = |number: u16| forward(u64::from(number), 8, &self.hosts) as u16;
        let flow = FlowKey(forward(meta.flow.0, 32, &self.flows));
        Meta { flow, from: host(meta.from), to: host(meta.to), ..meta }
    }

    /// The inverse of [`Names::hide`].
    pub fn show(&self, meta: Meta) -> Meta {
        let host = |number: u16| backward(u64::from(number), 8, &self.hosts) as u16;
        let flow = FlowKey(backward(meta.flow.0, 32, &self.flows));
        Meta { flow, from: host(meta.from), to: host(meta.to), ..meta }
    }
}

/// The number with halves of `bits` bits after all rounds.
fn forward(number: u64, bits: u32, keys: &[u64; ROUNDS]) -> u64 {
    let low = (1 << bits) - 1;
    let (mut left, mut right) = (number >> bits & low, number & low);
    for key in keys {
        (left, right) = (right, left ^ mixed(right, *key) & low);
    }
    left << bits | right
}

/// The inverse of [`forward`].
fn backward(number: u64, bits: u32, keys: &[u64; ROUNDS]) -> u64 {
    let low = (1 << bits) - 1;
    let (mut left, mut right) = (number >> bits & low, number & low);
    for key in keys.iter().rev() {
        (left, right) = (right ^ mixed(left, *key) & low, left);
    }
    left << bits | right
}

/// A function of half a number and a key, whose result depends on all bits of both: the last steps of
/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mixed(half: u64, key: u64) -> u64 {
    let mut word = (half.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ key;
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
