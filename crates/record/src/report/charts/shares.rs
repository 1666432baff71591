//! Throughput of each source over time.

use giveway_document::axis::PLAIN;
use giveway_document::chart::Chart;
use giveway_document::columns::number;
use giveway_measure::figures::RATE;
use serde_json::json;

use super::frame::{Disciplines, Sides, at_port, data, hover, panels, side_by_side};
use super::sources::{self, MAX_SOURCES, OTHERS, colours, sources};
use crate::report::error::ReportError;
use crate::report::read::{Folder, SharePoint};

pub(super) fn charts(
    folder: &Folder,
    disciplines: &Disciplines,
    ports: &[&str],
) -> Result<Vec<Chart>, ReportError> {
    let read = |spec| Ok((spec, folder.shares(spec)?));
    let shares = folder.disciplines().into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let each = ports.iter().map(|port| chart(folder, disciplines, port, &shares));
    Ok(each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// A discipline, and the bytes that each source sent in each stretch of time.
type Points<'a> = (&'a str, Vec<&'a SharePoint>);

/// The throughput at a port; `None` if it sent no packet within the measurement interval.
fn chart<'a>(
    folder: &Folder,
    disciplines: &Disciplines,
    port: &str,
    shares: &'a [(&str, Vec<SharePoint>)],
) -> Result<Option<Chart>, ReportError> {
    let title = at_port("Throughput by source over time", port, folder);
    let of_port =
        |points: &'a [SharePoint]| points.iter().filter(|point| point.port == port).collect::<Vec<_>>();
    let all: Vec<Points<'a>> = shares.iter().map(|(spec, points)| (*spec, of_port(points))).collect();
    let sources = sources(folder, all.iter().flat_map(|(_, points)| points.iter().copied()));
    if sources.is_empty() {
        return Ok(None);
    }
    // The stretches of a recording may have different rates.
    let mut limits = Vec::new();
    for (spec, _) in shares {
        let link = folder.links(spec)?.into_iter().flatten().find(|link| link.port == port);
        limits.push(link.and_then(|link| link.rate_bps).map(|rate| rate as f64));
    }
    let rate = limits.iter().flatten().copied().reduce(f64::max);
    let stretch = all.iter().flat_map(|(_, points)| points).map(|point| point.span_s).fold(0.0, f64::max);
    let fastest = all.iter().flat_map(|(_, points)| points).map(|point| rate_of(&[point]));
    let (one, unit) = RATE.unit(std::iter::once(rate.unwrap_or_else(|| fastest.fold(0.0, f64::max))));

    let mut columns: Vec<_> =
        ["discipline", "source", "place", "time", "rate"].map(|name| (name, vec![])).into();
    for (spec, points) in &all {
        for (place, source) in sources.iter().enumerate() {
            let mine = |point: &&&SharePoint| {
                point.source == *source || (source == OTHERS && !sources.contains(&point.source))
            };
            let mut row = |time: f64, rate: f64| {
                let cells =
                    [json!(disciplines.name(spec)), json!(source), json!(place), number(time), number(rate)];
                columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
            };
            let mine: Vec<&SharePoint> = points.iter().filter(mine).copied().collect();
            let mut last = None;
            for stretch in stretches(&mine) {
                let rate = rate_of(stretch) / one;
                row(stretch[0].time_s, rate);
                last = Some((stretch[0].time_s + stretch[0].span_s, rate));
            }
            // The last step needs an end.
            if let Some((end, rate)) = last {
                row(end, rate);
            }
        }
    }
    let highest = most_at_once(&all).max(rate.unwrap_or(0.0)) / one;
    let seed = folder.first_seed(shares[0].0).unwrap_or_default();
    let others = if sources.contains(&OTHERS.to_owned()) {
        format!(" The {MAX_SOURCES} sources that sent most have their own colours.")
    } else {
        String::new()
    };
    let caption = format!(
        "The rate that the port sent for each traffic source, of seed {seed}, averaged over {} s within the measurement interval, headers \
         included.{others}{} A full link with an even and steady share for each source that has enough to send is good. A starved \
         source shows as a gap.",
        number(stretch),
        if rate.is_some() {
            " The dashed line is the rate of the link, or its mean if it varies."
        } else {
            ""
        }
    );
    let names: Vec<&str> = all.iter().map(|(spec, _)| disciplines.name(spec)).collect();
    let measured = &folder.manifest.measured;
    let limit = |name: &str| limits[names.iter().position(|known| *known == name)?];
    let panels = panels(&names, "shares", (measured.from_s, measured.until_s), Sides::Left, |name, x| {
        let mut layers = vec![json!({
            "mark": { "type": "area", "interpolate": "step-after", "opacity": 0.85 },
            "encoding": {
                "x": x,
                "y": { "field": "rate", "type": "quantitative", "title": unit, "stack": "zero",
                       "scale": { "domain": [0, number(highest * 1.1)], "nice": false },
                       "axis": { "tickCount": 4, "format": PLAIN } },
                "order": { "field": "place", "type": "quantitative" },
                "color": { "field": "source", "type": "nominal", "title": null,
                           "scale": { "domain": sources, "range": colours(&sources) }, "legend": null },
            },
        })];
        layers.extend(limit(name).map(|rate| {
            json!({ "mark": { "type": "rule", "strokeDash": [6, 4], "color": "var(--ink)" },
                    "encoding": { "y": { "datum": rate / one, "type": "quantitative" } } })
        }));
        let y = json!({ "field": "rate", "type": "quantitative", "title": unit });
        layers.push(hover(x, &y, &[("source", "source")]));
        layers
    });
    Ok(Some(Chart {
        title,
        caption,
        keys: vec![sources::key(&sources, |_| true)],
        columns: side_by_side(panels.len()),
        panels,
        data: data([("shares", columns)]),
        ..Chart::default()
    }))
}

/// The points, grouped by stretch of time.
fn stretches<'p>(points: &'p [&SharePoint]) -> impl Iterator<Item = &'p [&'p SharePoint]> {
    points.chunk_by(|a, b| a.time_s == b.time_s)
}

/// The rate in a stretch, bit/s.
fn rate_of(stretch: &[&SharePoint]) -> f64 {
    stretch.iter().map(|point| point.bytes).sum::<u64>() as f64 * 8.0 / stretch[0].span_s
}

/// The highest rate of all sources together in a stretch, bit/s.
fn most_at_once(all: &[Points<'_>]) -> f64 {
    all.iter().flat_map(|(_, points)| stretches(points)).map(rate_of).fold(0.0, f64::max)
}
