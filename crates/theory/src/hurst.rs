//! Estimators of the Hurst parameter H, the strength of the long-range dependence of a stationary series.
//!
//! A series of counts is self-similar with H if sums over blocks of m samples have the distribution of single
//! samples times m to the power of H. Traffic with H = 1/2 has no memory, and its bursts average out; towards
//! 1 it is bursty on every scale.
//!
//! H is defined in the limit of long times, and every series is finite. So there are three estimators with
//! different errors, none of them exact; [`Estimate::median`] is their median. Each fits a line to
//! logarithms over a range of scales. The range was fixed before any estimation, by the advice of the papers:
//! the shortest scales are left out because they show other properties of the traffic (back-to-back packets,
//! the length of a burst), the longest because they have too few blocks.
//!
//! - **Rescaled range**, on blocks of 64, 128, 256, ... samples, as long as there are 10 blocks: log of the
//!   mean R/S against log of the block, with equal weights. H is the slope.
//! - **Variance-time**, on blocks of 8, 16, 32, ... samples, as long as there are 100 blocks: log of the
//!   variance of the blocks' means against log of the block, with equal weights. H is 1 + slope/2.
//! - **Haar wavelet**, on octaves 3, 4, 5, ... (8, 16, 32, ... samples), as long as there are 16
//!   coefficients: log₂ of the mean squared coefficient against the octave, weighted by the number of
//!   coefficients. H is (slope + 1)/2.
//!
//! **Accuracy.** On exact fractional noise of 2¹⁷ samples, medians over seven series:
//!
//! | H | rescaled range | variance-time | wavelet | median of the three |
//! |---|---|---|---|---|
//! | 0.5 | 0.515 | 0.491 | 0.502 | 0.502 |
//! | 0.7 | 0.693 | 0.690 | 0.701 | 0.693 |
//! | 0.9 | 0.860 | 0.865 | 0.901 | 0.869 |
//!
//! Rescaled range is biased towards 0.7 from both sides. Variance-time is too low for large H, because the
//! variance is taken around the mean of the series itself. Traffic is not such noise: a sum of on/off sources
//! approaches it slowly, and estimates of single runs of half an hour spread over 0.2 and more. One run
//! proves little.
//!
//! - Taqqu, Teverovsky and Willinger, "Estimators for long-range dependence: an empirical study", Fractals
//!   3(4), 1995.
//! - Leland, Taqqu, Willinger and Wilson, "On the self-similar nature of Ethernet traffic (extended
//!   version)", IEEE/ACM Transactions on Networking 2(1), 1994: variance-time plots and rescaled ranges of
//!   counts per 10 ms.
//! - Abry and Veitch, "Wavelet analysis of long-range-dependent traffic", IEEE Transactions on Information
//!   Theory 44(1), 1998; Veitch and Abry, the same journal 45(3), 1999, with the weights and the correction.

/// Smallest number of samples for an estimate: at 10 ms each, 82 s. Two of the three estimators then have
/// four scales; a line through fewer is not reliable.
pub const FEWEST: usize = 8192;

/// Shortest block of the rescaled range, in samples; each next scale is twice as long.
const RANGE_BLOCK: usize = 64;
/// Shortest block of variance-time, in samples.
const VARIANCE_BLOCK: usize = 8;
/// First octave of the wavelets.
const FIRST_OCTAVE: u32 = 3;
/// Smallest number of blocks of the rescaled range on the longest scale.
const RANGE_BLOCKS: usize = 10;
/// Smallest number of blocks of variance-time on the longest scale.
const VARIANCE_BLOCKS: usize = 100;
/// Smallest number of wavelet coefficients on the longest scale.
const COEFFICIENTS: usize = 16;
/// Smallest number of scales for the fit of a line.
const FEWEST_SCALES: usize = 3;

/// Three estimates of H of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// By rescaled range. Hurst 1951; Mandelbrot and Wallis 1969.
    pub rescaled_range: f64,
    /// By the variance of aggregates.
    pub variance_time: f64,
    /// By Haar wavelets.
    pub wavelet: f64,
    /// The scales of the estimates.
    pub scales: Scales,
}

/// The shortest and the longest scale that an estimate rests on, in samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scales {
    /// Of the rescaled range.
    pub rescaled_range: (usize, usize),
    /// Of the variance of aggregates.
    pub variance_time: (usize, usize),
    /// Of the wavelets: two to the power of the octave.
    pub wavelet: (usize, usize),
}

impl Estimate {
    /// Estimates H of a stationary series, such as packets per 10 ms. The unit does not matter: neither a
    /// factor nor an addend changes H.
    ///
    /// `None` if the series has fewer than [`FEWEST`] samples, or does not vary on at least three scales of
    /// each estimator.
    pub fn of(series: &[f64]) -> Option<Estimate> {
        let scales = Scales::of(series.len())?;
        Some(Estimate {
            rescaled_range: rescaled_range(series, scales.rescaled_range)?,
            variance_time: variance_time(series, scales.variance_time)?,
            wavelet: wavelet(series, scales.wavelet)?,
            scales,
        })
    }

    /// The median of the three estimates.
    pub fn median(&self) -> f64 {
        let mut three = [self.rescaled_range, self.variance_time, self.wavelet];
        three.sort_by(f64::total_cmp);
        three[1]
    }
}

impl Scales {
    /// The scales for a series of this number of samples. `None` if it is below [`FEWEST`].
    pub fn of(samples: usize) -> Option<Scales> {
        let up_to = |first: usize, blocks: usize| {
            let longest = doubled(first, samples / blocks).last()?;
            Some((first, longest))
        };
        if samples < FEWEST {
            return None;
        }
        Some(Scales {
            rescaled_range: up_to(RANGE_BLOCK, RANGE_BLOCKS)?,
            variance_time: up_to(VARIANCE_BLOCK, VARIANCE_BLOCKS)?,
            wavelet: up_to(1 << FIRST_OCTAVE, COEFFICIENTS)?,
        })
    }
}

/// H of the traffic of many on-off sources with heavy-tailed times: (3 − α) / 2, where α is the smaller of
/// the two shapes, P(time > x) ~ x⁻ᵅ. It holds in the limit of many sources and, after that, of long times.
///
/// Shapes have no unit. A shape of 2 or more has finite variance and counts as 2; if both are, H is 1/2.
/// `None` if a shape is 1 or less, where times have no mean.
///
/// Taqqu, Willinger and Sherman, "Proof of a fundamental result in self-similar traffic modeling", Computer
/// Communication Review 27(2), 1997, theorem 1.
pub fn on_off_hurst(shape_on: f64, shape_off: f64) -> Option<f64> {
    let heavier = shape_on.min(shape_off).min(2.0);
    let means = shape_on > 1.0 && shape_off > 1.0;
    means.then_some((3.0 - heavier) / 2.0)
}

/// H by rescaled range. R is the range of the sums of the deviations of a block from its mean, 0 included,
/// and S its standard deviation: E\[R/S\] ~ nᴴ.
fn rescaled_range(series: &[f64], (first, last): (usize, usize)) -> Option<f64> {
    let mut points = Vec::new();
    for block in doubled(first, last) {
        let ratios: Vec<f64> = series.chunks_exact(block).filter_map(range_over_deviation).collect();
        if !ratios.is_empty() {
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            points.push(Point { x: libm::log2(block as f64), y: libm::log2(mean), weight: 1.0 });
        }
    }
    slope(&points)
}

/// Rescaled range R/S of a block: the range of the partial sums of deviations from its mean, over its
/// standard deviation. `None` for a constant block.
fn range_over_deviation(block: &[f64]) -> Option<f64> {
    let (mean, variance) = moments(block);
    let (mut sum, mut least, mut most) = (0.0, 0.0_f64, 0.0_f64);
    for value in block {
        sum += value - mean;
        least = least.min(sum);
        most = most.max(sum);
    }
    (variance > 0.0).then(|| (most - least) / variance.sqrt())
}

/// H by variance-time: the variance of means over m samples falls as m²ᴴ⁻².
fn variance_time(series: &[f64], (first, last): (usize, usize)) -> Option<f64> {
    let mut points = Vec::new();
    for block in doubled(first, last) {
        let means: Vec<f64> =
            series.chunks_exact(block).map(|block| block.iter().sum::<f64>() / block.len() as f64).collect();
        let (_, variance) = moments(&means);
        if variance > 0.0 {
            points.push(Point { x: libm::log2(block as f64), y: libm::log2(variance), weight: 1.0 });
        }
    }
    Some(1.0 + slope(&points)? / 2.0)
}

/// H by Haar wavelets: the mean squared coefficient of an octave j grows as 2^(j(2H − 1)), exactly so for
/// fractional noise.
fn wavelet(series: &[f64], (first, last): (usize, usize)) -> Option<f64> {
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let mut points = Vec::new();
    let mut smooth = series.to_vec();
    for octave in 1..=last.ilog2() {
        let energy: f64 = smooth.chunks_exact(2).map(|pair| (pair[1] - pair[0]) * (pair[1] - pair[0])).sum();
        smooth = smooth.chunks_exact(2).map(|pair| (pair[0] + pair[1]) * half).collect();
        let count = smooth.len() as f64;
        if octave >= first.ilog2() && energy > 0.0 {
            let y = libm::log2(energy / 2.0 / count) - log_of_mean_square(count);
            points.push(Point { x: f64::from(octave), y, weight: count });
        }
    }
    Some((slope(&points)? + 1.0) / 2.0)
}

/// The mean of log₂ of the mean of n squared Gaussians of variance 1: (ψ(n/2) − ln(n/2)) / ln 2, with the
/// first terms of the series of the digamma function. Veitch and Abry 1999.
fn log_of_mean_square(n: f64) -> f64 {
    -(1.0 / n + 1.0 / (3.0 * n * n)) / std::f64::consts::LN_2
}

/// The lengths `first`, twice that, four times that, up to `most`.
fn doubled(first: usize, most: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |length| length.checked_mul(2))
        .take_while(move |length| *length <= most)
}

/// Mean and variance. Differences to the first value make the variance of constant values exactly zero.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values[0] + values.iter().map(|value| value - values[0]).sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
    (mean, variance)
}

/// A point of a plot of logarithms.
struct Point {
    /// Logarithm of the scale.
    x: f64,
    /// Logarithm of the statistic on that scale.
    y: f64,
    /// Weight in the fit.
    weight: f64,
}

/// The slope of the line through these points, by weighted least squares.
fn slope(points: &[Point]) -> Option<f64> {
    if points.len() < FEWEST_SCALES {
        return None;
    }
    let total: f64 = points.iter().map(|point| point.weight).sum();
    let x = points.iter().map(|point| point.weight * point.x).sum::<f64>() / total;
    let y = points.iter().map(|point| point.weight * point.y).sum::<f64>() / total;
    let (mut up, mut along) = (0.0, 0.0);
    for point in points {
        up += point.weight * (point.x - x) * (point.y - y);
        along += point.weight * (point.x - x) * (point.x - x);
    }
    Some(up / along)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heavier_tail_decides() {
        let close = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() - expected).abs() < 1e-12, "{found:?} is not {expected}");
        };
        close(on_off_hurst(1.4, 1.2), 0.9);
        close(on_off_hurst(1.2, 1.7), 0.9);
        close(on_off_hurst(1.4, 3.0), 0.8);
        close(on_off_hurst(1.9, 1.9), 0.55);
        // Finite variances leave no memory.
        close(on_off_hurst(2.0, 100.0), 0.5);
        assert_eq!(on_off_hurst(1.0, 1.5), None);
        assert_eq!(on_off_hurst(1.5, 0.3), None);
        assert_eq!(on_off_hurst(f64::NAN, 1.5), None);
    }

    #[test]
    fn the_scales_follow_from_the_length() {
        let scales =
            |rescaled_range, variance_time, wavelet| Scales { rescaled_range, variance_time, wavelet };
        assert_eq!(Scales::of(FEWEST), Some(scales((64, 512), (8, 64), (8, 512))));
        assert_eq!(Scales::of(1 << 17), Some(scales((64, 8192), (8, 1024), (8, 8192))));
        assert_eq!(Scales::of(FEWEST - 1), None);
    }

    /// 0 0 3 1: mean 1, deviations -1 -1 2 0, sums -1 -2 0 0: the range is 2. Their squares are 1 1 4 0, so
    /// S² is 6/4.
    #[test]
    fn a_rescaled_range_by_hand() {
        let ratio = range_over_deviation(&[0.0, 0.0, 3.0, 1.0]).unwrap();
        assert!((ratio - 2.0 / 1.5_f64.sqrt()).abs() < 1e-15, "{ratio}");
        assert_eq!(range_over_deviation(&[7.0; 4]), None);
    }

    /// y = 3x + 1 whatever the weights; and a point off the line pulls by its weight. Points (0, 0), (1, 0),
    /// (2, 1) with weights 1, 2, 1: means 1 and 1/4, so (-1)(-1/4) + 0 + (1)(3/4) = 1 over 2.
    #[test]
    fn lines_by_hand() {
        let points = |all: &[(f64, f64, f64)]| -> Vec<Point> {
            all.iter().map(|(x, y, weight)| Point { x: *x, y: *y, weight: *weight }).collect()
        };
        assert_eq!(slope(&points(&[(0.0, 1.0, 1.0), (1.0, 4.0, 5.0), (3.0, 10.0, 2.0)])), Some(3.0));
        assert_eq!(slope(&points(&[(0.0, 0.0, 1.0), (1.0, 0.0, 2.0), (2.0, 1.0, 1.0)])), Some(0.5));
        assert_eq!(slope(&points(&[(0.0, 0.0, 1.0), (1.0, 0.0, 2.0)])), None);
    }

    /// ψ(1/2) = −γ − 2 ln 2 and ψ(5) = 25/12 − γ. The series is one for large n.
    #[test]
    fn the_correction_of_a_logarithm() {
        const GAMMA: f64 = 0.577_215_664_901_532_9;
        let exact = |psi: f64, half: f64| (psi - libm::log(half)) / std::f64::consts::LN_2;
        assert!((log_of_mean_square(10.0) - exact(25.0 / 12.0 - GAMMA, 5.0)).abs() < 1e-4);
        let one = exact(-GAMMA - 2.0 * std::f64::consts::LN_2, 0.5);
        assert!((log_of_mean_square(1.0) - one).abs() < 0.2, "{one}");
    }
}
