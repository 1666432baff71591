//! Edges: a CSV file with a link in each row.
//!
//! # Principles
//! - The first row names the columns: `from`, `to`, `rate` and `delay`, and any of `cost`, `mtu`, `loss`,
//!   `jitter` and `back`, in any order. Values are written as in a `[[link]]`, without quotes: `10 Gbit/s`,
//!   `5 us`. An empty value is the default. `back` is `true` or `false`.
//! - Names of nodes have letters, digits, `-`, `_` and `.`. A node with a single link is a host, and every
//!   other one is a switch.
//! - A line that starts with `#` is a comment.
//!
//! # Cost
//! - As many links as rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use giveway_files::input;
use giveway_qdisc::units::nearest;
use giveway_qdisc::{Bytes, Invalid, Rate, Share, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Edge, End, MAX_PORTS, Shape, Size, size_of};
use crate::network::names::invalid_character;

/// Parameters of `edges`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The CSV file, relative to the folder of the scenario.
    pub file: PathBuf,
}

impl Shape for Config {
    const SUMMARY: &'static str = "the links of a CSV file with the columns from, to, rate and delay";
    const SIZED_BY: &'static str = "fewer rows";

    fn size(&self, folder: &Path) -> Result<Size, Invalid> {
        Ok(size_of(&self.edges(folder)?))
    }

    fn edges(&self, folder: &Path) -> Result<Vec<Edge>, Invalid> {
        let path = folder.join(&self.file);
        let invalid = |message: String| Invalid::new("file", format!("{}: {message}", path.display()));
        let text =
            input::read_to_string(&path).map_err(|error| invalid(format!("cannot be read: {error}")))?;
        parse(&text).map_err(|error| invalid(error.to_string()))
    }
}

/// The columns of the file. The first four are required.
const COLUMNS: [&str; 9] = ["from", "to", "rate", "delay", "cost", "mtu", "loss", "jitter", "back"];
/// The required columns, for messages.
const EXPECTED: &str = "from,to,rate,delay";
/// The number of required columns.
const REQUIRED: usize = 4;

/// An error in a list of links. Rows are numbered by their lines, from 1.
#[derive(Debug, thiserror::Error)]
enum EdgesError {
    #[error(transparent)]
    Csv(#[from] csv::Error),
    #[error("has no rows; expected a first row of {}", EXPECTED)]
    Empty,
    #[error("the first row has no column \"{0}\"; expected {EXPECTED}")]
    Missing(&'static str),
    #[error("the first row has a column \"{found}\"; {help}")]
    Unknown { found: String, help: String },
    #[error("the first row has two columns \"{0}\"")]
    Twice(String),
    #[error("row {row}, column {column}: found {found:?}, expected {expected}")]
    Value { row: u64, column: &'static str, found: String, expected: String },
    #[error("row {row}: a link leads from \"{node}\" to itself")]
    Loop { row: u64, node: String },
    #[error("row {row}: row {first} has a link from \"{from}\" to \"{to}\" already")]
    Again { row: u64, first: u64, from: String, to: String },
    #[error("row {row} is one link too many: a network has at most {} links", MAX_PORTS / 2)]
    TooMany { row: u64 },
}

/// Parses the text of a file.
fn parse(text: &str) -> Result<Vec<Edge>, EdgesError> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let places = columns(reader.headers()?)?;
    let mut edges = Vec::new();
    // The row of each direction.
    let mut rows: BTreeMap<(String, String), u64> = BTreeMap::new();
    for record in reader.records() {
        let record = record?;
        let row = record.position().map_or(0, csv::Position::line);
        if edges.len() == MAX_PORTS / 2 {
            return Err(EdgesError::TooMany { row });
        }
        let edge = Row { record: &record, places: &places, row }.edge()?;
        let (from, to) = (edge.from.name().to_owned(), edge.to.name().to_owned());
        let back = edge.back.then(|| (to.clone(), from.clone()));
        for (from, to) in [(from, to)].into_iter().chain(back) {
            if let Some(first) = rows.insert((from.clone(), to.clone()), row) {
                return Err(EdgesError::Again { row, first, from, to });
            }
        }
        edges.push(edge);
    }
    if edges.is_empty() {
        return Err(EdgesError::Empty);
    }
    mark_hosts(&mut edges);
    Ok(edges)
}

/// The place of each of [`COLUMNS`] in a row.
fn columns(header: &csv::StringRecord) -> Result<[Option<usize>; COLUMNS.len()], EdgesError> {
    let mut places = [None; COLUMNS.len()];
    if header.is_empty() {
        return Err(EdgesError::Empty);
    }
    for (place, name) in header.iter().enumerate() {
        let Some(column) = COLUMNS.iter().position(|column| *column == name) else {
            let help = match nearest(name, COLUMNS) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("there are {}", COLUMNS.join(", ")),
            };
            return Err(EdgesError::Unknown { found: name.to_owned(), help });
        };
        if places[column].replace(place).is_some() {
            return Err(EdgesError::Twice(name.to_owned()));
        }
    }
    match (0..REQUIRED).find(|column| places[*column].is_none()) {
        Some(missing) => Err(EdgesError::Missing(COLUMNS[missing])),
        None => Ok(places),
    }
}

/// A row of the file.
struct Row<'a> {
    record: &'a csv::StringRecord,
    places: &'a [Option<usize>; COLUMNS.len()],
    /// The number of its line.
    row: u64,
}

impl Row<'_> {
    /// The link of the row. Its ends are switches until [`mark_hosts`].
    fn edge(&self) -> Result<Edge, EdgesError> {
        let (from, to) = (self.node(0)?, self.node(1)?);
        if from == to {
            return Err(EdgesError::Loop { row: self.row, node: from });
        }
        let above_zero = |rate: &Rate| rate.as_bit() > 0;
        Ok(Edge {
            from: End::Switch(from),
            to: End::Switch(to),
            rate: self.value(2, "a rate above 0, such as 10 Gbit/s", above_zero)?,
            delay: self.value(3, "a time, such as 5 us", |_| true)?,
            cost: self.optional(4, "a whole number from 1", |cost: &u32| *cost > 0)?.unwrap_or(1),
            mtu: self.optional(5, "68 to 65535 bytes, such as 1500b", |mtu: &Bytes| {
                (68..=65_535).contains(&mtu.0)
            })?,
            loss: self.optional(6, "a share, such as 1 %", |_: &Share| true)?.unwrap_or_default(),
            jitter: self.optional(7, "a time, such as 5 us", |_: &Span| true)?.unwrap_or_default(),
            back: self.optional(8, "true or false", |_: &bool| true)?.unwrap_or(true),
        })
    }

    /// The text in a column; empty if the file does not have it.
    fn text(&self, column: usize) -> &str {
        self.places[column].and_then(|place| self.record.get(place)).unwrap_or_default()
    }

    fn node(&self, column: usize) -> Result<String, EdgesError> {
        let text = self.text(column);
        if text.is_empty() || invalid_character(text).is_some() {
            return Err(self.wrong(column, "a name of letters, digits, \"-\", \"_\" and \".\""));
        }
        Ok(text.to_owned())
    }

    fn value<T: FromStr>(
        &self,
        column: usize,
        expected: &str,
        valid: impl Fn(&T) -> bool,
    ) -> Result<T, EdgesError> {
        let value = self.text(column).parse().ok().filter(valid);
        value.ok_or_else(|| self.wrong(column, expected))
    }

    fn optional<T: FromStr>(
        &self,
        column: usize,
        expected: &str,
        valid: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, EdgesError> {
        if self.text(column).is_empty() {
            return Ok(None);
        }
        self.value(column, expected, valid).map(Some)
    }

    fn wrong(&self, column: usize, expected: &str) -> EdgesError {
        EdgesError::Value {
            row: self.row,
            column: COLUMNS[column],
            found: self.text(column).to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// Makes hosts of the nodes with a single link. If both ends of a link are alone, both are hosts.
fn mark_hosts(edges: &mut [Edge]) {
    let mut links: BTreeMap<String, u32> = BTreeMap::new();
    for edge in edges.iter() {
        for end in [&edge.from, &edge.to] {
            *links.entry(end.name().to_owned()).or_default() += 1;
        }
    }
    for edge in edges {
        for end in [&mut edge.from, &mut edge.to] {
            if links[end.name()] == 1 {
                *end = End::Host(end.name().to_owned());
            }
        }
    }
}
