//! Discrete laws, each drawn in constant time and without a logarithm: most of the time of a slot goes into arrivals,
//! and most of that would go into random numbers.

use libm::{log, pow};
use qdisc::Rng;

/// A law on some values by Walker's alias method: one column of n is drawn, then its own value or its alias.
///
/// Odds are held as multiples of 2^-32, so that a probability is off by at most that.
#[derive(Clone, Debug)]
pub(crate) struct Alias<T> {
    columns: Vec<Column<T>>,
}

#[derive(Clone, Copy, Debug)]
struct Column<T> {
    /// The column's own value is taken when the draw is below.
    threshold: u32,
    /// Its alias and its own value, so that a comparison is an index.
    values: [T; 2],
}

impl<T: Copy> Alias<T> {
    /// Values with their weights, which are not negative and not all zero; they need not sum to 1.
    pub fn new(values: &[(T, f64)]) -> Alias<T> {
        let n = values.len();
        let sum: f64 = values.iter().map(|(_, weight)| weight).sum();
        debug_assert!(n > 0 && sum > 0.0);
        let mut odds: Vec<f64> = values.iter().map(|(_, weight)| weight * n as f64 / sum).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|at| odds[*at] < 1.0);
        let whole = |(value, _): &(T, f64)| Column { threshold: u32::MAX, values: [*value; 2] };
        let mut columns: Vec<Column<T>> = values.iter().map(whole).collect();
        while let (Some(poor), Some(rich)) = (small.pop(), large.last().copied()) {
            columns[poor].threshold = (odds[poor] * 4_294_967_296.0) as u32;
            columns[poor].values[0] = values[rich].0;
            odds[rich] -= 1.0 - odds[poor];
            if odds[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Alias { columns }
    }

    /// Draws with a word that is uniform over all 64 bits.
    #[inline]
    pub fn pick(&self, word: u64) -> T {
        // The high half chooses the column, the low half decides within it; without a jump, since nobody can foresee it.
        let column = &self.columns[(((word >> 32) * self.columns.len() as u64) >> 32) as usize];
        column.values[usize::from((word as u32) < column.threshold)]
    }
}

/// How many slots the table of a geometric law knows; the rest is drawn again, since the law has no memory.
const TABLE: u32 = 255;

/// The geometric law on 0, 1, 2, ...: how often something fails before it succeeds.
#[derive(Clone, Debug)]
pub(crate) struct Geometric {
    /// 0 to `TABLE` - 1, and "at least `TABLE`".
    table: Alias<u32>,
}

impl Geometric {
    /// With success probability `p`, above 0 and up to 1: the mean is (1 - p)/p.
    pub fn new(p: f64) -> Geometric {
        let mut values: Vec<(u32, f64)> = Vec::with_capacity(TABLE as usize + 1);
        let mut left = 1.0;
        for slots in 0..TABLE {
            values.push((slots, left * p));
            left *= 1.0 - p;
        }
        values.push((TABLE, left));
        Geometric { table: Alias::new(&values) }
    }

    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let mut so_far = 0;
        loop {
            let picked = self.table.pick(rng.word());
            so_far += u64::from(picked);
            if picked < TABLE {
                return so_far;
            }
        }
    }
}

/// A law with a power-law tail on 0, 1, 2, ...: the whole part of a Lomax variable, P(X >= k) = (1 + k/scale)^-shape.
#[derive(Clone, Debug)]
pub(crate) struct Lomax {
    scale: f64,
    inverse: f64,
}

/// Terms of the mean that are summed one by one.
const TERMS: u32 = 4096;

impl Lomax {
    /// With this tail exponent, above 1, and this mean, not negative.
    pub fn new(shape: f64, mean: f64) -> Lomax {
        let inverse = -1.0 / shape;
        if mean <= 0.0 {
            return Lomax { scale: 0.0, inverse };
        }
        // The mean grows with the scale: halve the interval.
        let (mut low, mut high) = (1e-9, 2.0 * (mean + 1.0) * shape.max(2.0));
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if Lomax::mean(shape, middle) < mean { low = middle } else { high = middle }
        }
        Lomax { scale: 0.5 * (low + high), inverse }
    }

    /// The sum of P(X >= k) over k >= 1; its tail by Euler and Maclaurin.
    fn mean(shape: f64, scale: f64) -> f64 {
        let tail = |k: f64| pow(1.0 + k / scale, -shape);
        let summed: f64 = (1..TERMS).map(|k| tail(f64::from(k))).sum();
        let k = f64::from(TERMS);
        let integral = scale / (shape - 1.0) * pow(1.0 + k / scale, 1.0 - shape);
        let slope = -shape / scale * pow(1.0 + k / scale, -shape - 1.0);
        summed + integral + 0.5 * tail(k) - slope / 12.0
    }

    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        if self.scale == 0.0 {
            return 0;
        }
        // A variable of 1e15 slots is longer than any run.
        let x = self.scale * (libm::exp(self.inverse * log(1.0 - rng.uniform())) - 1.0);
        x.min(1e15) as u64
    }
}

#[cfg(test)]
mod tests {
    use qdisc::Streams;

    use super::*;

    fn mean(n: u32, mut draw: impl FnMut() -> u64) -> f64 {
        (0..n).map(|_| draw() as f64).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn an_alias_table_has_its_odds() {
        let weights = [0.559, 0.2, 0.0, 0.241];
        let table = Alias::new(&[(0, 0.559), (1, 0.2), (2, 0.0), (3, 0.241)]);
        let mut rng = Streams::new(1).rng();
        let mut seen = [0u32; 4];
        let n = 1_000_000;
        (0..n).for_each(|_| seen[table.pick(rng.word())] += 1);
        assert_eq!(seen[2], 0, "what has no weight never comes");
        for (seen, weight) in seen.iter().zip(weights) {
            let share = f64::from(*seen) / f64::from(n);
            // Four standard deviations.
            assert!((share - weight).abs() <= 4.0 * (weight / f64::from(n)).sqrt(), "{share} {weight}");
        }
    }

    #[test]
    fn geometric_gaps() {
        let mut rng = Streams::new(2).rng();
        assert_eq!(mean(1000, || Geometric::new(1.0).draw(&mut rng)), 0.0);
        for p in [0.9, 0.3, 0.01, 0.0005] {
            let law = Geometric::new(p);
            let (want, sd) = ((1.0 - p) / p, (1.0 - p).sqrt() / p);
            let n = 200_000;
            let got = mean(n, || law.draw(&mut rng));
            assert!((got - want).abs() < 4.0 * sd / f64::from(n).sqrt(), "{p}: {got} {want}");
        }
    }

    #[test]
    fn heavy_tails_have_their_mean_and_their_tail() {
        let mut rng = Streams::new(3).rng();
        for (shape, want) in [(2.5, 10.0), (1.8, 3.0), (3.0, 0.5)] {
            let law = Lomax::new(shape, want);
            let got = mean(4_000_000, || law.draw(&mut rng));
            assert!((got / want - 1.0).abs() < 0.03, "{shape}: {got} {want}");
            let at_least = |k: u64| pow(1.0 + k as f64 / law.scale, -shape);
            let n = 1_000_000;
            let beyond = (0..n).filter(|_| law.draw(&mut rng) >= 20).count() as f64 / f64::from(n);
            assert!((beyond - at_least(20)).abs() < 4.0 * (at_least(20) / f64::from(n)).sqrt());
        }
        assert_eq!(Lomax::new(1.5, 0.0).draw(&mut rng), 0);
    }
}
