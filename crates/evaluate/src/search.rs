//! A search for the best setting of a discipline's parameters, within a budget of settings.
//!
//! A point consists of a coordinate from -1 to 1 for each parameter, on a scale of logarithms: -1 is a
//! quarter of the default, 0 the default, and 1 four times the default. The first half of the budget fills
//! this space, with the additive sequence of M. Roberts, whose steps are powers of a generalised golden
//! ratio. The second half goes in three rounds from the best point so far, with shorter steps from round to
//! round. A step changes two parameters on average, since few of many parameters matter.

use giveway_qdisc::{Rng, Streams};

/// The factor of a parameter at the end of the scale.
const REACH: f64 = 4.0;

/// The standard deviation of a step in each of the later rounds.
const STEPS: [f64; 3] = [0.4, 0.2, 0.1];

/// A search.
pub(crate) struct Search {
    axes: usize,
    budget: usize,
    round: usize,
    rng: Rng,
    best: (Vec<f64>, f64),
}

impl Search {
    /// The number of rounds of a search.
    pub const ROUNDS: usize = 1 + STEPS.len();

    /// A search over a number of parameters. The default has a score of 0. The name selects the random
    /// stream.
    pub fn new(name: &str, axes: usize, budget: usize) -> Search {
        let rng = Streams::new(1).within("own best").within(name).rng();
        Search { axes, budget, round: 0, rng, best: (vec![0.0; axes], 0.0) }
    }

    /// The points of the next round.
    pub fn round(&mut self) -> Vec<Vec<f64>> {
        let (round, first) = (self.round, self.budget.div_ceil(2));
        self.round += 1;
        let Some(step) = round.checked_sub(1) else { return (1..=first).map(|n| self.spread(n)).collect() };
        let Some(deviation) = STEPS.get(step) else { return Vec::new() };
        let rest = self.budget - first;
        let points = rest * (step + 1) / STEPS.len() - rest * step / STEPS.len();
        (0..points).map(|_| self.near(*deviation)).collect()
    }

    /// Reports the score of a point.
    pub fn scored(&mut self, point: &[f64], score: f64) {
        if score > self.best.1 {
            self.best = (point.to_vec(), score);
        }
    }

    /// A point of the sequence that fills the space.
    fn spread(&self, number: usize) -> Vec<f64> {
        // The ratio solves x^(axes + 1) = x + 1; the iteration converges from any start.
        let power = 1.0 / (self.axes as f64 + 1.0);
        let ratio = (0..40).fold(2.0, |x: f64, _| libm::pow(1.0 + x, power));
        let coordinate = |axis: usize| {
            let place = 0.5 + number as f64 * libm::pow(ratio, -(axis as f64 + 1.0));
            2.0 * (place - libm::floor(place)) - 1.0
        };
        (0..self.axes).map(coordinate).collect()
    }

    /// A point near the best one.
    fn near(&mut self, deviation: f64) -> Vec<f64> {
        let certain = self.rng.below(self.axes as u64) as usize;
        let share = 1.0 / self.axes as f64;
        let mut point = self.best.0.clone();
        for (axis, coordinate) in point.iter_mut().enumerate() {
            if axis == certain || self.rng.uniform() < share {
                *coordinate = (*coordinate + deviation * self.rng.normal()).clamp(-1.0, 1.0);
            }
        }
        point
    }
}

/// The factors of a point.
pub(crate) fn factors(point: &[f64]) -> Vec<(usize, f64)> {
    point.iter().map(|coordinate| libm::pow(REACH, *coordinate)).enumerate().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The squared distance of two points.
    fn distance(one: &[f64], other: &[f64]) -> f64 {
        one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum()
    }

    /// The share of the possible gain at a point: 0 at the default and 1 at a planted optimum.
    fn share(point: &[f64], optimum: &[f64]) -> f64 {
        1.0 - distance(point, optimum) / distance(&vec![0.0; optimum.len()], optimum)
    }

    /// The best share of a search for a planted optimum, and all its points.
    fn searched(name: &str, optimum: &[f64], budget: usize) -> (f64, Vec<Vec<f64>>) {
        let mut search = Search::new(name, optimum.len(), budget);
        let mut all = Vec::new();
        for _ in 0..Search::ROUNDS {
            let points = search.round();
            points.iter().for_each(|point| search.scored(point, share(point, optimum)));
            all.extend(points);
        }
        assert!(search.round().is_empty());
        (search.best.1, all)
    }

    /// Over 50 optima the search finds most of the gain, and more than as many points that only fill the
    /// space.
    #[test]
    fn a_planted_optimum_is_found() {
        let mut rng = Streams::new(1).within("optima").rng();
        for axes in 1..=6 {
            let (mut found, mut filled) = (0.0, 0.0);
            for number in 0..50 {
                let optimum: Vec<f64> = (0..axes).map(|_| 2.0 * rng.uniform() - 1.0).collect();
                let (share_found, _) = searched(&number.to_string(), &optimum, 24);
                found += share_found / 50.0;
                let plain = Search::new("plain", axes, 24);
                let shares = (1..=24).map(|n| share(&plain.spread(n), &optimum));
                filled += shares.fold(0.0, f64::max) / 50.0;
            }
            println!("{axes} parameters: {found:.3} of the gain, {filled:.3} by filling");
            assert!(found > 0.5 && found > filled, "{axes} parameters: {found} and {filled}");
        }
    }

    #[test]
    fn a_search_is_deterministic_and_keeps_its_budget() {
        for budget in [1, 2, 5, 24] {
            let (_, points) = searched("one", &[0.3, 0.3], budget);
            assert_eq!(points.len(), budget);
            assert_eq!(points, searched("one", &[0.3, 0.3], budget).1);
            assert!(points.iter().flatten().all(|at| (-1.0..=1.0).contains(at)));
        }
        assert_ne!(searched("one", &[0.3, 0.3], 24).1, searched("other", &[0.3, 0.3], 24).1);
    }

    #[test]
    fn the_first_half_fills_the_space() {
        let (_, points) = searched("one", &[0.0, 0.0], 24);
        for quarter in [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)] {
            let inside = points[..12].iter().filter(|at| at[0] * quarter.0 > 0.0 && at[1] * quarter.1 > 0.0);
            assert!(inside.count() >= 2, "{quarter:?}: {points:?}");
        }
        let ends = factors(&[-1.0, 0.0, 1.0]);
        assert_eq!(ends, [(0, 0.25), (1, 1.0), (2, 4.0)]);
    }
}
