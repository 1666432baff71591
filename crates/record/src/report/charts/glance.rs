//! The key figures side by side, with their intervals; of one folder or of several.

use giveway_document::axis::{PLAIN, logarithmic};
use giveway_document::columns::number;
use giveway_measure::Row;
use giveway_measure::figures::{Kind, RATE, TIME};
use serde_json::{Value, json};

use super::frame::{Chart, Disciplines, plot};
use crate::report::read::Folder;

/// A key figure: its metric, title and quantile. `less` is true if a lower value is better.
struct Figure {
    metric: &'static str,
    what: &'static str,
    quantile: &'static str,
    less: bool,
    kind: Kind,
}

const fn figure(
    metric: &'static str,
    what: &'static str,
    quantile: &'static str,
    less: bool,
    kind: Kind,
) -> Figure {
    Figure { metric, what, quantile, less, kind }
}

const FIGURES: [Figure; 9] = [
    figure("fct_p50_s", "Flow completion time", "median, ", true, TIME),
    figure("fct_p95_s", "Flow completion time", "95th percentile, ", true, TIME),
    figure("fct_p99_s", "Flow completion time", "99th percentile, ", true, TIME),
    figure("page_load_p50_s", "Page load time", "median, ", true, TIME),
    figure("page_load_p95_s", "Page load time", "95th percentile, ", true, TIME),
    figure("voice_delay_p99_s", "Delay of calls", "99th percentile, ", true, TIME),
    figure("small_sojourn_p99_s", "Sojourn time of small packets", "99th percentile, ", true, TIME),
    figure("goodput_bps", "Goodput", "", false, RATE),
    figure("flows_incomplete", "Unfinished transfers", "", true, Kind::Count("number per run")),
];

/// The axis is logarithmic if the ratio of two means is larger.
const WIDE: f64 = 20.0;
const PANELS_PER_ROW: usize = 3;
/// The width of one panel, pixels.
const PANEL_WIDTH: u32 = 250;

pub(in super::super) fn chart(folders: &[Folder], disciplines: &Disciplines) -> Chart {
    let title = "Key figures".to_owned();
    let rows: Vec<(&Folder, &Row)> =
        folders.iter().flat_map(|folder| folder.table.rows.iter().map(move |row| (folder, row))).collect();
    let known = |metric: &str| rows.iter().any(|(_, row)| row.mean(metric).is_some());
    let figures: Vec<_> = FIGURES.iter().filter(|figure| known(figure.metric)).collect();
    if figures.is_empty() {
        let words = "None of the key figures was measured.";
        return Chart::words(title, words);
    }
    let mut columns: Vec<_> =
        ["figure", "folder", "discipline", "mean", "low", "high"].map(|name| (name, vec![])).into();
    let mut panels: Vec<Value> = Vec::new();
    for (at, figure) in figures.iter().enumerate() {
        let means: Vec<f64> = rows.iter().filter_map(|(_, row)| row.mean(figure.metric)).collect();
        let (one, unit) = figure.kind.unit(means.iter().copied());
        let axis = Axis::new(&means, one);
        for (folder, row) in &rows {
            let Some((estimate, mean)) =
                row.metric(figure.metric).and_then(|found| Some((found, found.mean?)))
            else {
                continue;
            };
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
        let better = if figure.less { "lower is better" } else { "higher is better" };
        let panel = Panel {
            at,
            title: figure.what,
            subtitle: format!("{}{unit}; {better}", figure.quantile),
            axis,
            several: folders.len() > 1,
        };
        panels.push(panel.spec(disciplines));
    }
    let rows_of_folders = match folders.len() {
        1 => String::new(),
        count => format!(
            " Each discipline has a row for each of the {count} folders; the shape of the dot shows the folder."
        ),
    };
    let seeds: usize = rows.iter().map(|(_, row)| row.seeds.len()).min().unwrap_or(0);
    let intervals = if seeds > 1 {
        "Dots are means over the seeds, and bars are their 95 % confidence intervals. If bars overlap, a difference may be chance."
    } else {
        "A dot is the value of the only seed. One seed has no confidence interval."
    };
    let caption = format!(
        "{intervals}{rows_of_folders} An axis with very different values is logarithmic. Left is better, \
         except for goodput."
    );
    let spec = json!({
        "data": { "name": "figures" },
        "concat": panels, "columns": PANELS_PER_ROW, "spacing": { "row": 24, "column": 24 },
        "resolve": { "legend": { "color": "shared", "shape": "shared" } },
    });
    Chart { title, caption, key: false, drawn: plot(spec, [("figures", columns)]) }
}

/// The axis of a key figure.
struct Axis {
    log: bool,
    /// The beginning of the axis.
    least: f64,
    /// The end of the axis: the largest mean, with a margin.
    most: f64,
}

impl Axis {
    fn new(means: &[f64], one: f64) -> Axis {
        let least = means.iter().copied().fold(f64::INFINITY, f64::min) / one;
        let most = means.iter().copied().fold(0.0, f64::max) / one;
        let log = least > 0.0 && most / least > WIDE;
        Axis { log, least: if log { least / 1.5 } else { 0.0 }, most: most * 1.5 }
    }
}

/// One key figure of all rows.
struct Panel {
    at: usize,
    title: &'static str,
    subtitle: String,
    axis: Axis,
    /// True for several folders.
    several: bool,
}

impl Panel {
    fn spec(&self, disciplines: &Disciplines) -> Value {
        let x = |field: &str| {
            let mut x = json!({ "field": field, "type": "quantitative", "title": null });
            if self.axis.log {
                logarithmic(&mut x, self.axis.least, self.axis.most, PLAIN);
            } else {
                x["scale"] = json!({ "zero": true, "nice": true });
                x["axis"] = json!({ "format": PLAIN, "tickCount": 4 });
            }
            x
        };
        // Only the first panel of a row has the names of the disciplines.
        let names = self.at.is_multiple_of(PANELS_PER_ROW);
        let y = json!({
            "field": "discipline", "type": "nominal", "title": null, "scale": { "domain": disciplines.names },
            "axis": { "labels": names, "labelLimit": 190, "ticks": false, "domain": false, "labelPadding": 8 },
        });
        let mut dot = json!({ "x": x("mean"), "y": y, "color": disciplines.colour() });
        let mut bar =
            json!({ "x": x("low"), "x2": { "field": "high" }, "y": y, "color": disciplines.colour() });
        if self.several {
            let offset = json!({ "field": "folder", "type": "nominal", "sort": null });
            dot["yOffset"] = offset.clone();
            bar["yOffset"] = offset;
            dot["shape"] = json!({ "field": "folder", "type": "nominal", "sort": null, "title": null,
                                   "legend": { "orient": "top", "labelLimit": 300, "columns": 4,
                                               "symbolFillColor": "var(--soft)", "symbolStrokeColor": "var(--soft)" } });
        }
        dot["tooltip"] =
            json!([{ "field": "discipline" }, { "field": "mean" }, { "field": "low" }, { "field": "high" }]);
        let height =
            if self.several { json!({ "step": 14, "for": "offset" }) } else { json!({ "step": 24 }) };
        json!({
            "title": { "text": self.title, "subtitle": self.subtitle, "anchor": "start", "frame": "group" },
            "width": PANEL_WIDTH, "height": height,
            "transform": [{ "filter": format!("datum.figure === {}", self.at) }],
            "layer": [
                { "mark": { "type": "rule", "strokeWidth": 2.5, "opacity": 0.6, "clip": true }, "encoding": bar },
                { "mark": { "type": "point", "filled": true, "size": 70, "opacity": 1 }, "encoding": dot },
            ],
        })
    }
}
