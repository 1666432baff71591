//! Measured means with a band that contains the true mean, for tests with a known mean.

use giveway_switch::Outcome;
use giveway_switch::outcome::Batch;

/// The mean over batches, and four times its standard error.
pub fn mean_and_band(outcome: &Outcome, of: impl Fn(&Batch) -> f64) -> (f64, f64) {
    let values: Vec<f64> = outcome.batches.iter().map(of).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0);
    (mean, 4.0 * (variance / n).sqrt())
}

/// Cells that crossed per slot and port.
pub fn throughput(outcome: &Outcome) -> (f64, f64) {
    let slots = outcome.slots as f64 / outcome.batches.len() as f64;
    mean_and_band(outcome, |batch| batch.crossed as f64 / (slots * outcome.ports as f64))
}

#[track_caller]
pub fn assert_within((got, band): (f64, f64), want: f64) {
    // A band so wide that any mean would pass is a failure, too.
    assert!(band < 0.06 * want, "{got} is only known to {band}");
    assert!((got - want).abs() <= band, "{got} is not {want}, by more than {band}");
}
