//! The estimators of the Hurst parameter, tested with noise of known Hurst parameter.

use giveway_theory::hurst::{Estimate, FEWEST};
use proptest::prelude::*;

use crate::support::{Noise, covariance};

const SAMPLES: usize = 1 << 17;
const SEEDS: u64 = 7;

/// Name, estimate, and tolerance of an estimator.
type Method = (&'static str, fn(&Estimate) -> f64, f64);

/// The noise is correct: over many draws, mean products of two samples are the covariances of the definition,
/// at all positions.
#[test]
fn the_noise_has_the_covariance_of_fractional_noise() {
    const DRAWS: u64 = 40_000;
    for hurst in [0.3, 0.5, 0.7, 0.9] {
        let noise = Noise::new(hurst, 32);
        let mut sums = [[0.0; 16]; 16];
        for seed in 0..DRAWS {
            let draw = noise.draw(seed);
            for (sums, a) in sums.iter_mut().zip(&draw) {
                sums.iter_mut().zip(&draw).for_each(|(sum, b)| *sum += a * b);
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (j, sum) in sums.iter().enumerate() {
                let (found, expected) = (sum / DRAWS as f64, covariance(hurst, i.abs_diff(j)));
                // The standard error is 0.007 at most, and there are 4 x 256 comparisons.
                assert!((found - expected).abs() < 0.035, "H {hurst}, {i} and {j}: {found}, not {expected}");
            }
        }
    }
}

/// The calibration: medians over the seeds are within 0.05 of the true value, medians of rescaled range
/// within 0.08.
#[test]
fn known_noise_is_recovered() {
    for hurst in [0.5, 0.7, 0.9] {
        let noise = Noise::new(hurst, 2 * SAMPLES);
        let found: Vec<Estimate> =
            (1..=SEEDS).map(|seed| Estimate::of(&noise.draw(seed)).expect("it is long enough")).collect();
        let methods: [Method; 4] = [
            ("median of three", Estimate::median, 0.05),
            ("rescaled range", |estimate| estimate.rescaled_range, 0.08),
            ("variance-time", |estimate| estimate.variance_time, 0.05),
            ("wavelet", |estimate| estimate.wavelet, 0.05),
        ];
        for (name, method, tolerance) in methods {
            let mut values: Vec<f64> = found.iter().map(method).collect();
            values.sort_by(f64::total_cmp);
            let median = values[values.len() / 2];
            println!("H {hurst} {name}: {median:.3} ({:.3} to {:.3})", values[0], values[values.len() - 1]);
            assert!((median - hurst).abs() <= tolerance, "{name}: {median} is not {hurst}");
        }
    }
}

/// Independent samples that are not Gaussian: a packet in one of ten samples.
#[test]
fn series_without_memory_have_one_half() {
    let mut state = 1_u64;
    let series: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            // Knuth's generator; only its upper bits are good.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from((state >> 33).is_multiple_of(10))
        })
        .collect();
    let estimate = Estimate::of(&series).unwrap();
    assert!((estimate.median() - 0.5).abs() < 0.05, "{estimate:?}");
}

#[test]
fn short_series_have_no_estimate() {
    let noise = Noise::new(0.7, 4 * FEWEST).draw(1);
    assert!(Estimate::of(&noise[..FEWEST]).is_some());
    assert_eq!(Estimate::of(&noise[..FEWEST - 1]), None);
    assert_eq!(Estimate::of(&[]), None);
    // A long but constant series has no estimate. The mean of many 0.1 is not quite 0.1.
    assert_eq!(Estimate::of(&vec![0.1; SAMPLES]), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Packets or bytes, per bin or per second, with or without a constant rate beneath.
    #[test]
    fn neither_the_unit_nor_the_mean_matters(
        seed in any::<u64>(),
        hurst in 0.3..0.95f64,
        factor in 1e-3..1e6f64,
        addend in -10.0..10.0f64,
    ) {
        let noise = Noise::new(hurst, 2 * FEWEST).draw(seed);
        let other: Vec<f64> = noise.iter().map(|value| factor * (value + addend)).collect();
        let [one, other] = [&noise, &other].map(|series| Estimate::of(series).unwrap());
        prop_assert_eq!(one.scales, other.scales);
        for (a, b) in [
            (one.rescaled_range, other.rescaled_range),
            (one.variance_time, other.variance_time),
            (one.wavelet, other.wavelet),
        ] {
            prop_assert!((a - b).abs() < 1e-6, "{} is not {}", a, b);
        }
    }
}
