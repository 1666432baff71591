//! A store of measured trials in a folder, as one data set that grows.
//!
//! ```text
//! trials.json         the version, and the length and SHA-256 of each part; sealed
//! trials/*.parquet    the data set, a row for each trial (`giveway_record::dataset`)
//! .giveway.lock       the process that writes the folder at present
//! ```
//!
//! # Decisions
//! - A part contains the rows of one point, so that its metrics are those that one scenario measures.
//! - A part is in its place before the list names it. So a kill loses the parts since the last list, and no
//!   reader takes a part that is not whole.
//! - Parts are written every two seconds, and less often in a long run, so that it writes few of them.
//!   [`complete`](DataSet::complete) sorts the rows into one part for each point: the same trials give the
//!   same bytes, with any number of threads and interruptions.
//! - Trials of another version of the program are removed: this one never asks for their keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use giveway_files::Dir;
use giveway_record::dataset::{self, Axis, Measured, Part, Row};
use giveway_record::{Damage, Digest, FolderError, Lock, open_sealed, replace_in, seal};
use serde::{Deserialize, Serialize};

use crate::due::Due;
use crate::frontend::Frontend;
use crate::key::Key;
use crate::store::Store;

/// The number of the form of the folder.
pub(crate) const FORMAT: u64 = 1;

/// The list of the parts.
pub(crate) const LIST: &str = "trials.json";
const TRIALS: &str = "trials";

/// Rows that wait, at most.
const MAX_WAITING: usize = 2_000;

/// Files with their digests, by their names in the folder.
pub type Files = BTreeMap<String, Digest>;

/// The list of the parts of a data set.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct List {
    giveway_trials: u64,
    version: String,
    files: Files,
}

/// A data set of trials in a folder, open for writing by this process only.
#[derive(Debug)]
pub struct DataSet {
    lock: Lock,
    axes: Vec<Axis>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    list: List,
    known: BTreeMap<Key, Row<Measured>>,
    /// The lists of names of metrics: a list contains a hundred names, and thousands of trials share it.
    names: BTreeSet<Arc<[String]>>,
    /// Rows that are not written yet.
    waiting: Vec<Row<Measured>>,
    /// The number of the next part.
    next: u64,
    due: Due,
}

impl DataSet {
    /// Opens the data set in `dir`, or creates it. `axes` are the further columns of each row. The
    /// front end learns of parts that are damaged, and of trials of another version: they run again.
    ///
    /// # Errors
    /// If another process writes the folder, or it cannot be written.
    pub fn open(
        dir: &Path,
        axes: &[Axis],
        version: &str,
        frontend: &dyn Frontend,
    ) -> Result<DataSet, FolderError> {
        let lock = Lock::take(dir)?;
        let list = List { giveway_trials: FORMAT, version: version.to_owned(), files: Files::new() };
        let state = State {
            list,
            known: BTreeMap::new(),
            names: BTreeSet::new(),
            waiting: Vec::new(),
            next: 0,
            due: Due::default(),
        };
        let mut data = DataSet { lock, axes: axes.to_vec(), state: Mutex::new(state) };
        data.take_over(frontend)?;
        Ok(data)
    }

    /// Reads the parts in the folder.
    fn take_over(&mut self, frontend: &dyn Frontend) -> Result<(), FolderError> {
        let dir = self.lock.dir();
        let failed = |source| FolderError::Write { path: dir.path().join(TRIALS), source };
        dir.make(TRIALS, 0o777).map_err(failed)?;
        let found = match list_in(dir) {
            Ok(found) => found,
            Err(damage) => {
                frontend.message(&format!("{damage}: its trials run again"));
                None
            }
        };
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let files = match found {
            Some(list) if list.version == state.list.version => list.files,
            Some(list) => {
                if !list.files.is_empty() {
                    frontend.message(&format!(
                        "the trials in {} are of Giveway {}, and this is {}: they run again",
                        dir.path().display(),
                        list.version,
                        state.list.version
                    ));
                }
                Files::new()
            }
            None => Files::new(),
        };
        for (name, digest) in files {
            let read = Part::open(dir, &name, &digest).and_then(|part| dataset::read(&part, &self.axes));
            match read {
                Ok(rows) => {
                    state.known.extend(rows.into_iter().map(|row| (row.key, row)));
                    state.list.files.insert(name, digest);
                }
                Err(damage) => frontend.message(&format!("{damage}: its trials run again")),
            }
        }
        // The list has only parts that are read, and the folder only parts that are listed.
        self.lock_state().write_list(dir)?;
        self.remove_others()
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the files that the list does not name. A number above all of theirs is free.
    fn remove_others(&self) -> Result<(), FolderError> {
        let dir = self.lock.dir();
        let failed = |source| FolderError::Write { path: dir.path().join(TRIALS), source };
        let mut state = self.lock_state();
        for (name, _) in dir.enter(TRIALS).and_then(|inner| inner.entries()).map_err(failed)? {
            let name = format!("{TRIALS}/{}", name.to_string_lossy());
            if !state.list.files.contains_key(&name) {
                dir.remove_file(&name).map_err(failed)?;
            }
        }
        state.next =
            state.list.files.keys().filter_map(|name| number_of(name)).max().map_or(0, |last| last + 1);
        Ok(())
    }

    /// The number of trials that are kept.
    pub fn count(&self) -> usize {
        self.lock_state().known.len()
    }

    /// Writes what waits, and sorts the rows into one part for each point.
    ///
    /// # Errors
    /// If a part cannot be written; then the data set remains as it is.
    pub fn complete(&self) -> Result<(), FolderError> {
        let mut state = self.lock_state();
        state.write(self.lock.dir(), &self.axes)?;
        let mut points: BTreeMap<u64, Vec<&Row<Measured>>> = BTreeMap::new();
        for row in state.known.values() {
            points.entry(row.point).or_default().push(row);
        }
        if points.len() == state.list.files.len() {
            return Ok(());
        }
        let (mut files, mut next) = (Files::new(), state.next);
        for rows in points.into_values() {
            let mut rows: Vec<Row<Measured>> = rows.into_iter().cloned().collect();
            rows.sort_by(|a, b| (&a.qdisc, a.seed, a.key).cmp(&(&b.qdisc, b.seed, b.key)));
            let name = part_name(next);
            next += 1;
            files.insert(name.clone(), dataset::write(self.lock.dir(), &name, &self.axes, &rows)?);
        }
        (state.list.files, state.next) = (files, next);
        state.write_list(self.lock.dir())?;
        drop(state);
        self.remove_others()
    }
}

impl State {
    /// These names, which are in memory once.
    fn shared(&mut self, names: Arc<[String]>) -> Arc<[String]> {
        match self.names.get(&names) {
            Some(known) => Arc::clone(known),
            None => {
                self.names.insert(Arc::clone(&names));
                names
            }
        }
    }

    /// Writes the rows that wait, as a part for each point.
    fn write(&mut self, dir: &Dir, axes: &[Axis]) -> Result<(), FolderError> {
        self.due.written();
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut points: BTreeMap<u64, Vec<Row<Measured>>> = BTreeMap::new();
        for row in &self.waiting {
            points.entry(row.point).or_default().push(row.clone());
        }
        for rows in points.into_values() {
            let name = part_name(self.next);
            let digest = dataset::write(dir, &name, axes, &rows)?;
            self.next += 1;
            self.list.files.insert(name, digest);
        }
        self.write_list(dir)?;
        self.waiting.clear();
        Ok(())
    }

    fn write_list(&self, dir: &Dir) -> Result<(), FolderError> {
        replace_in(dir, LIST, seal(&self.list).0.as_bytes()).map(drop)
    }
}

impl Store<Measured> for DataSet {
    fn find(&self, trial: &Row<()>) -> Option<Measured> {
        self.lock_state().known.get(&trial.key).map(|row| row.result.clone())
    }

    fn keep(&self, mut row: Row<Measured>) -> Result<(), FolderError> {
        let mut state = self.lock_state();
        row.result.names = state.shared(row.result.names);
        state.waiting.push(row.clone());
        state.known.insert(row.key, row);
        if state.waiting.len() >= MAX_WAITING || state.due.patience().is_zero() {
            state.write(self.lock.dir(), &self.axes)?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), FolderError> {
        self.lock_state().write(self.lock.dir(), &self.axes)
    }
}

/// The list of the parts of the data set in a folder; `None` without one.
fn list_in(dir: &Dir) -> Result<Option<List>, Damage> {
    let place = dir.path().join(LIST);
    match dir.read(LIST) {
        Ok(bytes) => open_sealed(&bytes, &place).map(|(list, _)| Some(list)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Damage::new(&place, error)),
    }
}

fn part_name(number: u64) -> String {
    format!("{TRIALS}/part-{number:08}.parquet")
}

fn number_of(name: &str) -> Option<u64> {
    name.rsplit_once("/part-")?.1.strip_suffix(".parquet")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::frontend::{Bar, NoBar, Silent, Unit};
    use crate::reuse::{Reuse, ReuseError};

    /// A front end that keeps messages.
    #[derive(Default)]
    struct Listening(Mutex<Vec<String>>);

    impl Frontend for Listening {
        fn message(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
        fn bar(&self, _: &str, _: u64, _: Unit) -> Box<dyn Bar> {
            Box::new(NoBar)
        }
    }

    fn row(key: Key, point: u64) -> Row<Measured> {
        let names: Vec<String> = vec!["goodput_bps".to_owned(), format!("src.p{point}.lead")];
        let measured = Measured {
            fingerprint: format!("{key:032x}"),
            events: key as u64,
            names: names.into(),
            values: vec![Some(0.1 + key as f64), None],
        };
        let trial = Row { key, point, qdisc: "fifo".to_owned(), seed: key as u64, ..Row::default() };
        trial.with(measured)
    }

    fn trial(key: Key) -> Row<()> {
        Row { key, ..Row::default() }
    }

    fn open(dir: &Path, listening: &Listening) -> DataSet {
        DataSet::open(dir, &[], giveway_sources::SIMULATION, listening).unwrap()
    }

    fn parts(dir: &Path) -> Vec<PathBuf> {
        let mut parts: Vec<PathBuf> =
            fs::read_dir(dir.join(TRIALS)).unwrap().map(|entry| entry.unwrap().path()).collect();
        parts.sort();
        parts
    }

    #[test]
    fn what_was_written_is_found_by_the_next_process_and_by_other_commands() {
        let dir = tempfile::tempdir().unwrap();
        let listening = Listening::default();
        let data = open(dir.path(), &listening);
        [(1, 0), (2, 0), (3, 7)].into_iter().for_each(|(key, point)| data.keep(row(key, point)).unwrap());
        data.flush().unwrap();
        // A kill loses what waits.
        data.keep(row(4, 0)).unwrap();
        assert!(matches!(
            DataSet::open(dir.path(), &[], giveway_sources::SIMULATION, &listening),
            Err(FolderError::Busy { .. })
        ));
        drop(data);
        let data = open(dir.path(), &listening);
        assert_eq!(data.count(), 3);
        let found = data.find(&trial(3)).unwrap();
        assert_eq!((found.value("goodput_bps"), found.events), (Some(3.1), 3));
        assert!(data.find(&trial(4)).is_none());
        drop(data);
        let other = Reuse::of(&[dir.path().to_owned()], &listening).unwrap();
        assert_eq!(other.take(2).unwrap().unwrap().value("goodput_bps"), Some(2.1));
        assert!(other.take(4).unwrap().is_none());
        assert!(listening.0.into_inner().unwrap().is_empty());
    }

    #[test]
    fn the_same_trials_give_the_same_bytes() {
        let folder = |order: &[Key], interrupted: bool| {
            let dir = tempfile::tempdir().unwrap();
            for keys in order.chunks(if interrupted { 2 } else { order.len() }) {
                let data = open(dir.path(), &Listening::default());
                keys.iter().for_each(|key| data.keep(row(*key, (*key % 2) as u64)).unwrap());
                data.flush().unwrap();
            }
            let data = open(dir.path(), &Listening::default());
            data.complete().unwrap();
            let parts: Vec<Vec<u8>> = parts(dir.path()).iter().map(|part| fs::read(part).unwrap()).collect();
            assert_eq!(parts.len(), 2);
            (parts, open_again(dir, data))
        };
        // What is complete is found again.
        fn open_again(dir: tempfile::TempDir, data: DataSet) -> usize {
            drop(data);
            open(dir.path(), &Listening::default()).count()
        }
        let (one, all) = folder(&[1, 2, 3, 4, 5], false);
        assert_eq!((folder(&[5, 3, 1, 2, 4], true).0, all), (one, 5));
    }

    #[test]
    fn damaged_parts_and_those_of_another_version_run_again() {
        let dir = tempfile::tempdir().unwrap();
        let data = open(dir.path(), &Listening::default());
        [(1, 0), (2, 1)].into_iter().for_each(|(key, point)| data.keep(row(key, point)).unwrap());
        data.flush().unwrap();
        drop(data);
        let damaged = parts(dir.path()).remove(0);
        let mut bytes = fs::read(&damaged).unwrap();
        bytes[40] ^= 1;
        fs::write(&damaged, bytes).unwrap();
        // A part that a killed process left without a line in the list.
        fs::write(dir.path().join("trials/part-00000009.parquet"), "half").unwrap();
        let refused = Reuse::of(&[dir.path().to_owned()], &Silent);
        assert!(matches!(refused.err(), Some(ReuseError::Damaged(damage)) if damage.file == damaged));
        let listening = Listening::default();
        let data = open(dir.path(), &listening);
        assert!(data.find(&trial(1)).is_none() && data.find(&trial(2)).is_some());
        let [said] = &listening.0.into_inner().unwrap()[..] else { panic!("one part is damaged") };
        assert!(said.ends_with("its SHA-256 does not match: its trials run again"), "{said}");
        assert_eq!(parts(dir.path()).len(), 1);
        drop(data);

        let listening = Listening::default();
        let other = DataSet::open(dir.path(), &[], "0.0.1, sources 0", &listening).unwrap();
        assert_eq!((other.count(), parts(dir.path()).len()), (0, 0));
        let said = listening.0.into_inner().unwrap().concat();
        assert!(said.contains("and this is 0.0.1, sources 0: they run again"), "{said}");
    }

    #[test]
    fn a_folder_without_trials_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for folder in [dir.path().to_owned(), dir.path().join("none")] {
            let refused = Reuse::of(std::slice::from_ref(&folder), &Silent).err().unwrap();
            assert!(matches!(&refused, ReuseError::Nothing(path) if *path == folder), "{refused}");
        }
        for (text, part) in [
            ("{}", "manifest.json"),
            ("{\"giveway_trials\": 9}", "format 9"),
            ("{\"giveway_sweep\": 1}", "format 1"),
        ] {
            for name in [LIST, "manifest.json"] {
                fs::write(dir.path().join(name), text).unwrap();
            }
            let refused = Reuse::of(&[dir.path().to_owned()], &Silent).err().unwrap().to_string();
            assert!(refused.contains(part) || refused.contains("is damaged"), "{refused}");
        }
    }
}
