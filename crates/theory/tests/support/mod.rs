//! Noise with a known Hurst parameter.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

/// Exact fractional Gaussian noise of variance 1: the covariance, wrapped around a circle of twice the
/// length, is a matrix whose eigenvalues are its Fourier transform, so that a transform of independent
/// Gaussians weighted by their roots has just that covariance. Davies and Harte, "Tests for Hurst effect",
/// Biometrika 74(1), 1987.
pub struct Noise {
    /// Eigenvalues of the circulant matrix.
    eigenvalues: Vec<f64>,
}

impl Noise {
    /// Noise of Hurst parameter `hurst`, from a circle of `circle` samples.
    pub fn new(hurst: f64, circle: usize) -> Noise {
        let mut row: Vec<Complex<f64>> =
            (0..circle).map(|lag| Complex::new(covariance(hurst, lag.min(circle - lag)), 0.0)).collect();
        FftPlanner::new().plan_fft_forward(circle).process(&mut row);
        let eigenvalues: Vec<f64> = row.iter().map(|value| value.re).collect();
        // In theory none is negative for this covariance; rounding may make one so.
        assert!(eigenvalues.iter().all(|value| *value > -1e-9), "the embedding is not a covariance");
        Noise { eigenvalues }
    }

    /// A series, half as long as the circle, which depends on the seed.
    pub fn draw(&self, seed: u64) -> Vec<f64> {
        let mut rng = Pcg64::seed_from_u64(seed);
        let n = self.eigenvalues.len();
        let weighted = |value: &f64| {
            let root = (value.max(0.0) / n as f64).sqrt();
            let [a, b] = gaussians(&mut rng);
            Complex::new(root * a, root * b)
        };
        let mut waves: Vec<Complex<f64>> = self.eigenvalues.iter().map(weighted).collect();
        FftPlanner::new().plan_fft_forward(n).process(&mut waves);
        // The real and the imaginary part are two independent series; beyond half the circle the covariance
        // is the wrong one.
        waves[..n / 2].iter().map(|value| value.re).collect()
    }
}

/// Covariance of samples at a distance of `lag`.
pub fn covariance(hurst: f64, lag: usize) -> f64 {
    let power = |k: f64| libm::pow(k, 2.0 * hurst);
    let k = lag as f64;
    (power(k + 1.0) - 2.0 * power(k) + power((k - 1.0).abs())) / 2.0
}

/// Two independent Gaussians of mean 0 and variance 1. Box and Muller 1958.
fn gaussians(rng: &mut Pcg64) -> [f64; 2] {
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let radius = (-2.0 * libm::log1p(-uniform())).sqrt();
    let angle = 2.0 * std::f64::consts::PI * uniform();
    [radius * libm::cos(angle), radius * libm::sin(angle)]
}
