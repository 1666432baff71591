//! What a bridge changed on the machine and puts back in the end, remembered in a file, in case that nobody
//! could.
//!
//! The file is in `/run`, which is empty after a restart of the machine, as the changes are gone then. It has
//! the number of the network namespace and that of the interface in its name.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use giveway_live::checks;
use serde_json::{Value, json};

/// Where states are kept when no service manager names another folder.
const FOLDER: &str = "/run/giveway";

/// Offloads of an interface that were turned off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The interface, by name.
    pub interface: String,
    /// Its number: another one may have the name later.
    pub number: u32,
    /// The features that were on.
    pub features: Vec<String>,
}

impl Changed {
    /// Reads the text of a state file.
    ///
    /// # Errors
    /// A sentence on what is wrong.
    pub fn parse(text: &str) -> Result<Changed, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let features = value["features"].as_array().ok_or("there are no features")?;
        let features = features.iter().map(|name| name.as_str().map(str::to_owned));
        Ok(Changed {
            interface: value["interface"].as_str().ok_or("there is no interface")?.to_owned(),
            number: value["number"].as_u64().and_then(|n| n.try_into().ok()).ok_or("there is no number")?,
            features: features.collect::<Option<_>>().ok_or("a feature is not a name")?,
        })
    }

    /// The text of a state file.
    pub fn to_text(&self) -> String {
        let Changed { interface, number, features } = self;
        let why = "giveway live turned these features off and turns them on again when it ends";
        format!("{:#}\n", json!({"why": why, "interface": interface, "number": number, "features": features}))
    }

    /// Writes it down. Returns where.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub fn remember(&self) -> Result<PathBuf, String> {
        let path = place(self.number).map_err(|error| format!("/proc/self/ns/net: {error}"))?;
        let told = |error: io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).map_err(told)?;
        // Whole or not at all.
        let partial = path.with_extension("partial");
        fs::write(&partial, self.to_text()).and_then(|()| fs::rename(&partial, &path)).map_err(told)?;
        Ok(path)
    }
}

/// Puts back what an earlier bridge left on this interface, whose lock the caller has. Says what was found
/// and done.
pub fn mend(interface: &str, number: u32) -> Option<String> {
    let path = place(number).ok()?;
    let text = fs::read_to_string(&path).ok()?;
    let said = match Changed::parse(&text) {
        Err(wrong) => format!("{}: {wrong}; the file is removed", path.display()),
        Ok(changed) => {
            let names = checks::list_offloads(&changed.features);
            let before =
                format!("{interface}: an earlier giveway live ended before it could turn {names} on again");
            match checks::switch_offloads(interface, &changed.features, true) {
                Ok(()) => format!("{before}; that is done now"),
                Err(sentence) => format!("{before}; {sentence}"),
            }
        }
    };
    match fs::remove_file(&path) {
        Ok(()) => Some(said),
        Err(error) => Some(format!("{said}; {} cannot be removed: {error}", path.display())),
    }
}

fn place(interface: u32) -> io::Result<PathBuf> {
    let namespace = fs::metadata("/proc/self/ns/net")?.ino();
    // systemd.exec(5): the folder of RuntimeDirectory=; of several, the first.
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
        let changed =
            Changed { interface: "eth0".into(), number: 7, features: vec!["rx-gro".into(), "rx-lro".into()] };
        assert_eq!(Changed::parse(&changed.to_text()), Ok(changed));
        let wrong = |text: &str| Changed::parse(text).unwrap_err();
        assert_eq!(wrong("{}"), "there are no features");
        assert_eq!(wrong(r#"{"features": [1], "interface": "a", "number": 1}"#), "a feature is not a name");
        assert_eq!(wrong(r#"{"features": [], "interface": "a", "number": -1}"#), "there is no number");
        assert!(wrong("[").contains("EOF"));
    }
}
