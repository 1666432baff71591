//! A page as HTML.

use serde::Serialize;

use crate::chart::{Chart, ChartView, Entry};
use crate::figure::legend::Looks;
use crate::parts::{Document, Figure, Part};
use crate::sheet::{MatrixView, TableView};
use crate::shell::{self, Plots, paragraphs};

/// The template of a page with text and figures.
const DOCUMENT: (&str, &str) = ("document.html", include_str!("../assets/document.html"));

impl Document {
    /// Returns the page as HTML.
    pub fn html(&self) -> String {
        let looks = Looks::of(self.figures());
        let mut plots = Plots::default();
        let mut contents: Vec<Entry> = Vec::new();
        let mut figures = 0;
        let mut parts = Vec::new();
        let mut figure = |chart: &dyn Fn(&str) -> Chart, contents: &mut Vec<Entry>| {
            figures += 1;
            let chart = Some(chart(&format!("figure{figures}"))).filter(|chart| !chart.is_empty())?;
            contents.push(chart.entry());
            Some(View::Figure { chart: chart.view(&mut plots) })
        };
        for part in &self.parts {
            parts.extend(match part {
                Part::Heading(text) => {
                    let id = anchor(text, &contents);
                    contents.push(Entry { id: id.clone(), title: text.clone(), level: 2 });
                    Some(View::Heading { text, id })
                }
                Part::Text(text) => Some(View::Text { paragraphs: paragraphs(text) }),
                Part::List(items) => (!items.is_empty()).then_some(View::List { items }),
                Part::Table(sheet) => (!sheet.rows.is_empty()).then(|| View::Table(sheet.view())),
                Part::Verdicts(matrix) => (!matrix.rows.is_empty()).then(|| {
                    contents.push(Entry { id: matrix.id.clone(), title: matrix.title.clone(), level: 3 });
                    View::Verdicts(matrix.view())
                }),
                Part::Figure(of) => figure(&|place| of.chart(place, &looks), &mut contents),
                Part::Forest(forest) => figure(&|place| forest.chart(place), &mut contents),
                Part::Heat(map) => figure(&|place| map.chart(place), &mut contents),
                Part::Details { summary, text } => Some(View::Details { summary, text }),
            });
        }
        leave_out_headings(&mut parts, &mut contents);
        place_contents(&mut parts);
        let page = Page { title: &self.title, subtitle: &self.subtitle, contents, parts };
        shell::render(DOCUMENT, page, plots)
    }

    fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.parts.iter().filter_map(|part| match part {
            Part::Figure(figure) => Some(figure),
            _ => None,
        })
    }
}

/// The values of the template.
#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    subtitle: &'a str,
    contents: Vec<Entry>,
    parts: Vec<View<'a>>,
}

/// Removes headings without content, and their entries in the contents.
fn leave_out_headings(parts: &mut Vec<View<'_>>, contents: &mut Vec<Entry>) {
    let is_heading = |view: &View<'_>| matches!(view, View::Heading { .. });
    for at in (0..parts.len()).rev() {
        let alone = parts.get(at + 1).is_none_or(is_heading);
        if let (View::Heading { id, .. }, true) = (&parts[at], alone) {
            contents.retain(|entry| entry.id != *id);
            parts.remove(at);
        }
    }
}

/// Puts the contents below the answer: behind the first table, or in front of the second heading if that
/// comes first.
fn place_contents(parts: &mut Vec<View<'_>>) {
    let is_table = |view: &View<'_>| matches!(view, View::Table(_) | View::Verdicts(_));
    let table = parts.iter().position(is_table).map(|at| at + 1);
    let mut headings = parts.iter().enumerate().filter(|(_, view)| matches!(view, View::Heading { .. }));
    let second = headings.nth(1).map(|(at, _)| at);
    let place = table.into_iter().chain(second).min().unwrap_or(0);
    parts.insert(place, View::Contents);
}

/// The anchor of a heading: its letters and digits, and a number if another heading has the same.
fn anchor(text: &str, before: &[Entry]) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.map(str::to_lowercase).collect::<Vec<_>>().join("-");
    let taken = |id: &str| before.iter().any(|entry| entry.id == id);
    let first = format!("part-{words}");
    let numbered = (2..).map(|number| format!("{first}-{number}"));
    [first.clone()].into_iter().chain(numbered).find(|id| !taken(id)).expect("numbers do not end")
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum View<'a> {
    Heading {
        text: &'a str,
        id: String,
    },
    Text {
        paragraphs: Vec<String>,
    },
    List {
        items: &'a [String],
    },
    Table(TableView),
    Verdicts(MatrixView<'a>),
    Figure {
        chart: ChartView,
    },
    Details {
        summary: &'a str,
        text: &'a str,
    },
    /// The place of the contents.
    Contents,
}
