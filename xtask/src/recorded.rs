//! Recorded measurements: tables of the repository, which a chore writes and a page of the book shows.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

/// A row of a recorded measurement. The names of its fields are the names of the columns.
pub trait Recorded: Serialize + DeserializeOwned {
    /// The file, relative to the repository.
    const FILE: &'static str;
}

/// Reads a table. Lines that start with `#` are left out.
///
/// # Errors
/// If the file cannot be read, or the first line that is not a row.
pub fn read<R: Recorded>(root: &Path) -> Result<Vec<R>, String> {
    let text = fs::read_to_string(root.join(R::FILE)).map_err(|error| format!("{}: {error}", R::FILE))?;
    parse(&text)
}

/// The rows of a table.
///
/// # Errors
/// The first line that is not a row.
pub fn parse<R: Recorded>(text: &str) -> Result<Vec<R>, String> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().map_err(|error| format!("{}: {error}", R::FILE))
}

/// A table as text, with the names of its columns.
///
/// # Panics
/// If a field is not a plain value.
pub fn text<R: Recorded>(rows: &[R]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).expect("each field is a plain value");
    }
    let bytes = writer.into_inner().expect("memory can be written");
    String::from_utf8(bytes).expect("text was written")
}

/// Writes a table. `machine` is a first line about where it was measured.
///
/// # Errors
/// If the file cannot be written.
pub fn store<R: Recorded>(root: &Path, machine: Option<&str>, rows: &[R]) -> Result<(), String> {
    let machine = machine.map_or_else(String::new, |machine| format!("# {machine}\n"));
    let written = fs::write(root.join(R::FILE), machine + &text(rows));
    written.map_err(|error| format!("{}: {error}", R::FILE))?;
    println!("wrote {}; cargo xtask docs makes a page of it", R::FILE);
    Ok(())
}

/// Writes a number with `N` digits after the point.
///
/// # Errors
/// If the serializer fails.
pub fn digits<const N: usize, S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{number:.N$}"))
}

/// Writes a number that may be missing with `N` digits after the point.
///
/// # Errors
/// If the serializer fails.
pub fn some_digits<const N: usize, S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&number.map_or_else(String::new, |number| format!("{number:.N$}")))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Row {
        name: String,
        #[serde(serialize_with = "digits::<2, _>")]
        time: f64,
        #[serde(serialize_with = "some_digits::<0, _>")]
        count: Option<f64>,
    }

    impl Recorded for Row {
        const FILE: &'static str = "docs/example.csv";
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let rows = [
            Row { name: "fifo, 100 flows".to_owned(), time: 0.125, count: Some(12.0) },
            Row { name: "red".to_owned(), time: 2.0, count: None },
        ];
        let written = text(&rows);
        assert_eq!(written, "name,time,count\n\"fifo, 100 flows\",0.12,12\nred,2.00,\n");
        assert_eq!(parse::<Row>(&format!("# a machine\n{written}")).unwrap()[1], rows[1]);
        for (wrong, place) in [("name,time,count\nred,2", "line: 2"), ("name,time,count\nred,x,1", "line: 2")]
        {
            let error = parse::<Row>(wrong).unwrap_err();
            assert!(error.starts_with("docs/example.csv: ") && error.contains(place), "{error}");
        }
    }
}
