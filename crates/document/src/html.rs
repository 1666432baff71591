//! A page as HTML.

use serde::Serialize;

use crate::figure::FigureView;
use crate::figure::legend::Looks;
use crate::parts::{Document, Figure, Part, Sheet, Tone};
use crate::shell::{self, Plots, paragraphs};

/// The template of a page with text and figures.
const DOCUMENT: (&str, &str) = ("document.html", include_str!("../assets/document.html"));

impl Document {
    /// Returns the page as HTML.
    pub fn html(&self) -> String {
        let looks = Looks::of(self.figures());
        let mut plots = Plots::default();
        let mut figures = 0;
        let parts = self.parts.iter().map(|part| match part {
            Part::Heading(text) => View::Heading { text },
            Part::Text(text) => View::Text { paragraphs: paragraphs(text) },
            Part::List(items) => View::List { items },
            Part::Table(sheet) => View::Table(sheet.view()),
            Part::Figure(figure) => {
                figures += 1;
                View::Figure(figure.view(&format!("figure{figures}"), &looks, &mut plots))
            }
            Part::Details { summary, text } => View::Details { summary, text },
        });
        let page = Page { title: &self.title, subtitle: &self.subtitle, parts: parts.collect() };
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
    parts: Vec<View<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum View<'a> {
    Heading { text: &'a str },
    Text { paragraphs: Vec<String> },
    List { items: &'a [String] },
    Table(TableView<'a>),
    Figure(FigureView),
    Details { summary: &'a str, text: &'a str },
}

#[derive(Serialize)]
struct TableView<'a> {
    caption: &'a str,
    head: Vec<CellView<'a>>,
    rows: Vec<Vec<CellView<'a>>>,
}

#[derive(Serialize)]
struct CellView<'a> {
    text: &'a str,
    tone: Tone,
    /// The kind of the column: numbers, short texts, or long texts.
    column: &'static str,
}

impl Sheet {
    fn view(&self) -> TableView<'_> {
        let columns = self.rows.iter().map(Vec::len).chain([self.head.len()]).max().unwrap_or(0);
        let kinds: Vec<&str> = (0..columns).map(|at| self.column(at)).collect();
        let cell = |at: usize, text, tone| CellView { text, tone, column: kinds[at] };
        let head = self.head.iter().enumerate().map(|(at, text)| cell(at, text.as_str(), Tone::Plain));
        let rows = self.rows.iter().map(|row| {
            let cells = row.iter().enumerate().map(|(at, found)| cell(at, found.text.as_str(), found.tone));
            cells.collect()
        });
        TableView { caption: &self.caption, head: head.collect(), rows: rows.collect() }
    }

    /// The kind of a column: texts that begin like numbers are right-aligned, other short texts stay on one
    /// line.
    fn column(&self, at: usize) -> &'static str {
        let texts: Vec<&str> = self.rows.iter().filter_map(|row| Some(row.get(at)?.text.as_str())).collect();
        let begins = |c: char| c.is_ascii_digit() || "+-\u{2212}±<>≤≥".contains(c);
        let numeric = |text: &&str| text.chars().next().is_none_or(begins);
        if texts.iter().any(|text| text.chars().count() > 24) {
            "long"
        } else if !texts.is_empty() && texts.iter().all(numeric) {
            "number"
        } else {
            "short"
        }
    }
}
