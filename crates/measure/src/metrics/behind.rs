//! The number of values behind a quantile, and the number that it needs.
//!
//! A quantile that fewer values than `1 / (1 - q)` stand behind is only their maximum: 20 values for the 95th
//! percentile, 100 for the 99th.

use super::definitions::{Definition, METRICS};
use super::statistic::Statistic;
use crate::table::DisciplineRow;

/// The metric that counts the values behind a quantile, and the minimum number of values that it needs;
/// `None` for all other metrics.
///
/// ```
/// use giveway_measure::behind;
///
/// assert_eq!(behind("fct_p95_s"), Some(("flows_completed".into(), 20)));
/// assert_eq!(behind("fct_le30kB_p99_s"), Some(("flows_le30kB_completed".into(), 100)));
/// assert_eq!(behind("utilization"), None);
/// ```
pub fn behind(metric: &str) -> Option<(String, u32)> {
    let (of, word) = metric.strip_suffix("_s")?.rsplit_once('_')?;
    let Some(Statistic::Quantile(per_mille)) = Statistic::of_word(word) else { return None };
    let least = if per_mille <= 500 { 1 } else { 1000_u32.div_ceil(1000 - per_mille.min(999)) };
    let count = match of {
        "fct" => "flows_completed".to_owned(),
        "page_load" => "pages_completed".to_owned(),
        "sojourn" => "sojourn_packets".to_owned(),
        "small_sojourn" => "small_sojourn_packets".to_owned(),
        "voice_delay" => "voice_packets".to_owned(),
        _ => format!("flows_{}_completed", of.strip_prefix("fct_")?),
    };
    Some((count, least))
}

/// True if a metric counts the values behind a quantile.
pub(crate) fn is_behind(definition: &Definition) -> bool {
    let mut counts = METRICS.iter().flat_map(|one| one.names).filter_map(|name| behind(name));
    counts.any(|(count, _)| definition.names.contains(&count.as_str()))
}

/// True if a row has enough values behind a quantile. Metrics that are no quantiles always have, and so have
/// rows without a count.
pub fn is_carried(row: &DisciplineRow, metric: &str) -> bool {
    let Some((count, least)) = behind(metric) else { return true };
    row.metric(&count).is_none_or(|count| count.mean.unwrap_or(0.0) >= f64::from(least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Estimate;

    #[test]
    fn nineteen_values_carry_no_95th_percentile() {
        let row = |count: f64| DisciplineRow {
            qdisc: "fifo".into(),
            seeds: vec![1],
            metrics: vec![("flows_completed".into(), Estimate::over(vec![Some(count)]))],
        };
        assert!(!is_carried(&row(19.0), "fct_p95_s"));
        assert!(is_carried(&row(20.0), "fct_p95_s"));
        assert!(!is_carried(&row(99.0), "fct_p99_s"));
        assert!(is_carried(&row(1.0), "fct_p50_s"));
        assert!(is_carried(&row(0.0), "utilization"));
        // A table of other origin may have quantiles only.
        assert!(is_carried(&row(1.0), "page_load_p99_s"));
    }
}
