//! A card as text, and as JSON.

use std::fmt::Write as _;

use giveway_measure::{Ratio, amount, of_metric};
use giveway_scenario::Draft;
use serde_json::{Value, json};

use crate::card::{Card, Line, Request};
use crate::cells::Cell;
use crate::columns::table;
use crate::field::Unstable;
use crate::pooled::Pooled;
use crate::question::Question;
use crate::run::on_bed;
use crate::states::States;
use crate::varied;
use crate::verdict::{LEVEL, Verdict};

/// Maximum number of differences that the text lists for each direction.
const LISTED: usize = 5;

/// The card as text: the matrix, the largest differences, and what is uncertain.
pub fn text(card: &Card) -> String {
    let mut text = String::new();
    let request = &card.request;
    let _ = writeln!(
        text,
        "{} in {} cells with {} seeds: {}",
        card.names[0],
        request.cells.len(),
        request.seeds,
        size(card)
    );
    let head: Vec<String> = std::iter::once(String::new())
        .chain(card.names[1..].iter().map(|name| format!("against {name}")))
        .collect();
    let mut rows = vec![head];
    for question in card.questions() {
        let counts_of_baselines =
            (0..request.against.len()).map(|baseline| card.counts(question, baseline).in_one_line());
        rows.push(std::iter::once(question.label().to_owned()).chain(counts_of_baselines).collect());
    }
    text.push_str(&table(&rows));
    let _ =
        writeln!(text, "+ better, - worse, = no difference that matters, ? undecided: numbers of metrics.");
    if !card.pooled.is_empty() {
        let _ = writeln!(text, "In sum over the metrics of a question, {GAIN}:");
        text.push_str(&table(&sums(card)));
    }
    for (verdict, title) in [(Verdict::Worse, "Worse"), (Verdict::Better, "Better")] {
        let largest = largest(card, verdict);
        if !largest.is_empty() {
            let _ = writeln!(text, "{title}, by the largest differences:");
        }
        for line in largest {
            let _ = writeln!(text, "  {}", sentence(card, line));
        }
    }
    for found in &card.unstable {
        let _ = writeln!(text, "Two states: {}", of_states(card, found));
    }
    for line in card.lines.iter().filter(|line| line.flips()) {
        let _ = writeln!(text, "The opposite with the timing of real machines: {}", sentence(card, line));
    }
    let _ = writeln!(text, "{}", certainty(card));
    if let Some(sentence) = more_seeds(card) {
        let _ = writeln!(text, "{sentence}");
    }
    text.push_str(&varied::text(card));
    text
}

/// The unit of a sum over metrics, in words.
pub(crate) const GAIN: &str = "the mean gain in units of the smallest difference that matters";

/// The mean gains by question and baseline, with titles.
pub(crate) fn sums(card: &Card) -> Vec<Vec<String>> {
    let head = card.names[1..].iter().map(|name| format!("against {name}"));
    let mut rows = vec![std::iter::once(String::new()).chain(head).collect::<Vec<String>>()];
    for question in card.questions().into_iter().filter(|question| *question != Question::Cost) {
        let sum = |baseline: usize| card.pooled(question, baseline).map_or_else(|| "-".to_owned(), of_sum);
        let sums = (0..card.request.against.len()).map(sum);
        rows.push(std::iter::once(question.label().to_owned()).chain(sums).collect());
    }
    rows
}

/// A mean gain with its interval, its verdict, and the seeds that would decide it.
fn of_sum(one: &Pooled) -> String {
    let Some(gain) = one.gain else { return "not measured".to_owned() };
    let half = gain.ci95.map_or_else(String::new, |half| format!(" ± {half:.2}"));
    let needed = one.needed.map_or_else(String::new, |needed| format!(", {} would decide", seeds(needed)));
    format!("{:+.2}{half} ({}{needed})", gain.after, one.verdict.label())
}

/// A number of seeds in words. Beyond a thousand the estimate of the spread is too coarse.
fn seeds(count: u32) -> String {
    if count > 1000 { "more than 1000 seeds".to_owned() } else { format!("about {count} seeds") }
}

/// A sentence about the seeds that would decide metrics whose observed difference would matter; none without
/// such metrics.
pub(crate) fn more_seeds(card: &Card) -> Option<String> {
    let mut needed: Vec<u32> = card.lines.iter().filter_map(|line| line.compared.needed).collect();
    needed.sort_unstable();
    let half = needed.get(needed.len().checked_sub(1)? / 2)?;
    Some(format!(
        "{} of the undecided metrics have a difference that would matter, and {} seeds do not show it: {} would \
         show half of them.",
        needed.len(),
        card.request.seeds,
        seeds(*half)
    ))
}

/// The number of runs, and of packets. A test bed does not count the packets of a qdisc of the kernel.
pub(crate) fn size(card: &Card) -> String {
    match (card.size, card.request.bed) {
        ((runs, _), true) => format!("{runs} runs on a test bed"),
        ((runs, packets), false) => format!("{runs} runs, {packets} packets"),
    }
}

/// The sentence about the level, and about what was not run.
pub(crate) fn certainty(card: &Card) -> String {
    let request = &card.request;
    let timing = match (request.bed, request.timing) {
        (true, _) => "The hosts are real, so a repetition gives other numbers.",
        (false, true) => "Each verdict was repeated with the timing of real machines.",
        (false, false) => "Nothing was repeated with the timing of real machines (--no-timing).",
    };
    format!(
        "Differences are paired by seed, those of times as ratios, and corrected together (Holm, {} %: half for {} comparisons \
         in cells, half for {} sums). {timing}",
        100.0 * LEVEL,
        card.lines.iter().filter(|line| line.cell.is_some()).count(),
        card.pooled.len(),
    )
}

/// The largest differences with a verdict, each cell once, in units of what matters.
fn largest(card: &Card, verdict: Verdict) -> Vec<&Line> {
    let mut lines: Vec<&Line> =
        card.lines.iter().filter(|line| line.compared.verdict == verdict && line.cell.is_some()).collect();
    lines.sort_by(|a, b| times_limit(b).total_cmp(&times_limit(a)));
    let mut seen = Vec::new();
    lines.retain(|line| {
        let new = !seen.contains(&line.cell);
        seen.push(line.cell);
        new
    });
    lines.truncate(LISTED);
    lines
}

/// A difference in units of what matters.
pub(crate) fn times_limit(line: &Line) -> f64 {
    line.compared
        .difference
        .as_ref()
        .map_or(0.0, |difference| (difference.after - difference.before).abs() / line.compared.limit)
}

/// A line in a sentence.
pub(crate) fn sentence(card: &Card, line: &Line) -> String {
    let place = line.cell.map_or_else(String::new, |cell| format!("{}: ", card.request.cells[cell].name));
    let values = match &line.compared.difference {
        Some(difference) => format!(
            "{} instead of {}{}",
            of_metric(&line.metric, difference.after),
            of_metric(&line.metric, difference.before),
            match (difference.ratio, difference.ci95) {
                (Some(ratio), Some(half)) if half > 0.0 => format!(" ({})", of_ratio(ratio)),
                (None, Some(half)) if half > 0.0 =>
                    format!(" (the difference is known to {})", of_metric(&line.metric, half)),
                _ => String::new(),
            }
        ),
        None => "not measured".to_owned(),
    };
    format!("{place}{} {values}, {}", line.metric, card.names[line.baseline + 1])
}

/// A ratio with its interval.
pub(crate) fn of_ratio(ratio: Ratio) -> String {
    let times = |number: f64| amount(number, "1");
    let interval = ratio
        .interval()
        .map_or_else(String::new, |(low, high)| format!(", 95 % from {} to {}", times(low), times(high)));
    format!("{} times{interval}", times(ratio.mean))
}

/// Two states in a sentence.
pub(crate) fn of_states(card: &Card, found: &Unstable) -> String {
    let (name, cell) = (&card.names[found.discipline], &card.request.cells[found.cell].name);
    match (&found.metric, &found.states) {
        (Some(metric), States::Clusters { low, high }) => format!(
            "{name} in {cell}: {metric} is about {} in {} runs and about {} in {}; a mean would describe none",
            of_metric(metric, low.1),
            low.0,
            of_metric(metric, high.1),
            high.0
        ),
        (_, States::Winners { runs: [first, second, neither], lead }) => format!(
            "{name} in {cell}: of two equal transfers the first wins {first} runs, the second {second}, and nobody {neither}; a \
             winner has {:.0} % more of their sum",
            100.0 * lead
        ),
        (None, States::Clusters { .. }) => format!("{name} in {cell}"),
    }
}

/// The scenario of a cell with the disciplines and seeds of a card, which reproduces it to the bit. A
/// discipline of the caller is a comment in it.
pub fn scenario_of(card: &Card, cell: &Cell) -> String {
    let request = &card.request;
    let mut specs: Vec<&String> = request.against.iter().collect();
    let mut comment = String::new();
    match &request.source {
        None => specs.insert(0, &request.candidate),
        Some(source) => {
            let _ = writeln!(comment, "# {} is not in this file. Its source:", request.candidate);
            source.lines().for_each(|line| comment.push_str(&format!("# | {line}\n")));
        }
    }
    let listed: Vec<String> = specs.iter().map(|spec| format!("{spec:?}")).collect();
    let mut draft = Draft::parse(&cell.scenario, "")
        .assign("evaluate", &format!("disciplines=[{}]", listed.join(", ")))
        .assign("evaluate", &format!("seeds={}", of_seeds(request)));
    if request.bed {
        draft = on_bed(draft);
    }
    comment + &draft.text()
}

/// The seeds as the value of a scenario: their number, or all of them if the first one is not 1.
fn of_seeds(request: &Request) -> String {
    match request.first_seed {
        1 => request.seeds.to_string(),
        _ => format!("{:?}", request.seeds().numbers()),
    }
}

/// The whole card as JSON.
pub fn json(card: &Card) -> Value {
    let request = &card.request;
    let matrix: Vec<Value> = card
        .questions()
        .into_iter()
        .flat_map(|question| (0..request.against.len()).map(move |baseline| (question, baseline)))
        .map(|(question, baseline)| {
            let counts = card.counts(question, baseline);
            json!({
                "question": question, "baseline": request.against[baseline], "verdict": counts.label(),
                "better": counts.better, "worse": counts.worse, "same": counts.same, "unknown": counts.unknown,
                "flips": counts.flips, "median_ratio": card.ratio(question, baseline),
            })
        })
        .collect();
    let lines: Vec<Value> = card.lines.iter().map(|line| of_line(card, line)).collect();
    let unstable: Vec<Value> = card
        .unstable
        .iter()
        .map(|found| {
            json!({
                "discipline": card.names[found.discipline], "cell": request.cells[found.cell].name,
                "metric": found.metric, "sentence": of_states(card, found),
            })
        })
        .collect();
    let cells: Vec<Value> = request
        .cells
        .iter()
        .zip(&card.outcomes)
        .map(|(cell, outcomes)| {
            let fingerprints: Vec<Vec<&str>> = outcomes
                .iter()
                .map(|runs| runs.iter().map(|outcome| outcome.fingerprint.as_str()).collect())
                .collect();
            json!({
                "cell": cell.name, "title": cell.title, "source": cell.source, "section": cell.section,
                "shape": cell.shape, "fingerprints": fingerprints,
            })
        })
        .collect();
    json!({
        "giveway_card": 1,
        "version": giveway_sources::SIMULATION,
        "candidate": request.candidate, "against": request.against, "seeds": request.seeds,
        "first_seed": request.first_seed, "short": request.short,
        "testbed": request.bed,
        "level": LEVEL, "runs": card.size.0, "packets": card.size.1,
        "matrix": matrix, "sums": card.pooled.iter().map(|one| sum_json(card, one)).collect::<Vec<_>>(),
        "lines": lines, "two_states": unstable, "cells": cells,
        "own_best": card.best.as_ref().map(|best| varied::best_json(card, best)),
        "sensitivity": card.sensitivity.as_ref().map(|found| varied::sensitivity_json(card, found)),
    })
}

fn sum_json(card: &Card, one: &Pooled) -> Value {
    json!({
        "baseline": card.request.against[one.baseline], "question": one.question, "metrics": one.metrics,
        "verdict": one.verdict, "gain": one.gain.map(|gain| gain.after), "ci95": one.gain.and_then(|gain| gain.ci95),
        "p_value": one.gain.and_then(|gain| gain.p_value()), "seeds_needed": one.needed,
    })
}

fn of_line(card: &Card, line: &Line) -> Value {
    let compared = &line.compared;
    let difference = compared.difference.as_ref();
    json!({
        "baseline": card.request.against[line.baseline],
        "cell": line.cell.map(|cell| &card.request.cells[cell].name),
        "question": line.question, "metric": line.metric,
        "better_is": if line.high { "high" } else { "low" },
        "verdict": compared.verdict, "verdict_with_real_timing": line.measured, "flips": line.flips(),
        "value": difference.map(|found| found.after), "baseline_value": difference.map(|found| found.before),
        "difference": difference.map(|found| found.after - found.before),
        "ci95": difference.and_then(|found| found.ci95),
        "ratio": difference.and_then(|found| found.ratio).map(|ratio| ratio.mean),
        "ratio_ci95": difference.and_then(|found| found.ratio?.interval()),
        "p_value": difference.and_then(|found| found.p_value()), "seeds_needed": compared.needed,
        "matters": compared.limit, "effect": compared.effect,
    })
}

/// The questions in the order of a card, with the sentence of each.
pub(crate) fn abouts(card: &Card) -> Vec<String> {
    card.questions()
        .into_iter()
        .map(|question: Question| format!("{}: {}", question.label(), question.about()))
        .collect()
}
