//! Tables and matrices of verdicts, as templates use them.
//!
//! On a phone, a table with many columns becomes a block for each row. The style sheet writes the title of
//! its column in front of each cell; the titles are variables of the table, so that they are on the page
//! once.

use serde::Serialize;

use crate::parts::{Sheet, Sign, Tone, VerdictCell, Verdicts};

/// The number of columns that are legible side by side on a phone.
const NARROW: usize = 3;
/// The number of columns of a matrix that are.
const NARROW_MATRIX: usize = 4;
/// The largest number of columns with a title on a phone, as in the style sheet.
const TITLED: usize = 12;

#[derive(Serialize)]
pub(crate) struct TableView {
    caption: String,
    head: Vec<CellView>,
    rows: Vec<Vec<CellView>>,
    /// The titles of the columns as variables of the style sheet; empty for a table that a phone can show.
    stacked: String,
}

#[derive(Serialize)]
struct CellView {
    text: String,
    tone: Tone,
    /// The kind of the column: numbers, short texts, or long texts.
    column: &'static str,
}

/// A matrix of verdicts.
#[derive(Serialize)]
pub(crate) struct MatrixView<'a> {
    id: &'a str,
    title: &'a str,
    caption: &'a str,
    columns: &'a [String],
    rows: Vec<MatrixRow<'a>>,
    /// As in [`TableView`].
    stacked: String,
}

#[derive(Serialize)]
struct MatrixRow<'a> {
    name: &'a str,
    cells: Vec<MatrixCell<'a>>,
}

#[derive(Serialize)]
struct MatrixCell<'a> {
    word: &'a str,
    tone: Tone,
    about: &'a str,
    signs: &'a [Sign],
}

impl Sheet {
    pub(crate) fn view(&self) -> TableView {
        let columns = self.rows.iter().map(Vec::len).chain([self.head.len()]).max().unwrap_or(0);
        let kinds: Vec<&str> = (0..columns).map(|at| self.column(at)).collect();
        let cell = |at: usize, text: &str, tone| CellView { text: text.to_owned(), tone, column: kinds[at] };
        let head = self.head.iter().enumerate().map(|(at, text)| cell(at, text, Tone::Plain));
        let rows = self.rows.iter().map(|row| {
            let cells = row.iter().enumerate().map(|(at, found)| cell(at, &found.text, found.tone));
            cells.collect()
        });
        let stacked = if columns > NARROW { titles(&self.head) } else { String::new() };
        TableView { caption: self.caption.clone(), head: head.collect(), rows: rows.collect(), stacked }
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

impl Verdicts {
    pub(crate) fn view(&self) -> MatrixView<'_> {
        let rows = self.rows.iter();
        let rows =
            rows.map(|(name, cells)| MatrixRow { name, cells: cells.iter().map(matrix_cell).collect() });
        let head = || [String::new()].into_iter().chain(self.columns.iter().cloned()).collect::<Vec<_>>();
        let stacked = if self.columns.len() >= NARROW_MATRIX { titles(&head()) } else { String::new() };
        MatrixView {
            id: &self.id,
            title: &self.title,
            caption: &self.caption,
            columns: &self.columns,
            rows: rows.collect(),
            stacked,
        }
    }
}

fn matrix_cell(cell: &Option<VerdictCell>) -> MatrixCell<'_> {
    match cell {
        Some(VerdictCell { word, tone, about, signs }) => MatrixCell { word, tone: *tone, about, signs },
        None => MatrixCell { word: "", tone: Tone::Plain, about: "", signs: &[] },
    }
}

/// Titles of columns as variables of the style sheet: `--c1:"cell: ";--c2:"metric: "`.
fn titles(head: &[String]) -> String {
    let variable = |(at, title): (usize, &String)| {
        let plain = title.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
        let text = if plain.is_empty() { plain } else { format!("{plain}: ") };
        format!("--c{}:\"{text}\"", at + 1)
    };
    head.iter().take(TITLED).enumerate().map(variable).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A title must not end the string or the declaration.
    #[test]
    fn titles_of_columns_stay_inside_their_strings() {
        let head = ["a \"b\"; color: red", "back\\slash", ""].map(str::to_owned);
        assert_eq!(titles(&head), r#"--c1:"a \"b\"; color: red: ";--c2:"back\\slash: ";--c3:"""#);
    }
}
