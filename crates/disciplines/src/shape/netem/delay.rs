//! The delay of `netem`, and its transmitter.

use giveway_qdisc::{Rate, Rng, Share, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The distribution of the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Evenly within `jitter` of `delay`, on both sides.
    #[default]
    Uniform,
    /// Normal, with the standard deviation `jitter`.
    Normal,
    /// Pareto with the shape 3, with this mean and standard deviation: a long tail.
    Pareto,
    /// A quarter of a normal variable and three quarters of one of Pareto.
    Paretonormal,
}

/// The shape of Pareto's distribution, and its mean and standard deviation with a least value of 1.
const SHAPE: f64 = 3.0;
const PARETO: (f64, f64) = (1.5, 0.866_025_403_784_438_6);

/// Variables in a row, each normal with the mean 0 and the variance 1, with a correlation between neighbours.
#[derive(Debug)]
pub(super) struct Correlated {
    correlation: f64,
    /// Factor of what is new, so that the variance stays.
    fresh: f64,
    last: Option<f64>,
    rng: Rng,
}

impl Correlated {
    pub fn new(correlation: Share, rng: Rng) -> Correlated {
        let correlation = correlation.get();
        Correlated { correlation, fresh: libm::sqrt(1.0 - correlation * correlation), last: None, rng }
    }

    /// The next variable.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        let drawn = self.rng.normal();
        let next = match self.last {
            Some(last) if self.correlation > 0.0 => self.correlation * last + self.fresh * drawn,
            _ => drawn,
        };
        self.last = Some(next);
        next
    }

    /// The next variable, mapped to a uniform one in 0 to 1.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        if self.correlation == 0.0 { self.rng.uniform() } else { below(self.normal()) }
    }
}

/// The probability that a normal variable is below `z`.
fn below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// A variable of Pareto with the mean 0 and the variance 1, from a uniform one.
fn pareto(uniform: f64) -> f64 {
    let least = f64::EPSILON;
    let (mean, deviation) = PARETO;
    (libm::pow(uniform.max(least), -1.0 / SHAPE) - mean) / deviation
}

/// Delays of packets.
#[derive(Debug)]
pub(super) struct Delay {
    mean: Span,
    jitter: Span,
    distribution: Distribution,
    correlated: Correlated,
}

impl Delay {
    /// Delays around `mean`, each correlated with the one before.
    pub fn new(mean: Span, jitter: Span, distribution: Distribution, correlated: Correlated) -> Delay {
        Delay { mean, jitter, distribution, correlated }
    }

    /// The delay of the next packet.
    #[inline]
    pub fn next(&mut self) -> Span {
        if self.jitter.is_zero() {
            return self.mean;
        }
        let deviation = match self.distribution {
            Distribution::Uniform => 2.0 * self.correlated.uniform() - 1.0,
            Distribution::Normal => self.correlated.normal(),
            Distribution::Pareto => pareto(self.correlated.uniform()),
            Distribution::Paretonormal => {
                let normal = self.correlated.normal();
                // The upper tail of both is the same: a large normal variable is a small uniform one.
                0.25 * normal + 0.75 * pareto(below(-normal))
            }
        };
        Span::from_s_f64(self.mean.as_s() + deviation * self.jitter.as_s())
    }
}

/// The transmitter of `rate`.
#[derive(Debug)]
pub(super) struct Transmitter {
    rate: Option<Rate>,
    overhead: i64,
    cellsize: u64,
    celloverhead: i64,
    /// End of the last transmission.
    free_at: Time,
}

impl Transmitter {
    /// A transmitter that adds bytes to each packet, and to each cell of a size.
    pub fn new(rate: Option<Rate>, overhead: i32, (cellsize, celloverhead): (u32, i32)) -> Transmitter {
        Transmitter {
            rate,
            overhead: overhead.into(),
            cellsize: cellsize.into(),
            celloverhead: celloverhead.into(),
            free_at: Time::ZERO,
        }
    }

    /// End of the transmission of a packet that arrives now.
    #[inline]
    pub fn end(&mut self, bytes: u32, now: Time) -> Time {
        let Some(rate) = self.rate else { return now };
        self.free_at = self.free_at.max(now) + rate.time_for(self.on_wire(bytes));
        self.free_at
    }

    /// Bytes that the link sends for a packet.
    fn on_wire(&self, bytes: u32) -> u64 {
        let bytes = (i64::from(bytes) + self.overhead).max(0) as u64;
        if self.cellsize == 0 {
            return bytes;
        }
        let cell = (self.cellsize as i64 + self.celloverhead).max(0) as u64;
        bytes.div_ceil(self.cellsize) * cell
    }

    pub fn reset(&mut self) {
        self.free_at = Time::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Streams;

    fn delays(distribution: Distribution, correlation: f64, packets: usize) -> Vec<f64> {
        let correlated = Correlated::new(Share::new(correlation).unwrap(), Streams::new(1).rng());
        let mut delay = Delay::new(Span::s(100), Span::s(1), distribution, correlated);
        (0..packets).map(|_| delay.next().as_s() - 100.0).collect()
    }

    /// Mean, standard deviation and correlation of neighbours.
    fn moments(values: &[f64]) -> (f64, f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let of = |lag: usize| {
            values[lag..].iter().zip(values).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / count
        };
        (mean, libm::sqrt(of(0)), of(1) / of(0))
    }

    /// A correlation does not change the distribution. A uniform variable within 1 has the deviation 1/√3.
    #[test]
    fn a_distribution_keeps_its_moments_with_a_correlation() {
        for (distribution, deviation) in [(Distribution::Uniform, 0.577_35), (Distribution::Normal, 1.0)] {
            for correlation in [0.0, 0.25, 0.8] {
                let (mean, is, neighbours) = moments(&delays(distribution, correlation, 200_000));
                let what = format!("{distribution:?} {correlation}: {mean} {is} {neighbours}");
                assert!(mean.abs() < 0.03 && (is - deviation).abs() < 0.02, "{what}");
                assert!((neighbours - correlation).abs() < 0.03, "{what}");
            }
        }
    }

    /// Samples of Pareto's distribution have no stable deviation, since its fourth moment is infinite. Half
    /// of the values are below (2^(1/3) - 1.5) / 0.866 = -0.277.
    #[test]
    fn paretos_median_stays_with_a_correlation() {
        for correlation in [0.0, 0.8] {
            let values = delays(Distribution::Pareto, correlation, 100_000);
            let below = values.iter().filter(|value| **value < -0.277_3).count();
            assert!((49_000..51_000).contains(&below), "{below}");
        }
    }

    #[test]
    fn paretos_tail_is_on_the_late_side() {
        for distribution in [Distribution::Pareto, Distribution::Paretonormal] {
            let mut values = delays(distribution, 0.0, 100_000);
            values.sort_by(f64::total_cmp);
            let (early, late) = (values[100], values[99_900]);
            assert!(late > 2.0 * -early, "{distribution:?} {early} {late}");
        }
        // The least value is 1, less the mean, in standard deviations.
        assert!((pareto(1.0) + 0.577_35).abs() < 1e-5);
    }

    /// The example of the manual: ATM has 48 bytes of a packet in a cell, and 5 bytes of overhead. A packet
    /// of 50 bytes takes two cells, 106 bytes on the wire.
    #[test]
    fn cells_are_counted_as_in_the_manual() {
        let on_wire = |overhead, bytes| Transmitter::new(None, overhead, (48, 5)).on_wire(bytes);
        assert_eq!((on_wire(0, 50), on_wire(0, 48), on_wire(0, 0)), (106, 53, 0));
        assert_eq!((on_wire(-14, 62), on_wire(-14, 63), on_wire(-14, 10)), (53, 106, 0));
        assert_eq!(Transmitter::new(None, 20, (0, 0)).on_wire(100), 120);
    }
}
