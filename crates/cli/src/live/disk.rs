//! Files that are written while a bridge runs, on a disk that may be full for a while.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, fchown};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_live::privilege::Identity;

use crate::show;

/// How long after a failed attempt to write the next one is made.
const RETRY: Duration = Duration::from_millis(500);

/// A switch that says whether a [`PatientFile`] waits when its disk is full. It is off at the start, so that a file that cannot
/// be written is refused. It is off at the end, so that the program can end.
#[derive(Clone, Debug, Default)]
pub struct Patience(Arc<AtomicBool>);

impl Patience {
    /// From now on, or no longer.
    pub fn set(&self, waits: bool) {
        self.0.store(waits, Ordering::Release);
    }
    fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A file that is written piece by piece. A piece is in it as a whole or not at all: what was written before
/// is never followed by half of something. When the disk is full that is said once, the thread that writes
/// waits, and tries again.
pub struct PatientFile {
    file: File,
    /// The flag and the path, for messages.
    what: String,
    /// Bytes of whole pieces.
    length: u64,
    /// Pipes and devices have no length: there is nothing to cut.
    regular: bool,
    patience: Patience,
    told: bool,
}

impl PatientFile {
    /// Makes the file, or empties it. A new one belongs to the user that giveway runs as.
    ///
    /// # Errors
    /// A sentence.
    pub fn create(flag: &str, path: &Path, user: Option<Identity>) -> Result<PatientFile, String> {
        let what = format!("{flag} {}", path.display());
        let told = |error: io::Error| format!("{what}: {error}");
        let new = !path.exists();
        let file = File::create(path).map_err(told)?;
        let regular = file.metadata().map_err(told)?.is_file();
        if let Some(user) = user.filter(|_| new && regular) {
            fchown(&file, Some(user.user), Some(user.group)).map_err(told)?;
        }
        Ok(PatientFile { file, what, length: 0, regular, patience: Patience::default(), told: false })
    }

    /// Says from now on whether this file waits for room on its disk.
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
            // Where even that is refused, the next attempt overwrites what is there.
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
                    if std::mem::take(&mut self.told) {
                        show::sentence(&format!("{}: it is written again", self.what));
                    }
                    return Ok(piece.len());
                }
                Err(error) if !self.regular || !self.patience.get() => return Err(error),
                Err(error) => {
                    if !std::mem::replace(&mut self.told, true) {
                        show::sentence(&format!(
                            "{}: {error}; what was written before stays whole, and writing is tried again",
                            self.what
                        ));
                    }
                    super::pause(RETRY);
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

    #[test]
    fn pieces_follow_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut file = PatientFile::create("--pcap", &path, None).unwrap();
        file.write_all(b"one ").unwrap();
        // What an attempt that failed half-way left is overwritten.
        std::fs::write(&path, "one tw").unwrap();
        file.write_all(b"two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one two");
    }

    #[test]
    fn a_device_that_is_full_is_told_at_once() {
        let mut file = PatientFile::create("--trace", Path::new("/dev/full"), None).unwrap();
        assert_eq!(file.write_all(b"one").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(
            PatientFile::create("--trace", Path::new("/no/such"), None)
                .is_err_and(|said| said.starts_with("--trace /no/such: "))
        );
    }
}
