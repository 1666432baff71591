//! Distributions of sojourn times, small packets first.

use giveway_document::axis::{PLAIN, logarithmic};
use giveway_document::chart::{Chart, Plot};
use giveway_document::columns::number;
use serde_json::json;

use super::frame::{Disciplines, at_port, data, hover, over_seeds};
use crate::report::error::ReportError;
use crate::report::read::{DelayPoint, Folder};

/// A discipline, and a list of points for each of its seeds.
type Seeds<'a> = (&'a str, Vec<Vec<DelayPoint>>);

pub(super) fn charts(
    folder: &Folder,
    disciplines: &Disciplines,
    ports: &[&str],
) -> Result<Vec<Chart>, ReportError> {
    let read = |spec| Ok((spec, folder.delays(spec)?));
    let delays = folder.disciplines().into_iter().map(read).collect::<Result<Vec<Seeds<'_>>, _>>()?;
    Ok(ports.iter().map(|port| chart(folder, disciplines, port, &delays)).collect())
}

fn chart(folder: &Folder, disciplines: &Disciplines, port: &str, delays: &[Seeds<'_>]) -> Chart {
    let of_port = || delays.iter().flat_map(|(_, seeds)| seeds).flatten().filter(|point| point.port == port);
    let most = folder.manifest.measured.small_packet_bytes;
    // Without small packets, the chart shows all packets.
    let small = of_port().any(|point| point.small);
    let what = if small { "small packets" } else { "packets" };
    let title = at_port(&format!("Sojourn time of {what}"), port, folder);
    let longest =
        of_port().filter(|point| point.small == small).map(|point| point.delay_s).fold(0.0, f64::max);
    if longest == 0.0 {
        let words = match of_port().next() {
            None => "No packet was sent within the measurement interval, so there are no sojourn times.",
            Some(_) => "The sojourn time of every packet is 0.",
        };
        return Chart::words(title, words);
    }
    // Four decades below the longest. Shorter times are drawn at this floor.
    let floor_ms = libm::pow(10.0, libm::log10(longest * 1e3).ceil() - 4.0);
    let mut columns: Vec<_> =
        ["discipline", "share", "longer", "low", "median", "high"].map(|name| (name, vec![])).into();
    for (spec, seeds) in delays {
        for (share, low, median, high) in band(seeds, port, small) {
            let ms = |delay_s: f64| number((delay_s * 1e3).max(floor_ms));
            let longer = 1.0 - share;
            let cells = [
                json!(disciplines.name(spec)),
                number(share),
                // No sojourn time exceeds the longest, and a logarithmic axis has no zero.
                if longer > 1e-9 { number(longer) } else { json!(null) },
                ms(low),
                ms(median),
                ms(high),
            ];
            columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
    }
    let seeds = folder.manifest.seeds.len();
    let about = if small {
        format!(
            "Sojourn times at the port of packets up to {most} bytes: calls, games, name look-ups, acknowledgements."
        )
    } else {
        format!("Sojourn times at the port of all packets; none of them is as small as {most} bytes.")
    };
    let over_all_seeds = if seeds > 1 {
        format!("Lines are medians over {seeds} seeds. Bands reach from the lowest seed to the highest.")
    } else {
        format!("One run ({}).", over_seeds(folder))
    };
    let caption = format!(
        "{about} First: the share of packets with at most this sojourn time. A line far to the left is good. Second: the share of \
         packets with a longer sojourn time. A line that falls early is good, because the slowest packets determine the \
         quality of a call. {over_all_seeds} Each line has 123 points; times below {} ms are drawn at this value.",
        number(floor_ms)
    );
    let x = |field| {
        let mut x = json!({ "field": field, "type": "quantitative", "title": "sojourn time (ms)" });
        logarithmic(&mut x, floor_ms, longest * 1e3, PLAIN);
        x
    };
    let panel = |y: serde_json::Value, title: &str| {
        let band = json!({
            "mark": { "type": "area", "orient": "horizontal", "opacity": 0.18 },
            "encoding": { "x": x("low"), "x2": { "field": "high" }, "y": y, "color": disciplines.colour() },
        });
        let line = json!({
            "mark": "line",
            "encoding": { "x": x("median"), "y": y, "order": { "field": "share", "type": "quantitative" },
                          "color": disciplines.colour(), "strokeDash": disciplines.dash(),
                          "strokeWidth": disciplines.line_width() },
        });
        let over = hover(&x("median"), &y, &[("discipline", "discipline")]);
        let layers = if seeds > 1 { vec![band, line, over] } else { vec![line, over] };
        let spec = json!({
            "data": { "name": "delay" }, "height": 280, "layer": layers,
            "transform": [{ "filter": format!("isValid(datum.{})", y["field"].as_str().unwrap_or("share")) }],
        });
        Plot { title: title.to_owned(), spec, ..Plot::default() }
    };
    let share = json!({ "field": "share", "type": "quantitative", "title": "share of packets, at most",
                        "scale": { "domain": [0, 1] }, "axis": { "format": "~%", "tickCount": 5 } });
    let longer = json!({ "field": "longer", "type": "quantitative", "title": "share of packets, longer than",
                         "scale": { "type": "log", "domain": [0.0001, 1] },
                         "axis": { "format": "~%", "values": [1, 0.1, 0.01, 0.001, 0.0001] } });
    let specs: Vec<&str> = delays.iter().map(|(spec, _)| *spec).collect();
    Chart {
        title,
        caption,
        keys: vec![disciplines.key(&specs, true)],
        columns: 2,
        panels: vec![panel(share, "All packets"), panel(longer, "The slowest packets")],
        data: data([("delay", columns)]),
        ..Chart::default()
    }
}

/// Sojourn times for each share, in seconds: the lowest, the median and the highest of the seeds.
fn band(seeds: &[Vec<DelayPoint>], port: &str, small: bool) -> Vec<(f64, f64, f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for point in seeds.iter().flatten().filter(|point| point.port == port && point.small == small) {
        points.push((point.share, point.delay_s));
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let shares = points.chunk_by(|a, b| a.0 == b.0);
    let band = |seeds: &[(f64, f64)]| {
        let (low, median, high) = (seeds[0], seeds[(seeds.len() - 1) / 2], seeds[seeds.len() - 1]);
        (low.0, low.1, median.1, high.1)
    };
    shares.map(band).collect()
}
