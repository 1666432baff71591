//! Who got how much over time.

use serde_json::json;

use super::{Chart, Disciplines, Drawn, at_port, panels, plot};
use crate::figures::RATE;
use crate::report::ReportError;
use crate::report::read::{Folder, SharePoint};
use crate::report::series::number;

/// Sources that are told apart; the rest are one.
const MOST_SOURCES: usize = 7;
const OTHERS: &str = "others";

/// Colours of sources, none of them a discipline's: P. Tol, "Colour Schemes" (2021), the bright scheme.
const COLOURS: [&str; MOST_SOURCES + 1] =
    ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#bbbbbb"];

pub(super) fn charts(
    folder: &Folder,
    disciplines: &Disciplines,
    ports: &[&str],
) -> Result<Vec<Chart>, ReportError> {
    let read = |spec| Ok((spec, folder.shares(spec)?));
    let shares = folder.disciplines().into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    ports.iter().map(|port| chart(folder, disciplines, port, &shares)).collect()
}

fn chart(
    folder: &Folder,
    disciplines: &Disciplines,
    port: &str,
    shares: &[(&str, Vec<SharePoint>)],
) -> Result<Chart, ReportError> {
    let title = at_port("Who gets how much over time", port, folder);
    let of_port = |points: &'_ [SharePoint]| -> Vec<(f64, f64, String, u64)> {
        let mine = points.iter().filter(|point| point.port == port);
        mine.map(|point| (point.time_s, point.span_s, point.source.clone(), point.bytes)).collect()
    };
    let all: Vec<(&str, Vec<(f64, f64, String, u64)>)> =
        shares.iter().map(|(spec, points)| (*spec, of_port(points))).collect();
    let sources = sources(folder, all.iter().flat_map(|(_, points)| points));
    if sources.is_empty() {
        let words = "No packet was sent within the measured part.".to_owned();
        return Ok(Chart { title, caption: String::new(), drawn: Drawn::Words(words) });
    }
    let rate = folder.links(shares[0].0)?.into_iter().flatten().find(|link| link.port == port);
    let rate = rate.and_then(|link| link.rate_bps).map(|rate| rate as f64);
    let stretch = all.iter().flat_map(|(_, points)| points).map(|point| point.1).fold(0.0, f64::max);
    let fastest = all.iter().flat_map(|(_, points)| points).map(|point| point.3 as f64 * 8.0 / point.1);
    let (one, unit) = RATE.unit(std::iter::once(rate.unwrap_or_else(|| fastest.fold(0.0, f64::max))));

    let mut columns: Vec<_> = ["discipline", "source", "place", "time", "rate"].map(|name| (name, vec![])).into();
    for (spec, points) in &all {
        for (place, source) in sources.iter().enumerate() {
            let mine = |point: &&(f64, f64, String, u64)| {
                point.2 == *source || (source == OTHERS && !sources.contains(&point.2))
            };
            let mut row = |time: f64, rate: f64| {
                let cells = [json!(disciplines.name(spec)), json!(source), json!(place), number(time), number(rate)];
                columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
            };
            let mine: Vec<_> = points.iter().filter(mine).collect();
            let stretches = mine.chunk_by(|a, b| a.0 == b.0);
            let mut last = None;
            for stretch in stretches {
                let bytes: u64 = stretch.iter().map(|point| point.3).sum();
                let rate = bytes as f64 * 8.0 / stretch[0].1 / one;
                row(stretch[0].0, rate);
                last = Some((stretch[0].0 + stretch[0].1, rate));
            }
            // A step needs its end.
            if let Some((end, rate)) = last {
                row(end, rate);
            }
        }
    }
    let seed = folder.first_seed(shares[0].0).unwrap_or_default();
    let others = if sources.contains(&OTHERS.to_owned()) {
        format!(" The {MOST_SOURCES} sources that sent most are told apart.")
    } else {
        String::new()
    };
    let caption = format!(
        "What the port sent for each traffic source, of seed {seed}, in stretches of {} s of the measured part, headers \
         included.{others}{} Good is a link that is full while anybody wants it, with an even and steady share for everybody \
         who does: a source that is starved shows as a gap.",
        number(stretch),
        if rate.is_some() { " The dashed line is the rate of the link." } else { "" }
    );
    let names: Vec<&str> = all.iter().map(|(spec, _)| disciplines.name(spec)).collect();
    let measured = &folder.manifest.measured;
    let spec = panels(&names, "shares", |_| {
        let mut layers = vec![json!({
            "mark": { "type": "area", "interpolate": "step-after", "opacity": 0.85 },
            "encoding": {
                "x": { "field": "time", "type": "quantitative", "title": "time (s)",
                       "scale": { "domain": [measured.from_s, measured.until_s], "nice": false } },
                "y": { "field": "rate", "type": "quantitative", "title": unit, "stack": "zero" },
                "order": { "field": "place", "type": "quantitative" },
                "color": { "field": "source", "type": "nominal", "title": null,
                           "scale": { "domain": sources, "range": colours(&sources) },
                           "legend": { "orient": "top", "columns": 8, "symbolType": "square", "labelLimit": 200 } },
            },
        })];
        layers.extend(rate.map(|rate| {
            json!({ "mark": { "type": "rule", "strokeDash": [6, 4], "color": "var(--ink)" },
                    "encoding": { "y": { "datum": rate / one, "type": "quantitative" } } })
        }));
        json!(layers)
    });
    Ok(Chart { title, caption, drawn: plot(spec, [("shares", columns)]) })
}

/// The sources that sent something, in the order of the scenario; of many only those that sent most, and the others.
fn sources<'a>(folder: &Folder, points: impl Iterator<Item = &'a (f64, f64, String, u64)>) -> Vec<String> {
    let mut sent: Vec<(String, u64)> = Vec::new();
    for name in &folder.manifest.measured.sources {
        if !sent.iter().any(|(known, _)| known == name) {
            sent.push((name.clone(), 0));
        }
    }
    for (.., source, bytes) in points {
        match sent.iter_mut().find(|(known, _)| known == source) {
            Some((_, total)) => *total += bytes,
            None => sent.push((source.clone(), *bytes)),
        }
    }
    sent.retain(|(_, total)| *total > 0);
    if sent.len() <= MOST_SOURCES + 1 {
        return sent.into_iter().map(|(name, _)| name).collect();
    }
    let mut totals: Vec<u64> = sent.iter().map(|(_, total)| *total).collect();
    totals.sort_unstable_by(|a, b| b.cmp(a));
    let least = totals[MOST_SOURCES - 1];
    let large = sent.into_iter().filter(|(_, total)| *total >= least).take(MOST_SOURCES).map(|(name, _)| name);
    large.chain([OTHERS.to_owned()]).collect()
}

/// Grey is for the others.
fn colours(sources: &[String]) -> Vec<&'static str> {
    let colour = |(at, name): (usize, &String)| COLOURS[if name == OTHERS { MOST_SOURCES } else { at }];
    sources.iter().enumerate().map(colour).collect()
}
