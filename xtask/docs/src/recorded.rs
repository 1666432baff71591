//! Recorded measurements, which the chores of `xtask` write and the pages show.

use std::path::Path;

use crate::{cards, growth, senders, speed, step, varying};

#[allow(dead_code, reason = "pages read tables, and chores write them")]
#[path = "../../src/recorded.rs"]
mod tables;

pub use tables::*;

/// Makes a page from the tables below a folder, the root of the repository.
type MakePage = fn(&Path) -> Result<String, String>;

/// The pages: the name of the file, and the function that makes it.
///
/// A page fails if its table cannot be read, or has a wrong row.
pub const PAGES: [(&str, MakePage); 6] = [
    ("instructions", speed::page),
    ("growth", growth::page),
    ("step", step::page),
    ("senders", senders::page),
    ("varying", varying::page),
    ("cards", cards::page),
];

/// A column of a table in a page: its head, its rule (`---`, or `---:` for numbers), and the cell of a row.
pub type Column<'a, R> = (&'a str, &'a str, &'a dyn Fn(R) -> String);

/// A table in Markdown.
pub fn table<R: Copy>(columns: &[Column<'_, R>], rows: impl IntoIterator<Item = R>) -> String {
    let heads: String = columns.iter().map(|(head, ..)| format!(" {head} |").replace("  ", " ")).collect();
    let rules: String = columns.iter().map(|(_, rule, _)| format!("{rule}|")).collect();
    let cells = |row: R| columns.iter().map(|(.., cell)| format!(" {} |", cell(row))).collect::<String>();
    let lines = rows.into_iter().map(|row| format!("|{}\n", cells(row)));
    format!("|{heads}\n|{rules}\n{}", lines.collect::<String>())
}
