//! What a figure draws of one run, and how the runs of several seeds come together.

use std::collections::BTreeMap;

use qdisc::Ending;
use record::Record;
use serde::Deserialize;

use crate::measure::{Measure, Size, Unfinished, incomplete, largest_transfers, segments, time, transfers};

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Curve {
    /// The size of the flow table over time, of the first seed.
    FlowTable,
    /// How often the flow table has which size.
    FlowTableHistogram,
    /// How many transfers of up to which size did not complete.
    Incomplete { size: Size },
    /// Mean response time by size.
    Response {
        #[serde(default)]
        unfinished: Unfinished,
    },
    /// What the largest transfers have sent, over the time since each began; of the first seed. A panel per discipline.
    Progress { largest: usize },
    /// Fragments of each connection, by its packets; of the first seed.
    Fragments,
    /// A number of each discipline, side by side for several experiments.
    Bars { measure: Measure, axis: String },
}

/// What there is to draw, of one run or of several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    /// Points of the first seed.
    Points(Vec<(f64, f64)>),
    /// Several lines of the first seed.
    Lines(Vec<Vec<(f64, f64)>>),
    /// How often each number occurred.
    Counts(BTreeMap<u64, u64>),
    /// Numbers of all seeds, and how many seeds.
    Numbers(Vec<u64>, u32),
    /// Sum and count by bin.
    Bins(BTreeMap<u64, (f64, u64)>),
    /// Numbers of tests draw this.
    Nothing,
}

impl Curve {
    /// What one run gives. `first`: whether it is the run of the first seed.
    pub fn of(&self, record: &Record, first: bool) -> Data {
        match self {
            Curve::FlowTable if !first => Data::Points(Vec::new()),
            Curve::FlowTable => Data::Points(table_sizes(record).collect()),
            Curve::FlowTableHistogram => {
                let mut counts = BTreeMap::new();
                table_sizes(record).for_each(|(_, size)| *counts.entry(size as u64).or_insert(0) += 1);
                Data::Counts(counts)
            }
            Curve::Incomplete { size } => {
                Data::Numbers(incomplete(record).map(|flow| size.of(flow)).collect(), 1)
            }
            Curve::Response { unfinished } => {
                let mut bins = BTreeMap::new();
                for flow in transfers(record) {
                    if let Some(time) = time(flow, record, *unfinished) {
                        let (sum, count) = bins.entry(bin(segments(flow.bytes))).or_insert((0.0, 0));
                        *sum += time;
                        *count += 1;
                    }
                }
                Data::Bins(bins)
            }
            Curve::Progress { .. } if !first => Data::Lines(Vec::new()),
            Curve::Progress { largest } => Data::Lines(progress(record, *largest)),
            Curve::Fragments if !first => Data::Points(Vec::new()),
            Curve::Fragments => {
                let flows = record.episodes.iter().filter(|row| row.data_packets > 0);
                Data::Points(flows.map(|row| (row.packets as f64, row.episodes as f64)).collect())
            }
            Curve::Bars { .. } => Data::Nothing,
        }
    }

    /// Whether it needs what changes over time.
    pub fn needs_series(&self) -> bool {
        matches!(self, Curve::FlowTable | Curve::FlowTableHistogram)
    }
    /// Whether it needs samples of senders.
    pub fn needs_senders(&self) -> bool {
        matches!(self, Curve::Progress { .. })
    }
    /// Whether it needs the record of how often flows became backlogged.
    pub fn needs_episodes(&self) -> bool {
        matches!(self, Curve::Fragments)
    }
}

impl Data {
    /// Both together; the seeds of `other` come later.
    pub fn with(self, other: Data) -> Data {
        match (self, other) {
            (Data::Counts(mut all), Data::Counts(more)) => {
                more.into_iter().for_each(|(number, count)| *all.entry(number).or_insert(0) += count);
                Data::Counts(all)
            }
            (Data::Numbers(mut all, seeds), Data::Numbers(more, other)) => {
                all.extend(more);
                Data::Numbers(all, seeds + other)
            }
            (Data::Bins(mut all), Data::Bins(more)) => {
                for (bin, (sum, count)) in more {
                    let entry = all.entry(bin).or_insert((0.0, 0));
                    *entry = (entry.0 + sum, entry.1 + count);
                }
                Data::Bins(all)
            }
            (first, _) => first,
        }
    }
}

/// The bin of a size in segments, by its smallest member. Up to 25 each size has its own, so that a step at 20 shows where
/// it is; above, ten per decade.
fn bin(size: u64) -> u64 {
    if size <= 25 {
        return size;
    }
    let step = (libm::log10(size as f64) * 10.0).floor();
    (libm::pow(10.0, step / 10.0).ceil() as u64).max(26)
}

/// Time and size of the flow table, sample by sample.
fn table_sizes(record: &Record) -> impl Iterator<Item = (f64, f64)> {
    let port = record.layout.bottleneck();
    let here = record.queue.iter().filter(move |row| Some(row.port) == port);
    here.filter_map(|row| match row.gauge {
        Some(("flow_table", size)) => Some((row.time.as_s(), size)),
        _ => None,
    })
}

/// Megabytes over seconds since each began, of the largest transfers.
fn progress(record: &Record, largest: usize) -> Vec<Vec<(f64, f64)>> {
    let line = |flow: &qdisc::FlowReport| {
        let samples = record.progress.iter().filter(|row| row.id == flow.id);
        let mut line = vec![(0.0, 0.0)];
        line.extend(samples.map(|row| (row.time.since(flow.start).as_s(), row.acked as f64 / 1e6)));
        if flow.ending == Ending::Completed {
            line.push((flow.end.since(flow.start).as_s(), flow.delivered as f64 / 1e6));
        }
        line
    };
    largest_transfers(record, largest).into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_single_sizes_then_ten_per_decade() {
        assert_eq!((1..=25).map(bin).collect::<Vec<_>>(), (1..=25).collect::<Vec<_>>());
        let edges: std::collections::BTreeSet<u64> = (26..=3000).map(bin).collect();
        let edges: Vec<u64> = edges.into_iter().collect();
        assert_eq!(edges[..6], [26, 32, 40, 51, 64, 80]);
        assert_eq!(edges.last(), Some(&2512));
        assert!((26..=3000).all(|size| bin(size) <= size));
    }

    #[test]
    fn seeds_come_together() {
        let bins = |value: f64| Data::Bins(BTreeMap::from([(1, (value, 1))]));
        assert_eq!(bins(1.0).with(bins(3.0)), Data::Bins(BTreeMap::from([(1, (4.0, 2))])));
        let first = Data::Points(vec![(0.0, 1.0)]);
        assert_eq!(first.clone().with(Data::Points(Vec::new())), first);
        assert_eq!(Data::Numbers(vec![1], 1).with(Data::Numbers(vec![2], 1)), Data::Numbers(vec![1, 2], 2));
    }
}
