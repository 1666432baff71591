//! Several cards in one table: a row for each discipline, a column for each question.

use std::fmt::Write as _;

use giveway_document::{Document, Part, Verdicts};
use serde_json::{Value, json};

use crate::card::Card;
use crate::columns::aligned;
use crate::matrix::{self, LEGEND};
use crate::question::Question;
use crate::show::certainty;

/// The baselines of cards, in order of their first use.
fn baselines(cards: &[Card]) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for spec in cards.iter().flat_map(|card| &card.request.against) {
        if !found.contains(&spec.as_str()) {
            found.push(spec);
        }
    }
    found
}

/// The questions of cards.
fn questions(cards: &[Card]) -> Vec<Question> {
    Question::ALL
        .into_iter()
        .filter(|question| cards.iter().any(|card| card.questions().contains(question)))
        .collect()
}

/// The place of a baseline on a card; `None` for the discipline itself.
fn place(card: &Card, baseline: &str) -> Option<usize> {
    card.request.against.iter().position(|spec| spec == baseline)
}

/// Cards as text: a table for each baseline.
pub fn overview(cards: &[Card]) -> String {
    let mut text = String::new();
    let questions = questions(cards);
    for baseline in baselines(cards) {
        let _ = writeln!(text, "Against {baseline}");
        let head = std::iter::once(String::new())
            .chain(questions.iter().map(|question| question.label().to_owned()))
            .collect();
        let mut rows: Vec<Vec<String>> = vec![head];
        for card in cards {
            let Some(place) = place(card, baseline) else { continue };
            let counts = questions.iter().map(|question| card.counts(*question, place).in_one_line());
            rows.push(std::iter::once(card.request.candidate.clone()).chain(counts).collect());
        }
        text.push_str(&aligned(&rows));
    }
    let _ =
        writeln!(text, "+ better, - worse, = no difference that matters, ? undecided: numbers of metrics.");
    text
}

/// Cards as JSON: the verdicts of each by question and baseline.
pub fn overview_json(cards: &[Card]) -> Value {
    let questions = questions(cards);
    let mut rows = Vec::new();
    for card in cards {
        for (place, baseline) in card.request.against.iter().enumerate() {
            for question in &questions {
                let counts = card.counts(*question, place);
                rows.push(json!({
                    "discipline": card.request.candidate,
                    "baseline": baseline,
                    "question": question,
                    "verdict": counts.label(),
                    "counts": counts,
                    "ratio": card.ratio(*question, place),
                }));
            }
        }
    }
    Value::Array(rows)
}

/// Cards as a page: a matrix for each baseline.
pub fn overview_page(cards: &[Card]) -> Document {
    let questions = questions(cards);
    let mut parts = Vec::new();
    for (number, baseline) in baselines(cards).into_iter().enumerate() {
        let shown: Vec<(&Card, usize)> =
            cards.iter().filter_map(|card| Some((card, place(card, baseline)?))).collect();
        let row = |(card, place): &(&Card, usize)| {
            let cell = |question: &Question| {
                let about = format!("{} against {baseline}: {}", card.request.candidate, question.label());
                Some(matrix::cell(&card.counts(*question, *place), about))
            };
            (card.request.candidate.clone(), questions.iter().map(cell).collect())
        };
        parts.push(Part::Verdicts(Verdicts {
            id: format!("against-{number}"),
            title: format!("Against {baseline}"),
            caption: format!(
                "{LEGEND} Blue is better, orange worse, grey no difference, and a dashed border undecided."
            ),
            columns: questions.iter().map(|question| question.label().to_owned()).collect(),
            rows: shown.iter().map(row).collect(),
        }));
    }
    parts.extend(cards.first().map(|card| Part::Text(certainty(card))));
    let runs: u64 = cards.iter().map(|card| card.size.0).sum();
    Document {
        title: "Cards of disciplines".to_owned(),
        subtitle: format!(
            "{} disciplines, {runs} runs; Giveway {}",
            cards.len(),
            giveway_sources::SIMULATION
        ),
        parts,
    }
}
