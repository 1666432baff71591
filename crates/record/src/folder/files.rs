//! The files of a run folder: their names, and the functions that fill the tables of a trial.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use giveway_measure::{Layout, Record};

use crate::columns::{self, tables};

/// The tables of a trial, each with the function that fills it. They are merged at the top under the same
/// names.
pub(crate) const TABLES: [(&str, MakeTable); 10] = [
    (tables::FLOWS.file, columns::flows),
    (tables::QUEUE.file, columns::queue),
    (tables::GAUGES.file, columns::gauges),
    (tables::SOJOURN.file, columns::sojourn),
    (tables::SHARES.file, columns::shares),
    (tables::DELAYS.file, columns::delays),
    (tables::LINKS.file, columns::links),
    (SENDERS, columns::senders),
    (EPISODES, columns::episodes),
    (BURSTS, columns::bursts),
];

/// A table that exists only if the scenario turns it on.
pub(crate) const SENDERS: &str = tables::SENDERS.file;

pub(crate) const EPISODES: &str = tables::EPISODES.file;

pub(crate) const BURSTS: &str = tables::BURSTS.file;

pub(crate) type MakeTable = fn(&Record) -> Result<RecordBatch, ArrowError>;

/// The tables of trials with this layout.
pub(crate) fn tables_of(layout: &Layout) -> impl Iterator<Item = (&'static str, MakeTable)> + use<> {
    let Layout { senders, episodes, bursts, .. } = *layout;
    TABLES.into_iter().filter(move |(name, _)| match *name {
        SENDERS => senders,
        EPISODES => episodes,
        BURSTS => bursts,
        _ => true,
    })
}

/// The folder of the trials.
pub(crate) const TRIALS: &str = "trials";

pub(crate) const SUMMARY: &str = "summary.json";

/// The tables at the top that are made from the summaries of all trials.
pub(crate) const SUMMARY_TABLES: [&str; 2] = [tables::SUMMARY.file, tables::METRICS.file];

/// The name of the report in a run folder.
pub const REPORT: &str = "report.html";

pub(crate) const SCENARIO: &str = "scenario.toml";

pub(crate) const MANIFEST: &str = "manifest.json";

/// The specification of a discipline as part of a file name: lower-case letters, digits and single hyphens,
/// at most 40.
pub(super) fn slug(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let mut slug = String::new();
    for c in plain {
        if slug.len() < 40 && (c != '-' || !(slug.is_empty() || slug.ends_with('-'))) {
            slug.push(c);
        }
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_readable_and_safe() {
        assert_eq!(slug("efd limit 300p threshold 20p"), "efd-limit-300p-threshold-20p");
        assert_eq!(
            slug("tbf rate 1mbit child (fq_codel limit 100p)"),
            "tbf-rate-1mbit-child-fq-codel-limit-100p"
        );
        assert_eq!(slug("../../etc"), "etc");
        assert_eq!(slug(&"x ".repeat(50)).len(), 39);
    }
}
