//! The settings file: TOML, `name = "value"`, with the names of the flags.
//!
//! It may have every flag of the program, so that one file describes a bridge. This crate knows those that
//! can change while the bridge runs ([`config::NAMES`]); [`split`] separates the others.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use giveway_files::input;

use crate::config::{self, BridgeConfig};
use crate::error::ControlError;

/// A name and its value, as written.
pub type Setting = (String, String);

/// Limit on the length of a settings file, in bytes.
const LONGEST: u64 = 64 << 10;

/// Parses the text of a settings file.
///
/// # Errors
/// If the text is not TOML, or a value is neither a text, a boolean nor a table. Other flags than settings
/// may be whole numbers.
pub fn parse(text: &str) -> Result<Vec<Setting>, ControlError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| ControlError::invalid(error))?;
    let value = |(name, value): (String, toml::Value)| match value {
        toml::Value::String(text) => Ok((name, text)),
        // In one line, as a flag has it.
        table @ toml::Value::Table(_) => Ok((name, table.to_string())),
        toml::Value::Boolean(wanted) => Ok((name, if wanted { "yes" } else { "no" }.to_owned())),
        toml::Value::Integer(number) if !config::is_setting(&name) => Ok((name, number.to_string())),
        other => Err(ControlError::invalid(format!(
            "{name} is {}: write it in quotation marks, with its unit, as in rate = \"20 Mbit/s\"",
            other.type_str()
        ))),
    };
    table.into_iter().map(value).collect()
}

/// The settings of a file, and its other flags.
pub fn split(filed: &[Setting]) -> (Vec<Setting>, Vec<Setting>) {
    filed.iter().cloned().partition(|(name, _)| config::is_setting(name))
}

/// Applies the settings of a file, and then the flags, to the defaults. A discipline that is set for the
/// forward direction only applies to both. `file` is the name of the file, for errors; traces that it names
/// are relative to its folder, and traces in flags to the current one. `known` is the configuration that
/// these settings replace: a trace that it has is not read again.
///
/// # Errors
/// The first invalid setting, with the file or the flag.
pub fn resolve(
    file: &Path,
    filed: &[Setting],
    flags: &[Setting],
    known: Option<&BridgeConfig>,
) -> Result<BridgeConfig, ControlError> {
    let mut config = BridgeConfig::default();
    let mut set = |name: &str, value: &str, origin: Origin| {
        if known.is_some_and(|known| config.take_over(name, value, known)) {
            return Ok(());
        }
        let folder = match origin {
            Origin::File => file.parent().unwrap_or(Path::new("")),
            Origin::Flag => Path::new(""),
        };
        config.set(name, value, Some(folder)).map_err(|error| match origin {
            Origin::File => ControlError::File { path: file.to_owned(), cause: error.into() },
            Origin::Flag => ControlError::Flag(error.into()),
        })
    };
    let filed = filed.iter().map(|setting| (setting, Origin::File));
    let all: Vec<(&Setting, Origin)> =
        filed.chain(flags.iter().map(|setting| (setting, Origin::Flag))).collect();
    let last = |name: &str| all.iter().rev().find(|((other, _), _)| config::canonical(other) == name);
    if last("qdisc-reverse").is_none()
        && let Some(((_, value), origin)) = last("qdisc")
    {
        set("qdisc-reverse", value, *origin)?;
    }
    for ((name, value), origin) in &all {
        set(name, value, *origin)?;
    }
    Ok(config)
}

/// The origin of a setting.
#[derive(Clone, Copy)]
enum Origin {
    File,
    Flag,
}

/// A settings file that can be read again after privileges were dropped.
///
/// The file stays open, so that a change in place can be read even if only root may open it. If another file
/// takes its name, as editors and `mv` do it, the new file is opened by name, with the rights that the
/// process has then.
#[derive(Debug)]
pub struct SettingsFile {
    path: PathBuf,
    /// Regular files only: a pipe cannot be read twice.
    open: Option<File>,
}

impl SettingsFile {
    /// Opens the file and reads it. Only a descriptor of this process, such as `/dev/stdin`, may be a pipe.
    ///
    /// # Errors
    /// If the file cannot be read, or is not valid.
    pub fn open(path: &Path) -> Result<(SettingsFile, Vec<Setting>), ControlError> {
        let mut settings = SettingsFile { path: path.to_owned(), open: None };
        let read = settings.read_by_name()?;
        Ok((settings, read))
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again: by name if another file has the name now, otherwise through the open descriptor.
    ///
    /// # Errors
    /// If the file cannot be read, or is not valid. The error names a remedy.
    pub fn read_again(&mut self) -> Result<Vec<Setting>, ControlError> {
        let Some(open) = &self.open else { return self.read_by_name() };
        let kept = open.metadata().map_err(|error| self.error(error))?;
        let replaced = match fs::metadata(&self.path) {
            Ok(named) => (named.dev(), named.ino()) != (kept.dev(), kept.ino()),
            // The folder cannot be searched. A file that was replaced has no name any more.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => kept.nlink() == 0,
            Err(_) => true,
        };
        if replaced {
            return self.read_by_name();
        }
        let mut bytes = vec![0; kept.len().min(LONGEST + 1) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match open.read_at(&mut bytes[filled..], filled as u64).map_err(|error| self.error(error))? {
                0 => break,
                more => filled += more,
            }
        }
        bytes.truncate(filled);
        self.parse(bytes)
    }

    /// True if [`SettingsFile::read_again`] detects a file that replaces this one. It cannot if the folder
    /// cannot be searched.
    pub fn sees_replacement(&self) -> bool {
        !matches!(fs::metadata(&self.path), Err(error) if error.kind() == io::ErrorKind::PermissionDenied)
    }

    fn read_by_name(&mut self) -> Result<Vec<Setting>, ControlError> {
        let opened = input::open_given(&self.path);
        let file = opened.map_err(|error| match (&self.open, error.kind()) {
            (Some(_), io::ErrorKind::PermissionDenied) => self.error(format!(
                "another file has this name now, and this process may not read it: {error}; make the file readable for the user that \
                 giveway runs as, or change it in place"
            )),
            _ => self.error(error),
        })?;
        let mut bytes = Vec::new();
        let read = (&file).take(LONGEST + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.error(error))?;
        let settings = self.parse(bytes)?;
        self.open = file.metadata().is_ok_and(|of| of.is_file()).then_some(file);
        Ok(settings)
    }

    fn parse(&self, bytes: Vec<u8>) -> Result<Vec<Setting>, ControlError> {
        if bytes.len() as u64 > LONGEST {
            return Err(
                self.error(format!("it is longer than {LONGEST} bytes, the limit of a settings file"))
            );
        }
        let text = String::from_utf8(bytes).map_err(|error| self.error(error))?;
        parse(&text).map_err(|error| self.error(error))
    }

    fn error(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> ControlError {
        ControlError::File { path: self.path.clone(), cause: cause.into() }
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
        let config = resolve(file.path(), &filed, &flags, None).unwrap();
        assert_eq!(config.get("rate"), "6mbit");
        assert_eq!([config.get("qdisc"), config.get("qdisc-reverse")], ["drr", "drr"]);
        fs::write(&path, "rate = 5\n").unwrap();
        let error = file.read_again().unwrap_err().to_string();
        assert!(error.contains("live.toml: rate is integer: write it in quotation marks"), "{error}");
    }

    #[test]
    fn other_flags_are_separated_from_settings() {
        let filed =
            parse("in = \"eth0\"\nrate_back = \"5mbit\"\nring = 8192\nfix-offloads = true\n").unwrap();
        let (settings, flags) = split(&filed);
        assert_eq!(settings, [("rate_back".to_owned(), "5mbit".to_owned())]);
        let flags: Vec<_> = flags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(flags, [("fix-offloads", "yes"), ("in", "eth0"), ("ring", "8192")]);
    }

    /// A trace is relative to the folder of the settings file, and is not read again when the file is.
    #[test]
    fn a_rate_can_be_a_table_with_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        let (path, trace) = (dir.path().join("live.toml"), dir.path().join("x.mahi"));
        fs::write(&trace, "1\n2\n").unwrap();
        for text in ["rate = { trace = \"x.mahi\" }\n", "[rate]\ntrace = \"x.mahi\"\n"] {
            fs::write(&path, text).unwrap();
            let (_, filed) = SettingsFile::open(&path).unwrap();
            assert_eq!(filed, [("rate".to_owned(), "{ trace = \"x.mahi\" }".to_owned())]);
        }
        let (_, filed) = SettingsFile::open(&path).unwrap();
        let config = resolve(&path, &filed, &[], None).unwrap();
        fs::remove_file(&trace).unwrap();
        let again = resolve(&path, &filed, &[], Some(&config)).unwrap();
        assert!(again.differs(&config).is_empty());
        let error = resolve(&path, &filed, &[], None).unwrap_err().to_string();
        assert!(error.contains("live.toml: rate: trace: x.mahi: cannot be opened: "), "{error}");
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
        assert_eq!(file.read_again().unwrap(), [("rate".to_owned(), "7mbit".to_owned())]);
        // A mistake in the new file is an error, and the next change is still read.
        fs::write(&path, "rate 7").unwrap();
        assert!(file.read_again().unwrap_err().to_string().contains("live.toml: "));
        fs::write(&path, "rate = \"8mbit\"").unwrap();
        assert_eq!(file.read_again().unwrap(), [("rate".to_owned(), "8mbit".to_owned())]);
        fs::remove_file(&path).unwrap();
        assert!(file.read_again().unwrap_err().to_string().contains("live.toml: No such file"));
    }

    #[test]
    fn endless_files_and_pipes_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (long, pipe) = (dir.path().join("long.toml"), dir.path().join("pipe.toml"));
        fs::write(&long, vec![b'#'; 65_537]).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for (path, why) in [
            (&*long, "longer than 65536 bytes"),
            (&*pipe, "it is a named pipe, not a file"),
            (Path::new("/dev/zero"), "it is a device, not a file"),
        ] {
            let error = SettingsFile::open(path).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
