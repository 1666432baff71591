//! A page as HTML.

use serde::Serialize;

use crate::chart::{ChartView, Entry};
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
        let mut contents: Vec<Entry> = Vec::new();
        let mut figures = 0;
        let mut parts = Vec::new();
        for part in &self.parts {
            parts.push(match part {
                Part::Heading(text) => {
                    let id = anchor(text, &contents);
                    contents.push(Entry { id: id.clone(), title: text.clone(), level: 2 });
                    View::Heading { text, id }
                }
                Part::Text(text) => View::Text { paragraphs: paragraphs(text) },
                Part::List(items) => View::List { items },
                Part::Table(sheet) => View::Table(sheet.view()),
                Part::Figure(figure) => {
                    figures += 1;
                    let chart = figure.chart(&format!("figure{figures}"), &looks);
                    contents.push(chart.entry());
                    View::Figure { chart: chart.view(&mut plots) }
                }
                Part::Forest(forest) => {
                    figures += 1;
                    let chart = forest.chart(&format!("figure{figures}"));
                    contents.push(chart.entry());
                    View::Figure { chart: chart.view(&mut plots) }
                }
                Part::Heat(map) => {
                    figures += 1;
                    let chart = map.chart(&format!("figure{figures}"));
                    contents.push(chart.entry());
                    View::Figure { chart: chart.view(&mut plots) }
                }
                Part::Details { summary, text } => View::Details { summary, text },
            });
        }
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
    Heading { text: &'a str, id: String },
    Text { paragraphs: Vec<String> },
    List { items: &'a [String] },
    Table(TableView<'a>),
    Figure { chart: ChartView },
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

    /// The kind of a column: texts that start like numbers are right-aligned, other short texts stay on
    /// one line.
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
