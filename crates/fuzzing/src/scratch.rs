//! Files for targets whose code under test opens files by name.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Where scratch folders are made, where this variable is set. A fuzzer is often killed, and then nobody removes them;
/// whoever starts one names a folder here and removes it afterwards.
pub const VARIABLE: &str = "GIVEWAY_FUZZ_SCRATCH";

thread_local! {
    static FOLDER: TempDir = make();
}

fn make() -> TempDir {
    let memory = Path::new("/dev/shm");
    let base = match std::env::var_os(VARIABLE) {
        Some(folder) => PathBuf::from(folder),
        // Files in memory make some targets ten times as fast.
        None if memory.is_dir() => memory.to_owned(),
        None => std::env::temp_dir(),
    };
    let made = tempfile::Builder::new().prefix("giveway-fuzzing-").tempdir_in(&base);
    made.unwrap_or_else(|error| panic!("no folder can be made in {}: {error}", base.display()))
}

/// A folder of this thread's own.
pub fn folder() -> PathBuf {
    FOLDER.with(|folder| folder.path().to_owned())
}

/// Writes a file into [`folder`] and returns its path.
///
/// # Panics
/// When the file cannot be written: nothing can be tested then.
pub fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = folder().join(name);
    if let Err(error) = std::fs::write(&path, content) {
        panic!("{} cannot be written: {error}", path.display());
    }
    path
}
