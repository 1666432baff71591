//! The quantities that are measured and predicted.

/// A quantity that is measured and predicted.
#[derive(Clone, Copy)]
pub struct Measure {
    /// Its name in tables.
    pub name: &'static str,
    /// The metric of the test bed, without the quantile.
    pub measured: &'static str,
    /// The metric of the prediction, without the quantile.
    pub predicted: &'static str,
    /// The one-way delay of the path, in seconds, if a prediction does not have it.
    pub path: f64,
    /// The number of its quantiles, of [`QUANTILES`]: a single transfer has the first only.
    pub quantiles: usize,
}

/// Quantiles of each measure, as metrics and tables name them.
pub const QUANTILES: [(&str, &str); 3] = [("p50_s", "median"), ("p95_s", "p95"), ("p99_s", "p99")];
/// Bounds on the error of each quantile, in percent.
pub const BOUNDS: [f64; 3] = [10.0, 20.0, 35.0];
