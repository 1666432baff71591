//! A folder that is open.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

use crate::input;
use crate::walk::{FOLDER, Way, is_link as leads, walk};

/// A folder that is open.
///
/// Its entries are found by the descriptor of the folder, so the folder cannot be exchanged for another one.
/// Paths inside it have plain names only, and no component may be a link, even if another user puts one there
/// in the meantime.
#[derive(Clone, Debug)]
pub struct Dir {
    fd: Arc<OwnedFd>,
    path: PathBuf,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A link, which is not followed.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

/// The error for a link inside a folder.
#[derive(Debug, thiserror::Error)]
#[error("{} is a link, which is not followed here: remove it, or name another place", .0.display())]
struct Link(PathBuf);

/// True for the error of a path inside a [`Dir`] that contains a link.
pub fn is_link(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<Link>())
}

impl Dir {
    /// Opens a folder. Root follows links of root only.
    ///
    /// # Errors
    /// The error of the system, or `PermissionDenied` for such a link.
    pub fn open(path: &Path) -> io::Result<Dir> {
        let fd = match geteuid().is_root() {
            true => walk(path, None, Way::LinksOfRoot)?,
            false => openat(AT_FDCWD, named(path), FOLDER, Mode::empty())?,
        };
        Ok(Dir::of(fd, path))
    }

    /// Opens a folder as [`Dir::open`] does, and creates it and those above it if they are missing.
    ///
    /// # Errors
    /// As [`Dir::open`].
    pub fn create(path: &Path) -> io::Result<Dir> {
        if geteuid().is_root() {
            return Ok(Dir::of(walk(path, Some(Mode::from_bits_truncate(0o777)), Way::LinksOfRoot)?, path));
        }
        std::fs::create_dir_all(named(path))?;
        Dir::open(path)
    }

    /// Opens a folder if only root can change a name on the way to it and in it.
    ///
    /// # Errors
    /// `PermissionDenied` if others can; otherwise the error of the system.
    pub fn open_of_root(path: &Path) -> io::Result<Dir> {
        Ok(Dir::of(walk(path, None, Way::FoldersOfRoot)?, path))
    }

    /// Opens a folder as [`Dir::open_of_root`] does, and creates it and those above it if they are missing.
    ///
    /// # Errors
    /// As [`Dir::open_of_root`].
    pub fn create_of_root(path: &Path) -> io::Result<Dir> {
        Ok(Dir::of(walk(path, Some(Mode::from_bits_truncate(0o755)), Way::FoldersOfRoot)?, path))
    }

    /// The path of the folder when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder at a path inside this one.
    ///
    /// # Errors
    /// The error of the system; an error for which [`is_link`] is true if a component is a link.
    pub fn enter(&self, inside: impl AsRef<Path>) -> io::Result<Dir> {
        let inside = inside.as_ref();
        let mut dir = self.clone();
        for name in names(inside)? {
            dir = dir.step(name)?;
        }
        Ok(dir)
    }

    /// The folder at a path inside this one. Missing folders are created, with these access rights, less
    /// those that umask(2) removes.
    ///
    /// # Errors
    /// As [`Dir::enter`].
    pub fn make(&self, inside: impl AsRef<Path>, rights: u32) -> io::Result<Dir> {
        let mut dir = self.clone();
        for name in names(inside.as_ref())? {
            match mkdirat(&dir, name, Mode::from_bits_truncate(rights)) {
                Ok(()) | Err(Errno::EEXIST) => dir = dir.step(name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(dir)
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// As [`Dir::enter`], and for everything but a file.
    pub fn file(&self, inside: impl AsRef<Path>) -> io::Result<File> {
        self.regular(inside.as_ref(), OFlag::O_RDONLY, Mode::empty())
    }

    /// Reads a regular file.
    ///
    /// # Errors
    /// As [`Dir::file`].
    pub fn read(&self, inside: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(inside)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Opens a regular file for writing, with the content that it has. A missing file is created, with these
    /// rights, less those that umask(2) removes.
    ///
    /// # Errors
    /// As [`Dir::file`], and for a file with another name as well.
    pub fn write(&self, inside: impl AsRef<Path>, rights: u32) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT;
        let file = self.regular(inside.as_ref(), flags, Mode::from_bits_truncate(rights))?;
        // A second name may be anywhere, and its owner did not ask for a change.
        match std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) {
            0 | 1 => Ok(file),
            _ => Err(io::Error::other("the file has a second name (a hard link): remove it")),
        }
    }

    /// Creates a file for writing, in place of a file or a link with the name. It gets the same rights as
    /// with [`Dir::write`].
    ///
    /// # Errors
    /// As [`Dir::enter`].
    pub fn new_file(&self, inside: impl AsRef<Path>, rights: u32) -> io::Result<File> {
        if matches!(self.kind(&inside)?, Some(Kind::File | Kind::Link)) {
            self.remove_file(&inside)?;
        }
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        self.regular(inside.as_ref(), flags, Mode::from_bits_truncate(rights))
    }

    /// True if this file has the name.
    ///
    /// # Errors
    /// As [`Dir::enter`].
    pub fn holds(&self, inside: impl AsRef<Path>, file: &File) -> io::Result<bool> {
        let (dir, name) = self.parent(inside.as_ref())?;
        let identity = |about: FileStat| (about.st_dev, about.st_ino);
        match fstatat(&dir, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(about) => Ok(identity(about) == identity(fstat(file)?)),
            Err(Errno::ENOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The kind of an entry; `None` if there is none.
    ///
    /// # Errors
    /// As [`Dir::enter`], for the folders above the entry.
    pub fn kind(&self, inside: impl AsRef<Path>) -> io::Result<Option<Kind>> {
        let found = self.parent(inside.as_ref()).and_then(|(dir, name)| {
            let about = fstatat(&dir, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
            Ok(match SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT {
                SFlag::S_IFREG => Kind::File,
                SFlag::S_IFDIR => Kind::Folder,
                SFlag::S_IFLNK => Kind::Link,
                _ => Kind::Other,
            })
        });
        match found {
            Ok(kind) => Ok(Some(kind)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The entries, in the order of their names.
    ///
    /// # Errors
    /// The error of the system.
    pub fn entries(&self) -> io::Result<Vec<(OsString, Kind)>> {
        use std::os::unix::ffi::OsStrExt;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut entries = Vec::new();
        for entry in dir::Dir::openat(self, ".", flags, Mode::empty())? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            // An entry that was removed in the meantime is none.
            if name != "."
                && name != ".."
                && let Some(kind) = self.kind(&name)?
            {
                entries.push((name, kind));
            }
        }
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(entries)
    }

    /// Removes a file or a link, if it exists.
    ///
    /// # Errors
    /// As [`Dir::enter`].
    pub fn remove_file(&self, inside: impl AsRef<Path>) -> io::Result<()> {
        self.unlink(inside.as_ref(), UnlinkatFlags::NoRemoveDir)
    }

    /// Removes an empty folder, if it exists.
    ///
    /// # Errors
    /// As [`Dir::enter`].
    pub fn remove_dir(&self, inside: impl AsRef<Path>) -> io::Result<()> {
        self.unlink(inside.as_ref(), UnlinkatFlags::RemoveDir)
    }

    /// Removes a folder with its content, if it exists. A link is removed itself.
    ///
    /// # Errors
    /// As [`Dir::enter`].
    pub fn remove_all(&self, inside: impl AsRef<Path>) -> io::Result<()> {
        let inside = inside.as_ref();
        match self.kind(inside)? {
            None => Ok(()),
            Some(Kind::Folder) => {
                let dir = self.enter(inside)?;
                dir.entries()?.iter().try_for_each(|(name, _)| dir.remove_all(name))?;
                self.remove_dir(inside)
            }
            Some(_) => self.remove_file(inside),
        }
    }

    /// Renames an entry, in place of a file or an empty folder with the name.
    ///
    /// # Errors
    /// As [`Dir::enter`].
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let ((old, from), (new, to)) = (self.parent(from.as_ref())?, self.parent(to.as_ref())?);
        Ok(renameat(&old, from, &new, to)?)
    }

    /// Writes the names of the entries to the disk.
    ///
    /// # Errors
    /// The error of the system.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        File::from(openat(self, ".", flags, Mode::empty())?).sync_all()
    }

    fn of(fd: OwnedFd, path: &Path) -> Dir {
        Dir { fd: Arc::new(fd), path: path.to_owned() }
    }

    /// The folder of this name in this one.
    fn step(&self, name: &OsStr) -> io::Result<Dir> {
        match openat(self, name, FOLDER | OFlag::O_NOFOLLOW, Mode::empty()) {
            Ok(fd) => Ok(Dir::of(fd, &self.path.join(name))),
            Err(error) => Err(self.refused(name, error)),
        }
    }

    fn regular(&self, inside: &Path, flags: OFlag, mode: Mode) -> io::Result<File> {
        let (dir, name) = self.parent(inside)?;
        // A pipe would wait for its other end.
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
        let file = File::from(openat(&dir, name, flags, mode).map_err(|error| dir.refused(name, error))?);
        input::refuse(file.metadata()?.file_type())?;
        Ok(file)
    }

    fn unlink(&self, inside: &Path, flag: UnlinkatFlags) -> io::Result<()> {
        match self.parent(inside).and_then(|(dir, name)| Ok(unlinkat(&dir, name, flag)?)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The folder of an entry, and the name of the entry in it.
    fn parent<'a>(&self, inside: &'a Path) -> io::Result<(Dir, &'a OsStr)> {
        let mut names = names(inside)?;
        let last = names.pop().ok_or_else(|| leads_outside(inside))?;
        let dir = names.into_iter().try_fold(self.clone(), |dir, name| dir.step(name))?;
        Ok((dir, last))
    }

    /// The error of an entry that cannot be opened.
    fn refused(&self, name: &OsStr, error: Errno) -> io::Error {
        let about = fstatat(self, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        match error {
            Errno::ENOTDIR | Errno::ELOOP | Errno::EMLINK if about.is_ok_and(|about| leads(&about)) => {
                io::Error::other(Link(self.path.join(name)))
            }
            // A socket, or a pipe without a reader.
            Errno::ENXIO => {
                io::Error::new(io::ErrorKind::InvalidInput, "it is a socket or a pipe, not a file")
            }
            error => error.into(),
        }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Dir {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// An empty path is the current folder.
fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// The names of a path inside a folder.
fn names(inside: &Path) -> io::Result<Vec<&OsStr>> {
    let plain = |component| match component {
        Component::Normal(name) => Ok(name),
        _ => Err(leads_outside(inside)),
    };
    inside.components().map(plain).collect()
}

fn leads_outside(inside: &Path) -> io::Error {
    let text = format!("\"{}\" is not a path inside the folder", inside.display());
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder, and one outside of it with a file and a folder.
    fn two() -> (tempfile::TempDir, Dir, PathBuf) {
        let temporary = tempfile::tempdir().unwrap();
        let (own, outside) = (temporary.path().join("own"), temporary.path().join("outside"));
        fs::create_dir_all(outside.join("deep")).unwrap();
        fs::write(outside.join("file"), "theirs").unwrap();
        let dir = Dir::create(&own).unwrap();
        (temporary, dir, outside)
    }

    #[test]
    fn no_component_of_a_path_inside_is_a_link() {
        let (_temporary, dir, outside) = two();
        symlink(&outside, dir.path().join("trials")).unwrap();
        symlink(outside.join("file"), dir.path().join("table")).unwrap();
        let refused = [
            dir.enter("trials").map(drop),
            dir.enter("trials/deep").map(drop),
            dir.make("trials/new", 0o777).map(drop),
            dir.file("trials/file").map(drop),
            dir.file("table").map(drop),
            dir.write("table", 0o644).map(drop),
            dir.write("trials/new", 0o644).map(drop),
            dir.kind("trials/file").map(drop),
            dir.remove_file("trials/file"),
            dir.remove_dir("trials/deep"),
            dir.remove_all("trials/deep"),
            dir.rename("trials/file", "mine"),
        ];
        for (number, refused) in refused.into_iter().enumerate() {
            let error = refused.unwrap_err();
            assert!(is_link(&error), "{number}: {error}");
        }
        assert_eq!(dir.kind("trials").unwrap(), Some(Kind::Link));
        // The link itself may go.
        dir.remove_all("trials").unwrap();
        dir.remove_file("table").unwrap();
        assert!(dir.entries().unwrap().is_empty());
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "theirs");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 2);
    }

    #[test]
    fn paths_stay_inside() {
        let (_temporary, dir, outside) = two();
        let absolute = outside.join("file");
        for path in
            [Path::new("../outside/file"), Path::new("a/../../outside/file"), &absolute, Path::new("")]
        {
            assert_eq!(dir.file(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{}", path.display());
        }
    }

    #[test]
    fn files_and_folders_are_made_found_and_removed() {
        let (_temporary, dir, _) = two();
        let deep = dir.make("a/b", 0o777).unwrap();
        io::Write::write_all(&mut deep.write("file", 0o600).unwrap(), b"text").unwrap();
        assert_eq!(dir.read("a/b/file").unwrap(), b"text");
        dir.rename("a/b/file", "a/other").unwrap();
        dir.sync().unwrap();
        let names = |of: &Dir| of.entries().unwrap();
        let expected = [("b".into(), Kind::Folder), ("other".into(), Kind::File)];
        assert_eq!(names(&dir.enter("a").unwrap()), expected);
        assert_eq!(dir.kind("a/none").unwrap(), None);
        assert_eq!(dir.kind("none/none").unwrap(), None);
        assert!(dir.remove_dir("a").is_err(), "it is not empty");
        dir.remove_all("a").unwrap();
        dir.remove_all("a").unwrap();
        assert!(names(&dir).is_empty());
    }

    /// A pipe, and a file with a second name elsewhere, are not written to.
    #[test]
    fn only_files_with_one_name_are_written_or_replaced() {
        let (_temporary, dir, outside) = two();
        fs::hard_link(outside.join("file"), dir.path().join("hard")).unwrap();
        assert!(dir.write("hard", 0o644).unwrap_err().to_string().contains("hard link"));
        nix::unistd::mkfifo(&dir.path().join("pipe"), Mode::S_IRWXU).unwrap();
        assert!(dir.write("pipe", 0o644).unwrap_err().to_string().contains("not a file"));
        assert!(dir.new_file("pipe", 0o644).is_err() && dir.kind("pipe").unwrap() == Some(Kind::Other));
        drop(dir.new_file("hard", 0o644).unwrap());
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "theirs");
        assert!(dir.file("pipe").unwrap_err().to_string().contains("a named pipe, not a file"));
    }

    /// The folder that was opened stays the one, whatever has its name.
    #[test]
    fn an_open_folder_cannot_be_exchanged() {
        let (_temporary, dir, outside) = two();
        let away = dir.path().with_extension("away");
        fs::rename(dir.path(), &away).unwrap();
        symlink(&outside, dir.path()).unwrap();
        dir.write("new", 0o644).unwrap();
        assert!(away.join("new").exists() && !outside.join("new").exists());
        let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
        Dir::create(&by_descriptor.join("newer")).unwrap();
        assert!(away.join("newer").is_dir());
    }

    /// As root: links of other users are not followed on the way to a folder, and links of root are.
    #[test]
    fn root_follows_links_of_root_only() {
        if !geteuid().is_root() {
            println!("skipped: only root has this rule");
            return;
        }
        let (temporary, _, outside) = two();
        let link = temporary.path().join("link");
        symlink("outside", &link).unwrap();
        assert!(Dir::open(&link.join("deep")).is_ok());
        assert!(Dir::create(&link.join("new/newer")).is_ok() && outside.join("new/newer").is_dir());
        std::os::unix::fs::lchown(&link, Some(12_345), None).unwrap();
        for refused in [Dir::open(&link.join("deep")), Dir::create(&link.join("more"))] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("link is a link of user 12345"), "{error}");
        }
        assert!(!outside.join("more").exists());
        // In the folder of another user, any name may change.
        assert!(Dir::open_of_root(&outside).is_ok());
        std::os::unix::fs::chown(&outside, Some(12_345), None).unwrap();
        let denied = Dir::open_of_root(&outside.join("deep")).unwrap_err();
        assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
        assert!(Dir::open_of_root(Path::new("/tmp")).is_err(), "everybody writes there");
    }
}
