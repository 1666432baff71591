//! One number of one run.
//!
//! ```toml
//! measure = { kind = "response", source = "web", to = 20 }
//! measure = { kind = "normalized", source = "tcp" }
//! measure = { kind = "gauge", name = "fair_share_bps" }
//! measure = { kind = "metric", name = "backlog_mean_bytes" }
//! ```
//!
//! A source is the traffic of that name in the scenario; with a star at its end, `udp-*`, all traffic whose names begin
//! so. A flow's throughput is what it delivered within the measurement interval, over the length of that: of datagrams whole IP
//! packets that were *sent* within it, of TCP data without headers. Throughputs are compared among flows that last,
//! endless transfers and streams of datagrams; a transfer of some size has none, since it is over when it is over.

use std::collections::BTreeMap;

use qdisc::{Backlog, Ending, FlowKind, FlowReport, Rate, Span, Time};
use record::{QueueRow, Record, jain};
use serde::Deserialize;

use crate::fact;
use crate::paper::Experiment;

/// What is measured. Sizes are in full segments of 1,460 bytes, both ends included; without an end all larger ones count.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Measure {
    /// A metric of the run's summary, by its name.
    Metric { name: String },
    /// Mean response time of transfers of these sizes, seconds; of one source, if it is named. What `web` reports, pages
    /// or objects, are transfers, too.
    Response {
        #[serde(default)]
        source: Option<String>,
        #[serde(default)]
        from: u64,
        #[serde(default)]
        to: Option<u64>,
        #[serde(default)]
        unfinished: Unfinished,
    },
    /// How much longer transfers just above a size take than those just below: the ratio of mean response times.
    Step { below: [u64; 2], above: [u64; 2] },
    /// Share of the transfers of these sizes that completed; of one source, if it is named.
    Completed {
        #[serde(default)]
        source: Option<String>,
        #[serde(default)]
        from: u64,
        #[serde(default)]
        to: Option<u64>,
    },
    /// Of the transfers that did not complete, the share of these sizes.
    ShareOfIncomplete {
        #[serde(default)]
        from: u64,
        #[serde(default)]
        to: Option<u64>,
        size: Size,
    },
    /// Mean size of the transfers that did not complete, segments.
    MeanOfIncomplete { size: Size },
    /// The longest time without progress of the largest transfers, seconds.
    LongestPause { largest: usize },
    /// Sum of their pauses of more than half a second, seconds.
    Paused { largest: usize },
    /// Retransmission timeouts of the largest transfers.
    Timeouts { largest: usize },
    /// Data packets per time that a flow became backlogged, of flows with so many packets, SYN and the like not counted.
    PacketsPerFragment {
        #[serde(default)]
        from: u64,
        #[serde(default)]
        to: Option<u64>,
    },
    /// Of the flows that a table with this probability per packet catches, the share that has at most so many packets:
    /// expected, from the packets that each sent.
    ShortShareOfInserted { probability: f64, to: u64 },
    /// Bytes that a source of datagrams sent.
    OfferedBytes { source: String },
    /// What a source delivered within the measurement interval, bit/s.
    Goodput { source: String },
    /// Throughput of a flow of a source over the experiment's `ideal`; of several flows the mean.
    Normalized { source: String },
    /// How far the throughput of a source's flows is from the experiment's `ideal` at most, either way, as a share of it.
    WorstShare { source: String },
    /// Jain's index of throughputs: of the flows of a source, or of all.
    Jain {
        #[serde(default)]
        source: Option<String>,
    },
    /// Pearson's correlation between what streams of datagrams sent and what of it arrived: of a source, or of all.
    Correlation {
        #[serde(default)]
        source: Option<String>,
    },
    /// Mean over time of a gauge of the bottleneck's discipline.
    Gauge { name: String },
    /// The smallest utilization among the measured ports.
    UtilizationMin,
    /// Mean one-way delay of the packets of a source that arrived, data packets where it is TCP, seconds. Each flow counts
    /// by what it delivered.
    Delay { source: String },
    /// Packets of a source that were delivered within the measurement interval: what was delivered, over `bytes`, which is what
    /// a packet of it brings (IP length for datagrams, data for TCP).
    Delivered { source: String, bytes: u64 },
    /// Packets of a source, or of all, that the measured ports dropped within the measurement interval.
    Dropped {
        #[serde(default)]
        source: Option<String>,
    },
    /// Of a source of datagrams: packets sent within the measurement interval, less those delivered, less those that the measured
    /// ports dropped in that time. What was on its way when it began or ended is all that may be left.
    Unaccounted { source: String },
    /// Standard deviation of the bottleneck's queue over time, packets: of its samples, or of their means over windows.
    QueueDeviation {
        #[serde(default)]
        window: Option<Span>,
    },
    /// The largest one-way delay of the datagrams of a source that arrived, seconds.
    LargestDelay { source: String },
    /// The longest delay that the discipline promises the reserved flows of a source at its link, seconds.
    Bound { source: String },
    /// The largest delay over that bound. The network must add none of its own.
    LargestOverBound { source: String },
    /// What enqueue and dequeue of a packet cost, nanoseconds; of an experiment that times.
    Cost,
    /// The same per byte of the packet.
    CostPerByte,
    /// What follows from a paper's own definitions; `at` where it is a function. It needs no experiment.
    Fact {
        name: String,
        #[serde(default)]
        at: Option<f64>,
    },
    /// What was measured elsewhere, as `measured.toml` says. It needs no experiment.
    Measured { what: String },
    /// A quantile of the bottleneck's queue over time, packets, likewise.
    QueueQuantile {
        share: f64,
        #[serde(default)]
        window: Option<Span>,
    },
}

/// What becomes of transfers that did not complete in a mean of response times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unfinished {
    /// They are left out, as papers do.
    #[default]
    LeftOut,
    /// They count with the time from their start to the end of the run.
    AtTheirAge,
}

/// Which size of a transfer that did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Size {
    /// What the application wanted to send.
    Asked,
    /// What arrived.
    Delivered,
}

/// Data in a full segment, bytes.
const SEGMENT: u64 = 1460;

impl Measure {
    /// The number; `None` where there is nothing to measure. `ideal` is the experiment's; `bound` what the discipline promises a source.
    pub fn of(
        &self,
        record: &Record,
        ideal: Option<Rate>,
        bound: &dyn Fn(&str) -> Option<f64>,
    ) -> Option<f64> {
        let value = match self {
            Measure::LargestDelay { source } => largest_delay(record, source),
            Measure::Bound { source } => bound(source),
            Measure::LargestOverBound { source } => Some(largest_delay(record, source)? / bound(source)?),
            Measure::Cost | Measure::CostPerByte | Measure::Fact { .. } | Measure::Measured { .. } => None,
            Measure::Metric { name } => record.summary.metrics.value(name),
            Measure::Response { source, from, to, unfinished } => {
                response(record, source.as_deref(), (*from, *to), *unfinished)
            }
            Measure::Step { below, above } => {
                let mean =
                    |[from, to]: [u64; 2]| response(record, None, (from, Some(to)), Unfinished::LeftOut);
                Some(mean(*above)? / mean(*below)?)
            }
            Measure::Completed { source, from, to } => {
                let asked = transfers(record).filter(|flow| is_of(record, source.as_deref(), flow));
                let of_size = asked.filter(|flow| within(segments(flow.bytes), *from, *to));
                share(of_size, |flow| flow.ending == Ending::Completed)
            }
            Measure::ShareOfIncomplete { from, to, size } => {
                share(incomplete(record), |flow| within(size.of(flow), *from, *to))
            }
            Measure::MeanOfIncomplete { size } => mean(incomplete(record).map(|flow| size.of(flow) as f64)),
            Measure::LongestPause { largest } => {
                let pauses = largest_transfers(record, *largest).into_iter().map(|flow| flow.longest_pause);
                pauses.max().map(Span::as_s)
            }
            Measure::Paused { largest } => {
                let pauses = largest_transfers(record, *largest).into_iter().map(|flow| flow.paused.as_s());
                pauses.reduce(|a, b| a + b)
            }
            Measure::Timeouts { largest } => {
                let timeouts =
                    largest_transfers(record, *largest).into_iter().map(|flow| flow.timeouts as f64);
                timeouts.reduce(|a, b| a + b)
            }
            Measure::PacketsPerFragment { from, to } => {
                let flows = record.episodes.iter().filter(|row| within(row.data_packets, *from, *to));
                let (packets, fragments) = flows.fold((0, 0), |(packets, fragments), row| {
                    (packets + row.packets, fragments + row.episodes)
                });
                (fragments > 0).then(|| packets as f64 / fragments as f64)
            }
            Measure::ShortShareOfInserted { probability, to } => {
                let caught = |flow: &&FlowReport| 1.0 - libm::pow(1.0 - probability, flow.packets as f64);
                let short = |flow: &&FlowReport| flow.packets <= *to;
                let all: f64 = transfers(record).map(|flow| caught(&flow)).sum();
                let short: f64 = transfers(record).filter(short).map(|flow| caught(&flow)).sum();
                (all > 0.0).then(|| short / all)
            }
            Measure::OfferedBytes { source } => {
                let streams = lasting(record, Some(source));
                let streams = streams.into_iter().filter(|flow| flow.kind == FlowKind::Datagrams);
                streams.map(|flow| ip_bytes(flow, flow.bytes)).reduce(|a, b| a + b)
            }
            Measure::Goodput { source } => {
                // A group is told of in its transfers, too.
                let flows = record.flows.iter().filter(|flow| flow.kind != FlowKind::Group);
                let mine = flows.filter(|flow| is_of(record, Some(source), flow));
                mine.map(|flow| throughput(flow, record)).reduce(|a, b| a + b)
            }
            Measure::Normalized { source } => {
                let ideal = bits_per_s(ideal?);
                mean(throughputs(record, Some(source)).into_iter().map(|rate| rate / ideal))
            }
            Measure::WorstShare { source } => {
                let ideal = bits_per_s(ideal?);
                let off =
                    throughputs(record, Some(source)).into_iter().map(|rate| (rate / ideal - 1.0).abs());
                off.reduce(f64::max)
            }
            Measure::Jain { source } => jain(&throughputs(record, source.as_deref())),
            Measure::Correlation { source } => {
                let streams = lasting(record, source.as_deref());
                let streams = streams.into_iter().filter(|flow| flow.kind == FlowKind::Datagrams);
                let both = streams.map(|flow| (flow.bytes as f64, flow.goodput_bytes as f64));
                correlation(&both.collect::<Vec<_>>())
            }
            Measure::Gauge { name } => {
                let samples = gauge(record, name).filter(|(time, _)| record.layout.measures(*time));
                mean(samples.map(|(_, value)| value))
            }
            Measure::UtilizationMin => {
                record.links.iter().filter_map(|link| link.utilization).reduce(f64::min)
            }
            Measure::Delay { source } => {
                let flows = of_source(record, source).filter(|flow| !flow.delay_mean.is_zero());
                let (sum, weight) = flows.fold((0.0, 0.0), |(sum, weight), flow| {
                    let delivered = flow.goodput_bytes as f64;
                    (sum + delivered * flow.delay_mean.as_s(), weight + delivered)
                });
                (weight > 0.0).then(|| sum / weight)
            }
            Measure::Delivered { source, bytes } => {
                let delivered = of_source(record, source).map(|flow| ip_bytes(flow, flow.goodput_bytes));
                delivered.reduce(|a, b| a + b).map(|all| all / *bytes as f64)
            }
            Measure::Dropped { source } => dropped(record, source.as_deref()),
            Measure::Unaccounted { source } => {
                let lost =
                    of_source(record, source).filter_map(|flow| Some(flow.lost? as f64)).reduce(|a, b| a + b);
                Some(lost? - dropped(record, Some(source))?)
            }
            Measure::QueueDeviation { window } => {
                let queue = queue(record, *window);
                let middle = mean(queue.iter().copied())?;
                mean(queue.iter().map(|held| (held - middle) * (held - middle))).map(f64::sqrt)
            }
            Measure::QueueQuantile { share, window } => {
                let mut queue = queue(record, *window);
                queue.sort_by(f64::total_cmp);
                let last = queue.len().checked_sub(1)?;
                Some(queue[(share * last as f64) as usize])
            }
        };
        value.filter(|number| number.is_finite())
    }

    /// The number of an experiment that times: a pair took so many nanoseconds, with packets of so many bytes.
    pub fn of_cost(&self, pair_ns: f64, bytes: u32) -> Option<f64> {
        match self {
            Measure::Cost => Some(pair_ns),
            Measure::CostPerByte => Some(pair_ns / f64::from(bytes)),
            _ => None,
        }
    }

    /// Whether it is a number that no run gives.
    pub fn needs_no_run(&self) -> bool {
        matches!(self, Measure::Fact { .. } | Measure::Measured { .. })
    }

    /// Whether it needs the record of how often flows became backlogged.
    pub fn needs_episodes(&self) -> bool {
        matches!(self, Measure::PacketsPerFragment { .. })
    }
    /// Whether it needs what changes over time.
    pub fn needs_series(&self) -> bool {
        use Measure::{Gauge, QueueDeviation, QueueQuantile};
        matches!(self, Gauge { .. } | QueueDeviation { .. } | QueueQuantile { .. })
    }

    /// Whether it needs the record of how bursty traffic is.
    pub fn needs_bursts(&self) -> bool {
        let is = |name: &str| ["run_length", "arrivals_", "hurst"].iter().any(|part| name.contains(part));
        matches!(self, Measure::Metric { name } if is(name))
    }

    /// Whether it may be below zero.
    pub fn is_signed(&self) -> bool {
        matches!(self, Measure::Correlation { .. } | Measure::Gauge { .. } | Measure::Unaccounted { .. })
    }

    /// The source that it names.
    pub fn source(&self) -> Option<&str> {
        match self {
            Measure::Response { source, .. } | Measure::Completed { source, .. } => source.as_deref(),
            Measure::Jain { source } | Measure::Correlation { source } => source.as_deref(),
            Measure::Dropped { source } => source.as_deref(),
            Measure::Delay { source }
            | Measure::Delivered { source, .. }
            | Measure::Unaccounted { source }
            | Measure::LargestDelay { source }
            | Measure::Bound { source }
            | Measure::LargestOverBound { source }
            | Measure::OfferedBytes { source }
            | Measure::Goodput { source }
            | Measure::Normalized { source }
            | Measure::WorstShare { source } => Some(source),
            _ => None,
        }
    }

    /// That an experiment says what it needs.
    pub fn check(&self, experiment: &Experiment) -> Result<(), String> {
        let times = matches!(self, Measure::Cost | Measure::CostPerByte);
        if times != experiment.cost.is_some() {
            let what = if times { "times nothing" } else { "times, and measures nothing else" };
            return Err(format!(
                "experiment \"{}\" {what}: it cannot tell \"{}\"",
                experiment.id,
                self.words()
            ));
        }
        if matches!(self, Measure::Normalized { .. } | Measure::WorstShare { .. })
            && experiment.ideal.is_none_or(|ideal| ideal.bytes_per_s() == 0.0)
        {
            return Err(format!(
                "experiment \"{}\" has no ideal, which \"{}\" compares with: write for example ideal = \"5 Mbit/s\"",
                experiment.id,
                self.words()
            ));
        }
        Ok(())
    }

    /// What it is called beside a number.
    pub fn words(&self) -> String {
        let sizes_of = |source: &Option<String>, from: &u64, to: &Option<u64>| {
            let whose = source.as_deref().map_or("transfers", called);
            match (*from, *to) {
                (0, None) if source.is_none() => "all transfers".to_owned(),
                (0, None) => whose.to_owned(),
                (0, Some(to)) => format!("{whose} up to {to} segments"),
                (from, None) => format!("{whose} from {from} segments"),
                (from, Some(to)) => format!("{whose} of {from} to {to} segments"),
            }
        };
        let sizes = |from: &u64, to: &Option<u64>| sizes_of(&None, from, to);
        let of = |source: &Option<String>| {
            source.as_deref().map_or_else(String::new, |source| format!(" of {}", called(source)))
        };
        let over = |window: &Option<Span>| {
            window.map_or_else(String::new, |window| format!(", in means over {window}"))
        };
        match self {
            Measure::Metric { name } => match name.as_str() {
                "flow_table_mean" => "flows tracked, mean".to_owned(),
                "flow_table_max" => "flows tracked, most".to_owned(),
                "flows_completed" => "transfers completed".to_owned(),
                "utilization" => "utilization".to_owned(),
                "src.cbr.loss" => "loss of the stream".to_owned(),
                "src.ftp.retransmitted" => "segments of the transfers sent again".to_owned(),
                "src.ftp.goodput_bps" => "goodput of the transfers".to_owned(),
                "backlog_mean_bytes" | "backlog_mean_packets" => "queue, mean".to_owned(),
                "backlog_max_packets" => "queue, most".to_owned(),
                "flow_table_bytes" => "memory for flows, most".to_owned(),
                "goodput_bps" => "goodput of all".to_owned(),
                other => of_metric(other).unwrap_or_else(|| other.to_owned()),
            },
            Measure::Response { source, from, to, unfinished } => {
                let aged = match unfinished {
                    Unfinished::LeftOut => "",
                    Unfinished::AtTheirAge => ", unfinished ones at their age",
                };
                format!("mean response time of {}{aged}", sizes_of(source, from, to))
            }
            Measure::Step { below, above } => format!(
                "response time of {} to {} over {} to {} segments",
                above[0], above[1], below[0], below[1]
            ),
            Measure::Completed { source, from, to } => {
                format!("share completed of {}", sizes_of(source, from, to))
            }
            Measure::ShareOfIncomplete { from, to, .. } => {
                format!("share of {} among the incomplete", sizes(from, to))
            }
            Measure::MeanOfIncomplete { .. } => "mean size of the incomplete, segments".to_owned(),
            Measure::LongestPause { largest } => format!("longest pause of the {largest} largest"),
            Measure::Paused { largest } => format!("pauses of the {largest} largest, in all"),
            Measure::Timeouts { largest } => format!("timeouts of the {largest} largest"),
            Measure::PacketsPerFragment { from, to } => {
                format!("packets per fragment of {}", sizes(from, to).replace("segments", "packets"))
            }
            Measure::ShortShareOfInserted { to, .. } => {
                format!("share of flows of up to {to} packets in the table")
            }
            Measure::OfferedBytes { source } => format!("bytes sent by {}", called(source)),
            Measure::Goodput { source } => format!("goodput of {}", called(source)),
            Measure::Normalized { source } => format!("normalised bandwidth of {}", called(source)),
            Measure::WorstShare { source } => {
                format!("largest deviation of a flow of {} from its fair share", called(source))
            }
            Measure::Jain { source } => format!("Jain's index{}", of(source)),
            Measure::Correlation { source } => format!("correlation of sent and arrived{}", of(source)),
            Measure::Gauge { name } => format!("{}, mean", gauge_words(name)),
            Measure::UtilizationMin => "utilization of the least used link".to_owned(),
            Measure::Delay { source } => format!("mean delay of {}", called(source)),
            Measure::Delivered { source, .. } => format!("packets of {} delivered", called(source)),
            Measure::Dropped { source } => format!("packets{} dropped", of(source)),
            Measure::Unaccounted { source } => {
                format!("packets of {} neither delivered nor dropped", called(source))
            }
            Measure::LargestDelay { source } => format!("largest delay of {}", called(source)),
            Measure::Bound { source } => format!("bound on the delay of {}", called(source)),
            Measure::LargestOverBound { source } => {
                format!("largest delay of {} over its bound", called(source))
            }
            Measure::Cost => "enqueue and dequeue".to_owned(),
            Measure::CostPerByte => "enqueue and dequeue per byte".to_owned(),
            Measure::Fact { name, at } => {
                let words = fact::words(name).unwrap_or(name);
                at.map_or_else(|| words.to_owned(), |at| words.replace("{at}", &at.to_string()))
            }
            Measure::Measured { what } => what.clone(),
            Measure::QueueDeviation { window } => format!("deviation of the queue{}", over(window)),
            Measure::QueueQuantile { share, window } => {
                format!("{:.0} % quantile of the queue{}", share * 100.0, over(window))
            }
        }
    }

    /// Its unit: what stands behind a number of it.
    pub fn unit(&self) -> Unit {
        match self {
            Measure::Metric { name } if name.ends_with("utilization") || name.ends_with("loss") => {
                Unit::Share
            }
            Measure::Metric { name } if name.ends_with("retransmitted") => Unit::Share,
            Measure::Metric { name } | Measure::Gauge { name } => Unit::of_name(name),
            Measure::Response { .. } | Measure::LongestPause { .. } | Measure::Paused { .. } => Unit::Seconds,
            Measure::Completed { .. } | Measure::ShareOfIncomplete { .. } => Unit::Share,
            Measure::ShortShareOfInserted { .. } | Measure::WorstShare { .. } => Unit::Share,
            Measure::UtilizationMin => Unit::Share,
            Measure::Delay { .. } | Measure::LargestDelay { .. } | Measure::Bound { .. } => Unit::Seconds,
            Measure::Cost | Measure::CostPerByte => Unit::Nanoseconds,
            Measure::LargestOverBound { .. } | Measure::Fact { .. } | Measure::Measured { .. } => Unit::Plain,
            Measure::QueueDeviation { .. } | Measure::QueueQuantile { .. } => Unit::Packets,
            Measure::Delivered { .. } | Measure::Dropped { .. } | Measure::Unaccounted { .. } => Unit::Plain,
            Measure::OfferedBytes { .. } => Unit::Bytes,
            Measure::Goodput { .. } => Unit::Rate,
            Measure::Normalized { .. }
            | Measure::Jain { .. }
            | Measure::Correlation { .. }
            | Measure::Step { .. }
            | Measure::MeanOfIncomplete { .. }
            | Measure::Timeouts { .. }
            | Measure::PacketsPerFragment { .. } => Unit::Plain,
        }
    }
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Plain,
    Seconds,
    /// Of what a packet costs.
    Nanoseconds,
    Share,
    /// Of traffic: megabytes.
    Bytes,
    /// Of queues and memory: bytes, kilobytes or megabytes.
    Room,
    Packets,
    Rate,
}

impl Unit {
    /// By the end of a metric's or a gauge's name.
    pub fn of_name(name: &str) -> Unit {
        let ends: [(&str, Unit); 4] = [
            ("_bps", Unit::Rate),
            ("_s", Unit::Seconds),
            ("_bytes", Unit::Room),
            ("_packets", Unit::Packets),
        ];
        ends.into_iter().find(|(end, _)| name.ends_with(end)).map_or(Unit::Plain, |(_, unit)| unit)
    }

    /// How much one is in what figures draw, and what that is called.
    fn drawn(self) -> (f64, &'static str) {
        match self {
            Unit::Plain | Unit::Share => (1.0, ""),
            Unit::Packets => (1.0, "packets"),
            Unit::Seconds => (1.0, "s"),
            Unit::Nanoseconds => (1.0, "ns"),
            Unit::Bytes => (1e6, "MB"),
            Unit::Room => (1e3, "kB"),
            Unit::Rate => (1e6, "Mbit/s"),
        }
    }

    /// What one of the drawn unit is.
    pub fn scale(self) -> f64 {
        self.drawn().0
    }

    /// What stands at an axis, with the unit that is drawn.
    pub fn titled(self, what: &str) -> String {
        match self.drawn().1 {
            "" => what.to_owned(),
            unit => format!("{what} ({unit})"),
        }
    }
}

/// "loss of udp" for "src.udp.loss".
fn of_metric(metric: &str) -> Option<String> {
    let (source, what) = metric.strip_prefix("src.")?.rsplit_once('.')?;
    let what = match what {
        "goodput_bps" => "goodput",
        "fct_p50_s" => "median response time",
        "delay_p99_s" => "99th percentile of the delay",
        "retransmitted" => "share sent again",
        "loss" => "loss",
        _ => return None,
    };
    Some(format!("{what} of {source}"))
}

/// A gauge in words: its name without its unit.
pub(crate) fn gauge_words(name: &str) -> String {
    let bare = ["_bps", "_s", "_bytes", "_packets"].iter().find_map(|unit| name.strip_suffix(unit));
    bare.unwrap_or(name).replace('_', " ")
}

/// The largest one-way delay of the datagrams of a source, seconds; `None` when none arrived.
fn largest_delay(record: &Record, source: &str) -> Option<f64> {
    let delays = of_source(record, source).map(|flow| flow.delay_max).filter(|delay| !delay.is_zero());
    delays.max().map(Span::as_s)
}

/// Transfers that began within the measurement interval.
pub(crate) fn transfers(record: &Record) -> impl Iterator<Item = &FlowReport> {
    let transfers = record.flows.iter().filter(|flow| flow.kind == FlowKind::Transfer);
    transfers.filter(|flow| record.layout.measures(flow.start))
}

/// Whether a flow is of a source; any is of none.
fn is_of(record: &Record, source: Option<&str>, flow: &FlowReport) -> bool {
    source.is_none_or(|source| names(source, &record.layout.source_name(flow.source)))
}

/// Whether a source means the traffic of this name.
pub(crate) fn names(source: &str, traffic: &str) -> bool {
    match source.strip_suffix('*') {
        Some(beginning) => traffic.starts_with(beginning),
        None => traffic == source,
    }
}

/// What a source is called in a sentence.
fn called(source: &str) -> &str {
    match source.strip_suffix('*') {
        Some("") => "all traffic",
        Some(beginning) => beginning.trim_end_matches(['-', '_', '.']),
        None => source,
    }
}

/// Endless transfers and streams of datagrams, of a source or of all, in the order of the scenario: by its traffic, then
/// by the nodes between which they go.
pub(crate) fn lasting<'a>(record: &'a Record, source: Option<&str>) -> Vec<&'a FlowReport> {
    let last = |flow: &&FlowReport| matches!(flow.kind, FlowKind::Endless | FlowKind::Datagrams);
    let flows = record.flows.iter().filter(last).filter(|flow| is_of(record, source, flow));
    let mut flows: Vec<&FlowReport> = flows.collect();
    flows.sort_by_key(|flow| (flow.source, flow.from, flow.to, flow.id));
    flows
}

/// What arrived of a flow within the measurement interval, bit/s; see [`ip_bytes`].
fn throughput(flow: &FlowReport, record: &Record) -> f64 {
    ip_bytes(flow, flow.goodput_bytes) * 8.0 / record.layout.measured_time().as_s()
}

/// So many data bytes of a flow as its paper counts them: papers count datagrams as whole IP packets and give shares of a
/// link's rate, and count transfers by their data. Datagrams of a stream are taken to be as long as those that arrived are on
/// average.
fn ip_bytes(flow: &FlowReport, data: u64) -> f64 {
    let arrived = flow.lost.map_or(0, |lost| flow.packets - lost);
    let header = f64::from(sim::segment::UDP_HEADER) * arrived as f64;
    let share = if flow.delivered > 0 { header / flow.delivered as f64 } else { 0.0 };
    data as f64 * (1.0 + share)
}

/// Flows of a source; a group is told of in its transfers, too.
fn of_source<'a>(record: &'a Record, source: &'a str) -> impl Iterator<Item = &'a FlowReport> {
    let flows = record.flows.iter().filter(|flow| flow.kind != FlowKind::Group);
    flows.filter(move |flow| is_of(record, Some(source), flow))
}

/// Packets that the measured ports dropped within the measurement interval, of some traffic or of all.
fn dropped(record: &Record, source: Option<&str>) -> Option<f64> {
    let metrics = &record.summary.metrics;
    let Some(source) = source else { return metrics.value("drops") };
    let mut all: Vec<&String> = record.layout.source_names.iter().collect();
    all.sort_unstable();
    all.dedup();
    let mine = all.into_iter().filter(|traffic| names(source, traffic));
    mine.map(|traffic| metrics.value(&format!("src.{traffic}.drops")))
        .try_fold(0.0, |sum, drops| Some(sum + drops?))
}

/// What the bottleneck's queue held within the measurement interval, packets: sample by sample, or means over windows.
fn queue(record: &Record, window: Option<Span>) -> Vec<f64> {
    let samples = held(record).filter(|(time, _)| record.layout.measures(*time));
    let samples = samples.map(|(time, held)| (time, held.packets as f64));
    match window {
        None => samples.map(|(_, held)| held).collect(),
        Some(window) => means(samples, record.layout.from, window).map(|(_, held)| held).collect(),
    }
}

/// What the bottleneck's queue holds, sample by sample.
pub(crate) fn held(record: &Record) -> impl Iterator<Item = (Time, Backlog)> + '_ {
    at_bottleneck(record).filter_map(|row| Some((row.time, row.held?)))
}

/// The samples of the bottleneck, of the whole run.
fn at_bottleneck(record: &Record) -> impl Iterator<Item = &QueueRow> {
    let port = record.layout.bottleneck();
    record.queue.iter().filter(move |row| Some(row.port) == port)
}

/// Means over windows that follow each other from `from` on, each with the time of its end. A window without samples has
/// none.
pub(crate) fn means(
    samples: impl Iterator<Item = (Time, f64)>,
    from: Time,
    window: Span,
) -> impl Iterator<Item = (Time, f64)> {
    let mut windows: BTreeMap<u64, (f64, u64)> = BTreeMap::new();
    for (time, value) in samples {
        let entry = windows.entry(time.since(from).as_ps() / window.as_ps().max(1)).or_default();
        *entry = (entry.0 + value, entry.1 + 1);
    }
    windows.into_iter().map(move |(at, (sum, count))| (from + window * (at + 1), sum / count as f64))
}

/// Of flows that last, in the order of the scenario, bit/s.
pub(crate) fn throughputs(record: &Record, source: Option<&str>) -> Vec<f64> {
    lasting(record, source).into_iter().map(|flow| throughput(flow, record)).collect()
}

pub(crate) fn bits_per_s(rate: Rate) -> f64 {
    rate.bytes_per_s() * 8.0
}

/// Pearson's coefficient; not a number where either does not vary.
fn correlation(both: &[(f64, f64)]) -> Option<f64> {
    let (x, y) = (mean(both.iter().map(|(x, _)| *x))?, mean(both.iter().map(|(_, y)| *y))?);
    let sum = |of: fn((f64, f64)) -> f64| both.iter().map(|(a, b)| of((a - x, b - y))).sum::<f64>();
    Some(sum(|(a, b)| a * b) / (sum(|(a, _)| a * a) * sum(|(_, b)| b * b)).sqrt())
}

/// The samples of a gauge at the bottleneck, of the whole run.
pub(crate) fn gauge<'a>(record: &'a Record, name: &'a str) -> impl Iterator<Item = (Time, f64)> + 'a {
    at_bottleneck(record).filter_map(move |row| match row.gauge {
        Some((known, value)) if known == name => Some((row.time, value)),
        _ => None,
    })
}

/// Those that did not complete: neither given up nor unfinished ones were torn down properly.
pub(crate) fn incomplete(record: &Record) -> impl Iterator<Item = &FlowReport> {
    transfers(record).filter(|flow| flow.ending != Ending::Completed)
}

/// Response time in seconds, or the age at the end of the run.
pub(crate) fn time(flow: &FlowReport, record: &Record, unfinished: Unfinished) -> Option<f64> {
    let counts = flow.ending == Ending::Completed || unfinished == Unfinished::AtTheirAge;
    counts.then(|| record.layout.age(flow).as_s())
}

/// The largest transfers that were asked for in the first half of the measurement interval; of equals the earliest. Sizes and
/// times are the same under every discipline, so these are.
pub(crate) fn largest_transfers(record: &Record, count: usize) -> Vec<&FlowReport> {
    let (from, until) = (record.layout.from, record.layout.until);
    let half: Time = from + until.since(from).scale(1, 2);
    let mut flows: Vec<&FlowReport> = transfers(record).filter(|flow| flow.start < half).collect();
    flows.sort_by_key(|flow| (std::cmp::Reverse(flow.bytes), flow.start, flow.id));
    flows.truncate(count);
    flows
}

/// Full segments that so many bytes fill, the last one counted whole.
pub(crate) fn segments(bytes: u64) -> u64 {
    bytes.div_ceil(SEGMENT)
}

impl Size {
    pub fn of(self, flow: &FlowReport) -> u64 {
        match self {
            Size::Asked => segments(flow.bytes),
            Size::Delivered => segments(flow.delivered),
        }
    }
}

fn within(number: u64, from: u64, to: Option<u64>) -> bool {
    from <= number && to.is_none_or(|to| number <= to)
}

fn response(
    record: &Record,
    source: Option<&str>,
    (from, to): (u64, Option<u64>),
    unfinished: Unfinished,
) -> Option<f64> {
    let asked = transfers(record).filter(|flow| is_of(record, source, flow));
    let of_size = asked.filter(|flow| within(segments(flow.bytes), from, to));
    mean(of_size.filter_map(|flow| time(flow, record, unfinished)))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// The share of flows that `is` says yes to.
fn share<'a>(flows: impl Iterator<Item = &'a FlowReport>, is: impl Fn(&FlowReport) -> bool) -> Option<f64> {
    mean(flows.map(|flow| f64::from(u8::from(is(flow)))))
}

#[cfg(test)]
pub(crate) mod tests {
    use qdisc::{Backlog, PortId, Probe};
    use record::{Layout, Recorder};

    use super::*;

    const BOTTLENECK: PortId = PortId(0);

    /// A flow of the third traffic, from 1 s on; measured is from 1 s to 3 s.
    pub fn flow(id: u64, kind: FlowKind) -> FlowReport {
        FlowReport {
            id,
            source: 2,
            kind,
            from: 0,
            to: 1,
            start: Time::s(1),
            end: Time::s(2),
            bytes: 1_460,
            delivered: 1_460,
            goodput_bytes: 1_460,
            packets: 1,
            retransmitted: 0,
            lost: None,
            timeouts: 0,
            delay_mean: Span::ZERO,
            delay_p99: Span::ZERO,
            delay_max: Span::ZERO,
            longest_pause: Span::ZERO,
            paused: Span::ZERO,
            ending: Ending::Completed,
        }
    }

    /// A run that reported these flows, with samples of its bottleneck: when, bytes held, and the gauge `share_bps`.
    pub fn record(flows: &[FlowReport], samples: &[(Time, u64, f64)]) -> Record {
        let mut recorder: Recorder = Recorder::new(Layout {
            measured: vec![BOTTLENECK],
            source_names: ["tcp", "udp-1", "udp-2", "web"].map(str::to_owned).to_vec(),
            from: Time::s(1),
            until: Time::s(3),
            keep_series: true,
            ..Layout::default()
        });
        for (now, bytes, share) in samples {
            let held = Backlog { packets: bytes / 500, bytes: *bytes };
            Probe::<()>::sample(&mut recorder, BOTTLENECK, held, &[("share_bps", *share)], *now);
            // Another port is of no interest.
            Probe::<()>::sample(&mut recorder, PortId(1), held, &[("share_bps", 1e9)], *now);
        }
        flows.iter().for_each(|flow| Probe::<()>::flow(&mut recorder, flow));
        recorder.finish()
    }

    /// A flow that sent and delivered so many kilobytes within the two measured seconds.
    pub fn lasting_flow(id: u64, source: u16, kind: FlowKind, sent: u64, delivered: u64) -> FlowReport {
        // What came before is not measured.
        let goodput_bytes = delivered * 1_000;
        let delivered = goodput_bytes + 5_000;
        FlowReport { source, bytes: sent * 1_000, delivered, goodput_bytes, ..flow(id, kind) }
    }

    /// One TCP and three streams that get the less the more they send; and two transfers of 1 s and 3 s.
    fn mixed() -> Record {
        let web = |id, end| FlowReport { source: 3, end: Time::s(end), ..flow(id, FlowKind::Transfer) };
        let given_up = FlowReport { ending: Ending::Aborted, ..web(8, 3) };
        record(
            &[
                lasting_flow(1, 2, FlowKind::Datagrams, 500, 100),
                lasting_flow(2, 1, FlowKind::Datagrams, 125, 125),
                lasting_flow(3, 2, FlowKind::Datagrams, 250, 150),
                lasting_flow(4, 0, FlowKind::Endless, 250, 250),
                flow(5, FlowKind::Transfer),
                web(6, 2),
                web(7, 4),
                given_up,
                FlowReport { source: 3, ..flow(9, FlowKind::Group) },
            ],
            &[(Time::ms(500), 9_000, 9e6), (Time::s(1), 1_000, 1e6), (Time::s(2), 4_000, 2e6)],
        )
    }

    fn measured(text: &str) -> Option<f64> {
        read(text).of(&mixed(), Some("500 kbit/s".parse().unwrap()), &|_| None)
    }

    fn read(text: &str) -> Measure {
        #[derive(Deserialize)]
        struct Written {
            measure: Measure,
        }
        let Written { measure } = toml::from_str(&format!("measure = {{ {text} }}")).unwrap();
        measure
    }

    #[test]
    fn transfers_are_those_of_a_source() {
        // Of 1 s: the other transfer, and the pages or objects of the web.
        assert_eq!(measured("kind = 'response'"), Some((1.0 + 1.0 + 3.0) / 3.0));
        assert_eq!(measured("kind = 'response', source = 'web'"), Some(2.0));
        assert_eq!(measured("kind = 'response', source = 'web', from = 2"), None);
        assert_eq!(measured("kind = 'completed', source = 'web'"), Some(2.0 / 3.0));
        assert_eq!(measured("kind = 'completed', source = 'udp-2'"), Some(1.0));
        assert_eq!(measured("kind = 'completed', source = 'tcp'"), None);
    }

    #[test]
    fn throughput_is_that_of_the_measured_part() {
        assert_eq!(measured("kind = 'goodput', source = 'tcp'"), Some(1e6));
        assert_eq!(measured("kind = 'goodput', source = 'udp-*'"), Some(1.5e6 + 1_460.0 * 4.0));
        assert_eq!(measured("kind = 'goodput', source = 'web'"), Some(3.0 * 1_460.0 * 4.0), "no groups");
        assert_eq!(measured("kind = 'normalized', source = 'tcp'"), Some(2.0));
        assert_eq!(measured("kind = 'normalized', source = 'udp-2'"), Some(1.0), "the mean of 0.8 and 1.2");
        assert_eq!(measured("kind = 'normalized', source = 'web'"), None, "transfers have none");
        let worst = measured("kind = 'worst_share', source = 'udp-*'").unwrap();
        assert!((worst - 0.2).abs() < 1e-12, "{worst}");
        assert_eq!(read("kind = 'normalized', source = 'tcp'").of(&mixed(), None, &|_| None), None);
    }

    #[test]
    fn delays_are_held_against_what_is_promised() {
        let late = |id, ms| FlowReport { delay_max: Span::ms(ms), ..flow(id, FlowKind::Datagrams) };
        let run = record(&[late(1, 3), late(2, 8), flow(3, FlowKind::Datagrams)], &[]);
        let told = |text: &str| read(text).of(&run, None, &|source| (source == "udp-2").then_some(0.016));
        assert_eq!(told("kind = 'largest_delay', source = 'udp-2'"), Some(0.008));
        assert_eq!(told("kind = 'largest_over_bound', source = 'udp-2'"), Some(0.5));
        assert_eq!(told("kind = 'bound', source = 'udp-2'"), Some(0.016));
        assert_eq!(told("kind = 'bound', source = 'web'"), None);
        assert_eq!(told("kind = 'cost'"), None, "a run does not tell what it cost");
        assert_eq!(read("kind = 'cost_per_byte'").of_cost(50.0, 100), Some(0.5));
    }

    #[test]
    fn fairness_is_among_flows_that_last() {
        let jain = |of: &str| measured(&format!("kind = 'jain'{of}")).unwrap();
        let all: f64 =
            625.0 * 625.0 / (4.0 * (100.0 * 100.0 + 125.0 * 125.0 + 150.0 * 150.0 + 250.0 * 250.0));
        assert!((jain("") - all).abs() < 1e-12);
        assert!((jain(", source = 'udp-2'") - 250.0 * 250.0 / (2.0 * 32_500.0)).abs() < 1e-12);
        assert_eq!(measured("kind = 'jain', source = 'tcp'"), None, "who is alone is not treated unfairly");
    }

    #[test]
    fn what_arrives_is_held_against_what_was_sent() {
        // (500, 100), (250, 150), (125, 125): deviations (625, -75), (-125, 75), (-500, 0), over 3.
        let by_hand = (-46_875.0 - 9_375.0) / libm::sqrt((390_625.0 + 15_625.0 + 250_000.0) * 11_250.0);
        let told = measured("kind = 'correlation', source = 'udp-*'").unwrap();
        assert!((told - by_hand).abs() < 1e-9, "{told} and {by_hand}");
        assert_eq!(measured("kind = 'correlation', source = 'tcp'"), None, "only datagrams");
        assert_eq!(measured("kind = 'correlation', source = 'udp-1'"), None, "one does not vary");
    }

    #[test]
    fn a_gauge_is_the_mean_of_the_measured_samples() {
        assert_eq!(measured("kind = 'gauge', name = 'share_bps'"), Some(1.5e6));
        assert_eq!(measured("kind = 'gauge', name = 'of_nobody'"), None);
    }

    /// Two streams of UDP and a transfer; a source's delay is that of its packets, so flows count by what they delivered.
    #[test]
    fn delays_and_packets_are_those_of_a_source() {
        let flow = |id, source, kind, delivered, ms| FlowReport {
            delay_mean: Span::ms(ms),
            ..lasting_flow(id, source, kind, delivered, delivered)
        };
        let run = record(
            &[
                flow(1, 1, FlowKind::Datagrams, 300, 10),
                flow(2, 2, FlowKind::Datagrams, 100, 30),
                flow(3, 0, FlowKind::Endless, 46, 60),
                // Of which no packet arrived, so that it has no delay.
                flow(4, 2, FlowKind::Datagrams, 0, 0),
            ],
            &[],
        );
        let told = |text: &str| read(text).of(&run, None, &|_| None);
        assert!((told("kind = 'delay', source = 'udp-*'").unwrap() - 0.015).abs() < 1e-12);
        assert_eq!(told("kind = 'delay', source = 'tcp'"), Some(0.06));
        assert_eq!(told("kind = 'delay', source = 'web'"), None);
        assert_eq!(told("kind = 'delivered', source = 'udp-*', bytes = 500"), Some(800.0));
        assert_eq!(told("kind = 'delivered', source = 'tcp', bytes = 460"), Some(100.0));
    }

    /// Three packets of one stream and one of another are dropped, one of them before measuring began; the first stream says
    /// that it lost four: one was lost elsewhere, or was on its way.
    #[test]
    fn drops_are_counted_by_source() {
        let layout = Layout {
            measured: vec![BOTTLENECK],
            source_names: ["tcp", "udp-1", "udp-2"].map(str::to_owned).to_vec(),
            from: Time::s(1),
            until: Time::s(3),
            ..Layout::default()
        };
        let mut recorder: Recorder<u16> = Recorder::new(layout).with_sources(|source| *source);
        for (source, now) in [(1, Time::ms(500)), (1, Time::s(1)), (1, Time::s(2)), (2, Time::s(2))] {
            let meta = qdisc::Meta { bytes: 500, ..qdisc::Meta::default() };
            recorder.arrived(BOTTLENECK, &meta, now);
            let pkt = qdisc::Packet { meta, payload: source };
            recorder.dropped(BOTTLENECK, pkt, qdisc::DropReason::Overlimit, now);
        }
        let lost = |id, source, lost| FlowReport {
            source,
            lost: Some(lost),
            packets: 5,
            ..flow(id, FlowKind::Datagrams)
        };
        Probe::flow(&mut recorder, &lost(1, 1, 3));
        Probe::flow(&mut recorder, &lost(2, 2, 1));
        let run = recorder.finish();
        let told = |text: &str| read(text).of(&run, None, &|_| None);
        assert_eq!(told("kind = 'dropped'"), Some(3.0));
        assert_eq!(told("kind = 'dropped', source = 'udp-*'"), Some(3.0));
        assert_eq!(told("kind = 'dropped', source = 'udp-1'"), Some(2.0));
        assert_eq!(told("kind = 'dropped', source = 'tcp'"), Some(0.0));
        assert_eq!(told("kind = 'unaccounted', source = 'udp-*'"), Some(1.0));
        assert!(read("kind = 'unaccounted', source = 'udp-*'").is_signed());
    }

    /// Samples every half second, packets 2, 4, 6, 10 within the measurement interval: windows of 1 s have means 3 and 8.
    #[test]
    fn queues_are_told_by_sample_and_by_window() {
        let at = |ms, packets: u64| (Time::ms(ms), packets * 500, 0.0);
        let run =
            record(&[], &[at(500, 99), at(1000, 2), at(1500, 4), at(2000, 6), at(2500, 10), at(3000, 99)]);
        let told = |text: &str| read(text).of(&run, None, &|_| None);
        assert_eq!(told("kind = 'queue_deviation', window = '1 s'"), Some(2.5));
        assert_eq!(told("kind = 'queue_deviation'"), Some(f64::sqrt((12.25 + 2.25 + 0.25 + 20.25) / 4.0)));
        assert_eq!(told("kind = 'queue_quantile', share = 0.5"), Some(4.0));
        assert_eq!(told("kind = 'queue_quantile', share = 1.0, window = '1 s'"), Some(8.0));
        assert!(read("kind = 'queue_deviation'").needs_series());
        let none = record(&[], &[]);
        assert_eq!(read("kind = 'queue_deviation'").of(&none, None, &|_| None), None);
        assert_eq!(read("kind = 'queue_quantile', share = 0.5").of(&none, None, &|_| None), None);
    }

    #[test]
    fn burstiness_is_recorded_where_it_is_asked_for() {
        let needs = |name: &str| read(&format!("kind = 'metric', name = '{name}'")).needs_bursts();
        assert!(needs("at.a->b.run_length_mean") && needs("arrivals_peakedness") && needs("src.udp.hurst"));
        assert!(!needs("utilization") && !needs("drops"));
    }

    #[test]
    fn the_worst_link_is_the_least_used() {
        let mut run = mixed();
        let link = run.links[0].clone();
        let used = |utilization| record::LinkRow { utilization, ..link.clone() };
        run.links = vec![used(Some(0.9)), used(None), used(Some(0.4))];
        assert_eq!(read("kind = 'utilization_min'").of(&run, None, &|_| None), Some(0.4));
        run.links.clear();
        assert_eq!(read("kind = 'utilization_min'").of(&run, None, &|_| None), None);
    }

    #[test]
    fn numbers_have_words_and_units() {
        let told = |text: &str| (read(text).words(), read(text).unit());
        let is = |words: &str, unit| (words.to_owned(), unit);
        assert_eq!(
            told("kind = 'response', source = 'web', to = 7"),
            is("mean response time of web up to 7 segments", Unit::Seconds)
        );
        assert_eq!(told("kind = 'response'"), is("mean response time of all transfers", Unit::Seconds));
        assert_eq!(told("kind = 'jain', source = 'udp-*'"), is("Jain's index of udp", Unit::Plain));
        assert_eq!(
            told("kind = 'normalized', source = 'tcp'"),
            is("normalised bandwidth of tcp", Unit::Plain)
        );
        assert_eq!(told("kind = 'gauge', name = 'fair_share_bps'"), is("fair share, mean", Unit::Rate));
        assert_eq!(told("kind = 'metric', name = 'backlog_mean_bytes'"), is("queue, mean", Unit::Room));
        assert_eq!(told("kind = 'metric', name = 'backlog_mean_packets'"), is("queue, mean", Unit::Packets));
        assert_eq!(
            told("kind = 'metric', name = 'flow_table_bytes'"),
            is("memory for flows, most", Unit::Room)
        );
        assert_eq!(told("kind = 'metric', name = 'src.udp.loss'"), is("loss of udp", Unit::Share));
        assert_eq!(Unit::Rate.titled("fair share"), "fair share (Mbit/s)");
        assert_eq!(Unit::Share.titled("loss"), "loss");
    }
}
