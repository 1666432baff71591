//! The specification of a chart for the series of a panel.

use serde_json::{Map, Value, json};

use super::legend::Legend;
use super::omitted::Omitted;
use crate::axis::{PLAIN, extent, logarithmic};
use crate::columns::{Columns, json as columns_json, rounded, thinned_by};
use crate::parts::{Axis, Mark, Panel, Point, Series};

/// Maximum number of points of a panel that are drawn as points.
const MAX_POINTS: usize = 3_000;

/// Lines with at most this number of points show each point.
const FEW: usize = 30;

/// Up to this number of bars have names.
const NAMED: usize = 40;

/// Significant digits of the data of a chart.
const DIGITS: usize = 6;

/// The points of a series that can be drawn.
struct DrawnSeries<'a> {
    label: &'a str,
    points: Vec<Point>,
}

impl Panel {
    /// The specification and the data; `None` if there are no data to draw.
    pub(super) fn plot(
        &self,
        legend: &Legend,
        height: u32,
        omitted: &mut Omitted,
    ) -> Option<(Value, Map<String, Value>)> {
        let mut drawn: Vec<DrawnSeries<'_>> = self
            .series
            .iter()
            .map(|series| DrawnSeries { label: legend.label(series), points: self.drawable(series, omitted) })
            .collect();
        if drawn.iter().all(|series| series.points.is_empty()) {
            return None;
        }
        if self.mark == Mark::Points {
            thin(&mut drawn, omitted);
        }
        let categories = self.categories(&drawn);
        let points = || drawn.iter().flat_map(|series| &series.points);
        let (x, y) = (self.x_encoding(categories.as_ref(), points()), self.y_encoding(points()));
        if self.y.logarithmic {
            let floor = y["scale"]["domain"][0].as_f64().expect("a logarithmic axis has a domain");
            for point in drawn.iter_mut().flat_map(|series| &mut series.points) {
                omitted.cut += usize::from(point.low <= 0.0);
                point.low = point.low.max(floor).min(point.y);
            }
        }
        let all = || drawn.iter().flat_map(|series| series.points.iter().map(|point| (series.label, point)));
        let data = columns(all(), categories.as_ref());
        let with_interval = || all().filter(|(_, point)| point.low < point.high);
        let mut tables = Map::from_iter([("points".to_owned(), columns_json(data))]);
        let mut layers = self.layers(&x, &y, legend, &drawn);
        if with_interval().next().is_some() {
            let data = columns(with_interval(), categories.as_ref());
            tables.insert("intervals".to_owned(), columns_json(data));
            layers.push(self.intervals(&x, &y, legend));
        }
        Some((json!({ "height": height, "layer": layers }), tables))
    }

    /// The points of a series with a position on the axes.
    fn drawable(&self, series: &Series, omitted: &mut Omitted) -> Vec<Point> {
        let beyond = |axis: &Axis, value: f64| {
            axis.domain.is_some_and(|(from, to)| value < from.min(to) || value > from.max(to))
        };
        let names = self.x.categories.len();
        let mut kept = Vec::new();
        for point in &series.points {
            let Point { x, y, low, high } = *point;
            let finite = [x, y, low, high].iter().all(|value| value.is_finite());
            let categorical = names > 0;
            if !finite || (categorical && !(x >= 0.0 && x < names as f64 && x.fract() == 0.0)) {
                omitted.unknown += 1;
            } else if (self.y.logarithmic && y <= 0.0) || (self.is_logarithmic_in_x() && x <= 0.0) {
                omitted.no_logarithm += 1;
            } else {
                omitted.beyond += usize::from(beyond(&self.y, y) || (!categorical && beyond(&self.x, x)));
                kept.push(*point);
            }
        }
        kept
    }

    /// True if the x axis is logarithmic. The axis of bars is not, because they stand side by side.
    fn is_logarithmic_in_x(&self) -> bool {
        self.x.logarithmic && self.x.categories.is_empty() && self.mark != Mark::Bars
    }

    /// The names along the x axis; `None` for an axis with numbers.
    fn categories(&self, drawn: &[DrawnSeries<'_>]) -> Option<Categories> {
        if !self.x.categories.is_empty() {
            let names = self.x.categories.clone();
            return Some(Categories { at: (0..names.len()).map(|at| at as f64).collect(), names });
        }
        if self.mark != Mark::Bars {
            return None;
        }
        let mut at: Vec<f64> =
            drawn.iter().flat_map(|series| series.points.iter().map(|point| point.x)).collect();
        at.sort_by(f64::total_cmp);
        at.dedup();
        Some(Categories { names: at.iter().map(|x| rounded(*x, DIGITS).to_string()).collect(), at })
    }

    fn x_encoding<'a>(
        &self,
        categories: Option<&Categories>,
        points: impl Iterator<Item = &'a Point>,
    ) -> Value {
        let mut x = json!({ "field": "x", "title": titled(&self.x) });
        match categories {
            Some(Categories { names, .. }) => {
                x["type"] = json!("nominal");
                x["scale"] = json!({ "domain": names, "paddingInner": 0.25, "paddingOuter": 0.15 });
                if self.mark != Mark::Bars {
                    x["scale"] = json!({ "domain": names, "padding": 0.5 });
                }
                let characters: usize = names.iter().map(|name| name.chars().count() + 2).sum();
                // Names that do not fit beside each other are rotated.
                let angle = if characters <= 40 { 0 } else { -35 };
                x["axis"] =
                    json!({ "labelAngle": angle, "labelLimit": 180, "ticks": false, "labelPadding": 6 });
            }
            None => quantitative(&mut x, &self.x, points.map(|point| point.x), false),
        }
        x
    }

    fn y_encoding<'a>(&self, points: impl Iterator<Item = &'a Point>) -> Value {
        let mut y = json!({ "field": "y", "title": titled(&self.y) });
        let bars = self.mark == Mark::Bars;
        let points: Vec<&Point> = points.collect();
        let values = points.iter().flat_map(|point| {
            // The margins make the shortest bar and the name of the longest one visible.
            let (foot, top) = if bars { (point.y / 1.5, point.high * 2.5) } else { (point.y, point.high) };
            [foot, point.low, top]
        });
        quantitative(&mut y, &self.y, values, true);
        if bars && !self.y.logarithmic && self.y.domain.is_none() {
            let most = points.iter().map(|point| point.high).fold(0.0, f64::max);
            // Bars of zero or less have their names above the foot.
            y["scale"]["domainMax"] = rounded(if most > 0.0 { most * 1.25 } else { 1.0 }, DIGITS);
        }
        y
    }

    /// The layers of the chart. Their marks have no descriptions of single items: the panel has a label, and
    /// Vega-Lite would make expressions of titles.
    fn layers(&self, x: &Value, y: &Value, legend: &Legend, drawn: &[DrawnSeries<'_>]) -> Vec<Value> {
        let clip = self.x.domain.is_some() || self.y.domain.is_some();
        let mut encoding = json!({ "x": x, "y": y, "color": legend.colour() });
        let all: usize = drawn.iter().map(|series| series.points.len()).sum();
        let longest = drawn.iter().map(|series| series.points.len()).max().unwrap_or(0);
        let tooltip = json!([{ "field": "series", "title": "of" },
                          { "field": "x", "title": in_expression(&self.x, "x") },
                          { "field": "y", "title": in_expression(&self.y, "y") }]);
        let dots = |size: u32, opacity: f64, encoding: &Value| {
            let mut encoding = encoding.clone();
            encoding["tooltip"] = tooltip.clone();
            let mark = json!({ "type": "point", "filled": true, "size": size, "opacity": opacity, "clip": clip,
                               "aria": false });
            json!({ "data": { "name": "points" }, "mark": mark, "encoding": encoding })
        };
        match self.mark {
            Mark::Points if all > 300 => vec![dots(14, 0.45, &encoding)],
            Mark::Points => vec![dots(40, 0.85, &encoding)],
            Mark::Bars => {
                encoding["xOffset"] = self.offset(legend);
                encoding["tooltip"] = tooltip;
                if self.y.logarithmic {
                    encoding["y2"] = json!({ "datum": y["scale"]["domain"][0] });
                } else {
                    encoding["y"]["stack"] = Value::Null;
                }
                let mark = json!({ "type": "bar", "clip": clip, "aria": false });
                let bars = json!({ "data": { "name": "points" }, "mark": mark, "encoding": encoding });
                let names = (all <= NAMED).then(|| self.names(x, y, legend));
                [bars].into_iter().chain(names).collect()
            }
            Mark::Line | Mark::Steps => {
                let mut line = encoding.clone();
                if legend.dashed {
                    line["strokeDash"] = legend.dash();
                }
                line["strokeWidth"] = legend.line_width();
                // Lines connect the points in their order, not from left to right.
                line["order"] = json!({ "value": null });
                let steps = self.mark == Mark::Steps;
                let between = if steps { "step-after" } else { "linear" };
                let mark = json!({ "type": "line", "interpolate": between, "clip": clip, "aria": false });
                let mut layers =
                    vec![json!({ "data": { "name": "points" }, "mark": mark, "encoding": line })];
                if longest <= if steps { 1 } else { FEW } {
                    layers.push(dots(45, 1.0, &encoding));
                } else if all <= MAX_POINTS {
                    // Invisible: they have the tooltips, because a line as a whole has only one.
                    layers.push(dots(60, 0.0, &encoding));
                }
                layers
            }
        }
    }

    fn intervals(&self, x: &Value, y: &Value, legend: &Legend) -> Value {
        let clip = self.x.domain.is_some() || self.y.domain.is_some();
        let mut low = y.clone();
        low["field"] = json!("low");
        let mut encoding = json!({ "x": x, "y": low, "y2": { "field": "high" } });
        let mut mark = json!({ "type": "rule", "strokeWidth": 1.5, "clip": clip, "aria": false });
        if self.mark == Mark::Bars {
            encoding["xOffset"] = self.offset(legend);
            mark["color"] = json!("var(--ink)");
        } else {
            encoding["color"] = legend.colour();
        }
        json!({ "data": { "name": "intervals" }, "mark": mark, "encoding": encoding })
    }

    /// The name of its series above each bar and its interval.
    fn names(&self, x: &Value, y: &Value, legend: &Legend) -> Value {
        let mut top = y.clone();
        top["field"] = json!("high");
        let mark = json!({ "type": "text", "angle": 270, "align": "left", "baseline": "middle", "dx": 4, "fontSize": 10,
                           "color": "var(--soft)", "aria": false });
        json!({ "data": { "name": "points" }, "mark": mark,
                "encoding": { "x": x, "xOffset": self.offset(legend), "y": top,
                              "text": { "field": "series", "type": "nominal" } } })
    }

    /// The position of the bar of a series within its group, as wide as all series of the panel need, in
    /// their order.
    fn offset(&self, legend: &Legend) -> Value {
        let labels: Vec<&str> = self.series.iter().map(|series| legend.label(series)).collect();
        json!({ "field": "series", "type": "nominal", "scale": { "domain": labels } })
    }
}

/// The labels of an axis without numbers, and their positions.
struct Categories {
    names: Vec<String>,
    at: Vec<f64>,
}

impl Categories {
    fn name(&self, x: f64) -> &str {
        let at = self.at.iter().position(|known| *known == x);
        &self.names[at.expect("only points with a category are drawn")]
    }
}

/// A title that is safe in an expression: Vega-Lite puts the titles of tooltips into expressions, and does
/// not escape them completely.
fn in_expression(axis: &Axis, otherwise: &str) -> String {
    let plain = |c: &char| c.is_alphanumeric() || " ()/%,.-+µ".contains(*c);
    let title: String = axis.title.chars().filter(plain).collect();
    if title.is_empty() { otherwise.to_owned() } else { title }
}

fn titled(axis: &Axis) -> Value {
    if axis.title.is_empty() { Value::Null } else { json!(axis.title) }
}

/// The scale of an axis with numbers. A linear scale starts at zero if `zero` is true.
fn quantitative(encoding: &mut Value, axis: &Axis, values: impl Iterator<Item = f64>, zero: bool) {
    encoding["type"] = json!("quantitative");
    match (axis.logarithmic, axis.domain) {
        (true, domain) => {
            let (least, most) = domain.filter(|(from, _)| *from > 0.0).unwrap_or_else(|| extent(values));
            let format = if least >= 1.0 && most >= 1e5 { "~s" } else { PLAIN };
            logarithmic(encoding, least, most, format);
        }
        (false, Some((from, to))) => {
            encoding["scale"] = json!({ "domain": [from, to], "nice": false });
            encoding["axis"] = json!({ "tickCount": 6 });
        }
        (false, None) => {
            encoding["scale"] = json!({ "zero": zero, "nice": true });
            encoding["axis"] = json!({ "tickCount": 6 });
        }
    }
}

/// Keeps as many points of a panel as a screen can show.
fn thin(drawn: &mut [DrawnSeries<'_>], omitted: &mut Omitted) {
    let all: usize = drawn.iter().map(|series| series.points.len()).sum();
    if all <= MAX_POINTS {
        return;
    }
    let each = MAX_POINTS / drawn.len();
    for series in drawn.iter_mut() {
        series.points = thinned_by(&series.points, each.max(2), |point| (point.x, point.y));
    }
    let kept: usize = drawn.iter().map(|series| series.points.len()).sum();
    let (before_kept, before_all) = omitted.thinned.unwrap_or((0, 0));
    omitted.thinned = Some((before_kept + kept, before_all + all));
}

fn columns<'a>(
    points: impl Iterator<Item = (&'a str, &'a Point)>,
    categories: Option<&Categories>,
) -> Columns {
    let mut columns: Columns = ["series", "x", "y", "low", "high"].map(|name| (name, vec![])).into();
    for (label, point) in points {
        let x = match categories {
            Some(categories) => json!(categories.name(point.x)),
            None => rounded(point.x, DIGITS),
        };
        let cells = [
            json!(label),
            x,
            rounded(point.y, DIGITS),
            rounded(point.low, DIGITS),
            rounded(point.high, DIGITS),
        ];
        columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
    }
    columns
}
