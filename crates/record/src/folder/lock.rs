//! One process writes a run folder at a time.
//!
//! The lock is an advisory lock of the system (flock(2) on Linux) on the file `.giveway.lock` in the folder.
//! It ends with its process, even if that is killed, so no clean-up is needed. Meanwhile the file contains
//! the process with the lock. The file is not removed, since two processes could then lock different files.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use giveway_files::Dir;

use super::disk::{RIGHTS, write_error};
use super::error::FolderError;

/// The file that is locked.
pub const LOCK: &str = ".giveway.lock";

/// Number of attempts to read the owner of the lock, which is written right after the lock is taken.
const LOOKS: u32 = 10_000;

/// The lock of a folder for writing. It ends when it is dropped, or with the process.
#[derive(Debug)]
pub struct Lock {
    dir: Dir,
    file: File,
}

impl Lock {
    /// Locks a folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`FolderError::Busy`] if another process has the lock, [`FolderError::Write`] if the lock file cannot
    /// be created.
    pub fn take(dir: &Path) -> Result<Lock, FolderError> {
        let open = Dir::create(dir).map_err(|source| write_error(dir, source))?;
        let failed = |source| write_error(&dir.join(LOCK), source);
        let file = open.write(LOCK, RIGHTS).map_err(failed)?;
        for _ in 0..LOOKS {
            match file.try_lock() {
                Ok(()) => {
                    sign(&file).map_err(failed)?;
                    return Ok(Lock { dir: open, file });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {
                    // A reader that tests the lock has it for a moment, as a shared lock.
                    let asked = file.try_lock_shared().is_ok();
                    if asked {
                        file.unlock().map_err(failed)?;
                    } else if let Some(holder) = signed(&open) {
                        return Err(FolderError::Busy { path: dir.to_owned(), holder });
                    }
                    std::thread::yield_now();
                }
            }
        }
        Err(FolderError::Busy { path: dir.to_owned(), holder: "another process".to_owned() })
    }

    /// The folder that is locked.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The process that is writing a folder, if any. The function changes nothing, and works for read-only
    /// folders.
    pub fn holder(dir: &Path) -> Option<String> {
        let dir = Dir::open(dir).ok()?;
        // An empty file is a free lock. A test takes the lock for a moment, in which a writer would be
        // refused; so it is tested only to distinguish a running process from one that was killed.
        let holder = signed(&dir)?;
        let file = dir.file(LOCK).ok()?;
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then_some(holder)
    }
}

/// Empties the file. The lock itself ends when the file is closed.
impl Drop for Lock {
    fn drop(&mut self) {
        // Readers use the content only if the file is locked, so an error here does no harm.
        let _ = self.file.set_len(0);
    }
}

/// Writes the owner of the lock and the time. The modification time of the file is the clock.
fn sign(mut file: &File) -> std::io::Result<()> {
    file.set_len(0)?;
    write!(file, "process {}", std::process::id())?;
    let since = when(file.metadata()?.modified()?);
    write!(file, ", since {since}")
}

/// The text of the owner of the lock, if it is complete.
fn signed(dir: &Dir) -> Option<String> {
    let text = String::from_utf8(dir.read(LOCK).ok()?).ok()?;
    // The file may be incomplete.
    text.ends_with(" UTC").then_some(text)
}

/// A time as text.
pub(crate) fn when(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}
