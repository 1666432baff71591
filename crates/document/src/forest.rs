//! Forest plots.

use serde_json::{Map, Value, json};

use crate::axis::{PLAIN, logarithmic};
use crate::chart::{Chart, Key, Plot, Swatch};
use crate::columns::{Columns, json as columns_json, rounded};
use crate::parts::{Forest, ForestRow};

/// The ends of the axis. Values beyond them are drawn at the ends.
const ENDS: (f64, f64) = (0.05, 20.0);
/// The height of a row, pixels.
const ROW: usize = 18;
/// Colours of good and of bad rows: variables of the page.
const COLOURS: [&str; 2] = ["var(--good)", "var(--bad)"];

impl Forest {
    /// The plot as a chart. `place` is its anchor if it has none.
    pub(crate) fn chart(&self, place: &str) -> Chart {
        let id = if self.id.is_empty() { place.to_owned() } else { self.id.clone() };
        if self.rows.is_empty() {
            return Chart::default();
        }
        let groups = self.groups();
        let entries = groups.iter().map(|(name, good)| Swatch::coloured(name, colour(*good))).collect();
        Chart {
            id,
            title: self.title.clone(),
            caption: self.caption.clone(),
            keys: vec![Key::of("group", entries)],
            panels: vec![Plot { spec: self.spec(&groups), ..Plot::default() }],
            data: Map::from_iter([("claims".to_owned(), columns_json(self.columns()))]),
            ..Chart::default()
        }
    }

    /// The groups in the order of the rows, each with the tone of its first row.
    fn groups(&self) -> Vec<(&str, bool)> {
        let mut groups: Vec<(&str, bool)> = Vec::new();
        for ForestRow { group, good, .. } in &self.rows {
            if !groups.iter().any(|(name, _)| name == group) {
                groups.push((group, *good));
            }
        }
        groups
    }

    fn columns(&self) -> Columns {
        let names = ["claim", "about", "group", "value", "low", "high", "from", "to", "exact"];
        let mut columns: Columns = names.map(|name| (name, vec![])).into();
        for row in &self.rows {
            let (from, to) = row.band;
            let cells = [
                json!(row.name),
                json!(row.about),
                json!(row.group),
                within(row.value),
                within(row.low),
                within(row.high),
                within(from.unwrap_or(0.0)),
                within(to.unwrap_or(f64::MAX)),
                rounded(row.value, 4),
            ];
            columns.iter_mut().zip(cells).for_each(|((_, column), cell)| column.push(cell));
        }
        columns
    }

    fn spec(&self, groups: &[(&str, bool)]) -> Value {
        let names: Vec<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
        let y = json!({ "field": "claim", "type": "nominal", "title": null, "sort": names,
                        "axis": { "labelLimit": 210, "ticks": false, "domain": false, "labelFontSize": 11 } });
        let x = |field: &str| {
            let mut x =
                json!({ "field": field, "type": "quantitative", "title": "value / limit of the band" });
            logarithmic(&mut x, ENDS.0, ENDS.1, PLAIN);
            x["scale"] = json!({ "type": "log", "nice": false, "domain": [ENDS.0, ENDS.1] });
            x
        };
        let (words, colours): (Vec<&str>, Vec<&str>) =
            groups.iter().map(|(name, good)| (*name, colour(*good))).unzip();
        let colour = json!({ "field": "group", "type": "nominal", "scale": { "domain": words, "range": colours },
                             "legend": null });
        let tooltip =
            json!([{ "field": "about", "title": "" }, { "field": "exact", "title": "value / limit" }]);
        json!({
            "data": { "name": "claims" }, "height": ROW * self.rows.len(),
            "layer": [
                { "mark": { "type": "bar", "height": { "band": 0.62 }, "color": "var(--line)" },
                  "encoding": { "y": y, "x": x("from"), "x2": { "field": "to" }, "tooltip": tooltip } },
                { "mark": { "type": "rule", "strokeWidth": 1.6 },
                  "encoding": { "y": y, "x": x("low"), "x2": { "field": "high" }, "color": colour } },
                { "mark": { "type": "point", "filled": true, "size": 46, "opacity": 1 },
                  "encoding": { "y": y, "x": x("value"), "color": colour, "tooltip": tooltip } },
                { "data": { "values": [{}] }, "mark": { "type": "rule", "strokeDash": [3, 3], "color": "var(--soft)" },
                  "encoding": { "x": { "datum": 1, "type": "quantitative" } } },
            ],
        })
    }
}

/// The colour of a row.
fn colour(good: bool) -> &'static str {
    if good { COLOURS[0] } else { COLOURS[1] }
}

/// A value within the axis.
fn within(value: f64) -> Value {
    rounded(value.clamp(ENDS.0, ENDS.1), 4)
}
