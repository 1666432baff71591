//! The summary of a run: named metrics. What each name means stands at [`Metrics`].

use std::collections::BTreeSet;
use std::fmt;

use qdisc::{DropReason, Ending, FlowKind, FlowReport, PortId};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bursts::{Stream, WINDOWS};
use crate::emissions::Emissions;
use crate::fingerprint::Fingerprint;
use crate::layout::Layout;
use crate::meter::{Meter, was_queued};
use crate::quantile::{Delays, REPORTED, Times};
use crate::recorder::FlowTables;

/// Named metrics, in a fixed order. `None`: could not be measured.
///
/// | name | what |
/// |---|---|
/// | `utilization` | bits sent by the bottleneck, over rate times measured time; the packet at either edge counts whole or not at all |
/// | `goodput_bps` | what all flows delivered within the measured part, bit/s |
/// | `flows_completed`, `flows_incomplete`, `flows_aborted` | transfers that *started* within the measured part, by how they ended |
/// | `bytes_incomplete` | what the incomplete and the aborted of these still wanted to deliver |
/// | `fct_mean_s`, `fct_p50_s`, `_p95_s`, `_p99_s` | response times of the completed of these, s |
/// | `fct_CLASS_...` | the same by size of transfer; the size is what the application wanted to send |
/// | `fct_aged_mean_s`, `fct_aged_CLASS_mean_s` | mean time from the start of *all* of these to their completion or to the end of the run: those that did not complete, aborted ones too, count with the age that they would have by then, s |
/// | `sojourn_...`, `small_sojourn_...` | waiting times of packets at the measured ports that were sent within the measured part, s |
/// | `sojourn_saturated` | how many of these were longer than 73 minutes, which is what their quantiles say then |
/// | `queue_mean_packets`, `queue_mean_bytes` | exact time averages at the bottleneck, the packet on the wire not included |
/// | `queue_max_packets` | the most that was held there for any length of time |
/// | `drops`, `marks` | of the measured ports' queues, packets |
/// | `drops_REASON` | for each reason that occurred; those of the wire and of missing routes are not in `drops` |
/// | `jain` | Jain's index of the bytes that endless transfers delivered which lived through the whole measured part; when there are fewer than two, of the part that each stream of datagrams got through; null when there are fewer than two of these either |
/// | `page_mean_s`, `page_p50_s`, ..., `pages_completed`, `pages_incomplete` | response times of groups of transfers, such as pages, and how many completed and did not |
/// | `voice_delay_mean_s`, `voice_delay_p99_s`, `voice_loss` | of streams that look like calls (small packets, 10 to 120 a second): mean over the streams, the largest 99th percentile among them, lost over sent packets |
/// | `jain_large` | Jain's index of the mean rates of transfers of at least 100 kB, unfinished ones up to their end |
/// | `at.PORT.METRIC` | where several ports are measured: any of these for one of them, with the flows that go over it |
/// | `flow_delay_p50_s`, `flow_delay_p95_s` | median and 95th percentile, over streams of datagrams, of the mean delay of each; when there are several |
/// | `flow_table_mean` | flows that the bottleneck's discipline keeps state for: mean of the samples |
/// | `flow_table_max` | the most that there were at any moment of the run until its last sample |
/// | `flow_table_entry_bytes`, `flow_table_bytes` | what one of them takes, and the most that all of the table took |
/// | `run_length_mean` | where bursts are measured ([`Layout::bursts`]), as are all up to `onward_peakedness`: mean number of packets that the bottleneck sent one after the other to the same node beyond its neighbour |
/// | `run_length_weighted`, `run_length_longest` | mean of that over the packets rather than the runs, and the most |
/// | `arrivals_idc_1ms`, `_10ms`, `_100ms`, `_1s` | index of dispersion for counts of what came to the bottleneck, dropped or not: variance over mean of packets in windows of this length; 1 for Poisson arrivals |
/// | `arrivals_peakedness` | of the same, for exponential holding times of 10 ms on average; 1 for Poisson arrivals |
/// | `onward_idc_1ms`, ..., `onward_peakedness` | the same of what the bottleneck sent, for each node beyond its neighbour by itself; mean over the packets |
/// | `bottleneck_packets` | packets of more than 64 bytes that the bottleneck sent in the *whole* run |
/// | `kernel.NAME` | where a discipline of ours ran in the kernel: what it counts under that name, within the measured part |
/// | `src.NAME.goodput_bps` | as above, of one group of sources |
/// | `src.NAME.fct_mean_s`, `src.NAME.fct_p50_s` | as above |
/// | `src.NAME.fct_aged_mean_s` | as above: with those that did not complete, at their age at the end of the run |
/// | `src.NAME.flows_completed`, `_incomplete`, `_aborted` | as above |
/// | `src.NAME.completed_share` | the completed among all transfers that *started* within the measured part, from 0 to 1 |
/// | `src.NAME.jain` | Jain's index of what each flow delivered per second while it was there within the measured part. A transfer is there from its start to its end, refused ones never; a stream of datagrams from its start to the end of the measured part, so that one of which nothing more arrives counts as what it is. Flows that ask for different rates are not set off against what they ask for |
/// | `src.NAME.delay_p99_s` | the largest 99th percentile among its datagram streams |
/// | `src.NAME.retransmitted` | data packets that its transfers sent again, over all that they sent, over their whole life |
/// | `src.NAME.drops` | its packets that the queues of the measured ports dropped |
/// | `src.NAME.hurst` | where bursts are measured: Hurst parameter of the packets that the group's ends emitted per 10 ms, acknowledgements included, over the measured part; the median of three estimates. Null below 81.92 s, or when nothing was emitted. See `theory::hurst` for the estimators, their scales, and how little one run proves |
/// | `src.NAME.hurst_rs`, `_variance`, `_wavelet` | the three: rescaled range, variance-time, Haar wavelet |
/// | `src.NAME.loss` | lost over sent packets of its datagram streams, over their whole life |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(Vec<(String, Option<f64>)>);

/// What one run comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Of everything that happened at the measured ports, and to the flows.
    pub fingerprint: Fingerprint,
    /// How many events the host worked off; zero until the host fills it in.
    pub events: u64,
    /// The metrics.
    pub metrics: Metrics,
}

impl Metrics {
    /// Adds a metric. What is not a finite number is missing.
    pub fn push(&mut self, name: impl Into<String>, value: Option<f64>) {
        self.0.push((name.into(), value.filter(|v| v.is_finite())));
    }

    /// A metric's value; `None` when it is missing or not known by this name.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.entry(name).flatten()
    }

    /// A metric's value: the outer `None` when there is no metric of this name, the inner when it is missing.
    pub fn entry(&self, name: &str) -> Option<Option<f64>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<f64>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl Summary {
    /// Data packets that the bottleneck sent in the whole run.
    pub fn bottleneck_packets(&self) -> Option<u64> {
        self.metrics.value("bottleneck_packets").map(|packets| packets as u64)
    }
}

/// What the recorder heard.
pub(crate) struct Heard<'a> {
    pub layout: &'a Layout,
    /// The first of the measured ports.
    pub bottleneck: Option<(PortId, &'a Meter)>,
    pub measured: Vec<&'a Meter>,
    pub flows: Vec<&'a FlowReport>,
    /// Of the bottleneck.
    pub flow_table: FlowTables,
}

/// The metrics of a run; the names and their meaning stand at [`Metrics`].
pub(crate) fn metrics(heard: &Heard<'_>) -> Metrics {
    let mut out = Metrics::default();
    out.push(
        "utilization",
        heard.bottleneck.and_then(|(port, meter)| utilization(heard.layout, port, meter)),
    );
    out.push("goodput_bps", goodput_bps(heard, heard.flows()));
    response_times(heard, &mut out);
    pages(heard, &mut out);
    waiting_times(heard, &mut out);
    queue(heard, &mut out);
    losses(heard, &mut out);
    stream_delays(heard, &mut out);
    voice(heard, &mut out);
    out.push("jain", jain(&shares(heard)));
    out.push("jain_large", jain(&rates_of_large(heard)));
    out.push("flow_table_mean", heard.flow_table.mean());
    out.push("flow_table_max", heard.flow_table.most());
    out.push("flow_table_entry_bytes", heard.flow_table.entry_bytes());
    out.push("flow_table_bytes", heard.flow_table.bytes());
    bursts(heard, &mut out);
    out.push("bottleneck_packets", heard.bottleneck.map(|(_, meter)| meter.data_packets as f64));
    sources(heard, &mut out);
    out
}

/// Share of the measured time for which a link was busy.
pub(crate) fn utilization(layout: &Layout, port: PortId, meter: &Meter) -> Option<f64> {
    let most = layout.rate(port)?.bytes_per_s() * layout.measured_time().as_s();
    (most > 0.0).then(|| meter.bytes_sent as f64 / most)
}

/// `None` when there are no flows at all.
fn goodput_bps<'a>(heard: &Heard<'_>, flows: impl Iterator<Item = &'a FlowReport>) -> Option<f64> {
    let delivered = flows
        .filter(|flow| flow.kind != FlowKind::Group)
        .map(|flow| flow.delivered_measured)
        .reduce(|a, b| a + b)?;
    let seconds = heard.layout.measured_time().as_s();
    (seconds > 0.0).then(|| delivered as f64 * 8.0 / seconds)
}

fn response_times(heard: &Heard<'_>, out: &mut Metrics) {
    let transfers: Vec<&FlowReport> = heard.transfers().collect();
    let any = !transfers.is_empty();
    let count = |ending| transfers.iter().filter(|flow| flow.ending == ending).count() as f64;
    out.push("flows_completed", any.then(|| count(Ending::Completed)));
    out.push("flows_incomplete", any.then(|| count(Ending::Unfinished)));
    let missing = |flow: &&&FlowReport| flow.ending != Ending::Completed;
    let bytes =
        transfers.iter().filter(missing).map(|flow| flow.bytes.saturating_sub(flow.delivered)).sum::<u64>();
    out.push("bytes_incomplete", any.then_some(bytes as f64));
    out.push("flows_aborted", any.then(|| count(Ending::Aborted)));

    by_size(
        heard.layout,
        out,
        &heard.completed().map(|flow| (flow.bytes, response(flow))).collect::<Vec<_>>(),
    );
    aged(heard.layout, &transfers, out);
}

/// Who only looks at what completed praises a discipline for what it starved. So here the others count, too, with their
/// age at the end of the run.
fn aged(layout: &Layout, transfers: &[&FlowReport], out: &mut Metrics) {
    let age = |flow: &&FlowReport| layout.age(flow);
    out.push("fct_aged_mean_s", Times::new(transfers.iter().map(age)).mean_s());
    for (class, name) in layout.class_names().iter().enumerate() {
        let in_class = transfers.iter().filter(|flow| layout.class_of(flow.bytes) == class);
        out.push(format!("fct_aged_{name}_mean_s"), Times::new(in_class.map(age)).mean_s());
    }
}

/// Response times of transfers of these sizes: of all, and of each class.
fn by_size(layout: &Layout, out: &mut Metrics, transfers: &[(u64, qdisc::Span)]) {
    times(out, "fct", &Times::new(transfers.iter().map(|(_, time)| *time)));
    for (class, name) in layout.class_names().iter().enumerate() {
        let in_class = transfers.iter().filter(|(bytes, _)| layout.class_of(*bytes) == class);
        times(out, &format!("fct_{name}"), &Times::new(in_class.map(|(_, time)| *time)));
    }
}

/// The same metrics of response times as those of a run, of transfers that somebody else measured: bytes and response
/// time of the completed, the number of the others, response times of pages.
pub fn responses(completed: &[(u64, qdisc::Span)], incomplete: u64, page_times: &[qdisc::Span]) -> Metrics {
    let mut out = Metrics::default();
    let any = !completed.is_empty() || incomplete > 0;
    out.push("flows_completed", any.then_some(completed.len() as f64));
    out.push("flows_incomplete", any.then_some(incomplete as f64));
    by_size(&Layout::default(), &mut out, completed);
    out.push("pages_completed", (!page_times.is_empty()).then_some(page_times.len() as f64));
    times(&mut out, "page", &Times::new(page_times.iter().copied()));
    out
}

fn response(flow: &FlowReport) -> qdisc::Span {
    flow.end.since(flow.start)
}

fn times(out: &mut Metrics, prefix: &str, times: &Times) {
    out.push(format!("{prefix}_mean_s"), times.mean_s());
    for (per_mille, word) in REPORTED {
        out.push(format!("{prefix}_{word}_s"), times.quantile_s(per_mille));
    }
}

/// Transfers that belong together: a page with all its objects.
fn pages(heard: &Heard<'_>, out: &mut Metrics) {
    let begun = |flow: &&FlowReport| heard.layout.measures(flow.start);
    let pages: Vec<&FlowReport> =
        heard.flows().filter(|flow| flow.kind == FlowKind::Group).filter(begun).collect();
    let completed = || pages.iter().filter(|page| page.ending == Ending::Completed);
    let any = !pages.is_empty();
    out.push("pages_completed", any.then(|| completed().count() as f64));
    out.push("pages_incomplete", any.then(|| (pages.len() - completed().count()) as f64));
    times(out, "page", &Times::new(completed().map(|page| response(page))));
}

/// Streams that look like calls.
fn voice(heard: &Heard<'_>, out: &mut Metrics) {
    let calls: Vec<&FlowReport> = heard.flows().filter(|flow| is_voice_like(flow)).collect();
    let heard_of = || calls.iter().filter(|flow| flow.packets > flow.lost);
    let mean = Times::new(heard_of().map(|flow| flow.delay_mean));
    out.push("voice_delay_mean_s", mean.mean_s());
    out.push("voice_delay_p99_s", heard_of().map(|flow| flow.delay_p99).max().map(|delay| delay.as_s()));
    let sent: u64 = calls.iter().map(|flow| flow.packets).sum();
    let lost: u64 = calls.iter().map(|flow| flow.lost).sum();
    out.push("voice_loss", (sent > 0).then(|| lost as f64 / sent as f64));
}

/// At least a second of small packets (300 bytes on average at most), 10 to 120 of them a second: voice codecs send every
/// 10 to 60 ms.
fn is_voice_like(flow: &FlowReport) -> bool {
    let seconds = flow.end.since(flow.start).as_s();
    let pace = flow.packets as f64 / seconds;
    is_datagrams(flow)
        && seconds >= 1.0
        && flow.packets >= 50
        && flow.bytes <= 300 * flow.packets
        && (10.0..=120.0).contains(&pace)
}

/// The mean rates of large transfers, bytes per second until each ended: of the completed and the others.
fn rates_of_large(heard: &Heard<'_>) -> Vec<f64> {
    const LARGE: u64 = 100_000;
    let large = heard.transfers().filter(|flow| flow.bytes >= LARGE);
    let rates = large.map(|flow| flow.delivered as f64 / flow.end.since(flow.start).as_s());
    rates.filter(|rate| rate.is_finite()).collect()
}

fn waiting_times(heard: &Heard<'_>, out: &mut Metrics) {
    let (mut all, mut small) = (Delays::new(), Delays::new());
    for meter in &heard.measured {
        all.merge(&meter.waits);
        small.merge(&meter.small_waits);
    }
    for (prefix, delays) in [("sojourn", &all), ("small_sojourn", &small)] {
        out.push(format!("{prefix}_mean_s"), delays.mean_s());
        for (per_mille, word) in REPORTED {
            out.push(format!("{prefix}_{word}_s"), delays.quantile_s(per_mille));
        }
    }
    out.push("sojourn_saturated", heard.any_port().then(|| all.saturated() as f64));
}

fn queue(heard: &Heard<'_>, out: &mut Metrics) {
    let means = heard.bottleneck.and_then(|(_, meter)| meter.level.means(heard.layout.measured_time()));
    out.push("queue_mean_packets", means.map(|(packets, _)| packets));
    out.push("queue_mean_bytes", means.map(|(_, bytes)| bytes));
    let most = heard.bottleneck.map(|(_, meter)| meter.level.most_packets as f64);
    out.push("queue_max_packets", most.filter(|_| means.is_some()));
}

/// Only named where they are measured.
fn bursts(heard: &Heard<'_>, out: &mut Metrics) {
    let Some(bursts) = heard.bottleneck.and_then(|(_, meter)| meter.bursts.as_ref()) else { return };
    let runs = bursts.runs();
    out.push("run_length_mean", runs.mean());
    out.push("run_length_weighted", runs.weighted());
    out.push("run_length_longest", (runs.runs > 0).then_some(runs.longest as f64));
    for (at, (window, _)) in WINDOWS.iter().enumerate() {
        out.push(format!("arrivals_idc_{window}"), bursts.arrivals.dispersions()[at]);
    }
    out.push("arrivals_peakedness", bursts.arrivals.peakedness());
    for (at, (window, _)) in WINDOWS.iter().enumerate() {
        out.push(format!("onward_idc_{window}"), bursts.onward_mean(|stream| stream.dispersions()[at]));
    }
    out.push("onward_peakedness", bursts.onward_mean(Stream::peakedness));
}

/// How self-similar what each group of sources emitted is.
pub(crate) fn hurst(layout: &Layout, emissions: &Emissions, out: &mut Metrics) {
    let mut seen = BTreeSet::new();
    for name in layout.source_names.iter().filter(|name| seen.insert(name.as_str())) {
        let group = layout.source_names.iter().enumerate().filter(|(_, other)| *other == name);
        let estimate = emissions.hurst(group.map(|(source, _)| source));
        out.push(format!("src.{name}.hurst"), estimate.map(|three| three.median()));
        out.push(format!("src.{name}.hurst_rs"), estimate.map(|three| three.rescaled_range));
        out.push(format!("src.{name}.hurst_variance"), estimate.map(|three| three.variance_time));
        out.push(format!("src.{name}.hurst_wavelet"), estimate.map(|three| three.wavelet));
    }
}

fn losses(heard: &Heard<'_>, out: &mut Metrics) {
    let dropped = |why: DropReason| heard.measured.iter().map(|meter| meter.drops[why as usize]).sum::<u64>();
    let queued: u64 = DropReason::ALL.into_iter().filter(|why| was_queued(*why)).map(dropped).sum();
    let marks: u64 = heard.measured.iter().map(|meter| meter.marks).sum();
    out.push("drops", heard.any_port().then_some(queued as f64));
    out.push("marks", heard.any_port().then_some(marks as f64));
    for why in DropReason::ALL {
        let count = dropped(why);
        if count > 0 {
            out.push(format!("drops_{}", why.name()), Some(count as f64));
        }
    }
}

/// What a metric is worth in a run whose summary does not name it. Reasons for dropping are named only where they
/// occurred, so there the answer is none at all; anything else is missing.
pub(crate) fn unnamed(name: &str) -> Option<f64> {
    name.starts_with("drops_").then_some(0.0)
}

/// Whose shares should be equal, and what the share of each is.
///
/// Endless transfers that lived through the whole measured part: bytes. Otherwise streams of datagrams, which take what
/// they need and no more: the part of what they sent that arrived. Transfers of a given size are not compared: a long one
/// is faster than a short one even when both are treated alike.
fn shares(heard: &Heard<'_>) -> Vec<f64> {
    let Layout { from, until, .. } = *heard.layout;
    let throughout = |flow: &&FlowReport| flow.start <= from && flow.end >= until;
    let endless = heard.flows().filter(|flow| flow.kind == FlowKind::Endless);
    let endless: Vec<f64> = endless.filter(throughout).map(|flow| flow.delivered_measured as f64).collect();
    if endless.len() > 1 {
        return endless;
    }
    let streams = heard.flows().filter(|flow| is_datagrams(flow) && flow.bytes > 0);
    let streams: Vec<f64> = streams.map(|flow| flow.delivered as f64 / flow.bytes as f64).collect();
    streams
}

/// How long the packets of a stream took, from stream to stream.
fn stream_delays(heard: &Heard<'_>, out: &mut Metrics) {
    let arrived = |flow: &&FlowReport| is_datagrams(flow) && flow.packets > flow.lost;
    let several = heard.flows().filter(arrived).nth(1).is_some();
    let means = Times::new(heard.flows().filter(arrived).filter(|_| several).map(|flow| flow.delay_mean));
    out.push("flow_delay_p50_s", means.quantile_s(500));
    out.push("flow_delay_p95_s", means.quantile_s(950));
}

/// Jain's index of fairness, (Σx)² / (n Σx²): 1 where all have the same, 1/n where one has it all; `None` for fewer than
/// two, or where nobody has anything. Jain, Chiu and Hawe 1984.
pub fn jain(shares: &[f64]) -> Option<f64> {
    if shares.len() < 2 {
        return None; // whoever is alone is not treated unfairly
    }
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

fn sources(heard: &Heard<'_>, out: &mut Metrics) {
    let mut seen = BTreeSet::new();
    for name in heard.layout.source_names.iter().filter(|name| seen.insert(name.as_str())) {
        let of_group =
            |flow: &&FlowReport| heard.layout.source_names.get(usize::from(flow.source)) == Some(name);
        out.push(format!("src.{name}.goodput_bps"), goodput_bps(heard, heard.flows().filter(of_group)));
        responses_of_source(heard.layout, name, &heard.transfers().filter(of_group).collect::<Vec<_>>(), out);
        out.push(
            format!("src.{name}.jain"),
            jain(&throughputs(heard.layout, heard.flows().filter(of_group))),
        );
        out.push(format!("src.{name}.retransmitted"), retransmitted(heard.flows().filter(of_group)));
        out.push(format!("src.{name}.drops"), drops(heard, name));
        let streams: Vec<&FlowReport> =
            heard.flows().filter(of_group).filter(|flow| is_datagrams(flow)).collect();
        let arrived = streams.iter().filter(|flow| flow.packets > flow.lost);
        let worst = arrived.map(|flow| flow.delay_p99).max();
        out.push(format!("src.{name}.delay_p99_s"), worst.map(|delay| delay.as_s()));
        let sent: u64 = streams.iter().map(|flow| flow.packets).sum();
        let lost: u64 = streams.iter().map(|flow| flow.lost).sum();
        out.push(format!("src.{name}.loss"), (sent > 0).then(|| lost as f64 / sent as f64));
    }
}

/// Packets of a group of sources that the queues of the measured ports dropped.
fn drops(heard: &Heard<'_>, name: &str) -> Option<f64> {
    let of_port = |meter: &&Meter| -> u64 {
        let by_source = heard.layout.source_names.iter().zip(&meter.drops_by_source);
        by_source.filter(|(source, _)| *source == name).map(|(_, drops)| drops).sum()
    };
    heard.any_port().then(|| heard.measured.iter().map(of_port).sum::<u64>() as f64)
}

/// Response times of the transfers of a source that started within the measured part, and how they ended.
fn responses_of_source(layout: &Layout, name: &str, begun: &[&FlowReport], out: &mut Metrics) {
    let count = |ending| begun.iter().filter(|flow| flow.ending == ending).count() as f64;
    let any = |value: f64| (!begun.is_empty()).then_some(value);
    let completed = begun.iter().filter(|flow| flow.ending == Ending::Completed);
    let responses = Times::new(completed.map(|flow| response(flow)));
    let aged = Times::new(begun.iter().map(|flow| layout.age(flow)));
    out.push(format!("src.{name}.fct_mean_s"), responses.mean_s());
    out.push(format!("src.{name}.fct_p50_s"), responses.quantile_s(500));
    out.push(format!("src.{name}.fct_aged_mean_s"), aged.mean_s());
    out.push(format!("src.{name}.flows_completed"), any(count(Ending::Completed)));
    out.push(format!("src.{name}.flows_incomplete"), any(count(Ending::Unfinished)));
    out.push(format!("src.{name}.flows_aborted"), any(count(Ending::Aborted)));
    out.push(format!("src.{name}.completed_share"), any(count(Ending::Completed) / begun.len() as f64));
}

/// What each of these flows delivered within the measured part, bytes per second while it was there.
fn throughputs<'a>(layout: &Layout, flows: impl Iterator<Item = &'a FlowReport>) -> Vec<f64> {
    let throughput = |flow: &FlowReport| {
        let end = if is_datagrams(flow) { layout.until } else { flow.end.min(layout.until) };
        let there = end.since(flow.start.max(layout.from)).as_s();
        (there > 0.0).then(|| flow.delivered_measured as f64 / there)
    };
    flows.filter(|flow| flow.kind != FlowKind::Group).filter_map(throughput).collect()
}

/// The part of the data packets of these transfers that were sent again.
fn retransmitted<'a>(flows: impl Iterator<Item = &'a FlowReport>) -> Option<f64> {
    let transfers = flows.filter(|flow| matches!(flow.kind, FlowKind::Transfer | FlowKind::Endless));
    let (again, all) =
        transfers.fold((0, 0), |(again, all), flow| (again + flow.retransmitted, all + flow.packets));
    (all > 0).then(|| again as f64 / all as f64)
}

fn is_datagrams(flow: &FlowReport) -> bool {
    flow.kind == FlowKind::Datagrams
}

impl<'a> Heard<'a> {
    /// Transfers that started within the measured part.
    fn transfers(&self) -> impl Iterator<Item = &'a FlowReport> {
        let layout = self.layout;
        let transfers = self.flows().filter(|flow| flow.kind == FlowKind::Transfer);
        transfers.filter(|flow| layout.measures(flow.start))
    }

    /// Those of them that completed.
    fn completed(&self) -> impl Iterator<Item = &'a FlowReport> {
        self.transfers().filter(|flow| flow.ending == Ending::Completed)
    }

    fn flows(&self) -> impl Iterator<Item = &'a FlowReport> {
        self.flows.iter().copied()
    }

    fn any_port(&self) -> bool {
        !self.measured.is_empty()
    }
}

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Metrics, D::Error> {
        struct Named;
        impl<'de> Visitor<'de> for Named {
            type Value = Metrics;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("metrics: names with a number or null each")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::default();
                while let Some((name, value)) = map.next_entry::<String, Option<f64>>()? {
                    metrics.push(name, value);
                }
                Ok(metrics)
            }
        }
        deserializer.deserialize_map(Named)
    }
}
