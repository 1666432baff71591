//! The answers of a sweep, as sentences: which key matters, where the best discipline changes, and which
//! value of a parameter is best where.
//!
//! Disciplines have the same arrivals at a point with a seed, so differences are taken seed by seed, and all
//! differences of one sentence are corrected together ([`crate::ranks`]). A discipline whose own parameter
//! varies is compared at the values of its parameters with the best mean over all points. Where no difference
//! is found, the number of seeds is named that would show the observed one.

use std::collections::BTreeMap;

use giveway_measure::{Better, Difference, Estimate, better, is_time, least_effect, short_names};

use crate::data::{At, Contender, Data};
use crate::effects::{Effect, effects, per_seed, responses};
use crate::labels;
use crate::precision::Precision;
use crate::ranks::{Candidate, LEVEL, Ranked, ranks, score, would_show};

/// A sentence, and the number of differences in it that were corrected together.
type Sentence = (String, usize);

/// The answers about the metric of the data.
pub fn answers(data: &Data) -> Vec<String> {
    let names: Vec<&str> = data.disciplines.iter().map(|contender| contender.name.as_str()).collect();
    let short = short_names(&names);
    let mut sentences: Vec<Sentence> = Vec::new();
    let found: Vec<Vec<Effect>> = data.disciplines.iter().map(|contender| effects(data, contender)).collect();
    for ((contender, name), effects) in data.disciplines.iter().zip(&short).zip(&found) {
        sentences.extend(match contender.concerned.iter().filter(|concerned| **concerned).count() {
            1 if data.is_grid() => over_key(data, (contender, name)),
            _ => importance(data, (contender, name), effects).map(|sentence| (sentence, 0)),
        });
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
    let differences = sentences.iter().map(|(_, differences)| *differences).max().unwrap_or_default();
    let texts = sentences.into_iter().map(|(text, _)| text);
    texts.chain(needed(data)).chain([certainty(data, differences)]).collect()
}

/// The range of a discipline's metric over the only key that varies: no other key could explain it.
fn over_key(data: &Data, (contender, name): (&Contender, &str)) -> Option<Sentence> {
    let axis = contender.concerned.iter().position(|concerned| *concerned)?;
    let Data { metric, axes, .. } = data;
    let responses = responses(contender, axis, |_| true);
    let (least, most) = (
        responses.iter().min_by(|a, b| a.mean.total_cmp(&b.mean))?,
        responses.iter().max_by(|a, b| a.mean.total_cmp(&b.mean))?,
    );
    if responses.len() < 2 {
        return None;
    }
    if least.mean == most.mean {
        return Some((format!("{name}: {metric} does not vary over {}.", axes[axis].key), 0));
    }
    let values = |level: usize| {
        let here: Vec<&At> = contender.points.iter().filter(|at| at.levels[axis] == Some(level)).collect();
        Estimate::over(per_seed(&here))
    };
    let found = Difference::of(metric, &values(least.level), &values(most.level))?;
    // The lowest and the highest mean are the most different of all pairs.
    let pairs = responses.len() * (responses.len() - 1) / 2;
    let level = LEVEL / pairs as f64;
    let place = |level: usize| labels::value(&axes[axis].levels[level]);
    let range = format!(
        "{} at {} to {} at {}",
        labels::of_metric(metric, least.mean),
        place(least.level),
        labels::of_metric(metric, most.mean),
        place(most.level)
    );
    let sure = match (found.p_value(), found.seeds_needed(level)) {
        (None, _) => String::new(),
        (Some(p), _) if p <= level => String::new(),
        (Some(_), Some(needed)) => {
            format!(" These seeds do not show that they differ: {}.", would_show(needed))
        }
        _ => " These seeds do not show that they differ.".to_owned(),
    };
    Some((format!("{name}: {metric} by {}: {range}.{sure}", axes[axis].key), pairs))
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
        score(&data.metric, means.iter().sum::<f64>() / means.len() as f64)
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

/// The best discipline at each value of a key, as runs of values with the same best one.
fn best_by_level(data: &Data, axis: usize, names: &[String]) -> Option<Sentence> {
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
    let ranking = ranks((0..levels).map(candidates).collect(), &data.metric)?;
    let (key, metric, differences) = (&data.axes[axis].key, &data.metric, ranking.differences);
    if ranking.none_differs() {
        let none = "no difference between the disciplines in";
        let text = format!("{key}: {none} {metric} is measurable at any value.{}", ranking.more_seeds());
        return Some((text, differences));
    }
    let ranked = ranking.groups;
    let best: Vec<usize> = ranked.iter().map(|ranked| ranked.best).collect();
    let stretches: Vec<String> = runs(&best)
        .into_iter()
        .map(|(first, last)| format!("{} {}", contenders[best[first]].1, stretch(data, axis, (first, last))))
        .collect();
    let open: Vec<String> = ranked
        .iter()
        .enumerate()
        .filter(|(_, ranked)| !ranked.equals.is_empty())
        .map(|(level, ranked)| {
            let others: Vec<String> =
                ranked.equals.iter().map(|other| contenders[*other].1.clone()).collect();
            let others = if ranked.none_differs() { "any other".to_owned() } else { labels::listed(&others) };
            let value = labels::value(&data.axes[axis].levels[level]);
            format!("{value} (from {others}{})", ranked.more_seeds("; "))
        })
        .collect();
    let first = if better(metric) == Better::Neither { "first one" } else { "best one" };
    let not = match open.is_empty() {
        true => String::new(),
        false => format!(" The {first} does not differ measurably at {}.", labels::listed(&open)),
    };
    let text =
        format!("{key}: the {} mean of {metric} has {}.{not}", end(metric), labels::listed(&stretches));
    Some((text, differences))
}

/// The end of a metric that comes first: the better one, or the lower one if neither is better.
fn end(metric: &str) -> &'static str {
    if better(metric) == Better::High { "highest" } else { "lowest" }
}

/// Runs of equal items: the first and the last place of each.
fn runs<T: PartialEq>(items: &[T]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (place, item) in items.iter().enumerate() {
        match runs.last_mut() {
            Some((first, last)) if items[*first] == *item => *last = place,
            _ => runs.push((place, place)),
        }
    }
    runs
}

/// The levels of a key from one to another, in words.
fn stretch(data: &Data, axis: usize, (first, last): (usize, usize)) -> String {
    let value = |level: usize| labels::value(&data.axes[axis].levels[level]);
    let end = data.axes[axis].levels.len() - 1;
    match (first, last) {
        (0, last) if last == end => "at every value".to_owned(),
        (first, last) if first == last => format!("at {}", value(first)),
        (first, last) if last == end => format!("from {} on", value(first)),
        (0, last) => format!("up to {}", value(last)),
        (first, last) => format!("from {} to {}", value(first), value(last)),
    }
}

/// The best value of a discipline's parameter, by the values of the key that matters most besides.
fn best_value(
    data: &Data,
    (contender, name, effects): (&Contender, &str, &[Effect]),
    axis: usize,
) -> Option<Sentence> {
    if !data.is_grid() || data.axes[axis].levels.len() < 2 {
        return None;
    }
    let other = effects
        .iter()
        .map(|effect| effect.axis)
        .find(|other| *other != axis && !data.axes[*other].key.starts_with("qdisc."));
    let value = |level: usize| labels::value(&data.axes[axis].levels[level]);
    let candidates = |with: &dyn Fn(&At) -> bool| -> Vec<Candidate> {
        let levels = responses(contender, axis, with).into_iter().map(|response| response.level);
        let of = |level: usize| {
            let here: Vec<&At> =
                contender.points.iter().filter(|at| with(at) && at.levels[axis] == Some(level)).collect();
            (level, per_seed(&here))
        };
        levels.map(of).filter(|(_, values)| values.iter().any(Option::is_some)).collect()
    };
    let groups: Vec<Vec<Candidate>> = match other {
        None => vec![candidates(&|_| true)],
        Some(other) => (0..data.axes[other].levels.len())
            .map(|level| candidates(&|at| at.levels[other] == Some(level)))
            .collect(),
    };
    let ranking = ranks(groups, &data.metric)?;
    let parameter = data.axes[axis].key.trim_start_matches("qdisc.");
    let (metric, differences) = (&data.metric, ranking.differences);
    if ranking.none_differs() {
        let measurably = match better(metric) {
            Better::Neither => format!("measurably changes {metric}"),
            Better::High | Better::Low => format!("is measurably better for {metric}"),
        };
        let text = format!("{name}: no value of {parameter} {measurably}.{}", ranking.more_seeds());
        return Some((text, differences));
    }
    let of_group = |ranked: &Ranked| -> String {
        let equals: Vec<String> = ranked.equals.iter().map(|level| value(*level)).collect();
        let more = ranked.more_seeds("; ");
        match (ranked.none_differs(), equals.is_empty()) {
            (true, _) => format!("(no measurable difference{more})"),
            (false, true) => String::new(),
            (false, false) => format!("(no measurable difference to {}{more})", labels::listed(&equals)),
        }
    };
    let found: Vec<(usize, String)> =
        ranking.groups.iter().map(|ranked| (ranked.best, of_group(ranked))).collect();
    let each: Vec<String> = runs(&found)
        .into_iter()
        .map(|(first, last)| {
            let (best, equals) = &found[first];
            let place = other.map_or_else(String::new, |other| stretch(data, other, (first, last)));
            let parts = [value(*best), place, equals.clone()];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let best = match better(metric) {
        Better::Neither => format!("the {parameter} with the {} {metric}", end(metric)),
        Better::High | Better::Low => format!("the best {parameter} for {metric}"),
    };
    let by = other.map(|other| format!(", by {}", data.axes[other].key)).unwrap_or_default();
    Some((format!("{name}: {best}{by}: {}.", each.join("; ")), differences))
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

/// The number of seeds, the correction of a number of differences, and what it leaves visible.
fn certainty(data: &Data, differences: usize) -> String {
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
    let ratios = if is_time(&data.metric) { ", times as ratios" } else { "" };
    // A larger effect than two deviations is rare.
    let blind = match (least, differences) {
        (0 | 1, _) | (_, 0) => None,
        (least, differences) => {
            Some(least_effect(least as u32, LEVEL / differences as f64)).filter(|effect| *effect > 2.0)
        }
    };
    let blind = blind.map_or_else(String::new, |effect| {
        format!(
            " With {least} seeds, the first of {differences} differences counts if it is more than {effect:.1} times its standard \
             deviation over the seeds; more seeds show smaller ones."
        )
    });
    format!(
        "{seeds}. Differences are paired by seed{ratios}, and all differences of a sentence are corrected together (Holm, 5 \
         %).{blind}"
    )
}
