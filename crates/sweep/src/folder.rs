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
//! interruptions. The sorted files are written next to the parts, and the folders are exchanged.
//!
//! The manifest contains the length and the SHA-256 of every other file, and is sealed. A file is only read
//! if its bytes match. A part is in its place before the manifest has it, so a kill between the two loses it:
//! readers ignore a part that is not in the manifest, and the next process moves it aside. Before files are
//! renamed, the manifest also has their digests under the new names, so that a kill loses none of them.
//!
//! All files are found by the descriptor of the folder, and no component of a path inside it may be a link
//! ([`Dir`]): somebody who sends a folder of a sweep, or may write in one, leads nobody elsewhere.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use giveway_files::Dir;
use giveway_record::dataset::{self, Axis, Known, Measured, Part, Reason, Row};
use giveway_record::{Damage, Digest, FolderError, Lock, open_sealed, refuse_links, replace_in, seal};
use giveway_trials::Frontend;
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
    /// The sources of the disciplines that no specification describes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
    /// The seeds, or their maximum number.
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
            outside: plan.outside().iter().map(|outside| outside.source.clone()).collect(),
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
    /// If it cannot be read, a bit of it has changed, or it does not belong to a sweep of this format.
    pub fn read(dir: &Path) -> Result<Option<Manifest>, SweepError> {
        match opened(dir)? {
            Some(dir) => Manifest::read_in(&dir),
            None => Ok(None),
        }
    }

    /// Reads the manifest of a folder that is open, as [`read`](Manifest::read).
    fn read_in(dir: &Dir) -> Result<Option<Manifest>, SweepError> {
        let place = dir.path().join(MANIFEST);
        let bytes = match dir.read(MANIFEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SweepError::Unknown(Damage::new(&place, error))),
        };
        match serde_json::from_slice::<Stamp>(&bytes) {
            Ok(Stamp { giveway_sweep: FORMAT, .. }) => {}
            Ok(Stamp { giveway_sweep, created_by }) => {
                let path = dir.path().to_owned();
                return Err(SweepError::Format { path, found: giveway_sweep, reads: FORMAT, created_by });
            }
            Err(_) if names_a_sweep(&bytes) => {}
            Err(_) => return Err(not_a_sweep(dir.path())),
        }
        match open_sealed(&bytes, &place) {
            Ok((manifest, _)) => Ok(Some(manifest)),
            Err(damage) => Err(SweepError::Unknown(damage)),
        }
    }

    /// Writes the manifest into its folder.
    fn write(&self, dir: &Dir) -> Result<(), SweepError> {
        let (text, _) = seal(self);
        replace_in(dir, MANIFEST, text.as_bytes())?;
        Ok(())
    }

    /// True if a folder belongs to a sweep, even if its manifest is damaged.
    pub fn is_in(dir: &Path) -> bool {
        let manifest = Dir::open(dir).and_then(|dir| dir.read(MANIFEST));
        manifest.is_ok_and(|bytes| names_a_sweep(&bytes))
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
        let opened = Dir::open(dir).map_err(|error| Damage::new(dir, error)).and_then(|dir| {
            // A process was killed while it renamed files.
            open_parts(&self.files, &dir, of).or_else(|damage| match self.next.is_empty() {
                true => Err(damage),
                false => open_parts(&self.next, &dir, of),
            })
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
        let text = Dir::open(dir).and_then(|dir| dir.read(SCENARIO));
        let read = text.map_err(|error| Damage::new(&place, error)).and_then(|text| {
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
        (&self.axes, &self.design, &self.disciplines, &self.outside, &self.seeds, &self.until)
            == (&other.axes, &other.design, &other.disciplines, &other.outside, &other.seeds, &other.until)
    }
}

/// The folder of a sweep, open for writing by this process only.
#[derive(Debug)]
pub struct SweepFolder {
    lock: Lock,
    manifest: Manifest,
    columns: Vec<Axis>,
    /// The number of the next part.
    next: u64,
}

impl SweepFolder {
    /// Opens the folder of a sweep, or creates it, and locks it. Trials of another version are removed, and
    /// trials of a changed request are kept for [`earlier`](SweepFolder::earlier).
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
        let found = SweepFolder::inspect_in(lock.dir(), &wanted)?;
        let columns = plan.columns().to_vec();
        let mut folder = SweepFolder { lock, manifest: wanted, columns, next: 0 };
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
                folder.remove(TRIALS)?;
                folder.remove(EARLIER)?;
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
        folder.remove(FAILED)?;
        folder.make(TRIALS)?;
        replace_in(folder.dir(), SCENARIO, text.as_bytes())?;
        folder.next = folder.free_number(TRIALS)?;
        Ok(folder)
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
        let lock = Lock::take(dir)?;
        let columns = manifest.axes();
        manifest.files.insert(SCENARIO.to_owned(), Digest::of_bytes(scenario));
        let folder = SweepFolder { lock, manifest, columns, next: 0 };
        folder.end_exchange()?;
        folder.make(TRIALS)?;
        folder.write_manifest()?;
        replace_in(folder.dir(), SCENARIO, scenario)?;
        Ok(folder)
    }

    /// A new folder at `dir` with other trials of the same request.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn another(&self, dir: &Path) -> Result<SweepFolder, SweepError> {
        let folder = SweepFolder {
            lock: Lock::take(dir)?,
            manifest: Manifest { files: Files::new(), next: Files::new(), ..self.manifest.clone() },
            columns: self.columns.clone(),
            next: 0,
        };
        folder.make(TRIALS)?;
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
        self.remove(FAILED)?;
        for part in failed {
            self.make(FAILED)?;
            let name = part_name(FAILED, self.next);
            let digest = replace_in(self.dir(), &name, &part.bytes()?)?;
            self.manifest.files.insert(name, digest);
            self.next += 1;
        }
        self.exchange(trials, complete)
    }

    /// Checks if a folder can be used, and returns its manifest. Changes nothing.
    fn inspect(dir: &Path, wanted: &Manifest) -> Result<Option<Manifest>, SweepError> {
        match opened(dir)? {
            Some(dir) => SweepFolder::inspect_in(&dir, wanted),
            None => Ok(None),
        }
    }

    fn inspect_in(open: &Dir, wanted: &Manifest) -> Result<Option<Manifest>, SweepError> {
        let dir = open.path();
        let refused = |message: String| Err(SweepError::Usage(message));
        refuse_links(open, &[MANIFEST, TRIALS, FAILED, EARLIER])?;
        let Some(found) = Manifest::read_in(open)? else {
            let entries = open.entries().map_err(|source| write_error(dir, source))?;
            let holds: Vec<String> = entries
                .into_iter()
                .map(|(name, _)| name.to_string_lossy().into_owned())
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
        if !self.exists(TRIALS) && self.exists(SORTED) {
            self.rename(SORTED, TRIALS)?;
        }
        self.remove(SORTED)?;
        self.remove(UNSORTED)
    }

    /// Takes over the files of `found`, the manifest of this folder until now, that have not changed. Others
    /// are moved aside, and their trials run again.
    fn take_over(&mut self, found: &Manifest, frontend: &dyn Frontend) -> Result<(), SweepError> {
        let Manifest { files, next, .. } = found;
        for of in [TRIALS, FAILED, EARLIER] {
            for name in self.parts_in(of)? {
                let noted: Vec<&Digest> = files.get(&name).into_iter().chain(next.get(&name)).collect();
                match noted.iter().find(|digest| digest.check_in(self.dir(), &name).is_ok()) {
                    Some(digest) => {
                        self.manifest.files.insert(name, (*digest).clone());
                    }
                    None => {
                        let listed =
                            noted.first().and_then(|digest| digest.check_in(self.dir(), &name).err());
                        let damage = listed.unwrap_or_else(|| {
                            Damage::new(&self.path().join(&name), "the manifest does not have it")
                        });
                        self.move_aside(&name, &damage, frontend)?;
                    }
                }
            }
        }
        // Files that were being renamed have only one of their two names.
        for name in files.keys().filter(|name| next.is_empty() && is_of(name, TRIALS)) {
            if !self.exists(name) {
                let path = self.path().join(name);
                frontend.message(&format!("{} is missing: its trials run again", path.display()));
            }
        }
        Ok(())
    }

    /// Moves the trials to `earlier`, next to those that are there already. Until all of them are there, the
    /// manifest describes their request, `found`: a kill must not leave them to this one.
    fn set_aside(&mut self, found: &Manifest) -> Result<(), SweepError> {
        self.make(EARLIER)?;
        let free = self.free_number(EARLIER)?;
        let (trials, mut next): (Files, Files) =
            std::mem::take(&mut self.manifest.files).into_iter().partition(|(name, _)| is_of(name, TRIALS));
        let moves: Vec<(String, String)> = trials
            .keys()
            .zip(free..)
            .map(|(name, number)| (name.clone(), part_name(EARLIER, number)))
            .collect();
        next.extend(moves.iter().zip(trials.values()).map(|((_, to), digest)| (to.clone(), digest.clone())));
        let moving = Manifest { files: trials, next: next.clone(), ..found.clone() };
        moving.write(self.dir())?;
        for (from, to) in moves {
            self.rename(&from, &to)?;
        }
        self.manifest.files = next;
        Ok(())
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.dir().path()
    }

    fn dir(&self) -> &Dir {
        self.lock.dir()
    }

    /// The parts of a changed request.
    ///
    /// # Errors
    /// If one of them was damaged since the folder was opened.
    pub fn earlier(&self) -> Result<Vec<Part>, SweepError> {
        Ok(open_parts(&self.manifest.files, self.dir(), EARLIER)?)
    }

    /// The parts so far.
    ///
    /// # Errors
    /// If one of them was damaged since the folder was opened.
    pub fn parts(&self) -> Result<Vec<Part>, SweepError> {
        Ok(open_parts(&self.manifest.files, self.dir(), TRIALS)?)
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
                    self.move_aside(part.name(), &damage, frontend)?;
                    self.manifest.files.remove(part.name());
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
        let digest = dataset::write(self.dir(), &name, &self.columns, rows)?;
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
        self.make(FAILED)?;
        let name = part_name(FAILED, self.next);
        let digest = dataset::write_failed(self.dir(), &name, &self.columns, rows)?;
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
        self.remove(SORTED)?;
        self.make(SORTED)?;
        let (rows, files) = self.sort_into(all, SORTED).inspect_err(|_| {
            // The disk may be full: make room. The first error is reported.
            let _ = self.remove(SORTED);
        })?;
        let stay = |(name, _): &(&String, &Digest)| !is_of(name, TRIALS) && !is_of(name, EARLIER);
        let others = self.manifest.files.iter().filter(stay);
        self.manifest.next =
            others.map(|(name, digest)| (name.clone(), digest.clone())).chain(files).collect();
        self.write_manifest()?;
        self.rename(TRIALS, UNSORTED)?;
        self.rename(SORTED, TRIALS)?;
        self.manifest.files = std::mem::take(&mut self.manifest.next);
        self.manifest.complete = complete;
        self.write_manifest()?;
        self.remove(UNSORTED)?;
        self.remove(EARLIER)?;
        Ok(rows)
    }

    /// Writes the rows of `parts`, sorted, into files in the folder `to`. Returns their number, and the files
    /// by their later names. It needs memory for the rows of one file, and reads all parts once for each
    /// file.
    fn sort_into(&self, parts: &[Part], to: &str) -> Result<(u64, Files), SweepError> {
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
            let digest = dataset::write(self.dir(), &part_name(to, file), &self.columns, &rows)?;
            files.insert(part_name(TRIALS, file), digest);
            written += rows.len() as u64;
            from = end;
            file += 1;
        }
        Ok((written, files))
    }

    fn write_manifest(&self) -> Result<(), SweepError> {
        self.manifest.write(self.dir())
    }

    fn exists(&self, name: &str) -> bool {
        matches!(self.dir().kind(name), Ok(Some(_)))
    }

    /// Creates a folder of parts, if it does not exist.
    fn make(&self, name: &str) -> Result<(), SweepError> {
        const RIGHTS: u32 = 0o777;
        self.at(name, self.dir().make(name, RIGHTS).map(drop))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), SweepError> {
        self.at(to, self.dir().rename(from, to))
    }

    /// Removes a folder of parts, if it exists.
    fn remove(&self, name: &str) -> Result<(), SweepError> {
        self.at(name, self.dir().remove_all(name))
    }

    /// The result of a change at a place in the folder.
    fn at(&self, name: &str, done: io::Result<()>) -> Result<(), SweepError> {
        done.map_err(|source| write_error(&self.path().join(name), source))
    }

    /// The names of the parts in the folder `of`, in order.
    fn parts_in(&self, of: &str) -> Result<Vec<String>, SweepError> {
        if !self.exists(of) {
            return Ok(Vec::new());
        }
        let entries = self.dir().enter(of).and_then(|inner| inner.entries());
        let entries = entries.map_err(|source| write_error(&self.path().join(of), source))?;
        let names = entries.into_iter().map(|(name, _)| name.to_string_lossy().into_owned());
        let parts = names.filter(|name| name.ends_with(".parquet") && !name.starts_with('.'));
        Ok(parts.map(|name| format!("{of}/{name}")).collect())
    }

    /// The lowest number above the numbers of all parts in the folder `of`.
    fn free_number(&self, of: &str) -> Result<u64, SweepError> {
        let number = |name: &String| -> Option<u64> {
            let (_, file) = name.rsplit_once('/')?;
            file.strip_prefix("part-")?.strip_suffix(".parquet")?.parse().ok()
        };
        Ok(self.parts_in(of)?.iter().filter_map(number).max().map_or(0, |last| last + 1))
    }

    /// Renames a damaged part, so that its trials run again.
    fn move_aside(&self, name: &str, damage: &Damage, frontend: &dyn Frontend) -> Result<(), SweepError> {
        let broken = format!("{name}.broken");
        let place = self.path().join(&broken);
        frontend.message(&format!("{damage}: it is now {}, and its trials run again", place.display()));
        self.rename(name, &broken)
    }
}

/// Opens a folder; `None` if there is none.
fn opened(dir: &Path) -> Result<Option<Dir>, SweepError> {
    match Dir::open(dir) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(not_a_sweep(dir)),
        Err(error) => Err(SweepError::Unknown(Damage::new(dir, error))),
    }
}

fn not_a_sweep(dir: &Path) -> SweepError {
    SweepError::Usage(format!("{} is not the folder of a sweep: name another folder", dir.display()))
}

/// True for the manifest of a sweep, even if it is damaged.
fn names_a_sweep(manifest: &[u8]) -> bool {
    String::from_utf8_lossy(manifest).contains("\"giveway_sweep\"")
}

fn write_error(path: &Path, source: io::Error) -> SweepError {
    FolderError::Write { path: path.to_owned(), source }.into()
}

/// The parts of `files` in the folder `of` of `dir`, in the order of their names. All of their bytes are
/// checked.
fn open_parts(files: &Files, dir: &Dir, of: &str) -> Result<Vec<Part>, Damage> {
    let listed = files.iter().filter(|(name, _)| is_of(name, of));
    listed.map(|(name, digest)| Part::open(dir, name, digest)).collect()
}

/// True if a file of a sweep is in this folder of it.
fn is_of(name: &str, folder: &str) -> bool {
    name.split_once('/').is_some_and(|(first, _)| first == folder)
}

/// The name of a part in the folder of its sweep.
fn part_name(folder: &str, number: u64) -> String {
    format!("{folder}/part-{number:08}.parquet")
}
