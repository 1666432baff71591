//! Metrics of the measured ports: sojourn times, backlog, losses, bursts.

use giveway_qdisc::DropReason;

use super::observed::Observed;
use super::times::push_times;
use crate::bursts::{Stream, WINDOWS};
use crate::counts::was_queued;
use crate::quantile::Delays;
use crate::summary::Metrics;

pub(super) fn sojourn_times(run: &Observed<'_>, out: &mut Metrics) {
    let (mut all, mut small) = (Delays::new(), Delays::new());
    for meter in &run.measured {
        all.merge(&meter.sojourn_times);
        small.merge(&meter.small_sojourn_times);
    }
    for (prefix, delays) in [("sojourn", &all), ("small_sojourn", &small)] {
        push_times(out, &format!("{prefix}_mean_s"), delays);
        out.push(format!("{prefix}_packets"), run.any_port().then(|| delays.count() as f64));
    }
    out.push("sojourn_saturated", run.any_port().then(|| all.saturated() as f64));
}

pub(super) fn backlog(run: &Observed<'_>, out: &mut Metrics) {
    let means = run.bottleneck.and_then(|(_, meter)| meter.backlog.means(run.layout.measured_time()));
    out.push("backlog_mean_packets", means.map(|(packets, _)| packets));
    out.push("backlog_mean_bytes", means.map(|(_, bytes)| bytes));
    let most = run.bottleneck.map(|(_, meter)| meter.backlog.most_packets as f64);
    out.push("backlog_max_packets", most.filter(|_| means.is_some()));
}

/// Metrics of burstiness, only if it is measured.
pub(super) fn bursts(run: &Observed<'_>, out: &mut Metrics) {
    let Some(bursts) = run.bottleneck.and_then(|(_, meter)| meter.bursts.as_ref()) else { return };
    let runs = bursts.runs();
    out.push("run_length_mean", runs.mean());
    out.push("run_length_weighted", runs.weighted());
    out.push("run_length_longest", (runs.runs > 0).then_some(runs.longest as f64));
    for (at, (window, _)) in WINDOWS.iter().enumerate() {
        out.push(format!("arrivals_idc_{window}"), bursts.arrivals.dispersions()[at]);
    }
    out.push("arrivals_peakedness", bursts.arrivals.peakedness());
    for (at, (window, _)) in WINDOWS.iter().enumerate() {
        out.push(format!("downstream_idc_{window}"), bursts.next_hop_mean(|stream| stream.dispersions()[at]));
    }
    out.push("downstream_peakedness", bursts.next_hop_mean(Stream::peakedness));
}

pub(super) fn losses(run: &Observed<'_>, out: &mut Metrics) {
    let dropped = |why: DropReason| run.measured.iter().map(|meter| meter.drops[why as usize]).sum::<u64>();
    let queued: u64 = DropReason::ALL.into_iter().filter(|why| was_queued(*why)).map(dropped).sum();
    let marks: u64 = run.measured.iter().map(|meter| meter.marks).sum();
    out.push("drops", run.any_port().then_some(queued as f64));
    out.push("marks", run.any_port().then_some(marks as f64));
    for why in DropReason::ALL {
        let count = dropped(why);
        if count > 0 {
            out.push(format!("drops_{}", why.name()), Some(count as f64));
        }
    }
}
