//! File operations that the standard library lacks.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Exchanges the names of two files or folders atomically, so that both names always exist: rename(2),
/// RENAME_EXCHANGE.
///
/// # Errors
/// The error of the system; `InvalidInput` if the file system does not support it.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
    let (one, other) = (name(one)?, name(other)?);
    // SAFETY: both names are C strings that are valid during the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            one.as_ptr(),
            libc::AT_FDCWD,
            other.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_exchange_their_names() {
        let dir = std::env::temp_dir().join(format!("giveway-exchange-{}", std::process::id()));
        let (a, b) = (dir.join("a"), dir.join("b"));
        for (folder, text) in [(&a, "1"), (&b, "2")] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("file"), text).unwrap();
        }
        exchange(&a, &b).unwrap();
        assert_eq!(std::fs::read_to_string(a.join("file")).unwrap(), "2");
        assert_eq!(std::fs::read_to_string(b.join("file")).unwrap(), "1");
        assert_eq!(exchange(&a, &dir.join("c")).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
