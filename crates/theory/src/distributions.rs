//! Means and variances of the distributions that traffic sources draw from.

/// Mean and variance, in the unit of the variable and that unit squared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The mean, E\[X\].
    pub mean: f64,
    /// The variance, E\[X²\] − E\[X\]².
    pub variance: f64,
}

impl Moments {
    fn from_raw(first: f64, second: f64) -> Moments {
        Moments { mean: first, variance: second - first * first }
    }
}

/// Moments of the Pareto distribution of shape α, bounded at both ends: density α·Lᵅ·x⁻ᵅ⁻¹ / (1 − (L/H)ᵅ) for
/// L ≤ x ≤ H.
///
/// E\[Xᵏ\] = α·Lᵅ / (1 − (L/H)ᵅ) · (Hᵏ⁻ᵅ − Lᵏ⁻ᵅ) / (k − α), with ln(H/L) as the last factor when k = α.
/// Needs 0 < L < H and α > 0.
///
/// Harchol-Balter, Crovella and Murta, "On Choosing a Task Assignment Policy for a Distributed Server
/// System", JPDC 59(2), 1999: the distribution B(k, p, α).
pub fn bounded_pareto(shape: f64, least: f64, most: f64) -> Moments {
    let raw = |k: f64| {
        let scale = shape * libm::pow(least, shape) / (1.0 - libm::pow(least / most, shape));
        let exponent = k - shape;
        let integral = if exponent.abs() < 1e-9 {
            libm::log(most / least)
        } else {
            (libm::pow(most, exponent) - libm::pow(least, exponent)) / exponent
        };
        scale * integral
    };
    Moments::from_raw(raw(1.0), raw(2.0))
}

/// Moments of Zipf's distribution on 1..=N: P(X = k) proportional to k⁻ᵃ.
///
/// E\[X\] = H(N, a − 1)/H(N, a) and E\[X²\] = H(N, a − 2)/H(N, a) with the generalised harmonic numbers
/// H(N, s) = Σ k⁻ˢ. Takes time proportional to N.
///
/// Johnson, Kemp and Kotz, "Univariate Discrete Distributions", 3rd edition, chapter 11.
pub fn bounded_zipf(exponent: f64, most: u32) -> Moments {
    let harmonic = |s: f64| -> f64 { (1..=most).rev().map(|k| libm::pow(f64::from(k), -s)).sum() };
    let all = harmonic(exponent);
    Moments::from_raw(harmonic(exponent - 1.0) / all, harmonic(exponent - 2.0) / all)
}

/// The smallest k at which the [`bounded_zipf`] distribution reaches at least `quantile` (0 to 1).
pub fn bounded_zipf_quantile(exponent: f64, most: u32, quantile: f64) -> u32 {
    let weight = |k: u32| libm::pow(f64::from(k), -exponent);
    let wanted = quantile * (1..=most).map(weight).sum::<f64>();
    let mut sum = 0.0;
    (1..most)
        .find(|k| {
            sum += weight(*k);
            sum >= wanted
        })
        .unwrap_or(most)
}

/// Moments of the lognormal distribution: ln X is normal with mean `mu` and standard deviation `sigma`.
///
/// E\[X\] = exp(μ + σ²/2), Var X = (exp(σ²) − 1)·exp(2μ + σ²).
///
/// Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions", volume 1, chapter 14.
pub fn lognormal(mu: f64, sigma: f64) -> Moments {
    let mean = libm::exp(mu + sigma * sigma / 2.0);
    Moments { mean, variance: libm::expm1(sigma * sigma) * mean * mean }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64, relative: f64) {
        assert!((value - expected).abs() <= relative * expected.abs(), "{value} is not {expected}");
    }

    /// α = 1 on \[1, 2\]: density 2/x², mean 2·ln 2, E\[X²\] = 2, both integrals by hand.
    #[test]
    fn bounded_pareto_by_hand() {
        let ln2 = std::f64::consts::LN_2;
        let moments = bounded_pareto(1.0, 1.0, 2.0);
        close(moments.mean, 2.0 * ln2, 1e-14);
        close(moments.variance, 2.0 - 4.0 * ln2 * ln2, 1e-12);
        // α = 2 on [1, 2]: density (8/3)/x³, mean 4/3, E[X²] = (8/3)·ln 2.
        let steep = bounded_pareto(2.0, 1.0, 2.0);
        close(steep.mean, 4.0 / 3.0, 1e-14);
        close(steep.variance, 8.0 / 3.0 * ln2 - 16.0 / 9.0, 1e-12);
    }

    /// Inverse-transform values at the midpoints of equal probabilities: x = L·(1 − u·(1 − (L/H)ᵅ))^(−1/α).
    #[test]
    fn bounded_pareto_is_the_mean_of_its_quantiles() {
        let (shape, least, most) = (1.2_f64, 1_000.0_f64, 1e6_f64);
        let n = 2_000_000;
        let (mut first, mut second) = (0.0, 0.0);
        for i in 0..n {
            let u = (f64::from(i) + 0.5) / f64::from(n);
            let x = least * libm::pow(1.0 - u * (1.0 - libm::pow(least / most, shape)), -1.0 / shape);
            first += x / f64::from(n);
            second += x * x / f64::from(n);
        }
        let moments = bounded_pareto(shape, least, most);
        close(moments.mean, first, 1e-6);
        close(moments.variance, second - first * first, 1e-4);
    }

    /// Without an upper end the mean is αL/(α − 1): 3 for α = 1.5 and L = 1.
    #[test]
    fn a_far_upper_end_is_the_ordinary_pareto() {
        close(bounded_pareto(1.5, 1.0, 1e18).mean, 3.0, 1e-8);
    }

    /// a = 1, N = 3: weights 1, 1/2, 1/3 of 11/6, so P = 6/11, 3/11, 2/11; mean 18/11, E\[X²\] = 36/11.
    #[test]
    fn bounded_zipf_by_hand() {
        let moments = bounded_zipf(1.0, 3);
        close(moments.mean, 18.0 / 11.0, 1e-14);
        close(moments.variance, 36.0 / 11.0 - 324.0 / 121.0, 1e-13);
        assert_eq!(bounded_zipf_quantile(1.0, 3, 0.5), 1);
        assert_eq!(bounded_zipf_quantile(1.0, 3, 0.55), 2);
        assert_eq!(bounded_zipf_quantile(1.0, 3, 1.0), 3);
    }

    /// The two size distributions of the EFD experiments: means 164.8 and 133.6 segments, medians 8 and 24.
    #[test]
    fn the_transfer_sizes_of_the_efd_experiments() {
        close(bounded_zipf(1.2, 3_000).mean, 164.8, 0.05 / 164.8);
        assert_eq!(bounded_zipf_quantile(1.2, 3_000, 0.5), 8);
        close(bounded_zipf(1.0, 1_000).mean, 133.6, 0.05 / 133.6);
        assert_eq!(bounded_zipf_quantile(1.0, 1_000, 0.5), 24);
    }

    /// Riemann sum of exp(z)ᵏ over the normal density.
    #[test]
    fn lognormal_by_integration() {
        let (mu, sigma) = (0.4, 0.7);
        let step = 1e-3;
        let raw = |k: f64| -> f64 {
            (-14_000..=14_000)
                .map(|i| {
                    let z = f64::from(i) * step;
                    libm::exp(k * (mu + sigma * z) - z * z / 2.0)
                })
                .sum::<f64>()
                * step
                / libm::sqrt(2.0 * std::f64::consts::PI)
        };
        let moments = lognormal(mu, sigma);
        close(moments.mean, raw(1.0), 1e-9);
        close(moments.variance, raw(2.0) - raw(1.0) * raw(1.0), 1e-9);
    }
}
