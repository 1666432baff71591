//! The content of a place before it becomes a run folder.
//!
//! Giveway uses an empty folder, or one with a run of the same scenario. It keeps anything else, unless the
//! user allows it to be replaced. Even then it removes only files that it writes itself.

use std::io;
use std::path::{Path, PathBuf};

use giveway_files::{Dir, Kind};
use giveway_measure::Fingerprint;
use serde::Deserialize;

use super::disk::{beside, write_error};
use super::error::FolderError;
use super::files::{MANIFEST, REPORT, SCENARIO, SUMMARY, SUMMARY_TABLES, TABLES, TRIALS};
use super::lock::{LOCK, when};
use super::manifest::FORMAT;
use crate::seal::{self, Damage};

/// The treatment of existing content that is not a run of the same scenario.
#[derive(Clone, Copy, Default)]
pub enum Existing<'a> {
    /// Keeps it and refuses the place.
    #[default]
    Keep,
    /// Removes the files that Giveway writes. Calls the function before each removal with the path, and a
    /// description if needed.
    Replace(&'a dyn Fn(&str)),
}

/// The content of a place.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing, an empty folder, or remains of a run that was killed before it wrote its manifest.
    Free,
    /// A run of the same scenario, by this version of Giveway or another one.
    Same {
        /// The version of Giveway that made it.
        version: String,
        /// The hash of its scenario, which may differ between two recordings.
        scenario_hash: Fingerprint,
    },
    /// A run of the same scenario whose manifest is damaged.
    Broken(Damage),
    /// Content that must not be replaced without permission.
    Taken(FolderError),
}

/// The folder with the recordings of `giveway live` in a run folder of a test bed.
const ROUTER: &str = "router";
/// The workload file of a comparison.
const WORKLOAD: &str = "workload.jsonl";
/// The packets of a comparison that replays several captures, or a part of one.
const PACKETS: &str = "packets.pcapng";
/// The command in the manifest of a recording. A new recording replaces an old one, since recordings have no
/// scenario that could be repeated; it replaces no other folder.
pub const RECORDED_BY: &str = "giveway live";

/// The part of a manifest that identifies its run. All formats have it.
#[derive(Deserialize)]
struct Stamp {
    giveway: String,
    #[serde(default = "first_format")]
    format: u64,
    scenario: String,
    scenario_hash: Fingerprint,
    #[serde(default)]
    title: String,
    #[serde(default)]
    created_by: String,
    #[expect(dead_code, reason = "manifests of other programs have none")]
    trials: Vec<serde_json::Value>,
}

/// The format of folders without a number.
fn first_format() -> u64 {
    1
}

/// Inspects a place without changing it. `asked` is the text of the scenario to run there and its command, if
/// they are known.
pub(super) fn look(dir: &Path, asked: Option<(&str, &str)>) -> Result<Found, FolderError> {
    let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    match Dir::open(dir) {
        Ok(dir) => look_in(&dir, asked),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory && dir.exists() => {
            let why = "it is a file, and runs need a folder: type the name of a folder";
            Err(write_error(dir, io::Error::new(io::ErrorKind::NotADirectory, why)))
        }
        // Creating the folder reports other obstacles.
        Err(error) if missing.contains(&error.kind()) => Ok(Found::Free),
        Err(error) => Err(write_error(dir, error)),
    }
}

/// Inspects a folder.
pub(super) fn look_in(dir: &Dir, asked: Option<(&str, &str)>) -> Result<Found, FolderError> {
    refuse_links(dir, &[MANIFEST, LOCK, TRIALS])?;
    let manifest = dir.path().join(MANIFEST);
    let bytes = match dir.read(MANIFEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return without_manifest(dir),
        Err(error) => return Err(write_error(&manifest, error)),
    };
    let stamp: Option<Stamp> = serde_json::from_slice(&bytes).ok();
    let opened = seal::open(&bytes);
    match (stamp, opened) {
        (Some(stamp), Ok(_)) if stamp.format == FORMAT => {
            let recordings = |asker: &str| [asker, &stamp.created_by].iter().all(|by| *by == RECORDED_BY);
            let same = asked.is_none_or(|(text, asker)| {
                recordings(asker) || stamp.scenario_hash == Fingerprint::of(text)
            });
            match same {
                true => Ok(Found::Same { version: stamp.giveway, scenario_hash: stamp.scenario_hash }),
                false => Ok(Found::Taken(another(dir, &stamp))),
            }
        }
        (Some(stamp), _) if stamp.format != FORMAT => Ok(Found::Taken(FolderError::Format {
            path: dir.path().to_owned(),
            wrote: stamp.giveway,
            found: stamp.format,
        })),
        // The whole manifest of another kind, such as that of a sweep, which has trials and a scenario, too.
        (None, Ok(_)) => foreign(dir),
        // The manifest is damaged. Each trial has its own digests, and the scenario identifies the run.
        (stamp, _) => {
            let damage = Damage::new(&manifest, "its content does not match the SHA-256 at its end");
            let scenario = dir.read(SCENARIO).unwrap_or_default();
            let has_trials = matches!(dir.kind(TRIALS), Ok(Some(Kind::Folder)));
            let same = asked.is_none_or(|(text, _)| text.as_bytes() == scenario) && has_trials;
            match (same, stamp) {
                (true, _) => Ok(Found::Broken(damage)),
                (false, Some(_)) => Ok(Found::Taken(FolderError::Unknown { damage })),
                // Programs of all kinds call a file manifest.json.
                (false, None) => foreign(dir),
            }
        }
    }
}

/// Refuses a folder in which one of these names is a link. Other links are found when they are used.
///
/// # Errors
/// [`FolderError::Link`].
pub fn refuse_links(dir: &Dir, names: &[&str]) -> Result<(), FolderError> {
    let is_link = |name: &&&str| matches!(dir.kind(name), Ok(Some(Kind::Link)));
    match names.iter().find(is_link) {
        Some(name) => Err(FolderError::Link { path: dir.path().join(name) }),
        None => Ok(()),
    }
}

/// A folder without a manifest is free if it contains only files that a run writes before its manifest.
fn without_manifest(dir: &Dir) -> Result<Found, FolderError> {
    let half = beside(Path::new(MANIFEST), "tmp");
    let begun = |name: &String| name == LOCK || Path::new(name) == half;
    match names(dir)?.iter().all(begun) {
        true => Ok(Found::Free),
        false => foreign(dir),
    }
}

/// A folder that is not a run folder.
fn foreign(dir: &Dir) -> Result<Found, FolderError> {
    let holds = names(dir)?.into_iter().filter(|name| name != LOCK).collect();
    let goes = own_things(dir).into_iter().map(|thing| thing.name).collect();
    Ok(Found::Taken(FolderError::Foreign { path: dir.path().to_owned(), holds, goes }))
}

/// The names in a folder.
fn names(dir: &Dir) -> Result<Vec<String>, FolderError> {
    let entries = dir.entries().map_err(|error| write_error(dir.path(), error))?;
    Ok(entries.into_iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect())
}

fn another(dir: &Dir, stamp: &Stamp) -> FolderError {
    let written = dir.file(MANIFEST).and_then(|file| file.metadata()?.modified()).ok();
    FolderError::Another {
        path: dir.path().to_owned(),
        title: if stamp.title.is_empty() { stamp.scenario.clone() } else { stamp.title.clone() },
        scenario: stamp.scenario.clone(),
        created_by: stamp.created_by.clone(),
        when: written.map_or_else(|| "an unknown date".to_owned(), when),
    }
}

/// A file or folder that Giveway writes into a run folder.
pub(super) struct Thing {
    /// Name, with a description for folders.
    name: String,
    /// The files of the entry, as paths inside the folder.
    files: Vec<PathBuf>,
    /// Folders to remove once they are empty, the innermost first.
    dirs: Vec<PathBuf>,
}

/// The tables of runs. Older formats use the same names.
fn tables() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _)| *name)
}

/// The entries of a folder with names that Giveway writes. The manifest is the last one, since it identifies
/// the folder.
pub(super) fn own_things(dir: &Dir) -> Vec<Thing> {
    let mut things = Vec::new();
    let single = tables().chain(SUMMARY_TABLES).chain([REPORT, WORKLOAD, PACKETS, SCENARIO]);
    for name in single {
        things.extend(file(dir, Path::new(name)));
    }
    things.extend(trials(dir));
    things.extend(recordings(dir));
    things.extend(file(dir, Path::new(MANIFEST)));
    things
}

/// A file, or a link to one. Giveway does not write a folder of that name.
fn file(dir: &Dir, inside: &Path) -> Option<Thing> {
    let there = matches!(dir.kind(inside), Ok(Some(kind)) if kind != Kind::Folder);
    let name = inside.to_string_lossy().into_owned();
    there.then(|| Thing { name, files: vec![inside.to_owned()], dirs: Vec::new() })
}

/// The trials, `trials/NAME/seed-1` with the tables in it.
fn trials(dir: &Dir) -> Option<Thing> {
    let top = PathBuf::from(TRIALS);
    let (mut files, mut dirs) = (Vec::new(), Vec::new());
    let mut runs = 0;
    for discipline in folders(dir, &top) {
        for run in folders(dir, &discipline) {
            let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !name.trim_start_matches('.').starts_with("seed-") {
                continue;
            }
            let found = tables().chain([SUMMARY]).filter_map(|name| file(dir, &run.join(name)));
            files.extend(found.flat_map(|one| one.files));
            dirs.push(run);
            runs += 1;
        }
        dirs.push(discipline);
    }
    let there = matches!(dir.kind(&top), Ok(Some(Kind::Folder)));
    dirs.push(top);
    there.then(|| Thing { name: format!("{TRIALS} ({runs} runs)"), files, dirs })
}

/// The recordings of the router of a test bed, such as `router/NAME/forward`: run folders of `giveway live`.
fn recordings(dir: &Dir) -> Option<Thing> {
    let top = PathBuf::from(ROUTER);
    let (mut files, mut dirs) = (Vec::new(), Vec::new());
    for run in folders(dir, &top) {
        for recording in folders(dir, &run) {
            let Ok(inner) = dir.enter(&recording) else { continue };
            if !matches!(look_in(&inner, None), Ok(Found::Same { .. })) {
                continue;
            }
            for thing in own_things(&inner) {
                files.extend(thing.files.iter().map(|inside| recording.join(inside)));
                dirs.extend(thing.dirs.iter().map(|inside| recording.join(inside)));
            }
            files.extend(file(dir, &recording.join(LOCK)).into_iter().flat_map(|one| one.files));
            dirs.push(recording);
        }
        dirs.push(run);
    }
    dirs.push(top);
    let count = files.iter().filter(|file| file.ends_with(MANIFEST)).count();
    (count > 0).then(|| Thing { name: format!("{ROUTER} ({count} recordings)"), files, dirs })
}

/// The folders in a folder, in the order of their names, without links to folders.
pub(super) fn folders(dir: &Dir, inside: &Path) -> Vec<PathBuf> {
    let found = dir.enter(inside).and_then(|inner| inner.entries()).unwrap_or_default();
    let folders = found.into_iter().filter(|(_, kind)| *kind == Kind::Folder);
    folders.map(|(name, _)| inside.join(name)).collect()
}

/// Removes the files that Giveway writes from a folder, and keeps everything else.
pub(super) fn clear(dir: &Dir, tell: &dyn Fn(&str)) -> Result<(), FolderError> {
    for thing in own_things(dir) {
        tell(&dir.path().join(&thing.name).display().to_string());
        for file in &thing.files {
            dir.remove_file(file).map_err(|source| write_error(&dir.path().join(file), source))?;
        }
        for folder in &thing.dirs {
            // A folder with other files stays.
            let _ = dir.remove_dir(folder);
        }
    }
    Ok(())
}
