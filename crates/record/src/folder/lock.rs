//! One process writes a run folder at a time.
//!
//! The lock is an advisory lock of the system (flock(2) on Linux) on the file `.giveway.lock` in the folder. It ends with the
//! process that has it, however that ends, so nobody has to clean up. While it is held the file says who holds it; the
//! file itself stays, since removing a lock file opens a gap between two who want it.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, Utc};

use super::disk::{make_dir, write_error};
use super::error::FolderError;

/// The file that is locked.
pub const LOCK: &str = ".giveway.lock";

/// How often somebody who finds the folder locked looks for the name of who holds the lock. It is written right after
/// the lock is taken.
const LOOKS: u32 = 10_000;

/// The right to write a folder. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Locks a folder, which is made if it is not there.
    ///
    /// # Errors
    /// [`FolderError::Busy`] when another process has the lock, [`FolderError::Write`] when there can be none.
    pub fn take(dir: &Path) -> Result<Lock, FolderError> {
        make_dir(dir)?;
        let path = dir.join(LOCK);
        let failed = |source| write_error(&path, source);
        let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        for _ in 0..LOOKS {
            match file.try_lock() {
                Ok(()) => {
                    sign(&file).map_err(failed)?;
                    return Ok(Lock { file });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {
                    // Somebody who only asks has it for a moment, and shares it.
                    let asked = file.try_lock_shared().is_ok();
                    if asked {
                        file.unlock().map_err(failed)?;
                    } else if let Some(holder) = signed(&path) {
                        return Err(FolderError::Busy { path: dir.to_owned(), holder });
                    }
                    std::thread::yield_now();
                }
            }
        }
        Err(FolderError::Busy { path: dir.to_owned(), holder: "another process".to_owned() })
    }

    /// Who is writing a folder, if anybody is. Changes nothing, and works where the folder cannot be written.
    pub(crate) fn holder(dir: &Path) -> Option<String> {
        let path: PathBuf = dir.join(LOCK);
        // An empty file is a lock that nobody has. To test the lock would be to take it for a moment, and a writer that
        // comes then would be sent away: so it is only tested to tell a process that runs from one that was killed.
        let holder = signed(&path)?;
        let file = File::open(&path).ok()?;
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then_some(holder)
    }
}

/// Empties the file. The lock itself ends when the file is closed.
impl Drop for Lock {
    fn drop(&mut self) {
        // What is left in it then is only read by who finds it locked.
        let _ = self.file.set_len(0);
    }
}

/// Writes who has the lock and since when. The time that the system gives to the file is the clock.
fn sign(mut file: &File) -> std::io::Result<()> {
    file.set_len(0)?;
    write!(file, "process {}", std::process::id())?;
    let since = when(file.metadata()?.modified()?);
    write!(file, ", since {since}")
}

/// What the holder has written, if anything.
fn signed(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    // Half of it is there for a moment.
    text.ends_with(" UTC").then_some(text)
}

/// A time for people.
pub(crate) fn when(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}
