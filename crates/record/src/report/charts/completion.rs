//! Completion time against size.

use serde_json::json;

use super::{Chart, Disciplines, Drawn, WIDTH, over_seeds, plot};
use crate::report::ReportError;
use crate::report::read::Folder;
use crate::report::series::{BIN_NEEDS, BINS_PER_DECADE, medians_by_size, number, thinned};

/// Points of all disciplines together.
const MOST_POINTS: usize = 3_000;

pub(super) fn chart(folder: &Folder, disciplines: &Disciplines) -> Result<Chart, ReportError> {
    let title = "Completion time by size".to_owned();
    let mut points = vec![("discipline", vec![]), ("size", vec![]), ("time", vec![])];
    let mut medians = points.clone();
    let (mut all, mut shown) = (0, 0);
    let specs = folder.disciplines();
    let each = MOST_POINTS / specs.len().max(1);
    for spec in specs {
        let completions = folder.completions(spec)?;
        // Neither a size nor a time of zero has a place on a logarithmic axis.
        let completions: Vec<(f64, f64)> =
            completions.into_iter().filter(|(size, time)| *size > 0.0 && *time > 0.0).collect();
        let kept = thinned(&completions, each);
        all += completions.len();
        shown += kept.len();
        for (columns, rows) in [(&mut points, kept), (&mut medians, medians_by_size(&completions))] {
            for (size, time) in rows {
                columns[0].1.push(json!(disciplines.name(spec)));
                columns[1].1.push(number(size));
                columns[2].1.push(number(time));
            }
        }
    }
    if all == 0 {
        let words = "No transfer of a known size completed within the measured part, so there are no completion times.";
        return Ok(Chart { title, caption: String::new(), drawn: Drawn::Words(words.to_owned()) });
    }
    let points_told = if shown == all {
        format!("Each point is one of the {all} transfers")
    } else {
        format!("Points are {shown} of the {all} transfers, evenly thinned over the sizes")
    };
    let caption = format!(
        "{points_told} that began in the measured part and completed ({}). Lines join the medians of size bins, \
         {BINS_PER_DECADE:.0} per decade, that hold at least {BIN_NEEDS}. Both axes are logarithmic. Good is low, above all at the \
         left: small transfers should not wait behind large ones. Transfers that did not complete are not here; the table \
         counts them.",
        over_seeds(folder)
    );
    let axes = json!({
        "x": { "field": "size", "type": "quantitative", "title": "size of the transfer (bytes)",
               "scale": { "type": "log", "nice": false, "padding": 8 }, "axis": { "format": "~s" } },
        "y": { "field": "time", "type": "quantitative", "title": "completion time (s)",
               "scale": { "type": "log", "nice": false, "padding": 8 }, "axis": { "format": "~g" } },
    });
    let (mut of_points, mut of_lines) = (axes.clone(), axes);
    of_points["color"] = disciplines.colour(true);
    of_lines["color"] = disciplines.colour(true);
    of_lines["strokeDash"] = disciplines.dash(true);
    let spec = json!({
        "width": WIDTH, "height": 380,
        "layer": [
            { "data": { "name": "points" }, "encoding": of_points,
              "mark": { "type": "point", "filled": true, "size": 8, "opacity": 0.3 } },
            { "data": { "name": "medians" }, "encoding": of_lines,
              "mark": { "type": "line", "strokeWidth": 2.5, "point": { "filled": true, "size": 35 } } },
        ],
    });
    Ok(Chart { title, caption, drawn: plot(spec, [("points", points), ("medians", medians)]) })
}
