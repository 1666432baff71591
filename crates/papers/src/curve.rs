//! The data that a figure draws of one run, and their combination over the seeds.
//!
//! ```toml
//! curve = { kind = "over", measure = { kind = "jain" }, axis = "Jain's index" }
//! curve = { kind = "flow_rates", source = "udp-*" }
//! curve = { kind = "queue", unit = "packets" }
//! curve = { kind = "gauge", name = "fair_share_bps" }
//! curve = { kind = "trade", x = { kind = "gauge", name = "flow_table" }, y = { kind = "jain" } }
//! ```
//!
//! `axis` is the title of the y axis. `along` is the title of the x axis if the family has none. Rates are
//! drawn in Mbit/s, memory and queues in kB, times in seconds, and shares from 0 to 1, so titles should have
//! these units.

use std::collections::BTreeMap;

use giveway_measure::Record;
use giveway_qdisc::{Ending, Span, Time};
use serde::Deserialize;

use crate::measure::{
    Measure, Size, Unfinished, Unit, gauge, held, incomplete, largest_transfers, means, segments,
    throughputs, time, transfers,
};

/// The kind of a panel.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Curve {
    /// The size of the flow table over time, of the first seed.
    FlowTable,
    /// The histogram of the size of the flow table.
    FlowTableHistogram,
    /// The number of transfers up to each size that did not complete, per run.
    Incomplete { size: Size },
    /// The mean completion time of transfers by size.
    Response {
        #[serde(default)]
        unfinished: Unfinished,
    },
    /// The acknowledged bytes of the largest transfers over the time since each started, of the first seed.
    /// Each discipline has its own panel.
    Progress { largest: usize },
    /// The number of fragments of each connection over its number of packets, of the first seed.
    Fragments,
    /// A number of each discipline, side by side for several experiments, or for the variants of the panel.
    Bars {
        measure: Measure,
        axis: String,
        /// The discipline to whose numbers the change is drawn, in percent, seed by seed.
        #[serde(default)]
        relative_to: Option<String>,
        #[serde(default)]
        along: Option<String>,
        #[serde(default)]
        log_y: bool,
    },
    /// A number of each discipline at the points of a family: the mean over seeds, with its interval.
    Over {
        measure: Measure,
        axis: String,
        /// The discipline to whose numbers the change is drawn, in percent, seed by seed.
        #[serde(default)]
        relative_to: Option<String>,
        /// The title of the x axis; by default the name of the family.
        #[serde(default)]
        along: Option<String>,
        #[serde(default)]
        log_x: bool,
        #[serde(default)]
        log_y: bool,
    },
    /// The throughput of each flow of a source, in the order of the scenario: the mean over seeds, next to
    /// the `ideal` of the experiment.
    FlowRates {
        source: String,
        #[serde(default)]
        axis: Option<String>,
    },
    /// The backlog of the bottleneck over time, of the first seed: samples, or means over windows.
    Queue {
        #[serde(default)]
        unit: Held,
        #[serde(default)]
        window: Option<Span>,
    },
    /// A gauge of the bottleneck's discipline over time, of the first seed.
    Gauge {
        name: String,
        #[serde(default)]
        axis: Option<String>,
    },
    /// Two numbers of each discipline, one on each axis, with a point for each experiment: means over seeds.
    Trade {
        x: Measure,
        y: Measure,
        #[serde(default)]
        log_x: bool,
        #[serde(default)]
        log_y: bool,
    },
}

/// The unit of a backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Held {
    #[default]
    Bytes,
    Packets,
}

/// The data of a curve, of one run or of several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    /// Points of the first seed.
    Points(Vec<(f64, f64)>),
    /// Several lines of the first seed.
    Lines(Vec<Vec<(f64, f64)>>),
    /// The number of occurrences of each value.
    Counts(BTreeMap<u64, u64>),
    /// The values of all seeds, and the number of seeds.
    Numbers(Vec<u64>, u32),
    /// The sum and the number of values in each bin.
    Bins(BTreeMap<u64, (f64, u64)>),
    /// None: the curve draws numbers of measures.
    Nothing,
}

impl Curve {
    /// The data of one run. `first` is true for the run of the first seed.
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
            Curve::FlowRates { source, .. } => {
                let rates = throughputs(record, Some(source));
                let numbered = (1..).zip(rates);
                Data::Bins(numbered.map(|(flow, rate)| (flow, (rate / Unit::Rate.scale(), 1))).collect())
            }
            Curve::Queue { .. } | Curve::Gauge { .. } if !first => Data::Points(Vec::new()),
            Curve::Queue { unit, window } => Data::Points(queue(record, *unit, *window)),
            Curve::Gauge { name, .. } => {
                let scale = Unit::of_gauge(name).scale();
                let samples = gauge(record, name);
                Data::Points(samples.map(|(time, value)| (time.as_s(), value / scale)).collect())
            }
            Curve::Bars { .. } | Curve::Over { .. } | Curve::Trade { .. } => Data::Nothing,
        }
    }

    /// The kind in the file.
    pub fn name(&self) -> &'static str {
        match self {
            Curve::FlowTable => "flow_table",
            Curve::FlowTableHistogram => "flow_table_histogram",
            Curve::Incomplete { .. } => "incomplete",
            Curve::Response { .. } => "response",
            Curve::Progress { .. } => "progress",
            Curve::Fragments => "fragments",
            Curve::Bars { .. } => "bars",
            Curve::Over { .. } => "over",
            Curve::FlowRates { .. } => "flow_rates",
            Curve::Queue { .. } => "queue",
            Curve::Gauge { .. } => "gauge",
            Curve::Trade { .. } => "trade",
        }
    }

    /// The measures that it draws; empty for a curve with its own data.
    pub fn measures(&self) -> Vec<&Measure> {
        match self {
            Curve::Bars { measure, .. } | Curve::Over { measure, .. } => vec![measure],
            Curve::Trade { x, y, .. } => vec![x, y],
            _ => Vec::new(),
        }
    }
    /// The discipline that the others are compared with.
    pub fn relative_to(&self) -> Option<&String> {
        match self {
            Curve::Bars { relative_to, .. } | Curve::Over { relative_to, .. } => relative_to.as_ref(),
            _ => None,
        }
    }
    /// True if a panel may have several experiments.
    pub fn takes_several(&self) -> bool {
        !self.measures().is_empty()
    }
    /// The source of traffic that it names.
    pub fn source(&self) -> Option<&str> {
        match self {
            Curve::FlowRates { source, .. } => Some(source),
            _ => None,
        }
    }

    /// True if it needs samples over time.
    pub fn needs_series(&self) -> bool {
        use Curve::{FlowTable, FlowTableHistogram, Gauge, Queue};
        matches!(self, FlowTable | FlowTableHistogram | Queue { .. } | Gauge { .. })
    }
    /// True if it needs samples of the senders.
    pub fn needs_senders(&self) -> bool {
        matches!(self, Curve::Progress { .. })
    }
    /// True if it needs the number of times that each flow became backlogged.
    pub fn needs_episodes(&self) -> bool {
        matches!(self, Curve::Fragments)
    }
}

impl Data {
    /// Combines the data of two sets of runs. The seeds of `other` are later ones.
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

/// The bin of a size in segments, as its smallest size. Each size up to 25 has its own bin, so that a step at
/// 20 is visible; above that there are ten bins per decade.
fn bin(size: u64) -> u64 {
    if size <= 25 {
        return size;
    }
    let step = (libm::log10(size as f64) * 10.0).floor();
    (libm::pow(10.0, step / 10.0).ceil() as u64).max(26)
}

/// The samples of the flow table's size: seconds and flows.
fn table_sizes(record: &Record) -> impl Iterator<Item = (f64, f64)> {
    gauge(record, "flow_table").map(|(time, size)| (time.as_s(), size))
}

/// The backlog of the bottleneck over time: seconds, and kB or packets.
fn queue(record: &Record, unit: Held, window: Option<Span>) -> Vec<(f64, f64)> {
    let samples = held(record).map(|(time, held)| {
        let held = match unit {
            Held::Bytes => held.bytes as f64 / Unit::Memory.scale(),
            Held::Packets => held.packets as f64,
        };
        (time, held)
    });
    let drawn = |(time, held): (Time, f64)| (time.as_s(), held);
    match window {
        None => samples.map(drawn).collect(),
        Some(window) => means(samples, Time::ZERO, window).map(drawn).collect(),
    }
}

/// The acknowledged megabytes of the largest transfers, over the seconds since each started.
fn progress(record: &Record, largest: usize) -> Vec<Vec<(f64, f64)>> {
    let line = |flow: &giveway_qdisc::FlowReport| {
        let samples = record.progress.iter().filter(|row| (row.source, row.id) == (flow.source, flow.id));
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
    use giveway_qdisc::FlowKind;

    use super::*;
    use crate::measure::tests::{lasting_flow, record};

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
    fn data_of_several_seeds_are_combined() {
        let bins = |value: f64| Data::Bins(BTreeMap::from([(1, (value, 1))]));
        assert_eq!(bins(1.0).with(bins(3.0)), Data::Bins(BTreeMap::from([(1, (4.0, 2))])));
        let first = Data::Points(vec![(0.0, 1.0)]);
        assert_eq!(first.clone().with(Data::Points(Vec::new())), first);
        assert_eq!(Data::Numbers(vec![1], 1).with(Data::Numbers(vec![2], 1)), Data::Numbers(vec![1, 2], 2));
    }

    #[test]
    fn flows_have_the_order_of_the_scenario() {
        let flow = |id, source, delivered| lasting_flow(id, source, FlowKind::Datagrams, 500, delivered);
        let run = record(&[flow(1, 2, 100), flow(2, 1, 200)], &[]);
        let rates = Curve::FlowRates { source: "udp-*".to_owned(), axis: None };
        assert_eq!(rates.of(&run, true), Data::Bins(BTreeMap::from([(1, (0.8, 1)), (2, (0.4, 1))])));
        let of_one = Curve::FlowRates { source: "udp-2".to_owned(), axis: None };
        assert_eq!(of_one.of(&run, false), Data::Bins(BTreeMap::from([(1, (0.4, 1))])));
    }

    #[test]
    fn queues_and_gauges_are_those_of_the_first_seed() {
        let run = record(&[], &[(Time::s(0), 1_000, 1e6), (Time::s(2), 4_500, 2.5e6)]);
        let queue = Curve::Queue { unit: Held::Bytes, window: None };
        assert_eq!(queue.of(&run, true), Data::Points(vec![(0.0, 1.0), (2.0, 4.5)]));
        assert_eq!(queue.of(&run, false), Data::Points(Vec::new()));
        let packets = Curve::Queue { unit: Held::Packets, window: None };
        assert_eq!(packets.of(&run, true), Data::Points(vec![(0.0, 2.0), (2.0, 9.0)]));
        let smooth = Curve::Queue { unit: Held::Packets, window: Some(Span::s(4)) };
        assert_eq!(smooth.of(&run, true), Data::Points(vec![(4.0, 5.5)]));
        let gauge = Curve::Gauge { name: "share_bps".to_owned(), axis: None };
        assert_eq!(gauge.of(&run, true), Data::Points(vec![(0.0, 1.0), (2.0, 2.5)]));
        assert!(queue.needs_series() && gauge.needs_series());
    }
}
