//! The effects of a setup: each time and each loss that was measured, with the first discipline and with the
//! setup.
//!
//! # Verdicts
//! A gain counts if chance alone would show any among all differences in less than 5 % of comparisons (Holm's
//! correction). A loss counts as soon as it is outside its own interval. Smaller differences than these are
//! none: 2 % of the value; a millisecond; 5 ms of the delay of a packet, from which a queue counts; or one
//! packet of a call in a thousand. A call notices no delay of a few milliseconds: its packets are 10 to 20 ms
//! apart (ITU-T G.107: the rating falls by 0.024 points of 100 for each millisecond).
//!
//! A shaper takes a share of the rate, and a transfer that fills the link takes longer by that share. A short
//! queue runs empty now and then, which a full buffer never does: up to as much again. Such a loss is the
//! price of the shaper: it is shown, and does not disqualify. Any larger loss does. Four homes of
//! `examples/library` measure this price in Linux: with a shaper at 95 % of the rate an upload took 7 to 11 %
//! longer.

use giveway_measure::label;
use giveway_workload::Direction;
use serde_json::{Value, json};

use super::super::situation::SHORT;
use super::super::tables::{Change, FEWEST, SMALL_PACKETS, Tables, UNNOTICED, WORTH, number_behind, text};
use crate::mode::word;

/// The metrics of effects, in their order.
pub(super) const METRICS: [&str; 12] = [
    "page_load_p50_s",
    "page_load_p95_s",
    "page_load_p99_s",
    "fct_p50_s",
    "fct_p95_s",
    "fct_p99_s",
    "fct_le3MB_p50_s",
    "fct_gt3MB_p50_s",
    DELAY_OF_CALLS,
    LOSS_OF_CALLS,
    SMALL_PACKETS,
    UNFINISHED,
];
const DELAY_OF_CALLS: &str = "voice_delay_p99_s";
const LOSS_OF_CALLS: &str = "voice_loss";
const UNFINISHED: &str = "flows_incomplete";
/// The classes of transfers by size, which repeat the whole if one class has all transfers.
const CLASSES: [&str; 2] = ["fct_le3MB_p50_s", "fct_gt3MB_p50_s"];
const ALL_TRANSFERS: &str = "fct_p50_s";
/// A difference in the loss of calls that is none.
const INAUDIBLE: f64 = 0.001;

/// The verdict on a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Better, and that is certain.
    Better,
    /// Worse by no more than the shaper's share of the rate.
    Price,
    /// Worse, and that is certain.
    Worse,
    /// No measurable difference.
    Unclear,
}

/// One time or share in one direction, with the first discipline and with the setup.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The direction.
    pub direction: Direction,
    /// The metric.
    pub metric: &'static str,
    /// Its mean with the first discipline.
    pub before: f64,
    /// Its mean with the setup.
    pub after: f64,
    /// The difference in words, with its interval.
    pub difference: String,
    /// The verdict on the difference.
    pub verdict: Verdict,
    /// True if enough values are behind it to be a reason for a change.
    pub is_reason: bool,
}

impl Effect {
    /// The metric and the direction in words.
    pub fn name(&self) -> String {
        format!("{} {}", label(self.metric), word(self.direction))
    }

    /// A value in words, with its unit.
    pub fn text(&self, value: f64) -> String {
        text(self.metric, value)
    }

    /// The effect as a clause: "the page load time downstream is 1.2 s instead of 0.7 s".
    pub fn clause(&self) -> String {
        format!("the {} is {} instead of {}", self.name(), self.text(self.after), self.text(self.before))
    }

    /// The share of the value that is saved, 0 to 1; negative for a loss.
    pub fn gain(&self) -> f64 {
        (self.before - self.after) / self.before
    }

    /// The effect for programs, in the unit of the metric.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "metric": self.metric,
            "direction": word(self.direction),
            "before": self.before,
            "after": self.after,
            "difference": self.difference,
            "verdict": self.certainty(),
        })
    }

    /// The answer of the column "certain".
    pub fn certainty(&self) -> &'static str {
        match self.verdict {
            Verdict::Better => "better",
            Verdict::Price => "price of the shaper",
            Verdict::Worse => "worse",
            Verdict::Unclear => "not certain",
        }
    }
}

/// The effects of the setup of a row, in both directions. `shaped` is the rate of the shaper as a share of
/// the line's.
pub(super) fn effects(tables: &Tables, setup: &str, shaped: f64) -> Vec<Effect> {
    let mut effects = Vec::new();
    for direction in [Direction::Up, Direction::Down] {
        for metric in METRICS {
            if repeats(tables, direction, metric) {
                continue;
            }
            let metric = tables.carried(direction, metric);
            let changes = tables.changes(direction, metric);
            let Some(change) = changes.into_iter().find(|change| change.row.qdisc == setup) else { continue };
            let is_absent = metric == UNFINISHED && change.before == 0.0 && change.after == 0.0;
            if is_absent {
                continue;
            }
            let behind = number_behind(tables.baseline(direction), metric);
            effects.push(Effect {
                direction,
                metric,
                before: change.before,
                after: change.after,
                difference: match change.before == change.after {
                    true => "the same".to_owned(),
                    false => change.difference(metric),
                },
                verdict: verdict(&change, metric, shaped),
                is_reason: behind.is_none_or(|count| count >= FEWEST),
            });
        }
    }
    effects
}

/// True for a class of transfers that has all transfers of the direction.
fn repeats(tables: &Tables, direction: Direction, metric: &str) -> bool {
    let behind = |metric| number_behind(tables.baseline(direction), metric);
    CLASSES.contains(&metric) && behind(metric).is_some_and(|count| Some(count) == behind(ALL_TRANSFERS))
}

fn verdict(change: &Change<'_>, metric: &str, shaped: f64) -> Verdict {
    let loss = change.after - change.before;
    let unnoticed = match metric {
        LOSS_OF_CALLS => INAUDIBLE,
        UNFINISHED => 0.0,
        DELAY_OF_CALLS | SMALL_PACKETS => SHORT,
        _ => UNNOTICED,
    };
    if loss.abs() <= unnoticed {
        return Verdict::Unclear;
    }
    if change.is_better() {
        return Verdict::Better;
    }
    if !change.is_worse() {
        return Verdict::Unclear;
    }
    let is_time = metric.ends_with("_s");
    if is_time && change.after <= change.before * (1.0 + WORTH) / (shaped * shaped) {
        Verdict::Price
    } else {
        Verdict::Worse
    }
}
