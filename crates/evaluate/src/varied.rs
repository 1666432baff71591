//! The own best and the sensitivity of a card as text, as JSON, and as parts of a page.

use std::fmt::Write as _;

use giveway_document::{Cell as Field, Part, Sheet, Verdicts};
use giveway_measure::{amount, of_metric};
use serde_json::{Value, json};

use crate::best::{Best, Kept, MARGIN, Setting};
use crate::card::{Card, Counts};
use crate::cells::JudgedMetric;
use crate::columns::table;
use crate::matrix::{self, LEGEND};
use crate::question::Question;
use crate::sensitivity::{LeftOut, Sensitivity, Shift};
use crate::verdict::{Changes, Compared};

/// Maximum number of changed parameters that the text lists.
const LISTED: usize = 5;

/// The own best and the sensitivity as text; empty if the card has none.
pub(crate) fn text(card: &Card) -> String {
    let mut text = String::new();
    if let Some(best) = &card.best {
        let _ =
            writeln!(text, "At their own best of {} settings, in the short form of the cells:", best.budget);
        text.push_str(&table(&both(card, best)));
        let settings = best.settings.iter().enumerate();
        settings.for_each(|(place, setting)| {
            let _ = writeln!(text, "  {}", of_setting(card, place, setting));
        });
        let _ = writeln!(text, "{}", of_best(best));
    }
    if let Some(found) = &card.sensitivity {
        let _ = writeln!(text, "{}", of_sensitivity(card, found));
        let mut rows: Vec<&Shift> = found.rows.iter().collect();
        let key = |row: &Shift| (row.changes.changed, row.better + row.worse);
        rows.sort_by_key(|row| std::cmp::Reverse(key(row)));
        for row in rows.iter().take(LISTED) {
            let _ = writeln!(text, "  {}", of_shift(card, row));
        }
        if rows.len() > LISTED {
            let rest = &rows[LISTED..];
            let most =
                |number: fn(&Shift) -> u32| rest.iter().map(|row| number(row)).max().unwrap_or_default();
            let _ = writeln!(
                text,
                "  The other {} rows have at most {} changed verdicts and {} changed metrics.",
                rest.len(),
                most(|row| row.changes.changed),
                most(|row| row.better + row.worse)
            );
        }
        if !found.left_out.is_empty() {
            let _ = writeln!(text, "  {}", not_varied(found));
        }
    }
    text
}

/// The verdicts at the defaults and at the own best, over all questions.
fn both(card: &Card, best: &Best) -> Vec<Vec<String>> {
    let head = card.names[1..].iter().map(|name| format!("against {name}"));
    let row = |title: &str, compared: &[Compared]| -> Vec<String> {
        let baselines = (0..card.request.against.len()).map(|baseline| {
            let mut counts = Counts::default();
            of_baseline(card, baseline, compared).for_each(|(_, _, one)| counts.add(one.verdict));
            counts.signs()
        });
        std::iter::once(title.to_owned()).chain(baselines).collect()
    };
    vec![
        std::iter::once(String::new()).chain(head).collect(),
        row("at the defaults", &best.at_defaults),
        row("at their own best", &best.at_best),
    ]
}

/// The comparisons with a baseline out of a list by baseline, cell and metric; each with its cell and metric.
fn of_baseline<'a>(
    card: &'a Card,
    baseline: usize,
    compared: &'a [Compared],
) -> impl Iterator<Item = (usize, &'a JudgedMetric, &'a Compared)> {
    let cells = card.request.cells.iter().enumerate();
    let measures: Vec<(usize, &JudgedMetric)> =
        cells.flat_map(|(place, cell)| cell.measures.iter().map(move |measure| (place, measure))).collect();
    let first = baseline * measures.len();
    measures.into_iter().zip(&compared[first..]).map(|((cell, measure), one)| (cell, measure, one))
}

/// The changes of a number of verdicts in words.
fn of_changes(changes: Changes, all: usize) -> String {
    let Changes { changed, opposite, decided, undecided } = changes;
    format!(
        "{changed} of {all} verdicts change, {opposite} of them to the opposite; {undecided} become undecided, and \
         {decided} cease to be"
    )
}

/// The own best in a few sentences.
fn of_best(best: &Best) -> String {
    format!(
        "From the defaults to the own best {}. A gain of 1 is the smallest difference that matters, in the mean over \
         all metrics.",
        of_changes(best.changes(), best.at_defaults.len())
    )
}

/// The own best of a discipline in a sentence.
fn of_setting(card: &Card, place: usize, setting: &Setting) -> String {
    let name = &card.names[place];
    match setting.kept {
        None => format!(
            "{name}: {}, a gain of {:.2} on the seeds of the search, and {:.2} on the seeds of the card",
            setting.spec, setting.tuned, setting.fresh
        ),
        Some(why) => format!("{name}: as it is; {}", of_kept(why)),
    }
}

/// The reason for a default in words.
fn of_kept(why: Kept) -> String {
    match why {
        Kept::Unknown => "the parameters of a discipline in code are not known".to_owned(),
        Kept::Fixed => "it has no numeric parameter".to_owned(),
        Kept::Unbeaten => format!("no setting has a gain of {MARGIN}"),
    }
}

/// The sensitivity in a sentence.
fn of_sensitivity(card: &Card, found: &Sensitivity) -> String {
    let name = &card.names[0];
    match found.mean_changed() {
        None if !found.known => {
            format!("Sensitivity: the parameters of {name} are not known, since it is a discipline in code.")
        }
        None => format!("Sensitivity: {name} has no numeric parameter that can change by 20 %."),
        Some(mean) => format!(
            "Sensitivity: a parameter of {name} that changes by 20 % changes {} of {} verdicts and {} of {} metrics in \
             the mean, in the short form of the cells ({} verdicts are undecided without a change).",
            amount(mean, "1"),
            found.verdicts,
            amount(found.mean_moved().unwrap_or_default(), "1"),
            found.metrics,
            found.undecided
        ),
    }
}

/// A changed parameter in a sentence.
fn of_shift(card: &Card, row: &Shift) -> String {
    let Changes { changed, opposite, decided, undecided } = row.changes;
    format!(
        "{}: {changed} verdicts change, {opposite} to the opposite, {undecided} become undecided, {decided} cease to be; \
         {} metrics are better and {} worse; {}",
        arrow(row),
        row.better,
        row.worse,
        most(card, row)
    )
}

fn arrow(row: &Shift) -> String {
    format!("{} {} -> {}", row.parameter, row.from, row.to)
}

/// The metric that moves most, in words.
fn most(card: &Card, row: &Shift) -> String {
    let Some(moved) = &row.most else { return "nothing moves".to_owned() };
    format!(
        "most in {}: {} {} instead of {} ({} by {} times what matters)",
        card.request.cells[moved.cell].name,
        moved.metric,
        of_metric(&moved.metric, moved.after),
        of_metric(&moved.metric, moved.before),
        if moved.gain > 0.0 { "better" } else { "worse" },
        amount(moved.gain.abs(), "1")
    )
}

/// The changes that were not possible, in a sentence.
fn not_varied(found: &Sensitivity) -> String {
    let one = |left: &LeftOut| format!("{} {} x{} ({})", left.parameter, left.from, left.wanted, left.why);
    format!("Not possible: {}.", found.left_out.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// The sections of a page about the own best and the sensitivity; none if the card has neither.
pub(crate) fn parts(card: &Card) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(best) = &card.best {
        parts.push(Part::Heading("At its own best".to_owned()));
        parts.push(Part::Text(format!(
            "Every discipline was tuned with the same budget of {} settings, in the short form of the cells and with \
             seeds that no card uses. A discipline without a better setting keeps its default. Then the best settings ran \
             with the seeds of the card, and were compared as the defaults are. {}",
            best.budget,
            of_best(best)
        )));
        parts.push(Part::Verdicts(matrix(card, best)));
        parts.push(Part::Table(settings(card, best)));
    }
    if let Some(found) = &card.sensitivity {
        parts.push(Part::Heading("Sensitivity".to_owned()));
        parts.push(Part::Text(of_sensitivity(card, found)));
        if !found.rows.is_empty() {
            parts.push(Part::Table(shifts(card, found)));
        }
        if !found.left_out.is_empty() {
            parts.push(Part::Text(not_varied(found)));
        }
    }
    parts
}

/// The verdicts at the own best by question and baseline; the mouse shows those at the defaults.
fn matrix(card: &Card, best: &Best) -> Verdicts {
    let cell = |baseline: usize, question: Question| {
        let counts = |compared: &[Compared]| {
            let mut counts = Counts::default();
            of_baseline(card, baseline, compared)
                .filter(|(_, measure, _)| measure.question == question)
                .for_each(|(_, _, one)| counts.add(one.verdict));
            counts
        };
        let (before, after) = (counts(&best.at_defaults), counts(&best.at_best));
        let about = format!(
            "{} against {} {}: {} at their own best, {} at their defaults.",
            card.names[0],
            card.names[baseline + 1],
            question.label(),
            after.signs(),
            before.signs()
        );
        matrix::cell(&after, about)
    };
    let mut rows = matrix::rows(card, cell);
    // The cost of a packet does not depend on a setting.
    rows.retain(|(name, _)| name != Question::Cost.label());
    Verdicts {
        id: "own-best".to_owned(),
        title: "Own best against own best".to_owned(),
        caption: format!(
            "{LEGEND} The short form of the cells; the mouse shows the numbers at the defaults, also in the short form."
        ),
        columns: matrix::against(card),
        rows,
    }
}

/// The own best of each discipline.
fn settings(card: &Card, best: &Best) -> Sheet {
    let row = |(place, setting): (usize, &Setting)| {
        vec![
            Field::plain(card.names[place].clone()),
            Field::plain(setting.spec.clone()),
            Field::plain(format!("{:.2}", setting.tuned)),
            Field::plain(format!("{:.2}", setting.fresh)),
            Field::plain(setting.tried.len().to_string()),
            Field::plain(setting.kept.map_or_else(|| "a better setting".to_owned(), of_kept)),
        ]
    };
    Sheet {
        caption: "Gains over the default in units of what matters, in the mean over all metrics, each at most 3. A smaller \
                  gain on the seeds of the card is luck of the search."
            .to_owned(),
        head: ["discipline", "own best", "gain, seeds of the search", "gain, seeds of the card", "settings tried", ""]
            .map(str::to_owned)
            .to_vec(),
        rows: best.settings.iter().enumerate().map(row).collect(),
    }
}

/// A row for each changed parameter.
fn shifts(card: &Card, found: &Sensitivity) -> Sheet {
    let row = |row: &Shift| {
        let Changes { changed, opposite, decided, undecided } = row.changes;
        let numbers = [changed, opposite, undecided, decided, row.better, row.worse];
        let numbers = numbers.map(|number| Field::plain(number.to_string()));
        let factor = if (row.factor - row.wanted).abs() < 0.005 {
            format!("x{}", row.wanted)
        } else {
            format!("x{:.2} of x{}", row.factor, row.wanted)
        };
        let front = [arrow(row), factor].map(Field::plain);
        front.into_iter().chain(numbers).chain([Field::plain(most(card, row))]).collect()
    };
    Sheet {
        caption: format!(
            "Of {} verdicts with all baselines in the short form. A verdict changes if it is decided before and after, and \
             differs. The last numbers are those of {} metrics in which the changed discipline is better or worse than the \
             unchanged one.",
            found.verdicts, found.metrics
        ),
        head: [
            "parameter",
            "factor",
            "change",
            "opposite",
            "become undecided",
            "cease to be",
            "metrics better",
            "metrics worse",
            "moves most",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: found.rows.iter().map(row).collect(),
    }
}

/// The own best as JSON.
pub(crate) fn best_json(card: &Card, best: &Best) -> Value {
    let settings: Vec<Value> = best
        .settings
        .iter()
        .enumerate()
        .map(|(place, setting)| {
            let tried: Vec<Value> =
                setting.tried.iter().map(|(spec, score)| json!({ "setting": spec, "gain": score })).collect();
            let discipline =
                place.checked_sub(1).map_or(&card.request.candidate, |place| &card.request.against[place]);
            json!({
                "discipline": discipline, "own_best": setting.spec, "is_default": setting.kept.is_some(),
                "why": setting.kept.map(of_kept), "gain_on_tuning_seeds": setting.tuned,
                "gain_on_card_seeds": setting.fresh, "tried": tried,
            })
        })
        .collect();
    let lines: Vec<Value> = (0..card.request.against.len())
        .flat_map(|baseline| {
            let (before, after) =
                (of_baseline(card, baseline, &best.at_defaults), of_baseline(card, baseline, &best.at_best));
            before.zip(after).map(move |((cell, measure, before), (_, _, after))| {
                json!({
                    "baseline": card.request.against[baseline], "cell": card.request.cells[cell].name,
                    "question": measure.question, "metric": measure.metric,
                    "at_defaults": compared_json(before), "at_best": compared_json(after),
                })
            })
        })
        .collect();
    json!({
        "budget": best.budget, "margin": MARGIN, "settings": settings, "changes": best.changes(), "lines": lines,
    })
}

fn compared_json(compared: &Compared) -> Value {
    let difference = compared.difference.as_ref();
    json!({
        "verdict": compared.verdict, "value": difference.map(|found| found.after),
        "baseline_value": difference.map(|found| found.before), "ci95": difference.and_then(|found| found.ci95),
        "matters": compared.limit,
    })
}

/// The sensitivity as JSON.
pub(crate) fn sensitivity_json(card: &Card, found: &Sensitivity) -> Value {
    let rows: Vec<Value> = found
        .rows
        .iter()
        .map(|row| {
            let most = row.most.as_ref().map(|moved| {
                json!({
                    "cell": card.request.cells[moved.cell].name, "metric": moved.metric, "before": moved.before,
                    "after": moved.after, "gain": moved.gain,
                })
            });
            json!({
                "parameter": row.parameter, "from": row.from, "to": row.to, "wanted": row.wanted,
                "factor": row.factor, "spec": row.spec, "changes": row.changes, "metrics_better": row.better,
                "metrics_worse": row.worse, "moves_most": most,
            })
        })
        .collect();
    let left_out: Vec<Value> = found
        .left_out
        .iter()
        .map(|left| {
            json!({ "parameter": left.parameter, "from": left.from, "wanted": left.wanted, "why": left.why })
        })
        .collect();
    json!({
        "parameters_known": found.known, "verdicts": found.verdicts, "undecided": found.undecided,
        "metrics": found.metrics, "mean_changed": found.mean_changed(), "mean_moved": found.mean_moved(), "rows": rows, "left_out": left_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::Request;
    use crate::cells::chosen;
    use crate::sensitivity::Moved;
    use crate::verdict::Verdict;

    /// A card with one cell, without runs.
    fn card() -> Card {
        let mut cells = chosen(&["rrul/tcp-8-down".to_owned()]).unwrap();
        cells[0].measures.truncate(2);
        let compared =
            |verdict| Compared { verdict, difference: None, limit: 1.0, effect: None, needed: None };
        let setting = |spec: &str, kept, gain: f64| Setting {
            spec: spec.to_owned(),
            kept,
            tuned: gain,
            fresh: gain / 2.0,
            tried: vec![(spec.to_owned(), gain)],
        };
        let shift = |to: &str, factor, changes, most| Shift {
            parameter: "limit".to_owned(),
            from: "10p".to_owned(),
            to: to.to_owned(),
            wanted: 0.8,
            factor,
            spec: format!("fifo limit {to}"),
            changes,
            better: changes.changed,
            worse: 0,
            most,
        };
        let moved = Moved {
            cell: 0,
            metric: "src.ping.delay_p95_s".to_owned(),
            before: 0.02,
            after: 0.015,
            gain: 2.5,
        };
        let changes = Changes { changed: 3, opposite: 1, decided: 2, undecided: 4 };
        Card {
            request: Request {
                candidate: "fifo limit 10p".to_owned(),
                against: vec!["codel".to_owned(), "prio".to_owned()],
                seeds: 2,
                first_seed: 1,
                cells,
                short: true,
                timing: false,
                tune: 6,
                sensitivity: true,
                jobs: 1,
                bed: false,
                source: None,
            },
            names: ["fifo", "codel", "prio"].map(str::to_owned).to_vec(),
            lines: Vec::new(),
            pooled: Vec::new(),
            unstable: Vec::new(),
            outcomes: Vec::new(),
            size: (0, 0),
            best: Some(Best {
                budget: 6,
                settings: vec![
                    setting("fifo limit 33p", None, 0.5),
                    setting("codel", Some(Kept::Unbeaten), 0.0),
                    setting("prio", Some(Kept::Fixed), 0.0),
                ],
                at_defaults: [Verdict::Worse, Verdict::Worse, Verdict::Same, Verdict::Unknown]
                    .map(compared)
                    .to_vec(),
                at_best: [Verdict::Better, Verdict::Same, Verdict::Same, Verdict::Better]
                    .map(compared)
                    .to_vec(),
            }),
            sensitivity: Some(Sensitivity {
                rows: vec![
                    shift("9p", 0.9, Changes::default(), None),
                    shift("8p", 0.8, changes, Some(moved)),
                ],
                left_out: vec![LeftOut {
                    parameter: "limit".to_owned(),
                    from: "10p".to_owned(),
                    wanted: 1.2,
                    why: "the discipline refuses it",
                }],
                verdicts: 4,
                undecided: 1,
                metrics: 2,
                known: true,
            }),
        }
    }

    #[test]
    fn both_parts_as_text() {
        insta::assert_snapshot!(text(&card()));
    }

    #[test]
    fn a_page_has_both_parts_and_json_everything() {
        let card = card();
        let titles: Vec<String> = parts(&card)
            .into_iter()
            .filter_map(|part| match part {
                Part::Heading(title) => Some(title),
                _ => None,
            })
            .collect();
        assert_eq!(titles, ["At its own best", "Sensitivity"]);
        let rows = shifts(&card, card.sensitivity.as_ref().unwrap()).rows;
        let factors: Vec<&str> = rows.iter().map(|row| row[1].text.as_str()).collect();
        assert_eq!(factors, ["x0.90 of x0.8", "x0.8"]);
        let best = best_json(&card, card.best.as_ref().unwrap());
        assert_eq!(best["changes"]["changed"], 2);
        assert_eq!(best["lines"][3]["baseline"], "prio");
        assert_eq!(best["lines"][3]["at_best"]["verdict"], "better");
        assert_eq!(best["settings"][0]["tried"][0]["setting"], "fifo limit 33p");
        let none = Sensitivity { known: false, ..Sensitivity::default() };
        assert!(of_sensitivity(&card, &none).contains("a discipline in code"));
        let none = Sensitivity { known: true, ..Sensitivity::default() };
        assert!(of_sensitivity(&card, &none).contains("no numeric parameter"));
    }
}
