//! Files that are written while a bridge runs, on a disk that may be full for a while.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_live::privilege::{Identity, outputs};

use crate::Messages;
use crate::error::OutputError;
use crate::pause::pause;

/// Access rights of a file with other people's traffic: only its owner may read it.
const PRIVATE: u32 = 0o600;
/// Pause between a failed write and the next attempt.
const RETRY: Duration = Duration::from_millis(500);

/// A switch that makes a [`PatientFile`] wait when its disk is full. It is off at the start, so that a file
/// that cannot be written is an error, and off at the end, so that the program can end.
#[derive(Clone, Debug, Default)]
pub struct Patience(Arc<AtomicBool>);

impl Patience {
    /// Turns waiting on or off.
    pub fn set(&self, waits: bool) {
        self.0.store(waits, Ordering::Release);
    }
    fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A file that is written in pieces. A piece is in the file completely or not at all, so that the file never
/// ends with a part of a piece. When the disk is full, a message is printed once, and the writing thread
/// waits and tries again.
pub struct PatientFile {
    file: File,
    /// The flag and the path, for messages.
    name: String,
    /// Length of the complete pieces, in bytes.
    length: u64,
    /// False for pipes and devices, which cannot be truncated.
    regular: bool,
    patience: Patience,
    messages: Messages,
    /// True once the message about a full disk was printed.
    reported: bool,
}

impl PatientFile {
    /// Creates or truncates the file of a flag, with the ids of `user`, as [`outputs::file`] does. Only its
    /// owner may read it. Messages about a full disk go to `messages`.
    ///
    /// # Errors
    /// The error of the system, with flag and path.
    pub fn create(
        flag: &str,
        path: &Path,
        user: Option<Identity>,
        messages: &Messages,
    ) -> Result<PatientFile, OutputError> {
        let system_error = OutputError::path(flag, path);
        let file = outputs::file(path, user, PRIVATE).map_err(&system_error)?;
        let regular = file.metadata().map_err(&system_error)?.is_file();
        let name = format!("{flag} {}", path.display());
        let (patience, messages) = (Patience::default(), Arc::clone(messages));
        Ok(PatientFile { file, name, length: 0, regular, patience, messages, reported: false })
    }

    /// The switch of this file.
    pub fn patience(&self) -> Patience {
        self.patience.clone()
    }

    fn put(&mut self, piece: &[u8]) -> io::Result<()> {
        if !self.regular {
            return self.file.write_all(piece);
        }
        let written = self.file.write_all_at(piece, self.length);
        match written {
            Ok(()) => self.length += piece.len() as u64,
            // If truncation fails, too, the next attempt overwrites the partial piece.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }
}

impl Write for PatientFile {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        loop {
            match self.put(piece) {
                Ok(()) => {
                    if std::mem::take(&mut self.reported) {
                        (self.messages)(&format!("{}: it is written again", self.name));
                    }
                    return Ok(piece.len());
                }
                Err(error) if !self.regular || !self.patience.get() => return Err(error),
                Err(error) => {
                    if !std::mem::replace(&mut self.reported, true) {
                        (self.messages)(&format!(
                            "{}: {error}; earlier data stay intact, and writing is tried again",
                            self.name
                        ));
                    }
                    pause(RETRY);
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silent() -> Messages {
        Arc::new(|_| ())
    }

    #[test]
    fn pieces_follow_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut file = PatientFile::create("--pcap", &path, None, &silent()).unwrap();
        file.write_all(b"one ").unwrap();
        // The rest of a failed attempt is overwritten.
        std::fs::write(&path, "one tw").unwrap();
        file.write_all(b"two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one two");
    }

    #[test]
    fn a_full_device_is_an_error_at_once() {
        let mut file = PatientFile::create("--trace", Path::new("/dev/full"), None, &silent()).unwrap();
        assert_eq!(file.write_all(b"one").unwrap_err().kind(), io::ErrorKind::StorageFull);
        let missing = PatientFile::create("--trace", Path::new("/no/such"), None, &silent());
        assert!(missing.is_err_and(|error| error.to_string() == "--trace /no/such"));
    }
}
