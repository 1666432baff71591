//! Values and numbers in words.

use giveway_measure::{Better, amount, better};
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
    better(metric) == Better::High
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A share in percent with its interval, if that has a width in whole percent. The share of the only key is
/// 100 % in every draw.
pub fn percent_within(share: f64, interval: Option<(f64, f64)>) -> String {
    let text = percent(share);
    match interval.map(|(low, high)| (percent(low), percent(high))) {
        Some((low, high)) if low != high => format!("{text} ({low} to {high})"),
        _ => text,
    }
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
    fn an_interval_without_width_is_left_out() {
        assert_eq!(percent_within(1.0, Some((1.0, 1.0))), "100 %");
        assert_eq!(percent_within(0.002, Some((0.001, 0.004))), "0 %");
        assert_eq!(percent_within(0.56, Some((0.47, 0.61))), "56 % (47 % to 61 %)");
        assert_eq!(percent_within(0.56, None), "56 %");
    }

    #[test]
    fn rates_and_fairness_are_better_when_high() {
        assert!(higher_is_better("goodput_bps") && higher_is_better("at.home->isp.utilization"));
        assert!(!higher_is_better("fct_p99_s") && !higher_is_better("src.call.delay_p95_s"));
        for completed in ["flows_le30kB_completed", "pages_completed", "src.web.completed_share"] {
            assert!(higher_is_better(completed), "{completed}");
        }
    }
}
