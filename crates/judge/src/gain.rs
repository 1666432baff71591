//! Gains of cells, and their sums.

use std::collections::BTreeMap;

use giveway_evaluate::{JudgedMetric, Outcome, Question};
use giveway_measure::{Difference, Estimate};

/// The mean gains of a cell by question, over its metrics and seeds.
pub fn of_cell(measures: &[JudgedMetric], from: &[Outcome], to: &[Outcome]) -> BTreeMap<Question, f64> {
    let mut sums: BTreeMap<Question, (f64, u32)> = BTreeMap::new();
    for (from, to) in from.iter().zip(to) {
        for (place, measure) in measures.iter().enumerate() {
            if let Some(gain) = measure.counted_gain(from.values[place], to.values[place]) {
                let (sum, count) = sums.entry(measure.question).or_default();
                (*sum, *count) = (*sum + gain, *count + 1);
            }
        }
    }
    sums.into_iter().map(|(question, (sum, count))| (question, sum / f64::from(count))).collect()
}

/// The score of gains: by question, and the mean over questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// The mean over questions, -3 to 3.
    pub total: f64,
    /// The mean gain of each question over the cells that ask it, and their number.
    pub questions: Vec<(Question, f64, u32)>,
}

impl Score {
    /// The score of the gains of cells.
    pub fn of<'a>(cells: impl IntoIterator<Item = &'a BTreeMap<Question, f64>>) -> Score {
        let mut sums: BTreeMap<Question, (f64, u32)> = BTreeMap::new();
        for (question, gain) in cells.into_iter().flatten() {
            let (sum, count) = sums.entry(*question).or_default();
            (*sum, *count) = (*sum + gain, *count + 1);
        }
        let questions: Vec<(Question, f64, u32)> = sums
            .into_iter()
            .map(|(question, (sum, count))| (question, sum / f64::from(count), count))
            .collect();
        let total = questions.iter().map(|(_, gain, _)| gain).sum::<f64>() / questions.len().max(1) as f64;
        Score { total, questions }
    }
}

/// The probability below which a change over cells is not chance: in one question, and in each of two. And
/// the minimum mean change, in units of what matters.
const CHANCE: f64 = 1e-4;
const CHANCE_OF_TWO: f64 = 2e-3;
const MIN: f64 = 0.4;

/// The question whose gains over cells are not chance, with their mean; the clearest if there are several.
pub fn systematic(cells: &[BTreeMap<Question, f64>]) -> Option<(Question, f64)> {
    let judged = |question: Question| {
        let gains: Vec<Option<f64>> =
            cells.iter().filter_map(|cell| cell.get(&question)).copied().map(Some).collect();
        let none = vec![Some(0.0); gains.len()];
        let found = Difference::between(&Estimate::over(none), &Estimate::over(gains))?;
        Some((found.p_value()?, question, found.after)).filter(|(_, _, gain)| gain.abs() >= MIN)
    };
    let mut found: Vec<(f64, Question, f64)> = Question::ALL.into_iter().filter_map(judged).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let clear = match found[..] {
        [(p, ..), ..] if p < CHANCE => true,
        [(one, ..), (other, ..), ..] => one.max(other) < CHANCE_OF_TWO,
        _ => false,
    };
    found.first().filter(|_| clear).map(|(_, question, gain)| (*question, *gain))
}
