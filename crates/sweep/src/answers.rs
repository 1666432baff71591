//! The answers of a sweep, as sentences: which key matters, where the best discipline changes, and which
//! value of a parameter is best where.
//!
//! Disciplines have the same arrivals at a point with a seed, so differences are taken seed by seed
//! ([`Difference`]). All differences of one sentence are corrected together by Holm. A discipline whose own
//! parameter varies is compared at the values of its parameters with the best mean over all points.

use std::collections::BTreeMap;

use giveway_measure::{Difference, Estimate, holm, short_names};

use crate::data::{At, Contender, Data};
use crate::effects::{Effect, effects, per_seed, responses};
use crate::labels;
use crate::precision::Precision;

/// The level of significance of all differences of a sentence together.
const LEVEL: f64 = 0.05;

/// The answers about the metric of the data.
pub fn answers(data: &Data) -> Vec<String> {
    let names: Vec<&str> = data.disciplines.iter().map(|contender| contender.name.as_str()).collect();
    let short = short_names(&names);
    let mut sentences = Vec::new();
    let found: Vec<Vec<Effect>> = data.disciplines.iter().map(|contender| effects(data, contender)).collect();
    for ((contender, name), effects) in data.disciplines.iter().zip(&short).zip(&found) {
        sentences.extend(importance(data, (contender, name), effects));
    }
    for axis in 0..data.axes.len() {
        if !data.axes[axis].key.starts_with("qdisc.") {
            sentences.extend(best_by_level(data, axis, &short));
        }
    }
    for (axis, varied) in data.axes.iter().enumerate() {
        if !varied.key.starts_with("qdisc.") {
            continue;
        }
        for ((contender, name), effects) in data.disciplines.iter().zip(&short).zip(&found) {
            if contender.concerned[axis] {
                sentences.extend(best_value(data, (contender, name, effects), axis));
            }
        }
    }
    sentences.extend(needed(data));
    sentences.push(certainty(data));
    sentences
}

/// The keys that explain the variance of a discipline's metric.
fn importance(data: &Data, (contender, name): (&Contender, &str), effects: &[Effect]) -> Option<String> {
    let metric = &data.metric;
    if contender.points.len() < 2 {
        return None;
    }
    let Some(strongest) = effects.first() else {
        return Some(format!("{name}: {metric} does not vary over the points."));
    };
    // An interval that reaches zero may be noise of the seeds.
    let measurable = |effect: &Effect| {
        let found = effect.total.unwrap_or(effect.first);
        found.interval.map_or(found.value > 0.0, |(low, _)| low > 0.005)
    };
    if !effects.iter().any(measurable) {
        return Some(format!("{name}: no key has a measurable effect on {metric} with these seeds."));
    }
    let explained = |effect: &Effect| {
        let share = labels::percent_within(effect.first.value, effect.first.interval);
        format!("{} {share}", data.axes[effect.axis].key)
    };
    let each: Vec<String> = effects.iter().map(explained).collect();
    let sum: f64 = effects.iter().map(|effect| effect.first.value).sum();
    let together = match strongest.total {
        Some(_) if effects.len() > 1 && 1.0 - sum > 0.005 => {
            format!(", and keys together explain {}", labels::percent(1.0 - sum))
        }
        _ => String::new(),
    };
    Some(format!(
        "{name}: of the variance of {metric} over the points, the keys alone explain {}{together}.",
        labels::listed(&each)
    ))
}

/// The points of a discipline at the values of its own parameters with the best mean, and these values.
fn at_its_best<'a>(data: &Data, contender: &'a Contender) -> (Vec<&'a At>, String) {
    let own: Vec<usize> = (0..data.axes.len())
        .filter(|axis| contender.concerned[*axis] && data.axes[*axis].key.starts_with("qdisc."))
        .collect();
    if own.is_empty() || !data.is_grid() {
        return (contender.points.iter().collect(), String::new());
    }
    let mut settings: Vec<Vec<Option<usize>>> =
        contender.points.iter().map(|at| own.iter().map(|axis| at.levels[*axis]).collect()).collect();
    settings.sort();
    settings.dedup();
    let of = |setting: &Vec<Option<usize>>| -> Vec<&'a At> {
        let is = |at: &&At| own.iter().map(|axis| at.levels[*axis]).eq(setting.iter().copied());
        contender.points.iter().filter(is).collect()
    };
    let score = |setting: &Vec<Option<usize>>| {
        let means: Vec<f64> = of(setting).iter().filter_map(|at| at.mean()).collect();
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        if labels::higher_is_better(&data.metric) { -mean } else { mean }
    };
    let best = settings.into_iter().min_by(|a, b| score(a).total_cmp(&score(b)));
    let best = best.unwrap_or_default();
    let values: Vec<String> = own
        .iter()
        .zip(&best)
        .filter_map(|(axis, level)| {
            let name = data.axes[*axis].key.trim_start_matches("qdisc.");
            Some(format!("{name} {}", labels::value(&data.axes[*axis].levels[(*level)?])))
        })
        .collect();
    (of(&best), format!(" with {}", labels::listed(&values)))
}

/// A candidate at a level: its name and its values by seed.
type Candidate = (usize, Vec<Option<f64>>);

/// The best discipline at each value of a key, as runs of values with the same best one.
fn best_by_level(data: &Data, axis: usize, names: &[String]) -> Option<String> {
    let contenders: Vec<(Vec<&At>, String)> = data
        .disciplines
        .iter()
        .zip(names)
        .map(|(contender, name)| {
            let (points, setting) = at_its_best(data, contender);
            (points, format!("{name}{setting}"))
        })
        .collect();
    let levels = data.axes[axis].levels.len();
    if contenders.len() < 2 || levels < 2 || !data.is_grid() {
        return None;
    }
    let candidates = |level: usize| -> Vec<Candidate> {
        let of = |(place, (points, _)): (usize, &(Vec<&At>, String))| {
            let here: Vec<&At> = points.iter().filter(|at| at.levels[axis] == Some(level)).copied().collect();
            Some((place, per_seed(&here))).filter(|(_, values)| values.iter().any(Option::is_some))
        };
        contenders.iter().enumerate().filter_map(of).collect()
    };
    let ranked: Vec<Ranked> =
        ranks((0..levels).map(candidates).collect(), labels::higher_is_better(&data.metric))?;
    let value = |level: usize| labels::value(&data.axes[axis].levels[level]);
    let (key, metric) = (&data.axes[axis].key, &data.metric);
    if ranked.iter().all(|ranked| ranked.none_differs()) {
        return Some(format!(
            "{key}: no difference between the disciplines in {metric} is measurable at any value."
        ));
    }
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (level, ranked) in ranked.iter().enumerate() {
        match runs.last_mut() {
            Some((best, _, last)) if *best == ranked.best => *last = level,
            _ => runs.push((ranked.best, level, level)),
        }
    }
    let stretch = |(best, first, last): &(usize, usize, usize)| {
        let name = &contenders[*best].1;
        let where_ = match (*first, *last) {
            (0, last) if last == levels - 1 => "at every value".to_owned(),
            (first, last) if first == last => format!("at {}", value(first)),
            (first, last) if last == levels - 1 => format!("from {} on", value(first)),
            (0, last) => format!("up to {}", value(last)),
            (first, last) => format!("from {} to {}", value(first), value(last)),
        };
        format!("{name} {where_}")
    };
    let stretches: Vec<String> = runs.iter().map(stretch).collect();
    let open: Vec<String> = ranked
        .iter()
        .enumerate()
        .filter(|(_, ranked)| !ranked.equals.is_empty())
        .map(|(level, ranked)| {
            let others: Vec<String> =
                ranked.equals.iter().map(|other| contenders[*other].1.clone()).collect();
            let others = if ranked.none_differs() { "any other".to_owned() } else { labels::listed(&others) };
            format!("{} (from {others})", value(level))
        })
        .collect();
    let not = match open.is_empty() {
        true => String::new(),
        false => format!(" The best one does not differ measurably at {}.", labels::listed(&open)),
    };
    let which = if labels::higher_is_better(&data.metric) { "highest" } else { "lowest" };
    Some(format!("{key}: the {which} mean of {metric} has {}.{not}", labels::listed(&stretches)))
}

/// The best candidate of a group, and those without a measurable difference to it.
pub(crate) struct Ranked {
    /// The place of the best candidate.
    pub best: usize,
    /// The places of those without a measurable difference to it.
    pub equals: Vec<usize>,
    /// The number of candidates besides the best.
    others: usize,
}

/// The best discipline of each group of points, one set of points for each discipline. `None` if a group has
/// no values.
pub(crate) fn winners(data: &Data, groups: Vec<Vec<Vec<&At>>>) -> Option<Vec<Ranked>> {
    let candidates = |group: Vec<Vec<&At>>| -> Vec<Candidate> {
        let each = group.into_iter().map(|points| per_seed(&points)).enumerate();
        each.filter(|(_, values)| values.iter().any(Option::is_some)).collect()
    };
    ranks(groups.into_iter().map(candidates).collect(), labels::higher_is_better(&data.metric))
}

impl Ranked {
    /// True if no candidate differs measurably from the best.
    fn none_differs(&self) -> bool {
        self.others > 0 && self.equals.len() == self.others
    }
}

/// Ranks the candidates of each group. The differences of all groups are corrected together. `None` if a
/// group is empty.
fn ranks(groups: Vec<Vec<Candidate>>, high: bool) -> Option<Vec<Ranked>> {
    let mut ranked = Vec::new();
    let (mut p_values, mut places) = (Vec::new(), Vec::new());
    for (number, group) in groups.into_iter().enumerate() {
        let estimates: Vec<(usize, Estimate)> =
            group.into_iter().map(|(place, values)| (place, Estimate::over(values))).collect();
        let score = |estimate: &Estimate| {
            let mean = estimate.mean.unwrap_or(f64::INFINITY);
            if high { -mean } else { mean }
        };
        let (best, leader) = estimates.iter().min_by(|a, b| score(&a.1).total_cmp(&score(&b.1)))?;
        for (place, estimate) in &estimates {
            if place == best {
                continue;
            }
            let p = Difference::between(leader, estimate).and_then(|difference| difference.p_value());
            p_values.push(p.unwrap_or(1.0));
            places.push((number, *place));
        }
        ranked.push(Ranked { best: *best, equals: Vec::new(), others: estimates.len() - 1 });
    }
    for ((number, place), counts) in places.into_iter().zip(holm(&p_values, LEVEL)) {
        if !counts {
            ranked[number].equals.push(place);
        }
    }
    Some(ranked)
}

/// The best value of a discipline's parameter, by the values of the key that matters most besides.
fn best_value(
    data: &Data,
    (contender, name, effects): (&Contender, &str, &[Effect]),
    axis: usize,
) -> Option<String> {
    if !data.is_grid() || data.axes[axis].levels.len() < 2 {
        return None;
    }
    let other = effects
        .iter()
        .map(|effect| effect.axis)
        .find(|other| *other != axis && !data.axes[*other].key.starts_with("qdisc."));
    let high = labels::higher_is_better(&data.metric);
    let value = |axis: usize, level: usize| labels::value(&data.axes[axis].levels[level]);
    let candidates = |with: &dyn Fn(&At) -> bool| -> Vec<Candidate> {
        let levels = responses(contender, axis, with).into_iter().map(|response| response.level);
        let of = |level: usize| {
            let here: Vec<&At> =
                contender.points.iter().filter(|at| with(at) && at.levels[axis] == Some(level)).collect();
            (level, per_seed(&here))
        };
        levels.map(of).filter(|(_, values)| values.iter().any(Option::is_some)).collect()
    };
    let groups: Vec<(String, Vec<Candidate>)> = match other {
        None => vec![(String::new(), candidates(&|_| true))],
        Some(other) => (0..data.axes[other].levels.len())
            .map(|level| {
                (format!(" at {}", value(other, level)), candidates(&|at| at.levels[other] == Some(level)))
            })
            .collect(),
    };
    let (wheres, groups): (Vec<String>, Vec<Vec<Candidate>>) = groups.into_iter().unzip();
    let ranked = ranks(groups, high)?;
    let parameter = data.axes[axis].key.trim_start_matches("qdisc.");
    if ranked.iter().all(Ranked::none_differs) {
        return Some(format!("{name}: no value of {parameter} is measurably better for {}.", data.metric));
    }
    let each: Vec<String> = wheres
        .iter()
        .zip(&ranked)
        .map(|(where_, ranked)| {
            let equals: Vec<String> = ranked.equals.iter().map(|level| value(axis, *level)).collect();
            let equals = match (ranked.none_differs(), equals.is_empty()) {
                (true, _) => " (no measurable difference)".to_owned(),
                (false, true) => String::new(),
                (false, false) => format!(" (no measurable difference to {})", labels::listed(&equals)),
            };
            format!("{}{where_}{equals}", value(axis, ranked.best))
        })
        .collect();
    let by = other.map(|other| format!(", by {}", data.axes[other].key)).unwrap_or_default();
    Some(format!("{name}: the best {parameter} for {}{by}: {}.", data.metric, each.join("; ")))
}

/// The seeds that a precision needed, if seeds end with one.
fn needed(data: &Data) -> Option<String> {
    let precision: Precision = data.manifest.until.as_ref()?.parse().ok()?;
    let mut points: BTreeMap<u64, (usize, bool)> = BTreeMap::new();
    for at in data.disciplines.iter().flat_map(|contender| &contender.points) {
        let values: Vec<f64> = at.values.iter().flatten().copied().collect();
        let (count, reached) = points.entry(at.point).or_insert((0, true));
        *count = (*count).max(values.len());
        *reached &= values.is_empty() || precision.reached(&values);
    }
    let mut counts: Vec<usize> = points.values().map(|(count, _)| *count).collect();
    counts.sort_unstable();
    let (least, most) = (*counts.first()?, *counts.last()?);
    let median = counts[counts.len() / 2];
    let missed = points.values().filter(|(_, reached)| !reached).count();
    let seeds = match (least, most) {
        (least, most) if least == most => format!("{most} seeds"),
        (least, most) => format!("{least} to {most} seeds, with a median of {median}"),
    };
    // Data of another metric do not say which points missed it.
    let missed = match missed {
        _ if data.metric != precision.metric => String::new(),
        0 => ", and all reached it".to_owned(),
        missed => format!(", and {missed} of {} points did not reach it", points.len()),
    };
    Some(format!("{precision}: points ran {seeds}{missed}."))
}

/// The number of seeds, and the correction.
fn certainty(data: &Data) -> String {
    let counts: Vec<usize> = data
        .disciplines
        .iter()
        .flat_map(|contender| &contender.points)
        .map(|at| at.values.iter().flatten().count())
        .collect();
    let (least, most) =
        (counts.iter().min().copied().unwrap_or_default(), counts.iter().max().copied().unwrap_or_default());
    let seeds = match (least, most) {
        (1, 1) => return "With one seed no difference is measurable: add --seeds 5.".to_owned(),
        (least, most) if least == most => format!("Each point has {most} seeds"),
        (0, most) => format!("Points have up to {most} seeds with this metric, and some have none"),
        (least, most) => format!("Points have {least} to {most} seeds"),
    };
    format!(
        "{seeds}. Differences are paired by seed, and all differences of a sentence are corrected together (Holm, 5 %)."
    )
}
