//! A file with a temporary name until its owner claims the final one, which another process may have.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{AtFlags, OFlag, open, renameat};
use nix::sys::stat::{FileStat, Mode, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Device and inode of a file in one number, which stays the same if the file is renamed. No file has 0.
type Identity = u128;

/// A name in a folder that is open. Other processes may replace the folders above by links; the name is then
/// still in the same folder, and a link at the name itself is never followed.
#[derive(Clone, Debug)]
pub struct Place {
    folder: Arc<OwnedFd>,
    name: OsString,
}

impl Place {
    /// The place of a path.
    ///
    /// # Errors
    /// The error of the system if the folder cannot be opened, or the path has no name.
    pub fn of(path: &Path) -> io::Result<Place> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        Ok(Place { folder: Arc::new(folder), name })
    }

    /// Another name in the same folder.
    pub fn beside(&self, name: &OsStr) -> Place {
        Place { folder: Arc::clone(&self.folder), name: name.to_owned() }
    }

    /// The name.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// A path for system calls that take no descriptor of a folder.
    pub fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.folder.as_raw_fd().to_string()).join(&self.name)
    }

    /// The attributes of the file; `None` if there is none.
    pub fn status(&self) -> Option<FileStat> {
        fstatat(&*self.folder, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW).ok()
    }

    /// Removes the file.
    ///
    /// # Errors
    /// The error of the system.
    pub fn remove(&self) -> io::Result<()> {
        Ok(unlinkat(&*self.folder, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir)?)
    }

    fn identity(&self) -> Option<Identity> {
        self.status().map(|of| u128::from(of.st_dev) << 64 | u128::from(of.st_ino))
    }
}

/// Length of the bytes that name a file.
pub const IDENTITY: usize = size_of::<Identity>();

/// A file of this process.
#[derive(Clone, Debug)]
pub struct Claim {
    temporary: Place,
    place: Place,
    /// The final name in messages.
    path: PathBuf,
    identity: Option<Identity>,
}

/// Owner of the final name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This process, or none: the file was removed.
    This,
    /// This process has not claimed the name.
    Unclaimed,
    /// Another process has claimed it since.
    Other,
}

impl Claim {
    /// A file that will be created as `temporary`, and its final place, in the same file system. If these are
    /// not equal, no other process creates a file with the temporary name.
    pub fn planned(temporary: Place, place: Place, path: PathBuf) -> Claim {
        Claim { temporary, place, path, identity: None }
    }

    /// Remembers the file that was created with the temporary name.
    pub fn created(&mut self) {
        self.identity = self.temporary.identity();
    }

    /// The file, for [`Claim::learn`] in another process.
    pub fn identity(&self) -> [u8; IDENTITY] {
        self.identity.unwrap_or_default().to_ne_bytes()
    }

    /// Remembers the file that [`Claim::identity`] of another process names. If that process was killed
    /// before it reported one, there is none, or zeros.
    pub fn learn(&mut self, identity: Option<[u8; IDENTITY]>) {
        self.identity = identity.map(Identity::from_ne_bytes).filter(|identity| *identity != 0);
    }

    /// The name with which the file is created.
    pub fn temporary(&self) -> &Place {
        &self.temporary
    }

    /// The final name, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its final name, in place of the file that has it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn claim(&self) -> io::Result<()> {
        let (from, to) = (&self.temporary, &self.place);
        if from.name == to.name {
            return Ok(());
        }
        Ok(renameat(&*from.folder, from.name.as_os_str(), &*to.folder, to.name.as_os_str())?)
    }

    /// The owner of the final name.
    pub fn owner(&self) -> Owner {
        let has = |place: &Place| self.identity.is_some() && place.identity() == self.identity;
        match self.place.identity() {
            _ if has(&self.place) => Owner::This,
            _ if has(&self.temporary) => Owner::Unclaimed,
            None => Owner::This,
            Some(_) => Owner::Other,
        }
    }

    /// Removes the file, unless another process has claimed its name.
    ///
    /// # Errors
    /// The error of the system.
    pub fn remove(&self) -> io::Result<()> {
        // Its process was killed before anybody knew the file.
        if self.identity.is_none() && self.temporary.name != self.place.name {
            return match self.temporary.remove() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            };
        }
        match self.owner() {
            Owner::This if self.place.status().is_some() => self.place.remove(),
            Owner::Unclaimed => self.temporary.remove(),
            Owner::This | Owner::Other => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_the_owner_of_a_name_removes_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let [first, second, path] = ["first", "second", "path"].map(|name| dir.path().join(name));
        let make = |temporary: &Path| {
            fs::write(temporary, "").unwrap();
            let [from, to] = [temporary, &path].map(|path| Place::of(path).unwrap());
            let mut claim = Claim::planned(from, to, path.clone());
            claim.created();
            claim
        };
        let earlier = make(&first);
        earlier.claim().unwrap();
        assert_eq!((earlier.owner(), first.exists()), (Owner::This, false));
        let later = make(&second);
        assert_eq!(later.owner(), Owner::Unclaimed);
        later.claim().unwrap();
        assert_eq!((earlier.owner(), later.owner()), (Owner::Other, Owner::This));
        earlier.remove().unwrap();
        assert!(path.exists(), "it belongs to the later process");
        later.remove().unwrap();
        assert_eq!((path.exists(), later.owner()), (false, Owner::This));
        later.remove().unwrap();
        let given_up = make(&second);
        given_up.remove().unwrap();
        assert!(!second.exists());
    }

    #[test]
    fn a_file_is_removed_although_its_process_was_killed_before_it_reported_it() {
        let dir = tempfile::tempdir().unwrap();
        let [temporary, path] = ["temporary", "path"].map(|name| dir.path().join(name));
        let place = |path: &Path| Place::of(path).unwrap();
        let planned = || Claim::planned(place(&temporary), place(&path), path.clone());
        let [mut bridge, mut cleanup] = [planned(), planned()];
        fs::write(&path, "of another process").unwrap();
        cleanup.remove().unwrap();
        for reported in [None, Some(bridge.identity())] {
            fs::write(&temporary, "").unwrap();
            cleanup.learn(reported);
            cleanup.remove().unwrap();
            assert!(!temporary.exists() && path.exists());
        }
        fs::write(&temporary, "").unwrap();
        bridge.created();
        bridge.claim().unwrap();
        cleanup.learn(Some(bridge.identity()));
        assert_eq!(cleanup.owner(), Owner::This);
        cleanup.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_is_replaced_by_a_link_keeps_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let [folder, moved, other] = ["folder", "moved", "other"].map(|name| dir.path().join(name));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("name"), "foreign").unwrap();
        fs::write(folder.join("name"), "").unwrap();
        let place = Place::of(&folder.join("name")).unwrap();
        fs::rename(&folder, &moved).unwrap();
        std::os::unix::fs::symlink(&other, &folder).unwrap();
        place.remove().unwrap();
        assert!(!moved.join("name").exists() && other.join("name").exists());
    }
}
