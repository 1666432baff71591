//! Distributions of transfer sizes, each with its exact mean.
//!
//! Means matter because a load is given as a rate and arrivals are drawn from `load / mean`: an approximate
//! mean is an approximate load.

use std::path::{Path, PathBuf};

use giveway_qdisc::{Bytes, Invalid, Packets, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sizes {
    /// A constant size.
    Fixed(Bytes),
    /// Bounded Pareto distribution: a power law between two bounds.
    Pareto {
        /// The exponent; a smaller one gives a heavier tail.
        shape: f64,
        /// Smallest size.
        min: Bytes,
        /// Largest size.
        max: Bytes,
    },
    /// Bounded Zipf: 1 to `max` full segments, k of them with a probability proportional to k^-exponent.
    Zipf {
        /// The exponent.
        exponent: f64,
        /// Largest number of segments.
        max: Packets,
    },
    /// Lognormal distribution.
    Lognormal {
        /// Mean, before `max` cuts the tail off.
        mean: Bytes,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Largest size; larger ones are drawn again.
        #[serde(default)]
        max: Option<Bytes>,
    },
    /// A file with a size in bytes and the share of transfers up to that size in each line, as sizes of
    /// data-centre workloads are published; sizes between two lines are spread evenly (linear interpolation).
    Cdf(PathBuf),
    /// The sizes of a web search cluster (DCTCP, 2010), with a mean of 1.67 MB.
    WebSearch,
    /// The sizes of a data mining cluster (VL2, 2009), with a mean of 7.47 MB.
    DataMining,
}

/// A distribution of sizes is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SizesError {
    /// The constant size is 0.
    #[error("a transfer of 0 bytes sends nothing")]
    Nothing,
    /// The shape of a Pareto distribution is not positive.
    #[error("a shape of {0}; write a positive number, for example 1.2")]
    Shape(f64),
    /// The bounds of a Pareto distribution are not in order.
    #[error("sizes from {min} to {max}: min must be at least 1, and at most max")]
    Bounds {
        /// Smallest size, bytes.
        min: f64,
        /// Largest size, bytes.
        max: f64,
    },
    /// The exponent of a Zipf distribution is out of range.
    #[error("an exponent of {0}; write a number from 0 to 100, for example 1.2")]
    Exponent(f64),
    /// The largest number of segments of a Zipf distribution is out of range.
    #[error("a max of {0} segments; write 1 to {MAX_SEGMENTS}")]
    Segments(u64),
    /// The mean of a lognormal distribution is less than a byte.
    #[error("a mean of 0 bytes sends nothing")]
    Mean,
    /// The standard deviation of a lognormal distribution is out of range.
    #[error("a sigma of {0}; write a number from 0 to 10, for example 1.5")]
    Sigma(f64),
    /// The largest size of a lognormal distribution cuts nearly all of it off.
    #[error("nearly every size is above max: write a larger max, or a smaller mean")]
    Max,
}

/// The file of an empirical distribution is invalid. The caller adds the path. Rows are numbered from 1.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum CdfError {
    #[error("row {row} has {found} columns; expected 2, size in bytes and share")]
    Columns { row: usize, found: usize },
    #[error("row {row}, column {column}: found {found:?}, expected a number of 0 or more")]
    Number { row: usize, column: &'static str, found: String },
    #[error("row {row}: {size} {share} is below the row before it; both columns must grow")]
    Decrease { row: usize, size: String, share: String },
    #[error("has no rows; expected lines of size in bytes and share")]
    Empty,
    #[error("the last share is {0}; expected 1, or 100 for percent")]
    LastShare(f64),
    #[error("the largest size is 0")]
    Nothing,
}

/// A sampler of a distribution of sizes.
#[derive(Clone, Debug)]
pub struct Sampler {
    law: Law,
    mean: f64,
}

#[derive(Clone, Debug)]
enum Law {
    Fixed(u64),
    Pareto(Pareto),
    /// P(size <= k segments), k from 1.
    Zipf {
        cumulative: Vec<f64>,
        mss: u64,
    },
    Lognormal {
        mu: f64,
        sigma: f64,
        max: f64,
    },
    /// (size, share up to it), both increasing.
    Cdf(Vec<(f64, f64)>),
}

/// The largest table of a Zipf distribution, in segments.
const MAX_SEGMENTS: u64 = 1 << 24;

impl Sizes {
    /// A sampler of this distribution. `mss` is the size of a segment; relative file names are relative to
    /// `folder`.
    ///
    /// # Errors
    /// An error of `parameter` if the distribution is invalid or its file cannot be used.
    pub fn sampler(&self, parameter: &'static str, mss: Bytes, folder: &Path) -> Result<Sampler, Invalid> {
        let invalid = |error: SizesError| Invalid::new(parameter, error.to_string());
        match self {
            Sizes::Fixed(Bytes(0)) => Err(invalid(SizesError::Nothing)),
            Sizes::Fixed(Bytes(size)) => Ok(Sampler { law: Law::Fixed(*size), mean: *size as f64 }),
            Sizes::Pareto { shape, min, max } => {
                let pareto = Pareto::new(*shape, min.0 as f64, max.0 as f64).map_err(invalid)?;
                Ok(Sampler { mean: pareto.mean(), law: Law::Pareto(pareto) })
            }
            Sizes::Zipf { exponent, max } => zipf(*exponent, max.0, mss.0).map_err(invalid),
            Sizes::Lognormal { mean, sigma, max } => {
                lognormal(mean.0 as f64, *sigma, max.map_or(f64::INFINITY, |max| max.0 as f64))
                    .map_err(invalid)
            }
            Sizes::WebSearch => Ok(published(include_str!("sizes/web_search.cdf"))),
            Sizes::DataMining => Ok(published(include_str!("sizes/data_mining.cdf"))),
            Sizes::Cdf(file) => {
                let path = folder.join(file);
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    Invalid::new(parameter, format!("{} cannot be read: {error}", path.display()))
                })?;
                cdf(&text).map_err(|error| Invalid::new(parameter, format!("{}: {error}", path.display())))
            }
        }
    }
}

impl Sampler {
    /// Draws a size in bytes, at least 1.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.law {
            Law::Fixed(size) => *size,
            Law::Pareto(pareto) => round(pareto.draw(rng)),
            Law::Zipf { cumulative, mss } => {
                let u = rng.uniform();
                (cumulative.partition_point(|up_to| *up_to <= u) as u64 + 1) * mss
            }
            Law::Lognormal { mu, sigma, max } => loop {
                let size = libm::exp(mu + sigma * rng.normal());
                if size <= *max {
                    return round(size);
                }
            },
            Law::Cdf(points) => round(interpolate(points, rng.uniform())),
        }
    }

    /// The mean size and the rate of `per_second` transfers a second, in one sentence, for an empirical
    /// distribution.
    pub(crate) fn offered(&self, per_second: f64) -> Option<String> {
        let empirical = matches!(self.law, Law::Cdf(_));
        empirical
            .then(|| format!("transfers of {:.0} bytes on average, {per_second:.1} per second", self.mean))
    }

    /// The mean in bytes; exact for the distribution before sizes are rounded to whole bytes.
    pub fn mean(&self) -> f64 {
        self.mean
    }
}

/// Bounded Pareto, by inversion: F(x) = (1 - (min/x)^shape) / (1 - (min/max)^shape).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pareto {
    shape: f64,
    min: f64,
    max: f64,
    /// P(x <= max) before it was bounded.
    within: f64,
}

impl Pareto {
    pub fn new(shape: f64, min: f64, max: f64) -> Result<Pareto, SizesError> {
        if !(shape > 0.0 && shape.is_finite()) {
            return Err(SizesError::Shape(shape));
        }
        if min < 1.0 || max < min {
            return Err(SizesError::Bounds { min, max });
        }
        Ok(Pareto { shape, min, max, within: 1.0 - libm::pow(min / max, shape) })
    }

    pub fn draw(&self, rng: &mut Rng) -> f64 {
        (self.min / libm::pow(1.0 - rng.uniform() * self.within, 1.0 / self.shape)).min(self.max)
    }

    pub fn mean(&self) -> f64 {
        let Pareto { shape, min, max, within } = *self;
        if max <= min {
            return min;
        }
        if shape == 1.0 {
            return min / within * libm::log(max / min);
        }
        // min^a * a/(a-1) * (min^(1-a) - max^(1-a)) / within, written so that nothing overflows.
        shape / (shape - 1.0) * (min - max * libm::pow(min / max, shape)) / within
    }
}

fn zipf(exponent: f64, segments: u64, mss: u64) -> Result<Sampler, SizesError> {
    if !(0.0..=100.0).contains(&exponent) {
        return Err(SizesError::Exponent(exponent));
    }
    if !(1..=MAX_SEGMENTS).contains(&segments) {
        return Err(SizesError::Segments(segments));
    }
    let weight = |k: u64| libm::pow(k as f64, -exponent);
    let mut cumulative = Vec::with_capacity(segments as usize);
    let (mut total, mut moment) = (0.0, 0.0);
    for k in 1..=segments {
        total += weight(k);
        moment += weight(k) * k as f64;
        cumulative.push(total);
    }
    for up_to in &mut cumulative {
        *up_to /= total;
    }
    // The last is 1 by definition. The division may return a little less, and a draw must always find an
    // entry.
    cumulative[segments as usize - 1] = 1.0;
    Ok(Sampler { law: Law::Zipf { cumulative, mss }, mean: moment / total * mss as f64 })
}

fn lognormal(mean: f64, sigma: f64, max: f64) -> Result<Sampler, SizesError> {
    if mean < 1.0 {
        return Err(SizesError::Mean);
    }
    if !(0.0..=10.0).contains(&sigma) {
        return Err(SizesError::Sigma(sigma));
    }
    let mu = libm::log(mean) - sigma * sigma / 2.0;
    // P(size <= max), and the share of the mean that lies below max.
    let below = |shift: f64| match (max.is_finite(), sigma > 0.0) {
        (false, _) => 1.0,
        (true, true) => normal_cdf((libm::log(max) - mu) / sigma - shift),
        (true, false) => f64::from(u8::from(mean <= max)),
    };
    let kept = below(0.0);
    if kept < 0.01 {
        return Err(SizesError::Max);
    }
    Ok(Sampler { law: Law::Lognormal { mu, sigma, max }, mean: mean * below(sigma) / kept })
}

fn normal_cdf(x: f64) -> f64 {
    libm::erfc(-x / std::f64::consts::SQRT_2) / 2.0
}

/// Reads "size share" lines. Shares end with 1, or with 100 when they are percent; # starts a comment.
fn cdf(text: &str) -> Result<Sampler, CdfError> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (row, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        let line = line.split('#').next().expect("splitting gives at least one part");
        let fields: Vec<&str> = line.split([' ', '\t', ',', ';']).filter(|field| !field.is_empty()).collect();
        let [size, share] = fields[..] else {
            if fields.is_empty() {
                continue;
            }
            return Err(CdfError::Columns { row, found: fields.len() });
        };
        let number = |column, field: &str| match field.parse::<f64>() {
            Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
            _ => Err(CdfError::Number { row, column, found: field.to_owned() }),
        };
        let point = (number("size", size)?, number("share", share)?);
        if let Some(last) = points.last()
            && (point.0 < last.0 || point.1 < last.1)
        {
            return Err(CdfError::Decrease { row, size: size.to_owned(), share: share.to_owned() });
        }
        points.push(point);
    }
    let Some(&(largest, whole)) = points.last() else {
        return Err(CdfError::Empty);
    };
    if whole != 1.0 && whole != 100.0 {
        return Err(CdfError::LastShare(whole));
    }
    if largest < 1.0 {
        return Err(CdfError::Nothing);
    }
    for (_, share) in &mut points {
        *share /= whole;
    }
    let first = points[0];
    let spread: f64 =
        points.windows(2).map(|pair| (pair[1].1 - pair[0].1) * (pair[0].0 + pair[1].0) / 2.0).sum();
    Ok(Sampler { mean: first.0 * first.1 + spread, law: Law::Cdf(points) })
}

/// A distribution that is part of the program.
fn published(text: &str) -> Sampler {
    cdf(text).expect("the tests read every published distribution")
}

/// The size below which the share `u` lies.
fn interpolate(points: &[(f64, f64)], u: f64) -> f64 {
    let above = points.partition_point(|(_, share)| *share <= u);
    let (size, share) = points[above.min(points.len() - 1)];
    let Some((below, share_below)) = above.checked_sub(1).map(|index| points[index]) else { return size };
    if share <= share_below {
        return size;
    }
    below + (size - below) * (u - share_below) / (share - share_below)
}

/// To whole bytes, and at least one of them.
fn round(size: f64) -> u64 {
    ((size + 0.5) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Streams;

    const N: u32 = 400_000;

    fn sampler(toml_like: serde_json::Value) -> Sampler {
        let sizes: Sizes = serde_json::from_value(toml_like).unwrap();
        sizes.sampler("size", Bytes(1460), Path::new(".")).unwrap()
    }

    fn draws(sampler: &Sampler) -> Vec<u64> {
        let mut rng = Streams::new(5).within("sizes").rng();
        (0..N).map(|_| sampler.draw(&mut rng)).collect()
    }

    /// The mean of the draws lies within four of its own standard errors of the exact one.
    fn check_mean(sampler: &Sampler) {
        let draws = draws(sampler);
        let mean = draws.iter().map(|size| *size as f64).sum::<f64>() / f64::from(N);
        let variance = draws.iter().map(|size| (*size as f64 - mean) * (*size as f64 - mean)).sum::<f64>();
        let error = (variance / f64::from(N) / f64::from(N)).sqrt();
        let off = (mean - sampler.mean()).abs();
        assert!(off <= 4.0 * error + 1e-9, "drawn {mean}, exact {}, standard error {error}", sampler.mean());
    }

    /// Pearson's statistic over bins with the given probabilities, against its 99.9 % quantile. The last bins
    /// become one where fewer than 5 draws are expected, below which the statistic has another distribution.
    fn check_bins(draws: &[u64], bin: impl Fn(u64) -> usize, probabilities: &[f64]) {
        let mut seen = vec![0.0; probabilities.len()];
        for size in draws {
            seen[bin(*size)] += 1.0;
        }
        let mut bins: Vec<(f64, f64)> =
            seen.into_iter().zip(probabilities.iter().map(|p| p * f64::from(N))).collect();
        while let [.., before, last] = &mut bins[..]
            && last.1 < 5.0
        {
            *before = (before.0 + last.0, before.1 + last.1);
            bins.pop();
        }
        let statistic: f64 =
            bins.iter().map(|(drawn, expected)| (drawn - expected) * (drawn - expected) / expected).sum();
        // Wilson and Hilferty's approximation of the quantile.
        let k = bins.len() as f64 - 1.0;
        let root = 1.0 - 2.0 / (9.0 * k) + 3.09 * (2.0 / (9.0 * k)).sqrt();
        let quantile = k * root * root * root;
        assert!(statistic < quantile, "{statistic} above {quantile}: {bins:?}");
    }

    #[test]
    fn a_fixed_size_is_fixed() {
        let sampler = sampler(serde_json::json!({ "fixed": "52000b" }));
        assert!(draws(&sampler).iter().all(|size| *size == 52_000));
        assert_eq!(sampler.mean(), 52_000.0);
    }

    #[test]
    fn pareto_has_its_bounds_its_mean_and_its_shape() {
        for shape in [0.7, 1.0, 1.2, 2.5] {
            let sampler = sampler(
                serde_json::json!({ "pareto": { "shape": shape, "min": "1000b", "max": "1000000b" } }),
            );
            check_mean(&sampler);
            let draws = draws(&sampler);
            assert!(draws.iter().all(|size| (1_000..=1_000_000).contains(size)));
            // Bins of equal ratio; their probabilities from the distribution function.
            let edge = |i: usize| 1000.0 * libm::pow(2.0, i as f64);
            let up_to = |x: f64| (1.0 - libm::pow(1000.0 / x, shape)) / (1.0 - libm::pow(0.001, shape));
            let mut probabilities: Vec<f64> = (0..9).map(|i| up_to(edge(i + 1)) - up_to(edge(i))).collect();
            probabilities.push(1.0 - up_to(edge(9)));
            // Sizes are rounded, so bins end half a byte lower.
            let bin = |size: u64| (0..9).take_while(|i| size as f64 - 0.5 >= edge(i + 1)).count();
            check_bins(&draws, bin, &probabilities);
        }
    }

    /// The workload W1 of the EFD study: a = 1.2, 1 to 3000 segments; mean 164.8 segments, median 8.
    #[test]
    fn zipf_is_the_workload_of_the_efd_study() {
        let sampler = sampler(serde_json::json!({ "zipf": { "exponent": 1.2, "max": "3000p" } }));
        assert!((sampler.mean() / 1460.0 - 164.8).abs() < 0.05, "{}", sampler.mean() / 1460.0);
        check_mean(&sampler);
        let mut draws = draws(&sampler);
        assert!(draws.iter().all(|size| size % 1460 == 0 && (1..=3000).contains(&(size / 1460))));
        let total: f64 = (1..=3000).map(|k| libm::pow(f64::from(k), -1.2)).sum();
        let mut probabilities: Vec<f64> = (1..=40).map(|k| libm::pow(f64::from(k), -1.2) / total).collect();
        probabilities.push(1.0 - probabilities.iter().sum::<f64>());
        check_bins(&draws, |size| (size as usize / 1460 - 1).min(40), &probabilities);
        draws.sort_unstable();
        assert_eq!(draws[draws.len() / 2] / 1460, 8, "the median");
    }

    /// The other workload of the study: mean 133.6 segments, median 24.
    #[test]
    fn zipf_with_exponent_one() {
        let sampler = sampler(serde_json::json!({ "zipf": { "exponent": 1.0, "max": "1000p" } }));
        assert!((sampler.mean() / 1460.0 - 133.6).abs() < 0.05, "{}", sampler.mean() / 1460.0);
        let mut draws = draws(&sampler);
        draws.sort_unstable();
        assert!((23..=25).contains(&(draws[draws.len() / 2] / 1460)));
    }

    #[test]
    fn lognormal_has_its_mean_and_its_quantiles_whole_and_cut() {
        let whole = sampler(serde_json::json!({ "lognormal": { "mean": "50000b", "sigma": 1.5 } }));
        assert_eq!(whole.mean(), 50_000.0);
        check_mean(&whole);
        // Deciles of the normal distribution.
        let z = [-1.281_551_6, -0.841_621_2, -0.524_400_5, -0.253_347_1, 0.0];
        let edges: Vec<f64> = z
            .iter()
            .copied()
            .chain(z[..4].iter().rev().map(|z| -z))
            .map(|z| libm::exp(libm::log(50_000.0) - 1.125 + 1.5 * z))
            .collect();
        let bin = |size: u64| edges.iter().take_while(|edge| size as f64 >= **edge).count();
        check_bins(&draws(&whole), bin, &[0.1; 10]);

        let cut =
            sampler(serde_json::json!({ "lognormal": { "mean": "50000b", "sigma": 1.5, "max": "100000b" } }));
        check_mean(&cut);
        assert!(cut.mean() < 30_000.0);
        assert!(draws(&cut).iter().all(|size| *size <= 100_000));
    }

    #[test]
    fn an_empirical_distribution_is_read_and_spread_evenly() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("web.cdf");
        std::fs::write(&file, "# bytes share\n1000 0.5\n2000, 0.75\n\n10000\t1\n").unwrap();
        let sampler = |name: &str| Sizes::Cdf(name.into()).sampler("size", Bytes(1460), folder.path());
        let web = sampler("web.cdf").unwrap();
        assert_eq!(web.mean(), 0.5 * 1000.0 + 0.25 * 1500.0 + 0.25 * 6000.0);
        check_mean(&web);
        let bin = |size: u64| match size {
            ..=1000 => 0,
            1001..=2000 => 1,
            2001..=6000 => 2,
            _ => 3,
        };
        check_bins(&draws(&web), bin, &[0.5, 0.25, 0.125, 0.125]);

        std::fs::write(&file, "1000 50\n2000 75\n10000 100\n").unwrap();
        assert_eq!(sampler("web.cdf").unwrap().mean(), web.mean(), "percent");

        let refusal = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let message = sampler("web.cdf").unwrap_err().message;
            message.split_once(": ").unwrap().1.to_owned()
        };
        assert_eq!(
            refusal("1000 0.5\n2000 1.0 x\n"),
            "row 2 has 3 columns; expected 2, size in bytes and share"
        );
        assert_eq!(
            refusal("# sizes\n1000 half\n"),
            "row 2, column share: found \"half\", expected a number of 0 or more"
        );
        assert_eq!(
            refusal("1000 0.5\n900 1\n"),
            "row 2: 900 1 is below the row before it; both columns must grow"
        );
        assert_eq!(refusal("1000 0.5\n"), "the last share is 0.5; expected 1, or 100 for percent");
        assert_eq!(refusal("\n"), "has no rows; expected lines of size in bytes and share");
        assert!(sampler("nothing.cdf").unwrap_err().message.contains("nothing.cdf cannot be read: "));
    }

    /// The means that the simulations of pFabric and PIAS state, in packets of 1,460 bytes: 1,138 and 5,117.
    /// The first is 0.26 % below the mean of its table.
    #[test]
    fn published_distributions_have_their_published_means() {
        for (name, packets) in [("web_search", 1_138.0), ("data_mining", 5_117.0)] {
            let sampler = sampler(serde_json::json!(name));
            let mean = sampler.mean() / 1460.0;
            assert!((mean / packets - 1.0).abs() < 0.003, "{name}: {mean}");
            check_mean(&sampler);
        }
    }

    #[test]
    fn invalid_distributions_are_refused() {
        let refusal = |value: serde_json::Value| {
            let sizes: Sizes = serde_json::from_value(value).unwrap();
            sizes.sampler("size", Bytes(1460), Path::new(".")).unwrap_err().message
        };
        assert_eq!(refusal(serde_json::json!({ "fixed": "0b" })), "a transfer of 0 bytes sends nothing");
        assert_eq!(
            refusal(serde_json::json!({ "pareto": { "shape": -1.0, "min": "1b", "max": "2b" } })),
            "a shape of -1; write a positive number, for example 1.2"
        );
        assert_eq!(
            refusal(serde_json::json!({ "pareto": { "shape": 1.0, "min": "5b", "max": "2b" } })),
            "sizes from 5 to 2: min must be at least 1, and at most max"
        );
        assert_eq!(
            refusal(serde_json::json!({ "zipf": { "exponent": 1.0, "max": "0p" } })),
            "a max of 0 segments; write 1 to 16777216"
        );
        assert!(
            refusal(serde_json::json!({ "lognormal": { "mean": "1mb", "sigma": 0.1, "max": "1kb" } }))
                .starts_with("nearly every size is above max")
        );
    }
}
