//! The trials of other folders: of sweeps, of cards, and of runs.
//!
//! A trial is found by its key, so none is taken from a folder of another scenario or version. Every byte
//! of a part is checked before it is read, and a part is read when one of its trials is taken.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use giveway_files::Dir;
use giveway_record::dataset::{self, Axis, Measured, Part, Row};
use giveway_record::report::ReportError;
use giveway_record::{Damage, FolderError, Lock, Opened, open_sealed};
use giveway_scenario::Draft;
use serde::Deserialize;

use crate::data_set::{FORMAT, Files, LIST};
use crate::frontend::Frontend;
use crate::key::{Digests, Identity, Key, version};
use crate::store::Store;

/// The list of a sweep and of a run.
const MANIFEST: &str = "manifest.json";

/// The trials of other folders.
#[derive(Default)]
pub struct Reuse {
    parts: Vec<Part>,
    /// The columns of varied keys of each part: other sweeps vary other keys, which are no metrics.
    axes: Vec<Vec<Axis>>,
    /// The part and the row of each key.
    places: BTreeMap<Key, (usize, usize)>,
    /// Trials of runs.
    runs: BTreeMap<Key, Measured>,
    /// The rows of the part that was read last.
    read: Mutex<Option<(usize, Vec<Row<Measured>>)>>,
}

/// A folder whose trials cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum ReuseError {
    /// It contains no trials.
    #[error("{path} has no trials: name the folder of a sweep, of a card or of a run", path = .0.display())]
    Nothing(PathBuf),
    /// Another process writes it.
    #[error("{path} is being written by {holder}. Try again when that process has ended", path = path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
        /// The process, and the time since when it writes.
        holder: String,
    },
    /// It was written in another format.
    #[error("{path} has format {found}, and this version reads format {reads}: run the command that made it again", path = path.display())]
    Format {
        /// The folder.
        path: PathBuf,
        /// The number of its format.
        found: u64,
        /// The number of the format that this version reads.
        reads: u64,
    },
    /// A file is damaged.
    #[error("{0}; run the command that made it again, which repeats the trials of this file")]
    Damaged(Damage),
    /// It is a run folder that cannot be read.
    #[error(transparent)]
    Run(#[from] ReportError),
}

impl From<Damage> for ReuseError {
    fn from(damage: Damage) -> ReuseError {
        ReuseError::Damaged(damage)
    }
}

/// The number of the format of a sweep, or of a data set.
#[derive(Deserialize)]
struct Stamp {
    giveway_sweep: Option<u64>,
    giveway_trials: Option<u64>,
}

/// The fields of the lists of sweeps and cards that are read here.
#[derive(Deserialize)]
struct List {
    version: String,
    files: Files,
    /// The files that are about to take the place of these, while they are renamed.
    #[serde(default)]
    next: Files,
}

impl Reuse {
    /// The trials of these folders. The front end learns of folders from another version.
    ///
    /// # Errors
    /// The first folder without trials, or with a damaged file.
    pub fn of(folders: &[PathBuf], frontend: &dyn Frontend) -> Result<Reuse, ReuseError> {
        let mut all = Reuse::default();
        folders.iter().try_for_each(|folder| all.add(folder, frontend))?;
        Ok(all)
    }

    /// The trials of these parts.
    ///
    /// # Errors
    /// If one of them is damaged.
    pub fn of_parts(parts: Vec<Part>) -> Result<Reuse, Damage> {
        let mut all = Reuse::default();
        parts.into_iter().try_for_each(|part| all.add_part(part))?;
        Ok(all)
    }

    fn add(&mut self, folder: &Path, frontend: &dyn Frontend) -> Result<(), ReuseError> {
        let nothing = || ReuseError::Nothing(folder.to_owned());
        let dir = Dir::open(folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => nothing(),
            _ => Damage::new(folder, error).into(),
        })?;
        for name in [LIST, MANIFEST] {
            let bytes = match dir.read(name) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Damage::new(&folder.join(name), error).into()),
            };
            if name == MANIFEST && !String::from_utf8_lossy(&bytes).contains("\"giveway_sweep\"") {
                return self.add_run(folder, frontend);
            }
            check_format(folder, &bytes)?;
            let (list, _) = open_sealed::<List>(&bytes, &folder.join(name))?;
            return self.add_list(&dir, &list, frontend);
        }
        Err(nothing())
    }

    /// Adds the parts of a sweep or of a card.
    fn add_list(&mut self, dir: &Dir, list: &List, frontend: &dyn Frontend) -> Result<(), ReuseError> {
        remark(dir.path(), &list.version, giveway_sources::SIMULATION, frontend);
        let opened = open_all(dir, &list.files).or_else(|damage| match list.next.is_empty() {
            true => Err(damage),
            // A process was killed while it renamed files.
            false => open_all(dir, &list.next),
        });
        let parts = opened.map_err(|damage| match Lock::holder(dir.path()) {
            Some(holder) => ReuseError::Busy { path: dir.path().to_owned(), holder },
            None => damage.into(),
        })?;
        Ok(parts.into_iter().try_for_each(|part| self.add_part(part))?)
    }

    /// Adds the finished trials of a run.
    fn add_run(&mut self, folder: &Path, frontend: &dyn Frontend) -> Result<(), ReuseError> {
        let opened = Opened::read(folder)?;
        let text = opened.scenario();
        let scenario = Draft::parse(text, folder).finish().map_err(|error| {
            Damage::new(
                folder,
                format!("its scenario cannot be read, so that its trials have no key: {error}"),
            )
        })?;
        remark(folder, opened.version(), version(&scenario), frontend);
        if opened.version() != version(&scenario) {
            return Ok(());
        }
        let identity = Identity::of(&scenario, &Digests::default());
        for (trial, summary) in opened.summaries()? {
            self.runs.insert(identity.key(&trial.qdisc, trial.seed), Measured::of(&summary));
        }
        Ok(())
    }

    fn add_part(&mut self, part: Part) -> Result<(), Damage> {
        for (row, known) in dataset::known(&part)?.into_iter().enumerate() {
            self.places.insert(known.key, (self.parts.len(), row));
        }
        self.axes.push(dataset::axes(&part)?);
        self.parts.push(part);
        Ok(())
    }

    /// True if no trial can be taken.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.runs.is_empty()
    }

    /// True if a trial can be taken.
    pub fn has(&self, key: Key) -> bool {
        self.places.contains_key(&key) || self.runs.contains_key(&key)
    }

    /// The place of a trial in an order in which each part is read once.
    pub fn order(&self, key: Key) -> (usize, usize) {
        self.places.get(&key).copied().unwrap_or((usize::MAX, 0))
    }

    /// The results of a trial; `None` if it is in none of the folders.
    ///
    /// # Errors
    /// If its part was damaged since it was opened.
    pub fn take(&self, key: Key) -> Result<Option<Measured>, Damage> {
        let Some((part, row)) = self.places.get(&key).copied() else {
            return Ok(self.runs.get(&key).cloned());
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.as_ref().is_none_or(|(known, _)| *known != part) {
            *read = Some((part, dataset::read(&self.parts[part], &self.axes[part])?));
        }
        Ok(read.as_ref().and_then(|(_, rows)| Some(rows.get(row)?.result.clone())))
    }
}

/// The format of sweeps that is read here: `giveway_sweep::Manifest` writes it.
const SWEEPS: u64 = 2;

fn check_format(folder: &Path, bytes: &[u8]) -> Result<(), ReuseError> {
    // Damage is found by the seal.
    let Ok(Stamp { giveway_sweep, giveway_trials }) = serde_json::from_slice(bytes) else { return Ok(()) };
    for (found, reads) in [(giveway_sweep, SWEEPS), (giveway_trials, FORMAT)] {
        if let Some(found) = found.filter(|found| *found != reads) {
            return Err(ReuseError::Format { path: folder.to_owned(), found, reads });
        }
    }
    Ok(())
}

/// A store with the trials of other folders behind it. It keeps what it takes from them.
pub struct Reusing<'a> {
    /// The store that keeps results.
    pub own: &'a dyn Store<Measured>,
    /// The trials of other folders.
    pub other: &'a Reuse,
    /// The number of trials that were taken from them.
    pub taken: AtomicUsize,
}

impl<'a> Reusing<'a> {
    /// A store in front of other folders.
    pub fn new(own: &'a dyn Store<Measured>, other: &'a Reuse) -> Reusing<'a> {
        Reusing { own, other, taken: AtomicUsize::new(0) }
    }
}

impl Store<Measured> for Reusing<'_> {
    fn find(&self, trial: &Row<()>) -> Option<Measured> {
        let known = self.own.find(trial);
        known.or_else(|| {
            // A part that was damaged since it was opened, or a row that cannot be kept: the trial runs.
            let found = self.other.take(trial.key).ok().flatten()?;
            self.own.keep(trial.clone().with(found.clone())).ok()?;
            self.taken.fetch_add(1, Ordering::Relaxed);
            Some(found)
        })
    }

    fn keep(&self, row: Row<Measured>) -> Result<(), FolderError> {
        self.own.keep(row)
    }

    fn patience(&self) -> Duration {
        self.own.patience()
    }

    fn flush(&self) -> Result<(), FolderError> {
        self.own.flush()
    }
}

/// Says that a folder is of another version.
fn remark(folder: &Path, found: &str, wanted: &str, frontend: &dyn Frontend) {
    if found != wanted && found != giveway_sources::TESTBED {
        frontend.message(&format!(
            "--reuse {}: its trials are of Giveway {found}, and this is {wanted}: none of them is taken",
            folder.display()
        ));
    }
}

fn open_all(dir: &Dir, files: &Files) -> Result<Vec<Part>, Damage> {
    let parts = files.iter().filter(|(name, _)| {
        name.ends_with(".parquet") && (name.starts_with("trials/") || name.starts_with("earlier/"))
    });
    parts.map(|(name, digest)| Part::open(dir, name, digest)).collect()
}
