//! Parts that several charts share.

use giveway_document::axis::PLAIN;
use giveway_document::chart::{Key, Plot, Swatch};
use giveway_document::columns::{Columns, json as columns_json};
use giveway_document::{Look, looks};
use giveway_measure::short_names;
use serde_json::{Map, Value, json};

use crate::report::read::Folder;

/// The largest number of measured ports with their own charts. The page names the other ports in a sentence.
pub(super) const MAX_PORTS: usize = 4;

/// The disciplines of a page, each with its short name and its look.
pub(in crate::report) struct Disciplines {
    pub(super) specs: Vec<String>,
    pub(super) names: Vec<String>,
    pub(super) looks: Vec<Look>,
}

impl Disciplines {
    /// The disciplines of all folders together, so that a discipline looks the same in all of them.
    pub fn of(folders: &[Folder]) -> Disciplines {
        let mut specs: Vec<&str> = Vec::new();
        for spec in folders.iter().flat_map(Folder::disciplines) {
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
        Disciplines {
            names: short_names(&specs),
            looks: looks(&specs),
            specs: specs.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Specification, short name and look of each discipline.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &Look)> {
        let names = self.names.iter().zip(&self.looks);
        self.specs.iter().zip(names).map(|(spec, (name, look))| (spec.as_str(), name.as_str(), look))
    }

    /// Short name and look of a discipline.
    pub fn find(&self, spec: &str) -> (&str, &Look) {
        let (_, name, look) =
            self.iter().find(|(known, ..)| *known == spec).expect("the discipline is in one of the folders");
        (name, look)
    }

    pub(in crate::report) fn name(&self, spec: &str) -> &str {
        self.find(spec).0
    }

    /// The key of the disciplines in a figure, which repeats the key of the page. Lines have dashes; areas
    /// and dots have not.
    pub(super) fn key(&self, specs: &[&str], dashed: bool) -> Key {
        let swatch = |spec: &&str| {
            let (name, look) = self.find(spec);
            if dashed { Swatch::new(name, spec, look) } else { Swatch::coloured(name, &look.colour) }
        };
        Key { repeated: true, ..Key::of("discipline", specs.iter().map(swatch).collect()) }
    }

    /// The key of the page: all disciplines with their specifications; `None` for a single one.
    pub(in crate::report) fn page_key(&self) -> Option<Key> {
        let specs: Vec<&str> = self.specs.iter().map(String::as_str).collect();
        (specs.len() > 1).then(|| Key { with_specs: true, repeated: false, ..self.key(&specs, true) })
    }

    /// The colour of the column `discipline`.
    pub(super) fn colour(&self) -> Value {
        let range: Vec<&str> = self.looks.iter().map(|look| look.colour.as_str()).collect();
        json!({
            "field": "discipline", "type": "nominal", "title": null,
            "scale": { "domain": self.names, "range": range },
            "legend": null,
        })
    }

    /// The width of its lines. Each line is a little narrower than the previous one, which is below it, so
    /// that coinciding lines show as borders.
    pub(super) fn line_width(&self) -> Value {
        let below = |at: usize| (self.names.len() - 1 - at).min(2);
        let range: Vec<f64> = (0..self.names.len()).map(|at| 1.8 + 1.2 * below(at) as f64).collect();
        let mut width = self.colour();
        // An ordinal scale gives the widths in the order of the disciplines.
        width["type"] = json!("ordinal");
        width["scale"]["range"] = json!(range);
        width
    }

    /// The dash of its lines.
    pub(super) fn dash(&self) -> Value {
        let range: Vec<Value> = self
            .looks
            .iter()
            .map(|look| if look.dash.is_empty() { json!([1, 0]) } else { json!(look.dash) })
            .collect();
        let mut dash = self.colour();
        dash["scale"]["range"] = json!(range);
        dash
    }
}

/// A title with its port, if there are several.
pub(super) fn at_port(title: &str, port: &str, folder: &Folder) -> String {
    let measured = &folder.manifest.measured;
    match (measured.ports.len(), measured.title(port)) {
        (0 | 1, _) => title.to_owned(),
        (_, place) if place == port => format!("{title} at {port}"),
        // A direction, as in "upstream".
        (_, direction) => format!("{title}, {direction}"),
    }
}

/// "the median of 10 seeds" or "seed 1".
pub(super) fn over_seeds(folder: &Folder) -> String {
    match folder.manifest.seeds.as_slice() {
        [seed] => format!("seed {seed}"),
        seeds => format!("{} seeds", seeds.len()),
    }
}

/// Tables of a chart, by name.
pub(super) fn data(tables: impl IntoIterator<Item = (&'static str, Columns)>) -> Map<String, Value> {
    tables.into_iter().map(|(name, columns)| (name.to_owned(), columns_json(columns))).collect()
}

/// The sides of a panel with an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sides {
    Left,
    /// The layers have their own scales, and one of them has its axis on the right.
    Both,
}

/// Few panels are below each other, many in two columns.
pub(super) const fn side_by_side(panels: usize) -> usize {
    if panels > 3 { 2 } else { 1 }
}

/// Small multiples: a panel for each discipline, with the same axes. `layers` returns the layers of a panel
/// from the short name of its discipline and its axis of time.
pub(super) fn panels(
    names: &[&str],
    data: &str,
    (from, until): (f64, f64),
    sides: Sides,
    layers: impl Fn(&str, &Value) -> Vec<Value>,
) -> Vec<Plot> {
    let time = json!({
        "field": "time", "type": "quantitative", "title": "time (s)",
        "scale": { "domain": [from, until], "nice": false },
        "axis": { "tickCount": 8, "format": PLAIN },
    });
    let panel = |name: &&str| Plot {
        title: (*name).to_owned(),
        discipline: (*name).to_owned(),
        spec: json!({
            "data": { "name": data }, "height": 130,
            "transform": [{ "filter": { "field": "discipline", "equal": name } }],
            "layer": layers(name, &time),
            "resolve": { "scale": { "y": if sides == Sides::Both { "independent" } else { "shared" } } },
        }),
        ..Plot::default()
    };
    names.iter().map(panel).collect()
}

/// Invisible points that carry the tooltips of lines and areas: these marks as a whole have only one. `y` is
/// the encoding of the value, and `shown` lists further columns with their titles.
pub(super) fn hover(x: &Value, y: &Value, shown: &[(&str, &str)]) -> Value {
    let field = |field: &Value, title: &str| json!({ "field": field, "title": title, "type": "quantitative", "format": ".4~r" });
    let mut tooltip: Vec<Value> =
        shown.iter().map(|(column, title)| json!({ "field": column, "title": title })).collect();
    for encoding in [x, y] {
        let title = encoding["title"].as_str().unwrap_or("value");
        tooltip.push(field(&encoding["field"], title));
    }
    json!({ "mark": { "type": "point", "filled": true, "size": 90, "opacity": 0, "aria": false },
            "encoding": { "x": x, "y": y, "tooltip": tooltip } })
}

/// A dashed line where the measurement interval starts, unless it is the beginning.
pub(super) fn warmup_rule(folder: &Folder) -> Option<Value> {
    let from = folder.manifest.measured.from_s;
    (from > 0.0).then(|| {
        json!({
            "mark": { "type": "rule", "strokeDash": [3, 3], "color": "var(--faint)" },
            "encoding": { "x": { "datum": from, "type": "quantitative" } },
        })
    })
}
