//! A race of settings: after each seed, those that are far behind the best one of their discipline leave it,
//! so that seeds are not spent on settings without a chance.
//!
//! The idea comes from O. Maron and A. W. Moore, Hoeffding races, 1994. The distance at which a setting
//! leaves is a constant here, and not a bound that follows from the variance.

use std::collections::BTreeMap;

use crate::cells::Cell;
use crate::error::EvaluateError;
use crate::field::{Bench, Entrants};
use crate::run::{Outcome, Timing, mean};

/// A setting of a discipline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Racer {
    /// The number of the discipline.
    pub discipline: usize,
    /// Its default.
    pub default: String,
    /// The setting.
    pub setting: String,
}

/// The result of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Finish {
    /// The score over the seeds that it ran with.
    pub score: f64,
    /// True if it ran with all seeds.
    pub all: bool,
}

/// The rules of a race.
pub(crate) struct Rules<'a> {
    /// The seeds, in their order.
    pub seeds: &'a [u64],
    /// The distance to the best score at which a setting leaves.
    pub behind: f64,
    /// The name in the display of the progress.
    pub title: &'a str,
}

/// Runs settings in the short form of the cells. `best` contains the best score so far for each number of
/// seeds and each discipline, also from earlier races. The default scores 0.
///
/// # Errors
/// If a run fails.
pub(crate) fn race(
    racers: &[Racer],
    rules: &Rules<'_>,
    best: &mut BTreeMap<(usize, usize), f64>,
    bench: &mut Bench<'_, '_>,
) -> Result<Vec<Finish>, EvaluateError> {
    let mut outcomes: BTreeMap<String, Vec<Vec<Outcome>>> = BTreeMap::new();
    let mut finishes = vec![Finish { score: 0.0, all: true }; racers.len()];
    for (number, seed) in rules.seeds.iter().enumerate() {
        let still: Vec<usize> = (0..racers.len()).filter(|place| finishes[*place].all).collect();
        let title = format!("{}, seed {} of {}", rules.title, number + 1, rules.seeds.len());
        let texts = still.iter().flat_map(|place| [&racers[*place].default, &racers[*place].setting]);
        add(&mut outcomes, texts, *seed, &title, bench)?;
        for place in &still {
            let racer = &racers[*place];
            let of = |text: &String| outcomes[text].iter().map(Vec::as_slice);
            let score = score(bench.cells, of(&racer.default), of(&racer.setting));
            finishes[*place].score = score;
            let leader = best.entry((number, racer.discipline)).or_default();
            *leader = leader.max(score);
        }
        if number + 1 < rules.seeds.len() {
            for place in still {
                let leader = best[&(number, racers[place].discipline)];
                finishes[place].all = finishes[place].score >= leader - rules.behind;
            }
        }
    }
    Ok(finishes)
}

/// Runs disciplines with a seed, and adds the outcomes, by discipline and cell, to those with other seeds.
fn add<'t>(
    outcomes: &mut BTreeMap<String, Vec<Vec<Outcome>>>,
    texts: impl Iterator<Item = &'t String>,
    seed: u64,
    title: &str,
    bench: &mut Bench<'_, '_>,
) -> Result<(), EvaluateError> {
    let mut wanted: Vec<String> = texts.cloned().collect();
    wanted.sort();
    wanted.dedup();
    let found = bench.outcomes(Entrants::of(&wanted), &[seed], Timing::Ideal, true, title)?;
    for (cell, of_cell) in found.into_iter().enumerate() {
        for (text, more) in wanted.iter().zip(of_cell) {
            let cells = outcomes.entry(text.clone()).or_insert_with(|| vec![Vec::new(); bench.cells.len()]);
            cells[cell].extend(more);
        }
    }
    Ok(())
}

/// The mean gain over a default in all metrics, in units of what matters.
pub(crate) fn score<'a>(
    cells: &[Cell],
    default: impl Iterator<Item = &'a [Outcome]>,
    setting: impl Iterator<Item = &'a [Outcome]>,
) -> f64 {
    let (mut sum, mut number) = (0.0, 0u32);
    for ((cell, default), setting) in cells.iter().zip(default).zip(setting) {
        for (place, measure) in cell.measures.iter().enumerate() {
            if let Some(gain) = measure.counted_gain(mean(default, place), mean(setting, place)) {
                sum += gain;
                number += 1;
            }
        }
    }
    sum / f64::from(number.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::chosen;
    use crate::field::Backend;
    use giveway_trials::{Memory, Silent};

    #[test]
    fn no_metric_dominates_a_score() {
        let mut cells = chosen(&["rrul/rrul".to_owned()]).unwrap();
        let measure = crate::cells::JudgedMetric {
            matters: "1".parse().unwrap(),
            high: true,
            ..cells[0].measures[0].clone()
        };
        cells[0].measures = vec![measure; 4];
        let outcomes =
            |values: [Option<f64>; 4]| [vec![Outcome { values: values.to_vec(), ..Outcome::default() }]];
        let (default, setting) = (
            outcomes([Some(1.0), Some(1.0), Some(1.0), None]),
            outcomes([Some(2.0), Some(100.0), Some(0.0), Some(1.0)]),
        );
        let of = |list: &[Vec<Outcome>; 1]| list.clone();
        let (default, setting) = (of(&default), of(&setting));
        let found = score(&cells, default.iter().map(Vec::as_slice), setting.iter().map(Vec::as_slice));
        assert!((found - (1.0 + 3.0 - 1.0 + 3.0) / 4.0).abs() < 1e-12, "{found}");
    }

    /// A queue of one packet starves the transfer. The setting with it leaves after the first seed, and the
    /// score of the other is the same as without a race.
    #[test]
    fn a_setting_that_is_far_behind_leaves() {
        let cells = chosen(&["rrul/voip-beside-bulk".to_owned()]).unwrap();
        let racers = [50, 1].map(|limit| Racer {
            discipline: 0,
            default: "fifo limit 1000p".to_owned(),
            setting: format!("fifo limit {limit}p"),
        });
        let run = |racers: &[Racer], behind: f64| {
            let (backend, store) = (Backend::Simulator, &Memory::default());
            let mut bench = Bench { cells: &cells, jobs: 1, backend, store, frontend: &Silent };
            let rules = Rules { seeds: &[7, 8], behind, title: "a race" };
            race(racers, &rules, &mut BTreeMap::new(), &mut bench).unwrap()
        };
        let [usual, tiny] = run(&racers, 0.05)[..] else { panic!("two settings have two results") };
        assert!(usual.all && !tiny.all && usual.score > tiny.score + 0.05, "{usual:?} {tiny:?}");
        let without = run(&racers, f64::INFINITY);
        assert!(without.iter().all(|finish| finish.all));
        assert_eq!(without[0], usual);
        // The default is one of those that a setting may be behind.
        let worse = Racer { setting: "fifo limit 1p".to_owned(), ..racers[0].clone() };
        let [alone] = run(&[worse], 0.05)[..] else { panic!("one setting has one result") };
        assert!(!alone.all && alone.score < -0.05, "{alone:?}");
    }
}
