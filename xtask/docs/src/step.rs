//! The page about a step of the rate of a link, in the simulator and on a test bed, from `docs/step.csv`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::plot::grouped;
use crate::recorded::{self, Column, Recorded};

const BACKENDS: [(&str, &str, &str); 2] =
    [("simulation", "simulator", "#4477aa"), ("testbed", "test bed", "#ee6677")];

const TEXT: &str = include_str!("step.txt");

/// The delays of a discipline in a backend, within 100 ms. A test of `giveway-cli` writes them.
#[derive(Serialize, Deserialize)]
struct Bin {
    discipline: String,
    backend: String,
    /// Time after the step.
    time_s: f64,
    /// Mean of packets up to 256 bytes.
    small_ms: Option<f64>,
    /// Mean of all others.
    large_ms: Option<f64>,
}

impl Recorded for Bin {
    const FILE: &'static str = "docs/step.csv";
}

pub fn page(root: &Path) -> Result<String, String> {
    let bins: Vec<Bin> = recorded::read(root)?;
    let mut figures = String::new();
    for bins in bins.chunk_by(|bin, next| bin.discipline == next.discipline) {
        let discipline = &bins[0].discipline;
        figures += &figure(&format!("{discipline}: large packets"), bins, |bin| bin.large_ms);
        figures.push('\n');
        // Only a queue for each flow has another delay for small packets.
        if discipline == "fq_codel" {
            figures += &figure(&format!("{discipline}: small packets"), bins, |bin| bin.small_ms);
            figures.push('\n');
        }
    }
    Ok(TEXT.replace("FIGURES\n", &figures).replace("TABLE\n", &table(&bins)))
}

/// Size of a figure in pixels, and the area between its axes: left, top, right, bottom.
const SIZE: (f64, f64) = (430.0, 230.0);
const AREA: (f64, f64, f64, f64) = (55.0, 28.0, 415.0, 180.0);
/// The delays of the lowest and of the highest line, as powers of ten of a millisecond.
const DECADES: (i32, i32) = (-2, 4);

/// A figure with a line for each backend.
fn figure(title: &str, bins: &[Bin], value: fn(&Bin) -> Option<f64>) -> String {
    let (width, height) = SIZE;
    let (left, top, right, bottom) = AREA;
    let (first, last) = (-1.0, 20.0);
    let x = |time: f64| left + (time - first) / (last - first) * (right - left);
    let (low, high) = (f64::from(DECADES.0), f64::from(DECADES.1));
    let y = |ms: f64| bottom - ((libm::log10(ms) - low) / (high - low)).clamp(0.0, 1.0) * (bottom - top);
    let mut svg = format!(
        "<svg width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{title}: delay over time\" font-size=\"11\" \
         fill=\"currentColor\"><text x=\"{left}\" y=\"15\" font-weight=\"bold\">{title}, delay in ms</text>\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">seconds after the step</text>",
        (left + right) / 2.0,
        height - 20.0,
    );
    for power in DECADES.0..=DECADES.1 {
        let mark = libm::pow(10.0, f64::from(power));
        svg += &format!(
            "<path d=\"M{left} {0:.1}H{right}\" stroke=\"#888\" stroke-opacity=\"0.3\"/>\
             <text x=\"{1:.0}\" y=\"{2:.1}\" text-anchor=\"end\">{3}</text>",
            y(mark),
            left - 5.0,
            y(mark) + 4.0,
            if power < 0 { mark.to_string() } else { grouped(mark as u64) }
        );
    }
    for time in [0.0, 5.0, 10.0, 15.0, 20.0] {
        svg += &format!(
            "<path d=\"M{0:.1} {bottom}V{top}\" stroke=\"#888\" stroke-opacity=\"0.3\"/>\
             <text x=\"{0:.1}\" y=\"{1:.0}\" text-anchor=\"middle\">{time}</text>",
            x(time),
            bottom + 14.0,
        );
    }
    for (number, (backend, name, colour)) in BACKENDS.iter().enumerate() {
        let points: Vec<String> = bins
            .iter()
            .filter(|bin| bin.backend == *backend)
            .filter_map(|bin| Some((bin.time_s, value(bin)?)))
            // Each bin is drawn at its middle.
            .map(|(time, ms)| format!("{:.1},{:.1}", x(time + 0.05), y(ms)))
            .collect();
        let at = left + 130.0 * number as f64;
        svg += &format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
             <path d=\"M{at:.0} {1:.0}h20\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"{2:.0}\" y=\"{3:.0}\">{name}</text>",
            points.join(" "),
            height - 7.0,
            at + 25.0,
            height - 3.0,
        );
    }
    svg + "</svg>"
}

/// A table of what the curves have in common and where they differ.
fn table(bins: &[Bin]) -> String {
    let within = |curve: &[Bin], from: f64, until: f64| -> Vec<f64> {
        let bins = curve.iter().filter(|bin| bin.time_s >= from && bin.time_s < until);
        bins.filter_map(|bin| bin.large_ms).collect()
    };
    let mean = |curve: &[Bin], from: f64, until: f64| match &within(curve, from, until)[..] {
        [] => "-".to_owned(),
        delays => format!("{:.1}", delays.iter().sum::<f64>() / delays.len() as f64),
    };
    let largest = |curve: &[Bin]| within(curve, 0.0, 20.0).into_iter().fold(0.0, f64::max);
    let name =
        |backend: &str| BACKENDS.iter().find(|(key, ..)| *key == backend).map_or("", |(_, name, _)| name);
    let columns: [Column<'_, &[Bin]>; 6] = [
        ("discipline", " --- ", &|curve| format!("`{}`", curve[0].discipline)),
        ("", " --- ", &|curve| name(&curve[0].backend).to_owned()),
        ("before the step, ms", " ---: ", &|curve| mean(curve, -1.0, -0.05)),
        ("largest, ms", " ---: ", &|curve| format!("{:.0}", largest(curve))),
        ("in the second 4 to 5 s after it, ms", " ---: ", &|curve| mean(curve, 3.95, 4.95)),
        ("in the last 5 s, ms", " ---: ", &|curve| mean(curve, 14.95, 20.0)),
    ];
    recorded::table(
        &columns,
        bins.chunk_by(|bin, next| (&bin.discipline, &bin.backend) == (&next.discipline, &next.backend)),
    )
}
