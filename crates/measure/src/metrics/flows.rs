//! Metrics of all flows: goodput, completion times, page load times, calls.

use giveway_qdisc::{Ending, FlowKind, FlowReport};

use super::observed::Observed;
use super::times::push_times;
use crate::layout::Layout;
use crate::quantile::{Distribution, Times};
use crate::summary::Metrics;

/// Goodput of these flows in bit/s; `None` without flows.
pub(super) fn goodput_bps<'a>(
    run: &Observed<'_>,
    flows: impl Iterator<Item = &'a FlowReport>,
) -> Option<f64> {
    let delivered = flows
        .filter(|flow| flow.kind != FlowKind::Group)
        .map(|flow| flow.goodput_bytes)
        .reduce(|a, b| a + b)?;
    let seconds = run.layout.measured_time().as_s();
    (seconds > 0.0).then(|| delivered as f64 * 8.0 / seconds)
}

pub(super) fn completion_times(run: &Observed<'_>, out: &mut Metrics) {
    let transfers: Vec<&FlowReport> = run.transfers().collect();
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
        run.layout,
        out,
        &run.completed().map(|flow| (flow.bytes, completion_time(flow))).collect::<Vec<_>>(),
    );
    aged(run.layout, &transfers, out);
}

/// Adds mean completion times that include the transfers which did not complete, with their age at the end of
/// the run. Without these a discipline that starves transfers would look good.
fn aged(layout: &Layout, transfers: &[&FlowReport], out: &mut Metrics) {
    let age = |flow: &&FlowReport| layout.age(flow);
    out.push("fct_aged_mean_s", Times::new(transfers.iter().map(age)).mean_s());
    for (class, name) in layout.class_names().iter().enumerate() {
        let in_class = transfers.iter().filter(|flow| layout.class_of(flow.bytes) == class);
        out.push(format!("fct_aged_{name}_mean_s"), Times::new(in_class.map(age)).mean_s());
    }
}

/// Flow completion times of transfers of these sizes: of all, and of each class.
fn by_size(layout: &Layout, out: &mut Metrics, transfers: &[(u64, giveway_qdisc::Span)]) {
    let all = Times::new(transfers.iter().map(|(_, time)| *time));
    push_times(out, "fct_mean_s", &all);
    for (class, name) in layout.class_names().iter().enumerate() {
        let in_class = transfers.iter().filter(|(bytes, _)| layout.class_of(*bytes) == class);
        let in_class = Times::new(in_class.map(|(_, time)| *time));
        push_times(out, &format!("fct_{name}_mean_s"), &in_class);
        out.push(format!("flows_{name}_completed"), (!transfers.is_empty()).then(|| in_class.count() as f64));
    }
}

/// Returns the metrics of flow completion times and page load times for transfers that were measured
/// elsewhere. `completed` holds the data bytes and the completion time of each completed transfer,
/// `incomplete` counts the other transfers, and `page_times` are the load times of the completed pages.
pub fn responses(
    completed: &[(u64, giveway_qdisc::Span)],
    incomplete: u64,
    page_times: &[giveway_qdisc::Span],
) -> Metrics {
    let mut out = Metrics::default();
    let any = !completed.is_empty() || incomplete > 0;
    out.push("flows_completed", any.then_some(completed.len() as f64));
    out.push("flows_incomplete", any.then_some(incomplete as f64));
    by_size(&Layout::default(), &mut out, completed);
    out.push("pages_completed", (!page_times.is_empty()).then_some(page_times.len() as f64));
    let times = Times::new(page_times.iter().copied());
    push_times(&mut out, "page_load_mean_s", &times);
    out
}

pub(super) fn completion_time(flow: &FlowReport) -> giveway_qdisc::Span {
    flow.end.since(flow.start)
}

/// Transfers that belong together: a page with all its objects.
pub(super) fn pages(run: &Observed<'_>, out: &mut Metrics) {
    let begun = |flow: &&FlowReport| run.layout.measures(flow.start);
    let pages: Vec<&FlowReport> =
        run.flows().filter(|flow| flow.kind == FlowKind::Group).filter(begun).collect();
    let completed = || pages.iter().filter(|page| page.ending == Ending::Completed);
    let any = !pages.is_empty();
    out.push("pages_completed", any.then(|| completed().count() as f64));
    out.push("pages_incomplete", any.then(|| (pages.len() - completed().count()) as f64));
    let times = Times::new(completed().map(|page| completion_time(page)));
    push_times(out, "page_load_mean_s", &times);
}

/// Streams that look like calls.
pub(super) fn voice(run: &Observed<'_>, out: &mut Metrics) {
    let calls: Vec<&FlowReport> = run.flows().filter(|flow| is_voice_like(run.layout, flow)).collect();
    let with_arrivals = || calls.iter().filter(|flow| arrived(flow));
    let mean = Times::new(with_arrivals().map(|flow| flow.delay_mean));
    out.push("voice_delay_mean_s", mean.mean_s());
    out.push("voice_delay_p99_s", with_arrivals().map(|flow| flow.delay_p99).max().map(|delay| delay.as_s()));
    let fewest = with_arrivals().map(|flow| flow.packets - flow.lost.unwrap_or(0)).min();
    out.push("voice_packets", fewest.map(|packets| packets as f64));
    out.push("voice_loss", loss(&calls));
}

/// Lost over sent datagrams, of those that were sent within the interval and had arrived or were lost when
/// the run ended.
pub(super) fn loss(streams: &[&FlowReport]) -> Option<f64> {
    let sent: u64 = streams.iter().map(|flow| flow.packets).sum();
    let lost: u64 = streams.iter().filter_map(|flow| flow.lost).sum();
    (sent > 0).then(|| lost as f64 / sent as f64)
}

/// True if at least one datagram arrived that the stream sent within the interval.
pub(super) fn arrived(flow: &FlowReport) -> bool {
    is_datagrams(flow) && flow.lost.is_some_and(|lost| flow.packets > lost)
}

/// At least a second of the interval, and in it at least 50 small packets (272 data bytes on average at
/// most), 10 to 120 a second: voice codecs send every 10 to 60 ms.
fn is_voice_like(layout: &Layout, flow: &FlowReport) -> bool {
    let seconds = flow.end.min(layout.until).since(flow.start.max(layout.from)).as_s();
    let pace = flow.packets as f64 / seconds;
    is_datagrams(flow)
        && seconds >= 1.0
        && flow.packets >= 50
        && flow.bytes <= 272 * flow.packets
        && (10.0..=120.0).contains(&pace)
}

/// Distribution of the mean delays of streams.
pub(super) fn stream_delays(run: &Observed<'_>, out: &mut Metrics) {
    let several = run.flows().filter(|flow| arrived(flow)).nth(1).is_some();
    let with_arrivals = run.flows().filter(|flow| several && arrived(flow));
    let means = Times::new(with_arrivals.map(|flow| flow.delay_mean));
    push_times(out, "flow_delay_p50_s", &means);
}

/// Share of some packets, such as retransmissions, among the data packets of these transfers.
pub(super) fn share_of_packets<'a>(
    flows: impl Iterator<Item = &'a FlowReport>,
    some: impl Fn(&FlowReport) -> u64,
) -> Option<f64> {
    let transfers = flows.filter(|flow| matches!(flow.kind, FlowKind::Transfer | FlowKind::Endless));
    let (counted, all) = transfers.fold((0, 0), |(sum, all), flow| (sum + some(flow), all + flow.packets));
    (all > 0).then(|| counted as f64 / all as f64)
}

pub(super) fn is_datagrams(flow: &FlowReport) -> bool {
    flow.kind == FlowKind::Datagrams
}
