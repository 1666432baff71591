//! A chart of a page: panels with one set of data, and keys that switch their series.
//!
//! Each panel is a separate plot, as wide as its place: panels stand side by side on a wide page and below
//! each other on a phone. An entry of a key is a button. It hides or shows the rows of all charts whose
//! column has its name.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::colours::Look;
use crate::parts::Sheet;
use crate::sheet::TableView;
use crate::shell::Plots;

/// A chart with its panels.
#[derive(Default)]
pub struct Chart {
    /// The anchor for links, which is unique in the page.
    pub id: String,
    /// The title.
    pub title: String,
    /// The contents of the chart, and a description of a good result.
    pub caption: String,
    /// The keys of its series.
    pub keys: Vec<Key>,
    /// Number of panels side by side on a wide page, 1 to 4.
    pub columns: usize,
    /// The panels, in rows.
    pub panels: Vec<Plot>,
    /// The tables that the panels name, as columns.
    pub data: Map<String, Value>,
    /// A table in place of panels, if there are too few values for a plot.
    pub sheet: Option<Sheet>,
}

/// A panel: a Vega-Lite specification without a width and without data.
#[derive(Default)]
pub struct Plot {
    /// The title; may be empty.
    pub title: String,
    /// A line below the title, such as the unit; may be empty.
    pub subtitle: String,
    /// The name of the only discipline of the panel, which a key can hide; empty if there are several.
    pub discipline: String,
    /// The reason for an empty panel; empty if there is a plot.
    pub words: String,
    /// The specification.
    pub spec: Value,
    /// The tables that it names, as columns; empty if it names the tables of the chart.
    pub data: Map<String, Value>,
}

/// A key: a column of the data, and its values with their looks.
#[derive(Clone, Serialize)]
pub struct Key {
    /// The column whose rows an entry hides.
    pub column: &'static str,
    /// The entries.
    pub entries: Vec<Swatch>,
    /// The thickness of the sample lines, pixels.
    pub width: u32,
    /// True if entries show their specification next to the name.
    pub with_specs: bool,
    /// True if the page has the entries already, in a key that stays visible. Then it is printed only.
    pub repeated: bool,
}

impl Key {
    /// A key of lines.
    pub fn of(column: &'static str, entries: Vec<Swatch>) -> Key {
        Key { column, entries, width: 4, with_specs: false, repeated: false }
    }
}

/// An entry of a key.
#[derive(Clone, Serialize)]
pub struct Swatch {
    /// The name, which is the value in the column of the key.
    pub name: String,
    /// The specification of the discipline; empty for a series without one.
    pub spec: String,
    colour: String,
    dash: String,
    /// A character in place of the line.
    glyph: String,
}

impl Swatch {
    /// The entry of a discipline with this short name, specification and look.
    pub fn new(name: &str, spec: &str, look: &Look) -> Swatch {
        let dash = look.dash.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        Swatch { spec: spec.to_owned(), dash, ..Swatch::coloured(name, &look.colour) }
    }

    /// An entry with a colour alone.
    pub fn coloured(name: &str, colour: &str) -> Swatch {
        let (name, colour) = (name.to_owned(), colour.to_owned());
        Swatch { name, colour, spec: String::new(), dash: String::new(), glyph: String::new() }
    }

    /// An entry with a shape, as points have it.
    pub fn shaped(name: &str, glyph: &str) -> Swatch {
        Swatch { glyph: glyph.to_owned(), ..Swatch::coloured(name, "var(--soft)") }
    }
}

/// A chart as templates use it.
#[derive(Serialize)]
pub struct ChartView {
    id: String,
    title: String,
    caption: String,
    keys: Vec<Key>,
    columns: usize,
    panels: Vec<PlotView>,
    sheet: Option<TableView>,
}

/// A panel as templates use it.
#[derive(Serialize)]
struct PlotView {
    /// The name of the plot.
    id: String,
    title: String,
    subtitle: String,
    discipline: String,
    /// The description for readers who do not see the plot.
    label: String,
    words: String,
}

/// An entry of the contents of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The anchor.
    pub id: String,
    /// The title.
    pub title: String,
    /// 2 for a heading, 3 for a figure.
    pub level: u8,
}

impl Chart {
    /// True if it has no data. A page leaves such a chart out.
    pub fn is_empty(&self) -> bool {
        self.panels.iter().all(|panel| !panel.words.is_empty()) && self.sheet.is_none()
    }

    /// Its entry in the contents.
    pub fn entry(&self) -> Entry {
        Entry { id: self.id.clone(), title: self.title.clone(), level: 3 }
    }

    /// The chart as templates use it. Specifications and data go to `plots`.
    pub fn view(self, plots: &mut Plots) -> ChartView {
        let Chart { id, title, caption, keys, columns, panels, data, sheet } = self;
        let mut views = Vec::new();
        for (at, panel) in panels.into_iter().enumerate() {
            let name = format!("{id}-panel{}", at + 1);
            let names = [title.as_str(), panel.title.as_str()].into_iter().filter(|title| !title.is_empty());
            let label = names.collect::<Vec<_>>().join(": ");
            let Plot { title, subtitle, discipline, words, spec, data } = panel;
            if words.is_empty() {
                let tables = if data.is_empty() { &id } else { &name };
                plots.add(&name, tables, &label, responsive(spec));
            }
            plots.tables(&name, data);
            views.push(PlotView { id: name, title, subtitle, discipline, label, words });
        }
        plots.tables(&id, data);
        let columns = columns.clamp(1, 4).min(views.len().max(1));
        let sheet = sheet.as_ref().map(Sheet::view);
        ChartView { id, title, caption, keys, columns, panels: views, sheet }
    }
}

/// The specification with the width of its place.
fn responsive(mut spec: Value) -> Value {
    spec["width"] = json!("container");
    spec["autosize"] = json!({ "type": "fit-x", "contains": "padding" });
    spec
}
