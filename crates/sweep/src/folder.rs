//! The folder of a sweep.
//!
//! ```text
//! manifest.json        what was asked, by which version, and whether it is complete
//! scenario.toml        the scenario
//! trials/*.parquet     the data set, a row for each finished trial
//! failed/*.parquet     failed trials, with the reason
//! earlier/*.parquet    trials of a request that has changed, while they are looked through
//! .giveway.lock        the process that writes the folder at present
//! ```
//!
//! While a sweep runs, it adds parts. At its end they are sorted by point, discipline and seed into files of
//! [`SORTED_ROWS`] rows: the same request gives the same bytes, with any number of threads, shards and
//! interruptions. The sorted files are written beside the parts, and the folders are exchanged.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use giveway_record::dataset::{self, Axis, Known, Measured, Reason, Row};
use giveway_record::{Damage, FolderError, Lock, write_whole};
use giveway_runner::Frontend;
use serde::{Deserialize, Serialize};

use crate::error::SweepError;
use crate::plan::Plan;

/// The number of the form of sweep folders.
const FORMAT: u64 = 1;

/// Rows of a sorted file.
pub const SORTED_ROWS: usize = 100_000;

const MANIFEST: &str = "manifest.json";
const SCENARIO: &str = "scenario.toml";
const TRIALS: &str = "trials";
const SORTED: &str = "trials.new";
const UNSORTED: &str = "trials.old";
const FAILED: &str = "failed";
const EARLIER: &str = "earlier";

/// The beginning of the names of folders with a part of the sweep: `shard-1-of-8`.
pub const PART: &str = "shard-";

/// The part of a sweep that one process runs: the points whose place in the random order is `index` modulo
/// `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The number of the shard, from 0.
    pub index: u64,
    /// The number of shards.
    pub of: u64,
}

impl Shard {
    /// The whole sweep.
    pub const WHOLE: Shard = Shard { index: 0, of: 1 };
}

/// The description of a sweep in its folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The number of the form of the folder.
    pub giveway_sweep: u64,
    /// The version of the simulation.
    pub version: String,
    /// The title of the scenario.
    pub title: String,
    /// The identity of the scenario.
    pub identity: String,
    /// The varied keys with their values.
    pub axes: Vec<String>,
    /// The design.
    pub design: String,
    /// The compared disciplines.
    pub disciplines: Vec<String>,
    /// The seeds, or the most of them.
    pub seeds: Vec<u64>,
    /// The precision, if seeds end with one.
    pub until: Option<String>,
    /// The part of the sweep in this folder.
    pub shard: Shard,
    /// The command that made the folder.
    pub created_by: String,
    /// The columns of the varied keys.
    pub columns: Vec<Column>,
    /// True if no trial is missing.
    pub complete: bool,
}

/// A column of a varied key, in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The key.
    pub key: String,
    /// The name of the column.
    pub column: String,
    /// The unit; `None` for texts.
    pub unit: Option<String>,
}

impl Manifest {
    /// The manifest of a plan.
    pub fn of(plan: &Plan, shard: Shard, created_by: &str) -> Manifest {
        let request = plan.request();
        let column = |axis: &Axis| Column {
            key: axis.key.clone(),
            column: axis.column.clone(),
            unit: axis.unit.map(str::to_owned),
        };
        Manifest {
            giveway_sweep: FORMAT,
            version: plan.version().to_owned(),
            title: request.scenario.title.clone(),
            identity: request.scenario.identity(),
            axes: request.axes.iter().map(ToString::to_string).collect(),
            design: request.design.to_string(),
            disciplines: plan.disciplines().map(str::to_owned).collect(),
            seeds: plan.seeds().to_vec(),
            until: request.until.as_ref().map(ToString::to_string),
            shard,
            created_by: created_by.to_owned(),
            columns: plan.columns().iter().map(column).collect(),
            complete: false,
        }
    }

    /// Reads the manifest of a folder; `None` if the folder has none.
    ///
    /// # Errors
    /// If it cannot be read, or is not that of a sweep.
    pub fn read(dir: &Path) -> Result<Option<Manifest>, SweepError> {
        let place = dir.join(MANIFEST);
        let text = match fs::read_to_string(&place) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SweepError::Damaged(Damage::new(&place, error))),
        };
        let read: Manifest = serde_json::from_str(&text).map_err(|_| {
            SweepError::Usage(format!("{} is not the folder of a sweep: name another folder", dir.display()))
        })?;
        if read.giveway_sweep != FORMAT {
            return Err(SweepError::Usage(format!(
                "{} has format {} of sweeps, and this version has format {FORMAT}: name another folder",
                dir.display(),
                read.giveway_sweep
            )));
        }
        Ok(Some(read))
    }

    /// True if a folder is that of a sweep.
    pub fn is_in(dir: &Path) -> bool {
        let text = fs::read_to_string(dir.join(MANIFEST)).unwrap_or_default();
        serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|read| read.get("giveway_sweep").is_some())
    }

    /// True if both are shards of the same sweep.
    pub(crate) fn same_sweep(&self, other: &Manifest) -> bool {
        self.identity == other.identity && self.same_trials(other) && self.shard.of == other.shard.of
    }

    /// The columns of the varied keys.
    pub(crate) fn axes(&self) -> Vec<Axis> {
        const UNITS: [&str; 5] = ["bit/s", "s", "B", "packets", "1"];
        let unit = |column: &Column| {
            let unit = column.unit.as_ref()?;
            UNITS.into_iter().find(|known| known == unit)
        };
        let axis = |column: &Column| Axis {
            key: column.key.clone(),
            column: column.column.clone(),
            unit: unit(column),
        };
        self.columns.iter().map(axis).collect()
    }

    /// True if both ask for the same trials.
    fn same_trials(&self, other: &Manifest) -> bool {
        (&self.axes, &self.design, &self.disciplines, &self.seeds, &self.until)
            == (&other.axes, &other.design, &other.disciplines, &other.seeds, &other.until)
    }
}

/// The folder of a sweep, open for writing by this process only.
#[derive(Debug)]
pub struct SweepFolder {
    path: PathBuf,
    manifest: Manifest,
    columns: Vec<Axis>,
    /// The number of the next part.
    next: u64,
    _lock: Lock,
}

impl SweepFolder {
    /// Opens the folder of a sweep, or creates it, and locks it. Trials of another version are removed, and
    /// those of a changed request are kept for [`earlier`](SweepFolder::earlier).
    ///
    /// # Errors
    /// If the folder has other content, another process writes it, or it cannot be written.
    pub fn open(
        dir: &Path,
        plan: &Plan,
        shard: Shard,
        created_by: &str,
        frontend: &dyn Frontend,
    ) -> Result<SweepFolder, SweepError> {
        let wanted = Manifest::of(plan, shard, created_by);
        let found = SweepFolder::inspect(dir, &wanted)?;
        let lock = Lock::take(dir)?;
        let folder = SweepFolder {
            path: dir.to_owned(),
            manifest: wanted,
            columns: plan.columns().to_vec(),
            next: 0,
            _lock: lock,
        };
        folder.end_exchange()?;
        if let Some(found) = found {
            if found.version != folder.manifest.version {
                let count = parts(&dir.join(TRIALS)).len();
                if count > 0 {
                    frontend.message(&format!(
                        "the trials in {} came from another build (Giveway {}): running again",
                        dir.display(),
                        found.version
                    ));
                }
                remove(&dir.join(TRIALS))?;
                remove(&dir.join(EARLIER))?;
            } else if !found.same_trials(&folder.manifest) {
                folder.set_aside()?;
            }
        }
        // Trials that failed are tried again.
        remove(&dir.join(FAILED))?;
        make(&dir.join(TRIALS))?;
        folder.write_manifest()?;
        write_whole(&dir.join(SCENARIO), plan.request().scenario.text().as_bytes())?;
        let next = parts(&dir.join(TRIALS)).iter().filter_map(|path| number_of(path)).max();
        Ok(SweepFolder { next: next.map_or(0, |last| last + 1), ..folder })
    }

    /// Opens a new folder for the merged shards of a sweep. `scenario` is a folder with the scenario.
    ///
    /// # Errors
    /// As [`open`](SweepFolder::open).
    pub(crate) fn of_manifest(
        dir: &Path,
        manifest: Manifest,
        scenario: &Path,
        frontend: &dyn Frontend,
    ) -> Result<SweepFolder, SweepError> {
        if let Some(found) = SweepFolder::inspect(dir, &manifest)?
            && (!found.same_trials(&manifest) || found.version != manifest.version)
        {
            return Err(SweepError::Usage(format!(
                "{} contains another request of this sweep, made by `{}`; name another folder",
                dir.display(),
                found.created_by
            )));
        }
        let _lock = Lock::take(dir)?;
        let columns = manifest.axes();
        let folder = SweepFolder { path: dir.to_owned(), manifest, columns, next: 0, _lock };
        folder.end_exchange()?;
        make(&dir.join(TRIALS))?;
        folder.write_manifest()?;
        let place = scenario.join(SCENARIO);
        match fs::read(&place) {
            Ok(text) => write_whole(&dir.join(SCENARIO), &text)?,
            Err(error) => frontend.message(&format!("cannot read {}: {error}", place.display())),
        }
        Ok(folder)
    }

    /// A new folder at `dir` with other trials of the same request.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn another(&self, dir: &Path) -> Result<SweepFolder, SweepError> {
        let folder = SweepFolder {
            path: dir.to_owned(),
            manifest: self.manifest.clone(),
            columns: self.columns.clone(),
            next: 0,
            _lock: Lock::take(dir)?,
        };
        make(&dir.join(TRIALS))?;
        folder.write_manifest()?;
        Ok(folder)
    }

    /// Replaces the data set by that of these folders, sorted. Returns the number of trials.
    pub(crate) fn take(&mut self, dirs: &[&Path], complete: bool) -> Result<u64, SweepError> {
        let all: Vec<PathBuf> = dirs.iter().flat_map(|dir| parts(&dir.join(TRIALS))).collect();
        remove(&self.path.join(FAILED))?;
        for part in dirs.iter().flat_map(|dir| parts(&dir.join(FAILED))) {
            let to = self.path.join(FAILED);
            make(&to)?;
            let place = to.join(format!("part-{:08}.parquet", self.next));
            fs::copy(&part, &place).map_err(|source| FolderError::Write { path: place, source })?;
            self.next += 1;
        }
        self.exchange(&all, complete)
    }

    /// Checks if a folder can be used, and returns its manifest. Changes nothing.
    fn inspect(dir: &Path, wanted: &Manifest) -> Result<Option<Manifest>, SweepError> {
        let refused = |message: String| Err(SweepError::Usage(message));
        let Some(found) = Manifest::read(dir)? else {
            let holds: Vec<String> = fs::read_dir(dir)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .filter(|name| name != giveway_record::LOCK && !name.ends_with(".tmp"))
                // The parts of the sweep, which are merged into the folder above them.
                .filter(|name| !name.starts_with(PART))
                .collect();
            return match holds.first() {
                None => Ok(None),
                Some(name) => refused(format!(
                    "{} is not empty and is not the folder of a sweep: it contains {name}; name another folder",
                    dir.display()
                )),
            };
        };
        let keys = |manifest: &Manifest| -> Vec<String> {
            manifest.columns.iter().map(|column| column.key.clone()).collect()
        };
        if found.identity != wanted.identity || keys(&found) != keys(wanted) {
            return refused(format!(
                "{} contains another sweep ({}), made by `{}`; name another folder, and add --reuse {} to use its trials",
                dir.display(),
                found.axes.join(" "),
                found.created_by,
                dir.display()
            ));
        }
        if found.shard != wanted.shard {
            return refused(format!(
                "{} contains shard {}/{}; name another folder, or this shard",
                dir.display(),
                found.shard.index + 1,
                found.shard.of
            ));
        }
        Ok(Some(found))
    }

    /// Ends an exchange of sorted and unsorted files that was interrupted.
    fn end_exchange(&self) -> Result<(), SweepError> {
        let (trials, sorted) = (self.path.join(TRIALS), self.path.join(SORTED));
        if !trials.exists() && sorted.exists() {
            rename(&sorted, &trials)?;
        }
        remove(&sorted)?;
        remove(&self.path.join(UNSORTED))
    }

    /// Moves the trials to `earlier`, beside those that are there already.
    fn set_aside(&self) -> Result<(), SweepError> {
        let earlier = self.path.join(EARLIER);
        make(&earlier)?;
        let taken = parts(&earlier).len();
        for (number, part) in parts(&self.path.join(TRIALS)).into_iter().enumerate() {
            rename(&part, &earlier.join(format!("part-{:08}.parquet", taken + number)))?;
        }
        Ok(())
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The parts of a changed request.
    pub fn earlier(&self) -> Vec<PathBuf> {
        parts(&self.path.join(EARLIER))
    }

    /// The parts so far.
    pub fn parts(&self) -> Vec<PathBuf> {
        parts(&self.path.join(TRIALS))
    }

    /// The finished trials. A part that cannot be read is moved aside, and its trials run again.
    ///
    /// # Errors
    /// If a damaged part cannot be moved.
    pub fn known(&self, frontend: &dyn Frontend) -> Result<Vec<Known>, SweepError> {
        let mut known = Vec::new();
        for part in self.parts() {
            match dataset::known(&part) {
                Ok(rows) => known.extend(rows),
                Err(damage) => {
                    frontend.message(&format!(
                        "{damage}: it is now {}.broken, and its trials run again",
                        part.display()
                    ));
                    rename(&part, &part.with_extension("parquet.broken"))?;
                }
            }
        }
        Ok(known)
    }

    /// Adds finished trials as a part.
    ///
    /// # Errors
    /// If it cannot be written. All earlier parts are intact.
    pub fn add(&mut self, rows: &[Row<Measured>]) -> Result<(), SweepError> {
        if rows.is_empty() {
            return Ok(());
        }
        let place = self.path.join(TRIALS).join(format!("part-{:08}.parquet", self.next));
        dataset::write(&place, &self.columns, rows)?;
        self.next += 1;
        Ok(())
    }

    /// Adds failed trials as a part.
    ///
    /// # Errors
    /// As [`add`](SweepFolder::add).
    pub fn add_failed(&mut self, rows: &[Row<Reason>]) -> Result<(), SweepError> {
        if rows.is_empty() {
            return Ok(());
        }
        make(&self.path.join(FAILED))?;
        let place = self.path.join(FAILED).join(format!("part-{:08}.parquet", self.next));
        dataset::write_failed(&place, &self.columns, rows)?;
        self.next += 1;
        Ok(())
    }

    /// Sorts the data set, and marks the folder as complete.
    ///
    /// # Errors
    /// If a file cannot be read or written; then the parts remain as they are.
    pub fn complete(&mut self) -> Result<(), SweepError> {
        self.exchange(&self.parts(), true)?;
        remove(&self.path.join(EARLIER))
    }

    /// Replaces the data set by the rows of `all`, sorted. Returns their number.
    fn exchange(&mut self, all: &[PathBuf], complete: bool) -> Result<u64, SweepError> {
        let sorted = self.path.join(SORTED);
        remove(&sorted)?;
        make(&sorted)?;
        let rows = self.sort_into(all, &sorted).inspect_err(|_| {
            // The disk may be full: make room. The first error is reported.
            let _ = fs::remove_dir_all(&sorted);
        })?;
        let (trials, unsorted) = (self.path.join(TRIALS), self.path.join(UNSORTED));
        rename(&trials, &unsorted)?;
        rename(&sorted, &trials)?;
        remove(&unsorted)?;
        self.manifest.complete = complete;
        self.write_manifest()?;
        Ok(rows)
    }

    /// Writes the rows of `parts`, sorted, into files in the folder `to`. It needs memory for the rows of one
    /// file, and reads all parts once for each file.
    fn sort_into(&self, parts: &[PathBuf], to: &Path) -> Result<u64, SweepError> {
        let mut points: Vec<u64> = Vec::new();
        for part in parts {
            points.extend(dataset::known(part)?.iter().map(|row| row.point));
        }
        points.sort_unstable();
        let mut from = 0;
        let (mut file, mut written) = (0, 0);
        while from < points.len() {
            // A point is in one file.
            let until = points[(from + SORTED_ROWS).min(points.len()) - 1];
            let end = points.partition_point(|point| *point <= until);
            let mut rows: Vec<Row<Measured>> = Vec::new();
            for part in parts {
                let of_file = points[from]..=until;
                rows.extend(
                    dataset::read(part, &self.columns)?
                        .into_iter()
                        .filter(|row| of_file.contains(&row.point)),
                );
            }
            let place = |written: &str| self.manifest.disciplines.iter().position(|known| known == written);
            rows.sort_by_key(|row| (row.point, place(&row.discipline), row.seed));
            // A trial that two shards or a killed process ran twice has equal rows.
            rows.dedup_by_key(|row| (row.point, place(&row.discipline), row.seed));
            dataset::write(&to.join(format!("part-{file:08}.parquet")), &self.columns, &rows)?;
            written += rows.len() as u64;
            from = end;
            file += 1;
        }
        Ok(written)
    }

    fn write_manifest(&self) -> Result<(), SweepError> {
        let text = serde_json::to_string_pretty(&self.manifest).expect("a manifest can be written as JSON");
        write_whole(&self.path.join(MANIFEST), text.as_bytes())?;
        Ok(())
    }
}

/// The parts in a folder, in the order of their names.
pub(crate) fn parts(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_part = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "parquet");
    let visible =
        |path: &PathBuf| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_part).filter(visible).collect();
    found.sort();
    found
}

fn number_of(part: &Path) -> Option<u64> {
    part.file_stem()?.to_string_lossy().strip_prefix("part-")?.parse().ok()
}

fn make(dir: &Path) -> Result<(), SweepError> {
    fs::create_dir_all(dir).map_err(|source| FolderError::Write { path: dir.to_owned(), source }.into())
}

fn rename(from: &Path, to: &Path) -> Result<(), SweepError> {
    fs::rename(from, to).map_err(|source| FolderError::Write { path: to.to_owned(), source }.into())
}

/// Removes a folder of parts, if it exists.
fn remove(dir: &Path) -> Result<(), SweepError> {
    match fs::remove_dir_all(dir) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(FolderError::Write { path: dir.to_owned(), source }.into())
        }
        _ => Ok(()),
    }
}
