//! Reads a run folder: its manifest, the summaries, and single columns of its tables.
//!
//! Every file that the manifest and the summaries list must match its digest. A folder that a process is
//! writing is refused. A reader does not keep a writer away, so [`Folder::still_there`] checks at the end
//! that no process started to write.

mod manifest;
mod rows;

use std::io;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use giveway_files::Dir;
use giveway_measure::{DelayRow, DelaySummary, Packets, Summary, Table, Trial};
use giveway_qdisc::{DropReason, Rate, Span, Time};

pub(crate) use self::manifest::Measured;
use self::manifest::{Manifest, Stamp};
use self::rows::{real, rows, text, whole};
use super::error::{ReportError, file_error};
use crate::columns::{drops_in_interval, tables};
use crate::folder::{FORMAT, Lock, MANIFEST, RECORDED_BY, SCENARIO, SUMMARY, check_tables, read_summary};
use crate::seal::{self, Damage, Digest};

/// A run folder that was read.
pub(crate) struct Folder {
    dir: Dir,
    /// The bytes of the manifest.
    bytes: Vec<u8>,
    /// The name of the folder in a report over several folders.
    pub name: String,
    pub manifest: Manifest,
    /// The text of the scenario.
    pub scenario: String,
    /// The finished runs, in the order of the scenario.
    trials: Vec<(Trial, PathBuf)>,
    pub table: Table,
}

/// A link in one run.
pub(super) struct Link {
    pub port: String,
    pub rate_bps: Option<u64>,
    /// Packets lost within the measurement interval, by reason; `None` if not measured.
    pub drops: Option<[u64; DropReason::ALL.len()]>,
}

/// A point of a distribution.
pub(super) struct DelayPoint {
    pub port: String,
    pub packets: Packets,
    pub share: f64,
    pub delay_s: f64,
}

/// The bytes that a port sent for a source in one stretch of time.
pub(super) struct SharePoint {
    pub time_s: f64,
    pub span_s: f64,
    pub port: String,
    pub source: String,
    pub bytes: u64,
}

/// The check of the files of a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Another process wrote the folder: check each file.
    Checked,
    /// This process has just written or checked the folder, and holds its lock.
    Own,
}

impl Folder {
    pub fn read(path: &Path, trust: Trust) -> Result<Folder, ReportError> {
        let dir = Dir::open(path).map_err(|error| match path.is_dir() {
            true => file_error(path, error),
            false => ReportError::Nothing(path.to_owned()),
        })?;
        if trust == Trust::Checked {
            refuse_writer(path)?;
        }
        let folder = Folder::read_as_it_is(dir, trust);
        match folder {
            // Files that seem damaged may be half-written by another process.
            Err(ReportError::Damaged { .. } | ReportError::Unfinished { .. }) if trust == Trust::Checked => {
                refuse_writer(path)?;
                folder
            }
            folder => folder,
        }
    }

    fn read_as_it_is(dir: Dir, trust: Trust) -> Result<Folder, ReportError> {
        let path = dir.path();
        let place = path.join(MANIFEST);
        let bytes = dir.read(MANIFEST).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ReportError::NoRun(path.to_owned()),
            _ => file_error(&place, error),
        })?;
        let unknown = |why: &dyn ToString| ReportError::Damaged {
            damage: Damage::new(&place, why.to_string()),
            again: format!("Run the command that made it again, with --out {}", path.display()),
        };
        let stamp: Stamp = serde_json::from_slice(&bytes).map_err(|error| unknown(&error))?;
        if stamp.format != FORMAT {
            let wrote = format!("Giveway {}", stamp.giveway);
            let again = again(&stamp.created_by, path, true);
            return Err(ReportError::Format { path: path.to_owned(), wrote, found: stamp.format, again });
        }
        let (text, _) = seal::open(&bytes).map_err(|why| unknown(&why))?;
        let manifest: Manifest = serde_json::from_str(text).map_err(|error| unknown(&error))?;
        let again = if stamp.created_by == RECORDED_BY {
            format!("A recording cannot be repeated; `{RECORDED_BY}` with --record makes a new one")
        } else {
            again(&stamp.created_by, path, false)
        };
        let planned = manifest.disciplines.len() * manifest.seeds.len();
        if manifest.trials.is_empty() {
            return Err(ReportError::Unfinished { path: path.to_owned(), planned, again });
        }
        let damaged = |damage| ReportError::Damaged { damage, again: again.clone() };
        let mut runs = Vec::new();
        let mut trials = Vec::new();
        for entry in &manifest.trials {
            let place = path.join(&entry.folder).join(SUMMARY);
            let (found, digest) = read_summary(&dir, &entry.folder).map_err(damaged)?;
            if digest != entry.summary_sha256
                || found.trial != entry.trial
                || found.scenario_hash != manifest.scenario_hash
            {
                return Err(damaged(Damage::new(&place, "it is not the one that the manifest lists")));
            }
            if trust == Trust::Checked {
                check_tables(&dir, &entry.folder, &found).map_err(damaged)?;
            }
            runs.push((found.trial, found.summary));
            trials.push((entry.trial.clone(), entry.folder.clone()));
        }
        if trust == Trust::Checked {
            let check = |(name, digest): (&String, &Digest)| digest.check_in(&dir, Path::new(name));
            manifest.files.iter().try_for_each(check).map_err(damaged)?;
        }
        let place = path.join(SCENARIO);
        let scenario = dir.file(SCENARIO).and_then(io::read_to_string);
        let scenario = scenario.map_err(|error| file_error(&place, error))?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let table = Table::new(&runs);
        Ok(Folder { dir, bytes, name, manifest, scenario, trials, table })
    }

    /// The finished trials with their results.
    pub fn summaries(&self) -> Result<Vec<(Trial, Summary)>, ReportError> {
        let summary = |(trial, folder): &(Trial, PathBuf)| match read_summary(&self.dir, folder) {
            Ok((found, _)) => Ok((trial.clone(), found.summary)),
            Err(damage) => Err(ReportError::Damaged {
                damage,
                again: again(&self.manifest.created_by, self.path(), false),
            }),
        };
        self.trials.iter().map(summary).collect()
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The folder, open.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Checks that no process started to write the folder since it was read.
    pub(super) fn still_there(&self) -> Result<(), ReportError> {
        refuse_writer(self.path())?;
        match self.dir.read(MANIFEST) {
            Ok(bytes) if bytes == self.bytes => Ok(()),
            _ => {
                Err(ReportError::Busy { path: self.path().to_owned(), holder: "another process".to_owned() })
            }
        }
    }

    /// Number of finished trials, and of planned ones.
    pub fn runs(&self) -> (usize, usize) {
        (self.trials.len(), self.manifest.disciplines.len() * self.manifest.seeds.len())
    }

    /// The specifications of the disciplines with a finished trial.
    pub(super) fn disciplines(&self) -> Vec<&str> {
        self.table.rows.iter().map(|row| row.qdisc.as_str()).collect()
    }

    /// The first seed of a discipline.
    pub(super) fn first_seed(&self, qdisc: &str) -> Option<u64> {
        self.runs_of(qdisc).next().map(|(seed, _)| seed)
    }

    /// Two opposite measured ports, each with the node whose flows cross it; `None` if other ports are
    /// measured, or a flow of the first trial has other ends.
    pub(super) fn opposite(&self) -> Option<[(&str, &str); 2]> {
        let [one, other] = self.manifest.measured.ports.as_slice() else { return None };
        let ((from, to), (back_from, back_to)) = (one.split_once("->")?, other.split_once("->")?);
        if (from, to) != (back_to, back_from) {
            return None;
        }
        let (_, dir) = self.trials.first()?;
        let mut between = true;
        rows(&self.dir, &dir.join(tables::FLOWS.file), &["from", "to"], |batch, row| {
            let ends = (text(batch, 0).value(row), text(batch, 1).value(row));
            between &= ends == (from, to) || ends == (to, from);
        })
        .ok()?;
        between.then_some([(one.as_str(), from), (other.as_str(), to)])
    }

    /// Size in bytes and flow completion time in seconds of each transfer of the summary, seed after seed; of
    /// all transfers, or of those that a node sent.
    pub(super) fn completions(
        &self,
        qdisc: &str,
        from: Option<&str>,
    ) -> Result<Vec<(f64, f64)>, ReportError> {
        let mut found = Vec::new();
        for (_, dir) in self.runs_of(qdisc) {
            let columns = ["kind", "in_interval", "fct_s", "bytes", "from"];
            rows(&self.dir, &dir.join(tables::FLOWS.file), &columns, |batch, row| {
                let transfer = text(batch, 0).value(row) == "transfer";
                let mine = from.is_none_or(|from| text(batch, 4).value(row) == from);
                let in_interval = batch.column(1).as_boolean().value(row) && mine;
                if let (true, true, Some(fct)) = (transfer, in_interval, real(batch, 2, row)) {
                    found.push((whole(batch, 3, row).unwrap_or(0) as f64, fct));
                }
            })?;
        }
        Ok(found)
    }

    /// The distributions of sojourn times, one list per seed.
    pub(super) fn delays(&self, qdisc: &str) -> Result<Vec<Vec<DelayPoint>>, ReportError> {
        let mut seeds = Vec::new();
        for (_, dir) in self.runs_of(qdisc) {
            let mut found = Vec::new();
            rows(
                &self.dir,
                &dir.join(tables::SOJOURN.file),
                &["port", "packets", "share", "sojourn_s"],
                |batch, row| {
                    found.push(DelayPoint {
                        port: text(batch, 0).value(row).to_owned(),
                        packets: Packets::named(text(batch, 1).value(row)),
                        share: real(batch, 2, row).unwrap_or(0.0),
                        delay_s: real(batch, 3, row).unwrap_or(0.0),
                    });
                },
            )?;
            seeds.push(found);
        }
        Ok(seeds)
    }

    /// Samples of the backlog, of the first seed: time in seconds, and packets.
    pub(super) fn queue(&self, qdisc: &str, port: &str) -> Result<Vec<(f64, f64)>, ReportError> {
        let mut found = Vec::new();
        if let Some((_, dir)) = self.runs_of(qdisc).next() {
            rows(
                &self.dir,
                &dir.join(tables::QUEUE.file),
                &["time_s", "port", "backlog_packets"],
                |batch, row| {
                    if let (Some(packets), true) = (whole(batch, 2, row), text(batch, 1).value(row) == port) {
                        found.push((real(batch, 0, row).unwrap_or(0.0), packets as f64));
                    }
                },
            )?;
        }
        Ok(found)
    }

    /// Samples of a gauge at any port, of the first seed: time in seconds, and value.
    pub(super) fn gauge(&self, qdisc: &str, gauge: &str) -> Result<Vec<(f64, f64)>, ReportError> {
        let mut found = Vec::new();
        if let Some((_, dir)) = self.runs_of(qdisc).next() {
            let columns = ["time_s", "gauge", "value"];
            rows(&self.dir, &dir.join(tables::GAUGES.file), &columns, |batch, row| {
                if let (Some(value), true) = (real(batch, 2, row), text(batch, 1).value(row) == gauge) {
                    found.push((real(batch, 0, row).unwrap_or(0.0), value));
                }
            })?;
        }
        Ok(found)
    }

    /// The bytes of each source over time, of the first seed.
    pub(super) fn shares(&self, qdisc: &str) -> Result<Vec<SharePoint>, ReportError> {
        let mut found = Vec::new();
        if let Some((_, dir)) = self.runs_of(qdisc).next() {
            let columns = ["time_s", "duration_s", "port", "source", "bytes"];
            rows(&self.dir, &dir.join(tables::SHARES.file), &columns, |batch, row| {
                found.push(SharePoint {
                    time_s: real(batch, 0, row).unwrap_or(0.0),
                    span_s: real(batch, 1, row).unwrap_or(0.0),
                    port: text(batch, 2).value(row).to_owned(),
                    source: text(batch, 3).value(row).to_owned(),
                    bytes: whole(batch, 4, row).unwrap_or(0),
                });
            })?;
        }
        Ok(found)
    }

    /// The delays of each source over time, of the first seed.
    pub(super) fn delays_over_time(&self, qdisc: &str) -> Result<Vec<DelayRow>, ReportError> {
        match self.runs_of(qdisc).next() {
            Some((_, trial)) => delays_over_time(&self.dir, trial),
            None => Ok(Vec::new()),
        }
    }

    /// The links, one list per seed.
    pub(super) fn links(&self, qdisc: &str) -> Result<Vec<Vec<Link>>, ReportError> {
        let reasons = drops_in_interval();
        let columns: Vec<&str> = ["port", "rate_bps"].into_iter().chain(reasons).collect();
        let mut seeds = Vec::new();
        for (_, dir) in self.runs_of(qdisc) {
            let mut found = Vec::new();
            rows(&self.dir, &dir.join(tables::LINKS.file), &columns, |batch, row| {
                let mut drops = Some([0; DropReason::ALL.len()]);
                for why in DropReason::ALL {
                    match (whole(batch, 2 + why as usize, row), &mut drops) {
                        (Some(count), Some(drops)) => drops[why as usize] = count,
                        _ => drops = None,
                    }
                }
                let port = text(batch, 0).value(row).to_owned();
                found.push(Link { port, rate_bps: whole(batch, 1, row), drops });
            })?;
            seeds.push(found);
        }
        Ok(seeds)
    }

    fn runs_of(&self, qdisc: &str) -> impl Iterator<Item = (u64, &Path)> {
        let mine = self.trials.iter().filter(move |(trial, _)| trial.qdisc == qdisc);
        mine.map(|(trial, dir)| (trial.seed, dir.as_path()))
    }
}

/// The delays over time of the trial at this path inside a folder.
pub(super) fn delays_over_time(dir: &Dir, trial: &Path) -> Result<Vec<DelayRow>, ReportError> {
    let columns = [
        "time_s",
        "duration_s",
        "port",
        "source",
        "sent_packets",
        "sojourn_mean_s",
        "sojourn_max_s",
        "received_packets",
        "delay_mean_s",
        "delay_max_s",
        "offered_bps",
    ];
    let mut found = Vec::new();
    rows(dir, &trial.join(tables::DELAYS.file), &columns, |batch, row| {
        let span = |column| Span::from_s_f64(real(batch, column, row).unwrap_or(0.0));
        let delayed = |first| {
            let (mean_s, max_s) = (real(batch, first + 1, row)?, real(batch, first + 2, row)?);
            Some(DelaySummary { packets: whole(batch, first, row)?, mean_s, max_s })
        };
        found.push(DelayRow {
            time: Time::ZERO + span(0),
            span: span(1),
            port: text(batch, 2).value(row).to_owned(),
            source: text(batch, 3).value(row).to_owned(),
            sojourn: delayed(4),
            one_way: delayed(7),
            rate: whole(batch, 10, row).map(Rate::bit),
        });
    })?;
    Ok(found)
}

fn refuse_writer(path: &Path) -> Result<(), ReportError> {
    match Lock::holder(path) {
        Some(holder) => Err(ReportError::Busy { path: path.to_owned(), holder }),
        None => Ok(()),
    }
}

/// Gives folders with the same name their whole path as the name.
pub(super) fn tell_apart(folders: &mut [Folder]) {
    let names: Vec<String> = folders.iter().map(|folder| folder.name.clone()).collect();
    for folder in folders {
        if names.iter().filter(|name| **name == folder.name).count() > 1 {
            folder.name = folder.path().display().to_string();
        }
    }
}

/// The sentence about making the folder at `path` again. `created_by` is a command line, or a call of the
/// Python package such as `giveway.run in study.py`. `fresh` is true if the results there cannot be used.
fn again(created_by: &str, path: &Path, fresh: bool) -> String {
    let path = path.display();
    let how = match (created_by.starts_with("giveway."), fresh) {
        (false, false) => format!("Run this command again with --out {path}"),
        (false, true) => format!("Run this command again with another --out, or with --out {path} --force"),
        (true, false) => format!("Call it again with out=\"{path}\""),
        (true, true) => format!("Call it again with another out, or with out=\"{path}\" and force=True"),
    };
    format!("It was made by `{created_by}`. {how}")
}
