//! Discrete distributions that are drawn in constant time. Most of the time of a slot goes into arrivals, and
//! most of that would go into logarithms; only [`Lomax`] needs one.

use giveway_qdisc::Rng;
use libm::{log, pow};

/// A distribution on a few values by Walker's alias method: one of n columns is drawn, then its own value or
/// its alias.
///
/// Probabilities are multiples of 2^-32 and differ from the exact ones by at most that.
#[derive(Clone, Debug)]
pub(crate) struct Alias<T> {
    columns: Vec<Column<T>>,
}

#[derive(Clone, Copy, Debug)]
struct Column<T> {
    /// The column's own value is taken when the draw is below this.
    threshold: u32,
    /// Its alias and its own value, so that a comparison is an index.
    values: [T; 2],
}

impl<T: Copy> Alias<T> {
    /// A distribution by values and their weights. Weights are not negative and not all zero; they need not
    /// sum to 1.
    pub fn new(values: &[(T, f64)]) -> Alias<T> {
        let n = values.len();
        let sum: f64 = values.iter().map(|(_, weight)| weight).sum();
        debug_assert!(n > 0 && sum > 0.0);
        let mut scaled: Vec<f64> = values.iter().map(|(_, weight)| weight * n as f64 / sum).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|at| scaled[*at] < 1.0);
        let whole = |(value, _): &(T, f64)| Column { threshold: u32::MAX, values: [*value; 2] };
        let mut columns: Vec<Column<T>> = values.iter().map(whole).collect();
        while let (Some(poor), Some(rich)) = (small.pop(), large.last().copied()) {
            columns[poor].threshold = (scaled[poor] * 4_294_967_296.0) as u32;
            columns[poor].values[0] = values[rich].0;
            scaled[rich] -= 1.0 - scaled[poor];
            if scaled[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Alias { columns }
    }

    /// Draws a value by a word that is uniform over all 64 bits.
    #[inline]
    pub fn pick(&self, word: u64) -> T {
        // The high half selects the column, the low half decides within it.
        self.columns[(((word >> 32) * self.columns.len() as u64) >> 32) as usize].pick(word)
    }
}

impl<T: Copy> Column<T> {
    /// The value for a word. The comparison is an index instead of a branch, which could not be predicted.
    #[inline]
    fn pick(&self, word: u64) -> T {
        self.values[usize::from((word as u32) < self.threshold)]
    }
}

/// Values in the table of a geometric distribution. Larger values are drawn again, since the distribution has
/// no memory.
const TABLE: u32 = 255;
/// Columns of the table, a power of two, so that bits of a word select one.
const COLUMNS: usize = TABLE as usize + 1;

/// The geometric distribution on 0, 1, 2, ...: the number of failures before a success.
#[derive(Clone, Debug)]
pub(crate) struct Geometric {
    /// The columns of an [`Alias`] for the values 0 to `TABLE` - 1, and `TABLE` for all larger ones.
    columns: Box<[Column<u32>; COLUMNS]>,
}

impl Geometric {
    /// The distribution with success probability `p`, above 0 and up to 1. Its mean is (1 - p)/p.
    pub fn new(p: f64) -> Geometric {
        let mut values: Vec<(u32, f64)> = Vec::with_capacity(COLUMNS);
        let mut left = 1.0;
        for slots in 0..TABLE {
            values.push((slots, left * p));
            left *= 1.0 - p;
        }
        values.push((TABLE, left));
        let columns = Alias::new(&values).columns.try_into();
        Geometric { columns: columns.unwrap_or_else(|_| unreachable!("it has a column for each value")) }
    }

    /// Draws a value.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let mut so_far = 0;
        loop {
            // As `Alias::pick`, without a multiplication and a check of the index.
            let word = rng.word();
            let picked = self.columns[(word >> (64 - COLUMNS.ilog2())) as usize].pick(word);
            so_far += u64::from(picked);
            if picked < TABLE {
                return so_far;
            }
        }
    }
}

/// A distribution with a power-law tail on 0, 1, 2, ...: the integer part of a Lomax variable, P(X >= k) =
/// (1 + k/scale)^-shape.
#[derive(Clone, Debug)]
pub(crate) struct Lomax {
    /// Scale; 0 if all values are 0.
    scale: f64,
    /// -1/shape.
    inverse: f64,
}

/// Terms of the mean that are summed directly.
const TERMS: u32 = 4096;

impl Lomax {
    /// The distribution with this tail exponent, above 1, and this mean, at least 0.
    pub fn new(shape: f64, mean: f64) -> Lomax {
        let inverse = -1.0 / shape;
        if mean <= 0.0 {
            return Lomax { scale: 0.0, inverse };
        }
        // Bisection: the mean grows with the scale.
        let (mut low, mut high) = (1e-9, 2.0 * (mean + 1.0) * shape.max(2.0));
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if Lomax::mean(shape, middle) < mean { low = middle } else { high = middle }
        }
        Lomax { scale: 0.5 * (low + high), inverse }
    }

    /// The mean, as the sum of P(X >= k) over k >= 1. The tail of the sum is by the Euler-Maclaurin formula.
    fn mean(shape: f64, scale: f64) -> f64 {
        let tail = |k: f64| pow(1.0 + k / scale, -shape);
        let summed: f64 = (1..TERMS).map(|k| tail(f64::from(k))).sum();
        let k = f64::from(TERMS);
        let integral = scale / (shape - 1.0) * pow(1.0 + k / scale, 1.0 - shape);
        let slope = -shape / scale * pow(1.0 + k / scale, -shape - 1.0);
        summed + integral + 0.5 * tail(k) - slope / 12.0
    }

    /// Draws a value.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        if self.scale == 0.0 {
            return 0;
        }
        // 1e15 slots are longer than any run.
        let x = self.scale * (libm::exp(self.inverse * log(1.0 - rng.uniform())) - 1.0);
        x.min(1e15) as u64
    }
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::Streams;

    use super::*;

    fn mean(n: u32, mut draw: impl FnMut() -> u64) -> f64 {
        (0..n).map(|_| draw() as f64).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn an_alias_table_has_its_probabilities() {
        let weights = [0.559, 0.2, 0.0, 0.241];
        let table = Alias::new(&[(0, 0.559), (1, 0.2), (2, 0.0), (3, 0.241)]);
        let mut rng = Streams::new(1).rng();
        let mut seen = [0u32; 4];
        let n = 1_000_000;
        (0..n).for_each(|_| seen[table.pick(rng.word())] += 1);
        assert_eq!(seen[2], 0, "a value without weight never occurs");
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
            let share = (0..n).filter(|_| law.draw(&mut rng) >= 20).count() as f64 / f64::from(n);
            assert!((share - at_least(20)).abs() < 4.0 * (at_least(20) / f64::from(n)).sqrt());
        }
        assert_eq!(Lomax::new(1.5, 0.0).draw(&mut rng), 0);
    }
}
