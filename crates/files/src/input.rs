//! Input files.
//!
//! A scenario or a settings file may come from another person, and it names further files. Opening a named
//! pipe waits until another process writes to it, and a device may wait or never end.

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::path::Path;

/// Checks that a path does not lead to a pipe, a socket or a device. It may lead nowhere, or to a folder.
///
/// # Errors
/// As [`open`].
pub fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(about) if !about.is_dir() => refuse(about.file_type()),
        _ => Ok(()),
    }
}

/// Opens a regular file for reading. Never waits.
///
/// # Errors
/// The error of the system; `InvalidInput` if it is not a regular file, with its kind in the text.
pub fn open(path: &Path) -> io::Result<File> {
    // Before it is opened, because opening alone has an effect on some devices.
    refuse(fs::metadata(path)?.file_type())?;
    let mut options = File::options();
    options.read(true);
    // Another file may have taken the name since.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nix::libc::O_NONBLOCK);
    let file = options.open(path)?;
    refuse(file.metadata()?.file_type())?;
    Ok(file)
}

/// Opens a file that the user names on the command line. A descriptor that the process already has, such as
/// `/dev/stdin` or the `/dev/fd/63` of `<(...)` in a shell, may be a pipe.
///
/// # Errors
/// As [`open`].
pub fn open_given(path: &Path) -> io::Result<File> {
    if is_descriptor(path) { File::open(path) } else { open(path) }
}

/// True for a path that stands for a descriptor of this process.
pub fn is_descriptor(path: &Path) -> bool {
    let path = path.to_string_lossy();
    let numbered = ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|folder| path.strip_prefix(folder));
    ["/dev/stdin", "/dev/stdout", "/dev/stderr"].contains(&&*path)
        || numbered.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Reads a regular file as [`open`] opens it.
///
/// # Errors
/// As [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a regular file with text.
///
/// # Errors
/// As [`open`]; `InvalidData` if it is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    text(open(path)?)
}

/// Reads a text that the user names on the command line, as [`open_given`] opens it.
///
/// # Errors
/// As [`open`]; `InvalidData` if it is not UTF-8.
pub fn read_given(path: &Path) -> io::Result<String> {
    text(open_given(path)?)
}

/// The rest of a file, which is text.
fn text(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes()[at];
        io::Error::new(io::ErrorKind::InvalidData, format!("it is not text: byte {at} is {byte:#04x}"))
    })
}

/// Refuses everything but a regular file.
pub(crate) fn refuse(kind: FileType) -> io::Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder: name a file in it"));
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {}, not a file", name(kind))))
}

#[cfg(unix)]
fn name(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_symlink() => "a link",
        _ => "a device",
    }
}
#[cfg(not(unix))]
fn name(_: FileType) -> &'static str {
    "something else"
}

#[cfg(all(test, unix))]
mod tests {
    use nix::sys::stat::Mode;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn everything_but_a_file_is_an_error_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let [pipe, socket, file, link] = ["pipe", "socket", "file", "link"].map(|name| dir.path().join(name));
        nix::unistd::mkfifo(&pipe, Mode::S_IRUSR).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let error = |path: &Path| read(path).unwrap_err().to_string();
        assert_eq!(error(&pipe), "it is a named pipe, not a file");
        assert_eq!(error(&socket), "it is a socket, not a file");
        assert_eq!(error(Path::new("/dev/zero")), "it is a device, not a file");
        assert_eq!(error(dir.path()), "it is a folder: name a file in it");
        fs::write(&file, b"tex\xff").unwrap();
        assert_eq!(read_to_string(&file).unwrap_err().to_string(), "it is not text: byte 3 is 0xff");
        fs::write(&file, "text").unwrap();
        // A link to a file is what it leads to: input files may be anywhere.
        assert_eq!(read_to_string(&link).unwrap(), "text");
        assert!(open_given(&pipe).is_err(), "its writer may never come");
        assert!(check(&pipe).is_err() && check(&socket).is_err());
        assert!([&file, &link, dir.path(), Path::new("/no/such")].iter().all(|path| check(path).is_ok()));
    }

    #[test]
    fn only_descriptors_may_be_pipes() {
        for path in ["/dev/stdin", "/dev/fd/63", "/proc/self/fd/0"] {
            assert!(is_descriptor(Path::new(path)), "{path}");
        }
        for path in ["/dev/fd/63/../../x", "/dev/fd/", "/dev/stdin2", "stdin", "-", "/dev/fd/+3x"] {
            assert!(!is_descriptor(Path::new(path)), "{path}");
        }
    }
}
