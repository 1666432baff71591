//! A keyed hash for flows: SipHash (Aumasson and Bernstein, 2012), so that an attacker who does not know the
//! key cannot choose flows that collide.

/// SipHash-2-4 with a 128-bit key.
#[derive(Clone, Copy, Debug)]
pub struct SipHasher {
    k0: u64,
    k1: u64,
}

impl SipHasher {
    /// A hash with this key.
    pub const fn new(k0: u64, k1: u64) -> SipHasher {
        SipHasher { k0, k1 }
    }

    /// The hash of `bytes`.
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        let mut v = [
            self.k0 ^ 0x736f_6d65_7073_6575,
            self.k1 ^ 0x646f_7261_6e64_6f6d,
            self.k0 ^ 0x6c79_6765_6e65_7261,
            self.k1 ^ 0x7465_6462_7974_6573,
        ];
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            compress(&mut v, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = bytes.len() as u8;
        compress(&mut v, u64::from_le_bytes(last));
        v[2] ^= 0xff;
        for _ in 0..4 {
            round(&mut v);
        }
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

fn compress(v: &mut [u64; 4], word: u64) {
    v[3] ^= word;
    round(v);
    round(v);
    v[0] ^= word;
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

/// Mixes a word with a key: for spreading flow keys, which are hashes already, over buckets.
#[inline]
pub const fn mix(word: u64, key: u64) -> u64 {
    let product = ((word ^ key) as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    (product >> 64) as u64 ^ product as u64
}

/// The bucket of a word among this many, with a key as for [`mix`].
#[inline]
pub fn bucket(word: u64, key: u64, buckets: usize) -> usize {
    // Scaling by multiplication needs no power of two and no division.
    ((u128::from(mix(word, key)) * buckets as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of the paper's appendix A and its reference table.
    #[test]
    fn matches_the_published_vectors() {
        let hasher = SipHasher::new(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let input: Vec<u8> = (0..15).collect();
        assert_eq!(hasher.hash(&input), 0xa129_ca61_49be_45e5);
        assert_eq!(hasher.hash(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(hasher.hash(&input[..8]), 0x93f5_f579_9a93_2462);
    }

    /// For any key, neighbouring words are spread over few and many buckets.
    #[test]
    fn mixing_spreads_neighbours() {
        assert_ne!(mix(u64::MAX, 0), mix(u64::MAX - 1, 0));
        for key in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            let mut buckets = [0; 16];
            (0..16_000).for_each(|word| buckets[mix(word, key) as usize % 16] += 1);
            assert!(buckets.iter().all(|count| (800..1200).contains(count)), "{buckets:?}");
        }
    }
}
