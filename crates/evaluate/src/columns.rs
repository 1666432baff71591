//! Rows of text with aligned columns.

use std::fmt::Write as _;

/// Maximum number of columns of values that fit the width of a terminal.
const COLUMNS: usize = 4;

/// A table with a title for each row and each column, as lines. If it has many columns, they become the rows.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    if columns <= 1 + COLUMNS {
        return aligned(rows);
    }
    let turned: Vec<Vec<String>> =
        (0..columns).map(|column| rows.iter().map(|row| row[column].clone()).collect()).collect();
    aligned(&turned)
}

/// Rows as lines, each indented by two spaces. All rows have as many columns as the first.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with this number of columns of values.
    fn of(columns: usize) -> Vec<Vec<String>> {
        let row = |title: &str, cell: &str| {
            let cells = (1..=columns).map(|column| format!("{cell}{column}"));
            std::iter::once(title.to_owned()).chain(cells).collect()
        };
        vec![row("", "against d"), row("delay", "+"), row("use", "-")]
    }

    #[test]
    fn a_wide_table_is_turned() {
        assert_eq!(
            table(&of(2)),
            "         against d1  against d2\n  delay  +1          +2\n  use    -1          -2\n"
        );
        assert!(table(&of(4)).starts_with("         against d1  against d2"));
        let turned = table(&of(5));
        assert!(turned.starts_with("              delay  use\n  against d1  +1     -1\n"), "{turned}");
        assert!(turned.ends_with("  against d5  +5     -5\n"), "{turned}");
    }
}
