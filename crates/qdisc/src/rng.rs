//! Random numbers. Each component draws from its own stream, named by its place, so its draws never depend
//! on another's.

use rand_core::{Rng as _, SeedableRng};
use rand_pcg::Pcg64;

use crate::hash::SipHasher;

/// A seed and a path, which name a random stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
    path: String,
}

impl Streams {
    /// The root of the streams of a run.
    pub fn new(seed: u64) -> Streams {
        Streams { seed, path: String::new() }
    }

    /// The child `name` of this path.
    pub fn within(&self, name: &str) -> Streams {
        Streams { seed: self.seed, path: [&self.path, "/", name].concat() }
    }

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The path, with a "/" before each name; empty at the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The random stream of this path.
    pub fn rng(&self) -> Rng {
        let word = |key| SipHasher::new(self.seed, key).hash(self.path.as_bytes());
        let state = (u128::from(word(1)) << 64) | u128::from(word(2));
        let stream = (u128::from(word(3)) << 64) | u128::from(word(4));
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(&state.to_le_bytes());
        seed[16..].copy_from_slice(&stream.to_le_bytes());
        Rng(Pcg64::from_seed(seed))
    }
}

/// A stream of random numbers, the same on every machine.
#[derive(Clone, Debug)]
pub struct Rng(Pcg64);

impl Rng {
    /// Uniform over all 64-bit words.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// Uniform in [0, 1), 53 bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
    /// Uniform in 0..n.
    ///
    /// # Panics
    /// If `n` is zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "there is something to choose from");
        // Lemire's multiplication. The bias of n / 2^64 is far too small to be observed in a run.
        ((u128::from(self.word()) * u128::from(n)) >> 64) as u64
    }
    /// Exponential with the given mean, by inversion.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }
    /// Standard normal, by Box and Muller; one draw uses two uniforms.
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        libm::sqrt(-2.0 * libm::log(u)) * libm::cos(std::f64::consts::TAU * v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_and_fixed() {
        let root = Streams::new(7);
        let draw = |s: &Streams| s.rng().word();
        assert_eq!(draw(&root.within("a")), draw(&Streams::new(7).within("a")));
        assert_ne!(draw(&root.within("a")), draw(&root.within("b")));
        assert_ne!(draw(&root.within("a")), draw(&Streams::new(8).within("a")));
        // Fixed values: a change of the generator changes every fingerprint of the project.
        assert_eq!(draw(&root.within("a")), 6_032_001_795_747_152_111);
    }

    #[test]
    fn draws_have_their_mean() {
        let mut rng = Streams::new(1).rng();
        let n = 100_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || rng.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || rng.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!((mean(&mut || rng.below(10) as f64) - 4.5).abs() < 0.05);
        assert!(mean(&mut || rng.normal()).abs() < 0.02);
    }
}
