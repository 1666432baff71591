//! Debian, as this machine has it: its mirror, its release, and bare systems in folders.

use std::fs;
use std::path::{Path, PathBuf};

use crate::repository::{Done, Repository, copy_into};
use crate::tools;

/// The parts of the name of the Debian package of a release.
pub const PACKAGE_FILE: [&str; 3] = ["giveway_", "", "_amd64.deb"];

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

/// The smallest set of Debian's packages that is a system, without a compiler, in a folder below the target
/// folder. `suite` is a release of Debian. The folder is made once, and must not be changed.
///
/// # Errors
/// If this process is not root, or debootstrap fails.
pub fn bare(repository: &Repository, suite: &str) -> Result<PathBuf, String> {
    if repository.output("id", &["-u"])?.trim() != "0" {
        return Err("a system in a folder is made by root: run this chore as root".to_owned());
    }
    tools::need(repository, &[("debootstrap", "--version", "debootstrap")])?;
    let folder = repository.target()?.join("debian").join(suite);
    if !folder.exists() {
        let unfinished = folder.with_extension("unfinished");
        let _ = fs::remove_dir_all(&unfinished);
        fs::create_dir_all(&unfinished).map_err(|error| format!("{}: {error}", unfinished.display()))?;
        let place = unfinished.to_string_lossy();
        repository.run("debootstrap", &["--variant=minbase", suite, &place, &mirror()?])?;
        fs::rename(&unfinished, &folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Ok(folder)
}

/// A copy of a bare system, which is removed when the value is dropped.
pub struct Copy {
    folder: PathBuf,
}

impl Copy {
    /// Copies the system.
    ///
    /// # Errors
    /// The error of the system.
    pub fn new(repository: &Repository, bare: &Path, name: &str) -> Result<Copy, String> {
        let folder = bare.with_file_name(name);
        let _ = fs::remove_dir_all(&folder);
        let [from, to] = [bare, &folder].map(|path| path.to_string_lossy());
        repository.run("cp", &["--archive", "--reflink=auto", &*from, &*to])?;
        Ok(Copy { folder })
    }

    /// Copies a file into its folder `/root`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn put(&self, file: &Path) -> Done {
        copy_into(file, &self.folder.join("root"))
    }

    /// Runs a script of the shell in it, in the folder `/root` and with few variables. Returns its output.
    ///
    /// # Errors
    /// If it fails.
    pub fn shell(&self, repository: &Repository, script: &str) -> Result<String, String> {
        let place = self.folder.to_string_lossy();
        let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let words = ["-i", path, "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "chroot"];
        let script = format!("set -e; cd /root; {script}");
        repository.output("env", &[&words[..], &[&place, "sh", "-c", &script]].concat())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The only file of a folder whose name has these parts: beginning, middle and end.
///
/// # Errors
/// If there is none, or several.
pub fn file(folder: &Path, [start, middle, end]: [&str; 3]) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("{}: {error}; make the files with cargo xtask release", folder.display()))?;
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(start) && name.contains(middle) && name.ends_with(end)
    };
    let found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(fits).collect();
    match found.as_slice() {
        [file] => Ok(file.clone()),
        _ => Err(format!("{} has {} files {start}*{middle}*{end}, not one", folder.display(), found.len())),
    }
}
