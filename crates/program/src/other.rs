//! The other one of the two programs, which are installed in one folder.
//!
//! `giveway` finds `giveway-net` as git finds its parts, and the reverse: in its own folder, and otherwise
//! in `PATH`. A program with privileges starts nothing from `PATH`, whose folders may belong to other users.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{getegid, geteuid, getgid, getuid};

use crate::provenance;

/// The program that users type.
pub const MAIN: &str = "giveway";
/// The program for real interfaces and the kernel.
pub const NET: &str = "giveway-net";

/// Reason why the other program cannot be started. The message says what to type.
#[derive(Debug, thiserror::Error)]
pub enum OtherError {
    /// It is not where it is looked for.
    #[error("the program {name} is missing in {}: {remedy}", folder.display())]
    Missing {
        /// The program.
        name: &'static str,
        /// The folder of this program.
        folder: PathBuf,
        /// The command to type.
        remedy: String,
    },
    /// It is a file of another user, and this process is privileged.
    #[error("{} belongs to another user than {}: chown it", path.display(), own.display())]
    Foreign {
        /// The program.
        path: PathBuf,
        /// This program.
        own: PathBuf,
    },
    /// The system does not start it.
    #[error("cannot start {}", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Finds the other program, [`MAIN`] or [`NET`].
///
/// # Errors
/// If it is missing.
pub fn find(name: &'static str) -> Result<PathBuf, OtherError> {
    let own = provenance::program().unwrap_or_default();
    // A link in a folder of programs leads to both.
    let own = own.canonicalize().unwrap_or(own);
    find_for(&own, name, is_privileged(), std::env::var_os("PATH"))
}

/// Replaces this process by `giveway-net` with these arguments. So the number of the process, its signals,
/// its descriptors and its exit code belong to `giveway-net`. It returns only if that fails.
pub fn become_net(arguments: &[OsString]) -> OtherError {
    match find(NET) {
        Ok(path) => {
            let source = Command::new(&path).args(arguments).exec();
            OtherError::Start { path, source }
        }
        Err(missing) => missing,
    }
}

/// Finds a program for the program `own`.
fn find_for(
    own: &Path,
    name: &'static str,
    is_privileged: bool,
    path: Option<OsString>,
) -> Result<PathBuf, OtherError> {
    let folder = own.parent().unwrap_or(Path::new("/")).to_owned();
    let beside = folder.join(name);
    let owner = |file: &Path| fs::metadata(file).map(|about| about.uid()).ok();
    // Root may have its program in a folder in which others may create files, such as /tmp.
    let is_trusted = |file: &Path| !is_privileged || [Some(0), owner(own)].contains(&owner(file));
    if is_executable(&beside) && is_trusted(&beside) {
        return Ok(beside);
    }
    let path = path.filter(|_| !is_privileged).unwrap_or_default();
    // A relative entry would be a folder that depends on where the user is.
    let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let found = folders.find_map(|folder| Some(folder.join(name)).filter(|file| is_executable(file)));
    found.ok_or_else(|| match is_executable(&beside) {
        true => OtherError::Foreign { path: beside, own: own.to_owned() },
        false => OtherError::Missing { name, remedy: remedy(&folder, name), folder },
    })
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// The command that adds a program to a folder.
fn remedy(folder: &Path, name: &str) -> String {
    // Cargo writes this file to its target folder, and the other one to a folder of `cargo install`.
    let is_built = folder.ancestors().any(|above| above.join(".rustc_info.json").is_file());
    let is_installed = folder.parent().is_some_and(|above| above.join(".crates.toml").is_file());
    let package = if name == NET { "net" } else { "cli" };
    let profile = folder.file_name().unwrap_or_default().to_string_lossy();
    match (is_built, &*profile) {
        (true, "debug") => format!("type cargo build -p giveway-{package}"),
        (true, "release") => format!("type cargo build --release -p giveway-{package}"),
        (true, _) => format!("type cargo build --profile {profile} -p giveway-{package}"),
        (false, _) if is_installed => {
            format!("type cargo install --path crates/{package} --locked in the sources of Giveway")
        }
        (false, _) => format!("copy it there from the archive of this version, which has {MAIN} and {NET}"),
    }
}

/// True if this process may do what its user may not: it is root, it runs as another user, or with a
/// capability.
fn is_privileged() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    geteuid().is_root() || geteuid() != getuid() || getegid() != getgid() || has_capability(&status)
}

/// True if a process with this status, proc_pid_status(5), owns a capability.
fn has_capability(status: &str) -> bool {
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    permitted.is_some_and(|set| u64::from_str_radix(set.trim(), 16) != Ok(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with programs, which are files that may be executed.
    fn folder(programs: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in programs {
            fs::write(dir.path().join(name), "").unwrap();
            fs::set_permissions(dir.path().join(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        dir
    }

    #[test]
    fn it_is_found_beside_and_then_in_the_path() {
        let [both, one, other] = [&["giveway", NET][..], &["giveway"], &[NET]].map(folder);
        let path = || Some(OsString::from(format!("bin:{}", other.path().display())));
        let find = |dir: &tempfile::TempDir, is_privileged| {
            find_for(&dir.path().join("giveway"), NET, is_privileged, path())
        };
        assert_eq!(find(&both, false).unwrap(), both.path().join(NET));
        assert_eq!(find(&both, true).unwrap(), both.path().join(NET));
        assert_eq!(find(&one, false).unwrap(), other.path().join(NET));
        let missing = find(&one, true).unwrap_err().to_string();
        let dir = one.path().display();
        assert!(
            missing.starts_with(&format!("the program giveway-net is missing in {dir}: copy")),
            "{missing}"
        );
        // A folder with that name is not a program.
        fs::create_dir(one.path().join(NET)).unwrap();
        assert!(find(&one, true).is_err());
    }

    /// Needs root, to create the file of another user.
    #[test]
    fn root_runs_no_program_of_another_user_beside_its_own() {
        let both = folder(&["giveway", NET]);
        if std::os::unix::fs::chown(both.path().join(NET), Some(12_345), None).is_err() {
            return;
        }
        let find = |is_privileged| find_for(&both.path().join("giveway"), NET, is_privileged, None);
        assert!(find(true).is_err_and(|error| error.to_string().contains("belongs to another user")));
        assert!(find(false).is_ok());
    }

    #[test]
    fn a_missing_program_is_built_with_the_profile_of_the_other_one() {
        let target = tempfile::tempdir().unwrap();
        fs::write(target.path().join(".rustc_info.json"), "").unwrap();
        let of = |profile: &str, name| remedy(&target.path().join(profile), name);
        assert_eq!(of("debug", NET), "type cargo build -p giveway-net");
        assert_eq!(of("x86_64-unknown-linux-musl/release", NET), "type cargo build --release -p giveway-net");
        assert_eq!(of("dist", MAIN), "type cargo build --profile dist -p giveway-cli");
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(".crates.toml"), "").unwrap();
        let installed = remedy(&root.path().join("bin"), NET);
        assert!(installed.starts_with("type cargo install --path crates/net --locked"), "{installed}");
    }

    #[test]
    fn capabilities_are_privileges() {
        let of = |set: &str| has_capability(&format!("Name:\tgiveway\nCapInh:\t1\nCapPrm:\t{set}\n"));
        assert!(of("0000000000003000") && of("nonsense") && !of("0000000000000000"));
        assert!(!has_capability(""), "other systems have no such file");
    }
}
