//! Heat maps: a value for each pair of categories, as a number on a shade.
//!
//! The number is in the cell, so a map can be read without its colours. Shades are one colour of different
//! strength, which look alike to people who see colours differently.

use serde_json::{Map, Value, json};

use crate::chart::{Chart, Plot};
use crate::colours::looks;
use crate::columns::{Columns, json as columns_json, rounded};
use crate::parts::{HeatCell, HeatMap, HeatPanel, Shade};

/// The height of a row, pixels.
const ROW: usize = 30;
/// The height of a line of text in a cell, pixels.
const LINE: usize = 14;
/// Maximum number of rows of a map with the names of its columns at the bottom.
const LONG: usize = 16;
/// The opacity of the lowest and the highest value.
const OPACITY: (f64, f64) = (0.06, 0.72);
/// The opacity of the colour of a discipline.
const OF_DISCIPLINE: f64 = 0.42;
/// The colour of values.
const COLOUR: &str = "#4a7fc1";

impl HeatMap {
    /// The map as a chart. `place` is its anchor if it has none.
    pub(crate) fn chart(&self, place: &str) -> Chart {
        let id = if self.id.is_empty() { place.to_owned() } else { self.id.clone() };
        let panels: Vec<&HeatPanel> = self.panels.iter().filter(|panel| !panel.cells.is_empty()).collect();
        if panels.is_empty() {
            return Chart::default();
        }
        Chart {
            id,
            title: self.title.clone(),
            caption: self.caption.clone(),
            columns: self.columns.clamp(1, 4).min(panels.len()),
            panels: panels.into_iter().map(HeatPanel::plot).collect(),
            ..Chart::default()
        }
    }
}

impl HeatPanel {
    fn plot(&self) -> Plot {
        let table = columns_json(self.columns());
        Plot {
            title: self.title.clone(),
            spec: self.spec(),
            data: Map::from_iter([("cells".to_owned(), table)]),
            ..Plot::default()
        }
    }

    fn columns(&self) -> Columns {
        let mut columns: Columns =
            ["x", "y", "text", "about", "colour", "opacity"].map(|name| (name, vec![])).into();
        let specs: Vec<&str> = self.cells.iter().filter_map(HeatCell::discipline).collect();
        let mut distinct = self.disciplines.iter().map(String::as_str).collect::<Vec<_>>();
        distinct.extend(specs.iter().filter(|spec| !self.disciplines.iter().any(|known| known == *spec)));
        let known = looks(&distinct);
        let colour = |spec: &str| {
            let place = distinct.iter().position(|known| *known == spec);
            place.map_or(COLOUR.to_owned(), |place| known[place].colour.clone())
        };
        let span = self.span();
        for cell in &self.cells {
            let (colour, opacity) = match &cell.shade {
                Shade::Discipline(spec) => (colour(spec), OF_DISCIPLINE),
                Shade::Value(value) => (COLOUR.to_owned(), self.opacity(*value, span)),
            };
            let cells = [
                json!(self.x.categories[cell.x]),
                json!(self.y.categories[cell.y]),
                json!(cell.text),
                json!(cell.about),
                json!(colour),
                rounded(opacity, 3),
            ];
            columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
        columns
    }

    /// The lowest and the highest value of the scale.
    fn span(&self) -> (f64, f64) {
        let values = self.cells.iter().filter_map(|cell| match cell.shade {
            Shade::Value(value) => Some(self.scaled(value)),
            Shade::Discipline(_) => None,
        });
        values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    }

    fn scaled(&self, value: f64) -> f64 {
        if self.logarithmic { libm::log10(value) } else { value }
    }

    fn opacity(&self, value: f64, (low, high): (f64, f64)) -> f64 {
        let scaled = self.scaled(value);
        if !scaled.is_finite() || high <= low {
            return OPACITY.0;
        }
        OPACITY.0 + (scaled - low) / (high - low) * (OPACITY.1 - OPACITY.0)
    }

    fn spec(&self) -> Value {
        // The names of the columns of a long map would be below the end of the screen.
        let place = if self.y.categories.len() > LONG { "top" } else { "bottom" };
        let axis = |field: &str, axis: &crate::parts::Axis, angle: i32| {
            json!({ "field": field, "type": "nominal", "title": axis.title, "sort": null,
                    "scale": { "domain": axis.categories, "padding": 0.03 },
                    "axis": { "labelAngle": angle, "labelLimit": 220, "ticks": false, "domain": false,
                              "orient": if field == "x" { place } else { "left" } } })
        };
        // A text with several lines begins at the middle of its cell.
        let breaks = self.cells.iter().map(|cell| cell.text.matches('\n').count()).max();
        let more = breaks.unwrap_or_default() * LINE;
        let characters: usize = self.x.categories.iter().map(|name| name.chars().count() + 2).sum();
        let (x, y) = (axis("x", &self.x, if characters <= 44 { 0 } else { -35 }), axis("y", &self.y, 0));
        json!({
            "data": { "name": "cells" }, "height": (ROW + more) * self.y.categories.len().max(1),
            "layer": [
                { "mark": { "type": "rect", "aria": false },
                  "encoding": { "x": x, "y": y,
                                "color": { "field": "colour", "type": "nominal", "scale": null, "legend": null },
                                "fillOpacity": { "field": "opacity", "type": "quantitative", "scale": null, "legend": null },
                                "tooltip": [{ "field": "about", "type": "nominal", "title": "" }] } },
                { "mark": { "type": "text", "fontSize": 11, "color": "var(--ink)", "aria": false, "lineBreak": "\n",
                            "lineHeight": LINE, "dy": -((more / 2) as i64) },
                  "encoding": { "x": x, "y": y, "text": { "field": "text", "type": "nominal" } } },
            ],
        })
    }
}

impl HeatCell {
    fn discipline(&self) -> Option<&str> {
        match &self.shade {
            Shade::Discipline(spec) => Some(spec),
            Shade::Value(_) => None,
        }
    }
}
