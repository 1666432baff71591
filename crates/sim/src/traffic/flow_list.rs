//! Flow list: transfers as a file lists them, with their times, ends and sizes.
//!
//! # Principles
//! - A CSV file with a row `start_s,src,dst,size_bytes` for each transfer. A first row of exactly these names is a
//!   header; rows may come in any order, `#` begins a comment.
//! - Times are seconds after the source's start. Nodes are named as the scenario names them.
//! - A bad row stops everything: the message names row and column, what stands there and what was expected.
//!
//! # Deviations
//! - Rows that begin at the source's stop or later are left out.
//!
//! # Cost
//! - 32 bytes per row, one connection per running transfer.
//!
//! # References
//! - CSV as RFC 4180 describes it.

use std::path::{Path, PathBuf};

use qdisc::units::nearest;
use qdisc::{Invalid, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Place, Source, Traffic};
use crate::net::Net;

/// Parameters of `flow_list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// CSV file with the columns start_s, src, dst, size_bytes.
    pub file: PathBuf,
}

const COLUMNS: [&str; 4] = ["start_s", "src", "dst", "size_bytes"];

impl Traffic for Config {
    const SUMMARY: &'static str = "TCP transfers from a CSV file: start_s,src,dst,size_bytes";
    const PLACED: bool = false;

    fn build(&self, place: &Place) -> Result<Box<dyn Source>, Invalid> {
        let path = place.folder.join(&self.file);
        let rows = read(&path, &place.nodes)
            .map_err(|message| Invalid::new("file", format!("{}: {message}", path.display())))?;
        let mut rows: Vec<Row> = rows
            .into_iter()
            .map(|row| Row { at: place.start + row.at.since(Time::ZERO), ..row })
            .filter(|row| row.at < place.stop)
            .collect();
        // Latest first, so that the next one is taken from the end; equal times keep the order of the file.
        rows.reverse();
        rows.sort_by_key(|row| std::cmp::Reverse(row.at));
        Ok(Box::new(FlowList { rows }))
    }
}

struct FlowList {
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    at: Time,
    from: u16,
    to: u16,
    bytes: u64,
}

impl Source for FlowList {
    fn wake(&mut self, net: &mut Net<'_>) {
        while let Some(row) = self.rows.pop_if(|row| row.at <= net.now()) {
            net.transfer(row.from, row.to, Some(row.bytes));
        }
        if let Some(row) = self.rows.last() {
            net.wake_at(row.at);
        }
    }
}

fn read(path: &Path, nodes: &[String]) -> Result<Vec<Row>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| error.to_string())? {
        if rows.is_empty() && record.iter().eq(COLUMNS) {
            continue;
        }
        let parsed = row(&record, nodes);
        rows.push(parsed.map_err(|what| format!("row {}{what}", line_of(&record, &text)))?);
    }
    Ok(rows)
}

/// The line on which a record stands. Its position is where the reader began to look for it: skip what is no record.
fn line_of(record: &csv::StringRecord, text: &str) -> usize {
    let begin = record.position().map_or(0, |position| position.byte() as usize);
    let skipped =
        text[begin..].lines().take_while(|line| line.trim().is_empty() || line.starts_with('#')).count();
    text[..begin].lines().count() + skipped + 1
}

/// Reads one row; the error continues "row n".
fn row(record: &csv::StringRecord, nodes: &[String]) -> Result<Row, String> {
    if record.len() != COLUMNS.len() {
        return Err(format!(
            " has {} columns; expected {}: {}",
            record.len(),
            COLUMNS.len(),
            COLUMNS.join(",")
        ));
    }
    let bad = |column: usize, expected: String| {
        format!(", column {}: found {:?}, expected {expected}", COLUMNS[column], &record[column])
    };
    let start: f64 = match record[0].parse() {
        Ok(start) if (0.0..=10_000_000.0).contains(&start) => start,
        _ => return Err(bad(0, "seconds from 0 to 10,000,000".to_owned())),
    };
    let node = |column: usize| match nodes.iter().position(|name| *name == record[column]) {
        Some(number) => Ok(number as u16),
        None => Err(bad(
            column,
            match nearest(&record[column], nodes.iter().map(String::as_str)) {
                Some(name) => format!("the name of a node, perhaps {name:?}"),
                None => "the name of a node".to_owned(),
            },
        )),
    };
    let (from, to) = (node(1)?, node(2)?);
    if from == to {
        return Err(bad(2, "another node than src".to_owned()));
    }
    let bytes = match record[3].parse::<u64>() {
        Ok(bytes) if bytes > 0 => bytes,
        _ => return Err(bad(3, "a whole number of bytes, 1 or more".to_owned())),
    };
    Ok(Row { at: Time::ZERO + Span::from_s_f64(start), from, to, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Row>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows.csv");
        std::fs::write(&path, text).unwrap();
        read(&path, &["alice".to_owned(), "router".to_owned(), "bob".to_owned()])
    }

    #[test]
    fn rows_with_and_without_a_header() {
        for header in ["", "start_s,src,dst,size_bytes\n", "# from a trace\nstart_s, src, dst, size_bytes\n"]
        {
            let rows = read_text(&format!("{header}0.5, alice ,bob,1000\n0,bob,alice,7\n")).unwrap();
            let seen: Vec<_> = rows.iter().map(|row| (row.at, row.from, row.to, row.bytes)).collect();
            assert_eq!(seen, [(Time::ms(500), 0, 2, 1000), (Time::ZERO, 2, 0, 7)]);
        }
    }

    #[test]
    fn a_bad_row_is_named_with_its_column() {
        let complain = |text: &str| read_text(text).unwrap_err();
        assert_eq!(
            complain("0,alice,bob,1\n\n# a comment\n1,alice,bobb,1\n"),
            "row 4, column dst: found \"bobb\", expected the name of a node, perhaps \"bob\""
        );
        assert_eq!(
            complain("start,src,dst,size\n"),
            "row 1, column start_s: found \"start\", expected seconds from 0 to 10,000,000"
        );
        assert_eq!(
            complain("-1,alice,bob,5\n"),
            "row 1, column start_s: found \"-1\", expected seconds from 0 to 10,000,000"
        );
        assert_eq!(
            complain("nan,alice,bob,5\n"),
            "row 1, column start_s: found \"nan\", expected seconds from 0 to 10,000,000"
        );
        assert_eq!(
            complain("0,alice,bob,1.5\n"),
            "row 1, column size_bytes: found \"1.5\", expected a whole number of bytes, 1 or more"
        );
        assert_eq!(
            complain("0,alice,alice,5\n"),
            "row 1, column dst: found \"alice\", expected another node than src"
        );
        assert_eq!(complain("0,alice,bob\n"), "row 1 has 3 columns; expected 4: start_s,src,dst,size_bytes");
    }
}
