//! Folders of results, whose files an input changes.

use std::fs;
use std::path::{Path, PathBuf};

/// Largest number of files that an input changes.
const MAX: usize = 4;

/// The files of a folder as they were written.
pub struct Written {
    folder: PathBuf,
    /// All files in it and in its subfolders with their contents, in the order of their paths.
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Written {
    /// The files that are in this folder now.
    pub fn of(folder: &Path) -> Written {
        Written { folder: folder.to_owned(), files: files(folder) }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Changes files.
    ///
    /// A change starts with a byte that selects the file. If its highest bit is clear, a length in two bytes
    /// and the new content follow. If it is set, an offset in two bytes, a length in one byte, and bytes that
    /// replace those at the offset follow. A Parquet table is only truncated, to the length in two bytes.
    pub fn change(&self, changes: &[u8]) {
        let mut rest = changes;
        for _ in 0..MAX {
            let Some((which, content)) = self.next(&mut rest) else { return };
            fs::write(&self.files[which].0, content).expect("the folder can be written");
        }
    }

    /// Writes the folder as it was.
    pub fn restore(&self) {
        let now = files(&self.folder);
        for (path, _) in now.iter().filter(|(path, _)| !self.files.iter().any(|(known, _)| known == path)) {
            fs::remove_file(path).expect("the folder can be written");
        }
        for file in self.files.iter().filter(|file| !now.contains(file)) {
            let (path, content) = file;
            fs::create_dir_all(path.parent().expect("a file is in a folder"))
                .expect("the folder can be written");
            fs::write(path, content).expect("the folder can be written");
        }
    }

    /// For each file of up to 64 KiB a change that replaces it by its own content, behind its number.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let whole = |(at, (_, content)): (usize, &(PathBuf, Vec<u8>))| {
            let length = u16::try_from(content.len()).ok()?.to_le_bytes();
            Some([&[at as u8][..], &[at as u8], &length, content].concat())
        };
        self.files.iter().enumerate().filter_map(whole).collect()
    }

    /// Parses a change: the number of a file, and its new content.
    fn next(&self, rest: &mut &[u8]) -> Option<(usize, Vec<u8>)> {
        let ([kind, a, b], after) = rest.split_first_chunk::<3>()?;
        let which = usize::from(kind & 127) % self.files.len();
        let number = usize::from(u16::from_le_bytes([*a, *b]));
        let (path, whole) = &self.files[which];
        if path.extension().is_some_and(|end| end == "parquet") {
            // Only truncated: the crates that read Parquet (arrow-buffer 60.1, bit_chunk_iterator.rs) panic
            // on some changed bytes, and libFuzzer does not let `record` recover from a panic.
            *rest = after;
            return Some((which, whole[..number.min(whole.len())].to_vec()));
        }
        if kind & 128 == 0 {
            let (content, after) = after.split_at(number.min(after.len()));
            *rest = after;
            return Some((which, content.to_vec()));
        }
        let (length, after) = after.split_first()?;
        let (patch, after) = after.split_at(usize::from(*length).min(after.len()));
        *rest = after;
        let mut content = whole.clone();
        let at = number.min(content.len());
        let until = (at + patch.len()).min(content.len());
        content.splice(at..until, patch.iter().copied());
        Some((which, content))
    }
}

/// All files in a folder and its subfolders with their contents, sorted.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let content = fs::read(&path).expect("the file was just written");
            found.push((path, content));
        }
    }
    found.sort();
    found
}
