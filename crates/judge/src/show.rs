//! A judgement as text, and as JSON.

use std::fmt::Write as _;

use giveway_evaluate::Question;
use serde_json::{Map, Value, json};

use crate::gain::Score;
use crate::judge::Judgement;

/// The judgement as JSON. It has no number of a single held-out cell, so a program that searches may read it.
pub fn json(judgement: &Judgement) -> Value {
    let rejected = &judgement.rejected;
    let cells: Map<String, Value> = judgement
        .cells
        .iter()
        .map(|(name, gains)| {
            let gains = gains.iter().map(|(question, gain)| (key(*question), json!(rounded(*gain))));
            (name.clone(), Value::Object(gains.collect()))
        })
        .collect();
    json!({
        "candidate": judgement.candidate,
        "against": judgement.baseline,
        "accepted": rejected.is_none(),
        "rejected": rejected,
        "score": judgement.score().map(rounded),
        "public": judgement.public.as_ref().map(of_score),
        "held_out": judgement.held_out.as_ref().map(of_score),
        "cells": cells,
        "fuel_per_packet": judgement.fuel.map(rounded),
        "runs": judgement.size.0,
        "packets": judgement.size.1,
    })
}

impl Judgement {
    /// The score of a candidate that was not rejected, in the held-out cells.
    pub fn score(&self) -> Option<f64> {
        self.held_out.as_ref().filter(|_| self.rejected.is_none()).map(|score| score.total)
    }
}

fn of_score(score: &Score) -> Value {
    let questions: Map<String, Value> =
        score.questions.iter().map(|(question, gain, _)| (key(*question), json!(rounded(*gain)))).collect();
    json!({ "score": rounded(score.total), "questions": questions })
}

fn key(question: Question) -> String {
    serde_json::to_value(question)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Four decimals.
fn rounded(number: f64) -> f64 {
    // Without the sign of a zero.
    (number * 1e4).round() / 1e4 + 0.0
}

/// The judgement as text.
pub fn text(judgement: &Judgement) -> String {
    let mut text = String::new();
    let Judgement { candidate, baseline, rejected, size: (runs, packets), .. } = judgement;
    match rejected {
        Some(rejected) => {
            let place = match (&rejected.cell, rejected.seed) {
                (Some(cell), Some(seed)) => format!(" ({cell}, seed {seed})"),
                _ => String::new(),
            };
            let _ = writeln!(text, "{candidate} is rejected: {}{place}", rejected.sentence);
        }
        None => {
            let score = judgement.score().unwrap_or_default();
            let _ = writeln!(text, "{candidate} is accepted, with a score of {score:+.3} against {baseline}");
        }
    }
    if let Some(public) = &judgement.public {
        let _ = writeln!(text, "  {:<26} {:>8} {:>9}", "", "public", "held out");
        for (question, gain, _) in &public.questions {
            let held = judgement.held_out.as_ref().and_then(|score| {
                score.questions.iter().find(|(other, ..)| other == question).map(|(_, gain, _)| *gain)
            });
            let held = held.map_or_else(String::new, |gain| format!("{gain:+.3}"));
            let _ = writeln!(text, "  {:<26} {gain:>+8.3} {held:>9}", question.label());
        }
        let held =
            judgement.held_out.as_ref().map_or_else(String::new, |score| format!("{:+.3}", score.total));
        let _ = writeln!(text, "  {:<26} {:>+8.3} {held:>9}", "all", public.total);
        let _ = writeln!(
            text,
            "Gains are in units of what matters in a metric, from -3 to 3; 1 is the smallest that matters."
        );
    }
    if let Some(fuel) = judgement.fuel {
        let _ = writeln!(text, "Fuel: {fuel:.0} instructions for each packet.");
    }
    let _ = writeln!(text, "{runs} runs, {packets} packets.");
    text
}
