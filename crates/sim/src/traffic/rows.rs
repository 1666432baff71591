//! Rows of CSV files, for lists of transfers and of datagrams.
//!
//! A first row of exactly the names of the columns is a header, `#` starts a comment, and blanks around
//! values do not count. A bad row is an error, and the message names the row, the column, the value found and
//! the value expected.

use std::io;
use std::path::Path;

use giveway_qdisc::units::nearest;
use giveway_qdisc::{Span, Time};

/// Error of a CSV file. The caller adds the path. Rows are numbered by their lines, from 1.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowError {
    /// The file cannot be opened or read, or is not UTF-8.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The text is not CSV.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A row differs in its number of columns from the rows before it, or than any kind of row.
    #[error("row {row} has {found} columns; expected {expected}")]
    Columns {
        /// Number of the row.
        row: usize,
        /// Number of its columns.
        found: usize,
        /// The possible numbers, each with the names of its columns.
        expected: String,
    },
    /// A value is invalid.
    #[error("row {row}, column {column}: found {found:?}, expected {expected}")]
    Value {
        /// Number of the row.
        row: usize,
        /// Name of the column.
        column: &'static str,
        /// The invalid value.
        found: String,
        /// The valid values, in words.
        expected: String,
    },
    /// A row starts one more flow than a source can have.
    #[error("row {row} is of one flow too many: a source has at most {most}, all pairs of nodes together")]
    Flows {
        /// Number of the row.
        row: usize,
        /// Largest number of flows.
        most: usize,
    },
}

/// A row, and the names of its columns.
pub(super) struct CsvRow<'a> {
    record: &'a csv::StringRecord,
    /// The text of the file, for the number of the row.
    file_text: &'a str,
    columns: &'static [&'static str],
}

/// Reads a file row by row. Its first row selects the kind of all rows by the number of columns.
///
/// # Errors
/// The first bad row, or an error of `take`.
pub(super) fn read(
    path: &Path,
    kinds: &[&'static [&'static str]],
    mut take: impl FnMut(CsvRow<'_>) -> Result<(), RowError>,
) -> Result<(), RowError> {
    let text = std::fs::read_to_string(path).map_err(RowError::Read)?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let mut record = csv::StringRecord::new();
    let mut known: Option<&'static [&'static str]> = None;
    while reader.read_record(&mut record)? {
        let first = known.is_none();
        let fitting = match known {
            Some(columns) => (columns.len() == record.len()).then_some(columns),
            None => kinds.iter().copied().find(|columns| columns.len() == record.len()),
        };
        let Some(columns) = fitting else {
            let expected = known.map_or_else(|| kinds.to_vec(), |columns| vec![columns]);
            let expected = expected.iter().map(|columns| format!("{}: {}", columns.len(), columns.join(",")));
            return Err(RowError::Columns {
                row: line_of(&record, &text),
                found: record.len(),
                expected: expected.collect::<Vec<_>>().join(", or "),
            });
        };
        known = Some(columns);
        if first && record.iter().eq(columns.iter().copied()) {
            continue;
        }
        take(CsvRow { record: &record, file_text: &text, columns })?;
    }
    Ok(())
}

/// The line of a record. The position of a record is where the reader started to look for it, so that
/// comments and empty lines are skipped here.
fn line_of(record: &csv::StringRecord, text: &str) -> usize {
    let begin = record.position().map_or(0, |position| position.byte() as usize);
    let skipped =
        text[begin..].lines().take_while(|line| line.trim().is_empty() || line.starts_with('#')).count();
    text[..begin].lines().count() + skipped + 1
}

impl CsvRow<'_> {
    /// The value in a column; `None` if the rows of this file do not have the column.
    pub fn text(&self, column: &str) -> Option<&str> {
        let index = self.columns.iter().position(|name| *name == column)?;
        self.record.get(index)
    }

    /// The number of this row, which is the number of its line in the file, from 1. It is searched from the
    /// start of the file, so it is for errors only.
    pub fn number(&self) -> usize {
        line_of(self.record, self.file_text)
    }

    /// The error for the value in a column of this row.
    pub fn bad(&self, column: &'static str, expected: impl Into<String>) -> RowError {
        let found = self.text(column).unwrap_or_default().to_owned();
        RowError::Value { row: self.number(), column, found, expected: expected.into() }
    }

    /// The time in a column of seconds.
    pub fn time(&self, column: &'static str) -> Result<Time, RowError> {
        match self.text(column).unwrap_or_default().parse::<f64>() {
            Ok(seconds) if (0.0..=10_000_000.0).contains(&seconds) => {
                Ok(Time::ZERO + Span::from_s_f64(seconds))
            }
            _ => Err(self.bad(column, "seconds from 0 to 10,000,000")),
        }
    }

    /// The nodes in the columns src and dst; `None` if the file does not have these columns.
    pub fn nodes(&self, nodes: &[String]) -> Result<Option<(u16, u16)>, RowError> {
        if self.text("src").is_none() {
            return Ok(None);
        }
        let (from, to) = (self.node("src", nodes)?, self.node("dst", nodes)?);
        if from == to {
            return Err(self.bad("dst", "another node than src"));
        }
        Ok(Some((from, to)))
    }

    fn node(&self, column: &'static str, nodes: &[String]) -> Result<u16, RowError> {
        let name = self.text(column).unwrap_or_default();
        if let Some(number) = nodes.iter().position(|node| node == name) {
            return Ok(number as u16);
        }
        Err(match nearest(name, nodes.iter().map(String::as_str)) {
            Some(near) => self.bad(column, format!("the name of a node, perhaps {near:?}")),
            None => self.bad(column, "the name of a node"),
        })
    }
}
