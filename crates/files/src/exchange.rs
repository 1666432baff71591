//! Two names in one step.

use std::io;
use std::path::Path;

/// Exchanges the names of two files or folders atomically, so that both names always exist: rename(2),
/// RENAME_EXCHANGE.
///
/// # Errors
/// The error of the system; `InvalidInput` if the file system does not support it, and `Unsupported` if the
/// system is not Linux.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (one, other);
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn folders_exchange_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        for (folder, text) in [(&a, "1"), (&b, "2")] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("file"), text).unwrap();
        }
        exchange(&a, &b).unwrap();
        assert_eq!(std::fs::read_to_string(a.join("file")).unwrap(), "2");
        assert_eq!(std::fs::read_to_string(b.join("file")).unwrap(), "1");
        assert_eq!(exchange(&a, &dir.path().join("c")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
