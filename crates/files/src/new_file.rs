//! A file that replaces another one, atomically.

use std::fs::{File, TryLockError};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use crate::{Dir, Kind};

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
    /// Access rights of a new file, less those that umask(2) removes.
    pub const RIGHTS: u32 = 0o666;

    /// Opens the file next to `place`, empty.
    ///
    /// # Errors
    /// If the file cannot be created, if the place is not a file, or if another process is writing it.
    pub fn begin(place: &Path) -> io::Result<NewFile> {
        let name = place.file_name().ok_or_else(no_file)?;
        NewFile::begin_in(&Dir::open(place.parent().unwrap_or(Path::new("")))?, Path::new(name))
    }

    /// Opens the file next to the one of this name in a folder.
    ///
    /// # Errors
    /// As for a path.
    pub fn begin_in(dir: &Dir, name: &Path) -> io::Result<NewFile> {
        // A link is replaced, and what it leads to stays.
        if !matches!(dir.kind(name)?, None | Some(Kind::File | Kind::Link)) {
            return Err(no_file());
        }
        let beside = beside(name, "tmp");
        loop {
            let file = dir.write(&beside, NewFile::RIGHTS)?;
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

    /// Writes the whole content, and keeps the file.
    ///
    /// # Errors
    /// The error of the system; then the previous file is still in place.
    pub fn put(self, content: &[u8]) -> io::Result<()> {
        (&self.file).write_all(content)?;
        self.keep()
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

/// A hidden name next to `path`, which has a name: for `a/b` and the ending `tmp` it is `a/.b.tmp`.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().expect("a written file has a name").to_string_lossy();
    path.with_file_name(format!(".{name}.{ending}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
