//! Flow completion time against size.

use giveway_document::axis::{PLAIN, extent, logarithmic};
use giveway_document::columns::{number, thinned};
use serde_json::json;

use super::frame::{Chart, Disciplines, WIDTH, over_seeds, plot};
use crate::report::error::ReportError;
use crate::report::read::Folder;
use crate::report::series::{BIN_NEEDS, BINS_PER_DECADE, medians_by_size};

/// Points of all disciplines together.
const MOST_POINTS: usize = 3_000;

pub(super) fn chart(folder: &Folder, disciplines: &Disciplines) -> Result<Chart, ReportError> {
    let title = "Flow completion time by size".to_owned();
    let mut points = vec![("discipline", vec![]), ("size", vec![]), ("time", vec![])];
    let mut medians = points.clone();
    let (mut all, mut shown) = (0, 0);
    let (mut sizes, mut times) = (Vec::new(), Vec::new());
    let specs = folder.disciplines();
    let each = MOST_POINTS / specs.len().max(1);
    for spec in specs {
        let completions = folder.completions(spec)?;
        // A logarithmic axis has no zero.
        let completions: Vec<(f64, f64)> =
            completions.into_iter().filter(|(size, time)| *size > 0.0 && *time > 0.0).collect();
        let kept = thinned(&completions, each);
        sizes.extend(kept.iter().map(|(size, _)| *size));
        times.extend(kept.iter().map(|(_, time)| *time));
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
        let words = "No transfer that started within the measurement interval completed, so there are no flow completion times.";
        return Ok(Chart::words(title, words));
    }
    let about_points = if shown == all {
        format!("Each point is one of the {all} transfers")
    } else {
        format!("Points are {shown} of the {all} transfers, thinned evenly over the sizes")
    };
    let caption = format!(
        "{about_points} that started within the measurement interval and completed ({}). Lines connect the medians of size bins, \
         {BINS_PER_DECADE:.0} per decade, with at least {BIN_NEEDS} transfers each. Both axes are logarithmic. Lower is better, above all \
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
    let (mut of_points, mut of_lines) = (axes.clone(), axes);
    of_points["color"] = disciplines.colour();
    of_lines["color"] = disciplines.colour();
    of_lines["strokeDash"] = disciplines.dash();
    of_lines["strokeWidth"] = disciplines.line_width();
    let spec = json!({
        "width": WIDTH, "height": 380,
        "layer": [
            { "data": { "name": "points" }, "encoding": of_points,
              "mark": { "type": "point", "filled": true, "size": 12, "opacity": 0.4 } },
            { "data": { "name": "medians" }, "encoding": of_lines,
              "mark": "line" },
        ],
    });
    Ok(Chart { title, caption, key: true, drawn: plot(spec, [("points", points), ("medians", medians)]) })
}
