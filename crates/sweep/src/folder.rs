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
//!
//! The manifest has the length and the SHA-256 of every other file, and is sealed. A file is only read if its
//! bytes match. A part is in its place before the manifest has it, so a kill between the two loses it:
//! readers ignore a part that is not in the manifest, and the next process moves it aside. Before files are
//! renamed, the manifest also has their digests under the new names, so that a kill loses none of them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use giveway_record::dataset::{self, Axis, Known, Measured, Part, Reason, Row};
use giveway_record::{Damage, Digest, FolderError, Lock, read_sealed, seal, write_whole};
use giveway_runner::Frontend;
use serde::{Deserialize, Serialize};

use crate::error::SweepError;
use crate::plan::Plan;

/// The number of the form of sweep folders.
///
/// 2: digests of all files in the manifest, which is sealed.
const FORMAT: u64 = 2;

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
    /// The other files of the folder, by their names in it, such as `trials/part-00000000.parquet`.
    pub files: Files,
    /// The files that are about to take the place of these, while they are renamed.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub next: Files,
}

/// Files of a sweep with their digests, by their names in its folder.
pub type Files = BTreeMap<String, Digest>;

/// The fields of a manifest that all formats have.
#[derive(Deserialize)]
struct Stamp {
    giveway_sweep: u64,
    #[serde(default)]
    created_by: String,
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
            files: Files::new(),
            next: Files::new(),
        }
    }

    /// Reads the manifest of a folder; `None` if the folder has none.
    ///
    /// # Errors
    /// If it cannot be read, a bit of it has changed, or it is not that of a sweep of this format.
    pub fn read(dir: &Path) -> Result<Option<Manifest>, SweepError> {
        let place = dir.join(MANIFEST);
        let bytes = match fs::read(&place) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SweepError::Unknown(Damage::new(&place, error))),
        };
        let other = || {
            SweepError::Usage(format!("{} is not the folder of a sweep: name another folder", dir.display()))
        };
        match serde_json::from_slice::<Stamp>(&bytes) {
            Ok(Stamp { giveway_sweep: FORMAT, .. }) => {}
            Ok(Stamp { giveway_sweep, created_by }) => {
                let path = dir.to_owned();
                return Err(SweepError::Format { path, found: giveway_sweep, reads: FORMAT, created_by });
            }
            Err(_) if Manifest::is_in(dir) => {}
            Err(_) => return Err(other()),
        }
        match read_sealed(&place) {
            Ok((manifest, _)) => Ok(Some(manifest)),
            Err(damage) => Err(SweepError::Unknown(damage)),
        }
    }

    /// Writes the manifest into its folder.
    fn write(&self, dir: &Path) -> Result<(), SweepError> {
        let (text, _) = seal(self);
        write_whole(&dir.join(MANIFEST), text.as_bytes())?;
        Ok(())
    }

    /// True if a folder is that of a sweep, even if its manifest is damaged.
    pub fn is_in(dir: &Path) -> bool {
        let bytes = fs::read(dir.join(MANIFEST)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains("\"giveway_sweep\"")
    }

    /// The parts of the data set in `dir`, the folder of this manifest. All of their bytes are checked.
    ///
    /// # Errors
    /// If a file is damaged, or a process writes the folder at this moment.
    pub fn trials(&self, dir: &Path) -> Result<Vec<Part>, SweepError> {
        self.parts(dir, TRIALS)
    }

    /// The parts with the trials that failed, as [`trials`](Manifest::trials).
    ///
    /// # Errors
    /// As there.
    pub fn failed(&self, dir: &Path) -> Result<Vec<Part>, SweepError> {
        self.parts(dir, FAILED)
    }

    /// The parts in the folder `of` of `dir`.
    fn parts(&self, dir: &Path, of: &str) -> Result<Vec<Part>, SweepError> {
        let opened = open_parts(&self.files, dir, of);
        // A process was killed while it renamed files.
        let opened = opened.or_else(|damage| match self.next.is_empty() {
            true => Err(damage),
            false => open_parts(&self.next, dir, of),
        });
        opened.map_err(|damage| match Lock::holder(dir) {
            Some(holder) => FolderError::Busy { path: dir.to_owned(), holder }.into(),
            None => SweepError::Changed { damage, created_by: self.created_by.clone() },
        })
    }

    /// The text of the scenario in `dir`, the folder of this manifest.
    ///
    /// # Errors
    /// If it is damaged.
    pub(crate) fn scenario(&self, dir: &Path) -> Result<Vec<u8>, SweepError> {
        let place = dir.join(SCENARIO);
        let read = fs::read(&place).map_err(|error| Damage::new(&place, error)).and_then(|text| {
            match self.files.get(SCENARIO) == Some(&Digest::of_bytes(&text)) {
                true => Ok(text),
                false => Err(Damage::new(&place, "its SHA-256 does not match")),
            }
        });
        read.map_err(|damage| SweepError::Changed { damage, created_by: self.created_by.clone() })
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
        // A refused caller has changed nothing, and only the second look is reliable.
        SweepFolder::inspect(dir, &wanted)?;
        let lock = Lock::take(dir)?;
        let found = SweepFolder::inspect(dir, &wanted)?;
        let mut folder = SweepFolder {
            path: dir.to_owned(),
            manifest: wanted,
            columns: plan.columns().to_vec(),
            next: 0,
            _lock: lock,
        };
        folder.end_exchange()?;
        let text = plan.request().scenario.text();
        if let Some(found) = found {
            if found.version != folder.manifest.version {
                if found.files.keys().any(|name| is_of(name, TRIALS)) {
                    frontend.message(&format!(
                        "the trials in {} came from another build (Giveway {}): running again",
                        dir.display(),
                        found.version
                    ));
                }
                remove(&dir.join(TRIALS))?;
                remove(&dir.join(EARLIER))?;
            } else {
                folder.take_over(&found, frontend)?;
                if !found.same_trials(&folder.manifest) {
                    folder.set_aside(&found)?;
                }
            }
        }
        // Trials that failed are tried again.
        folder.manifest.files.retain(|name, _| !is_of(name, FAILED));
        folder.manifest.files.insert(SCENARIO.to_owned(), Digest::of_bytes(text.as_bytes()));
        folder.write_manifest()?;
        remove(&dir.join(FAILED))?;
        make(&dir.join(TRIALS))?;
        write_whole(&dir.join(SCENARIO), text.as_bytes())?;
        let next = files_in(&dir.join(TRIALS)).iter().filter_map(|path| number_of(path)).max();
        Ok(SweepFolder { next: next.map_or(0, |last| last + 1), ..folder })
    }

    /// Opens a new folder for the merged shards of a sweep. `manifest` has no file, and `scenario` is the
    /// text of the scenario.
    ///
    /// # Errors
    /// As [`open`](SweepFolder::open).
    pub(crate) fn of_manifest(
        dir: &Path,
        mut manifest: Manifest,
        scenario: &[u8],
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
        manifest.files.insert(SCENARIO.to_owned(), Digest::of_bytes(scenario));
        let folder = SweepFolder { path: dir.to_owned(), manifest, columns, next: 0, _lock };
        folder.end_exchange()?;
        make(&dir.join(TRIALS))?;
        folder.write_manifest()?;
        write_whole(&dir.join(SCENARIO), scenario)?;
        Ok(folder)
    }

    /// A new folder at `dir` with other trials of the same request.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn another(&self, dir: &Path) -> Result<SweepFolder, SweepError> {
        let folder = SweepFolder {
            path: dir.to_owned(),
            manifest: Manifest { files: Files::new(), next: Files::new(), ..self.manifest.clone() },
            columns: self.columns.clone(),
            next: 0,
            _lock: Lock::take(dir)?,
        };
        make(&dir.join(TRIALS))?;
        folder.write_manifest()?;
        Ok(folder)
    }

    /// Replaces the data set by `trials`, sorted, and the failed trials by `failed`. Returns the number of
    /// trials.
    pub(crate) fn take(
        &mut self,
        trials: &[Part],
        failed: &[Part],
        complete: bool,
    ) -> Result<u64, SweepError> {
        remove(&self.path.join(FAILED))?;
        for part in failed {
            make(&self.path.join(FAILED))?;
            let name = part_name(FAILED, self.next);
            let place = self.path.join(&name);
            let copied = fs::copy(part.path(), &place).and_then(|_| Digest::of_file(&place));
            let digest = copied.map_err(|source| FolderError::Write { path: place, source })?;
            self.manifest.files.insert(name, digest);
            self.next += 1;
        }
        self.exchange(trials, complete)
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

    /// Takes over the files of `found`, the manifest of this folder until now, that have not changed. Others
    /// are moved aside, and their trials run again.
    fn take_over(&mut self, found: &Manifest, frontend: &dyn Frontend) -> Result<(), SweepError> {
        let Manifest { files, next, .. } = found;
        for of in [TRIALS, FAILED, EARLIER] {
            for path in files_in(&self.path.join(of)) {
                let name = format!("{of}/{}", path.file_name().unwrap_or_default().to_string_lossy());
                let noted: Vec<&Digest> = files.get(&name).into_iter().chain(next.get(&name)).collect();
                match noted.iter().find(|digest| digest.check(&path).is_ok()) {
                    Some(digest) => {
                        self.manifest.files.insert(name, (*digest).clone());
                    }
                    None => {
                        let listed = noted.first().and_then(|digest| digest.check(&path).err());
                        let damage =
                            listed.unwrap_or_else(|| Damage::new(&path, "the manifest does not have it"));
                        move_aside(&path, &damage, frontend)?;
                    }
                }
            }
        }
        // Files that were being renamed have only one of their two names.
        for name in files.keys().filter(|name| next.is_empty() && is_of(name, TRIALS)) {
            if !self.path.join(name).exists() {
                let path = self.path.join(name);
                frontend.message(&format!("{} is missing: its trials run again", path.display()));
            }
        }
        Ok(())
    }

    /// Moves the trials to `earlier`, beside those that are there already. Until all of them are there, the
    /// manifest is that of their request, `found`: a kill must not leave them to this one.
    fn set_aside(&mut self, found: &Manifest) -> Result<(), SweepError> {
        make(&self.path.join(EARLIER))?;
        let taken = files_in(&self.path.join(EARLIER)).iter().filter_map(|path| number_of(path)).max();
        let free = taken.map_or(0, |last| last + 1);
        let (trials, mut next): (Files, Files) =
            std::mem::take(&mut self.manifest.files).into_iter().partition(|(name, _)| is_of(name, TRIALS));
        let moves: Vec<(String, String)> = trials
            .keys()
            .zip(free..)
            .map(|(name, number)| (name.clone(), part_name(EARLIER, number)))
            .collect();
        next.extend(moves.iter().zip(trials.values()).map(|((_, to), digest)| (to.clone(), digest.clone())));
        let moving = Manifest { files: trials, next: next.clone(), ..found.clone() };
        moving.write(&self.path)?;
        for (from, to) in moves {
            rename(&self.path.join(from), &self.path.join(to))?;
        }
        self.manifest.files = next;
        Ok(())
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The parts of a changed request.
    ///
    /// # Errors
    /// If one of them was damaged since the folder was opened.
    pub fn earlier(&self) -> Result<Vec<Part>, SweepError> {
        Ok(open_parts(&self.manifest.files, &self.path, EARLIER)?)
    }

    /// The parts so far.
    ///
    /// # Errors
    /// If one of them was damaged since the folder was opened.
    pub fn parts(&self) -> Result<Vec<Part>, SweepError> {
        Ok(open_parts(&self.manifest.files, &self.path, TRIALS)?)
    }

    /// The finished trials. A part that cannot be read is moved aside, and its trials run again.
    ///
    /// # Errors
    /// If a damaged part cannot be moved.
    pub fn known(&mut self, frontend: &dyn Frontend) -> Result<Vec<Known>, SweepError> {
        let mut known = Vec::new();
        for part in self.parts()? {
            match dataset::known(&part) {
                Ok(rows) => known.extend(rows),
                Err(damage) => {
                    move_aside(part.path(), &damage, frontend)?;
                    self.manifest.files.retain(|name, _| self.path.join(name) != part.path());
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
        let name = part_name(TRIALS, self.next);
        let digest = dataset::write(&self.path.join(&name), &self.columns, rows)?;
        self.note(name, digest)
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
        let name = part_name(FAILED, self.next);
        let digest = dataset::write_failed(&self.path.join(&name), &self.columns, rows)?;
        self.note(name, digest)
    }

    /// Adds a part to the manifest.
    fn note(&mut self, name: String, digest: Digest) -> Result<(), SweepError> {
        self.manifest.files.insert(name, digest);
        self.next += 1;
        self.write_manifest()
    }

    /// Sorts the data set, and marks the folder as complete.
    ///
    /// # Errors
    /// If a file cannot be read or written; then the parts remain as they are.
    pub fn complete(&mut self) -> Result<(), SweepError> {
        self.exchange(&self.parts()?, true)?;
        Ok(())
    }

    /// Replaces the data set by the rows of `all`, sorted. Returns their number.
    fn exchange(&mut self, all: &[Part], complete: bool) -> Result<u64, SweepError> {
        let sorted = self.path.join(SORTED);
        remove(&sorted)?;
        make(&sorted)?;
        let (rows, files) = self.sort_into(all, &sorted).inspect_err(|_| {
            // The disk may be full: make room. The first error is reported.
            let _ = fs::remove_dir_all(&sorted);
        })?;
        let stay = |(name, _): &(&String, &Digest)| !is_of(name, TRIALS) && !is_of(name, EARLIER);
        let others = self.manifest.files.iter().filter(stay);
        self.manifest.next =
            others.map(|(name, digest)| (name.clone(), digest.clone())).chain(files).collect();
        self.write_manifest()?;
        let (trials, unsorted) = (self.path.join(TRIALS), self.path.join(UNSORTED));
        rename(&trials, &unsorted)?;
        rename(&sorted, &trials)?;
        self.manifest.files = std::mem::take(&mut self.manifest.next);
        self.manifest.complete = complete;
        self.write_manifest()?;
        remove(&unsorted)?;
        remove(&self.path.join(EARLIER))?;
        Ok(rows)
    }

    /// Writes the rows of `parts`, sorted, into files in the folder `to`. Returns their number, and the files
    /// by their later names. It needs memory for the rows of one file, and reads all parts once for each
    /// file.
    fn sort_into(&self, parts: &[Part], to: &Path) -> Result<(u64, Files), SweepError> {
        let mut files = Files::new();
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
            let place = to.join(part_file(file));
            files.insert(part_name(TRIALS, file), dataset::write(&place, &self.columns, &rows)?);
            written += rows.len() as u64;
            from = end;
            file += 1;
        }
        Ok((written, files))
    }

    fn write_manifest(&self) -> Result<(), SweepError> {
        self.manifest.write(&self.path)
    }
}

/// The parts of `files` in the folder `of` of `dir`, in the order of their names. All of their bytes are
/// checked.
fn open_parts(files: &Files, dir: &Path, of: &str) -> Result<Vec<Part>, Damage> {
    let listed = files.iter().filter(|(name, _)| is_of(name, of));
    listed.map(|(name, digest)| Part::open(&dir.join(name), digest)).collect()
}

/// True if a file of a sweep is in this folder of it.
fn is_of(name: &str, folder: &str) -> bool {
    name.split_once('/').is_some_and(|(first, _)| first == folder)
}

/// The file of a part.
fn part_file(number: u64) -> String {
    format!("part-{number:08}.parquet")
}

/// The name of a part in the folder of its sweep.
fn part_name(folder: &str, number: u64) -> String {
    format!("{folder}/{}", part_file(number))
}

/// Renames a damaged part, so that its trials run again.
fn move_aside(path: &Path, damage: &Damage, frontend: &dyn Frontend) -> Result<(), SweepError> {
    frontend.message(&format!("{damage}: it is now {}.broken, and its trials run again", path.display()));
    rename(path, &path.with_extension("parquet.broken"))
}

/// The files of parts in a folder, in the order of their names.
fn files_in(dir: &Path) -> Vec<PathBuf> {
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
