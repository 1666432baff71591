//! Numbers with their units, for people.

use crate::metrics::{MetricName, named};

/// A number with its unit, in the prefix that suits it.
pub fn amount(number: f64, unit: &str) -> String {
    let (scale, unit) = match unit {
        "bit/s" => scaled(number, &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")]),
        "s" => scaled(number, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]),
        "B" => scaled(number, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]),
        "1" => (1.0, ""),
        other => (1.0, other),
    };
    let digits = three_digits(number / scale);
    match (digits.as_str(), unit) {
        (_, "") => digits,
        ("1", "packets") => "1 packet".to_owned(),
        _ => format!("{digits} {unit}"),
    }
}

/// The first scale that the number reaches; the last for a smaller one.
fn scaled(number: f64, scales: &[(f64, &'static str)]) -> (f64, &'static str) {
    let reached = scales.iter().find(|(scale, _)| number.abs() >= *scale * 0.9995);
    match (reached, number == 0.0) {
        (Some(found), _) => *found,
        (None, true) => scales[0],
        (None, false) => scales[scales.len() - 1],
    }
}

/// A number with three significant digits, and all digits of a larger whole number.
fn three_digits(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let magnitude = libm::floor(libm::log10(number.abs()));
    let decimals = (2.0 - magnitude).clamp(0.0, 12.0) as usize;
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A value of a metric with its unit.
pub fn of_metric(metric: &str, number: f64) -> String {
    amount(number, unit_of(metric))
}

/// The unit of a metric.
pub fn unit_of(metric: &str) -> &'static str {
    named(metric).map_or("1", |MetricName { definition, .. }| definition.unit.symbol())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_prefix_that_suits_them() {
        for (number, unit, text) in [
            (2e6, "bit/s", "2 Mbit/s"),
            (1.5e9, "bit/s", "1.5 Gbit/s"),
            (0.02, "s", "20 ms"),
            (0.0, "s", "0 s"),
            (1.2345, "s", "1.23 s"),
            (999.99e3, "bit/s", "1 Mbit/s"),
            (5.0, "packets", "5 packets"),
            (12345.0, "packets", "12345 packets"),
            (0.25, "1", "0.25"),
            (65536.0, "B", "65.5 kB"),
        ] {
            assert_eq!(amount(number, unit), text);
        }
    }
}
