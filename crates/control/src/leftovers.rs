//! State files with the changes that a bridge made to the machine, for the case that it is killed before it
//! undoes them.
//!
//! The files are in `/run`, which a restart of the machine empties, as it undoes the changes. The name of a
//! file has the numbers of the network namespace and of the interface.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use giveway_live::LiveError;
use giveway_live::checks;
use giveway_live::detour::Detour;
use serde_json::{Value, json};

use crate::error::ControlError;

/// Folder of the state files, unless the service manager names another one.
const FOLDER: &str = "/run/giveway";

/// The changes of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The interface, by name.
    pub interface: String,
    /// Its number, because another interface may get the name later.
    pub number: u32,
    /// The features that were on and are off.
    pub features: Vec<String>,
    /// True if frames take a detour, which has a pair of virtual interfaces.
    pub detour: bool,
}

impl Changed {
    /// Parses the text of a state file.
    ///
    /// # Errors
    /// If the text is not JSON, or a member is missing.
    pub fn parse(text: &str) -> Result<Changed, ControlError> {
        let missing = |message: &'static str| move || ControlError::invalid(message);
        let value: Value = serde_json::from_str(text).map_err(ControlError::invalid)?;
        let features = value["features"].as_array().ok_or_else(missing("the features are missing"))?;
        let features = features.iter().map(|name| name.as_str().map(str::to_owned));
        let number = value["number"].as_u64().and_then(|number| number.try_into().ok());
        Ok(Changed {
            interface: value["interface"]
                .as_str()
                .ok_or_else(missing("the interface is missing"))?
                .to_owned(),
            number: number.ok_or_else(missing("the number is missing"))?,
            features: features.collect::<Option<_>>().ok_or_else(missing("a feature is not a name"))?,
            detour: value["detour"].as_bool().unwrap_or(false),
        })
    }

    /// The text of a state file.
    pub fn to_text(&self) -> String {
        let Changed { interface, number, features, detour } = self;
        let comment = "giveway live turned these features off and turns them on again when it ends";
        let members = json!({
            "comment": comment, "interface": interface, "number": number, "features": features, "detour": detour
        });
        format!("{members:#}\n")
    }

    /// The state file of an interface, which a running bridge has written; `None` if there is none.
    pub fn read(number: u32) -> Option<Changed> {
        Changed::parse(&fs::read_to_string(place(number).ok()?).ok()?).ok()
    }

    /// The names of the state file: a temporary one that no file has, and the final one, which the caller
    /// gives it. So no other process reads half a file.
    ///
    /// # Errors
    /// The error of the system, with the path.
    pub fn names(&self) -> Result<(PathBuf, PathBuf), ControlError> {
        let path = place(self.number).map_err(|error| file_error(Path::new("/proc/self/ns/net"), error))?;
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))
            .map_err(|error| file_error(&path, error))?;
        // No other process has this number, and a name of a process that was killed is not used again.
        let partial = |attempt| path.with_extension(format!("{}-{attempt}.partial", std::process::id()));
        let free = (0_u32..).map(partial).find(|partial| fs::symlink_metadata(partial).is_err());
        let free = free.ok_or_else(|| file_error(&path, io::ErrorKind::AlreadyExists.into()))?;
        Ok((free, path))
    }

    /// Writes the state file with its temporary name.
    ///
    /// # Errors
    /// The error of the system, with the path.
    pub fn write(&self, temporary: &Path) -> Result<(), ControlError> {
        let opened = fs::OpenOptions::new().write(true).create_new(true).open(temporary);
        let written = opened.and_then(|mut file| file.write_all(self.to_text().as_bytes()));
        written.map_err(|error| file_error(temporary, error))
    }
}

fn file_error(path: &Path, error: io::Error) -> ControlError {
    ControlError::File { path: path.to_owned(), cause: error.into() }
}

/// Undoes the changes that an earlier bridge left on this interface, whose lock the caller has. Returns a
/// message if there were changes.
pub fn mend(interface: &str, number: u32) -> Option<String> {
    let path = place(number).ok()?;
    let text = fs::read_to_string(&path).ok()?;
    let message = match Changed::parse(&text) {
        Err(error) => format!("{}: {error}; the file is removed", path.display()),
        Ok(changed) => undo(interface, &changed),
    };
    match fs::remove_file(&path) {
        Ok(()) => Some(message),
        Err(error) => Some(format!("{message}; {} cannot be removed: {error}", path.display())),
    }
}

/// Undoes changes, and returns a message.
fn undo(interface: &str, changed: &Changed) -> String {
    let mut done = Vec::new();
    let mut add = |task: &str, now: &str, result: Result<(), LiveError>| {
        let now = result.map_or_else(|error| error.to_string(), |()| format!("they are {now} now"));
        done.push(format!("an earlier giveway live ended before it could {task}; {now}"));
    };
    if changed.detour {
        let detour = Detour { interface: interface.to_owned(), number: changed.number };
        add("remove its virtual interfaces", "removed", detour.remove());
    }
    if !changed.features.is_empty() {
        let names = checks::list_offloads(&changed.features);
        let restored = checks::switch_offloads(interface, &changed.features, true);
        add(&format!("turn {names} on again"), "on again", restored);
    }
    format!("{interface}: {}", done.join("; "))
}

fn place(interface: u32) -> io::Result<PathBuf> {
    let namespace = fs::metadata("/proc/self/ns/net")?.ino();
    // systemd.exec(5): the folders of RuntimeDirectory=, separated by colons. The first is used.
    let given = std::env::var_os("RUNTIME_DIRECTORY");
    let given = given.as_deref().and_then(|all| all.to_str()).and_then(|all| all.split(':').next());
    let folder = given.filter(|folder| folder.starts_with('/')).unwrap_or(FOLDER);
    Ok(Path::new(folder).join(format!("live-{namespace}-{interface}.json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_written_and_read() {
        let features = vec!["rx-gro".into(), "rx-lro".into()];
        let changed = Changed { interface: "eth0".into(), number: 7, features, detour: true };
        assert_eq!(Changed::parse(&changed.to_text()).unwrap(), changed);
        let wrong = |text: &str| Changed::parse(text).unwrap_err().to_string();
        assert_eq!(wrong("{}"), "the features are missing");
        assert_eq!(wrong(r#"{"features": [1], "interface": "a", "number": 1}"#), "a feature is not a name");
        assert_eq!(wrong(r#"{"features": [], "interface": "a", "number": -1}"#), "the number is missing");
        assert!(wrong("[").contains("EOF"));
    }
}
