//! The key file, which `giveway live --reserve` and `giveway live reserve` share.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use giveway_files::input;
use giveway_program::show;
use giveway_qdisc::hash::SipHasher;

/// Reason why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("{flag} {}", file.display())]
    Read {
        /// The flag that names the file.
        flag: &'static str,
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The contents of the file are not a key.
    #[error("{flag} {}: a key has 32 hexadecimal digits: openssl rand -hex 16 > FILE", file.display())]
    Invalid {
        /// The flag that names the file.
        flag: &'static str,
        /// The file.
        file: PathBuf,
    },
}

/// Reads the key in a file. Prints a warning if other users can read the file.
///
/// # Errors
/// If the file cannot be read, or does not contain a key.
pub fn key(flag: &'static str, file: &Path) -> Result<SipHasher, KeyError> {
    let read = |mut open: File| {
        let mut text = String::new();
        open.read_to_string(&mut text)?;
        Ok((text, open.metadata()?.permissions().mode()))
    };
    let (text, mode) = input::open_given(file).and_then(read).map_err(|source| KeyError::Read {
        flag,
        file: file.to_owned(),
        source,
    })?;
    let key = giveway_reserve::key(&text).ok_or_else(|| KeyError::Invalid { flag, file: file.to_owned() })?;
    if mode & 0o077 != 0 {
        let file = file.display();
        show::message(&format!("{flag} {file}: other users can read the key; type chmod 600 {file}"));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "000102030405060708090A0b0c0d0e0f\n").unwrap();
        let read = key("--key-file", &file).unwrap();
        assert_eq!(read.hash(b"x"), SipHasher::new(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f).hash(b"x"));
        for wrong in ["", "+00102030405060708090a0b0c0d0e0f", "0001", "zz0102030405060708090a0b0c0d0e0f"] {
            std::fs::write(&file, wrong).unwrap();
            let message = key("--key-file", &file).err().unwrap().to_string();
            assert!(message.contains("32 hexadecimal digits: openssl"), "{message}");
        }
        assert!(key("--key-file", &dir.path().join("none")).is_err());
    }
}
