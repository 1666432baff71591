//! Digests, which detect damage to a file before it is used.
//!
//! A table has its length and its SHA-256 in the summary of its run. A JSON file carries the SHA-256 of its
//! own content in its last field. A digest protects against accidents (a flipped bit, a full disk, an edit by
//! hand), not against a forged digest.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use giveway_files::Dir;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Length and SHA-256 of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// The length in bytes.
    pub bytes: u64,
    /// The SHA-256 (FIPS 180-4) as 64 hexadecimal digits.
    pub sha256: String,
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The damage.
    pub why: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged: {}", self.file.display(), self.why)
    }
}

impl Damage {
    /// A damaged file.
    pub fn new(file: &Path, why: impl ToString) -> Damage {
        Damage { file: file.to_owned(), why: why.to_string() }
    }

    /// A file that could not be opened or read.
    pub(crate) fn unreadable(file: &Path, error: &io::Error) -> Damage {
        match error.kind() {
            io::ErrorKind::NotFound => Damage::new(file, "it is missing"),
            _ => Damage::new(file, error),
        }
    }
}

impl Digest {
    /// The digest of a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Digest> {
        Digest::of_open(File::open(path)?)
    }

    fn of_open(mut file: File) -> io::Result<Digest> {
        let mut sink = Hashing::new(io::sink());
        // Larger than the default of `io::copy`: hashing is faster than a system call per 8 KiB.
        let mut buffer = vec![0; 1 << 17];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(sink.finish().1),
                count => sink.write_all(&buffer[..count])?,
            }
        }
    }

    /// The digest of bytes in memory.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Digest {
        Digest { bytes: bytes.len() as u64, sha256: hex(Sha256::digest(bytes)) }
    }

    /// Checks that a file in a folder matches this digest.
    pub(crate) fn check(&self, dir: &Dir, inside: &Path) -> Result<(), Damage> {
        let path = &dir.path().join(inside);
        let file = dir.file(inside).map_err(|error| Damage::unreadable(path, &error))?;
        let length = file.metadata().map_err(|error| Damage::unreadable(path, &error))?.len();
        if length != self.bytes {
            return Err(Damage::new(path, format!("it has {length} bytes, and {} were written", self.bytes)));
        }
        let found = Digest::of_open(file).map_err(|error| Damage::unreadable(path, &error))?;
        match found == *self {
            true => Ok(()),
            false => Err(Damage::new(path, "its SHA-256 does not match")),
        }
    }
}

/// A writer that computes the digest of the bytes that it passes on.
pub(crate) struct Hashing<W> {
    inner: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Hashing<W> {
    pub fn new(inner: W) -> Hashing<W> {
        Hashing { inner, hash: Sha256::new(), bytes: 0 }
    }

    /// Returns the inner writer, and the digest of the bytes.
    pub fn finish(self) -> (W, Digest) {
        (self.inner, Digest { bytes: self.bytes, sha256: hex(self.hash.finalize()) })
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The text between the content of a sealed file and its digest, and the text behind the digest.
const BEFORE: &str = ",\n  \"sha256\": \"";
const AFTER: &str = "\"\n}\n";
const DIGITS: usize = 64;

/// A JSON object as text whose last field, `sha256`, is the digest of all bytes before the comma in front of
/// that field. Also returns the digest.
///
/// # Panics
/// If the value is not an object with at least one field.
pub(crate) fn seal(value: &impl Serialize) -> (String, String) {
    let text = serde_json::to_string_pretty(value).expect("sealed values are plain data");
    let content = text.strip_suffix("\n}").expect("sealed values are objects with fields");
    let digest = Digest::of_bytes(content.as_bytes()).sha256;
    (format!("{content}{BEFORE}{digest}{AFTER}"), digest)
}

/// Returns the text and the digest of a sealed file if no bit of it has changed. The end is compared byte by
/// byte, too, so that a flipped bit in a name or in a digit is detected.
pub(crate) fn open(bytes: &[u8]) -> Result<(&str, &str), &'static str> {
    const BROKEN: &str = "its content does not match the SHA-256 at its end";
    let text = str::from_utf8(bytes).map_err(|_| BROKEN)?;
    let rest = text.strip_suffix(AFTER).ok_or(BROKEN)?;
    let at = rest.len().checked_sub(DIGITS).filter(|at| rest.is_char_boundary(*at)).ok_or(BROKEN)?;
    let (rest, digest) = rest.split_at(at);
    let content = rest.strip_suffix(BEFORE).ok_or(BROKEN)?;
    match Digest::of_bytes(content.as_bytes()).sha256 == digest {
        true => Ok((text, digest)),
        false => Err(BROKEN),
    }
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    use std::fmt::Write as _;
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of FIPS 180-4, "abc".
    #[test]
    fn matches_the_published_vector() {
        let abc = Digest::of_bytes(b"abc");
        assert_eq!(abc.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let (_, passed_on) = {
            let mut hashing = Hashing::new(Vec::new());
            hashing.write_all(b"a").unwrap();
            hashing.write_all(b"bc").unwrap();
            hashing.finish()
        };
        assert_eq!(passed_on, abc);
    }

    #[test]
    fn a_flipped_bit_breaks_a_seal_wherever_it_is() {
        let value = serde_json::json!({ "metric": 0.5, "name": "fifo", "more": { "a": [1, 2] } });
        let (text, digest) = seal(&value);
        assert_eq!(open(text.as_bytes()), Ok((text.as_str(), digest.as_str())));
        let read: serde_json::Value = serde_json::from_str(&text).expect("a sealed file is JSON");
        assert_eq!((&read["metric"], &read["sha256"]), (&value["metric"], &serde_json::json!(digest)));
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&bytes).is_err(), "bit {bit} of {text}");
        }
        for length in 0..text.len() {
            assert!(open(&text.as_bytes()[..length]).is_err(), "cut to {length} bytes");
        }
    }
}
