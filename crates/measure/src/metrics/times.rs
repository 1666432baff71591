//! Metrics that are statistics of times.

use super::named::{MetricName, named};
use super::statistic::Statistic;
use crate::quantile::Distribution;
use crate::summary::Metrics;

/// Adds the metrics of one definition, which are a mean and quantiles, in the order of their names there.
/// `name` is the whole name of any of them.
pub(super) fn push_times(out: &mut Metrics, name: &str, times: &impl Distribution) {
    let MetricName { definition, metric, word, .. } =
        named(name).expect("the name is in the table of definitions");
    let prefix = &name[..name.len() - metric.len()];
    for pattern in definition.names {
        out.push(format!("{prefix}{}", pattern.replace('*', word)), value(pattern, times));
    }
}

/// The statistic in a name.
fn value(name: &str, times: &impl Distribution) -> Option<f64> {
    match Statistic::in_name(name) {
        Some(Statistic::Quantile(per_mille)) => times.quantile_s(per_mille.into()),
        _ => times.mean_s(),
    }
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::Span;

    use super::*;
    use crate::quantile::Times;

    /// Times of 1 ms to 1 s: a quantile that no table has needs no more than its name.
    #[test]
    fn a_new_quantile_needs_only_a_name() {
        let times = Times::new((1..=1_000).map(Span::ms));
        for (name, expected) in
            [("fct_mean_s", 0.5005), ("fct_p50_s", 0.5), ("fct_p90_s", 0.9), ("fct_p999_s", 0.999)]
        {
            assert_eq!(value(name, &times), Some(expected), "{name}");
        }
    }
}
