//! Metrics of one group of sources each: goodput, losses, completion times, fairness, self-similarity.

use std::collections::{BTreeMap, BTreeSet};

use giveway_qdisc::{Causes, Ending, FlowReport, Span};

use super::fairness::{jain, shares_of_group};
use super::flows::{arrived, completion_time, goodput_bps, is_datagrams, loss, share_of_packets};
use super::observed::Observed;
use super::times::push_times;
use crate::emissions::Emissions;
use crate::layout::Layout;
use crate::meter::Meter;
use crate::quantile::{Distribution, Times};
use crate::summary::Metrics;

/// The metrics of every group, in the order in which the scenario names them first.
pub(super) fn groups(run: &Observed<'_>, out: &mut Metrics) {
    let mut flows: BTreeMap<&str, Vec<&FlowReport>> = BTreeMap::new();
    for flow in run.flows() {
        if let Some(name) = run.layout.source_names.get(usize::from(flow.source)) {
            flows.entry(name).or_default().push(flow);
        }
    }
    let mut seen = BTreeSet::new();
    for name in run.layout.source_names.iter().filter(|name| seen.insert(name.as_str())) {
        group(run, name, flows.get(name.as_str()).map_or(&[], Vec::as_slice), out);
    }
}

fn group(run: &Observed<'_>, name: &str, flows: &[&FlowReport], out: &mut Metrics) {
    let all = || flows.iter().copied();
    out.push(format!("src.{name}.goodput_bps"), goodput_bps(run, all()));
    let begun: Vec<&FlowReport> = all().filter(|flow| run.begins(flow)).collect();
    completion_times(run.layout, name, &begun, out);
    out.push(format!("src.{name}.jain"), jain(&shares_of_group(run.layout, flows)));
    out.push(format!("src.{name}.lead"), lead(flows));
    let was_there = |flow: &&FlowReport| flow.end >= run.layout.from && flow.start < run.layout.until;
    out.push(
        format!("src.{name}.retransmitted"),
        share_of_packets(all().filter(was_there), |flow| flow.retransmitted),
    );
    let of =
        |cause: fn(&Causes) -> u64| share_of_packets(all().filter(was_there), |flow| cause(&flow.causes));
    out.push(format!("src.{name}.retransmitted_after_timeout"), of(|causes| causes.after_timeout));
    out.push(format!("src.{name}.retransmitted_by_probe"), of(|causes| causes.probes));
    out.push(format!("src.{name}.retransmitted_needlessly"), of(|causes| causes.needless));
    out.push(format!("src.{name}.drops"), drops(run, name));
    let streams: Vec<&FlowReport> = all().filter(|flow| is_datagrams(flow)).collect();
    let worst = |delay: fn(&FlowReport) -> Span| {
        let delays = streams.iter().filter(|flow| arrived(flow)).map(|flow| delay(flow));
        delays.max().map(|delay| delay.as_s())
    };
    out.push(format!("src.{name}.delay_p50_s"), worst(|flow| flow.delay_p50));
    out.push(format!("src.{name}.delay_p95_s"), worst(|flow| flow.delay_p95));
    out.push(format!("src.{name}.delay_p99_s"), worst(|flow| flow.delay_p99));
    out.push(format!("src.{name}.loss"), loss(&streams));
}

/// The share of the first of two flows in what both received, minus the share of the second.
fn lead(flows: &[&FlowReport]) -> Option<f64> {
    let [one, other] = flows else { return None };
    // Flows are in the order of their ends.
    let number = |flow: &FlowReport| (flow.source, flow.id);
    let (one, other) = if number(one) < number(other) { (one, other) } else { (other, one) };
    let (one, other) = (one.goodput_bytes as f64, other.goodput_bytes as f64);
    (one + other > 0.0).then(|| (one - other) / (one + other))
}

/// Self-similarity of the packets that each group of sources emitted.
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

/// Packets of a group of sources that the queues of the measured ports dropped.
fn drops(run: &Observed<'_>, name: &str) -> Option<f64> {
    let of_port = |meter: &&Meter| -> u64 {
        let by_source = run.layout.source_names.iter().zip(&meter.drops_by_source);
        by_source.filter(|(source, _)| *source == name).map(|(_, drops)| drops).sum()
    };
    run.any_port().then(|| run.measured.iter().map(of_port).sum::<u64>() as f64)
}

/// Flow completion times of the transfers of a source that started within the measurement interval, and how
/// they ended.
fn completion_times(layout: &Layout, name: &str, begun: &[&FlowReport], out: &mut Metrics) {
    let count = |ending| begun.iter().filter(|flow| flow.ending == ending).count() as f64;
    let any = |value: f64| (!begun.is_empty()).then_some(value);
    let completed = begun.iter().filter(|flow| flow.ending == Ending::Completed);
    let times = Times::new(completed.map(|flow| completion_time(flow)));
    let aged = Times::new(begun.iter().map(|flow| layout.age(flow)));
    push_times(out, &format!("src.{name}.fct_mean_s"), &times);
    out.push(format!("src.{name}.fct_aged_mean_s"), aged.mean_s());
    out.push(format!("src.{name}.flows_completed"), any(count(Ending::Completed)));
    out.push(format!("src.{name}.flows_incomplete"), any(count(Ending::Unfinished)));
    out.push(format!("src.{name}.flows_aborted"), any(count(Ending::Aborted)));
    out.push(format!("src.{name}.completed_share"), any(count(Ending::Completed) / begun.len() as f64));
}
