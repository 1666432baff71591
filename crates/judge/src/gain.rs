//! Gains: differences in units of what matters, so that metrics can be added.

use std::collections::BTreeMap;

use giveway_evaluate::{Measure, Outcome, Question};
use giveway_measure::{Difference, Estimate};

/// The largest gain of a metric in a run, in both directions. No cell may outweigh the others.
pub const MOST: f64 = 3.0;

/// The gain from one run to another in a metric, in units of what matters there, -3 to 3. A metric that only
/// one of them has measured, such as the completion time of transfers that never ended, is the largest
/// difference.
pub fn gain(measure: &Measure, from: Option<f64>, to: Option<f64>) -> Option<f64> {
    match (from, to) {
        (None, None) => None,
        (Some(_), None) => Some(-MOST),
        (None, Some(_)) => Some(MOST),
        (Some(from), Some(to)) => {
            let change = if measure.high { to - from } else { from - to };
            let limit = measure.matters.limit(from, to, measure.high);
            Some(if change == 0.0 { 0.0 } else { (change / limit).clamp(-MOST, MOST) })
        }
    }
}

/// The mean gains of a cell by question, over its metrics and seeds.
pub fn of_cell(measures: &[Measure], from: &[Outcome], to: &[Outcome]) -> BTreeMap<Question, f64> {
    let mut sums: BTreeMap<Question, (f64, u32)> = BTreeMap::new();
    for (from, to) in from.iter().zip(to) {
        for (place, measure) in measures.iter().enumerate() {
            if let Some(gain) = gain(measure, from.values[place], to.values[place]) {
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

/// The probability below which changes over cells are not chance, for each question, and the least mean
/// change, in units of what matters.
pub const CHANCE: f64 = 1e-4;
pub const LEAST: f64 = 0.4;

/// The question whose gains over cells are not chance, with their mean; the clearest if there are several.
pub fn systematic(cells: &[BTreeMap<Question, f64>]) -> Option<(Question, f64)> {
    let clear = |question: Question| {
        let gains: Vec<Option<f64>> =
            cells.iter().filter_map(|cell| cell.get(&question)).copied().map(Some).collect();
        let none = vec![Some(0.0); gains.len()];
        let found = Difference::between(&Estimate::over(none), &Estimate::over(gains))?;
        let p = found.p_value()?;
        (p < CHANCE && found.after.abs() >= LEAST).then_some((p, question, found.after))
    };
    let found = Question::ALL.into_iter().filter_map(clear);
    found.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, question, gain)| (question, gain))
}
