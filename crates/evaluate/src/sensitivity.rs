//! The verdicts that change when a parameter of the discipline changes by 20 %.
//!
//! Each parameter is multiplied by 0.8 and by 1.2, one at a time. If a cell refuses such a value, the
//! parameter goes as far as all cells accept, in steps of 5 %. The changed discipline runs in the short form
//! of the cells with the seeds of the card, and is compared with all baselines as the card does.
//!
//! A verdict with a large difference does not change although the discipline does. So the changed discipline
//! is also compared with the unchanged one, metric by metric, with the same rules.

use crate::cells::Cell;
use crate::error::EvaluateError;
use crate::field::{Bench, Entrants, Field, Seeds};
use crate::parameters::{Variable, accepted};
use crate::verdict::{Changes, Verdict};

/// The changes of a parameter: the factors to try for each, the first one that is possible counts.
const FACTORS: [[f64; 4]; 2] = [[0.8, 0.85, 0.9, 0.95], [1.2, 1.15, 1.1, 1.05]];

/// The verdicts that change when a parameter changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sensitivity {
    /// A row for each parameter and direction.
    pub rows: Vec<Shift>,
    /// The changes that are not possible.
    pub left_out: Vec<LeftOut>,
    /// The number of verdicts, with all baselines together.
    pub verdicts: u32,
    /// The number of undecided ones among them with the unchanged discipline.
    pub undecided: u32,
    /// The number of metrics of all cells.
    pub metrics: u32,
    /// True if the discipline has parameters that can be looked up: it is not the caller's.
    pub known: bool,
}

/// A changed parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// The name of the parameter.
    pub parameter: String,
    /// Its value in the discipline, as a specification has it.
    pub from: String,
    /// Its changed value.
    pub to: String,
    /// The factor that was wanted, 0.8 or 1.2.
    pub wanted: f64,
    /// The factor that is possible.
    pub factor: f64,
    /// The changed discipline.
    pub spec: String,
    /// The changes of the verdicts.
    pub changes: Changes,
    /// The number of metrics in which the changed discipline is better than the unchanged one.
    pub better: u32,
    /// The number in which it is worse.
    pub worse: u32,
    /// The metric that moves most; `None` if none moves.
    pub most: Option<Moved>,
}

/// A metric of a cell that moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The place of the cell.
    pub cell: usize,
    /// The metric.
    pub metric: String,
    /// The mean of the unchanged discipline.
    pub before: f64,
    /// The mean of the changed one.
    pub after: f64,
    /// The difference in units of what matters; positive if the changed discipline is better.
    pub gain: f64,
}

/// A change that is not possible.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// The name of the parameter.
    pub parameter: String,
    /// Its value.
    pub from: String,
    /// The factor that was wanted, 0.8 or 1.2.
    pub wanted: f64,
    /// The reason.
    pub why: &'static str,
}

impl Sensitivity {
    /// The mean number of verdicts that a changed parameter changes; `None` without rows.
    pub fn mean_changed(&self) -> Option<f64> {
        self.mean_of(|row| row.changes.changed)
    }

    /// The mean number of metrics in which a discipline with a changed parameter differs from the unchanged
    /// one; `None` without rows.
    pub fn mean_moved(&self) -> Option<f64> {
        self.mean_of(|row| row.better + row.worse)
    }

    fn mean_of(&self, number: fn(&Shift) -> u32) -> Option<f64> {
        let sum: u32 = self.rows.iter().map(number).sum();
        (!self.rows.is_empty()).then(|| f64::from(sum) / self.rows.len() as f64)
    }
}

/// Runs the changed disciplines, and adds them to the field of the short form. The candidate is the first of
/// the field, and the next `baselines` are compared with it.
pub(crate) fn sensitivity(
    candidate: &Variable,
    baselines: usize,
    seeds: Seeds,
    field: &mut Field,
    bench: &mut Bench<'_, '_>,
) -> Result<Sensitivity, EvaluateError> {
    let cells = bench.cells;
    let baselines: Vec<usize> = (1..=baselines).collect();
    let before = field.compared(cells, 0, &baselines);
    let mut found = Sensitivity {
        verdicts: before.len() as u32,
        undecided: before.iter().filter(|one| one.verdict == Verdict::Unknown).count() as u32,
        metrics: cells.iter().map(|cell| cell.measures.len() as u32).sum(),
        known: true,
        ..Sensitivity::default()
    };
    let shifts = possible(candidate, cells, &mut found.left_out);
    if shifts.is_empty() {
        return Ok(found);
    }
    let specs: Vec<String> = shifts.iter().map(|shift| shift.spec.clone()).collect();
    let first = field.extend(bench.field(Entrants::of(&specs), seeds, true, "changed parameters")?);
    for (number, shift) in shifts.into_iter().enumerate() {
        let place = first + number;
        let changes = Changes::between(&before, &field.compared(cells, place, &baselines));
        let itself = field.compared(cells, place, &[0]);
        let count = |wanted: Verdict| itself.iter().filter(|one| one.verdict == wanted).count() as u32;
        let (better, worse) = (count(Verdict::Better), count(Verdict::Worse));
        found.rows.push(Shift { changes, better, worse, most: most(field, cells, place), ..shift });
    }
    Ok(found)
}

/// The changes that all cells accept; the others are added to a list. Their verdicts are still empty.
fn possible(candidate: &Variable, cells: &[Cell], left_out: &mut Vec<LeftOut>) -> Vec<Shift> {
    let original = candidate.spec.to_string();
    let scaled = |place: usize, factor: f64| candidate.scaled(&[(place, factor)]);
    let mut texts = Vec::new();
    for place in 0..candidate.numbers.len() {
        let specs = FACTORS.as_flattened().iter().filter_map(|factor| scaled(place, *factor));
        texts.extend(specs.map(|spec| spec.to_string()));
    }
    let accepted = accepted(cells, &texts);
    let fits = |text: &String| texts.iter().zip(&accepted).any(|(other, fits)| *fits && other == text);
    let mut shifts = Vec::new();
    for (place, number) in candidate.numbers.iter().enumerate() {
        for factors in FACTORS {
            let changed = |factor: f64| scaled(place, factor).filter(|spec| spec.to_string() != original);
            let wanted = factors[0];
            let found =
                factors.iter().find_map(|factor| changed(*factor).filter(|spec| fits(&spec.to_string())));
            let from = number.text.clone();
            match found {
                Some(spec) => {
                    let (to, value) = candidate.number_in(place, &spec);
                    shifts.push(Shift {
                        parameter: number.name.clone(),
                        from,
                        to,
                        wanted,
                        factor: value / number.value,
                        spec: spec.to_string(),
                        changes: Changes::default(),
                        better: 0,
                        worse: 0,
                        most: None,
                    });
                }
                None => {
                    let rounds = scaled(place, wanted).is_some_and(|spec| spec.to_string() == original);
                    let why =
                        if rounds { "it rounds to the same value" } else { "the discipline refuses it" };
                    left_out.push(LeftOut { parameter: number.name.clone(), from, wanted, why });
                }
            }
        }
    }
    shifts
}

/// The metric in which a discipline of the field differs most from the first one. Cells in which one of them
/// has two states do not count.
fn most(field: &Field, cells: &[Cell], place: usize) -> Option<Moved> {
    let mut most: Option<Moved> = None;
    for (cell, each) in cells.iter().enumerate() {
        for (number, measure) in each.measures.iter().enumerate() {
            let unstable = [0, place].iter().any(|one| field.is_unstable(*one, cell, measure));
            let means = field.mean(0, cell, number).zip(field.mean(place, cell, number));
            let Some((before, after)) = means.filter(|_| !unstable) else { continue };
            let gain = measure.gain(before, after);
            if gain.abs() > most.as_ref().map_or(0.0, |moved| moved.gain.abs()) {
                most = Some(Moved { cell, metric: measure.metric.clone(), before, after, gain });
            }
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::chosen;

    fn planned(text: &str) -> (Vec<String>, Vec<(String, &'static str)>) {
        let cells = chosen(&["rrul/rrul".to_owned()]).unwrap();
        let mut left_out = Vec::new();
        let shifts = possible(&Variable::of(text).unwrap(), &cells, &mut left_out);
        let shown =
            |shift: Shift| format!("{} {} -> {}: {}", shift.parameter, shift.from, shift.to, shift.spec);
        let left = left_out.into_iter().map(|one| (format!("{} x{}", one.parameter, one.wanted), one.why));
        (shifts.into_iter().map(shown).collect(), left.collect())
    }

    #[test]
    fn each_parameter_changes_by_a_fifth_in_both_directions() {
        let (shifts, left_out) = planned("codel");
        assert_eq!(
            shifts,
            [
                "limit 1000p -> 800p: codel limit 800p",
                "limit 1000p -> 1200p: codel limit 1200p",
                "target 5ms -> 4ms: codel target 4ms",
                "target 5ms -> 6ms: codel target 6ms",
                "interval 100ms -> 80ms: codel interval 80ms",
                "interval 100ms -> 120ms: codel interval 120ms",
            ]
        );
        assert!(left_out.is_empty());
    }

    #[test]
    fn values_that_do_not_exist_are_left_out_and_bounds_are_respected() {
        // The share goes as far as 1, and the threshold as far as the limit allows.
        let (shifts, left_out) = planned("red probability 0.92 limit 400kb max 370kb min 100kb weight 0.002");
        assert!(shifts.iter().any(|one| one.starts_with("probability 0.92 -> 0.966:")), "{shifts:?}");
        assert!(
            shifts.iter().any(|one| one.starts_with("limit 400kb -> ") && !one.contains("320kb")),
            "{shifts:?}"
        );
        assert_eq!(left_out, []);
        let (shifts, left_out) = planned("sfq");
        assert!(shifts.iter().all(|one| !one.starts_with("divisor")), "{shifts:?}");
        assert!(left_out.contains(&("divisor x0.8".to_owned(), "the discipline refuses it")), "{left_out:?}");
        let (_, left_out) = planned("choke");
        let candidates = ("candidates x1.2".to_owned(), "it rounds to the same value");
        assert!(left_out.contains(&candidates), "{left_out:?}");
    }
}
