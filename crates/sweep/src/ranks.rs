//! The best of several candidates with the same arrivals, and those that do not differ measurably from it.
//!
//! Differences are taken seed by seed, and of times as ratios ([`Difference`]), and corrected together by
//! Holm.

use giveway_measure::{Better, Difference, Estimate, better, holm};

use crate::data::{At, Data};
use crate::effects::per_seed;

/// The level of significance of all differences that are corrected together.
pub const LEVEL: f64 = 0.05;

/// A candidate: its place, and its values by seed.
pub type Candidate = (usize, Vec<Option<f64>>);

/// The best candidate of a group, and those without a measurable difference to it.
pub struct Ranked {
    /// The place of the best candidate.
    pub best: usize,
    /// The places of those without a measurable difference to it.
    pub equals: Vec<usize>,
    /// The number of candidates besides the best.
    others: usize,
    /// The number of seeds that would separate the best from all `equals`; `None` if none has a difference.
    needed: Option<u32>,
}

/// Groups of candidates, each ranked.
pub struct Ranking {
    /// The groups, in their order.
    pub groups: Vec<Ranked>,
    /// The number of differences that were corrected together.
    pub differences: usize,
}

impl Ranked {
    /// True if no candidate differs measurably from the best.
    pub fn none_differs(&self) -> bool {
        self.others > 0 && self.equals.len() == self.others
    }

    /// The number of seeds that would separate the best from those without a measurable difference, in words
    /// after a separator; empty if they have no difference.
    pub fn more_seeds(&self, separator: &str) -> String {
        self.needed.map_or_else(String::new, |needed| format!("{separator}{}", would_show(needed)))
    }
}

impl Ranking {
    /// True if no candidate of any group differs measurably from the best of its group.
    pub fn none_differs(&self) -> bool {
        self.groups.iter().all(Ranked::none_differs)
    }

    /// The smallest number of seeds that would separate the best of a group from all others, as a sentence;
    /// empty if there is no difference.
    pub fn more_seeds(&self) -> String {
        match self.groups.iter().filter_map(|ranked| ranked.needed).min() {
            None => String::new(),
            Some(needed @ ..=MANY) => format!(" About {needed} seeds would show the clearest one."),
            Some(_) => format!(" More than {MANY} seeds would be needed."),
        }
    }
}

/// Number of seeds above which only this number is named: the estimate of the spread is too coarse then.
const MANY: u32 = 1000;

/// A number of seeds in words.
pub fn would_show(needed: u32) -> String {
    match needed {
        0..=MANY => format!("about {needed} seeds would show it"),
        _ => format!("more than {MANY} seeds would be needed"),
    }
}

/// The best discipline of each group of points, one set of points for each discipline. `None` if a group has
/// no values.
pub fn winners(data: &Data, groups: Vec<Vec<Vec<&At>>>) -> Option<Ranking> {
    let candidates = |group: Vec<Vec<&At>>| -> Vec<Candidate> {
        let each = group.into_iter().map(|points| per_seed(&points)).enumerate();
        each.filter(|(_, values)| values.iter().any(Option::is_some)).collect()
    };
    ranks(groups.into_iter().map(candidates).collect(), &data.metric)
}

/// Ranks the candidates of each group by a metric. The differences of all groups are corrected together.
/// `None` if a group is empty.
pub fn ranks(groups: Vec<Vec<Candidate>>, metric: &str) -> Option<Ranking> {
    let mut ranked = Vec::new();
    let (mut found, mut places) = (Vec::new(), Vec::new());
    for (number, group) in groups.into_iter().enumerate() {
        let estimates: Vec<(usize, Estimate)> =
            group.into_iter().map(|(place, values)| (place, Estimate::over(values))).collect();
        let score = |estimate: &Estimate| score(metric, estimate.mean.unwrap_or(f64::INFINITY));
        let (best, leader) = estimates.iter().min_by(|a, b| score(&a.1).total_cmp(&score(&b.1)))?;
        for (place, estimate) in &estimates {
            if place != best {
                found.push(Difference::of(metric, leader, estimate));
                places.push((number, *place));
            }
        }
        let others = estimates.len() - 1;
        ranked.push(Ranked { best: *best, equals: Vec::new(), others, needed: None });
    }
    let p_value = |difference: &Option<Difference>| difference.as_ref().and_then(Difference::p_value);
    let p_values: Vec<f64> = found.iter().map(|difference| p_value(difference).unwrap_or(1.0)).collect();
    let counts = holm(&p_values, LEVEL);
    // The level at which Holm's correction would find the next one.
    let level = LEVEL / counts.iter().filter(|counts| !**counts).count().max(1) as f64;
    for (((number, place), counts), difference) in places.into_iter().zip(counts).zip(found) {
        if !counts {
            ranked[number].equals.push(place);
            let needed = difference.and_then(|difference| difference.seeds_needed(level));
            ranked[number].needed = ranked[number].needed.max(needed);
        }
    }
    Some(Ranking { groups: ranked, differences: p_values.len() })
}

/// A mean of a metric such that a lower score is better. Of metrics without a better end the lower one comes
/// first.
pub fn score(metric: &str, mean: f64) -> f64 {
    if better(metric) == Better::High { -mean } else { mean }
}
