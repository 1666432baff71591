//! The key figures side by side, with their intervals; of one folder or of several. If several ports are
//! measured, such as both directions of a link, each port has its own.

use giveway_document::axis::{PLAIN, logarithmic};
use giveway_document::chart::{Chart, Key, Plot, Swatch};
use giveway_document::columns::number;
use giveway_measure::figures::NumberStyle;
use giveway_measure::{Better, DisciplineRow, Statistic, Table, better, is_carried, named};
use serde_json::json;

use super::frame::{Disciplines, MAX_PORTS, at_port, data};
use crate::report::read::Folder;

/// The key figures of a network, and of a switch.
pub(in super::super) const FIGURES: [&str; 17] = [
    "fct_p50_s",
    "fct_p95_s",
    "fct_p99_s",
    "page_load_p50_s",
    "page_load_p95_s",
    "voice_delay_p99_s",
    "small_sojourn_p99_s",
    "goodput_bps",
    "flows_incomplete",
    "short_wait_mean_slots",
    "short_wait_p99_slots",
    "long_wait_mean_slots",
    "long_wait_p99_slots",
    "throughput",
    "output_blocked",
    "output_unmatched",
    "backlog_cells",
];

/// The axis is logarithmic if the ratio of two means is larger.
const WIDE: f64 = 20.0;
const PANELS_PER_ROW: usize = 3;

/// The shapes of folders, with a character that looks like each.
const GLYPHS: [(&str, &str); 6] = [
    ("circle", "●"),
    ("square", "■"),
    ("diamond", "◆"),
    ("triangle-up", "▲"),
    ("triangle-down", "▼"),
    ("cross", "✚"),
];

/// A chart for each port if all folders measure the same few ports, and one chart otherwise.
pub(in super::super) fn charts(folders: &[Folder], disciplines: &Disciplines) -> Vec<Chart> {
    let title =
        |port: String| if port.is_empty() { "Key figures".to_owned() } else { format!("Key figures{port}") };
    let each = per_port(folders).into_iter();
    each.filter_map(|(port, tables)| chart(title(port), folders, &tables, disciplines)).collect()
}

/// The tables of the folders for each port, with its words, if all folders measure the same few ports;
/// otherwise those over all ports.
pub(in super::super) fn per_port(folders: &[Folder]) -> Vec<(String, Vec<Table>)> {
    let ports = folders.first().map(|folder| folder.manifest.measured.ports.clone()).unwrap_or_default();
    let same = folders.iter().all(|folder| folder.manifest.measured.ports == ports);
    let known = |row: &DisciplineRow| row.mean(FIGURES[0]).is_some();
    // A port may have no transfers of its own, as in a chain of links.
    let of_port =
        |port: &String| -> Vec<Table> { folders.iter().map(|folder| folder.table.at(port)).collect() };
    let each = (2..=MAX_PORTS).contains(&ports.len())
        && same
        && ports.iter().any(|port| of_port(port).iter().flat_map(|table| &table.rows).any(known));
    if !each {
        return vec![(String::new(), folders.iter().map(|folder| folder.table.clone()).collect())];
    }
    ports.iter().map(|port| (at_port("", port, &folders[0]), of_port(port))).collect()
}

/// The key figures of these tables, one for each folder; `None` if none was measured.
fn chart(title: String, folders: &[Folder], tables: &[Table], disciplines: &Disciplines) -> Option<Chart> {
    let pairs = folders.iter().zip(tables);
    let rows: Vec<(&Folder, &DisciplineRow)> =
        pairs.flat_map(|(folder, table)| table.rows.iter().map(move |row| (folder, row))).collect();
    // A quantile needs enough values: the table has a dash in its place otherwise.
    let carried = |row: &DisciplineRow, metric: &str| row.mean(metric).is_some() && is_carried(row, metric);
    let known = |metric: &str| rows.iter().any(|(_, row)| carried(row, metric));
    let figures: Vec<_> = FIGURES.into_iter().filter(|metric| known(metric)).collect();
    if figures.is_empty() {
        return None;
    }
    let mut columns: Vec<_> =
        ["figure", "folder", "discipline", "mean", "low", "high"].map(|name| (name, vec![])).into();
    let mut panels: Vec<Plot> = Vec::new();
    for (at, metric) in figures.into_iter().enumerate() {
        let rows: Vec<&(&Folder, &DisciplineRow)> =
            rows.iter().filter(|(_, row)| carried(row, metric)).collect();
        let means: Vec<f64> = rows.iter().filter_map(|(_, row)| row.mean(metric)).collect();
        let mut names: Vec<&str> = rows.iter().map(|(_, row)| row.qdisc.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let (one, unit) = NumberStyle::of(metric).unit(means.iter().copied());
        let axis = Axis::new(&means, one);
        for (folder, row) in &rows {
            let Some((estimate, mean)) = row.metric(metric).and_then(|found| Some((found, found.mean?)))
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
        let direction = match better(metric) {
            Better::Low => "lower is better",
            Better::High => "higher is better",
            Better::Neither => "",
        };
        let (noun, statistic) = noun(metric);
        let some = |parts: &[&str], between: &str| {
            let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
            parts.join(between)
        };
        let panel = Panel {
            at,
            title: noun,
            subtitle: some(&[&some(&[&statistic, unit], ", "), direction], "; "),
            axis,
            folders: folders.iter().map(|folder| folder.name.clone()).collect(),
            disciplines: names.len(),
        };
        panels.push(panel.plot(disciplines));
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
    let caption = format!("{intervals}{rows_of_folders} An axis with very different values is logarithmic.");
    let mut specs: Vec<&str> = Vec::new();
    for (_, row) in &rows {
        if !specs.contains(&row.qdisc.as_str()) {
            specs.push(&row.qdisc);
        }
    }
    let mut keys = vec![disciplines.key(&specs, false)];
    if folders.len() > 1 {
        let shaped =
            |(at, folder): (usize, &Folder)| Swatch::shaped(&folder.name, GLYPHS[at % GLYPHS.len()].1);
        keys.push(Key::of("folder", folders.iter().enumerate().map(shaped).collect()));
    }
    Some(Chart {
        title,
        caption,
        keys,
        columns: PANELS_PER_ROW,
        panels,
        data: data([("figures", columns)]),
        ..Chart::default()
    })
}

/// The noun of a metric as a title, and its statistic.
pub(in super::super) fn noun(metric: &str) -> (String, String) {
    let Some(named) = named(metric) else { return (metric.to_owned(), String::new()) };
    let noun = named.noun();
    let statistic = match named.statistic {
        Some(Statistic::Count) => "number per run".to_owned(),
        statistic => statistic.map_or_else(String::new, Statistic::name),
    };
    (format!("{}{}", noun[..1].to_uppercase(), &noun[1..]), statistic)
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
    title: String,
    subtitle: String,
    axis: Axis,
    /// The names of the folders.
    folders: Vec<String>,
    /// The number of disciplines with a value.
    disciplines: usize,
}

impl Panel {
    fn plot(&self, disciplines: &Disciplines) -> Plot {
        let several = self.folders.len() > 1;
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
        let y = json!({
            "field": "discipline", "type": "nominal", "title": null, "sort": disciplines.names,
            "axis": { "labelLimit": 130, "minExtent": 70, "ticks": false, "domain": false, "labelPadding": 8 },
        });
        let mut dot = json!({ "x": x("mean"), "y": y, "color": disciplines.colour() });
        let mut bar =
            json!({ "x": x("low"), "x2": { "field": "high" }, "y": y, "color": disciplines.colour() });
        if several {
            let offset = json!({ "field": "folder", "type": "nominal", "sort": null });
            dot["yOffset"] = offset.clone();
            bar["yOffset"] = offset;
            let shapes: Vec<&str> = (0..self.folders.len()).map(|at| GLYPHS[at % GLYPHS.len()].0).collect();
            dot["shape"] = json!({ "field": "folder", "type": "nominal", "sort": null, "legend": null,
                                   "scale": { "domain": self.folders, "range": shapes } });
        }
        dot["tooltip"] =
            json!([{ "field": "discipline" }, { "field": "mean" }, { "field": "low" }, { "field": "high" }]);
        let each = if several { 14 * self.folders.len() + 6 } else { 24 };
        let spec = json!({
            "data": { "name": "figures" },
            "height": each * self.disciplines,
            "transform": [{ "filter": format!("datum.figure === {}", self.at) }],
            "layer": [
                { "mark": { "type": "rule", "strokeWidth": 2.5, "opacity": 0.6, "clip": true }, "encoding": bar },
                { "mark": { "type": "point", "filled": true, "size": 70, "opacity": 1 }, "encoding": dot },
            ],
        });
        Plot { title: self.title.clone(), subtitle: self.subtitle.clone(), spec, ..Plot::default() }
    }
}
