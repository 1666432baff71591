//! The way to a folder, component by component.
//!
//! Root may write everywhere, so a link that another user puts into a path would make root write where that
//! user chooses. Therefore root follows links of root only.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};

/// Flags that open a folder for finding its entries. It need not be readable.
#[cfg(target_os = "linux")]
pub(crate) const FOLDER: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(crate) const FOLDER: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_CLOEXEC);

/// Largest number of links and new folders on a way. Linux follows 40 links.
const MAX: u32 = 100;

/// The ways that are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Through links of root only.
    LinksOfRoot,
    /// Through links of root, and through folders in which only root can change a name.
    FoldersOfRoot,
}

/// Opens the folder at the end of a path. With a mode, missing folders are created, but not what a link leads
/// to.
pub(crate) fn walk(path: &Path, missing: Option<Mode>, way: Way) -> io::Result<OwnedFd> {
    let mut left = Vec::new();
    let mut dir = match descriptor(path) {
        // The kernel finds the folder itself, whatever its path is now.
        Some((start, rest)) => {
            add(&mut left, &rest);
            openat(AT_FDCWD, start.as_os_str(), FOLDER, Mode::empty())?
        }
        None => {
            add(&mut left, path);
            openat(AT_FDCWD, ".", FOLDER, Mode::empty())?
        }
    };
    let mut steps = 0;
    // Behind a link, as many names are left when its own are done.
    let mut behind = usize::MAX;
    while let Some(name) = left.pop() {
        if name != "/" {
            way.accept(&dir, Mode::S_ISVTX)?;
        }
        match openat(&dir, name.as_os_str(), FOLDER | OFlag::O_NOFOLLOW, Mode::empty()) {
            Ok(next) => dir = next,
            Err(error) if steps == MAX => return Err(error.into()),
            Err(Errno::ENOENT)
                if let Some(mode) = missing
                    && left.len() < behind =>
            {
                match mkdirat(&dir, name.as_os_str(), mode) {
                    Ok(()) | Err(Errno::EEXIST) => left.push(name),
                    Err(error) => return Err(error.into()),
                }
                steps += 1;
            }
            Err(Errno::ENOTDIR | Errno::ELOOP) => {
                let about = fstatat(&dir, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?;
                if !is_link(&about) {
                    return Err(Errno::ENOTDIR.into());
                }
                if !is_of_root(&about) {
                    let (name, user) = (name.display(), about.st_uid);
                    return Err(denied(format!(
                        "{name} is a link of user {user}, and root follows links of root only: name the folder that it leads to"
                    )));
                }
                behind = behind.min(left.len());
                add(&mut left, Path::new(&readlinkat(&dir, name.as_os_str())?));
                steps += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    way.accept(&dir, Mode::empty())?;
    Ok(dir)
}

impl Way {
    /// Refuses a folder in which others may change names, except one with this bit.
    fn accept(self, dir: &OwnedFd, excuse: Mode) -> io::Result<()> {
        if self == Way::LinksOfRoot {
            return Ok(());
        }
        let about = fstat(dir)?;
        let mode = Mode::from_bits_truncate(about.st_mode);
        // In a folder with the sticky bit, others cannot rename what belongs to root.
        let closed = !mode.intersects(Mode::S_IWGRP | Mode::S_IWOTH) || mode.intersects(excuse);
        if closed && is_of_root(&about) { Ok(()) } else { Err(Errno::EACCES.into()) }
    }
}

pub(crate) fn is_link(about: &FileStat) -> bool {
    SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT == SFlag::S_IFLNK
}

/// True if the owner is root, or is unknown in the user namespace of this process: its root has no power over
/// that owner's files.
fn is_of_root(about: &FileStat) -> bool {
    about.st_uid == 0 || !is_known(about.st_uid)
}

fn is_known(user: u32) -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let holds = |line: &str| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap_or(0));
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
        matches!((first, count), (Some(first), Some(count)) if (first..first + count).contains(&user.into()))
    };
    map.is_empty() || map.lines().any(holds)
}

/// The parts of a path below a descriptor of this process.
fn descriptor(path: &Path) -> Option<(OsString, OsString)> {
    let rest = path.strip_prefix("/proc/self/fd").ok()?;
    let mut names = rest.components();
    let number = names.next()?.as_os_str().to_str()?.parse::<u32>().ok()?;
    Some((format!("/proc/self/fd/{number}").into(), names.as_path().into()))
}

/// Adds the components of a path, so that the first one is taken first.
fn add(left: &mut Vec<OsString>, path: impl AsRef<Path>) {
    let names = path.as_ref().components().filter(|component| *component != Component::CurDir);
    left.extend(names.rev().map(|component| component.as_os_str().to_owned()));
}

fn denied(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}
