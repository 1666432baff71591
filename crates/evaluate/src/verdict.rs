//! The verdict on a difference between a discipline and a baseline in one metric.
//!
//! | verdict | condition |
//! | --- | --- |
//! | better, worse | significant, corrected over all cells of the card by Holm, and at least what matters |
//! | no difference | the 95 % interval of the difference lies within what matters |
//! | undecided | neither; or a metric is missing; or a discipline has two states there |
//!
//! Differences are taken seed by seed, because all disciplines have the same arrivals with a seed, and the
//! ones of times as ratios ([`Difference`]). A small difference in many cells is found by the sum over the
//! metrics of a question ([`crate::pooled`]). Half of the level is for these sums, and half for the cells.

use giveway_measure::{Difference, Estimate, holm};
use serde::Serialize;

use crate::cells::JudgedMetric;

/// The level of significance of all differences of a card together.
pub const LEVEL: f64 = 0.05;

/// The part of it for the metrics of cells, and the same for the sums over the metrics of a question.
pub const HALF_LEVEL: f64 = LEVEL / 2.0;

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better by at least what matters.
    Better,
    /// Worse by at least what matters.
    Worse,
    /// No difference that matters.
    Same,
    /// The runs do not decide.
    Unknown,
}

impl Verdict {
    /// The verdict in words.
    pub fn label(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "no difference that matters",
            Verdict::Unknown => "undecided",
        }
    }

    /// True if one of the two verdicts is better and the other worse.
    pub fn contradicts(self, other: Verdict) -> bool {
        matches!((self, other), (Verdict::Better, Verdict::Worse) | (Verdict::Worse, Verdict::Better))
    }
}

/// The verdicts that differ between two lists of the same comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// The number of verdicts that are decided in both lists, and differ.
    pub changed: u32,
    /// The metrics among them that are the opposite: better in one list and worse in the other.
    pub opposite: u32,
    /// The number of verdicts that are undecided only in the first list.
    pub decided: u32,
    /// The number of verdicts that are undecided only in the second list.
    pub undecided: u32,
}

impl Changes {
    /// The changes from one list to another.
    pub fn between(before: &[Compared], after: &[Compared]) -> Changes {
        let mut changes = Changes::default();
        for (before, after) in before.iter().zip(after) {
            match (before.verdict, after.verdict) {
                (before, after) if before == after => {}
                (Verdict::Unknown, _) => changes.decided += 1,
                (_, Verdict::Unknown) => changes.undecided += 1,
                (before, after) => {
                    changes.changed += 1;
                    changes.opposite += u32::from(before.contradicts(after));
                }
            }
        }
        changes
    }
}

/// A comparison of a discipline with a baseline in one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The verdict.
    pub verdict: Verdict,
    /// The difference: from the baseline to the discipline. `None` if no seed has both values.
    pub difference: Option<Difference>,
    /// The smallest difference that matters between these two.
    pub limit: f64,
    /// The difference in standard deviations of the differences of the seeds (Cohen's d for pairs); positive
    /// if the discipline is better. `None` below two seeds, or if the seeds do not differ.
    pub effect: Option<f64>,
    /// The number of seeds that would find the observed difference, if it is undecided and would matter;
    /// `None` otherwise.
    pub needed: Option<u32>,
}

/// The values of a discipline and of a baseline in one metric.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// The metric.
    pub measure: &'a JudgedMetric,
    /// The discipline, by seed.
    pub candidate: &'a [Option<f64>],
    /// The baseline, by seed.
    pub baseline: &'a [Option<f64>],
    /// True if one of them has two states, so that their means say nothing.
    pub unstable: bool,
}

/// The comparisons of all pairs of a card, corrected together.
pub fn compare(pairs: &[Pair<'_>]) -> Vec<Compared> {
    let differences: Vec<Option<Difference>> = pairs
        .iter()
        .map(|pair| {
            let estimate = |values: &[Option<f64>]| Estimate::over(values.to_vec());
            Difference::of(&pair.measure.metric, &estimate(pair.baseline), &estimate(pair.candidate))
        })
        .collect();
    let (significant, next) = corrected(differences.iter().map(Option::as_ref));
    pairs
        .iter()
        .zip(differences)
        .zip(significant)
        .map(|((pair, difference), significant)| decide(pair, difference, significant, next))
        .collect()
}

/// For each difference, true if it counts at [`HALF_LEVEL`] of all together; and the level at which Holm's
/// correction would find the next one.
pub fn corrected<'a>(differences: impl Iterator<Item = Option<&'a Difference>>) -> (Vec<bool>, f64) {
    let p_values: Vec<f64> =
        differences.map(|difference| difference.and_then(Difference::p_value).unwrap_or(1.0)).collect();
    let significant = holm(&p_values, HALF_LEVEL);
    let left = significant.iter().filter(|significant| !**significant).count().max(1);
    (significant, HALF_LEVEL / left as f64)
}

fn decide(pair: &Pair<'_>, difference: Option<Difference>, significant: bool, next: f64) -> Compared {
    let high = pair.measure.high;
    let Some(found) = difference else {
        let verdict = Verdict::Unknown;
        return Compared { verdict, difference: None, limit: f64::NAN, effect: None, needed: None };
    };
    let limit = pair.measure.matters.limit(found.before, found.after, high);
    let change = found.after - found.before;
    let gain = if high { change } else { -change };
    let within = match found.ratio {
        Some(ratio) => ratio.interval().is_some_and(|(low, high)| {
            [low, high].iter().all(|end| (found.before * (end - 1.0)).abs() < limit)
        }),
        None => found.ci95.is_some_and(|half| change.abs() + half < limit),
    };
    let verdict = match (pair.unstable, significant && gain.abs() >= limit, within) {
        (true, ..) => Verdict::Unknown,
        (_, true, _) if gain > 0.0 => Verdict::Better,
        (_, true, _) => Verdict::Worse,
        (_, _, true) => Verdict::Same,
        _ => Verdict::Unknown,
    };
    let effect = found.in_deviations().map(|effect| if high { effect } else { -effect });
    let open = verdict == Verdict::Unknown && !pair.unstable && gain.abs() >= limit;
    let needed = found.seeds_needed(next).filter(|_| open);
    Compared { verdict, difference: Some(found), limit, effect, needed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Question;

    fn measure(high: bool) -> JudgedMetric {
        JudgedMetric {
            question: Question::Delay,
            metric: "sojourn_p95_s".to_owned(),
            high,
            matters: "10% or 1ms".parse().unwrap(),
        }
    }

    fn verdict_of(candidate: &[f64], baseline: &[f64], high: bool, unstable: bool) -> Verdict {
        let values = |of: &[f64]| -> Vec<Option<f64>> { of.iter().map(|value| Some(*value)).collect() };
        let (candidate, baseline, measure) = (values(candidate), values(baseline), measure(high));
        let pair = Pair { measure: &measure, candidate: &candidate, baseline: &baseline, unstable };
        compare(&[pair])[0].verdict
    }

    const LONG: [f64; 5] = [0.100, 0.104, 0.098, 0.101, 0.102];
    const SHORT: [f64; 5] = [0.020, 0.022, 0.019, 0.021, 0.020];

    #[test]
    fn the_direction_of_the_metric_decides() {
        assert_eq!(verdict_of(&SHORT, &LONG, false, false), Verdict::Better);
        assert_eq!(verdict_of(&SHORT, &LONG, true, false), Verdict::Worse);
        assert_eq!(verdict_of(&LONG, &SHORT, false, false), Verdict::Worse);
    }

    #[test]
    fn a_difference_below_what_matters_is_none() {
        let near = LONG.map(|value| value + 0.001);
        assert_eq!(verdict_of(&near, &LONG, false, false), Verdict::Same);
    }

    #[test]
    fn wide_intervals_and_two_states_are_undecided() {
        assert_eq!(verdict_of(&[0.05, 0.2, 0.1, 0.02, 0.3], &LONG, false, false), Verdict::Unknown);
        assert_eq!(verdict_of(&SHORT, &LONG, false, true), Verdict::Unknown);
        let (measure, values) = (measure(false), [None, None]);
        let pair = Pair {
            measure: &measure,
            candidate: &values,
            baseline: &[Some(1.0), Some(2.0)],
            unstable: false,
        };
        let compared = &compare(&[pair])[0];
        assert_eq!((compared.verdict, &compared.difference), (Verdict::Unknown, &None));
    }

    #[test]
    fn an_undecided_verdict_is_no_change_between_decided_ones() {
        let list = |verdicts: &[Verdict]| -> Vec<Compared> {
            let one = |verdict: &Verdict| Compared {
                verdict: *verdict,
                difference: None,
                limit: 1.0,
                effect: None,
                needed: None,
            };
            verdicts.iter().map(one).collect()
        };
        use Verdict::{Better, Same, Unknown, Worse};
        let before = list(&[Better, Better, Better, Same, Unknown, Unknown, Worse]);
        let after = list(&[Better, Worse, Same, Unknown, Unknown, Better, Better]);
        let changes = Changes::between(&before, &after);
        assert_eq!(changes, Changes { changed: 3, opposite: 2, decided: 1, undecided: 1 });
        assert_eq!(Changes::between(&after, &after), Changes::default());
    }

    /// A difference that counts alone does not count among many without one.
    #[test]
    fn a_card_is_corrected_as_a_whole() {
        let some = |of: &[f64]| -> Vec<Option<f64>> { of.iter().map(|value| Some(*value)).collect() };
        let measure = measure(false);
        let (slow, fast) = (some(&[1.0, 1.2, 0.9, 1.1]), some(&[0.8, 0.8, 0.8, 0.8]));
        let pair = || Pair { measure: &measure, candidate: &fast, baseline: &slow, unstable: false };
        assert_eq!(compare(&[pair()])[0].verdict, Verdict::Better);
        let noise: Vec<Vec<Option<f64>>> =
            (0..50).map(|n| some(&[1.0, 1.0, 1.0, 1.0 + 0.001 * f64::from(n)])).collect();
        let mut pairs: Vec<Pair<'_>> = noise
            .iter()
            .map(|values| Pair { measure: &measure, candidate: values, baseline: &noise[0], unstable: false })
            .collect();
        pairs.push(pair());
        assert_eq!(compare(&pairs).last().map(|last| last.verdict), Some(Verdict::Unknown));
    }

    #[test]
    fn an_effect_is_in_standard_deviations_of_the_pairs() {
        let measure = JudgedMetric { metric: "goodput_bps".to_owned(), ..measure(true) };
        let some = |of: &[f64]| -> Vec<Option<f64>> { of.iter().map(|value| Some(*value)).collect() };
        let (after, before) = (some(&[2.0, 3.0, 4.0]), some(&[1.0, 1.0, 1.0]));
        let pair = Pair { measure: &measure, candidate: &after, baseline: &before, unstable: false };
        // Differences 1, 2, 3: a mean of 2 and a standard deviation of 1.
        assert!((compare(&[pair])[0].effect.unwrap() - 2.0).abs() < 1e-9);
    }
}
