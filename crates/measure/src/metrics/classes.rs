//! Metrics of the classes of the discipline at the bottleneck.

use giveway_qdisc::ClassState;

use super::observed::Observed;
use crate::summary::Metrics;

/// The metrics of every class, each before those below it.
pub(super) fn classes(run: &Observed<'_>, out: &mut Metrics) {
    let seconds = run.layout.until.since(run.layout.from).as_s();
    for state in &run.classes {
        let ClassState { path, sent, dropped, .. } = state;
        let mut push = |name: &str, value: Option<f64>| out.push(format!("class.{path}.{name}"), value);
        let part = |of: u64, all: u64| (all > 0).then(|| of as f64 / all as f64);
        if let Some(rate) = state.rate {
            push("rate_bps", Some(rate.as_bit() as f64));
        }
        if let Some(ceil) = state.ceil {
            push("ceil_bps", Some(ceil.as_bit() as f64));
        }
        push("throughput_bps", (seconds > 0.0).then(|| sent.bytes as f64 * 8.0 / seconds));
        push("borrowed", part(state.borrowed, sent.bytes));
        push("drop_share", part(dropped.packets, dropped.packets + sent.packets));
        push("wait_mean_s", (sent.packets > 0).then(|| state.waited.as_s() / sent.packets as f64));
        push("wait_max_s", (sent.packets > 0).then(|| state.longest.as_s()));
    }
}
