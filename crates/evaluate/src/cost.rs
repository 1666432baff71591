//! The cost of a discipline: counted instructions per packet, from the table of the project.
//!
//! They do not depend on the machine's speed or load, so they have no interval. A discipline of another
//! program has no row; its cost is undecided. Parameters come from the table: the defaults, and limits that
//! hold the flows.

use giveway_measure::Difference;
use serde::Deserialize;

use crate::verdict::{Compared, Verdict};

/// Instructions per packet, workload by workload. Later rows are newer.
const COUNTS: &str = include_str!("../../../docs/instructions.csv");

/// The share of the baseline's instructions that matters.
const MATTERS: f64 = 0.1;

#[derive(Deserialize)]
struct Row {
    workload: String,
    instructions: f64,
}

/// The instructions per packet of a discipline with a number of flows; `None` if they are not measured.
pub fn instructions(name: &str, flows: &str) -> Option<f64> {
    let wanted = format!("{name}, {flows} flows");
    let rows = csv::Reader::from_reader(COUNTS.as_bytes()).into_deserialize::<Row>();
    rows.filter_map(Result::ok).filter(|row| row.workload == wanted).last().map(|row| row.instructions)
}

/// The comparisons of two disciplines in cost.
pub fn cost(candidate: &str, baseline: &str) -> Vec<(String, Compared)> {
    let name = |spec: &str| spec.split_whitespace().next().unwrap_or_default().to_owned();
    let compared = |flows: &str| {
        let counted = instructions(&name(candidate), flows).zip(instructions(&name(baseline), flows));
        let difference = counted.map(|(after, before)| Difference {
            before,
            after,
            ci95: Some(0.0),
            seeds: 1,
            ratio: None,
        });
        let limit = counted.map_or(f64::NAN, |(after, before)| MATTERS * after.min(before));
        let verdict = match counted {
            None => Verdict::Unknown,
            Some((after, before)) if before - after >= limit => Verdict::Better,
            Some((after, before)) if after - before >= limit => Verdict::Worse,
            Some(_) => Verdict::Same,
        };
        let metric = format!("instructions per packet, {flows} flows");
        (metric, Compared { verdict, difference, limit, effect: None, needed: None })
    };
    ["100", "10000"].map(compared).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_count_is_used_and_an_unknown_discipline_has_none() {
        assert!(instructions("fifo", "100").is_some_and(|count| (100.0..2000.0).contains(&count)));
        assert_eq!(instructions("mydisc", "100"), None);
        let verdicts: Vec<Verdict> =
            cost("cake", "fifo limit 300p").iter().map(|(_, one)| one.verdict).collect();
        assert_eq!(verdicts, [Verdict::Worse, Verdict::Worse]);
        assert!(cost("mydisc", "fifo").iter().all(|(_, one)| one.verdict == Verdict::Unknown));
    }
}
