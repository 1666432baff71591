//! The parts of a page.

use serde::Serialize;

/// A page, part by part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The title.
    pub title: String,
    /// A line below the title.
    pub subtitle: String,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

/// A part of a page. All texts are plain: HTML in them is shown as text.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A heading.
    Heading(String),
    /// Text. An empty line separates paragraphs; other line breaks have no meaning.
    Text(String),
    /// A list of sentences.
    List(Vec<String>),
    /// A table.
    Table(Sheet),
    /// A matrix of verdicts.
    Verdicts(Verdicts),
    /// A figure.
    Figure(Figure),
    /// A forest plot.
    Forest(Forest),
    /// A heat map.
    Heat(HeatMap),
    /// Text that opens on a click, with its line breaks, such as a scenario.
    Details {
        /// The visible line.
        summary: String,
        /// The hidden text.
        text: String,
    },
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// The caption.
    pub caption: String,
    /// The titles of its columns.
    pub head: Vec<String>,
    /// Rows, with a cell for each column. Columns of numbers are right-aligned.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The text, which must be clear without the tone.
    pub text: String,
    /// The tone.
    pub tone: Tone,
}

/// The tone of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Normal text.
    #[default]
    Plain,
    /// A good result.
    Good,
    /// A bad result.
    Bad,
    /// A result of less importance.
    Faint,
    /// A result without a difference.
    Same,
    /// A result that is not decided.
    Open,
}

/// A matrix of verdicts: a word and signs in each cell. A verdict that is open looks unlike one without a
/// difference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    /// The anchor for links.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The caption.
    pub caption: String,
    /// The titles of its columns.
    pub columns: Vec<String>,
    /// The rows, each with its name and a cell for each column; `None` for an empty cell.
    pub rows: Vec<(String, Vec<Option<VerdictCell>>)>,
}

/// A cell of a matrix of verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerdictCell {
    /// The verdict in a word or two; may be empty.
    pub word: String,
    /// The tone of the verdict.
    pub tone: Tone,
    /// A sentence that appears when the mouse is over it.
    pub about: String,
    /// The signs below the word, such as `+9` or `?`.
    pub signs: Vec<Sign>,
}

/// A sign in a cell of a matrix of verdicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sign {
    /// The text, which must be clear without the tone.
    pub text: String,
    /// The tone.
    pub tone: Tone,
}

impl Cell {
    /// A cell of plain tone.
    pub fn plain(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), tone: Tone::Plain }
    }
}

/// A figure: one panel or several, in rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// The anchor for links.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The caption. Sentences about omitted points are added to it.
    pub caption: String,
    /// The panels.
    pub panels: Vec<Panel>,
    /// Number of panels side by side on a wide page, 1 to 4.
    pub columns: usize,
}

/// A forest plot: a row for each claim, with its value, its interval and its band, on a logarithmic axis
/// where 1 is the limit of the band.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forest {
    /// The anchor for links.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The caption.
    pub caption: String,
    /// The rows, from top to bottom.
    pub rows: Vec<ForestRow>,
}

/// A row of a forest plot. All numbers are relative to the limit of the band.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForestRow {
    /// The short name of the claim, unique in the plot.
    pub name: String,
    /// The claim in a sentence.
    pub about: String,
    /// The group that the key switches, such as the verdict.
    pub group: String,
    /// True if the value is where it should be.
    pub good: bool,
    /// The value.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The lower and the upper end of the band; `None` for a band without this end.
    pub band: (Option<f64>, Option<f64>),
}

/// A heat map: one panel or several, in rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// The anchor for links.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The caption.
    pub caption: String,
    /// The panels.
    pub panels: Vec<HeatPanel>,
    /// Number of panels side by side on a wide page, 1 to 4.
    pub columns: usize,
}

/// A panel of a heat map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatPanel {
    /// Its title; may be empty.
    pub title: String,
    /// The horizontal axis, which has categories.
    pub x: Axis,
    /// The vertical axis, which has categories, from top to bottom.
    pub y: Axis,
    /// True if the shade follows the logarithm of a value.
    pub logarithmic: bool,
    /// All disciplines of the page, which determine the colour of each.
    pub disciplines: Vec<String>,
    /// The cells.
    pub cells: Vec<HeatCell>,
}

/// A cell of a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatCell {
    /// The index of its category on the horizontal axis.
    pub x: usize,
    /// The index of its category on the vertical axis.
    pub y: usize,
    /// The text in the cell, in one line or several.
    pub text: String,
    /// A sentence that appears when the mouse is over it.
    pub about: String,
    /// The shade.
    pub shade: Shade,
}

/// The shade of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Shade {
    /// Darker for a higher value, relative to the other values of the panel.
    Value(f64),
    /// The colour of a discipline, by its specification.
    Discipline(String),
}

/// A pair of axes with its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its title; may be empty.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The mark of its series.
    pub mark: Mark,
    /// The series.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// The title, with the unit.
    pub title: String,
    /// True for a logarithmic axis, which omits values of zero or less.
    pub logarithmic: bool,
    /// The labels at 0, 1, 2... of an x axis with categories; empty for an axis with numbers.
    pub categories: Vec<String>,
    /// The range of the axis; `None` for the range of the data. Points outside are not drawn.
    pub domain: Option<(f64, f64)>,
}

impl Axis {
    /// An axis of categories without a title.
    pub fn of(categories: Vec<String>) -> Axis {
        Axis { categories, ..Axis::default() }
    }
}

/// The mark of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Straight lines between points, in the order of the points.
    Line,
    /// Lines that keep a value until the next point, in the order of the points.
    Steps,
    /// Points alone.
    Points,
    /// A group of bars for each category, with a bar for each series. On an axis with numbers, each number
    /// that occurs is a category.
    Bars,
}

/// A series of points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The name. Series with the same name and discipline look the same in all panels of a figure.
    pub name: String,
    /// The specification of its discipline, which determines the colour; empty for a series without a
    /// discipline.
    pub discipline: String,
    /// Its points.
    pub points: Vec<Point>,
}

/// A point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// The horizontal position: a number, or the index of a category.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The lower end of the interval; `y` without an interval.
    pub low: f64,
    /// The upper end of the interval; `y` without an interval.
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
