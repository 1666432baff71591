//! Finds disciplines with two states: outcomes over seeds that fall into two clusters, or in which opposite
//! flows win. A mean over them would describe none of the runs.
//!
//! What is fixed: FQ-PIE, for example, has runs with equal shares, and runs in which one of two equal
//! transfers has twice as much as the other; which one depends on the seed. What we chose:
//!
//! - Two clusters: the values are sorted and split into two groups of at least two. The gap between them is
//!   larger than what matters, and larger than [`GAP`] standard deviations within the groups, also for the
//!   logarithms of positive values, so that the tail of a skewed distribution is not a cluster.
//! - Opposite flows win: of two equal transfers one has at least [`LEAD`] more of their sum in some runs, and
//!   the other one in others, at least [`RUNS`] runs each.
//!
//! A card contains hundreds of sets of ten values. So a gap of [`SUSPICION`] deviations is only a suspicion,
//! which ten values from one normal distribution raise with a probability of 0.03, and from a uniform one
//! with 0.09. As many fresh seeds run then, and all twenty must show the gap: 0.00005 and 0.0004. Two
//! clusters that differ by ten deviations are found with a probability of 0.98 (all from 200,000 draws).

/// The gap between two clusters, in standard deviations within them.
pub const GAP: f64 = 4.0;

/// The gap that raises a suspicion.
pub const SUSPICION: f64 = 3.0;

/// The difference between the shares of two equal transfers that is a clear lead.
pub const LEAD: f64 = 0.2;

/// Minimum number of runs that a winner must have.
pub const RUNS: usize = 2;

/// Outcomes that do not agree.
#[derive(Clone, Debug, PartialEq)]
pub enum States {
    /// Two clusters of values.
    Clusters {
        /// The number of runs in the lower cluster, and their mean.
        low: (usize, f64),
        /// The number of runs in the upper cluster, and their mean.
        high: (usize, f64),
    },
    /// Opposite flows win.
    Winners {
        /// The number of runs that the first of two equal transfers wins, that the second wins, and that
        /// nobody wins clearly.
        runs: [usize; 3],
        /// The mean difference of their shares in the runs with a winner.
        lead: f64,
    },
}

/// The two clusters of values, if they have this gap. `limit` is the smallest difference that matters.
pub fn clusters(values: &[f64], limit: f64, gap: f64) -> Option<States> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let positive = sorted.first().is_some_and(|least| *least > 0.0);
    let split = |place: usize| -> Option<f64> {
        let (low, high) = sorted.split_at(place);
        let ([_, .., last], [next, .., _]) = (low, high) else { return None };
        if next - last <= limit {
            return None;
        }
        let log = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| libm::log(*value)).collect() };
        let of_logs = if positive { separation(&log(low), &log(high)) } else { f64::INFINITY };
        Some(separation(low, high).min(of_logs)).filter(|ratio| *ratio > gap)
    };
    let best = (2..sorted.len().saturating_sub(1)).filter_map(|place| Some((split(place)?, place)));
    let (_, place) = best.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let cluster = |values: &[f64]| (values.len(), values.iter().sum::<f64>() / values.len() as f64);
    Some(States::Clusters { low: cluster(&sorted[..place]), high: cluster(&sorted[place..]) })
}

/// The gap between two sorted groups, in standard deviations within them.
fn separation(low: &[f64], high: &[f64]) -> f64 {
    let squares = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>()
    };
    let gap = high[0] - low[low.len() - 1];
    let within = libm::sqrt((squares(low) + squares(high)) / (low.len() + high.len() - 2) as f64);
    if within > 0.0 { gap / within } else { f64::INFINITY }
}

/// The winners among two equal transfers, if opposite ones win. `leads` are the differences of their shares
/// of the sum, -1 to 1.
pub fn winners(leads: &[f64]) -> Option<States> {
    let count = |wins: fn(&&f64) -> bool| leads.iter().filter(wins).count();
    let (first, second) = (count(|lead| **lead >= LEAD), count(|lead| **lead <= -LEAD));
    if first < RUNS || second < RUNS {
        return None;
    }
    let decided = leads.iter().map(|lead| lead.abs()).filter(|lead| *lead >= LEAD);
    let lead = decided.sum::<f64>() / (first + second) as f64;
    Some(States::Winners { runs: [first, second, leads.len() - first - second], lead })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A number between 0 and 1 that depends on its place only.
    fn drawn(set: u64, place: u64) -> f64 {
        let mut state = set.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ place.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        for _ in 0..2 {
            state = (state ^ (state >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        }
        (state >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from a normal distribution, by the sum of twelve uniform ones.
    fn normal(set: u64, place: u64) -> f64 {
        (0..12).map(|part| drawn(set, 100 * place + part)).sum::<f64>() - 6.0
    }

    #[test]
    fn twenty_of_twenty_planted_heaps_are_found() {
        for set in 0..20 {
            // A state with a probability of a third to two thirds, ten deviations apart.
            let share = 0.35 + 0.3 * drawn(1000 + set, 0);
            let values: Vec<f64> = (0..20)
                .map(|run| normal(set, run) + if drawn(2000 + set, run) < share { 0.0 } else { 10.0 })
                .collect();
            assert!(
                matches!(clusters(&values, 1.0, GAP), Some(States::Clusters { .. })),
                "{set}: {values:?}"
            );
        }
    }

    #[test]
    fn none_of_twenty_sets_with_one_state_is_found() {
        for set in 0..20 {
            let values = |of: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
                (0..20).map(|run| of(normal(set, run), drawn(set, 7000 + run))).collect()
            };
            assert_eq!(clusters(&values(&|normal, _| 10.0 + normal), 0.0, GAP), None, "normal, {set}");
            assert_eq!(clusters(&values(&|_, uniform| uniform), 0.0, GAP), None, "uniform, {set}");
            // Skewed, as completion times are.
            assert_eq!(clusters(&values(&|normal, _| libm::exp(normal)), 0.0, GAP), None, "lognormal, {set}");
            assert_eq!(
                clusters(&values(&|_, uniform| -libm::log(1.0 - uniform)), 0.0, GAP),
                None,
                "exponential, {set}"
            );
        }
    }

    #[test]
    fn a_difference_that_does_not_matter_is_not_a_state() {
        let values = [0.98, 0.981, 0.979, 0.9991, 0.9992, 0.999];
        assert!(clusters(&values, 0.005, GAP).is_some());
        assert_eq!(clusters(&values, 0.05, GAP), None);
    }

    #[test]
    fn one_run_alone_is_an_outlier_and_no_heap() {
        assert_eq!(clusters(&[1.0, 1.1, 1.2, 9.0], 0.1, GAP), None);
        assert_eq!(clusters(&[], 0.1, GAP), None);
        assert_eq!(clusters(&[1.0], 0.1, GAP), None);
        let states = clusters(&[1.0, 1.0, 9.0, 9.0, 9.0], 0.1, GAP);
        assert_eq!(states, Some(States::Clusters { low: (2, 1.0), high: (3, 9.0) }));
    }

    #[test]
    fn opposite_winners_need_two_runs_each() {
        let found = winners(&[0.5, -0.4, 0.3, -0.4, 0.0]);
        let Some(States::Winners { runs: [2, 2, 1], lead }) = found else { panic!("{found:?}") };
        assert!((lead - 0.4).abs() < 1e-12);
        assert_eq!(winners(&[0.5, 0.4, 0.3, -0.4]), None, "one run may be chance");
        assert_eq!(winners(&[0.1, -0.1, 0.15, -0.15]), None, "no clear lead");
    }

    proptest! {
        /// The order of the seeds does not matter.
        #[test]
        fn the_order_does_not_matter(mut values in prop::collection::vec(0.0..10.0f64, 0..12)) {
            let found = clusters(&values, 0.5, GAP);
            values.reverse();
            prop_assert_eq!(found, clusters(&values, 0.5, GAP));
        }
    }
}
