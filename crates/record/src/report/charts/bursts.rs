//! Burstiness at each port, and self-similarity of the traffic of each source. Only if the scenario measures
//! bursts.

use std::collections::BTreeSet;

use giveway_document::axis::{PLAIN, extent, logarithmic};
use giveway_document::chart::{Chart, Key, Plot, Swatch};
use giveway_document::columns::number;
use giveway_measure::{BIN, Table, WINDOWS, short_label};
use giveway_theory::hurst::{FEWEST, Scales};
use serde_json::json;

use super::frame::{Disciplines, at_port, data, over_seeds};
use crate::report::read::Folder;

/// The measured streams: the prefix of their metrics, and their title.
const STREAMS: [(&str, &str); 2] = [("arrivals", "arrivals"), ("downstream", "departures to each next hop")];
/// The metrics of the three estimators.
const ESTIMATORS: [&str; 3] = ["hurst_rs", "hurst_variance", "hurst_wavelet"];

/// The shapes of the estimators, with a character that looks like each.
const GLYPHS: [(&str, &str); 3] = [("circle", "●"), ("square", "■"), ("diamond", "◆")];

/// The charts, and sentences about those that the run is too short for.
pub(super) fn charts(
    folder: &Folder,
    disciplines: &Disciplines,
    ports: &[&str],
) -> (Vec<Chart>, Vec<String>) {
    let measured = |metric: &str| {
        folder.table.rows.iter().any(|row| row.metrics.iter().any(|(name, _)| name.ends_with(metric)))
    };
    let mut found = Vec::new();
    if measured("arrivals_idc_1ms") {
        found.extend(ports.iter().map(|port| dispersion(folder, disciplines, port)));
    }
    if measured(".hurst") {
        found.push(hurst(folder, disciplines));
    }
    let (mut charts, mut missing) = (Vec::new(), Vec::new());
    for chart in found {
        chart.map_or_else(|words| missing.push(words), |chart| charts.push(chart));
    }
    (charts, missing)
}

/// The index of dispersion against the length of the window, or a sentence if it was not measured.
fn dispersion(folder: &Folder, disciplines: &Disciplines, port: &str) -> Result<Chart, String> {
    let title = at_port("Burstiness", port, folder);
    let several = folder.manifest.measured.ports.len() > 1;
    let table: Table = if several { folder.table.at(port) } else { folder.table.clone() };
    let mut columns: Vec<_> = ["discipline", "stream", "window", "index"].map(|name| (name, vec![])).into();
    let mut found = Vec::new();
    for row in &table.rows {
        for (stream, (prefix, _)) in STREAMS.iter().enumerate() {
            for (window, length) in WINDOWS {
                // A perfectly steady stream has 0, which a logarithmic axis does not have.
                let index = row.mean(&format!("{prefix}_idc_{window}")).filter(|index| *index > 0.0);
                let Some(index) = index else { continue };
                let cells = [
                    json!(disciplines.name(&row.qdisc)),
                    json!(stream),
                    number(length.as_s()),
                    number(index),
                ];
                columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
                found.push(index);
            }
        }
    }
    if found.is_empty() {
        return Err(format!("{title}: too few packets arrived within the measurement interval."));
    }
    let caption = format!(
        "Index of dispersion: the variance of the packets in a window over their mean, for windows of 1 ms to 1 s ({}; both axes are \
         logarithmic). Poisson arrivals have 1 at every length, a steady stream has 0, batches of k packets have k; a line that \
         keeps rising is burstiness that does not average out. First: arrivals at the port. Second: departures, separately for each \
         next hop of the packets, mean over the packets: the arrivals of the next queues. With equal arrivals, lower departures \
         are better.",
        over_seeds(folder)
    );
    let (least, most) = extent(found.into_iter());
    let panel = |(stream, (_, what)): (usize, &(&str, &str))| {
        let mut encoding = json!({
            "x": { "field": "window", "type": "quantitative", "title": "window (s)" },
            "y": { "field": "index", "type": "quantitative", "title": "index of dispersion" },
            "color": disciplines.colour(), "strokeDash": disciplines.dash(), "strokeWidth": disciplines.line_width(),
        });
        logarithmic(&mut encoding["x"], 0.001, 1.0, PLAIN);
        logarithmic(&mut encoding["y"], least.min(1.0), most.max(1.0), PLAIN);
        encoding["tooltip"] = json!([{ "field": "discipline" }, { "field": "window", "title": "window (s)" },
                                     { "field": "index", "title": "index of dispersion" }]);
        let spec = json!({
            "data": { "name": "dispersion" },
            "height": 260,
            "transform": [{ "filter": format!("datum.stream === {stream}") }],
            "layer": [
                { "mark": { "type": "rule", "strokeDash": [3, 3], "color": "var(--faint)" },
                  "encoding": { "y": { "datum": 1, "type": "quantitative" } } },
                { "mark": { "type": "line", "point": { "filled": true, "size": 40 } }, "encoding": encoding },
            ],
        });
        Plot { title: (*what).to_owned(), spec, ..Plot::default() }
    };
    Ok(Chart {
        title,
        caption,
        keys: vec![disciplines.key(&folder.disciplines(), true)],
        columns: 2,
        panels: STREAMS.iter().enumerate().map(panel).collect(),
        data: data([("dispersion", columns)]),
        ..Chart::default()
    })
}

/// The estimates of the Hurst parameter of every run, by source, or a sentence if there are none.
fn hurst(folder: &Folder, disciplines: &Disciplines) -> Result<Chart, String> {
    let title = "Self-similarity of the traffic".to_owned();
    let measured = &folder.manifest.measured;
    let bins = ((measured.until_s - measured.from_s) / BIN.as_s()).round() as usize;
    let Some(scales) = Scales::of(bins) else {
        return Err(format!(
            "The measurement interval is too short to estimate the self-similarity of the traffic, which needs {} s.",
            number(FEWEST as f64 * BIN.as_s())
        ));
    };
    let mut columns: Vec<_> =
        ["discipline", "source", "estimator", "hurst"].map(|name| (name, vec![])).into();
    let mut seen = BTreeSet::new();
    let mut sources: Vec<&str> = Vec::new();
    for source in measured.sources.iter().filter(|source| seen.insert(source.as_str())) {
        for row in &folder.table.rows {
            for metric in ESTIMATORS {
                let metric = format!("src.{source}.{metric}");
                let estimates = row.metric(&metric).into_iter();
                for value in estimates.flat_map(|found| found.per_seed.iter().flatten()) {
                    if sources.last() != Some(&source.as_str()) {
                        sources.push(source);
                    }
                    let cells = [
                        json!(disciplines.name(&row.qdisc)),
                        json!(source),
                        json!(short_label(&metric)),
                        number(*value),
                    ];
                    columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
                }
            }
        }
    }
    if sources.is_empty() {
        return Err("No source sent enough to estimate the self-similarity of its traffic.".to_owned());
    }
    let seconds = |(first, last): (usize, usize)| {
        let [first, last] = [first, last].map(|bins| number(bins as f64 * BIN.as_s()));
        format!("{first} s to {last} s")
    };
    let caption = format!(
        "The Hurst parameter of the packets that each source sent per 10 ms: 0.5 (dashed) is traffic without memory, such as Poisson \
         streams, whose bursts average out; towards 1 it is bursty on every time scale. Each dot is an estimate of one run ({}), \
         by one of three methods: rescaled range over {}, variance-time over {}, Haar wavelets over {}. Every one of them errs, \
         by 0.05 on noise that is exactly self-similar and by more on traffic; a sum of heavy-tailed on/off sources spreads over 0.2 \
         from run to run. So one run proves little; what several runs and methods agree on counts, and their median is in the \
         metrics.",
        over_seeds(folder),
        seconds(scales.rescaled_range),
        seconds(scales.variance_time),
        seconds(scales.wavelet),
    );
    let names = ESTIMATORS.map(|metric| short_label(&format!("src.{}.{metric}", sources[0])));
    let spec = json!({
        "data": { "name": "hurst" },
        "height": 18 * sources.len() * folder.table.rows.len(),
        "layer": [
            { "mark": { "type": "rule", "strokeDash": [3, 3], "color": "var(--faint)" },
              "encoding": { "x": { "datum": 0.5, "type": "quantitative" } } },
            { "mark": { "type": "point", "filled": true, "size": 60, "opacity": 0.7 },
              "encoding": {
                "x": { "field": "hurst", "type": "quantitative", "title": "Hurst parameter",
                       "scale": { "zero": false, "nice": true }, "axis": { "format": PLAIN, "tickCount": 7 } },
                "y": { "field": "source", "type": "nominal", "title": null, "scale": { "domain": sources },
                       "axis": { "labelLimit": 190, "ticks": false, "labelPadding": 8 } },
                "yOffset": { "field": "discipline", "type": "nominal", "sort": null },
                "color": disciplines.colour(),
                "shape": { "field": "estimator", "type": "nominal", "title": null,
                           "scale": { "domain": names, "range": GLYPHS.map(|(shape, _)| shape) }, "legend": null },
                "tooltip": [{ "field": "source" }, { "field": "discipline" }, { "field": "estimator" }, { "field": "hurst" }],
              } },
        ],
    });
    let estimators = names.iter().zip(GLYPHS).map(|(name, (_, glyph))| Swatch::shaped(name, glyph));
    Ok(Chart {
        title,
        caption,
        keys: vec![disciplines.key(&folder.disciplines(), false), Key::of("estimator", estimators.collect())],
        panels: vec![Plot { spec, ..Plot::default() }],
        data: data([("hurst", columns)]),
        ..Chart::default()
    })
}
