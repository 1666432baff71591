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
//!   same files, with any number of threads and interruptions. The list names the parts before and after,
//!   while they are exchanged.
//! - A folder whose trials no list names belongs to another command, such as a sweep. It is refused, and so
//!   is one whose list is damaged: only parts that were listed, or replaced by listed ones, are removed.
//! - Trials of another version of the program are removed: this one never asks for their keys.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// The endings of parts, and of parts that were being written when a process was killed.
const PARTS: [&str; 2] = [".parquet", ".tmp"];

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
    /// The parts that are about to take the place of these.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    next: Files,
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
    /// The trials whose rows are not written yet.
    waiting: Vec<Key>,
    /// The number of the next part.
    next: u64,
    due: Due,
}

impl DataSet {
    /// Opens the data set in `dir`, or creates it. `axes` are the further columns of each row. The
    /// front end learns of parts that are damaged, and of trials of another version: they run again.
    ///
    /// # Errors
    /// If the folder belongs to another command, another process writes it, or it cannot be written.
    pub fn open(
        dir: &Path,
        axes: &[Axis],
        version: &str,
        frontend: &dyn Frontend,
    ) -> Result<DataSet, FolderError> {
        let lock = Lock::take(dir)?;
        let (files, next) = (Files::new(), Files::new());
        let list = List { giveway_trials: FORMAT, version: version.to_owned(), files, next };
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
        let list = list_in(dir)?;
        dir.make(TRIALS, 0o777).map_err(|source| unwritable(dir, source))?;
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let list = list.filter(|list| {
            let is_same = list.version == state.list.version;
            if !is_same && !list.files.is_empty() {
                frontend.message(&format!(
                    "the trials in {} are of Giveway {}, and this is {}: they run again",
                    dir.path().display(),
                    list.version,
                    state.list.version
                ));
            }
            is_same
        });
        let (files, next) = list.map_or_else(Default::default, |list| (list.files, list.next));
        let read = |name: &str, digest: &Digest| {
            let rows = Part::open(dir, name, digest).and_then(|part| dataset::read(&part, &self.axes));
            rows.map(|rows| (rows, digest.clone()))
        };
        for name in files.keys().chain(next.keys().filter(|name| !files.contains_key(*name))) {
            let found = files.get(name).map(|digest| read(name, digest));
            // The process that exchanged parts was killed.
            let later = || next.get(name).and_then(|digest| read(name, digest).ok());
            match found {
                Some(Err(damage)) if later().is_none() => {
                    frontend.message(&format!("{damage}: its trials run again"));
                }
                found => {
                    let Some((rows, digest)) = found.and_then(Result::ok).or_else(later) else { continue };
                    state.known.extend(rows.into_iter().map(|row| (row.key, row)));
                    state.list.files.insert(name.clone(), digest);
                }
            }
        }
        // The list names only parts that were read, and the folder contains only parts that are listed.
        self.lock_state().write_list(dir)?;
        self.remove_others()
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the parts that the list does not name. A number above all of theirs is free.
    fn remove_others(&self) -> Result<(), FolderError> {
        let dir = self.lock.dir();
        let mut state = self.lock_state();
        let parts = entries_in(dir)?.into_iter().filter(|name| PARTS.iter().any(|end| name.ends_with(end)));
        for name in parts {
            if !state.list.files.contains_key(&name) {
                dir.remove_file(&name).map_err(|source| unwritable(dir, source))?;
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
        let dir = self.lock.dir();
        let mut state = self.lock_state();
        state.write(dir, &self.axes)?;
        if state.list.files.keys().all(|name| number_of(name).is_none()) {
            return Ok(());
        }
        let mut next = Files::new();
        for (point, rows) in by_point(state.known.values()) {
            let digest = dataset::write(dir, &sorted_name("sorted", point), &self.axes, &rows)?;
            next.insert(sorted_name("point", point), digest);
        }
        state.list.next = next;
        state.write_list(dir)?;
        for point in by_point(state.known.values()).into_keys() {
            let renamed = dir.rename(sorted_name("sorted", point), sorted_name("point", point));
            renamed.map_err(|source| unwritable(dir, source))?;
        }
        state.list.files = std::mem::take(&mut state.list.next);
        state.write_list(dir)?;
        drop(state);
        self.remove_others()
    }
}

/// Rows by their point, in an order that does not depend on when they were kept.
fn by_point<'a>(rows: impl Iterator<Item = &'a Row<Measured>>) -> BTreeMap<u64, Vec<Row<Measured>>> {
    let mut points: BTreeMap<u64, Vec<Row<Measured>>> = BTreeMap::new();
    for row in rows {
        points.entry(row.point).or_default().push(row.clone());
    }
    for rows in points.values_mut() {
        rows.sort_by(|a, b| (&a.qdisc, a.seed, a.key).cmp(&(&b.qdisc, b.seed, b.key)));
    }
    points
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
        for rows in by_point(self.waiting.iter().filter_map(|key| self.known.get(key))).into_values() {
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
        state.waiting.push(row.key);
        state.known.insert(row.key, row);
        if state.waiting.len() >= MAX_WAITING || state.due.patience().is_zero() {
            state.write(self.lock.dir(), &self.axes)?;
        }
        Ok(())
    }

    fn patience(&self) -> Duration {
        self.lock_state().due.patience()
    }

    fn flush(&self) -> Result<(), FolderError> {
        self.lock_state().write(self.lock.dir(), &self.axes)
    }
}

/// The list of the parts of the data set in a folder; `None` for a folder without trials.
///
/// # Errors
/// If the folder contains trials that no list names, or its list is damaged or of another format.
fn list_in(dir: &Dir) -> Result<Option<List>, FolderError> {
    let place = dir.path().join(LIST);
    let unknown = |why: String| FolderError::Trials { path: dir.path().to_owned(), why };
    match dir.read(LIST) {
        Ok(bytes) => match open_sealed::<List>(&bytes, &place) {
            Ok((List { giveway_trials, .. }, _)) if giveway_trials != FORMAT => Err(unknown(format!(
                "{LIST} has format {giveway_trials}, and this version reads format {FORMAT}"
            ))),
            Ok((list, _)) => Ok(Some(list)),
            Err(damage) => Err(unknown(damage.to_string())),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => match entries_in(dir)?.first() {
            Some(part) => Err(unknown(format!("it contains {part}, and no {LIST} that names it"))),
            None => Ok(None),
        },
        Err(error) => Err(unknown(Damage::new(&place, error).to_string())),
    }
}

/// The entries of the folder of trials, of a data set or not.
fn entries_in(dir: &Dir) -> Result<Vec<String>, FolderError> {
    let entries = match dir.enter(TRIALS).and_then(|inner| inner.entries()) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|source| unwritable(dir, source))?,
    };
    let names = entries.into_iter().map(|(name, _)| format!("{TRIALS}/{}", name.to_string_lossy()));
    Ok(names.collect())
}

fn unwritable(dir: &Dir, source: io::Error) -> FolderError {
    FolderError::Write { path: dir.path().join(TRIALS), source }
}

/// The name of the sorted part of a point, which is final or about to be.
fn sorted_name(kind: &str, point: u64) -> String {
    format!("{TRIALS}/{kind}-{point:08}.parquet")
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
            let name = |part: &PathBuf| part.file_name().unwrap().to_owned();
            let parts: Vec<_> =
                parts(dir.path()).iter().map(|part| (name(part), fs::read(part).unwrap())).collect();
            assert_eq!(parts.len(), 2);
            (parts, open_again(dir, data))
        };
        // What is complete is found again.
        fn open_again(dir: tempfile::TempDir, data: DataSet) -> usize {
            drop(data);
            open(dir.path(), &Listening::default()).count()
        }
        let (one, all) = folder(&[1, 2, 3, 4, 5], false);
        for interrupted in [true, false] {
            assert_eq!(folder(&[5, 3, 1, 2, 4], interrupted).0, one);
        }
        assert_eq!(all, 5);
    }

    /// A process that is killed while it exchanges parts loses none: some have their final name, and some
    /// have not.
    #[test]
    fn a_kill_during_the_exchange_loses_no_trial() {
        let dir = tempfile::tempdir().unwrap();
        let data = open(dir.path(), &Listening::default());
        (1..5).for_each(|key| data.keep(row(key, key as u64 % 2)).unwrap());
        data.complete().unwrap();
        let before = parts(dir.path());
        (5..9).for_each(|key| data.keep(row(key, key as u64 % 2)).unwrap());
        data.flush().unwrap();
        let kept: Vec<_> =
            parts(dir.path()).iter().map(|part| (part.clone(), fs::read(part).unwrap())).collect();
        let listed: List = list_in(data.lock.dir()).unwrap().unwrap();
        data.complete().unwrap();
        let after: List = list_in(data.lock.dir()).unwrap().unwrap();
        drop(data);
        // The first part is renamed, and the second one is not; those before are still there.
        for (part, bytes) in kept.iter().filter(|(part, _)| *part != before[0]) {
            fs::write(part, bytes).unwrap();
        }
        let list = List { next: after.files, ..listed };
        fs::write(dir.path().join(LIST), seal(&list).0).unwrap();
        let listening = Listening::default();
        assert_eq!(open(dir.path(), &listening).count(), 8);
        assert_eq!(listening.0.into_inner().unwrap(), [""; 0]);
    }

    /// A sweep keeps parts in a folder of the same name, a run its trials, and another program anything.
    #[test]
    fn the_trials_of_others_are_refused_and_stay() {
        let refused = |dir: &Path| {
            let opened = DataSet::open(dir, &[], giveway_sources::SIMULATION, &Silent);
            opened.err().unwrap().to_string()
        };
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("trials/fifo-1a2b/seed-1")).unwrap();
        let said = refused(dir.path());
        assert!(said.contains("it contains trials/fifo-1a2b, and no trials.json"), "{said}");
        fs::remove_dir_all(dir.path().join("trials/fifo-1a2b")).unwrap();
        let part = dir.path().join("trials/part-00000000.parquet");
        fs::write(&part, "of a sweep").unwrap();
        let said = refused(dir.path());
        assert!(said.contains("it contains trials/part-00000000.parquet, and no trials.json"), "{said}");
        fs::write(dir.path().join(LIST), "{}").unwrap();
        let said = refused(dir.path());
        assert!(said.contains("trials.json is damaged") && said.contains("Nothing was changed"), "{said}");
        let list =
            List { giveway_trials: 2, version: String::new(), files: Files::new(), next: Files::new() };
        fs::write(dir.path().join(LIST), seal(&list).0).unwrap();
        let said = refused(dir.path());
        assert!(said.contains("has format 2, and this version reads format 1"), "{said}");
        assert_eq!(fs::read_to_string(part).unwrap(), "of a sweep");
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
