//! Axes of charts, as Vega-Lite writes them.

use serde_json::{Value, json};

use crate::columns::number;

/// The format of numbers at an axis: three digits, no exponents.
pub const PLAIN: &str = ",.3~r";

/// A logarithmic axis from `least` to `most`, with a small margin and few ticks: powers of ten, and also two
/// and five times a power if the axis is short. The scale and the axis are added to `encoding`.
pub fn logarithmic(encoding: &mut Value, least: f64, most: f64, format: &str) {
    let most = most.max(least * 1.01);
    let room = libm::pow(most / least, 0.03);
    let (from, to) = (least / room, most * room);
    let times: &[f64] = if most / least < 300.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let decades = libm::log10(from).floor() as i32..=libm::log10(to).ceil() as i32;
    let ticks =
        decades.flat_map(|decade| times.iter().map(move |times| times * libm::pow(10.0, f64::from(decade))));
    let ticks: Vec<Value> = ticks.filter(|tick| from <= *tick && *tick <= to).map(number).collect();
    encoding["scale"] = json!({ "type": "log", "nice": false, "domain": [number(from), number(to)] });
    encoding["axis"] = json!({ "format": format, "values": ticks });
    if ticks.len() < 2 {
        // Such a short axis is nearly linear.
        encoding["axis"] = json!({ "format": format, "tickCount": 3 });
    }
}

/// The smallest and the largest value above zero.
pub fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .filter(|value| *value > 0.0)
        .fold((f64::INFINITY, 0.0), |(least, most), value| (value.min(least), value.max(most)))
}
