//! A switch: the use of the slots of its outputs, the backlog over time, and waits against the load of
//! several folders.

use giveway_document::axis::{PLAIN, extent, logarithmic};
use giveway_document::chart::{Chart, Key, Plot, Swatch};
use giveway_document::columns::number;
use giveway_measure::{DisciplineRow, label, short_label};
use serde_json::json;

use super::frame::{Disciplines, data, hover, over_seeds};
use crate::report::error::ReportError;
use crate::report::read::Folder;

/// The uses of a slot of an output, with their colours: cells that arrived, and the reasons for none.
const USES: [(&str, &str); 6] = [
    ("output_short", "#4477aa"),
    ("output_long", "#66ccee"),
    ("output_blocked", "#ee6677"),
    ("output_held", "#aa3377"),
    ("output_unmatched", "#ccbb44"),
    ("output_idle", "#bbbbbb"),
];
/// The metrics against the load.
const BY_LOAD: [&str; 4] = ["short_wait_mean_slots", "long_wait_mean_slots", "throughput", "output_blocked"];
/// Two loads that differ less than this are one.
const SAME_LOAD: f64 = 0.005;

/// The charts of one folder.
pub(super) fn charts(folder: &Folder, disciplines: &Disciplines) -> Result<Vec<Chart>, ReportError> {
    Ok(slots(folder, disciplines).into_iter().chain(backlog(folder, disciplines)?).collect())
}

/// The shares of the slots of the outputs by their use.
fn slots(folder: &Folder, disciplines: &Disciplines) -> Option<Chart> {
    let mut columns: Vec<_> = ["discipline", "use", "place", "share"].map(|name| (name, vec![])).into();
    let mut used = Vec::new();
    for (place, (metric, colour)) in USES.into_iter().enumerate() {
        for row in &folder.table.rows {
            let Some(share) = row.mean(metric).filter(|share| *share > 0.0) else { continue };
            if used.last().is_none_or(|(known, _)| *known != short_label(metric)) {
                used.push((short_label(metric), colour));
            }
            let name = disciplines.name(&row.qdisc);
            let cells = [json!(name), json!(short_label(metric)), json!(place), number(share)];
            columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
    }
    if used.is_empty() {
        return None;
    }
    let names: Vec<&str> = folder.table.rows.iter().map(|row| disciplines.name(&row.qdisc)).collect();
    let (uses, colours): (Vec<&str>, Vec<&str>) =
        used.iter().map(|(name, colour)| (name.as_str(), *colour)).unzip();
    let spec = json!({
        "data": { "name": "slots" },
        "height": 30 * names.len(),
        "mark": { "type": "bar", "height": { "band": 0.7 } },
        "encoding": {
            "y": { "field": "discipline", "type": "nominal", "title": null, "sort": names, "scale": { "domain": names },
                   "axis": { "labelLimit": 260, "ticks": false, "labelPadding": 8, "domain": false, "grid": false } },
            "x": { "field": "share", "type": "quantitative", "title": "share of the outputs' slots", "stack": "zero",
                   "scale": { "domain": [0, 1] }, "axis": { "format": "~%", "tickCount": 6 } },
            "order": { "field": "place", "type": "quantitative" },
            "color": { "field": "use", "type": "nominal", "title": null,
                       "scale": { "domain": uses, "range": colours }, "legend": null },
            "tooltip": [{ "field": "discipline" }, { "field": "use" }, { "field": "share", "format": ".2%" }],
        },
    });
    let caption = format!(
        "The slots of the outputs within the measurement interval, mean over {}. Short and long: a cell of such a packet arrived. \
         Blocked: the output was connected to an input that sent a short packet elsewhere. Held: a short packet took a port of a \
         new match. Unmatched: cells for the output were queued, but it was not matched. Idle: no cell for it was queued. Blocked, \
         held and unmatched slots are lost; the fewer, the more load a switch can carry.",
        over_seeds(folder)
    );
    let entries = used.iter().map(|(name, colour)| Swatch::coloured(name, colour));
    Some(Chart {
        title: "Use of the outputs' slots".to_owned(),
        caption,
        keys: vec![Key::of("use", entries.collect())],
        panels: vec![Plot { spec, ..Plot::default() }],
        data: data([("slots", columns)]),
        ..Chart::default()
    })
}

/// The backlog of the inputs over time, of the first seed.
fn backlog(folder: &Folder, disciplines: &Disciplines) -> Result<Option<Chart>, ReportError> {
    let measured = &folder.manifest.measured;
    let Some(slot_s) = measured.slot_s else { return Ok(None) };
    let mut columns: Vec<_> = ["discipline", "slot", "cells"].map(|name| (name, vec![])).into();
    for spec in folder.disciplines() {
        for (time_s, cells) in folder.gauge(spec, "backlog_cells")? {
            let cells = [json!(disciplines.name(spec)), number(time_s / slot_s), number(cells)];
            columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
    }
    if columns[2].1.iter().all(|cells| cells.as_f64() == Some(0.0)) {
        return Ok(None);
    }
    let specs = folder.disciplines();
    let seed = specs.first().and_then(|spec| folder.first_seed(spec)).unwrap_or_default();
    let x = json!({ "field": "slot", "type": "quantitative", "title": "slot",
                    "scale": { "domain": [measured.from_s / slot_s, measured.until_s / slot_s], "nice": false },
                    "axis": { "tickCount": 6, "format": "~s" } });
    let y = json!({ "field": "cells", "type": "quantitative", "title": "cells",
                    "axis": { "tickCount": 5, "format": PLAIN } });
    let over = hover(&x, &y, &[("discipline", "discipline")]);
    let spec = json!({
        "data": { "name": "backlog" }, "height": 220,
        "layer": [
            { "mark": "line", "encoding": { "x": x, "y": y, "color": disciplines.colour(),
              "strokeDash": disciplines.dash(), "strokeWidth": disciplines.line_width() } },
            over,
        ],
    });
    Ok(Some(Chart {
        title: "Backlog over time".to_owned(),
        caption: format!(
            "Cells in the queues of all inputs at the ends of equal parts of the measurement interval, of seed {seed}. A level line is \
             a stable switch. A line that rises until the end carries less than the load: its waits grow with the length of the run."
        ),
        keys: vec![disciplines.key(&specs, true)],
        panels: vec![Plot { spec, ..Plot::default() }],
        data: data([("backlog", columns)]),
        ..Chart::default()
    }))
}

/// Waits, throughput and blocked slots against the load, of folders with several loads; `None` if they have
/// one.
pub(in super::super) fn by_load(folders: &[Folder], disciplines: &Disciplines) -> Option<Chart> {
    if folders.iter().any(|folder| folder.manifest.measured.slot_s.is_none()) {
        return None;
    }
    let rows = || folders.iter().flat_map(|folder| &folder.table.rows);
    let offered = |row: &DisciplineRow| row.mean("offered");
    let (least, most) = extent(rows().filter_map(offered));
    if most - least <= SAME_LOAD {
        return None;
    }
    let mut columns: Vec<_> = ["discipline", "metric", "load", "value"].map(|name| (name, vec![])).into();
    let mut panels = Vec::new();
    for (at, metric) in BY_LOAD.into_iter().enumerate() {
        let mut values = Vec::new();
        for row in rows() {
            let (Some(load), Some(value)) = (offered(row), row.mean(metric)) else { continue };
            let cells = [json!(disciplines.name(&row.qdisc)), json!(at), number(load), number(value)];
            columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
            values.push(value);
        }
        let (low, high) = extent(values.into_iter());
        if high == 0.0 {
            continue;
        }
        let unit = if metric.ends_with("_slots") { " (slots)" } else { "" };
        let title = label(metric) + unit;
        let mut y = json!({ "field": "value", "type": "quantitative", "title": title,
                            "scale": { "zero": true }, "axis": { "tickCount": 5, "format": PLAIN } });
        let mut filter = format!("datum.metric === {at}");
        if high / low > 20.0 {
            logarithmic(&mut y, low, high, PLAIN);
            filter.push_str(" && datum.value > 0");
        }
        let x = json!({ "field": "load", "type": "quantitative", "title": "offered cells per slot",
                        "scale": { "zero": false }, "axis": { "tickCount": 6, "format": PLAIN } });
        let tooltip = json!([{ "field": "discipline" }, { "field": "load" }, { "field": "value" }]);
        let spec = json!({
            "data": { "name": "loads" }, "height": 240, "transform": [{ "filter": filter }],
            "mark": { "type": "line", "point": { "filled": true, "size": 45 } },
            "encoding": { "x": x, "y": y, "color": disciplines.colour(), "strokeDash": disciplines.dash(),
                          "strokeWidth": disciplines.line_width(), "tooltip": tooltip },
        });
        panels.push(Plot { title: short_title(&title), spec, ..Plot::default() });
    }
    let specs: Vec<&str> = disciplines.iter().map(|(spec, ..)| spec).collect();
    Some(Chart {
        title: "By load".to_owned(),
        caption: "Means over the seeds of each folder, against the load that its inputs were offered. Axes whose values differ much \
                  are logarithmic, and have no zeros. Lower waits are better, and a line of crossed cells that follows the load."
            .to_owned(),
        keys: vec![disciplines.key(&specs, true)],
        columns: 2,
        panels,
        data: data([("loads", columns)]),
        ..Chart::default()
    })
}

/// The title of a panel: the title of its axis without the unit, with the capital of a sentence.
fn short_title(title: &str) -> String {
    let words = title.split(" (").next().unwrap_or(title);
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
