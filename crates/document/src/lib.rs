//! A page that somebody writes: headings, text, tables, and figures from numbers. It looks as the report of a run does,
//! opens offline, prints, and has no clock: the same document gives the same page, byte by byte.
//!
//! ```
//! use giveway_document::{Axis, Document, Figure, Mark, Panel, Part, Point, Series};
//!
//! let times = Series {
//!     name: "EFD".into(),
//!     discipline: "efd limit 300p".into(), // its colour is that of the reports
//!     points: vec![Point::new(4.0, 0.02), Point::within(8.0, 0.05, 0.01)],
//! };
//! let page = Document {
//!     title: "Response times".into(),
//!     subtitle: "ten seeds".into(),
//!     parts: vec![
//!         Part::Text("Small transfers do not wait.".into()),
//!         Part::Figure(Figure {
//!             id: "fig-5".into(),
//!             title: "Response time by load".into(),
//!             caption: "Means and 95 % intervals.".into(),
//!             panels: vec![Panel {
//!                 title: String::new(),
//!                 x: Axis { title: "load (Mbit/s)".into(), ..Axis::default() },
//!                 y: Axis { title: "time (s)".into(), logarithmic: true, ..Axis::default() },
//!                 mark: Mark::Line,
//!                 series: vec![times],
//!             }],
//!             columns: 1,
//!         }),
//!     ],
//! }
//! .html();
//! assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Small transfers do not wait."));
//! ```

#![forbid(unsafe_code)]

pub mod axis;
mod colours;
pub mod columns;
mod figure;
pub mod shell;

use serde::Serialize;

use figure::Looks;
use shell::{Plots, Swatch, paragraphs};

pub use colours::{Look, looks};

/// The template of a written page.
const DOCUMENT: (&str, &str) = ("document.html", include_str!("../assets/document.html"));

/// A page, part by part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// What it is about, in a line.
    pub title: String,
    /// What stands below the title.
    pub subtitle: String,
    /// What is in it, in order.
    pub parts: Vec<Part>,
}

/// A part of a page. All texts are plain: what looks like HTML is shown as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// The title of what follows.
    Heading(String),
    /// Text; empty lines part its paragraphs, other line breaks mean nothing.
    Text(String),
    /// Sentences with a dot before each.
    List(Vec<String>),
    /// A table.
    Table(Sheet),
    /// A figure.
    Figure(Figure),
    /// Text that is shown when somebody asks for it, with its line breaks, such as a scenario.
    Details {
        /// What is always shown.
        summary: String,
        /// What is not.
        text: String,
    },
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// What it shows.
    pub caption: String,
    /// The titles of its columns.
    pub head: Vec<String>,
    /// Its rows, with a cell for each column. Columns of numbers are set to the right.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// What stands in it. It must not need the tone to be understood.
    pub text: String,
    /// How it stands there.
    pub tone: Tone,
}

/// How a cell is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// As text is.
    #[default]
    Plain,
    /// What holds.
    Good,
    /// What does not.
    Bad,
    /// What matters less.
    Faint,
}

impl Cell {
    /// A cell of plain tone.
    pub fn plain(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), tone: Tone::Plain }
    }
}

/// A figure: one panel or several, side by side and below each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Its name in links to it.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it shows. What had to be left out is added to it.
    pub caption: String,
    /// What is drawn.
    pub panels: Vec<Panel>,
    /// How many panels stand beside each other on a wide page, 1 to 4.
    pub columns: usize,
}

/// One pair of axes with what is drawn in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its title; may be empty.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// How its series are drawn.
    pub mark: Mark,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it tells, with the unit.
    pub title: String,
    /// Whether equal steps are equal factors. What is not above zero has no place on it.
    pub logarithmic: bool,
    /// What stands at 0, 1, 2... of an x axis that has no numbers; empty for numbers.
    pub categories: Vec<String>,
    /// From where to where it goes; as the data want it if it does not say. What is beyond is not drawn.
    pub domain: Option<(f64, f64)>,
}

/// How series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Straight lines between points, in the order of the points.
    Line,
    /// Lines that keep a value until the next point, in the order of the points.
    Steps,
    /// Points alone.
    Points,
    /// A group of bars for each category, with a bar for each series. Where x has numbers, each that occurs is a category.
    Bars,
}

/// What belongs together within a panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// As it is shown. Series of one name and one discipline look the same in all panels of a figure.
    pub name: String,
    /// The discipline that it is of, spelled in full, which decides its colour. Empty for what is of none.
    pub discipline: String,
    /// Its points.
    pub points: Vec<Point>,
}

/// A point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Where: a number, or which of the categories.
    pub x: f64,
    /// What.
    pub y: f64,
    /// The lower end of its interval; `y` where there is none.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Point {
    /// A point without an interval.
    pub const fn new(x: f64, y: f64) -> Point {
        Point { x, y, low: y, high: y }
    }

    /// A point with an interval of `half` to either side.
    pub const fn within(x: f64, y: f64, half: f64) -> Point {
        Point { x, y, low: y - half, high: y + half }
    }
}

impl Document {
    /// The page.
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

/// What the template is given.
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
    /// What its column has: numbers, short texts, or long ones.
    column: &'static str,
}

#[derive(Serialize)]
struct FigureView {
    id: String,
    title: String,
    caption: String,
    columns: usize,
    /// Which colour is what; empty where there is one series without a name.
    key: Vec<Swatch>,
    panels: Vec<PanelView>,
    /// Why there is nothing to see; empty where there is something.
    words: String,
}

#[derive(Serialize)]
struct PanelView {
    /// Which of the plots.
    id: String,
    title: String,
    /// What a reader who does not see it is told.
    label: String,
    /// Why there is nothing to see; empty where there is something.
    words: String,
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

    /// How a column is set: short texts that begin like numbers to the right, other short ones on one line.
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
