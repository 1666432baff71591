//! A file that has a temporary name until its owner claims the final one, which another process may have.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and inode of a file, which stay the same if it is renamed.
type Identity = (u64, u64);

/// A file of this process.
#[derive(Clone, Debug)]
pub struct Claim {
    temporary: PathBuf,
    path: PathBuf,
    identity: Option<Identity>,
}

/// Owner of the final name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This process, or nobody: the file was removed.
    This,
    /// This process has not claimed the name.
    Unclaimed,
    /// Another process has claimed it since.
    Other,
}

impl Claim {
    /// The file `temporary`, which exists, and its final name.
    pub fn pending(temporary: PathBuf, path: PathBuf) -> Claim {
        let identity = identity(&temporary);
        Claim { temporary, path, identity }
    }

    /// A file that has its final name.
    pub fn of(path: PathBuf) -> Claim {
        Claim::pending(path.clone(), path)
    }

    /// The final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its final name, in place of the file that has it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn claim(&self) -> io::Result<()> {
        if self.temporary == self.path { Ok(()) } else { fs::rename(&self.temporary, &self.path) }
    }

    /// The owner of the final name.
    pub fn owner(&self) -> Owner {
        let has = |path: &Path| self.identity.is_some() && identity(path) == self.identity;
        match identity(&self.path) {
            _ if has(&self.path) => Owner::This,
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
        match self.owner() {
            Owner::This if identity(&self.path).is_some() => fs::remove_file(&self.path),
            Owner::Unclaimed => fs::remove_file(&self.temporary),
            Owner::This | Owner::Other => Ok(()),
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    fs::symlink_metadata(path).ok().map(|of| (of.dev(), of.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_of_a_name_removes_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let [first, second, path] = ["first", "second", "path"].map(|name| dir.path().join(name));
        let make = |temporary: &Path| {
            fs::write(temporary, "").unwrap();
            Claim::pending(temporary.to_owned(), path.clone())
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
}
