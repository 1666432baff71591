//! Values and numbers in words.

use giveway_measure::{amount, named};
pub use giveway_measure::{of_metric, unit_of};
use giveway_qdisc::Quantity;

/// A value of a key for people: `2 Mbit/s`, `20 ms`, `5 packets`.
pub fn value(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Text(text) => text.clone(),
        Quantity::Number(number, unit) => amount(*number, unit),
    }
}

/// True if a higher value of the metric is better.
pub fn higher_is_better(metric: &str) -> bool {
    const HIGH: [&str; 8] = [
        "utilization",
        "goodput",
        "throughput",
        "jain",
        "flows_completed",
        "bottleneck_packets",
        "delivered",
        "service_share",
    ];
    let name = named(metric).map_or(metric, |named| named.metric);
    HIGH.iter().any(|high| name.starts_with(high))
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Items with commas and a last "and".
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_fairness_are_better_when_high() {
        assert!(higher_is_better("goodput_bps") && higher_is_better("at.home->isp.utilization"));
        assert!(!higher_is_better("fct_p99_s") && !higher_is_better("src.call.delay_p95_s"));
    }
}
