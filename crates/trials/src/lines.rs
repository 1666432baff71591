//! A store in a file, with a sealed line for each result.
//!
//! It suits results that are no metrics, and of which a command makes some hundreds. The first line says of
//! what the results are; a file of other results is replaced. Each further line is a key with its result,
//! written as soon as the trial finishes, so a kill loses no result. A line that was changed or cut off
//! is left out, and its trial runs again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use giveway_files::Dir;
use giveway_record::dataset::Row;
use giveway_record::{FolderError, open_line, seal_line};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::frontend::Frontend;
use crate::key::Key;
use crate::store::{Memory, Store};

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct About {
    giveway: String,
    about: String,
}

/// A result.
#[derive(Serialize, Deserialize)]
struct Line<R> {
    key: String,
    result: R,
}

/// A store in a file.
#[derive(Debug)]
pub struct Lines<R> {
    path: PathBuf,
    known: Memory<R>,
    found: usize,
    file: Mutex<File>,
}

impl<R: Clone + Serialize + DeserializeOwned> Lines<R> {
    /// Opens the file at `path`, which may contain results already, or creates it. `about` says of what they
    /// are. A new file gets the rights `rights`. The front end learns of damaged lines.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn open(path: &Path, about: &str, rights: u32, frontend: &dyn Frontend) -> io::Result<Lines<R>> {
        let first = About { giveway: giveway_sources::SIMULATION.to_owned(), about: about.to_owned() };
        let first = serde_json::to_string(&first)?;
        let dir = Dir::create(path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().unwrap_or_default();
        let bytes = dir.read(name).unwrap_or_default();
        // A killed process may have left the last line unfinished. Another one begins behind it.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let is_same = lines.next().and_then(open_line).is_some_and(|line| line == first);
        let mut known: BTreeMap<Key, R> = BTreeMap::new();
        let mut damaged = 0;
        for line in lines.filter(|_| is_same) {
            match open_line(line).and_then(|line| read(&line)) {
                Some((key, result)) => drop(known.insert(key, result)),
                None => damaged += 1,
            }
        }
        if damaged > 0 {
            frontend.message(&format!(
                "{} is damaged: {damaged} of its lines do not match their SHA-256, or have none; these runs run again",
                path.display()
            ));
        }
        let file = if known.is_empty() {
            let mut file = dir.new_file(name, rights)?;
            writeln!(file, "{}", seal_line(&first))?;
            file
        } else {
            let mut file = dir.write(name, rights)?;
            // The next line does not begin behind an unfinished one.
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
            file
        };
        let found = known.len();
        Ok(Lines { path: path.to_owned(), known: Memory::of(known), found, file: Mutex::new(file) })
    }

    /// The number of results that the file had when it was opened.
    pub fn found(&self) -> usize {
        self.found
    }

    /// Removes the file, whose results are not needed any more.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn read<R: DeserializeOwned>(line: &str) -> Option<(Key, R)> {
    let Line { key, result } = serde_json::from_str(line).ok()?;
    Some((u128::from_str_radix(&key, 16).ok()?, result))
}

impl<R: Clone + Serialize + DeserializeOwned> Store<R> for Lines<R> {
    fn find(&self, trial: &Row<()>) -> Option<R> {
        self.known.find(trial)
    }

    fn keep(&self, row: Row<R>) -> Result<(), FolderError> {
        let line = Line { key: format!("{:032x}", row.key), result: &row.result };
        if let Ok(line) = serde_json::to_string(&line) {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            // If the disk is full, the result is not kept, and a later run repeats it.
            let _ = file.write_all(format!("{}\n", seal_line(&line)).as_bytes());
        }
        self.known.keep(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::Silent;

    type Results = Lines<Vec<f64>>;

    fn trial(key: Key) -> Row<()> {
        Row { key, ..Row::default() }
    }

    fn keep(lines: &Results, key: Key, result: Vec<f64>) {
        lines.keep(trial(key).with(result)).unwrap();
    }

    /// Any flipped bit, and any end, of the file loses a result, and changes none.
    #[test]
    fn a_kept_result_is_the_one_that_finished_or_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.jsonl");
        let open = || Results::open(&path, "the test", 0o600, &Silent).unwrap();
        let results = [(1, vec![0.1 + 0.2, -0.0, f64::MIN_POSITIVE]), (u128::MAX, vec![])];
        let lines = open();
        for (key, result) in &results {
            keep(&lines, *key, result.clone());
        }
        let whole = fs::read(&path).unwrap();
        let found = || -> Vec<(Key, Vec<f64>)> {
            let lines = open();
            results.iter().filter_map(|(key, _)| Some((*key, lines.find(&trial(*key))?))).collect()
        };
        let bits = |found: &[(Key, Vec<f64>)]| -> Vec<(Key, Vec<u64>)> {
            found.iter().map(|(key, all)| (*key, all.iter().map(|one| one.to_bits()).collect())).collect()
        };
        assert_eq!((bits(&found()), fs::read(&path).unwrap()), (bits(&results), whole.clone()));
        let reads = |content: Vec<u8>| {
            fs::write(&path, content).unwrap();
            let found = found();
            assert!(found.len() < 2, "{found:?}");
            assert!(bits(&found).iter().all(|one| bits(&results).contains(one)), "{found:?}");
        };
        // A prime step reaches each bit of a byte.
        for bit in (0..whole.len() * 8).step_by(7) {
            let mut content = whole.clone();
            content[bit / 8] ^= 1 << (bit % 8);
            reads(content);
        }
        for length in (0..whole.len()).step_by(7) {
            reads(whole[..length].to_vec());
        }

        // A later process adds its results behind what is whole.
        fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        let lines = open();
        assert_eq!(lines.found(), 1);
        keep(&lines, results[1].0, results[1].1.clone());
        assert_eq!(fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn a_file_about_something_else_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.jsonl");
        keep(&Results::open(&path, "one", 0o600, &Silent).unwrap(), 7, vec![1.0]);
        let other = Results::open(&path, "another", 0o600, &Silent).unwrap();
        assert_eq!((other.found(), other.find(&trial(7))), (0, None));
        assert!(Results::open(&path, "one", 0o600, &Silent).unwrap().find(&trial(7)).is_none());
    }
}
