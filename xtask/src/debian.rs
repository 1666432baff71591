//! Debian, as this machine has it: its mirror and its release.

use std::fs;
use std::path::PathBuf;

/// Keys that sign the packages of Debian.
pub const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The Debian mirror in the configuration of apt.
///
/// # Errors
/// If it has none.
pub fn mirror() -> Result<String, String> {
    let folder =
        fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let files = folder.chain([PathBuf::from("/etc/apt/sources.list")]);
    let texts: Vec<String> = files.filter_map(|file| fs::read_to_string(file).ok()).collect();
    let words = texts.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with('#'));
    let words = words.flat_map(str::split_whitespace);
    let mut archives =
        words.filter(|word| word.starts_with("http") && word.trim_end_matches('/').ends_with("/debian"));
    archives
        .next()
        .map(str::to_owned)
        .ok_or_else(|| "the configuration of apt has no Debian mirror".to_owned())
}

/// Name of the release, such as `bookworm`.
///
/// # Errors
/// If this system is not a release of Debian.
pub fn suite() -> Result<String, String> {
    let path = "/etc/os-release";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    match (line("ID="), line("VERSION_CODENAME=")) {
        (Some("debian"), Some(suite)) => Ok(suite.to_owned()),
        _ => Err(format!("{path}: this system is not a release of Debian")),
    }
}
