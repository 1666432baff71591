//! The folder of a run: opening it, and its finished trials.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use giveway_files::{Dir, input};
use giveway_measure::{Fingerprint, Summary, Trial};

use super::conclusion::Conclusion;
use super::disk::{FOLDER_RIGHTS, beside, replace_in, write_error};
use super::error::FolderError;
use super::files::{
    MANIFEST, MakeTable, REPORT, SCENARIO, SUMMARY, SUMMARY_TABLES, TABLES, TRIALS, slug, tables_of,
};
use super::finished::{Finished, Kept, check_tables, read_summary};
use super::lock::Lock;
use super::manifest::{FORMAT, Manifest};
use super::place::{self, Existing, Found};
use crate::seal::{Damage, Digest};

/// The folder of a run, open for writing by this process only.
#[derive(Clone, Debug)]
pub struct RunFolder {
    pub(super) dir: Dir,
    pub(super) manifest: Manifest,
    pub(super) commit: Option<String>,
    pub(super) scenario_text: String,
    pub(super) scenario_hash: Fingerprint,
    pub(super) conclusion: Option<Conclusion>,
    /// Further files that belong to the folder, by name.
    pub(super) kept: BTreeMap<String, Digest>,
    pub(super) repaired: Option<Damage>,
    _lock: Arc<Lock>,
}

impl RunFolder {
    /// Opens the folder as [`open`](RunFolder::open) does, and keeps existing files.
    ///
    /// # Errors
    /// As [`open`](RunFolder::open).
    pub fn create(dir: &Path, scenario_text: &str, manifest: Manifest) -> Result<RunFolder, FolderError> {
        RunFolder::open(dir, scenario_text, manifest, Existing::Keep)
    }

    /// Creates the folder, or opens one with a run of the same scenario, and locks it. `scenario_text` must
    /// contain everything that the results depend on, including changes on the command line: two scenarios
    /// are equal if this text is.
    ///
    /// # Errors
    /// If another process writes the folder, if the place has other content that `existing` keeps, or if the
    /// folder cannot be created or written.
    pub fn open(
        dir: &Path,
        scenario_text: &str,
        manifest: Manifest,
        existing: Existing<'_>,
    ) -> Result<RunFolder, FolderError> {
        // Inspected twice: a refused caller has changed nothing, and only the inspection under the lock is
        // reliable.
        if let Some(holder) = Lock::holder(dir) {
            return Err(FolderError::Busy { path: dir.to_owned(), holder });
        }
        RunFolder::inspect(dir, Some((scenario_text, &manifest.created_by)), existing)?;
        let lock = Arc::new(Lock::take(dir)?);
        let mut folder = RunFolder {
            dir: lock.dir().clone(),
            manifest,
            commit: None,
            scenario_text: scenario_text.to_owned(),
            scenario_hash: Fingerprint::of(scenario_text),
            conclusion: None,
            kept: BTreeMap::new(),
            repaired: None,
            _lock: lock,
        };
        match place::look_in(&folder.dir, Some((scenario_text, &folder.manifest.created_by)))? {
            Found::Free => {}
            Found::Same { version, scenario_hash } => {
                if scenario_hash != folder.scenario_hash {
                    place::clear(&folder.dir, &|_| ())?;
                } else if version != folder.manifest.version {
                    folder.remove_answers()?;
                }
            }
            Found::Broken(damage) => folder.repaired = Some(damage),
            Found::Taken(refusal) => match existing {
                Existing::Keep => return Err(refusal),
                Existing::Replace(tell) => place::clear(&folder.dir, tell)?,
            },
        }
        folder.clear_leftovers()?;
        // The manifest comes first: a folder without one is not a run folder.
        folder.write_manifest(&[], &BTreeMap::new(), false)?;
        folder.changed(Path::new(TRIALS), folder.dir.make(TRIALS, FOLDER_RIGHTS).map(drop))?;
        replace_in(&folder.dir, SCENARIO, scenario_text.as_bytes())?;
        Ok(folder)
    }

    /// Checks if [`open`](RunFolder::open) would use this place, as far as possible without locking it.
    /// Changes nothing. `asked` is the text of the scenario and the command, if they are known.
    ///
    /// # Errors
    /// The reason for which `open` would refuse the place.
    pub fn inspect(
        dir: &Path,
        asked: Option<(&str, &str)>,
        existing: Existing<'_>,
    ) -> Result<(), FolderError> {
        let found = match place::look(dir, asked)? {
            // Another process may have written meanwhile, and an incomplete folder does not look like a run
            // folder.
            Found::Taken(_) => match Lock::holder(dir) {
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

    /// Sets the conclusion for the manifest and the report. Without it, the report derives findings from its
    /// table.
    pub fn with_conclusion(self, conclusion: Conclusion) -> RunFolder {
        RunFolder { conclusion: Some(conclusion), ..self }
    }

    /// Sets the commit of the sources, for information only: the version alone determines which trials run
    /// again.
    pub fn with_commit(self, commit: Option<String>) -> RunFolder {
        RunFolder { commit, ..self }
    }

    /// Copies a file into the folder, under the name `name`. The file then belongs to the folder.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn keep_file(&mut self, name: &str, from: &Path) -> Result<(), FolderError> {
        let content = input::read(from).map_err(|source| write_error(&self.path().join(name), source))?;
        let digest = replace_in(&self.dir, name, &content)?;
        self.kept.insert(name.to_owned(), digest);
        Ok(())
    }

    /// Writes the report. Returns its path.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_report(&self, html: &str) -> Result<PathBuf, FolderError> {
        replace_in(&self.dir, REPORT, html.as_bytes())?;
        Ok(self.path().join(REPORT))
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The folder, open.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Version of Giveway that writes the folder.
    pub fn version(&self) -> &str {
        &self.manifest.version
    }

    /// The damage of the previous manifest, if it was damaged and has been replaced.
    pub fn repaired(&self) -> Option<&Damage> {
        self.repaired.as_ref()
    }

    /// The summary of a trial, if it is finished and undamaged, for this scenario and version.
    pub fn finished(&self, trial: &Trial) -> Option<Summary> {
        match self.look(trial) {
            Kept::Finished(summary) => Some(summary),
            _ => None,
        }
    }

    /// The state of a trial. Every byte of its files is checked.
    pub fn look(&self, trial: &Trial) -> Kept {
        let inside = self.inside(trial);
        if matches!(self.dir.kind(&inside), Ok(None)) {
            return Kept::Missing;
        }
        match self.sealed(trial).and_then(|(found, _)| {
            if found.giveway != self.manifest.version {
                return Ok(Kept::Outdated(found.giveway));
            }
            check_tables(&self.dir, &inside, &found)?;
            Ok(Kept::Finished(found.summary))
        }) {
            Ok(kept) => kept,
            Err(damage) => Kept::Damaged(damage),
        }
    }

    /// Reads the summary of a trial, and its digest.
    pub(super) fn sealed(&self, trial: &Trial) -> Result<(Finished, String), Damage> {
        let inside = self.inside(trial);
        let place = self.path().join(&inside).join(SUMMARY);
        let (found, digest) = read_summary(&self.dir, &inside)?;
        let wrong = |why: String| Err(Damage::new(&place, why));
        if found.format != FORMAT {
            return wrong(format!("it has format {}, and its folder has format {FORMAT}", found.format));
        }
        if found.trial != *trial {
            let Trial { qdisc, seed } = &found.trial;
            return wrong(format!("it is of {qdisc} with seed {seed}, in the place of another trial"));
        }
        if found.scenario_hash != self.scenario_hash {
            return wrong("it belongs to another scenario".to_owned());
        }
        if let Some((name, _)) = self.tables().find(|(name, _)| !found.tables.contains_key(*name)) {
            return wrong(format!("it does not list {name}"));
        }
        Ok((found, digest))
    }

    /// The folder of a trial as a path inside this folder, `trials/efd-limit-300p-HASH/seed-1`: readable, and
    /// unique for each specification.
    pub(crate) fn inside(&self, trial: &Trial) -> PathBuf {
        let qdisc = format!("{}-{}", slug(&trial.qdisc), Fingerprint::of(&trial.qdisc).short());
        Path::new(TRIALS).join(qdisc).join(format!("seed-{}", trial.seed))
    }

    /// Names the path of an error.
    pub(super) fn changed(&self, inside: &Path, done: std::io::Result<()>) -> Result<(), FolderError> {
        done.map_err(|source| write_error(&self.path().join(inside), source))
    }

    /// The tables of the trials of this folder.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&'static str, MakeTable)> + use<> {
        tables_of(&self.manifest.layout)
    }

    /// Removes the merged tables and the report of another version, which could be mistaken for results of
    /// this one.
    fn remove_answers(&self) -> Result<(), FolderError> {
        let names = TABLES.iter().map(|(name, _)| *name).chain(SUMMARY_TABLES).chain([REPORT]);
        names.map(Path::new).try_for_each(|name| self.changed(name, self.dir.remove_file(name)))
    }

    /// Removes temporary files of a killed run. No other process writes here, since the folder is locked.
    fn clear_leftovers(&self) -> Result<(), FolderError> {
        for name in
            TABLES.iter().map(|(name, _)| *name).chain(SUMMARY_TABLES).chain([REPORT, SCENARIO, MANIFEST])
        {
            let half = beside(Path::new(name), "tmp");
            self.changed(&half, self.dir.remove_file(&half))?;
        }
        for discipline in place::folders(&self.dir, Path::new(TRIALS)) {
            for run in place::folders(&self.dir, &discipline) {
                let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if name.starts_with(".seed-") && (name.ends_with(".tmp") || name.ends_with(".old")) {
                    self.changed(&run, self.dir.remove_all(&run))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A reader without the lock may see an incomplete folder, which does not look like a run folder.
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
}
