//! The page about a step of the rate of a link, in the simulator and on a test bed, from `docs/step.csv`.

use std::path::Path;

use crate::plot::grouped;

/// The page in the book.
pub const PAGE: &str = "docs/book/reference/step.md";

/// The table, which a test of `giveway-cli` writes.
const FILE: &str = "docs/step.csv";
const HEADS: &str = "discipline,backend,time_s,small_ms,large_ms";
const BACKENDS: [(&str, &str, &str); 2] =
    [("simulation", "simulator", "#4477aa"), ("testbed", "test bed", "#ee6677")];

const TEXT: &str = include_str!("step.txt");

/// The delays of a discipline in a backend, in milliseconds: the time of a bin in seconds after the step, and
/// the means of its packets up to 256 bytes, and of all others.
struct Curve {
    discipline: String,
    backend: String,
    bins: Vec<(f64, Option<f64>, Option<f64>)>,
}

/// The page.
///
/// # Errors
/// If the file cannot be read, or a row is not right.
pub fn page(root: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let curves = parse(&text)?;
    let mut disciplines: Vec<&str> = curves.iter().map(|curve| curve.discipline.as_str()).collect();
    disciplines.dedup();
    let mut figures = String::new();
    for discipline in &disciplines {
        let of: Vec<&Curve> = curves.iter().filter(|curve| curve.discipline == *discipline).collect();
        figures += &figure(&format!("{discipline}: large packets"), &of, |bin| bin.2);
        figures.push('\n');
        // Only a queue for each flow has another delay for small packets.
        if *discipline == "fq_codel" {
            figures += &figure(&format!("{discipline}: small packets"), &of, |bin| bin.1);
            figures.push('\n');
        }
    }
    Ok(TEXT.replace("FIGURES\n", &figures).replace("TABLE\n", &table(&curves)))
}

fn parse(text: &str) -> Result<Vec<Curve>, String> {
    let mut curves: Vec<Curve> = Vec::new();
    let mut rows = text.lines().zip(1..).filter(|(line, _)| !line.starts_with('#'));
    if rows.next().map(|(line, _)| line) != Some(HEADS) {
        return Err(format!("{FILE}: the first row is not {HEADS}"));
    }
    for (line, number) in rows {
        let wrong = || format!("{FILE}, line {number}: expected {HEADS}, found {line:?}");
        let cells: Vec<&str> = line.split(',').collect();
        let [discipline, backend, time, small, large] = cells[..] else { return Err(wrong()) };
        let value = |cell: &str| match cell {
            "" => Ok(None),
            cell => cell.parse::<f64>().map(Some).map_err(|_| wrong()),
        };
        let bin = (value(time)?.ok_or_else(wrong)?, value(small)?, value(large)?);
        match curves.last_mut() {
            Some(last) if last.discipline == discipline && last.backend == backend => last.bins.push(bin),
            _ => curves.push(Curve {
                discipline: discipline.to_owned(),
                backend: backend.to_owned(),
                bins: vec![bin],
            }),
        }
    }
    Ok(curves)
}

/// Size of a figure in pixels, and the area between its axes: left, top, right, bottom.
const SIZE: (f64, f64) = (430.0, 230.0);
const AREA: (f64, f64, f64, f64) = (55.0, 28.0, 415.0, 180.0);
/// The delays of the lowest and of the highest line, as powers of ten of a millisecond.
const DECADES: (i32, i32) = (-2, 4);

/// A figure with a line for each backend.
fn figure(
    title: &str,
    curves: &[&Curve],
    value: impl Fn(&(f64, Option<f64>, Option<f64>)) -> Option<f64>,
) -> String {
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
        let bins = curves.iter().filter(|curve| curve.backend == *backend).flat_map(|curve| &curve.bins);
        let points: Vec<String> = bins
            .filter_map(|bin| Some((bin.0, value(bin)?)))
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
fn table(curves: &[Curve]) -> String {
    let mut text = String::from(
        "| discipline | | before the step, ms | largest, ms | in the second 4 to 5 s after it, ms | in the last 5 s, ms |\n\
         | --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    for curve in curves {
        let name = BACKENDS.iter().find(|(backend, ..)| *backend == curve.backend);
        let name = name.map_or(curve.backend.as_str(), |(_, name, _)| name);
        let within = |from: f64, until: f64| {
            curve.bins.iter().filter(move |bin| bin.0 >= from && bin.0 < until).filter_map(|bin| bin.2)
        };
        let mean = |from: f64, until: f64| {
            let (sum, count) = within(from, until).fold((0.0, 0u32), |(sum, n), ms| (sum + ms, n + 1));
            if count == 0 { "-".to_owned() } else { format!("{:.1}", sum / f64::from(count)) }
        };
        let largest = within(0.0, 20.0).fold(0.0, f64::max);
        text += &format!(
            "| `{}` | {name} | {} | {largest:.0} | {} | {} |\n",
            curve.discipline,
            mean(-1.0, -0.05),
            mean(3.95, 4.95),
            mean(14.95, 20.0),
        );
    }
    text
}
