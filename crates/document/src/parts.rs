//! The parts of a page.

use serde::Serialize;

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
