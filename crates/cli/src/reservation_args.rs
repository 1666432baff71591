//! Arguments that `giveway live --reserve` and `giveway reserve` share: the key file and the EtherTypes.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use giveway_files::input;
use giveway_qdisc::hash::SipHasher;
use giveway_reserve::EtherTypes;

use crate::show;

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

/// Reason why a text does not name EtherTypes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtherTypesError {
    /// A part of the text is not a hexadecimal number of 16 bits.
    #[error("\"{0}\" is not an EtherType: write 0x88b5, or 0x0801,0x0802 as in the paper")]
    Number(String),
    /// The number is below 0x600, so in a frame it would be a length.
    #[error("{0} is a length, not an EtherType: write 0x88b5, or 0x0801,0x0802 as in the paper")]
    Length(String),
    /// Other frames have this EtherType.
    #[error("{0} is in use by IP, ARP or VLANs: write 0x88b5, or 0x0801,0x0802 as in the paper")]
    InUse(String),
}

/// Parses the EtherTypes of starts and ends: one for both, or two with a comma.
///
/// # Errors
/// If a part is not an EtherType, or is in use by other frames.
pub fn ether_types(text: &str) -> Result<EtherTypes, EtherTypesError> {
    let (start, end) = text.split_once(',').unwrap_or((text, text));
    Ok(EtherTypes { start: ether_type(start)?, end: ether_type(end)? })
}

fn ether_type(text: &str) -> Result<u16, EtherTypesError> {
    let number = text.strip_prefix("0x").and_then(|digits| u16::from_str_radix(digits, 16).ok());
    match number {
        None => Err(EtherTypesError::Number(text.to_owned())),
        Some(0..0x600) => Err(EtherTypesError::Length(text.to_owned())),
        Some(0x0800 | 0x0806 | 0x86dd | 0x8100 | 0x88a8) => Err(EtherTypesError::InUse(text.to_owned())),
        Some(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ether_types_are_parsed() {
        let wrong = |text: &str| ether_types(text).unwrap_err().to_string();
        assert!(wrong("88b5").contains("write 0x88b5"));
        assert!(wrong("0x0040").contains("is a length"));
        assert!(wrong("0x0800").contains("is in use by IP"));
        assert_eq!(ether_types("0x0801,0x0802"), Ok(EtherTypes::PUBLISHED));
        assert_eq!(ether_types("0x88b5"), Ok(EtherTypes::LOCAL));
    }

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
