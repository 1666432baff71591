//! Atomic replacement of files and folders.

use std::io::{self, Write};
use std::path::Path;

pub(crate) use giveway_files::beside;
use giveway_files::{Dir, NewFile};

use super::error::FolderError;
use crate::seal::Digest;

/// Access rights of new files, less those that umask(2) removes.
pub(crate) const RIGHTS: u32 = NewFile::RIGHTS;
/// Access rights of new folders, less those that umask(2) removes.
pub(crate) const FOLDER_RIGHTS: u32 = 0o777;

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
    new?.put(content)?;
    Ok(Digest::of_bytes(content))
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
}
