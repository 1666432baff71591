//! The times and the seeds of a scenario.

use std::collections::BTreeSet;

use giveway_qdisc::Span;

use crate::diagnostic::Diagnostic;
use crate::fields::{Reading, mistyped};
use crate::file::{Length, ScenarioFile, Short, Top};
use crate::tree::{Node, Table, Value};

/// The duration of a run, and its first and last parts, which are not measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The duration of a run.
    pub duration: Span,
    /// The first part, which is not measured.
    pub warmup: Span,
    /// The last part, which is not measured.
    pub cooldown: Span,
}

/// The times and the number of seeds of a quick check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortRun {
    /// The times of a run.
    pub times: Times,
    /// The number of seeds.
    pub seeds: u32,
}

/// The times of a scenario, for a full run and for a quick check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// The times of a full run.
    pub times: Times,
    /// The times and the number of seeds of a quick check.
    pub short: ShortRun,
}

/// Reads the times of a scenario and its `[short]`; `slot` is the length of a slot, on a switch. Each part is
/// `None` if it is wrong.
pub(crate) fn read(
    reading: &mut Reading,
    file: &ScenarioFile<'_>,
    slot: Option<Span>,
) -> (Option<Times>, Option<ShortRun>) {
    let times = times(reading, file.root, file.top, slot);
    (times, short(reading, file.root, times, slot))
}

/// Maximum number of seeds in a scenario.
pub(crate) const MAX_SEEDS: u32 = 100_000;

/// Reads the seeds; the default is seed 1. `None` if they are wrong.
pub(crate) fn seeds(reading: &mut Reading, root: &Table) -> Option<Vec<u64>> {
    const MAX: i64 = MAX_SEEDS as i64;
    let Some(node) = root.get("seeds") else { return Some(vec![1]) };
    let mut wrong = |place: &Node, message: &str| {
        let wrong = Diagnostic::error(place.span.clone(), message);
        reading.report(wrong.help("write a count, as in seeds = 3, or a list, as in seeds = [1, 7, 42]"));
        None
    };
    match &node.value {
        Value::Integer(count @ 1..=MAX) => Some((1..=*count as u64).collect()),
        Value::Integer(0) => wrong(node, "seeds: at least one is needed"),
        Value::Integer(_) => wrong(node, "seeds: expected a count from 1 to 100000"),
        Value::List(items) if items.is_empty() => wrong(node, "seeds: at least one is needed"),
        Value::List(items) if items.len() > MAX_SEEDS as usize => {
            wrong(node, "seeds: expected at most 100000 seeds")
        }
        Value::List(items) => {
            let mut seeds = Vec::with_capacity(items.len());
            let mut known = BTreeSet::new();
            for item in items {
                match item.value {
                    Value::Integer(seed) if seed >= 0 && !known.insert(seed) => {
                        return wrong(item, "seeds: this seed is listed twice");
                    }
                    Value::Integer(seed) if seed >= 0 => seeds.push(seed as u64),
                    _ => return wrong(item, "seeds: expected non-negative whole numbers"),
                }
            }
            Some(seeds)
        }
        _ => wrong(node, "seeds: expected a count or a list"),
    }
}

/// Reads the duration, the warm-up and the cooldown.
fn times(reading: &mut Reading, root: &Table, top: &Top, slot: Option<Span>) -> Option<Times> {
    if !root.has("duration") {
        if mistyped(root, "duration") {
            return None;
        }
        let wrong = Diagnostic::error(reading.top(), "a scenario needs \"duration\"");
        reading.report(wrong.help("write for example duration = \"60 s\" at the top"));
        return None;
    }
    let duration = length(reading, root, "duration", top.duration?, slot)?;
    if duration.is_zero() {
        reading.report(Diagnostic::error(root.place("duration"), "duration: must be longer than 0"));
        return None;
    }
    if duration > LONGEST {
        let message = format!("duration: {duration} exceeds the range of the simulation clock");
        let wrong = Diagnostic::error(root.place("duration"), message);
        reading.report(wrong.help("write at most \"4800h\""));
        return None;
    }
    let warmup = optional(reading, root, "warmup", top.warmup, slot)?;
    if warmup >= duration {
        let message = format!("warmup: {warmup} leaves nothing to measure of a duration of {duration}");
        reading.report(Diagnostic::error(root.place("warmup"), message));
        return None;
    }
    let cooldown = optional(reading, root, "cooldown", top.cooldown, slot)?;
    if cooldown >= duration - warmup {
        let message = format!(
            "cooldown: {cooldown} leaves nothing to measure of a duration of {duration} with a warm-up of {warmup}"
        );
        reading.report(Diagnostic::error(root.place("cooldown"), message));
        return None;
    }
    Some(Times { duration, warmup, cooldown })
}

/// Refuses a cooldown on a backend that measures to the end of the run.
pub(crate) fn refuse_cooldown(reading: &mut Reading, file: &ScenarioFile<'_>, backend: &str) {
    let none = match file.top.cooldown {
        None | Some(Length::Slots(0)) => true,
        Some(Length::Slots(_)) => false,
        Some(Length::Time(span)) => span.is_zero(),
    };
    if none {
        return;
    }
    let message = format!("cooldown: {backend} is measured until the end of the run");
    reading.report(Diagnostic::error(file.root.place("cooldown"), message).help("leave it out"));
}

/// The time of an optional key, zero by default. `None` if its value is wrong.
fn optional(
    reading: &mut Reading,
    table: &Table,
    key: &str,
    written: Option<Length>,
    slot: Option<Span>,
) -> Option<Span> {
    match written {
        Some(written) => length(reading, table, key, written, slot),
        // The value is not a length, which was reported.
        None if table.has(key) => None,
        None => Some(Span::ZERO),
    }
}

/// Converts a length to a time; reports an error if that is not possible.
fn length(
    reading: &mut Reading,
    table: &Table,
    key: &str,
    length: Length,
    slot: Option<Span>,
) -> Option<Span> {
    let span = length.span(slot);
    // An invalid length of a slot was reported before.
    if span.is_none() && !reading.failed() {
        let wrong = Diagnostic::error(
            table.place(key),
            format!("{key}: only a switch has slots, and the clock limits their number"),
        );
        reading.report(wrong.help("write a time such as \"60 s\", or backend = \"switch\" at the top"));
    }
    span
}

/// The longest run. The clock counts 213 days, and packets are still in flight at the end of a run.
const LONGEST: Span = Span::s(4800 * 3600);

/// The default duration of a quick check.
const SHORT: Span = Span::s(5);

/// The default duration of a quick check on a switch, in slots.
const SHORT_SLOTS: u64 = 50_000;

/// Reads `[short]`, with defaults that depend on the times of the full run.
fn short(reading: &mut Reading, root: &Table, times: Option<Times>, slot: Option<Span>) -> Option<ShortRun> {
    let (table, short) = match reading.section::<Short>(root, "short", "duration = \"5 s\"") {
        Some((table, short)) => (Some(table), short),
        None => (None, Short::default()),
    };
    let full = times?;
    let usual = slot.map_or(Length::Time(SHORT), |_| Length::Slots(SHORT_SLOTS));
    let place = table.unwrap_or(root);
    let duration =
        length(reading, place, "duration", short.duration.unwrap_or(usual), slot)?.min(full.duration);
    let warmup = match short.warmup {
        Some(warmup) => length(reading, place, "warmup", warmup, slot)?,
        None => full.warmup.scale(duration.as_ps(), full.duration.as_ps()),
    };
    let cooldown = match short.cooldown {
        Some(cooldown) => length(reading, place, "cooldown", cooldown, slot)?,
        None => full.cooldown.scale(duration.as_ps(), full.duration.as_ps()),
    };
    if duration.is_zero() || warmup + cooldown >= duration {
        let place = table.map_or_else(|| reading.end(), |table| table.place("warmup"));
        let parts = if cooldown.is_zero() {
            format!("a warm-up of {warmup} leaves")
        } else {
            format!("a warm-up of {warmup} and a cooldown of {cooldown} leave")
        };
        let message = format!("[short]: {parts} nothing to measure of a duration of {duration}");
        reading.report(Diagnostic::error(place, message));
        return None;
    }
    let seeds = short.seeds.unwrap_or(1).max(1);
    if seeds > MAX_SEEDS {
        let place = table.map_or_else(|| reading.end(), |table| table.place("seeds"));
        let wrong = Diagnostic::error(place, format!("seeds: {seeds} is too many"));
        reading.report(wrong.help(format!("write at most {MAX_SEEDS}")));
        return None;
    }
    Some(ShortRun { times: Times { duration, warmup, cooldown }, seeds })
}
