//! Charts, and the parts that several of them share.

use giveway_document::axis::PLAIN;
use giveway_document::columns::{Columns, json as columns_json};
use giveway_document::{Look, looks};
use giveway_measure::short_names;
use serde_json::{Map, Value, json};

use crate::report::read::Folder;

/// The width of the plot of a chart, in pixels.
pub(super) const WIDTH: u32 = 880;

/// One chart.
pub(in crate::report) struct Chart {
    pub title: String,
    /// The contents of the chart, and a description of a good result.
    pub caption: String,
    /// True if the chart needs the key with the colours of the disciplines.
    pub key: bool,
    pub drawn: Drawn,
}

impl Chart {
    /// A chart without data: a sentence that gives the reason.
    pub(super) fn words(title: String, words: &str) -> Chart {
        Chart { title, caption: String::new(), key: false, drawn: Drawn::Words(words.to_owned()) }
    }
}

/// The content of a chart.
pub(in crate::report) enum Drawn {
    /// A specification and the data that it names.
    Plot { spec: Value, data: Map<String, Value> },
    /// The reason for an empty chart.
    Words(String),
}

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

    pub(super) fn name(&self, spec: &str) -> &str {
        self.find(spec).0
    }

    /// The colour of the column `discipline`. Its legend is the page's ([`Chart::key`]).
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
    if folder.manifest.measured.ports.len() > 1 { format!("{title} at {port}") } else { title.to_owned() }
}

/// "the median of 10 seeds" or "seed 1".
pub(super) fn over_seeds(folder: &Folder) -> String {
    match folder.manifest.seeds.as_slice() {
        [seed] => format!("seed {seed}"),
        seeds => format!("{} seeds", seeds.len()),
    }
}

pub(super) fn plot(spec: Value, data: impl IntoIterator<Item = (&'static str, Columns)>) -> Drawn {
    let data = data.into_iter().map(|(name, columns)| (name.to_owned(), columns_json(columns))).collect();
    Drawn::Plot { spec, data }
}

/// The sides of a panel that have an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sides {
    Left,
    /// The layers have scales of their own, and one of them has its axis on the right.
    Both,
}

/// Small multiples: a panel for each discipline, with the same axes. Few panels are in one column, many in
/// two. `layers` returns the layers of a panel from its axis of time.
pub(super) fn panels(
    names: &[&str],
    data: &str,
    (from, until): (f64, f64),
    sides: Sides,
    layers: impl Fn(&Value) -> Vec<Value>,
) -> Value {
    let columns: usize = if names.len() > 3 { 2 } else { 1 };
    // Space for the numbers and the title of an axis.
    let right = if sides == Sides::Both { 60 } else { 0 };
    let width = if columns == 2 { (WIDTH - 60 - 2 * right) / 2 } else { WIDTH - right };
    let panel = |(at, name): (usize, &&str)| {
        // Only the lowest panel of a column has labels of time.
        let lowest = at + columns >= names.len();
        let mut time = json!({
            "field": "time", "type": "quantitative", "title": "time (s)",
            "scale": { "domain": [from, until], "nice": false },
            "axis": { "tickCount": 8, "format": PLAIN, "labels": lowest, "ticks": lowest },
        });
        if !lowest {
            time["title"] = Value::Null;
        }
        json!({
            "title": { "text": name, "anchor": "start", "frame": "group" },
            "width": width, "height": 130,
            "transform": [{ "filter": { "field": "discipline", "equal": name } }],
            "layer": layers(&time),
            "resolve": { "scale": { "y": if sides == Sides::Both { "independent" } else { "shared" } } },
        })
    };
    json!({
        "data": { "name": data },
        "concat": names.iter().enumerate().map(panel).collect::<Vec<_>>(),
        "columns": columns, "bounds": "flush",
        // Space for the title of a panel, and for the axes between two panels.
        "spacing": { "row": 42, "column": 60 + right },
    })
}

/// A dashed line where the measurement interval begins, unless it is the beginning.
pub(super) fn warmup_rule(folder: &Folder) -> Option<Value> {
    let from = folder.manifest.measured.from_s;
    (from > 0.0).then(|| {
        json!({
            "mark": { "type": "rule", "strokeDash": [3, 3], "color": "var(--faint)" },
            "encoding": { "x": { "datum": from, "type": "quantitative" } },
        })
    })
}
