//! The findings of a switch: waits by class, the load that is carried, and the outputs' lost slots.

use super::ranking::{Ranking, certainty, list, value};
use crate::metrics::label;
use crate::names::short_names;
use crate::table::{DisciplineRow, Table};

/// The waits that are ranked, in the order of the sentences.
const WAITS: [&str; 4] =
    ["short_wait_mean_slots", "short_wait_p99_slots", "long_wait_mean_slots", "long_wait_p99_slots"];
/// The share of the offered load that an arbiter may miss and still carry all of it: the cells that are in
/// the switch at the end of a run.
const CARRIED: f64 = 0.99;
/// The smallest share of slots that is named, which the tables show as 0.1 %.
const SHOWN: f64 = 0.000_5;

/// True if the metrics of the table are of a switch.
pub(super) fn is_crossbar(table: &Table) -> bool {
    table.rows.iter().any(|row| row.mean("throughput").is_some())
}

/// The findings of a table of arbiters.
pub(super) fn findings(table: &Table) -> Vec<String> {
    let specs: Vec<&str> = table.rows.iter().map(|row| row.qdisc.as_str()).collect();
    let names = short_names(&specs);
    let named: Vec<(&DisciplineRow, &str)> =
        table.rows.iter().zip(names.iter().map(String::as_str)).collect();
    let mut sentences: Vec<String> = growing(&named).into_iter().collect();
    sentences.extend(WAITS.iter().filter_map(|metric| Some(Ranking::new(table, metric)?.sentence(metric))));
    sentences.extend(carried(&named));
    sentences.extend(blocked(&named));
    sentences.push(certainty(table));
    sentences
}

/// A warning about arbiters whose backlog grows until the end.
fn growing(rows: &[(&DisciplineRow, &str)]) -> Option<String> {
    let unstable = rows.iter().filter_map(|(row, name)| {
        let seeds = &row.metric("stable")?.per_seed;
        let grown = seeds.iter().filter(|stable| **stable == Some(0.0)).count();
        (grown > 0).then(|| format!("{name} (in {grown} of {} seeds)", seeds.len()))
    });
    let unstable: Vec<String> = unstable.collect();
    let unstable: Vec<&str> = unstable.iter().map(String::as_str).collect();
    (!unstable.is_empty()).then(|| {
        format!(
            "The backlog grows until the end with {}. Such waits depend on the length of the run: do not compare them.",
            list(&unstable)
        )
    })
}

/// The arbiters that carry the offered load, and those that do not.
fn carried(rows: &[(&DisciplineRow, &str)]) -> Option<String> {
    let load = |(row, _): &(&DisciplineRow, &str)| Some((row.mean("offered")?, row.mean("throughput")?));
    let (row, first) = rows.iter().find(|row| load(row).is_some())?;
    let offered = value(row, "offered");
    let short = rows.iter().filter_map(|row| {
        let (offered, crossed) = load(row)?;
        (crossed < CARRIED * offered).then(|| format!("{} with {}", value(row.0, "throughput"), row.1))
    });
    let short: Vec<String> = short.collect();
    let short: Vec<&str> = short.iter().map(String::as_str).collect();
    Some(match (short.as_slice(), rows.len()) {
        ([], 1) => format!("{first} carries the offered load of {offered} cells per slot and port."),
        ([], _) => format!("Every arbiter carries the offered load of {offered} cells per slot and port."),
        (short, _) => {
            format!("Of {offered} cells per slot and port that are offered, fewer cross: {}.", list(short))
        }
    })
}

/// The cost of interruptions.
fn blocked(rows: &[(&DisciplineRow, &str)]) -> Option<String> {
    let cost = rows.iter().filter_map(|(row, name)| {
        let share = row.mean("output_blocked")?;
        (share >= SHOWN).then(|| format!("{} with {name}", value(row, "output_blocked")))
    });
    let cost: Vec<String> = cost.collect();
    let cost: Vec<&str> = cost.iter().map(String::as_str).collect();
    (!cost.is_empty()).then(|| {
        format!(
            "Cost: the {} is {}: the output is idle, because its input sends a short packet to another output.",
            label("output_blocked"),
            list(&cost)
        )
    })
}
