//! Atomic replacement of files and folders.

use std::fs::{File, TryLockError};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use giveway_files::{Dir, Kind};

use super::error::FolderError;
use crate::seal::Digest;

/// Access rights of new files, less those that umask(2) removes.
pub(crate) const RIGHTS: u32 = 0o666;
/// Access rights of new folders, less those that umask(2) removes.
pub(crate) const FOLDER_RIGHTS: u32 = 0o777;

/// A file that is written next to its place and then renamed. The previous file stays until then, and a crash
/// leaves at most the hidden file `.NAME.tmp`, which the next attempt reuses.
///
/// The hidden file is locked, so that two processes do not write to it at the same time.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    dir: Dir,
    /// The hidden name and the final one, in the folder.
    beside: PathBuf,
    name: PathBuf,
    place: PathBuf,
    kept: bool,
}

impl NewFile {
    /// Opens the file next to `place`, empty.
    ///
    /// # Errors
    /// If the file cannot be created, if the place is not a file, or if another process is writing it.
    pub fn begin(place: &Path) -> io::Result<NewFile> {
        let name = place.file_name().ok_or_else(no_file)?;
        NewFile::begin_in(&Dir::open(place.parent().unwrap_or(Path::new("")))?, Path::new(name))
    }

    /// Opens the file next to the one of this name in a folder.
    pub(crate) fn begin_in(dir: &Dir, name: &Path) -> io::Result<NewFile> {
        // A link is replaced, and what it leads to stays.
        if !matches!(dir.kind(name)?, None | Some(Kind::File | Kind::Link)) {
            return Err(no_file());
        }
        let beside = beside(name, "tmp");
        loop {
            let file = dir.write(&beside, RIGHTS)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing it"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The previous owner of the lock may have renamed the file after it was opened here. Then the
            // loop opens a new one.
            if dir.holds(&beside, &file)? {
                let (dir, name, place) = (dir.clone(), name.to_owned(), dir.path().join(name));
                let new = NewFile { file, dir, beside, name, place, kept: false };
                new.clear()?;
                return Ok(new);
            }
        }
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The final place of the file.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Empties the file, to write it from the beginning.
    ///
    /// # Errors
    /// The error of the system.
    pub fn clear(&self) -> io::Result<()> {
        self.file.set_len(0)?;
        (&self.file).rewind()
    }

    /// Syncs the content to the disk and renames the file to its place.
    ///
    /// # Errors
    /// The error of the system; then the previous file is still in place.
    pub fn keep(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        self.dir.rename(&self.beside, &self.name)?;
        self.kept = true;
        self.dir.sync()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept {
            // The next attempt reuses a file that cannot be removed now.
            let _ = self.dir.remove_file(&self.beside);
        }
    }
}

fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "it exists and is not a file")
}

/// Replaces a file, atomically.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<Digest, FolderError> {
    put(NewFile::begin(path), content).map_err(|source| write_error(path, source))
}

/// Replaces a file in a folder, atomically. `name` is its path inside the folder. Returns the digest of the
/// content.
///
/// # Errors
/// If it cannot be written; then the previous file is still in place.
pub fn replace_in(dir: &Dir, name: &str, content: &[u8]) -> Result<Digest, FolderError> {
    let written = put(NewFile::begin_in(dir, Path::new(name)), content);
    written.map_err(|source| write_error(&dir.path().join(name), source))
}

fn put(new: io::Result<NewFile>, content: &[u8]) -> io::Result<Digest> {
    let new = new?;
    new.file().write_all(content)?;
    new.keep()?;
    Ok(Digest::of_bytes(content))
}

/// A hidden name next to `path`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().expect("a written file has a name").to_string_lossy();
    path.with_file_name(format!(".{name}.{ending}"))
}

/// Renames a finished folder to its place. An outdated folder is moved away first, because a rename does not
/// replace a folder with files in it.
pub(crate) fn exchange(dir: &Dir, from: &Path, to: &Path) -> Result<(), FolderError> {
    let outdated = beside(to, "old");
    let exchange = || {
        dir.remove_all(&outdated)?;
        match dir.rename(to, &outdated) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        dir.rename(from, to)?;
        dir.remove_all(&outdated)?;
        dir.enter(to.parent().unwrap_or(Path::new("")))?.sync()
    };
    exchange().map_err(|source| write_error(&dir.path().join(to), source))
}

/// Writes a file in a folder that is not visible yet, and syncs it to the disk.
pub(crate) fn write_file(dir: &Dir, name: &str, content: &[u8]) -> Result<(), FolderError> {
    let write = || {
        let mut file = dir.new_file(name, RIGHTS)?;
        file.write_all(content)?;
        file.sync_all()
    };
    write().map_err(|source| write_error(&dir.path().join(name), source))
}

pub(crate) fn write_error(path: &Path, source: io::Error) -> FolderError {
    FolderError::Write { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The hidden file of another process may be a link that leads anywhere.
    #[test]
    #[cfg(unix)]
    fn a_link_beside_the_place_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (place, other) = (dir.path().join("page.html"), dir.path().join("other"));
        fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, dir.path().join(".page.html.tmp")).unwrap();
        let error = replace(&place, b"page").unwrap_err();
        assert_eq!(error.to_string(), format!("cannot write {}", place.display()));
        let source = std::error::Error::source(&error).expect("it has a cause").to_string();
        assert!(source.contains(".page.html.tmp is a link, which is not followed"), "{source}");
        assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
    }

    #[test]
    fn two_writers_of_one_place_do_not_mix() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("page.html");
        fs::write(&place, "old").unwrap();
        let first = NewFile::begin(&place).unwrap();
        first.file().write_all(b"first").unwrap();
        let second = NewFile::begin(&place).unwrap_err();
        assert_eq!(second.to_string(), "another process is writing it");
        assert_eq!(fs::read_to_string(&place).unwrap(), "old", "until it is whole");
        first.keep().unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "first");

        // The file of a killed writer is reused, and a dropped writer removes its file.
        fs::write(dir.path().join(".page.html.tmp"), "a half-written page, longer than the next").unwrap();
        let third = NewFile::begin(&place).unwrap();
        third.file().write_all(b"third").unwrap();
        third.keep().unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "third");
        drop(NewFile::begin(&place).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
