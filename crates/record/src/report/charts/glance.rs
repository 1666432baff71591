//! The key figures side by side, with their intervals; of one folder or of several.

use serde_json::{Value, json};

use super::{Chart, Disciplines, Drawn, plot};
use crate::figures::{Kind, RATE, TIME};
use crate::report::read::Folder;
use crate::report::series::number;
use crate::table::Row;

/// Metric, title, whether less is better, kind.
const FIGURES: [(&str, &str, bool, Kind); 6] = [
    ("fct_p50_s", "completion time, median", true, TIME),
    ("fct_p95_s", "completion time, 95th percentile", true, TIME),
    ("fct_p99_s", "completion time, 99th percentile", true, TIME),
    ("small_sojourn_p99_s", "waiting time of small packets, 99th percentile", true, TIME),
    ("goodput_bps", "goodput", false, RATE),
    ("flows_incomplete", "unfinished transfers", true, Kind::Count("")),
];

/// Beyond this ratio between two means the axis is logarithmic.
const WIDE: f64 = 20.0;
const PANELS_PER_ROW: usize = 3;
/// Of one panel, in pixels.
const PANEL_WIDTH: u32 = 230;

pub(in super::super) fn chart(folders: &[Folder], disciplines: &Disciplines) -> Chart {
    let title = "Key figures".to_owned();
    let rows: Vec<(&Folder, &Row)> =
        folders.iter().flat_map(|folder| folder.table.rows.iter().map(move |row| (folder, row))).collect();
    let known = |metric: &str| rows.iter().any(|(_, row)| row.mean(metric).is_some());
    let figures: Vec<_> = FIGURES.iter().filter(|(metric, ..)| known(metric)).collect();
    if figures.is_empty() {
        let words = "None of the key figures was measured.".to_owned();
        return Chart { title, caption: String::new(), drawn: Drawn::Words(words) };
    }
    let mut columns: Vec<_> =
        ["figure", "folder", "discipline", "mean", "low", "high"].map(|name| (name, vec![])).into();
    let mut panels: Vec<Value> = Vec::new();
    for (at, (metric, what, less, kind)) in figures.iter().enumerate() {
        let means: Vec<f64> = rows.iter().filter_map(|(_, row)| row.mean(metric)).collect();
        let (one, unit) = kind.unit(means.iter().copied());
        let axis = Axis::new(&means, one);
        for (folder, row) in &rows {
            let Some((estimate, mean)) = row.metric(metric).and_then(|found| Some((found, found.mean?))) else { continue };
            let half = estimate.ci95.unwrap_or(0.0);
            let cells = [
                json!(at),
                json!(folder.name),
                json!(disciplines.name(&row.qdisc)),
                number(mean / one),
                number(((mean - half) / one).max(axis.least)),
                number((mean + half) / one),
            ];
            columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
        let unit = if unit.is_empty() { "count" } else { unit };
        let better = if *less { "less is better" } else { "more is better" };
        let names = at % PANELS_PER_ROW == 0;
        panels.push(panel(at, what, &format!("{unit}, {better}"), &axis, folders.len() > 1, names, disciplines));
    }
    let folders_told = match folders.len() {
        1 => String::new(),
        count => format!(" Each discipline has a row for each of the {count} folders, told apart by the shape of the dot."),
    };
    let seeds: usize = rows.iter().map(|(_, row)| row.seeds.len()).min().unwrap_or(0);
    let intervals = if seeds > 1 {
        "Dots are means over the seeds, bars their 95 % intervals; where bars overlap, a difference may be chance."
    } else {
        "Where there is one seed, a dot is its value and nothing is known of its uncertainty."
    };
    let caption = format!(
        "{intervals}{folders_told} An axis with very different values is logarithmic, with powers of ten. Good is to the left, \
         except for goodput."
    );
    let spec = json!({
        "data": { "name": "figures" },
        "concat": panels, "columns": PANELS_PER_ROW, "spacing": { "row": 24, "column": 24 },
        "resolve": { "legend": { "color": "shared", "shape": "shared" } },
    });
    Chart { title, caption, drawn: plot(spec, [("figures", columns)]) }
}

/// How the axis of a figure is divided.
struct Axis {
    log: bool,
    /// Where it begins.
    least: f64,
}

impl Axis {
    fn new(means: &[f64], one: f64) -> Axis {
        let least = means.iter().copied().fold(f64::INFINITY, f64::min) / one;
        let most = means.iter().copied().fold(0.0, f64::max) / one;
        let log = least > 0.0 && most / least > WIDE;
        Axis { log, least: if log { libm::pow(10.0, libm::log10(least * 0.7).floor()) } else { 0.0 } }
    }

    fn scale(&self) -> Value {
        if self.log { json!({ "type": "log", "domainMin": self.least }) } else { json!({ "zero": true, "nice": true }) }
    }
}

fn panel(
    at: usize,
    what: &str,
    unit: &str,
    axis: &Axis,
    several: bool,
    names: bool,
    disciplines: &Disciplines,
) -> Value {
    let x = |field: &str| {
        let ticks = if axis.log { json!({ "format": "~g", "tickCount": 4 }) } else { json!({ "format": "~g", "tickCount": 5 }) };
        json!({ "field": field, "type": "quantitative", "title": unit, "scale": axis.scale(), "axis": ticks })
    };
    let y = json!({
        "field": "discipline", "type": "nominal", "title": null, "scale": { "domain": disciplines.names },
        "axis": { "labels": names, "labelLimit": 190, "ticks": false, "domain": false, "grid": true },
    });
    let mut dot = json!({ "x": x("mean"), "y": y, "color": disciplines.colour(false) });
    let mut bar = json!({ "x": x("low"), "x2": { "field": "high" }, "y": y, "color": disciplines.colour(false) });
    if several {
        let offset = json!({ "field": "folder", "type": "nominal", "sort": null });
        dot["yOffset"] = offset.clone();
        bar["yOffset"] = offset;
        dot["shape"] = json!({ "field": "folder", "type": "nominal", "sort": null, "title": null,
                               "legend": { "orient": "top", "labelLimit": 300, "columns": 4 } });
    }
    dot["tooltip"] = json!([{ "field": "discipline" }, { "field": "mean" }, { "field": "low" }, { "field": "high" }]);
    let step = if several { json!({ "step": 14, "for": "position" }) } else { json!({ "step": 24 }) };
    json!({
        "title": { "text": what, "anchor": "start" },
        "width": PANEL_WIDTH, "height": step,
        "transform": [{ "filter": format!("datum.figure === {at}") }],
        "layer": [
            { "mark": { "type": "rule", "strokeWidth": 2.5, "opacity": 0.6, "clip": true }, "encoding": bar },
            { "mark": { "type": "point", "filled": true, "size": 70, "opacity": 1 }, "encoding": dot },
        ],
    })
}
