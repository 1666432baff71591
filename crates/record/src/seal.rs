//! Digests, which detect damage to a file before it is used.
//!
//! A table has its length and its SHA-256 in the summary of its run, or in the manifest of its sweep. A JSON
//! object carries the SHA-256 of its own content in its last field: it is sealed. It is a file ([`seal`]) or
//! a line of one ([`seal_line`]). A digest protects against accidents (a flipped bit, a full disk, an edit by
//! hand), not against a forged digest.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use giveway_files::Dir;
use serde::de::DeserializeOwned;
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
    pub fn of_bytes(bytes: &[u8]) -> Digest {
        Digest { bytes: bytes.len() as u64, sha256: hex(Sha256::digest(bytes)) }
    }

    /// Checks that a file matches this digest. `inside` is its path in the folder.
    ///
    /// # Errors
    /// If it does not, or cannot be read.
    pub fn check_in(&self, dir: &Dir, inside: impl AsRef<Path>) -> Result<(), Damage> {
        let path = &dir.path().join(&inside);
        let unreadable = |error| Damage::unreadable(path, &error);
        let file = dir.file(inside).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        if length != self.bytes {
            return Err(Damage::new(path, format!("it has {length} bytes, and {} were written", self.bytes)));
        }
        match Digest::of_open(file).map_err(unreadable)? == *self {
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

/// The digits of a SHA-256.
const DIGITS: usize = 64;

/// The error of an object whose digest is missing or does not match.
const BROKEN: &str = "its content does not match the SHA-256 at its end";

/// The texts around the digest of a sealed object.
struct Form {
    /// The text between the content and the digest.
    before: &'static str,
    /// The text behind the digest.
    after: &'static str,
}

impl Form {
    const FILE: Form = Form { before: ",\n  \"sha256\": \"", after: "\"\n}\n" };
    const LINE: Form = Form { before: ",\"sha256\":\"", after: "\"}" };

    /// Adds the digest to an object without its closing brace. Also returns the digest.
    fn seal(&self, content: &str) -> (String, String) {
        let digest = Digest::of_bytes(content.as_bytes()).sha256;
        (format!("{content}{}{digest}{}", self.before, self.after), digest)
    }

    /// Returns the text and the digest if no bit has changed. The end is compared byte by byte, too, so that
    /// a flipped bit in a name or in a digit is detected.
    fn open<'a>(&self, bytes: &'a [u8]) -> Option<(&'a str, &'a str)> {
        let text = str::from_utf8(bytes).ok()?;
        let rest = text.strip_suffix(self.after)?;
        let at = rest.len().checked_sub(DIGITS).filter(|at| rest.is_char_boundary(*at))?;
        let (rest, digest) = rest.split_at(at);
        let content = rest.strip_suffix(self.before)?;
        (Digest::of_bytes(content.as_bytes()).sha256 == digest).then_some((text, digest))
    }
}

/// A JSON object as the text of a file whose last field, `sha256`, is the digest of all bytes before the
/// comma in front of that field. Also returns the digest.
///
/// # Panics
/// If the value is not an object with at least one field.
pub fn seal(value: &impl Serialize) -> (String, String) {
    let text = serde_json::to_string_pretty(value).expect("sealed values are plain data");
    Form::FILE.seal(text.strip_suffix("\n}").expect("sealed values are objects with fields"))
}

/// Returns the text and the digest of a sealed file if no bit of it has changed.
///
/// # Errors
/// A sentence about the damage.
pub(crate) fn open(bytes: &[u8]) -> Result<(&str, &str), &'static str> {
    Form::FILE.open(bytes).ok_or(BROKEN)
}

/// The value of a sealed file that was read from `place`. Also returns its digest.
///
/// # Errors
/// If a bit of it has changed, or it has other fields.
pub fn open_sealed<T: DeserializeOwned>(bytes: &[u8], place: &Path) -> Result<(T, String), Damage> {
    let (text, digest) = open(bytes).map_err(|why| Damage::new(place, why))?;
    let value = serde_json::from_str(text).map_err(|error| Damage::new(place, error))?;
    Ok((value, digest.to_owned()))
}

/// A JSON object in one line, without its end, as a line that is sealed.
///
/// # Panics
/// If the line is not an object with at least one field.
pub fn seal_line(line: &str) -> String {
    Form::LINE.seal(line.strip_suffix('}').expect("sealed lines are objects with fields")).0
}

/// Returns the object of a line that [`seal_line`] made if no bit of it has changed.
pub fn open_line(line: &[u8]) -> Option<String> {
    let (text, _) = Form::LINE.open(line)?;
    let end = Form::LINE.before.len() + DIGITS + Form::LINE.after.len();
    Some(format!("{}}}", &text[..text.len() - end]))
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
        let (file, digest) = seal(&value);
        let line = seal_line(&value.to_string());
        assert_eq!(open(file.as_bytes()), Ok((file.as_str(), digest.as_str())));
        assert_eq!(open_line(line.as_bytes()), Some(value.to_string()));
        assert!(!line.contains('\n'));
        for (text, form) in [(file, Form::FILE), (line, Form::LINE)] {
            let read: serde_json::Value = serde_json::from_str(&text).expect("a sealed object is JSON");
            assert_eq!((&read["metric"], &read["more"]), (&value["metric"], &value["more"]));
            for bit in 0..text.len() * 8 {
                let mut bytes = text.clone().into_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(form.open(&bytes).is_none(), "bit {bit} of {text}");
            }
            for length in 0..text.len() {
                assert!(form.open(&text.as_bytes()[..length]).is_none(), "cut to {length} bytes");
            }
        }
    }
}
