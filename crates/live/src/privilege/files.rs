//! The folders in which a thread may open files (Landlock).

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use giveway_files::Dir;
use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
};

use crate::error::LiveError;

/// Access rights of a watching thread below a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Read files and list folders.
    Read,
    /// Also create, change, rename and remove files and folders.
    Write,
}

/// A folder that was opened before privileges were dropped.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    rights: Rights,
}

impl Folder {
    /// Opens a folder with O_PATH. Later access depends on the rights of the user at that time to this
    /// folder, but not to the folders above it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(path: &Path, rights: Rights) -> io::Result<Folder> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        Ok(Folder { fd: file.into(), rights })
    }

    /// A folder that is open already.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn of(dir: &Dir, rights: Rights) -> io::Result<Folder> {
        Ok(Folder { fd: dir.as_fd().try_clone_to_owned()?, rights })
    }

    /// Descriptor of the folder. After the folder was passed to [`super::confine`], it stays open until the
    /// process ends.
    pub fn descriptor(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Restricts this thread to files below these folders (Landlock, landlock(7)).
pub(super) fn restrict(folders: &[Folder]) -> Result<(), LiveError> {
    let failed = |error: landlock::RulesetError| LiveError::privilege("", error);
    let all = AccessFs::from_all(ABI::V5);
    let mut ruleset =
        Ruleset::default().handle_access(all).and_then(|rules| rules.create()).map_err(failed)?;
    for folder in folders {
        let rights: BitFlags<AccessFs> = match folder.rights {
            Rights::Read => AccessFs::ReadFile | AccessFs::ReadDir,
            Rights::Write => {
                AccessFs::ReadFile
                    | AccessFs::ReadDir
                    | AccessFs::WriteFile
                    | AccessFs::Truncate
                    | AccessFs::MakeReg
                    | AccessFs::MakeDir
                    | AccessFs::RemoveFile
                    | AccessFs::RemoveDir
                    | AccessFs::Refer
            }
        };
        ruleset = ruleset.add_rule(PathBeneath::new(&folder.fd, rights)).map_err(failed)?;
    }
    match ruleset.restrict_self().map_err(failed)?.ruleset {
        RulesetStatus::NotEnforced => Err(LiveError::NoLandlock),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}
