//! Permutations that need no memory, and draws that depend only on their place.
//!
//! A permutation of n numbers is a Feistel network over the next even number of bits, followed until the
//! result is below n ("cycle walking"; Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA
//! 2002). It is the same on every machine.

/// The seed of the order of points.
pub const ORDER: u64 = 1;

/// The place of `number` in a random order of the numbers below `count`.
///
/// # Panics
/// If `number` is not below `count`.
pub fn permuted(number: u64, count: u64, seed: u64) -> u64 {
    assert!(number < count, "only numbers below {count} are permuted");
    if count == 1 {
        return 0;
    }
    let half = (u64::BITS - (count - 1).leading_zeros()).div_ceil(2);
    let mut at = number;
    loop {
        at = network(at, half, seed);
        if at < count {
            return at;
        }
    }
}

/// One pass of the network over numbers of twice `half` bits.
fn network(number: u64, half: u32, seed: u64) -> u64 {
    let mask = (1u64 << half) - 1;
    let (mut left, mut right) = (number >> half, number & mask);
    for round in 0..4 {
        (left, right) = (right, left ^ (mixed(&[seed, round, right]) & mask));
    }
    (left << half) | right
}

/// A number that depends on all of these, by the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
pub fn mixed(words: &[u64]) -> u64 {
    let mut state = 0u64;
    for word in words {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ *word;
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 31;
    }
    state
}

/// A draw from [0, 1) with 53 bits, which depends on all of these.
pub fn drawn(words: &[u64]) -> f64 {
    (mixed(words) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_place() {
        for count in [1, 2, 3, 7, 64, 65, 1000] {
            for seed in 0..3 {
                let mut places: Vec<u64> = (0..count).map(|number| permuted(number, count, seed)).collect();
                places.sort_unstable();
                assert_eq!(places, (0..count).collect::<Vec<_>>(), "{count} numbers with seed {seed}");
            }
        }
    }

    /// The first tenth of an order is spread over all numbers, so that an estimate from it fits the rest.
    #[test]
    fn the_first_tenth_is_spread_over_all_numbers() {
        let count = 1000;
        let mut tenths = [0; 10];
        for number in 0..count / 10 {
            tenths[(permuted(number, count, 1) * 10 / count) as usize] += 1;
        }
        assert!(tenths.iter().all(|tenth| (2..=20).contains(tenth)), "{tenths:?}");
    }

    #[test]
    fn draws_are_uniform() {
        let mean = (0..10_000).map(|place| drawn(&[7, place])).sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert_ne!(drawn(&[1, 2]), drawn(&[2, 1]));
    }
}
