//! Fairness: the shares of competing flows, and Jain's index of them.

use giveway_qdisc::{FlowKind, FlowReport};

use super::flows::is_datagrams;
use super::observed::Observed;
use crate::layout::Layout;

/// Returns the shares of the flows that compete: the metric `jain` is Jain's index of them.
///
/// The flows are the endless transfers that lasted through the whole interval, and the share of each is its
/// data bytes that arrived within it. If there are fewer than two, the flows are the streams of datagrams
/// ([`of_fair`]). Transfers of a given size are not compared: a long one is faster than a short one even if
/// both are treated alike.
pub(super) fn shares(run: &Observed<'_>) -> Vec<f64> {
    let Layout { from, until, .. } = *run.layout;
    let throughout = |flow: &&FlowReport| flow.start <= from && flow.end >= until;
    let endless = run.flows().filter(|flow| flow.kind == FlowKind::Endless);
    let endless: Vec<f64> = endless.filter(throughout).map(|flow| flow.goodput_bytes as f64).collect();
    if endless.len() > 1 {
        return endless;
    }
    of_fair(run.flows().filter(|flow| is_datagrams(flow)))
}

/// Returns the share of each stream that sent anything within the interval: the bytes that arrived within it,
/// divided by the stream's max-min fair share of the bytes that arrived of all streams. A stream that sends
/// less than an equal part has a fair share of all that it sends; the other streams have equal parts of the
/// rest. Bertsekas and Gallager, "Data Networks", 1992, section 6.5.2.
fn of_fair<'a>(streams: impl Iterator<Item = &'a FlowReport>) -> Vec<f64> {
    let streams: Vec<&FlowReport> = streams.filter(|flow| flow.bytes > 0).collect();
    let asked: Vec<f64> = streams.iter().map(|flow| flow.bytes as f64).collect();
    let all: f64 = streams.iter().map(|flow| flow.goodput_bytes as f64).sum();
    if all == 0.0 {
        return vec![0.0; streams.len()];
    }
    // `None` if everything arrived: then the fair share of each stream is its demand.
    let level = giveway_theory::fairness::fair_share(&asked, all).unwrap_or(f64::INFINITY);
    streams.iter().zip(asked).map(|(flow, asked)| flow.goodput_bytes as f64 / asked.min(level)).collect()
}

/// Jain's index of fairness ([`giveway_theory::fairness::jain`]); `None` for fewer than two shares.
pub fn jain(shares: &[f64]) -> Option<f64> {
    if shares.len() < 2 { None } else { giveway_theory::fairness::jain(shares) }
}

/// The mean rates of large transfers, bytes per second until each ended: of the completed and the others.
pub(super) fn rates_of_large(run: &Observed<'_>) -> Vec<f64> {
    const LARGE: u64 = 100_000;
    let large = run.transfers().filter(|flow| flow.bytes >= LARGE);
    let rates = large.map(|flow| flow.delivered as f64 / flow.end.since(flow.start).as_s());
    rates.filter(|rate| rate.is_finite()).collect()
}

/// The share of each flow of a group. For streams of datagrams it is relative to the fair share
/// ([`of_fair`]); for transfers it is the data bytes per second that arrived during their time within the
/// interval. A refused transfer has no time.
pub(super) fn shares_of_group(layout: &Layout, flows: &[&FlowReport]) -> Vec<f64> {
    let transfers: Vec<&FlowReport> = flows
        .iter()
        .copied()
        .filter(|flow| matches!(flow.kind, FlowKind::Transfer | FlowKind::Endless))
        .collect();
    if transfers.is_empty() {
        return of_fair(flows.iter().copied().filter(|flow| is_datagrams(flow)));
    }
    let rate = |flow: &&FlowReport| {
        let there = flow.end.min(layout.until).since(flow.start.max(layout.from)).as_s();
        (there > 0.0).then(|| flow.goodput_bytes as f64 / there)
    };
    transfers.iter().filter_map(rate).collect()
}
