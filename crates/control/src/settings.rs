//! The settings file: TOML, `name = "value"`, with the names of the flags.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::config::{self, BridgeConfig};

/// A name and its value, as written.
pub type Setting = (String, String);

/// No settings file is longer, in bytes.
const LONGEST: u64 = 64 << 10;

/// Parses the text of a settings file.
///
/// # Errors
/// A sentence on what is wrong, and what to write instead.
pub fn parse(text: &str) -> Result<Vec<Setting>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let value = |(name, value)| match value {
        toml::Value::String(text) => Ok((name, text)),
        toml::Value::Boolean(wanted) => Ok((name, if wanted { "yes" } else { "no" }.to_owned())),
        other => Err(format!(
            "{name} is {}: write it in quotation marks, with its unit, as in rate = \"20 Mbit/s\"",
            other.type_str()
        )),
    };
    table.into_iter().map(value).collect()
}

/// Applies the settings of a file and then the flags to the defaults. A discipline that is named for one
/// direction only holds for both. `place` is the name of the file, for messages.
///
/// # Errors
/// A sentence on what is wrong, with the file or the flag in front.
pub fn resolve(place: &str, filed: &[Setting], flags: &[Setting]) -> Result<BridgeConfig, String> {
    let mut config = BridgeConfig::default();
    let place = format!("{place}: ");
    let mut set = |name: &str, value: &str, place: &str| {
        config.set(name, value).map_err(|sentence| format!("{place}{sentence}"))
    };
    let all: Vec<(&Setting, &str)> =
        filed.iter().map(|one| (one, &*place)).chain(flags.iter().map(|one| (one, "--"))).collect();
    let last = |name: &str| all.iter().rev().find(|((other, _), _)| config::canonical(other) == name);
    if last("qdisc-reverse").is_none()
        && let Some(((_, value), place)) = last("qdisc")
    {
        set("qdisc-reverse", value, place)?;
    }
    for ((name, value), place) in &all {
        set(name, value, place)?;
    }
    Ok(config)
}

/// A settings file that can be read again after privileges were given up.
///
/// The file stays open, so that a change in place is seen even if the file is readable to root only. A file
/// that another one replaced (editors and `mv` do that) is opened by its name again, with the rights that the
/// process has then.
#[derive(Debug)]
pub struct SettingsFile {
    path: PathBuf,
    /// Regular files only: a pipe cannot be read twice.
    open: Option<File>,
}

impl SettingsFile {
    /// Opens the file and reads it.
    ///
    /// # Errors
    /// A sentence that begins with the name of the file.
    pub fn open(path: &Path) -> Result<(SettingsFile, Vec<Setting>), String> {
        let mut settings = SettingsFile { path: path.to_owned(), open: None };
        let read = settings.read_by_name()?;
        Ok((settings, read))
    }

    /// The name of the file, for messages.
    pub fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// Reads the file again: by its name if another file has that name now, and else through the open
    /// descriptor.
    ///
    /// # Errors
    /// A sentence that begins with the name of the file, and says what to do about it.
    pub fn read_again(&mut self) -> Result<Vec<Setting>, String> {
        let Some(open) = &self.open else { return self.read_by_name() };
        let told = |error: io::Error| format!("{}: {error}", self.place());
        let kept = open.metadata().map_err(told)?;
        let replaced = match fs::metadata(&self.path) {
            Ok(named) => (named.dev(), named.ino()) != (kept.dev(), kept.ino()),
            // The folder may not be searched: a file without a name is one that was replaced.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => kept.nlink() == 0,
            Err(_) => true,
        };
        if replaced {
            return self.read_by_name();
        }
        let mut bytes = vec![0; kept.len().min(LONGEST + 1) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match open.read_at(&mut bytes[filled..], filled as u64).map_err(told)? {
                0 => break,
                more => filled += more,
            }
        }
        bytes.truncate(filled);
        self.parse(bytes)
    }

    /// Whether a file that replaces this one would be noticed: not if its folder may not be searched.
    pub fn sees_replacement(&self) -> bool {
        !matches!(fs::metadata(&self.path), Err(error) if error.kind() == io::ErrorKind::PermissionDenied)
    }

    fn read_by_name(&mut self) -> Result<Vec<Setting>, String> {
        let opened = File::open(&self.path);
        let file = opened.map_err(|error| match (&self.open, error.kind()) {
            (Some(_), io::ErrorKind::PermissionDenied) => format!(
                "{}: another file has this name now, and this process may not read it: {error}; make the file readable for the \
                 user that giveway runs as, or change it in place",
                self.place()
            ),
            _ => format!("{}: {error}", self.place()),
        })?;
        let mut bytes = Vec::new();
        let read = (&file).take(LONGEST + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("{}: {error}", self.place()))?;
        let settings = self.parse(bytes)?;
        self.open = file.metadata().is_ok_and(|of| of.is_file()).then_some(file);
        Ok(settings)
    }

    fn parse(&self, bytes: Vec<u8>) -> Result<Vec<Setting>, String> {
        let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", self.place());
        if bytes.len() as u64 > LONGEST {
            return Err(wrong(&format!("it is longer than {LONGEST} bytes, which no settings file is")));
        }
        let text = String::from_utf8(bytes).map_err(|error| wrong(&error))?;
        parse(&text).map_err(|sentence| wrong(&sentence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file_and_one_discipline_is_for_both() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live.toml");
        fs::write(&path, "rate = \"5mbit\"\nqdisc = \"drr\"\n").unwrap();
        let flags = [("rate".to_owned(), "6mbit".to_owned())];
        let (mut file, filed) = SettingsFile::open(&path).unwrap();
        let config = resolve(&file.place(), &filed, &flags).unwrap();
        assert_eq!(config.get("rate"), "6mbit");
        assert_eq!([config.get("qdisc"), config.get("qdisc-reverse")], ["drr", "drr"]);
        fs::write(&path, "rate = 5\n").unwrap();
        let sentence = file.read_again().unwrap_err();
        assert!(sentence.contains("live.toml: rate is integer: write it in quotation marks"), "{sentence}");
    }

    #[test]
    fn a_file_that_is_replaced_is_read_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live.toml");
        fs::write(&path, "rate = \"5mbit\"").unwrap();
        let (mut file, _) = SettingsFile::open(&path).unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "rate = \"7mbit\"").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(file.read_again(), Ok(vec![("rate".to_owned(), "7mbit".to_owned())]));
        // A mistake in the new file is told, and the next change is seen all the same.
        fs::write(&path, "rate 7").unwrap();
        assert!(file.read_again().unwrap_err().contains("live.toml: "));
        fs::write(&path, "rate = \"8mbit\"").unwrap();
        assert_eq!(file.read_again(), Ok(vec![("rate".to_owned(), "8mbit".to_owned())]));
        fs::remove_file(&path).unwrap();
        assert!(file.read_again().unwrap_err().contains("live.toml: No such file"));
    }

    #[test]
    fn endless_files_are_refused() {
        assert!(SettingsFile::open(Path::new("/dev/zero")).unwrap_err().contains("longer than 65536 bytes"));
    }
}
