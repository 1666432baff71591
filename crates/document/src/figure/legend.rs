//! The names and looks of the series of a figure.

use serde_json::{Value, json};

use crate::chart::{Key, Swatch};
use crate::colours::{Look, looks};
use crate::parts::{Figure, Mark, Panel, Series};

/// The disciplines of a document, each with one look in all figures.
pub(crate) struct Looks(Vec<(String, Look)>);

impl Looks {
    pub(crate) fn of<'a>(figures: impl Iterator<Item = &'a Figure>) -> Looks {
        let mut specs: Vec<&str> = Vec::new();
        for series in figures.flat_map(|figure| &figure.panels).flat_map(|panel| &panel.series) {
            if !series.discipline.is_empty() && !specs.contains(&series.discipline.as_str()) {
                specs.push(&series.discipline);
            }
        }
        Looks(specs.iter().map(|spec| (*spec).to_owned()).zip(looks(&specs)).collect())
    }

    fn find(&self, spec: &str) -> &Look {
        let found = self.0.iter().find(|(known, _)| known == spec);
        &found.expect("the legend has the disciplines of all figures").1
    }
}

/// The series of a figure, with their labels and looks.
pub(super) struct Legend {
    entries: Vec<Entry>,
    /// True if lines have dashes. Lines of many points would be lost in the dashes.
    pub(super) dashed: bool,
}

/// Maximum number of points of a line with dashes.
const MAX_DASHED: usize = 200;

struct Entry {
    name: String,
    discipline: String,
    /// The name, with the discipline if another series has the same name.
    label: String,
    look: Look,
}

impl Legend {
    pub(super) fn of(figure: &Figure, looks: &Looks) -> Legend {
        let mut entries: Vec<Entry> = Vec::new();
        for series in figure.panels.iter().flat_map(|panel| &panel.series) {
            let Series { name, discipline, .. } = series;
            if entries.iter().any(|entry| entry.name == *name && entry.discipline == *discipline) {
                continue;
            }
            let before = entries.iter().filter(|entry| entry.discipline == *discipline).count();
            let nth = |number: usize| match discipline.as_str() {
                "" => Look::neutral(number),
                spec => looks.find(spec).variant(number),
            };
            // A document may have more disciplines of a kind than looks. Within a figure, looks are unique as
            // long as there are enough of them.
            let used = |look: &Look| entries.iter().any(|entry| entry.look == *look);
            let look = (before..before + Look::VARIANTS).map(nth).find(|look| !used(look));
            let look = look.unwrap_or_else(|| nth(before));
            entries.push(Entry {
                name: name.clone(),
                discipline: discipline.clone(),
                label: String::new(),
                look,
            });
        }
        let labels: Vec<String> = entries
            .iter()
            .map(|entry| {
                let alone = entries.iter().filter(|other| other.name == entry.name).count() == 1;
                match (alone, entry.discipline.as_str()) {
                    (true, _) | (false, "") => entry.name.clone(),
                    (false, spec) => format!("{} ({spec})", entry.name),
                }
            })
            .collect();
        entries.iter_mut().zip(labels).for_each(|(entry, label)| entry.label = label);
        let lines = |panel: &&Panel| matches!(panel.mark, Mark::Line | Mark::Steps);
        let short = |panel: &Panel| panel.series.iter().all(|series| series.points.len() <= MAX_DASHED);
        let mut lines = figure.panels.iter().filter(lines).peekable();
        let dashed = lines.peek().is_some() && lines.all(short);
        Legend { entries, dashed }
    }

    pub(super) fn label(&self, series: &Series) -> &str {
        let mine = |entry: &&Entry| entry.name == series.name && entry.discipline == series.discipline;
        &self.entries.iter().find(mine).expect("the series belongs to this figure").label
    }

    /// An encoding by series, with a value for each.
    fn by_series(&self, kind: &str, range: impl Fn(usize, &Entry) -> Value) -> Value {
        let labels: Vec<&str> = self.entries.iter().map(|entry| entry.label.as_str()).collect();
        let range: Vec<Value> = self.entries.iter().enumerate().map(|(at, entry)| range(at, entry)).collect();
        json!({
            "field": "series", "type": kind, "title": null,
            "scale": { "domain": labels, "range": range },
            "legend": null,
        })
    }

    pub(super) fn colour(&self) -> Value {
        self.by_series("nominal", |_, entry| json!(entry.look.colour))
    }

    pub(super) fn dash(&self) -> Value {
        self.by_series(
            "nominal",
            |_, Entry { look, .. }| {
                if look.dash.is_empty() { json!([1, 0]) } else { json!(look.dash) }
            },
        )
    }

    /// Line widths. Each line is a little narrower than the previous one, which is below it, so that
    /// coinciding lines show as borders.
    pub(super) fn line_width(&self) -> Value {
        let below = |at: usize| (self.entries.len() - 1 - at).min(2);
        self.by_series("ordinal", |at, _| json!(1.6 + 0.9 * below(at) as f64))
    }

    /// The key of the figure; `None` for a single series without a name.
    pub(super) fn key(&self) -> Option<Key> {
        let alone = matches!(self.entries.as_slice(), [alone] if alone.name.is_empty());
        let solid = |look: &Look| Look { dash: Vec::new(), ..look.clone() };
        let swatch = |entry: &Entry| match self.dashed {
            true => Swatch::new(&entry.label, &entry.discipline, &entry.look),
            false => Swatch::new(&entry.label, &entry.discipline, &solid(&entry.look)),
        };
        (!alone).then(|| Key::of("series", self.entries.iter().map(swatch).collect()))
    }
}
