//! Flow completion time against size.

use std::collections::BTreeMap;

use giveway_document::axis::{PLAIN, extent, logarithmic};
use giveway_document::chart::{Chart, Plot};
use giveway_document::columns::{number, thinned};
use giveway_document::{Cell, Sheet};
use giveway_measure::figures::{NumberStyle, TIME};
use serde_json::json;

use super::frame::{Disciplines, at_port, data, hover, over_seeds};
use crate::report::error::ReportError;
use crate::report::read::Folder;
use crate::report::series::{BIN_NEEDS, BINS_PER_DECADE, Median, medians_by_size};

/// Points of all disciplines together.
const MAX_POINTS: usize = 3_000;
/// Transfers of at most this number of sizes are a table.
const FEW_SIZES: usize = 5;

/// A chart for each direction if all flows cross one of two opposite ports, and one chart otherwise.
pub(super) fn charts(folder: &Folder, disciplines: &Disciplines) -> Result<Vec<Chart>, ReportError> {
    match folder.opposite() {
        Some(directions) => {
            let each = directions.iter().map(|(port, from)| chart(folder, disciplines, Some((port, from))));
            Ok(each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
        None => Ok(chart(folder, disciplines, None)?.into_iter().collect()),
    }
}

/// The medians by size as a table if the transfers have a few sizes only; `None` if they have more.
fn few(
    folder: &Folder,
    disciplines: &Disciplines,
    direction: Option<(&str, &str)>,
) -> Result<Option<Sheet>, ReportError> {
    let mut by_size: BTreeMap<u64, Vec<Vec<f64>>> = BTreeMap::new();
    let specs = folder.disciplines();
    for (at, spec) in specs.iter().enumerate() {
        for (size, time) in folder.completions(spec, direction.map(|(_, from)| from))? {
            let times = by_size.entry(size as u64).or_insert_with(|| vec![Vec::new(); specs.len()]);
            times[at].push(time);
        }
        if by_size.len() > FEW_SIZES {
            return Ok(None);
        }
    }
    let cell = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len().saturating_sub(1) / 2);
        Cell::plain(
            median.map_or("-".to_owned(), |time| format!("{} ({})", TIME.text(*time, false), times.len())),
        )
    };
    let row = |(size, mut times): (u64, Vec<Vec<f64>>)| {
        let size = NumberStyle::of("bytes_incomplete").text(size as f64, false);
        [Cell::plain(size)].into_iter().chain(times.iter_mut().map(cell)).collect()
    };
    let names = specs.iter().map(|spec| disciplines.name(spec).to_owned());
    Ok(Some(Sheet {
        caption: String::new(),
        head: ["size".to_owned()].into_iter().chain(names).collect(),
        rows: by_size.into_iter().map(row).collect(),
    }))
}

/// The chart of all transfers, or of those from a node, which cross a port; `None` if none completed.
fn chart(
    folder: &Folder,
    disciplines: &Disciplines,
    direction: Option<(&str, &str)>,
) -> Result<Option<Chart>, ReportError> {
    let title = match direction {
        Some((port, _)) => at_port("Flow completion time by size", port, folder),
        None => "Flow completion time by size".to_owned(),
    };
    let mut points = vec![("discipline", vec![]), ("size", vec![]), ("time", vec![])];
    let mut medians = points.clone();
    medians.push(("stretch", vec![]));
    let (mut all, mut shown) = (0, 0);
    let (mut sizes, mut times) = (Vec::new(), Vec::new());
    let specs = folder.disciplines();
    let each = MAX_POINTS / specs.len().max(1);
    for spec in specs {
        let completions = folder.completions(spec, direction.map(|(_, from)| from))?;
        // A logarithmic axis has no zero.
        let completions: Vec<(f64, f64)> =
            completions.into_iter().filter(|(size, time)| *size > 0.0 && *time > 0.0).collect();
        let kept = thinned(&completions, each);
        sizes.extend(kept.iter().map(|(size, _)| *size));
        times.extend(kept.iter().map(|(_, time)| *time));
        all += completions.len();
        shown += kept.len();
        for (size, time) in kept {
            let cells = [json!(disciplines.name(spec)), number(size), number(time)];
            points.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
        for Median { size, time, stretch } in medians_by_size(&completions) {
            let cells = [json!(disciplines.name(spec)), number(size), number(time), json!(stretch)];
            medians.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
    }
    if all == 0 {
        return Ok(None);
    }
    // A table says more than a cloud of a handful of points.
    if let Some(sheet) = few(folder, disciplines, direction)? {
        let caption = format!(
            "The median flow completion time of the transfers of each size that started within the measurement interval and completed \
             ({}), with their number in brackets.",
            over_seeds(folder)
        );
        return Ok(Some(Chart { title, caption, sheet: Some(sheet), ..Chart::default() }));
    }
    let about_points = if shown == all {
        format!("Each point is one of the {all} transfers")
    } else {
        format!("Points are {shown} of the {all} transfers, thinned evenly over the sizes")
    };
    let caption = format!(
        "{about_points} that started within the measurement interval and completed ({}). Lines connect the medians of neighbouring size bins, \
         {BINS_PER_DECADE:.0} per decade, with at least {BIN_NEEDS} transfers each; where a bin has fewer, the line has a gap. Both axes are logarithmic. Lower is better, above all \
         on the left: small transfers should not wait for large ones. Transfers that did not complete are not drawn; the \
         table counts them.",
        over_seeds(folder)
    );
    let mut axes = json!({
        "x": { "field": "size", "type": "quantitative", "title": "size of the transfer (bytes)" },
        "y": { "field": "time", "type": "quantitative", "title": "flow completion time (s)" },
    });
    let ((smallest, largest), (fastest, slowest)) = (extent(sizes.into_iter()), extent(times.into_iter()));
    logarithmic(&mut axes["x"], smallest, largest, "~s");
    logarithmic(&mut axes["y"], fastest, slowest, PLAIN);
    let over = hover(&axes["x"], &axes["y"], &[("discipline", "discipline")]);
    let (mut of_points, mut of_lines) = (axes.clone(), axes);
    of_points["color"] = disciplines.colour();
    of_lines["color"] = disciplines.colour();
    of_lines["strokeDash"] = disciplines.dash();
    of_lines["strokeWidth"] = disciplines.line_width();
    of_lines["detail"] = json!({ "field": "stretch", "type": "nominal" });
    // A bin without neighbours has no line.
    let mut dots = of_points.clone();
    dots["tooltip"] = over["encoding"]["tooltip"].clone();
    let spec = json!({
        "height": 380,
        "layer": [
            { "data": { "name": "points" }, "encoding": of_points,
              "mark": { "type": "point", "filled": true, "size": 12, "opacity": 0.4, "aria": false } },
            { "data": { "name": "medians" }, "encoding": of_lines, "mark": "line" },
            { "data": { "name": "medians" }, "encoding": dots,
              "mark": { "type": "point", "filled": true, "size": 40, "opacity": 1 } },
        ],
    });
    Ok(Some(Chart {
        title,
        caption,
        keys: vec![disciplines.key(&folder.disciplines(), true)],
        panels: vec![Plot { spec, ..Plot::default() }],
        data: data([("points", points), ("medians", medians)]),
        ..Chart::default()
    }))
}
