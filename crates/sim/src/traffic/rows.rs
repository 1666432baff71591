//! Rows of CSV files, for lists of transfers and of datagrams.
//!
//! A first row of exactly the names of the columns is a header, `#` begins a comment, and blanks around
//! values do not count. A bad row is an error, and the message names the row, the column, the value found and
//! the value expected.

use std::path::Path;

use giveway_qdisc::units::nearest;
use giveway_qdisc::{Span, Time};

/// A row, and the names of its columns.
pub(super) struct Row<'a> {
    record: &'a csv::StringRecord,
    columns: &'static [&'static str],
}

/// Reads a file row by row. Its first row selects the kind of all rows by the number of columns.
///
/// # Errors
/// A message about the first bad row. Messages of `take` continue "row n".
pub(super) fn read(
    path: &Path,
    kinds: &[&'static [&'static str]],
    mut take: impl FnMut(Row<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let mut record = csv::StringRecord::new();
    let mut known: Option<&'static [&'static str]> = None;
    while reader.read_record(&mut record).map_err(|error| error.to_string())? {
        let first = known.is_none();
        let fitting = match known {
            Some(columns) => (columns.len() == record.len()).then_some(columns),
            None => kinds.iter().copied().find(|columns| columns.len() == record.len()),
        };
        let Some(columns) = fitting else {
            let expected = known.map_or_else(|| kinds.to_vec(), |columns| vec![columns]);
            let expected = expected.iter().map(|columns| format!("{}: {}", columns.len(), columns.join(",")));
            return Err(format!(
                "row {} has {} columns; expected {}",
                line_of(&record, &text),
                record.len(),
                expected.collect::<Vec<_>>().join(", or ")
            ));
        };
        known = Some(columns);
        if first && record.iter().eq(columns.iter().copied()) {
            continue;
        }
        let taken = take(Row { record: &record, columns });
        taken.map_err(|what| format!("row {}{what}", line_of(&record, &text)))?;
    }
    Ok(())
}

/// The line of a record. The position of a record is where the reader began to look for it, so that comments
/// and empty lines are skipped here.
fn line_of(record: &csv::StringRecord, text: &str) -> usize {
    let begin = record.position().map_or(0, |position| position.byte() as usize);
    let skipped =
        text[begin..].lines().take_while(|line| line.trim().is_empty() || line.starts_with('#')).count();
    text[..begin].lines().count() + skipped + 1
}

impl Row<'_> {
    /// The value in a column; `None` if the rows of this file do not have the column.
    pub fn text(&self, column: &str) -> Option<&str> {
        let index = self.columns.iter().position(|name| *name == column)?;
        self.record.get(index)
    }

    /// An error message about a column of this row, which continues "row n".
    pub fn bad(&self, column: &str, expected: impl AsRef<str>) -> String {
        let found = self.text(column).unwrap_or_default();
        format!(", column {column}: found {found:?}, expected {}", expected.as_ref())
    }

    /// The time in a column of seconds.
    pub fn time(&self, column: &str) -> Result<Time, String> {
        match self.text(column).unwrap_or_default().parse::<f64>() {
            Ok(seconds) if (0.0..=10_000_000.0).contains(&seconds) => {
                Ok(Time::ZERO + Span::from_s_f64(seconds))
            }
            _ => Err(self.bad(column, "seconds from 0 to 10,000,000")),
        }
    }

    /// The nodes in the columns src and dst; `None` if the file does not have these columns.
    pub fn nodes(&self, nodes: &[String]) -> Result<Option<(u16, u16)>, String> {
        if self.text("src").is_none() {
            return Ok(None);
        }
        let (from, to) = (self.node("src", nodes)?, self.node("dst", nodes)?);
        if from == to {
            return Err(self.bad("dst", "another node than src"));
        }
        Ok(Some((from, to)))
    }

    fn node(&self, column: &str, nodes: &[String]) -> Result<u16, String> {
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
