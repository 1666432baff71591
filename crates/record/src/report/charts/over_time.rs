//! Delays over time, with the rate of a link that varies behind them.

use giveway_document::axis::{PLAIN, logarithmic};
use giveway_document::chart::Chart;
use giveway_document::columns::{Columns, number};
use giveway_measure::figures::{RATE, TIME};
use giveway_measure::{DelayRow, DelaySummary};
use serde_json::{Value, json};

use super::frame::{self, Disciplines, Sides, at_port, hover, panels, side_by_side};
use super::sources::{self, MAX_SOURCES, OTHERS, colours, sources};
use crate::report::error::ReportError;
use crate::report::read::Folder;

/// Delays whose highest mean is more than this many times the lowest are drawn on a logarithmic axis.
const SPREAD: f64 = 8.0;

/// A chart for each of these ports that has delays. A folder without delays over time, such as a switch's or
/// a test bed's, has no chart.
pub(super) fn charts(
    folder: &Folder,
    disciplines: &Disciplines,
    ports: &[&str],
) -> Result<Vec<Chart>, ReportError> {
    let read = |spec| Ok((spec, folder.delays_over_time(spec)?));
    let all = folder.disciplines().into_iter().map(read).collect::<Result<Vec<_>, ReportError>>()?;
    let mut charts = Vec::new();
    for port in ports {
        let of_port = |rows: &Vec<DelayRow>| rows.iter().filter(|row| row.port == *port).cloned().collect();
        let rows: Vec<Rows<'_>> = all.iter().map(|(spec, rows)| (*spec, of_port(rows))).collect();
        let mut shares = Vec::new();
        for (spec, _) in &rows {
            shares.extend(folder.shares(spec)?.into_iter().filter(|point| point.port == *port));
        }
        // The sources and their colours are those of the chart of throughput.
        let names = sources(folder, shares.iter());
        charts.extend(chart(folder, disciplines, port, &rows, &names));
    }
    Ok(charts)
}

/// A discipline, and its delays at the port.
type Rows<'a> = (&'a str, Vec<DelayRow>);

/// The delay that a chart shows.
#[derive(Clone, Copy)]
enum Shown {
    OneWay,
    Sojourn,
}

impl Shown {
    fn of(self, row: &DelayRow) -> Option<DelaySummary> {
        match self {
            Shown::OneWay => row.one_way,
            Shown::Sojourn => row.sojourn,
        }
    }
}

fn chart(
    folder: &Folder,
    disciplines: &Disciplines,
    port: &str,
    all: &[Rows<'_>],
    names: &[String],
) -> Option<Chart> {
    let axis = Axis::of(all)?;
    let rates = rates(all);
    let (bit, rate_unit) = RATE.unit([most_of(&rates) / 2.0].into_iter());
    let rates: Vec<(f64, f64)> = rates.into_iter().map(|(time, rate)| (time, rate / bit)).collect();
    let varies = !rates.is_empty();
    let has = |name: &&String| all.iter().any(|(_, rows)| !is_empty(&points(rows, name, names, axis.shown)));
    let labels: Vec<&str> = all.iter().map(|(spec, _)| disciplines.name(spec)).collect();
    let measured = &folder.manifest.measured;
    let sides = if varies { Sides::Both } else { Sides::Left };
    let panels = panels(&labels, "delays", (measured.from_s, measured.until_s), sides, |_, x| {
        let behind = varies.then(|| behind(x, rate_unit, most_of(&rates)));
        behind.into_iter().chain([lines(x, &axis, names)]).collect()
    });
    let mut data = vec![("delays", columns(disciplines, all, names, &axis))];
    if varies {
        let times = rates.iter().map(|(time, _)| number(*time)).collect();
        let values = rates.iter().map(|(_, rate)| number(*rate)).collect();
        data.push(("rates", vec![("time", times), ("rate", values)]));
    }
    let caption = caption(folder, all, &axis, varies, names);
    let title = match axis.shown {
        Shown::OneWay => "One-way delay over time",
        Shown::Sojourn => "Sojourn time over time",
    };
    Some(Chart {
        title: at_port(title, port, folder),
        caption,
        keys: vec![sources::key(names, |name| has(&name))],
        columns: side_by_side(panels.len()),
        panels,
        data: frame::data(data),
        ..Chart::default()
    })
}

/// The axis of delays, which all panels share.
struct Axis {
    shown: Shown,
    /// The size of the unit in seconds, and its name.
    unit: (f64, &'static str),
    /// The shortest delay of a logarithmic axis, seconds. Shorter times are drawn at this floor.
    floor: f64,
    /// The largest delay, seconds.
    longest: f64,
    is_logarithmic: bool,
}

impl Axis {
    /// The axis for the delays of a port; `None` if there are none.
    fn of(all: &[Rows<'_>]) -> Option<Axis> {
        let rows = || all.iter().flat_map(|(_, rows)| rows);
        let shown = if rows().any(|row| row.one_way.is_some()) { Shown::OneWay } else { Shown::Sojourn };
        let delays = || rows().filter_map(|row| shown.of(row));
        delays().next()?;
        let longest = delays().map(|delay| delay.max_s).fold(0.0, f64::max);
        let means = || delays().map(|delay| delay.mean_s).filter(|mean| *mean > 0.0);
        let (least, most) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
        Some(Axis {
            shown,
            unit: TIME.unit([longest / 8.0].into_iter()),
            // Four decades are enough.
            floor: least.max(longest * 1e-4),
            longest,
            is_logarithmic: most > SPREAD * least,
        })
    }

    /// A delay in the unit of the axis.
    fn value(&self, delay_s: f64) -> Value {
        number(if self.is_logarithmic { delay_s.max(self.floor) } else { delay_s } / self.unit.0)
    }

    /// The encoding of a column of delays.
    fn encoding(&self, field: &str) -> Value {
        let what = match self.shown {
            Shown::OneWay => "one-way delay",
            Shown::Sojourn => "sojourn time",
        };
        let (one, unit) = self.unit;
        let mut y = json!({ "field": field, "type": "quantitative", "title": format!("{what} ({unit})") });
        if self.is_logarithmic {
            logarithmic(&mut y, self.floor / one, self.longest / one, PLAIN);
        } else {
            y["scale"] = json!({ "domain": [0, number(self.longest * 1.1 / one)], "nice": false });
            y["axis"] = json!({ "tickCount": 4, "format": PLAIN });
        }
        y
    }
}

/// A row for each stretch of each source of each discipline. A point without neighbours has no line: the
/// column `alone` has it again, to be drawn as a dot.
fn columns(disciplines: &Disciplines, all: &[Rows<'_>], names: &[String], axis: &Axis) -> Columns {
    let mut columns: Columns =
        ["discipline", "source", "place", "time", "mean", "most", "alone"].map(|name| (name, vec![])).into();
    for (spec, rows) in all {
        for (place, source) in names.iter().enumerate() {
            let points = points(rows, source, names, axis.shown);
            let is_empty =
                |at: Option<usize>| at.and_then(|at| points.get(at)).is_none_or(|(_, delay)| delay.is_none());
            for (at, (time, delay)) in points.iter().enumerate() {
                let mean = delay.map_or(Value::Null, |delay| axis.value(delay.mean_s));
                let alone = is_empty(at.checked_sub(1)) && is_empty(Some(at + 1));
                let cells = [
                    json!(disciplines.name(spec)),
                    json!(source),
                    json!(place),
                    number(*time),
                    mean.clone(),
                    delay.map_or(Value::Null, |delay| axis.value(delay.max_s)),
                    if alone { mean } else { Value::Null },
                ];
                columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
            }
        }
    }
    columns
}

/// A line for each source, with its band.
fn lines(x: &Value, axis: &Axis, names: &[String]) -> Value {
    let colour = json!({ "field": "source", "type": "nominal", "title": null,
                         "scale": { "domain": names, "range": colours(names) }, "legend": null });
    // Each line is a little narrower than the previous one, which is below it, so that coinciding lines
    // show as borders.
    let width = |at: usize| 1.4 + 0.9 * (names.len() - 1 - at).min(2) as f64;
    let places = 0..names.len();
    let width = json!({ "field": "place", "type": "ordinal", "legend": null,
                        "scale": { "domain": places.clone().collect::<Vec<_>>(),
                                   "range": places.map(width).collect::<Vec<_>>() } });
    json!({ "layer": [
        { "mark": { "type": "area", "opacity": 0.22 },
          "encoding": { "x": x, "y": axis.encoding("mean"), "y2": { "field": "most" }, "color": colour } },
        { "mark": "line",
          "encoding": { "x": x, "y": axis.encoding("mean"), "color": colour, "strokeWidth": width } },
        { "transform": [{ "filter": "isValid(datum.alone)" }],
          "mark": { "type": "point", "filled": true, "size": 14, "opacity": 1 },
          "encoding": { "x": x, "y": axis.encoding("alone"), "color": colour } },
        hover(x, &axis.encoding("mean"), &[("source", "source"), ("most", "longest")]),
    ] })
}

/// The rate of the link as a grey area, with its own axis on the right.
fn behind(x: &Value, unit: &str, fastest: f64) -> Value {
    json!({
        "data": { "name": "rates" },
        "mark": { "type": "area", "interpolate": "step-after", "color": "var(--faint)", "opacity": 0.25 },
        "encoding": { "x": x,
                      "y": { "field": "rate", "type": "quantitative", "title": format!("link ({unit})"),
                             "scale": { "domain": [0, number(fastest * 1.1)], "nice": false },
                             "axis": { "orient": "right", "grid": false, "tickCount": 4, "format": PLAIN } } },
    })
}

/// The delays of a source, or of the others together: the middle of each stretch, and the delays in it.
fn points(
    rows: &[DelayRow],
    source: &str,
    names: &[String],
    shown: Shown,
) -> Vec<(f64, Option<DelaySummary>)> {
    let is_other = source == OTHERS && names.iter().any(|name| name == OTHERS);
    let mine = |row: &&DelayRow| match is_other {
        true => row.source == OTHERS || !names.contains(&row.source),
        false => row.source == source,
    };
    let mine: Vec<&DelayRow> = rows.iter().filter(mine).collect();
    let stretch = |stretch: &[&DelayRow]| {
        let delays = stretch.iter().filter_map(|row| shown.of(row));
        (stretch[0].time.as_s() + stretch[0].span.as_s() / 2.0, delays.reduce(DelaySummary::and))
    };
    mine.chunk_by(|a, b| a.time == b.time).map(stretch).collect()
}

fn is_empty(points: &[(f64, Option<DelaySummary>)]) -> bool {
    points.iter().all(|(_, delay)| delay.is_none())
}

/// The rate of a link that varies at the start of each stretch, in bit/s, and its end. It is the same for all
/// disciplines.
fn rates(all: &[Rows<'_>]) -> Vec<(f64, f64)> {
    let rows = all.iter().map(|(_, rows)| rows).find(|rows| !rows.is_empty());
    let mut rates: Vec<(f64, f64)> = Vec::new();
    let mut end = 0.0;
    for row in rows.into_iter().flatten() {
        let Some(rate) = row.rate else { continue };
        if rates.last().is_none_or(|last| last.0 < row.time.as_s()) {
            rates.push((row.time.as_s(), rate.as_bit() as f64));
            end = (row.time + row.span).as_s();
        }
    }
    // The last step needs an end.
    rates.extend(rates.last().map(|last| (end, last.1)));
    rates
}

/// The highest of these rates.
fn most_of(rates: &[(f64, f64)]) -> f64 {
    rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
}

fn caption(folder: &Folder, all: &[Rows<'_>], axis: &Axis, varies: bool, names: &[String]) -> String {
    let seed = folder.first_seed(all[0].0).unwrap_or_default();
    let stretch = all.iter().flat_map(|(_, rows)| rows).map(|row| row.span).max().unwrap_or_default();
    let what = match axis.shown {
        Shown::OneWay => {
            "The time from the sender to the receiver of the data packets that crossed the port. It includes the delays of all links on \
             their way, so the lowest part of a line is the path, and the rest is queues."
        }
        Shown::Sojourn => "The time that packets waited at the port.",
    };
    let rate = if varies {
        " The grey area is the rate of the link (right axis): where it falls, a queue that does not shrink delays its packets longer."
    } else {
        ""
    };
    let others = if names.iter().any(|name| name == OTHERS) {
        format!(" The {MAX_SOURCES} sources that sent most have their own colours.")
    } else {
        String::new()
    };
    format!(
        "{what} Lines are means over {} s of seed {seed}, by traffic source; bands reach up to the largest delay in that time. A gap means \
         that no packet arrived.{rate} All panels have the same axes{}.{others} A low and flat line is good, above all for calls.",
        number(stretch.as_s()),
        if axis.is_logarithmic { ", and that of the delay is logarithmic" } else { "" },
    )
}
