//! Flow list: transfers from a file that lists their times, nodes and sizes.
//!
//! # Principles
//! - A CSV file with a row `start_s,src,dst,size_bytes` for each transfer. A first row of exactly these names
//!   is a header; rows may come in any order, `#` starts a comment.
//! - Times are seconds after the source's start. Nodes are named as the scenario names them.
//! - A bad row is an error: the message names the row, the column, the value found and the value expected.
//!
//! # Deviations
//! - Rows that start at the source's stop or later are left out.
//!
//! # Cost
//! - 32 bytes per row, one connection per running transfer.
//!
//! # References
//! - CSV as RFC 4180 describes it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use giveway_qdisc::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rows::{self, CsvRow, RowError};
use super::{NodeOrigin, Source, SourceContext, Traffic};
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
    const PLACED: NodeOrigin = NodeOrigin::File;

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        let path = context.folder.join(&self.file);
        let list = read(&path, &context.nodes)
            .map_err(|error| Invalid::new("file", format!("{}: {error}", path.display())))?;
        // Including the rows that are left out, so that the pairs of nodes do not depend on the stop of the
        // source.
        let named: BTreeSet<(u16, u16)> = list.iter().map(|transfer| (transfer.from, transfer.to)).collect();
        let mut transfers: Vec<Transfer> = list
            .into_iter()
            .map(|transfer| Transfer { at: context.start + transfer.at.since(Time::ZERO), ..transfer })
            .filter(|transfer| transfer.at < context.stop)
            .collect();
        // The latest first, so that the next one is taken from the end; equal times keep the order of the
        // file.
        transfers.reverse();
        transfers.sort_by_key(|transfer| std::cmp::Reverse(transfer.at));
        Ok(Box::new(FlowList { transfers, named: named.into_iter().collect() }))
    }
}

struct FlowList {
    transfers: Vec<Transfer>,
    /// Pairs of nodes that the file names.
    named: Vec<(u16, u16)>,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    at: Time,
    from: u16,
    to: u16,
    bytes: u64,
}

impl Source for FlowList {
    fn wake(&mut self, net: &mut Net<'_>) {
        while let Some(transfer) = self.transfers.pop_if(|transfer| transfer.at <= net.now()) {
            net.transfer(transfer.from, transfer.to, Some(transfer.bytes));
        }
        if let Some(transfer) = self.transfers.last() {
            net.wake_at(transfer.at);
        }
    }

    fn named(&self) -> Option<Vec<(u16, u16)>> {
        Some(self.named.clone())
    }
}

fn read(path: &Path, nodes: &[String]) -> Result<Vec<Transfer>, RowError> {
    let mut transfers = Vec::new();
    rows::read(path, &[&COLUMNS], |row| {
        let at = row.time("start_s")?;
        let (from, to) = row.nodes(nodes)?.expect("each row has these columns");
        transfers.push(Transfer { at, from, to, bytes: size(&row)? });
        Ok(())
    })?;
    Ok(transfers)
}

/// Number of bytes that the application sends.
fn size(row: &CsvRow<'_>) -> Result<u64, RowError> {
    match row.text("size_bytes").unwrap_or_default().parse() {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(row.bad("size_bytes", "a whole number of bytes, 1 or more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Transfer>, RowError> {
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
        let refusal = |text: &str| read_text(text).unwrap_err().to_string();
        assert_eq!(
            refusal("0,alice,bob,1\n\n# a comment\n1,alice,bobb,1\n"),
            "row 4, column dst: found \"bobb\", expected the name of a node, perhaps \"bob\""
        );
        assert_eq!(
            refusal("start,src,dst,size\n"),
            "row 1, column start_s: found \"start\", expected seconds from 0 to 10,000,000"
        );
        assert_eq!(
            refusal("-1,alice,bob,5\n"),
            "row 1, column start_s: found \"-1\", expected seconds from 0 to 10,000,000"
        );
        assert_eq!(
            refusal("nan,alice,bob,5\n"),
            "row 1, column start_s: found \"nan\", expected seconds from 0 to 10,000,000"
        );
        assert_eq!(
            refusal("0,alice,bob,1.5\n"),
            "row 1, column size_bytes: found \"1.5\", expected a whole number of bytes, 1 or more"
        );
        assert_eq!(
            refusal("0,alice,alice,5\n"),
            "row 1, column dst: found \"alice\", expected another node than src"
        );
        assert_eq!(refusal("0,alice,bob\n"), "row 1 has 3 columns; expected 4: start_s,src,dst,size_bytes");
    }
}
