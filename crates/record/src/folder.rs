//! The folder of a run: what was asked, what came out, and everything in between, so that a killed run resumes.
//!
//! ```text
//! scenario.toml             what was asked
//! manifest.json             version, format, scenario hash, what is measured, seeds, disciplines, machine, fingerprints,
//!                           findings
//! report.html               the report, when somebody asked for it
//! flows.parquet             a row per flow: who, when, how many bytes, how long it took
//! queue.parquet             a row per sample of a port, and one per gauge of its discipline
//! delays.parquet            a row per measured port and point of its distribution of waiting times
//! shares.parquet            a row per measured port, stretch of time and traffic source: bytes sent
//! links.parquet             a row per port: what came, left, was dropped and why
//! senders.parquet           a row per sample of a sender, where senders are sampled
//! episodes.parquet          a row per measured port and flow: how often it became backlogged, where that is counted
//! bursts.parquet            a row per measured port and link beyond it: how bursty what goes on is, where that is measured
//! summary.parquet           a row per run: its metrics
//! cells/efd-limit-300p-HASH/seed-1/  the same tables of one run, and summary.json
//! ```
//!
//! The tables at the top hold all runs, with the columns `qdisc` and `seed` in front.
//!
//! A cell, one discipline under one seed, is written beside its place, handed to the disk, and then renamed: it is there
//! whole or not at all. Files at the top are replaced in the same way. One process at a time writes a cell; different
//! cells may be written by different threads or processes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::columns;
use crate::fingerprint::Fingerprint;
use crate::layout::Layout;
use crate::metrics::Summary;
use crate::rows::Record;

/// One run of a comparison: a discipline under a seed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The discipline, as it is spelled with its parameters.
    pub qdisc: String,
    /// The seed.
    pub seed: u64,
}

/// What is known about a comparison before it starts. It has no clock of its own: whoever has one fills it in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// Which Giveway this is, with its commit if known. Cells of another version are run again.
    pub version: String,
    /// The disciplines, in order.
    pub disciplines: Vec<String>,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// The machine, in words.
    pub machine: String,
    /// The command that made it.
    pub created_by: String,
    /// When, as text.
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
/// drops within the measured part.
///
/// 3: in `flows` the columns `longest_pause_s` and `paused_s`; where they were asked for, the tables `senders` and
/// `episodes`.
///
/// 4: where it was asked for, the table `bursts`.
pub(crate) const FORMAT: u64 = 4;

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
}

/// The folder of a run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    manifest: Manifest,
    scenario_hash: Fingerprint,
    findings: Option<Vec<String>>,
}

/// What `summary.json` of a cell holds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Finished {
    giveway: String,
    /// [`FORMAT`]; folders of the first format did not say.
    #[serde(default)]
    format: u64,
    scenario_hash: Fingerprint,
    #[serde(flatten)]
    pub cell: Cell,
    #[serde(flatten)]
    pub summary: Summary,
}

/// The tables of a cell, each with what makes it. They are merged at the top under the same names.
const TABLES: [(&str, MakeTable); 8] = [
    ("flows.parquet", columns::flows),
    ("queue.parquet", columns::queue),
    ("delays.parquet", columns::delays),
    ("shares.parquet", columns::shares),
    ("links.parquet", columns::links),
    (SENDERS, columns::senders),
    (EPISODES, columns::episodes),
    (BURSTS, columns::bursts),
];
/// These are only there when they were asked for.
const SENDERS: &str = "senders.parquet";
const EPISODES: &str = "episodes.parquet";
const BURSTS: &str = "bursts.parquet";
type MakeTable = fn(&Record) -> Result<RecordBatch, ArrowError>;

pub(crate) const SUMMARY: &str = "summary.json";
const SUMMARY_TABLE: &str = "summary.parquet";
/// Where the report of a folder is.
pub const REPORT: &str = "report.html";
pub(crate) const SCENARIO: &str = "scenario.toml";
pub(crate) const MANIFEST: &str = "manifest.json";

impl RunFolder {
    /// Makes the folder, or takes up one that is there already. `scenario_text` must hold everything that the results
    /// depend on, command-line changes included: cells of another text are run again.
    ///
    /// # Errors
    /// When the folder cannot be made or written.
    pub fn create(dir: &Path, scenario_text: &str, manifest: Manifest) -> Result<RunFolder, FolderError> {
        let scenario_hash = Fingerprint::of(scenario_text);
        let folder = RunFolder { path: dir.to_owned(), manifest, scenario_hash, findings: None };
        make_dir(&folder.cells())?;
        if !folder.has_same_question() {
            folder.remove_answers()?;
        }
        replace(&folder.path.join(SCENARIO), scenario_text.as_bytes())?;
        folder.write_manifest(&[], false)?;
        Ok(folder)
    }

    /// What was found, in sentences, for the manifest and the report. Where nobody says, the report finds for itself.
    pub fn with_findings(self, findings: Vec<String>) -> RunFolder {
        RunFolder { findings: Some(findings), ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The result of a cell, if it was finished earlier, for this scenario and by this version.
    pub fn finished(&self, cell: &Cell) -> Option<Summary> {
        let dir = self.cell_path(cell);
        let text = fs::read_to_string(dir.join(SUMMARY)).ok()?;
        let found: Finished = serde_json::from_str(&text).ok()?;
        let same = found.giveway == self.manifest.version
            && found.format == FORMAT
            && found.scenario_hash == self.scenario_hash
            && found.cell == *cell
            && self.tables().all(|(name, _)| dir.join(name).is_file());
        same.then_some(found.summary)
    }

    /// Writes a cell, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written; nothing of it is left then.
    pub fn write(&self, cell: &Cell, record: &Record) -> Result<(), FolderError> {
        let place = self.cell_path(cell);
        let beside = beside(&place, "tmp");
        let written = self.write_cell(cell, record, &beside).and_then(|()| exchange(&beside, &place));
        if written.is_err() {
            // The first error is the one to tell; what cannot be removed is cleared by the next attempt.
            let _ = fs::remove_dir_all(&beside);
        }
        written
    }

    /// Merges the cells of these runs, in this order, into the tables at the top and completes the manifest. Also right
    /// for a run that was cut short: then the manifest says so. Returns the fingerprint of all.
    ///
    /// # Errors
    /// When a table cannot be written, or a cell is not there.
    pub fn finish(&self, runs: &[(Cell, Summary)]) -> Result<Fingerprint, FolderError> {
        if !runs.is_empty() {
            for (name, _) in self.tables() {
                let parts = runs.iter().map(|(cell, _)| (cell, self.cell_path(cell).join(name)));
                self.write_table(name, |path| columns::merge(path, parts))?;
            }
            self.write_table(SUMMARY_TABLE, |path| columns::write(path, &columns::summary(runs)?))?;
        }
        let planned = self.manifest.disciplines.iter().flat_map(|qdisc| {
            self.manifest.seeds.iter().map(|seed| Cell { qdisc: qdisc.clone(), seed: *seed })
        });
        let complete = planned.into_iter().all(|cell| runs.iter().any(|(run, _)| *run == cell));
        self.write_manifest(runs, complete)
    }

    /// `cells/efd-limit-300p-HASH/seed-1`: readable, and different for every spelling.
    fn cell_path(&self, cell: &Cell) -> PathBuf {
        let qdisc = format!("{}-{}", slug(&cell.qdisc), Fingerprint::of(&cell.qdisc).short());
        self.cells().join(qdisc).join(format!("seed-{}", cell.seed))
    }

    fn cells(&self) -> PathBuf {
        self.path.join("cells")
    }

    /// Those that its runs have.
    fn tables(&self) -> impl Iterator<Item = (&'static str, MakeTable)> {
        let Layout { senders, episodes, bursts, .. } = self.manifest.layout;
        TABLES.into_iter().filter(move |(name, _)| match *name {
            SENDERS => senders,
            EPISODES => episodes,
            BURSTS => bursts,
            _ => true,
        })
    }

    fn write_cell(&self, cell: &Cell, record: &Record, dir: &Path) -> Result<(), FolderError> {
        // What a killed run left here.
        remove_dir(dir)?;
        make_dir(dir)?;
        for (name, table) in self.tables() {
            let path = dir.join(name);
            let written =
                table(record).map_err(ParquetError::from).and_then(|rows| columns::write(&path, &rows));
            written.map_err(|source| table_error(path, source))?;
        }
        let finished = Finished {
            giveway: self.manifest.version.clone(),
            format: FORMAT,
            scenario_hash: self.scenario_hash,
            cell: cell.clone(),
            summary: record.summary.clone(),
        };
        let text = serde_json::to_string_pretty(&finished).expect("a summary is plain data");
        let path = dir.join(SUMMARY);
        write_file(&path, text.as_bytes()).map_err(|source| write_error(&path, source))?;
        sync_dir(dir)
    }

    fn write_table(
        &self,
        name: &str,
        write: impl FnOnce(&Path) -> Result<(), ParquetError>,
    ) -> Result<(), FolderError> {
        let place = self.path.join(name);
        let beside = beside(&place, "tmp");
        let written = write(&beside).map_err(|source| table_error(place.clone(), source));
        settle(written, &beside, &place)
    }

    fn write_manifest(&self, runs: &[(Cell, Summary)], complete: bool) -> Result<Fingerprint, FolderError> {
        let total = Fingerprint::combined(runs.iter().map(|(_, run)| run.fingerprint));
        let folder = |cell: &Cell| {
            let path = self.cell_path(cell);
            let inside = path.strip_prefix(&self.path).expect("cells are inside the folder");
            inside.to_string_lossy().replace('\\', "/")
        };
        let cells: Vec<serde_json::Value> = runs
            .iter()
            .map(|(cell, run)| {
                json!({
                    "qdisc": cell.qdisc,
                    "seed": cell.seed,
                    "folder": folder(cell),
                    "fingerprint": run.fingerprint,
                    "events": run.events,
                })
            })
            .collect();
        let layout = &self.manifest.layout;
        let manifest = json!({
            "giveway": self.manifest.version,
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
            "cells": cells,
        });
        let text = format!("{manifest:#}\n");
        replace(&self.path.join(MANIFEST), text.as_bytes())?;
        Ok(total)
    }

    /// Whether the folder already belongs to this scenario and version.
    fn has_same_question(&self) -> bool {
        let text = fs::read_to_string(self.path.join(MANIFEST)).unwrap_or_default();
        let found: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        found["giveway"] == self.manifest.version
            && found["format"] == FORMAT
            && found["scenario_hash"] == json!(self.scenario_hash)
    }

    /// The merged tables and the report of another scenario would be read as the answer to this one.
    fn remove_answers(&self) -> Result<(), FolderError> {
        for name in TABLES.iter().map(|(name, _)| *name).chain([SUMMARY_TABLE, REPORT]) {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(write_error(&path, source));
                }
                _ => {}
            }
        }
        Ok(())
    }
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

/// A hidden name next to `path`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().expect("what is written has a name").to_string_lossy();
    path.with_file_name(format!(".{name}.{ending}"))
}

/// Puts a finished folder in its place. An outdated one there is moved away first, because a rename does not replace
/// a folder with files in it.
fn exchange(from: &Path, to: &Path) -> Result<(), FolderError> {
    let outdated = beside(to, "old");
    remove_dir(&outdated)?;
    match fs::rename(to, &outdated) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(write_error(to, source)),
        _ => {}
    }
    fs::rename(from, to).map_err(|source| write_error(to, source))?;
    remove_dir(&outdated)?;
    sync_dir(to.parent().expect("a cell is in a folder"))
}

/// Replaces a file, whole or not at all.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    let beside = beside(path, "tmp");
    let written = write_file(&beside, content).map_err(|source| write_error(path, source));
    settle(written, &beside, path)
}

/// Renames what was written into its place, or removes it when it was not.
fn settle(written: Result<(), FolderError>, beside: &Path, place: &Path) -> Result<(), FolderError> {
    let settled =
        written.and_then(|()| fs::rename(beside, place).map_err(|source| write_error(place, source)));
    if settled.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(beside);
        return settled;
    }
    sync_dir(place.parent().expect("a file is in a folder"))
}

fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn make_dir(path: &Path) -> Result<(), FolderError> {
    fs::create_dir_all(path).map_err(|source| write_error(path, source))
}

/// Removes a folder with all that is in it; it need not be there.
fn remove_dir(path: &Path) -> Result<(), FolderError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(write_error(path, source)),
        _ => Ok(()),
    }
}

/// A rename lasts once its folder is on the disk. Only Unix lets a folder be opened for that.
fn sync_dir(path: &Path) -> Result<(), FolderError> {
    if cfg!(unix) {
        // A bare file name is in the current folder.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        File::open(path).and_then(|dir| dir.sync_all()).map_err(|source| write_error(path, source))?;
    }
    Ok(())
}

fn write_error(path: &Path, source: io::Error) -> FolderError {
    FolderError::Write { path: path.to_owned(), source }
}

fn table_error(path: PathBuf, source: ParquetError) -> FolderError {
    FolderError::Table { path, source }
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

    /// A device that is always full.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_told_with_its_path() {
        let path = Path::new("/dev/full");
        let file = write_error(path, write_file(path, b"x").unwrap_err());
        assert_eq!(file.to_string(), "cannot write /dev/full: No space left on device (os error 28)");
        let rows = columns::summary(&[]).unwrap();
        let error = table_error(path.to_owned(), columns::write(path, &rows).unwrap_err());
        assert!(
            error.to_string().contains("/dev/full") && error.to_string().contains("No space left"),
            "{error}"
        );
    }
}
