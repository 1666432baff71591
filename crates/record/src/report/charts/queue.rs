//! Queue length over time.

use giveway_document::axis::PLAIN;
use giveway_document::chart::Chart;
use giveway_document::columns::number;
use serde_json::json;

use super::frame::{Disciplines, Sides, at_port, data, hover, panels, side_by_side, warmup_rule};
use crate::report::error::ReportError;
use crate::report::read::Folder;
use crate::report::series::pixel_columns;

pub(super) fn charts(
    folder: &Folder,
    disciplines: &Disciplines,
    ports: &[&str],
) -> Result<Vec<Chart>, ReportError> {
    let each = ports.iter().map(|port| chart(folder, disciplines, port)).collect::<Result<Vec<_>, _>>()?;
    Ok(each.into_iter().flatten().collect())
}

/// The queue of a port; `None` if it was not sampled.
fn chart(folder: &Folder, disciplines: &Disciplines, port: &str) -> Result<Option<Chart>, ReportError> {
    let title = at_port("Queue length over time", port, folder);
    let specs = folder.disciplines();
    // One column for each pixel of a panel.
    let pixels = if specs.len() > 3 { 400 } else { 860 };
    let until = folder.manifest.measured.until_s;
    let mut columns: Vec<_> =
        ["discipline", "time", "least", "median", "most"].map(|name| (name, vec![])).into();
    let (mut samples, mut longest) = (0, 0.0_f64);
    for spec in &specs {
        let queue = folder.queue(spec, port)?;
        samples = samples.max(queue.len());
        longest = queue.iter().map(|(_, packets)| *packets).fold(longest, f64::max);
        for column in pixel_columns(&queue, 0.0, until, pixels) {
            let cells = [column.at, column.least, column.median, column.most].map(number);
            columns[0].1.push(json!(disciplines.name(spec)));
            columns[1..].iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
    }
    if samples == 0 {
        return Ok(None);
    }
    let seed = specs.first().and_then(|spec| folder.first_seed(spec)).unwrap_or_default();
    let reduced = if samples > pixels {
        format!(
            "{samples} samples are reduced to {pixels} columns: the line is the median of a column, and the band reaches from its \
             lowest to its highest sample"
        )
    } else {
        format!("All {samples} samples are drawn")
    };
    let caption = format!(
        "Backlog of the port in packets, of seed {seed}. {reduced}.{} A queue that absorbs bursts and is short between them is \
         good. A standing queue delays every flow, unless the discipline is fair: then it delays only the flows that fill it.",
        if folder.manifest.measured.from_s > 0.0 {
            " The measurement interval begins at the dashed line."
        } else {
            ""
        }
    );
    let names: Vec<&str> = specs.iter().map(|spec| disciplines.name(spec)).collect();
    let panels = panels(&names, "queue", (0.0, until), Sides::Left, |_, x| {
        // The margin above keeps the labels of the axis inside the panel.
        let domain = json!([0, number(longest.max(1.0) * 1.1)]);
        let y = |field| {
            json!({ "field": field, "type": "quantitative", "title": "packets",
                    "scale": { "domain": domain, "nice": false }, "axis": { "tickCount": 4, "format": PLAIN } })
        };
        let mut layers = vec![
            json!({ "mark": { "type": "area", "opacity": 0.3 },
                    "encoding": { "x": x, "y": y("least"), "y2": { "field": "most" }, "color": disciplines.colour() } }),
            json!({ "mark": { "type": "line", "strokeWidth": 1.3 },
                    "encoding": { "x": x, "y": y("median"), "color": disciplines.colour() } }),
        ];
        layers.push(hover(x, &y("median"), &[("least", "least"), ("most", "most")]));
        layers.extend(warmup_rule(folder));
        layers
    });
    Ok(Some(Chart {
        title,
        caption,
        keys: vec![disciplines.key(&specs, false)],
        columns: side_by_side(panels.len()),
        panels,
        data: data([("queue", columns)]),
        ..Chart::default()
    }))
}
