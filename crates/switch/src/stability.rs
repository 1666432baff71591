//! Stability of a switch: the trend of its backlog in a run, and a search for the largest stable load.

use crate::outcome::{Batch, Outcome};

/// Stability of the switch under the offered load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// The backlog does not grow.
    Stable,
    /// The backlog grows.
    Growing,
    /// The run is too short for a decision.
    Undecided,
}

/// The trend of the backlog over the measurement interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Cells per slot and port by which the backlog grows, by least squares over the ends of batches.
    pub slope: f64,
    /// Standard error of the slope, corrected for the correlation of neighbouring batches.
    pub error: f64,
    /// The resulting verdict.
    pub verdict: Stability,
}

/// Largest slope that counts as stable: 1 cell per port in 1,000 slots.
const NEGLIGIBLE: f64 = 1e-3;

impl Outcome {
    /// The trend of the backlog; `None` with fewer than eight batches.
    ///
    /// The verdict is growing if the slope less three standard errors is above one cell per 1,000 slots and
    /// port, and stable if the slope plus three standard errors is below that. A load very close to the
    /// capacity is undecided in any run of practical length.
    pub fn trend(&self) -> Option<Trend> {
        trend(&self.batches, self.ports)
    }
}

fn trend(batches: &[Batch], ports: usize) -> Option<Trend> {
    if batches.len() < 8 {
        return None;
    }
    let n = batches.len() as f64;
    let points: Vec<(f64, f64)> =
        batches.iter().map(|batch| (batch.end as f64, batch.backlog as f64 / ports as f64)).collect();
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let sxx: f64 = points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
    let sxy: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let slope = sxy / sxx;
    let rest: Vec<f64> = points.iter().map(|point| point.1 - y - slope * (point.0 - x)).collect();
    let squares: f64 = rest.iter().map(|r| r * r).sum();
    let neighbours: f64 = rest.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let correlation = if squares > 0.0 { (neighbours / squares).clamp(0.0, 0.9) } else { 0.0 };
    let error = libm::sqrt(squares / (n - 2.0) / sxx * (1.0 + correlation) / (1.0 - correlation));
    let verdict = if slope - 3.0 * error > NEGLIGIBLE {
        Stability::Growing
    } else if slope + 3.0 * error < NEGLIGIBLE {
        Stability::Stable
    } else {
        Stability::Undecided
    };
    Some(Trend { slope, error, verdict })
}

/// Bisects an interval until it is at most `width` wide, and returns its ends. `below` returns `true` for
/// points below the one that is searched. The result contains that point if the first interval does and
/// `below` changes only once.
///
/// A call of `below` usually runs a switch, or several switches to reduce noise.
///
/// # Errors
/// The first error of `below`.
pub fn bisect<E>(
    (mut low, mut high): (f64, f64),
    width: f64,
    mut below: impl FnMut(f64) -> Result<bool, E>,
) -> Result<(f64, f64), E> {
    while high - low > width {
        let middle = 0.5 * (low + high);
        if below(middle)? { low = middle } else { high = middle }
    }
    Ok((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Means;

    fn batches(backlog: impl Fn(u64) -> f64) -> Vec<Batch> {
        let batch = |number: u64| Batch {
            end: number * 10_000,
            backlog: backlog(number) as u64,
            arrived: 0,
            crossed: 0,
            means: [Means::default(); 3],
        };
        (1..=20).map(batch).collect()
    }

    /// A sawtooth with teeth of several lengths, so that neighbouring values are correlated.
    fn saw(number: u64) -> f64 {
        (number * 7 % 5 + number * 3 % 11) as f64
    }

    #[test]
    fn trends_are_detected_and_noise_is_not() {
        let of = |backlog: &dyn Fn(u64) -> f64| trend(&batches(backlog), 4).unwrap();
        let growing = of(&|number| 4.0 * 600.0 * number as f64 + 40.0 * saw(number));
        assert_eq!(growing.verdict, Stability::Growing);
        assert!((growing.slope - 0.06).abs() < 3.0 * growing.error + 1e-9, "{growing:?}");
        assert_eq!(of(&|number| 400.0 + 4.0 * saw(number)).verdict, Stability::Stable);
        assert_eq!(of(&|_| 0.0).verdict, Stability::Stable);
        assert_eq!(of(&|number| 4e4 + 4e4 * saw(number)).verdict, Stability::Undecided);
        assert_eq!(trend(&batches(|_| 0.0)[..7], 4), None);
    }

    #[test]
    fn bisection_finds_the_change() {
        let mut calls = 0;
        let found = bisect((0.0, 1.0), 1e-3, |at| {
            calls += 1;
            Ok::<bool, ()>(at < 0.943)
        });
        let (low, high) = found.unwrap();
        assert!(low <= 0.943 && 0.943 <= high && high - low <= 1e-3);
        assert_eq!(calls, 10);
        assert_eq!(bisect((0.0, 1.0), 0.1, |_| Err("stopped")), Err("stopped"));
    }
}
