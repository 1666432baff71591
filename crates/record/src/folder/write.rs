//! Writing a run folder: trials, the merged tables, and the manifest.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use giveway_measure::{Fingerprint, Record, Summary, Trial};
use giveway_qdisc::Span;
use parquet::errors::ParquetError;
use serde_json::json;

use super::disk::{FOLDER_RIGHTS, RIGHTS, beside, exchange, replace_in, write_error, write_file};
use super::error::FolderError;
use super::files::{MANIFEST, SCENARIO, SUMMARY, SUMMARY_TABLES};
use super::finished::Finished;
use super::manifest::FORMAT;
use super::run_folder::RunFolder;
use crate::columns::{self, tables};
use crate::seal::{self, Damage, Digest};

impl RunFolder {
    /// Writes a trial, atomically.
    ///
    /// # Errors
    /// If it cannot be written; then no part of it remains.
    pub fn write(&self, trial: &Trial, record: &Record) -> Result<(), FolderError> {
        let place = self.inside(trial);
        let beside = beside(&place, "tmp");
        let written = self.write_trial(trial, record, &beside);
        let written = written.and_then(|()| exchange(&self.dir, &beside, &place));
        if written.is_err() {
            // The first error is reported. The next attempt removes what cannot be removed now.
            let _ = self.dir.remove_all(&beside);
        }
        written
    }

    /// Merges these trials, in this order, into the tables at the top, and completes the manifest. The
    /// manifest records whether trials are missing. Returns the fingerprint of all trials.
    ///
    /// # Errors
    /// If a table cannot be written, or a trial is absent. Until then the manifest has `complete: false`.
    pub fn finish(&self, runs: &[(Trial, Summary)]) -> Result<Fingerprint, FolderError> {
        let mut written = Vec::new();
        let merged = self.merge(runs, &mut written);
        let put = merged.and_then(|()| written.iter().try_for_each(|(name, _)| self.put(name)));
        if put.is_err() {
            // The first error is reported.
            for (name, _) in &written {
                let _ = self.dir.remove_file(beside(Path::new(name), "tmp"));
            }
        }
        put?;
        self.dir.sync().map_err(|source| write_error(self.path(), source))?;
        let planned = self.manifest.disciplines.iter().flat_map(|discipline| {
            self.manifest.seeds.iter().map(|seed| Trial { qdisc: discipline.qdisc.clone(), seed: *seed })
        });
        let complete = planned.into_iter().all(|trial| runs.iter().any(|(run, _)| *run == trial));
        let tables = written.into_iter().filter_map(|(name, digest)| Some((name.to_owned(), digest?)));
        self.write_manifest(runs, &tables.collect(), complete)
    }

    /// Writes the merged tables, each next to its place. Adds to `written` the name of each table that was
    /// started, and its digest once it is complete.
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
            let place = self.path().join(name);
            written.push((name, None));
            let file = self.dir.new_file(beside(Path::new(name), "tmp"), RIGHTS).map_err(ParquetError::from);
            let digest = file.and_then(|file| {
                if SUMMARY_TABLES.contains(&name) {
                    let rows = match name == tables::SUMMARY.file {
                        true => columns::summary(&self.manifest.disciplines, runs),
                        false => columns::metrics(runs),
                    };
                    rows.map_err(ParquetError::from).and_then(|rows| columns::write(file, &rows))
                } else {
                    let open = |inside: &Path| {
                        let path = self.path().join(inside);
                        let named = |error: io::Error| {
                            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                        };
                        self.dir.file(inside).map_err(named)
                    };
                    columns::merge(
                        file,
                        runs.iter().map(|(trial, _)| (trial, open(&self.inside(trial).join(name)))),
                    )
                }
            });
            let digest = digest.map_err(|source| FolderError::Table { path: place, source })?;
            *written.last_mut().expect("it was pushed above") = (name, Some(digest));
        }
        Ok(())
    }

    /// Renames a merged table to its place.
    fn put(&self, name: &str) -> Result<(), FolderError> {
        self.changed(Path::new(name), self.dir.rename(beside(Path::new(name), "tmp"), name))
    }

    fn write_trial(&self, trial: &Trial, record: &Record, inside: &Path) -> Result<(), FolderError> {
        // Remove files of a killed run.
        self.changed(inside, self.dir.remove_all(inside))?;
        let dir = self.dir.make(inside, FOLDER_RIGHTS);
        let dir = dir.map_err(|source| write_error(&self.path().join(inside), source))?;
        let mut tables = BTreeMap::new();
        for (name, table) in self.tables() {
            let write = || columns::write(dir.new_file(name, RIGHTS)?, &table(record)?);
            let digest =
                write().map_err(|source| FolderError::Table { path: dir.path().join(name), source })?;
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
        write_file(&dir, SUMMARY, text.as_bytes())?;
        self.changed(inside, dir.sync())
    }

    /// Writes the manifest, with the digests of the `tables` at the top.
    pub(super) fn write_manifest(
        &self,
        runs: &[(Trial, Summary)],
        tables: &BTreeMap<String, Digest>,
        complete: bool,
    ) -> Result<Fingerprint, FolderError> {
        let total = Fingerprint::combined(runs.iter().map(|(_, run)| run.fingerprint));
        let mut trials = Vec::new();
        for (trial, run) in runs {
            let inside = self.inside(trial);
            let (found, digest) = self.sealed(trial).map_err(FolderError::Damaged)?;
            if found.summary != *run {
                let why = "it is not the result of this trial";
                return Err(FolderError::Damaged(Damage::new(&self.path().join(&inside).join(SUMMARY), why)));
            }
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
                "port_titles": self.conclusion.as_ref().map(|conclusion| &conclusion.port_titles),
                "ports": layout.measured.iter().map(|port| layout.port_name(*port)).collect::<Vec<_>>(),
                "sources": layout.source_names,
                "contest": layout.contest,
                "small_packet_bytes": layout.small_packet_bytes,
                "slot_s": layout.slot.map(Span::as_s),
            },
            "machine": self.manifest.machine,
            "created_by": self.manifest.created_by,
            "created": self.manifest.created,
            "complete": complete,
            "findings": self.conclusion.as_ref().map(|conclusion| &conclusion.findings),
            "recommendation": self.conclusion.as_ref().and_then(|conclusion| conclusion.recommendation.as_ref()),
            "fingerprint": (complete && !runs.is_empty()).then_some(total),
            "trials": trials,
            "files": files,
        });
        let (text, _) = seal::seal(&manifest);
        replace_in(&self.dir, MANIFEST, text.as_bytes())?;
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A device that is always full.
    #[test]
    #[cfg(target_os = "linux")]
    fn an_error_of_a_full_disk_names_the_table() {
        let path = Path::new("/dev/full");
        let rows = columns::summary(&[], &[]).unwrap();
        let source = columns::write(fs::File::create(path).unwrap(), &rows).unwrap_err();
        assert!(source.to_string().contains("No space left"), "{source}");
        let error = FolderError::Table { path: path.to_owned(), source }.to_string();
        assert_eq!(error, "cannot write the table /dev/full");
    }
}
