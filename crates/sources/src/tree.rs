//! The digest of sources. The build script uses this file, and so do the tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// What results of simulations depend on: files, and folders with all sources in them. `Cargo.lock` says which versions of
/// libraries took part. A report does not change results, so the parts of `record` that draw are left out.
pub const SIMULATION: &[&str] = &[
    "Cargo.lock",
    "crates/capture/src",
    "crates/disciplines/src",
    "crates/measure/src",
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

/// What measurements on a test bed depend on.
pub const TESTBED: &[&str] = &[
    "Cargo.lock",
    "crates/capture/src",
    "crates/control/src",
    "crates/disciplines/src",
    "crates/kernel/src",
    "crates/kernel-plan/src",
    "crates/live/src",
    "crates/measure/src",
    "crates/papers/src",
    "crates/qdisc/src",
    "crates/record/src",
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

/// Left out: they only draw and print.
const DRAWN: &[&str] =
    &["crates/record/src/report", "crates/record/src/report.rs", "crates/measure/src/terminal.rs"];

/// The endings of sources: what an editor leaves beside them does not count.
const SOURCES: &[&str] = &["rs", "c", "h", "lock", "toml"];

/// The first 64 bits of a SHA-256 over the names and contents of all sources below these paths, as 16 hexadecimal digits.
///
/// # Errors
/// When one cannot be read; the message names it.
pub fn digest(root: &Path, paths: &[&str]) -> Result<String, String> {
    let mut files = Vec::new();
    for path in paths {
        find(root, Path::new(path), &mut files).map_err(|error| format!("{path}: {error}"))?;
    }
    // As text with one separator: an order that does not depend on the system.
    let mut named: Vec<(String, PathBuf)> =
        files.into_iter().map(|path| (path.to_string_lossy().replace('\\', "/"), root.join(path))).collect();
    named.sort();
    let mut hash = Sha256::new();
    for (name, path) in named {
        let content = fs::read(&path).map_err(|error| format!("{name}: {error}"))?;
        // With their lengths in front, so that the end of one cannot be taken for the beginning of the next.
        for part in [name.as_bytes(), &content] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    Ok(hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// All sources at or below a path, which is relative to `root`.
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
        return Err(io::Error::new(io::ErrorKind::NotFound, "it is not there"));
    }
    Ok(())
}
