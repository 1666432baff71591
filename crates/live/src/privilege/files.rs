//! The folders in which a thread may open files (Landlock).

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use landlock::{ABI, Access, AccessFs, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus};

use crate::error::LiveError;

/// A folder that was opened before privileges were dropped.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder with O_PATH. Later access depends on the rights of the user at that time to this
    /// folder, but not to the folders above it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        Ok(Folder(file.into()))
    }
}

/// Restricts this thread to reading, in these folders (Landlock, landlock(7)).
pub(super) fn restrict(folders: &[Folder]) -> Result<(), LiveError> {
    let failed = |error: landlock::RulesetError| LiveError::privilege("", error);
    let all = AccessFs::from_all(ABI::V5);
    let mut ruleset =
        Ruleset::default().handle_access(all).and_then(|rules| rules.create()).map_err(failed)?;
    for Folder(folder) in folders {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        ruleset = ruleset.add_rule(PathBeneath::new(folder, read)).map_err(failed)?;
    }
    match ruleset.restrict_self().map_err(failed)?.ruleset {
        RulesetStatus::NotEnforced => Err(LiveError::NoLandlock),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}
