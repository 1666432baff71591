//! The digest of sources, for the build script and the tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The error of sources that cannot be hashed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}")]
pub struct DigestError {
    /// The file or folder, relative to the repository.
    pub path: String,
    /// The error of the system.
    pub source: io::Error,
}

/// The sources that results of simulations depend on: files, and folders with all sources in them.
/// `Cargo.lock` has the versions of the libraries. The parts of `record` that draw a report are left out,
/// because they do not change results.
pub const SIMULATION: &[&str] = &[
    "Cargo.lock",
    "crates/capture/src",
    "crates/disciplines/src",
    "crates/links/src",
    "crates/measure/src",
    "crates/observe/src",
    "crates/papers/src",
    "crates/qdisc/src",
    "crates/record/src",
    "crates/scenario/src",
    "crates/sim/src",
    "crates/spec/src",
    "crates/switch/src",
    "crates/theory/src",
    "crates/workload/src",
];

/// The sources that measurements on a test bed, and recordings of a live bridge, depend on.
pub const TESTBED: &[&str] = &[
    "Cargo.lock",
    "crates/bridge/src",
    "crates/capture/src",
    "crates/control/src",
    "crates/disciplines/src",
    "crates/kernel/src",
    "crates/kernel-plan/src",
    "crates/links/src",
    "crates/live/src",
    "crates/measure/src",
    "crates/observe/src",
    "crates/papers/src",
    "crates/qdisc/src",
    "crates/record/src",
    "crates/recording/src",
    "crates/replay/src",
    "crates/reserve/src",
    "crates/scenario/src",
    "crates/sim/src",
    "crates/spec/src",
    "crates/switch/src",
    "crates/testbed/src",
    "crates/theory/src",
    "crates/watch/src",
    "crates/wire/src",
    "crates/workload/src",
    "kernel",
];

/// Files of these crates that do not affect results: they draw and print.
const DRAWN: &[&str] =
    &["crates/record/src/report", "crates/record/src/report.rs", "crates/measure/src/terminal.rs"];

/// The extensions of sources. Other files, such as files of editors, are ignored.
const SOURCES: &[&str] = &["rs", "c", "h", "lock", "toml"];

/// The first 64 bits of a SHA-256 over the names and contents of all sources below these paths, as 16
/// hexadecimal digits.
///
/// # Errors
/// If a source cannot be read, or does not exist.
pub fn digest(root: &Path, paths: &[&str]) -> Result<String, DigestError> {
    let mut files = Vec::new();
    for path in paths {
        find(root, Path::new(path), &mut files)
            .map_err(|source| DigestError { path: (*path).to_owned(), source })?;
    }
    // Names with the same separator on all systems have the same order on all systems.
    let mut named: Vec<(String, PathBuf)> =
        files.into_iter().map(|path| (path.to_string_lossy().replace('\\', "/"), root.join(path))).collect();
    named.sort();
    let mut hash = Sha256::new();
    for (name, path) in named {
        let content = fs::read(&path).map_err(|source| DigestError { path: name.clone(), source })?;
        // The lengths separate a name from its content, and a file from the next one.
        for part in [name.as_bytes(), &content] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    Ok(hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Adds all sources at or below a path that is relative to `root`.
fn find(root: &Path, path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if DRAWN.iter().any(|drawn| path == Path::new(drawn)) {
        return Ok(());
    }
    if root.join(path).is_dir() {
        for entry in fs::read_dir(root.join(path))? {
            find(root, &path.join(entry?.file_name()), files)?;
        }
        return Ok(());
    }
    let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let source = path.extension().is_some_and(|ending| SOURCES.iter().any(|known| ending == *known));
    if source && !hidden {
        files.push(path.to_owned());
    } else if !root.join(path).exists() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no such file or folder"));
    }
    Ok(())
}
