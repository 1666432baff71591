//! Files for targets whose code under test opens files by name.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Environment variable with the folder for scratch folders. A killed fuzzer leaves its scratch folder, so
/// the program that starts a fuzzer sets this variable, and removes the folder afterwards.
pub const VARIABLE: &str = "GIVEWAY_FUZZ_SCRATCH";

thread_local! {
    static FOLDER: TempDir = create();
}

fn create() -> TempDir {
    let memory = Path::new("/dev/shm");
    let base = match std::env::var_os(VARIABLE) {
        Some(folder) => PathBuf::from(folder),
        // Files in memory make some targets ten times as fast.
        None if memory.is_dir() => memory.to_owned(),
        None => std::env::temp_dir(),
    };
    let made = tempfile::Builder::new().prefix("giveway-fuzzing-").tempdir_in(&base);
    made.unwrap_or_else(|error| panic!("cannot create a folder in {}: {error}", base.display()))
}

/// Scratch folder of the calling thread.
pub fn folder() -> PathBuf {
    FOLDER.with(|folder| folder.path().to_owned())
}

/// Writes a file into [`folder`] and returns its path.
///
/// # Panics
/// If the file cannot be written.
pub fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = folder().join(name);
    if let Err(error) = std::fs::write(&path, content) {
        panic!("{} cannot be written: {error}", path.display());
    }
    path
}
