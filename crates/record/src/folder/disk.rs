//! Atomic replacement of files and folders.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use super::error::FolderError;
use crate::seal::Digest;

/// A file that is written beside its place and then renamed. The previous file stays until then, and a crash
/// leaves at most the hidden file `.NAME.tmp`, which the next attempt reuses.
///
/// The hidden file is locked, so that two processes do not write to it at the same time.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    beside: PathBuf,
    place: PathBuf,
    kept: bool,
}

impl NewFile {
    /// Opens the file beside `place`, empty.
    ///
    /// # Errors
    /// If the file cannot be created, if the place is not a file, or if another process is writing it.
    pub fn begin(place: &Path) -> io::Result<NewFile> {
        let not_a_file = fs::metadata(place).is_ok_and(|there| !there.is_file());
        if not_a_file || place.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists and is not a file"));
        }
        let beside = beside(place, "tmp");
        loop {
            let file = File::options().write(true).create(true).truncate(false).open(&beside)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing it"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The previous owner of the lock may have renamed the file after it was opened here. Then the
            // loop opens a new one.
            if is_at(&file, &beside) {
                let new = NewFile { file, beside, place: place.to_owned(), kept: false };
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
        fs::rename(&self.beside, &self.place)?;
        self.kept = true;
        sync_parent(&self.place)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept {
            // The file may be absent.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |data: &fs::Metadata| (data.dev(), data.ino());
    matches!((file.metadata(), fs::metadata(path)), (Ok(a), Ok(b)) if identity(&a) == identity(&b))
}
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Replaces a file, atomically.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<Digest, FolderError> {
    let written = NewFile::begin(path).and_then(|new| {
        new.file().write_all(content)?;
        new.keep()
    });
    written.map_err(|source| write_error(path, source))?;
    Ok(Digest::of_bytes(content))
}

/// A hidden name next to `path`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().expect("a written file has a name").to_string_lossy();
    path.with_file_name(format!(".{name}.{ending}"))
}

/// Renames a finished folder to its place. An outdated folder is moved away first, because a rename does not
/// replace a folder with files in it.
pub(crate) fn exchange(from: &Path, to: &Path) -> Result<(), FolderError> {
    let outdated = beside(to, "old");
    remove_dir(&outdated)?;
    match fs::rename(to, &outdated) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(write_error(to, source)),
        _ => {}
    }
    fs::rename(from, to).map_err(|source| write_error(to, source))?;
    remove_dir(&outdated)?;
    sync_parent(to).map_err(|source| write_error(to, source))
}

/// Writes a file in a folder that is not visible yet, and syncs it to the disk.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(content)?;
        file.sync_all()
    };
    write().map_err(|source| write_error(path, source))
}

pub(crate) fn make_dir(path: &Path) -> Result<(), FolderError> {
    fs::create_dir_all(path).map_err(|source| write_error(path, source))
}

/// Removes a folder with its content, if it exists.
pub(crate) fn remove_dir(path: &Path) -> Result<(), FolderError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(write_error(path, source)),
        _ => Ok(()),
    }
}

/// Removes a file, if it exists.
pub(crate) fn remove_file(path: &Path) -> Result<(), FolderError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(write_error(path, source)),
        _ => Ok(()),
    }
}

/// Makes a rename durable: syncs the folder of a path.
fn sync_parent(path: &Path) -> io::Result<()> {
    sync_dir(path.parent().unwrap_or(Path::new("")))
}

/// Syncs the entries of a folder to the disk. Only Unix can open a folder for that.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        // A bare file name is in the current folder.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        File::open(path).and_then(|dir| dir.sync_all())?;
    }
    Ok(())
}

pub(crate) fn write_error(path: &Path, source: io::Error) -> FolderError {
    FolderError::Write { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that is always full.
    #[test]
    #[cfg(target_os = "linux")]
    fn an_error_of_a_full_disk_names_the_path() {
        let error = write_file(Path::new("/dev/full"), b"x").unwrap_err();
        assert_eq!(error.to_string(), "cannot write /dev/full");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("No space left on device (os error 28)"));
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
