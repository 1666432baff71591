//! The difference between two folders of one discipline each, in sentences: two recordings of `giveway live`,
//! before a change and after it.
//!
//! Each recording has its own traffic, so there is no interval, and the sentences say how alike the load was.

use giveway_measure::figures::NumberStyle;
use giveway_measure::{DisciplineRow, label};

use super::read::Folder;

/// The metrics that are compared, in their order.
const METRICS: [&str; 9] = [
    "small_sojourn_p50_s",
    "small_sojourn_p99_s",
    "sojourn_p99_s",
    "voice_delay_p99_s",
    "voice_loss",
    "page_load_p50_s",
    "fct_p50_s",
    "fct_p95_s",
    "drops",
];
/// The load, which says whether the others compare.
const LOAD: &str = "goodput_bps";
/// Smaller changes, as a share of the value, are none.
const SAME: f64 = 0.02;
/// A larger change of the load, as a share, is another load.
const OTHER_LOAD: f64 = 0.2;

/// Sentences on the ports that both folders measure; empty unless each folder has one discipline.
pub(super) fn sentences(before: &Folder, after: &Folder) -> Vec<String> {
    let ([_], [_]) = (&before.table.rows[..], &after.table.rows[..]) else { return Vec::new() };
    let ports = &after.manifest.measured.ports;
    let common = ports.iter().filter(|port| before.manifest.measured.ports.contains(port));
    common.flat_map(|port| of_port(port, before, after)).collect()
}

fn of_port(port: &str, before: &Folder, after: &Folder) -> Vec<String> {
    // The metrics of a single port have its name only in folders with several.
    let row = |folder: &Folder| match folder.manifest.measured.ports.len() {
        1 => folder.table.rows.first().cloned(),
        _ => folder.table.at(port).rows.into_iter().next(),
    };
    let (then, now) = (row(before), row(after));
    let (Some(then), Some(now)) = (then, now) else { return Vec::new() };
    let title = after.manifest.measured.title(port);
    let changes = METRICS.iter().filter_map(|metric| Some((*metric, values(metric, &then, &now)?)));
    let (same, others): (Vec<_>, Vec<_>) =
        changes.partition(|(_, [then, now])| (now - then).abs() <= SAME * then.abs());
    let mut sentences: Vec<String> =
        others.iter().map(|(metric, values)| format!("{title}: {}.", clause(metric, *values))).collect();
    if !same.is_empty() {
        let same: Vec<String> = same.iter().map(|(metric, _)| label(metric)).collect();
        sentences.push(format!("{title}: these changed by less than 2 %: {}.", same.join(", ")));
    }
    if let Some([then, now]) = values(LOAD, &then, &now) {
        let load = clause(LOAD, [then, now]);
        let alike = (now - then).abs() <= OTHER_LOAD * then.abs();
        sentences.push(match alike {
            true => format!("{title}: {load}, so the load was alike."),
            false => format!("{title}: {load}. The load was another one, so waits do not compare: record both while the line is full."),
        });
    }
    sentences
}

/// The means of a metric in both rows.
fn values(metric: &str, then: &DisciplineRow, now: &DisciplineRow) -> Option<[f64; 2]> {
    Some([then.mean(metric)?, now.mean(metric)?])
}

fn clause(metric: &str, [then, now]: [f64; 2]) -> String {
    let style = NumberStyle::of(metric);
    format!("the {} is {} instead of {}", label(metric), style.text(now, false), style.text(then, false))
}
