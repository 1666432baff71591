//! The own best of each discipline: the best setting that a budget of tuning finds.
//!
//! Disciplines run at their defaults in the card, which favours those whose defaults suit its cells. So every
//! discipline is tuned with the same budget, and their best settings are compared, too.
//!
//! - A search tries settings ([`crate::search`]) in the short form of the cells, with seeds that no card
//!   uses.
//! - The score of a setting is the mean over all metrics of its gain over the discipline's own default, in
//!   units of what matters. A gain counts at most [`MAX_GAIN`](crate::MAX_GAIN),
//!   so that no cell dominates.
//! - A setting runs with the second seed only if it is not worse than the best one by more than [`MARGIN`]
//!   after the first ([`crate::race`]).
//! - A setting that is not better by [`MARGIN`] is not better: the default is then the own best.
//! - The best settings run with the seeds of the card, in the short form. The gain there is smaller than on
//!   the seeds of the search, since a search also finds luck.

use std::collections::BTreeMap;

use crate::cells::Cell;
use crate::error::EvaluateError;
use crate::field::{Bench, Entrants, Field, Seeds};
use crate::parameters::{Variable, accepted};
use crate::race::{Finish, Racer, Rules, race, score};
use crate::search::{Search, factors};
use crate::verdict::{Changes, Compared};

/// The seeds of the search. Those of a card are below ([`crate::MAX_FIRST_SEED`]).
const SEEDS: [u64; 2] = [1_000_001, 1_000_002];

/// The smallest score that makes a setting better than the default, and the largest distance to the best
/// setting after the first seed.
pub const MARGIN: f64 = 0.05;

/// The number of times that a refused setting comes closer to the default, each time by half.
const RETREATS: usize = 3;

/// The own best of all disciplines.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The number of settings that may be tried for each discipline.
    pub budget: u32,
    /// The own best of each discipline: of the candidate, then of the baselines.
    pub settings: Vec<Setting>,
    /// The comparisons of the defaults in the short form, by baseline, cell and metric.
    pub at_defaults: Vec<Compared>,
    /// The comparisons of the best settings, in the same order.
    pub at_best: Vec<Compared>,
}

impl Best {
    /// The verdicts that differ between the defaults and the best settings.
    pub fn changes(&self) -> Changes {
        Changes::between(&self.at_defaults, &self.at_best)
    }
}

/// The own best of a discipline.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The discipline with its best setting.
    pub spec: String,
    /// The reason why it is the default; `None` if it is another setting.
    pub kept: Option<Kept>,
    /// The score on the seeds of the search; 0 for the default.
    pub tuned: f64,
    /// The score on the seeds of the card; 0 for the default.
    pub fresh: f64,
    /// All settings that were tried, with their scores, in order. A setting that was behind after the first
    /// seed is scored by this seed alone.
    pub tried: Vec<(String, f64)>,
}

/// The reason why a default is the own best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The discipline is the caller's, so nobody knows its parameters.
    Unknown,
    /// It has no numeric parameter.
    Fixed,
    /// No setting is better by the margin.
    Unbeaten,
}

/// Finds the own best of each discipline, and adds it to the field of the short form, which starts with
/// the defaults.
pub(crate) fn best(
    entrants: Entrants<'_>,
    budget: u32,
    seeds: Seeds,
    field: &mut Field,
    bench: &mut Bench<'_, '_>,
) -> Result<Best, EvaluateError> {
    let cells = bench.cells;
    let mut settings = tuned(entrants, budget, bench)?;
    let better: Vec<usize> = (0..settings.len()).filter(|place| settings[*place].kept.is_none()).collect();
    let mut places: Vec<usize> = (0..settings.len()).collect();
    if !better.is_empty() {
        // Two forms of one discipline may have the same best setting.
        let mut specs: Vec<String> = better.iter().map(|place| settings[*place].spec.clone()).collect();
        specs.sort();
        specs.dedup();
        let first = field.extend(bench.field(Entrants::of(&specs), seeds, true, "best settings")?);
        let of = |discipline: usize| field.outcomes.iter().map(move |cell| &cell[discipline][..]);
        for place in better {
            let number = specs.binary_search(&settings[place].spec).expect("all specs are in the list");
            places[place] = first + number;
            settings[place].fresh = score(cells, of(place), of(first + number));
        }
    }
    let defaults: Vec<usize> = (1..settings.len()).collect();
    Ok(Best {
        budget,
        at_defaults: field.compared(cells, 0, &defaults),
        at_best: field.compared(cells, places[0], &places[1..]),
        settings,
    })
}

/// A discipline in the search.
struct Tuned {
    variable: Variable,
    search: Search,
    tried: Vec<(String, f64)>,
    best: Option<(String, f64)>,
}

/// The settings that the search finds.
fn tuned(
    entrants: Entrants<'_>,
    budget: u32,
    bench: &mut Bench<'_, '_>,
) -> Result<Vec<Setting>, EvaluateError> {
    let mut disciplines: Vec<Option<Tuned>> = Vec::new();
    for (place, text) in entrants.specs.iter().enumerate() {
        let known = if entrants.own && place == 0 { None } else { Variable::of(text) };
        disciplines.push(known.filter(|variable| !variable.numbers.is_empty()).map(|variable| {
            let search = Search::new(text, variable.numbers.len(), budget as usize);
            Tuned { variable, search, tried: Vec::new(), best: None }
        }));
    }
    let mut leaders = BTreeMap::new();
    for round in 1..=Search::ROUNDS {
        let mut points = Vec::new();
        for (place, tuned) in disciplines.iter_mut().enumerate() {
            let found = tuned.as_mut().map(|tuned| tuned.search.round()).unwrap_or_default();
            points.extend(found.into_iter().map(|point| (place, point)));
        }
        let variable = |place: usize| &disciplines[place].as_ref().expect("it has points").variable;
        let settings = possible(points, &variable, bench.cells);
        let racer = |(place, _, text): &(usize, Vec<f64>, String)| Racer {
            discipline: *place,
            default: variable(*place).spec.to_string(),
            setting: text.clone(),
        };
        let racers: Vec<Racer> = settings.iter().map(racer).collect();
        let title = format!("tuning, round {round} of {}", Search::ROUNDS);
        let rules = Rules { seeds: &SEEDS, behind: MARGIN, title: &title };
        let finishes = race(&racers, &rules, &mut leaders, bench)?;
        for ((place, point, text), Finish { score, all }) in settings.into_iter().zip(finishes) {
            let Some(tuned) = &mut disciplines[place] else { continue };
            if all {
                tuned.search.scored(&point, score);
            }
            if all && tuned.best.as_ref().is_none_or(|(_, best)| score > *best) {
                tuned.best = Some((text.clone(), score));
            }
            tuned.tried.push((text, score));
        }
    }
    let setting = |(place, tuned): (usize, Option<Tuned>)| {
        let spec = entrants.specs[place].clone();
        let plain = |why, tried| Setting { spec, kept: Some(why), tuned: 0.0, fresh: 0.0, tried };
        match tuned {
            None if entrants.own && place == 0 => plain(Kept::Unknown, Vec::new()),
            None => plain(Kept::Fixed, Vec::new()),
            Some(Tuned { tried, best: Some((text, score)), .. }) if score >= MARGIN => {
                Setting { spec: text, kept: None, tuned: score, fresh: 0.0, tried }
            }
            Some(tuned) => plain(Kept::Unbeaten, tuned.tried),
        }
    };
    Ok(disciplines.into_iter().enumerate().map(setting).collect())
}

/// The settings of points that all cells accept, each with its discipline, point and text. A refused setting
/// comes closer to the default, and is left out if that does not help.
fn possible<'a>(
    points: Vec<(usize, Vec<f64>)>,
    variable: &dyn Fn(usize) -> &'a Variable,
    cells: &[Cell],
) -> Vec<(usize, Vec<f64>, String)> {
    let mut found: Vec<Option<(usize, Vec<f64>, String)>> = vec![None; points.len()];
    let mut left: Vec<(usize, (usize, Vec<f64>))> = points.into_iter().enumerate().collect();
    for _ in 0..=RETREATS {
        let texts: Vec<Option<String>> = left
            .iter()
            .map(|(_, (place, point))| Some(variable(*place).scaled(&factors(point))?.to_string()))
            .collect();
        let given: Vec<String> = texts.iter().flatten().cloned().collect();
        let mut fits = accepted(cells, &given).into_iter();
        let mut again = Vec::new();
        for ((number, (place, point)), text) in left.into_iter().zip(texts) {
            match text.filter(|_| fits.next() == Some(true)) {
                Some(text) => found[number] = Some((place, point, text)),
                None => again.push((number, (place, point.iter().map(|at| at / 2.0).collect()))),
            }
        }
        left = again;
    }
    found.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::chosen;

    #[test]
    fn a_refused_setting_comes_closer_to_the_default() {
        let cells = chosen(&["rrul/rrul".to_owned()]).unwrap();
        let red = Variable::of("red min 60kb max 80kb limit 400kb weight 0.002").unwrap();
        let min = red.numbers.iter().position(|number| number.name == "min").unwrap();
        let mut point = vec![0.0; red.numbers.len()];
        point[min] = 0.5;
        let found = possible(vec![(0, point)], &|_| &red, &cells);
        // Twice 60 kB is more than max, and the root of two of it as well; the fourth root is not.
        assert_eq!(found.len(), 1);
        assert!((found[0].1[min] - 0.125).abs() < 1e-12, "{found:?}");
    }
}
