//! Files and folders that are created before privileges are dropped.
//!
//! # The rule
//! - They are created and opened with the ids of the user that the process becomes, so this user can reach
//!   nothing through them that it cannot reach itself. A thread takes the ids permanently, and ends: no
//!   step can fail that would give the privileges back to the wrong code.
//! - A user may not write in folders of root. There, root creates them and changes their owner by descriptor,
//!   but only if no other user can change a name on the way.
//! - The last component is never a link.
//! - A file that makes room for another one is renamed in the same way ([`Aside`]).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use caps::{CapSet, Capability};
use giveway_files::{Dir, Kind, input};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, faccessat};

use super::{Identity, become_user};

/// Access rights of a folder that only its owner may use.
const PRIVATE: u32 = 0o700;
/// Attempts to open a file that another process creates and removes.
const ATTEMPTS: u32 = 100;

/// A folder for outputs.
#[derive(Debug)]
pub enum OutputFolder {
    /// The user may write in it.
    Writable(Dir),
    /// It belongs to root, and only root can change a name on the way to it. [`give`] changes its owner.
    OfRoot(Dir),
}

/// Runs `work` with the ids of a user, without its supplementary groups and without capabilities.
///
/// # Errors
/// The error of `work`, or of the system if this process may not become the user.
pub fn as_user<T: Send>(user: Identity, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    in_thread(Some(user), work)
}

/// Runs `work` as [`as_user`] does, if this process may become the user; otherwise, and without one, with the
/// ids of this process.
pub(super) fn in_thread_of<T: Send>(
    user: Option<Identity>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    in_thread(user.filter(|_| may_become()), work)
}

fn in_thread<T: Send>(user: Option<Identity>, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let become_and_work = || {
        // Needs CAP_SETPCAP. A thread without it has few capabilities in its bounding set.
        let _ = caps::clear(None, CapSet::Bounding);
        let became = user.map_or(Ok(()), become_user).and_then(|()| {
            // Only a user other than root loses them with the change.
            let sets = [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted];
            sets.into_iter().try_for_each(|set| caps::clear(None, set)).map_err(io::Error::other)
        });
        became.map_err(|error| {
            let whom = user.map_or(String::new(), |user| format!("become user {}, to ", user.user));
            io::Error::other(format!("cannot {whom}create it without privileges: {error}"))
        })?;
        work()
    };
    std::thread::scope(|scope| match scope.spawn(become_and_work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Opens a folder in which `user` writes later, and creates it if it is missing. `None` is the user of this
/// process.
///
/// # Errors
/// `PermissionDenied` if the user may not write there, and root does not create it there.
pub fn folder(path: &Path, user: Option<Identity>) -> io::Result<OutputFolder> {
    let writable = || {
        let dir = match path.file_name() {
            Some(name) => Dir::create(parent(path))?.make(name, PRIVATE)?,
            None => Dir::open(path)?,
        };
        faccessat(&dir, ".", AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS)?;
        Ok(OutputFolder::Writable(dir))
    };
    let Some(user) = user.filter(|_| may_become()) else { return writable() };
    or_by_root(as_user(user, writable), || {
        let name = path.file_name().ok_or(Errno::EACCES)?;
        let above = Dir::create_of_root(parent(path))?;
        if above.kind(name)?.is_some_and(|kind| kind != Kind::Folder) {
            return Err(Errno::ENOTDIR.into());
        }
        let is_new = above.kind(name)?.is_none();
        let dir = above.make(name, PRIVATE)?;
        if is_new {
            give(&dir, user)?;
            return Ok(OutputFolder::Writable(dir));
        }
        let owner = File::from(openat(&dir, ".", OFlag::O_RDONLY, Mode::empty())?).metadata()?.uid();
        if owner == 0 { Ok(OutputFolder::OfRoot(dir)) } else { Err(Errno::EACCES.into()) }
    })
}

/// Opens a file for writing, empty, and creates it if it is missing, with these access rights. Pipes and
/// devices are opened as they are. `None` is the user of this process.
///
/// # Errors
/// `PermissionDenied` as [`folder`]; an error for a link in its place; otherwise the error of the system.
pub fn file(path: &Path, user: Option<Identity>, rights: u32) -> io::Result<File> {
    // A descriptor that the caller gave to this process belongs to the caller.
    if input::is_descriptor(path) {
        return File::options().write(true).open(path);
    }
    let name = path.file_name().ok_or(Errno::EISDIR)?;
    let open = |dir: Dir| open(&dir, Path::new(name), rights);
    let Some(user) = user.filter(|_| may_become()) else { return Ok(open(Dir::open(parent(path))?)?.0) };
    or_by_root(as_user(user, || Ok(open(Dir::open(parent(path))?)?.0)), || {
        let (file, is_new) = open(Dir::open_of_root(parent(path))?)?;
        if is_new {
            fchown(&file, Some(user.user), Some(user.group))?;
        }
        Ok(file)
    })
}

/// A file with another name, so that a new one takes its place. It gets its name back when this is dropped.
#[derive(Debug)]
pub struct Aside {
    dir: Dir,
    /// The user that renamed it; `None` is the user of this process.
    by: Option<Identity>,
    name: OsString,
    other: OsString,
}

impl Aside {
    /// Renames a file as [`file()`] would open it. `None` if there is no file at this path.
    ///
    /// # Errors
    /// As [`file()`].
    pub fn rename(path: &Path, user: Option<Identity>) -> io::Result<Option<Aside>> {
        let Some(name) = path.file_name().filter(|_| !input::is_descriptor(path)) else { return Ok(None) };
        let rename = |dir: io::Result<Dir>, by| Aside::rename_in(dir?, name, by);
        let Some(user) = user.filter(|_| may_become()) else { return rename(Dir::open(parent(path)), None) };
        or_by_root(as_user(user, || rename(Dir::open(parent(path)), Some(user))), || {
            rename(Dir::open_of_root(parent(path)), None)
        })
    }

    fn rename_in(dir: Dir, name: &OsStr, by: Option<Identity>) -> io::Result<Option<Aside>> {
        if dir.kind(name)? != Some(Kind::File) {
            return Ok(None);
        }
        let new = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        for attempt in 0..ATTEMPTS {
            let mut other = name.to_owned();
            other.push(format!(".earlier-{}-{attempt}", std::process::id()));
            // An empty file claims the name.
            match openat(&dir, other.as_os_str(), new, Mode::S_IRUSR | Mode::S_IWUSR) {
                Err(Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => {
                    dir.rename(name, &other)?;
                    return Ok(Some(Aside { dir, by, name: name.to_owned(), other }));
                }
            }
        }
        Err(io::Error::other("there are too many files of other processes next to it"))
    }

    /// Removes the file, because the new one replaces it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn remove(mut self) -> io::Result<()> {
        let other = std::mem::take(&mut self.other);
        self.change(|dir| dir.remove_file(&other))
    }

    fn change(&self, change: impl Fn(&Dir) -> io::Result<()> + Sync) -> io::Result<()> {
        match self.by {
            Some(user) => as_user(user, || change(&self.dir)),
            None => change(&self.dir),
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.other.is_empty() {
            // If it fails, the file keeps the other name, and nothing is lost.
            let _ = self.change(|dir| dir.rename(&self.other, &self.name));
        }
    }
}

/// Changes the owner of a folder, and of the folders in it. Files stay: a user who may write a folder may
/// replace its files.
///
/// # Errors
/// The error of the system.
pub fn give(dir: &Dir, to: Identity) -> io::Result<()> {
    for (name, kind) in dir.entries()? {
        if kind == Kind::Folder {
            give(&dir.enter(name)?, to)?;
        }
    }
    let opened = openat(dir, ".", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    fchown(opened, Some(to.user), Some(to.group))
}

/// True if this process may change its user. Otherwise it keeps its user, also later, as in a container
/// without these capabilities.
fn may_become() -> bool {
    let has = |capability| caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false);
    has(Capability::CAP_SETUID) && has(Capability::CAP_SETGID)
}

/// The result as the user, or if it was denied, as root.
fn or_by_root<T>(by_user: io::Result<T>, by_root: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    match by_user {
        Err(error) if denied(&error) => by_root().map_err(|error| match denied(&error) {
            true => io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the user that giveway becomes may not write there, and root creates nothing where another user can change \
                 names: name a place of that user, or one that only root can change, or another user with --user",
            ),
            false => error,
        }),
        done => done,
    }
}

/// Opens a file for writing, and returns true if it is new.
fn open(dir: &Dir, name: &Path, rights: u32) -> io::Result<(File, bool)> {
    let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let new = flags | OFlag::O_CREAT | OFlag::O_EXCL;
    for _ in 0..ATTEMPTS {
        match openat(dir, name, flags, Mode::empty()) {
            Ok(found) => {
                let file = File::from(found);
                empty(&file, rights)?;
                return Ok((file, false));
            }
            Err(Errno::ENOENT) => {}
            Err(Errno::ELOOP) => {
                return Err(io::Error::other("it is a link: name the file that it leads to"));
            }
            Err(error) => return Err(error.into()),
        }
        match openat(dir, name, new, Mode::from_bits_truncate(rights)) {
            Ok(made) => {
                let file = File::from(made);
                // Whatever umask(2) is.
                file.set_permissions(PermissionsExt::from_mode(rights))?;
                return Ok((file, true));
            }
            Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("another process creates and removes it"))
}

/// Empties a file that was there.
fn empty(file: &File, rights: u32) -> io::Result<()> {
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(());
    }
    if about.nlink() > 1 {
        return Err(io::Error::other("the file has a second name (a hard link): remove it"));
    }
    // Only its owner may change this. The file of another user keeps its rights.
    let _ = file.set_permissions(PermissionsExt::from_mode(rights));
    file.set_len(0)
}

/// The folder that contains a path.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
