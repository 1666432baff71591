//! The folder of a run: what was asked, what came out, and everything in between, so that a killed run resumes.
//!
//! ```text
//! manifest.json             version, format, scenario hash, what is measured, seeds, disciplines, machine, fingerprints,
//!                           findings, digests
//! scenario.toml             what was asked
//! report.html               the report, when somebody asked for it
//! flows.parquet             a row per flow: who, when, how many bytes, how long it took
//! queue.parquet             a row per sample of a port
//! gauges.parquet            a row per sample of a port and gauge of its discipline
//! sojourn.parquet           a row per measured port and point of its distribution of sojourn times
//! shares.parquet            a row per measured port, stretch of time and traffic source: bytes sent
//! links.parquet             a row per port: what came, left, was dropped and why
//! senders.parquet           a row per sample of a sender, where senders are sampled
//! episodes.parquet          a row per measured port and flow: how often it became backlogged, where that is counted
//! bursts.parquet            a row per measured port and link beyond it: how bursty what goes on is, where that is measured
//! summary.parquet           a row per run: parameters of its discipline, and its metrics
//! metrics.parquet           the same in the long form: a row per run and metric
//! trials/efd-limit-300p-HASH/seed-1/  the same tables of one run, and summary.json
//! .giveway.lock             who writes the folder just now, if anybody does
//! ```
//!
//! The tables at the top hold all runs, with the columns `qdisc` and `seed` in front. `columns/tables.rs` lists every column.
//!
//! A trial, one discipline under one seed, is written beside its place, handed to the disk, and then renamed: it is there
//! whole or not at all. Files at the top are replaced in the same way. The manifest is the first file of a folder, so that
//! a folder with anything else in it and no manifest is known to be somebody else's.
//!
//! One process writes a folder at a time, and holds its lock from [`RunFolder::open`] on until the [`RunFolder`] is dropped
//! (`folder/lock.rs`). Threads of that process may write different trials at the same time.
//!
//! Nothing in a folder is believed without a check (`folder/seal.rs`). The summary of a trial has the length and the SHA-256 of
//! each table; the manifest has those of the files at the top and the SHA-256 of each summary; summaries and the manifest
//! have that of their own content. Parquet's own checksums of pages would not do: they leave out the footer, and the
//! library does not write them.
//!
//! ```text
//! folder/disk.rs    files and folders that are there whole or not at all
//! folder/lock.rs    one process at a time
//! folder/place.rs   what is at a place already, and what may become of it
//! folder/seal.rs    digests
//! ```

mod disk;
mod lock;
mod place;
mod seal;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use giveway_measure::{Discipline, Fingerprint, Layout, Record, Summary, Trial};
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::columns::{self, tables};

use disk::{beside, exchange, make_dir, remove_dir, remove_file, sync_dir, write_error, write_file};
use place::Found;

pub use disk::NewFile;
pub(crate) use disk::replace;
pub use lock::{LOCK, Lock};
pub use place::{Existing, RECORDED_BY};
pub use seal::{Damage, Digest};
pub(crate) use seal::{Hashing, open as open_sealed};

/// What is known about a comparison before it starts. It has no clock of its own: whoever has one fills it in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// Which Giveway this is, with a digest of the sources that results depend on if that is known. Cells of another
    /// version are run again.
    pub version: String,
    /// The disciplines, in order.
    pub disciplines: Vec<Discipline>,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// The machine, in words.
    pub machine: String,
    /// The command that made it, with all its flags.
    pub created_by: String,
    /// When it began to be made: RFC 3339, UTC.
    pub created: Option<String>,
    /// What the scenario is about, in a line.
    pub title: String,
    /// The same at length.
    pub description: String,
    /// What is measured.
    pub layout: Layout,
}

/// The number of the folder's format. It grows when a table or a column is added or changes its meaning, so that what
/// reads a folder can say so.
///
/// 2: the tables `delays` and `shares`; what is measured; in `flows` the columns `kind` and `measured`; in `links` the
/// drops within the measurement interval.
///
/// 3: in `flows` the columns `longest_pause_s` and `paused_s`; where they were asked for, the tables `senders` and
/// `episodes`.
///
/// 4: where it was asked for, the table `bursts`.
///
/// 5: digests of all tables, in the summaries and in the manifest; both have one of their own content.
///
/// 6: every column has its unit and its description in the file; columns and metrics have other names; the tables `gauges`,
/// which was in `queue`, `sojourn`, which was `delays`, and `metrics`; in `summary` the columns of parameters; in the manifest
/// how the scenario spells each discipline, and the command with its flags. Measures count otherwise: see the table of
/// metrics.
pub(crate) const FORMAT: u64 = 7;

/// Why a folder could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file or folder could not be made, written or renamed: no permission, no space, no such place.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A table could not be written or read back.
    #[error("cannot write the table {path}: {source}", path = path.display())]
    Table {
        /// Which file.
        path: PathBuf,
        /// What went wrong.
        source: ParquetError,
    },
    /// Another process writes the folder.
    #[error(
        "{path} is being written by {holder}. Nothing was changed: wait until that has ended, or name another folder",
        path = path.display()
    )]
    Busy {
        /// The folder.
        path: PathBuf,
        /// Who that is, and since when.
        holder: String,
    },
    /// The folder is not empty and no run folder.
    #[error(
        "{path} is not empty and is no run folder: it holds {held}. Nothing was changed. Name another folder, or add \
         --force, which {goes}",
        path = path.display(), held = some_of(holds), goes = going(goes)
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// The names in it.
        holds: Vec<String>,
        /// What would be removed to make room.
        goes: Vec<String>,
    },
    /// The folder holds a run of another scenario.
    #[error(
        "{path} holds another experiment: \"{title}\" (scenario {scenario}), made on {when} by `{created_by}`. Nothing was \
         changed. Name another folder, or add --force to remove what is there",
        path = path.display()
    )]
    Another {
        /// The folder.
        path: PathBuf,
        /// What it is about.
        title: String,
        /// The scenario's name.
        scenario: String,
        /// The command that made it.
        created_by: String,
        /// When.
        when: String,
    },
    /// The folder was written in another format.
    #[error(
        "{path} was written by Giveway {wrote}, in format {found}; this one writes format {FORMAT}. Nothing was changed. \
         Name another folder, or add --force to remove what is there",
        path = path.display()
    )]
    Format {
        /// The folder.
        path: PathBuf,
        /// Which Giveway wrote it.
        wrote: String,
        /// The number of its format.
        found: u64,
    },
    /// The manifest is damaged, so that nobody can say what the folder holds.
    #[error(
        "{damage}, so it is not known what its folder holds. Nothing was changed. Name another folder, or add --force to \
         remove what is there"
    )]
    Unknown {
        /// What is wrong with it.
        damage: Damage,
    },
    /// A finished run was damaged while the folder was in use.
    #[error("{0}. The same command runs it again")]
    Damaged(Damage),
}

impl FolderError {
    /// Whether the place was refused for what is there: another place, or leave to replace that, would do.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            FolderError::Foreign { .. }
                | FolderError::Another { .. }
                | FolderError::Format { .. }
                | FolderError::Unknown { .. }
        )
    }
}

/// The first names of several.
fn some_of(names: &[String]) -> String {
    const MOST: usize = 3;
    match names.len().checked_sub(MOST) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..MOST].join(", ")),
    }
}

fn going(names: &[String]) -> String {
    match names {
        [] => "writes the run beside that and removes nothing".to_owned(),
        names => format!("removes {} and nothing else", names.join(", ")),
    }
}

/// The folder of a run, for the one process that may write it.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    manifest: Manifest,
    commit: Option<String>,
    scenario_text: String,
    scenario_hash: Fingerprint,
    findings: Option<Vec<String>>,
    /// Files beside the tables that belong to the folder, by name.
    kept: BTreeMap<String, Digest>,
    repaired: Option<Damage>,
    _lock: Arc<Lock>,
}

/// What there is of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    /// It was finished earlier, for this scenario and by this version, and not a bit of it has changed.
    Finished(Summary),
    /// Nothing.
    Missing,
    /// Another version of Giveway ran it: this one.
    Outdated(String),
    /// Something is wrong with one of its files.
    Damaged(Damage),
}

/// What `summary.json` of a trial holds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Finished {
    pub giveway: String,
    /// [`FORMAT`]; folders of the first format did not say.
    #[serde(default)]
    pub format: u64,
    pub scenario_hash: Fingerprint,
    #[serde(flatten)]
    pub trial: Trial,
    #[serde(flatten)]
    pub summary: Summary,
    /// The tables beside it, by name.
    #[serde(default)]
    pub tables: BTreeMap<String, Digest>,
}

/// The tables of a trial, each with what makes it. They are merged at the top under the same names.
const TABLES: [(&str, MakeTable); 9] = [
    (tables::FLOWS.file, columns::flows),
    (tables::QUEUE.file, columns::queue),
    (tables::GAUGES.file, columns::gauges),
    (tables::SOJOURN.file, columns::sojourn),
    (tables::SHARES.file, columns::shares),
    (tables::LINKS.file, columns::links),
    (SENDERS, columns::senders),
    (EPISODES, columns::episodes),
    (BURSTS, columns::bursts),
];
/// These are only there when they were asked for.
const SENDERS: &str = tables::SENDERS.file;
const EPISODES: &str = tables::EPISODES.file;
const BURSTS: &str = tables::BURSTS.file;
type MakeTable = fn(&Record) -> Result<RecordBatch, ArrowError>;

/// The folder of the single runs.
const TRIALS: &str = "trials";
pub(crate) const SUMMARY: &str = "summary.json";
/// The tables at the top that are made of the summaries of all runs.
const SUMMARY_TABLES: [&str; 2] = [tables::SUMMARY.file, tables::METRICS.file];
/// Where the report of a folder is.
pub const REPORT: &str = "report.html";
pub(crate) const SCENARIO: &str = "scenario.toml";
pub(crate) const MANIFEST: &str = "manifest.json";

impl RunFolder {
    /// [`open`](RunFolder::open), for who leaves alone what is there already.
    ///
    /// # Errors
    /// As [`open`](RunFolder::open).
    pub fn create(dir: &Path, scenario_text: &str, manifest: Manifest) -> Result<RunFolder, FolderError> {
        RunFolder::open(dir, scenario_text, manifest, Existing::Keep)
    }

    /// Makes the folder, or takes up one that holds a run of the same scenario, and locks it. `scenario_text` must hold
    /// everything that the results depend on, command-line changes included: that decides what the same scenario is.
    ///
    /// # Errors
    /// When another process writes it, when something else is at the place and `existing` does not let it go, and when it
    /// cannot be made or written.
    pub fn open(
        dir: &Path,
        scenario_text: &str,
        manifest: Manifest,
        existing: Existing<'_>,
    ) -> Result<RunFolder, FolderError> {
        // Looked at twice: whoever is refused has changed nothing, and what is found under the lock is what counts.
        if let Some(holder) = writer_of(dir) {
            return Err(FolderError::Busy { path: dir.to_owned(), holder });
        }
        RunFolder::inspect(dir, Some((scenario_text, &manifest.created_by)), existing)?;
        let lock = Arc::new(Lock::take(dir)?);
        let mut folder = RunFolder {
            path: dir.to_owned(),
            manifest,
            commit: None,
            scenario_text: scenario_text.to_owned(),
            scenario_hash: Fingerprint::of(scenario_text),
            findings: None,
            kept: BTreeMap::new(),
            repaired: None,
            _lock: lock,
        };
        match place::look(dir, Some((scenario_text, &folder.manifest.created_by)))? {
            Found::Free => {}
            Found::Same { version, scenario_hash } => {
                if scenario_hash != folder.scenario_hash {
                    place::clear(dir, &|_| ())?;
                } else if version != folder.manifest.version {
                    folder.remove_answers()?;
                }
            }
            Found::Broken(damage) => folder.repaired = Some(damage),
            Found::Taken(refusal) => match existing {
                Existing::Keep => return Err(refusal),
                Existing::Replace(tell) => place::clear(dir, tell)?,
            },
        }
        folder.clear_leftovers()?;
        // The manifest before anything else: a folder without one is somebody else's.
        folder.write_manifest(&[], &BTreeMap::new(), false)?;
        make_dir(&folder.trials())?;
        replace(&folder.path.join(SCENARIO), scenario_text.as_bytes())?;
        Ok(folder)
    }

    /// Whether [`open`](RunFolder::open) would take this place, as far as that can be said without locking it. Changes
    /// nothing. `asked` is the scenario's text and the command, where they are known.
    ///
    /// # Errors
    /// Why it would not.
    pub fn inspect(
        dir: &Path,
        asked: Option<(&str, &str)>,
        existing: Existing<'_>,
    ) -> Result<(), FolderError> {
        let found = match place::look(dir, asked)? {
            // Another process may have been writing meanwhile, and half of a folder looks like somebody else's.
            Found::Taken(_) => match writer_of(dir) {
                Some(holder) => return Err(FolderError::Busy { path: dir.to_owned(), holder }),
                None => place::look(dir, asked)?,
            },
            found => found,
        };
        match (found, existing) {
            (Found::Taken(refusal), Existing::Keep) => Err(refusal),
            _ => Ok(()),
        }
    }

    /// What was found, in sentences, for the manifest and the report. Where nobody says, the report finds for itself.
    pub fn with_findings(self, findings: Vec<String>) -> RunFolder {
        RunFolder { findings: Some(findings), ..self }
    }

    /// The commit of the sources, for people: which trials are run again depends on the version alone.
    pub fn with_commit(self, commit: Option<String>) -> RunFolder {
        RunFolder { commit, ..self }
    }

    /// Copies a file into the folder, as something that belongs to it.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn keep_file(&mut self, name: &str, from: &Path) -> Result<(), FolderError> {
        let content = fs::read(from).map_err(|source| write_error(&self.path.join(name), source))?;
        let digest = replace(&self.path.join(name), &content)?;
        self.kept.insert(name.to_owned(), digest);
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which Giveway it is for.
    pub fn version(&self) -> &str {
        &self.manifest.version
    }

    /// What was wrong with the manifest that was there, where it has been written anew.
    pub fn repaired(&self) -> Option<&Damage> {
        self.repaired.as_ref()
    }

    /// The result of a trial, if it was finished earlier, for this scenario and by this version, and is whole.
    pub fn finished(&self, trial: &Trial) -> Option<Summary> {
        match self.look(trial) {
            Kept::Finished(summary) => Some(summary),
            _ => None,
        }
    }

    /// What there is of a trial. Every byte of it is checked.
    pub fn look(&self, trial: &Trial) -> Kept {
        let dir = self.cell_path(trial);
        if !dir.exists() {
            return Kept::Missing;
        }
        match self.sealed(trial, &dir).and_then(|(found, _)| {
            if found.giveway != self.manifest.version {
                return Ok(Kept::Outdated(found.giveway));
            }
            check_tables(&dir, &found)?;
            Ok(Kept::Finished(found.summary))
        }) {
            Ok(kept) => kept,
            Err(damage) => Kept::Damaged(damage),
        }
    }

    /// What the summary of a trial says, and its digest.
    fn sealed(&self, trial: &Trial, dir: &Path) -> Result<(Finished, String), Damage> {
        let place = dir.join(SUMMARY);
        let (found, digest) = read_summary(&place)?;
        let wrong = |why: String| Err(Damage::new(&place, why));
        if found.format != FORMAT {
            return wrong(format!("it is in format {}, and {FORMAT} is that of its folder", found.format));
        }
        if found.trial != *trial {
            let Trial { qdisc, seed } = &found.trial;
            return wrong(format!(
                "it is of {qdisc} with seed {seed}, and stands in the place of another run"
            ));
        }
        if found.scenario_hash != self.scenario_hash {
            return wrong("it is of another scenario".to_owned());
        }
        if let Some((name, _)) = self.tables().find(|(name, _)| !found.tables.contains_key(*name)) {
            return wrong(format!("it lists no {name}"));
        }
        Ok((found, digest))
    }

    /// Writes a trial, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written; nothing of it is left then.
    pub fn write(&self, trial: &Trial, record: &Record) -> Result<(), FolderError> {
        let place = self.cell_path(trial);
        let beside = beside(&place, "tmp");
        let written = self.write_cell(trial, record, &beside).and_then(|()| exchange(&beside, &place));
        if written.is_err() {
            // The first error is the one to tell; what cannot be removed is cleared by the next attempt.
            let _ = fs::remove_dir_all(&beside);
        }
        written
    }

    /// Merges the trials of these runs, in this order, into the tables at the top and completes the manifest. Also right
    /// for a run that was cut short: then the manifest says so. Returns the fingerprint of all.
    ///
    /// # Errors
    /// When a table cannot be written, or a trial is not there. Until the manifest is complete it says that the run is not.
    pub fn finish(&self, runs: &[(Trial, Summary)]) -> Result<Fingerprint, FolderError> {
        let mut written = Vec::new();
        let merged = self.merge(runs, &mut written);
        let put = merged.and_then(|()| written.iter().try_for_each(|(name, _)| self.put(name)));
        if put.is_err() {
            // The first error is the one to tell.
            for (name, _) in &written {
                let _ = fs::remove_file(beside(&self.path.join(name), "tmp"));
            }
        }
        put?;
        sync_dir(&self.path).map_err(|source| write_error(&self.path, source))?;
        let planned = self.manifest.disciplines.iter().flat_map(|discipline| {
            self.manifest.seeds.iter().map(|seed| Trial { qdisc: discipline.qdisc.clone(), seed: *seed })
        });
        let complete = planned.into_iter().all(|trial| runs.iter().any(|(run, _)| *run == trial));
        let tables = written.into_iter().filter_map(|(name, digest)| Some((name.to_owned(), digest?)));
        self.write_manifest(runs, &tables.collect(), complete)
    }

    /// Writes the merged tables, each beside its place. `written` gets the name of each that was begun, and its digest once
    /// it is whole.
    fn merge(
        &self,
        runs: &[(Trial, Summary)],
        written: &mut Vec<(&'static str, Option<Digest>)>,
    ) -> Result<(), FolderError> {
        if runs.is_empty() {
            return Ok(());
        }
        let names = self.tables().map(|(name, _)| name).chain(SUMMARY_TABLES);
        for name in names {
            let place = self.path.join(name);
            let beside = beside(&place, "tmp");
            written.push((name, None));
            let digest = if SUMMARY_TABLES.contains(&name) {
                let rows = match name == tables::SUMMARY.file {
                    true => columns::summary(&self.manifest.disciplines, runs),
                    false => columns::metrics(runs),
                };
                rows.map_err(ParquetError::from).and_then(|rows| columns::write(&beside, &rows))
            } else {
                let parts = runs.iter().map(|(trial, _)| (trial, self.cell_path(trial).join(name)));
                columns::merge(&beside, parts)
            };
            let digest = digest.map_err(|source| FolderError::Table { path: place, source })?;
            *written.last_mut().expect("it was pushed above") = (name, Some(digest));
        }
        Ok(())
    }

    /// Puts a merged table in its place.
    fn put(&self, name: &str) -> Result<(), FolderError> {
        let place = self.path.join(name);
        fs::rename(beside(&place, "tmp"), &place).map_err(|source| write_error(&place, source))
    }

    /// `trials/efd-limit-300p-HASH/seed-1`: readable, and different for every spelling.
    fn cell_path(&self, trial: &Trial) -> PathBuf {
        let qdisc = format!("{}-{}", slug(&trial.qdisc), Fingerprint::of(&trial.qdisc).short());
        self.trials().join(qdisc).join(format!("seed-{}", trial.seed))
    }

    fn trials(&self) -> PathBuf {
        self.path.join(TRIALS)
    }

    /// Those that its runs have.
    fn tables(&self) -> impl Iterator<Item = (&'static str, MakeTable)> + use<> {
        let Layout { senders, episodes, bursts, .. } = self.manifest.layout;
        TABLES.into_iter().filter(move |(name, _)| match *name {
            SENDERS => senders,
            EPISODES => episodes,
            BURSTS => bursts,
            _ => true,
        })
    }

    fn write_cell(&self, trial: &Trial, record: &Record, dir: &Path) -> Result<(), FolderError> {
        // What a killed run left here.
        remove_dir(dir)?;
        make_dir(dir)?;
        let mut tables = BTreeMap::new();
        for (name, table) in self.tables() {
            let path = dir.join(name);
            let written =
                table(record).map_err(ParquetError::from).and_then(|rows| columns::write(&path, &rows));
            let digest = written.map_err(|source| FolderError::Table { path, source })?;
            tables.insert(name.to_owned(), digest);
        }
        let finished = Finished {
            giveway: self.manifest.version.clone(),
            format: FORMAT,
            scenario_hash: self.scenario_hash,
            trial: trial.clone(),
            summary: record.summary.clone(),
            tables,
        };
        let (text, _) = seal::seal(&finished);
        write_file(&dir.join(SUMMARY), text.as_bytes())?;
        sync_dir(dir).map_err(|source| write_error(dir, source))
    }

    /// Writes the manifest, with the digests of the `tables` at the top.
    fn write_manifest(
        &self,
        runs: &[(Trial, Summary)],
        tables: &BTreeMap<String, Digest>,
        complete: bool,
    ) -> Result<Fingerprint, FolderError> {
        let total = Fingerprint::combined(runs.iter().map(|(_, run)| run.fingerprint));
        let mut trials = Vec::new();
        for (trial, run) in runs {
            let path = self.cell_path(trial);
            let (found, digest) = self.sealed(trial, &path).map_err(FolderError::Damaged)?;
            if found.summary != *run {
                let why = "it is not the result of this run";
                return Err(FolderError::Damaged(Damage::new(&path.join(SUMMARY), why)));
            }
            let inside = path.strip_prefix(&self.path).expect("trials are inside the folder");
            trials.push(json!({
                "qdisc": trial.qdisc,
                "seed": trial.seed,
                "folder": inside.to_string_lossy().replace('\\', "/"),
                "fingerprint": run.fingerprint,
                "events": run.events,
                "summary_sha256": digest,
            }));
        }
        let mut files = tables.clone();
        files.extend(self.kept.clone());
        files.insert(SCENARIO.to_owned(), Digest::of_bytes(self.scenario_text.as_bytes()));
        let layout = &self.manifest.layout;
        let manifest = json!({
            "giveway": self.manifest.version,
            "commit": self.commit,
            "format": FORMAT,
            "scenario": self.manifest.scenario,
            "title": self.manifest.title,
            "description": self.manifest.description,
            "scenario_hash": self.scenario_hash,
            "disciplines": self.manifest.disciplines,
            "seeds": self.manifest.seeds,
            "measured": {
                "from_s": layout.from.as_s(),
                "until_s": layout.until.as_s(),
                "ports": layout.measured.iter().map(|port| layout.port_name(*port)).collect::<Vec<_>>(),
                "sources": layout.source_names,
                "small_packet_bytes": layout.small_packet_bytes,
            },
            "machine": self.manifest.machine,
            "created_by": self.manifest.created_by,
            "created": self.manifest.created,
            "complete": complete,
            "findings": self.findings,
            "fingerprint": (!runs.is_empty()).then_some(total),
            "trials": trials,
            "files": files,
        });
        let (text, _) = seal::seal(&manifest);
        replace(&self.path.join(MANIFEST), text.as_bytes())?;
        Ok(total)
    }

    /// The merged tables and the report of another version would be read as the answer of this one.
    fn remove_answers(&self) -> Result<(), FolderError> {
        let names = TABLES.iter().map(|(name, _)| *name).chain(SUMMARY_TABLES).chain([REPORT]);
        names.map(|name| self.path.join(name)).try_for_each(|path| remove_file(&path))
    }

    /// What a killed run left beside its places. Nobody else writes here: the folder is locked.
    fn clear_leftovers(&self) -> Result<(), FolderError> {
        for name in
            TABLES.iter().map(|(name, _)| *name).chain(SUMMARY_TABLES).chain([REPORT, SCENARIO, MANIFEST])
        {
            remove_file(&beside(&self.path.join(name), "tmp"))?;
        }
        for discipline in place::folders(&self.trials()) {
            for run in place::folders(&discipline) {
                let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if name.starts_with(".seed-") && (name.ends_with(".tmp") || name.ends_with(".old")) {
                    remove_dir(&run)?;
                }
            }
        }
        Ok(())
    }
}

/// A summary and its digest, if not a bit of it has changed.
pub(crate) fn read_summary(place: &Path) -> Result<(Finished, String), Damage> {
    let bytes = fs::read(place).map_err(|error| Damage::unreadable(place, &error))?;
    let (text, digest) = seal::open(&bytes).map_err(|why| Damage::new(place, why))?;
    let found = serde_json::from_str(text).map_err(|error| Damage::new(place, error))?;
    Ok((found, digest.to_owned()))
}

/// Whether the tables beside a summary are those that it lists.
pub(crate) fn check_tables(dir: &Path, summary: &Finished) -> Result<(), Damage> {
    summary.tables.iter().try_for_each(|(name, digest)| digest.check(&dir.join(name)))
}

/// Who is writing a folder just now, if anybody is.
pub(crate) fn writer_of(dir: &Path) -> Option<String> {
    Lock::holder(dir)
}

/// A discipline's spelling as part of a file name: lower-case letters, digits, single hyphens, at most 40.
fn slug(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let mut slug = String::new();
    for c in plain {
        if slug.len() < 40 && (c != '-' || !(slug.is_empty() || slug.ends_with('-'))) {
            slug.push(c);
        }
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_readable_and_safe() {
        assert_eq!(slug("efd limit 300p threshold 20p"), "efd-limit-300p-threshold-20p");
        assert_eq!(
            slug("tbf rate 1mbit child (fq_codel limit 100p)"),
            "tbf-rate-1mbit-child-fq-codel-limit-100p"
        );
        assert_eq!(slug("../../etc"), "etc");
        assert_eq!(slug(&"x ".repeat(50)).len(), 39);
    }

    /// Whoever looks at a folder without its lock may see half of it, which is nobody's.
    #[test]
    fn a_folder_that_is_being_made_is_busy_and_not_foreign() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path()).unwrap();
        fs::write(dir.path().join(".scenario.toml.tmp"), "duration = ").unwrap();
        let looked =
            || RunFolder::inspect(dir.path(), Some(("", "giveway run")), Existing::Keep).unwrap_err();
        assert!(matches!(looked(), FolderError::Busy { .. }), "{}", looked());
        drop(lock);
        assert!(matches!(looked(), FolderError::Foreign { .. }), "{}", looked());
    }

    /// A device that is always full.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_told_with_the_table() {
        let path = Path::new("/dev/full");
        let rows = columns::summary(&[], &[]).unwrap();
        let source = columns::write(path, &rows).unwrap_err();
        let error = FolderError::Table { path: path.to_owned(), source }.to_string();
        assert!(error.contains("/dev/full") && error.contains("No space left"), "{error}");
    }
}
