//! The environment of builds that give the same bytes on another day and in another folder.

use std::env;
use std::path::{Path, PathBuf};

use super::cross;
use super::platform::{PLATFORMS, Platform};
use crate::repository::Repository;

/// The variable with the flags for the compiler, and the character between them.
const FLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";
const SEPARATOR: &str = "\u{1f}";

/// Variables for cargo, maturin and the programs that pack files. `tools` is the target folder with the
/// headers for other processors.
///
/// # Errors
/// If git or the compiler does not answer.
pub fn variables(
    repository: &Repository,
    target: &Path,
    tools: &Path,
) -> Result<Vec<(String, String)>, String> {
    let time = repository.output("git", &["log", "-1", "--format=%ct"])?;
    let compiler = PathBuf::from(repository.output("rustc", &["--print", "sysroot"])?.trim());
    let home = cargo_home()?;
    let folders = replaced(&repository.root, &home, &crates(&home), &compiler);
    let flags: Vec<String> =
        folders.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect();
    let c_flags: Vec<String> =
        folders.iter().map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display())).collect();
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut variables: Vec<(String, String)> = [
        ("SOURCE_DATE_EPOCH", time.trim().to_owned()),
        (FLAGS, flags.join(SEPARATOR)),
        ("CFLAGS", c_flags.join(" ")),
        ("CARGO_TARGET_DIR", text(target)),
        ("CARGO_INCREMENTAL", "0".to_owned()),
        ("LC_ALL", "C.UTF-8".to_owned()),
        ("TZ", "UTC".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    variables.extend(PLATFORMS.iter().map(Platform::linker));
    variables.extend(cross::variables(tools));
    Ok(variables)
}

/// The repository with another flag for the compiler.
pub fn with_flag(repository: &Repository, flag: String) -> Repository {
    let before = repository.variables.iter().rfind(|(name, _)| name == FLAGS);
    let flags: Vec<String> = before.map(|(_, flags)| flags.clone()).into_iter().chain([flag]).collect();
    repository.with([(FLAGS.to_owned(), flags.join(SEPARATOR))])
}

/// Folders whose paths are replaced in programs, and their replacements. The compiler takes the last one that
/// fits.
fn replaced(root: &Path, home: &Path, crates: &[PathBuf], compiler: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut folders = vec![(home.to_owned(), "/cargo"), (compiler.to_owned(), "/rust")];
    // The name of this folder depends on the registry.
    folders.extend(crates.iter().map(|folder| (folder.clone(), "/crates")));
    folders.push((root.to_owned(), "/giveway"));
    folders
}

/// The folder in which cargo stores what it has fetched.
///
/// # Errors
/// If there is none.
pub fn cargo_home() -> Result<PathBuf, String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| Some(env::home_dir()?.join(".cargo"))).ok_or_else(|| "there is no home folder".to_owned())
}

/// The folders with the sources of crates, one for each registry.
pub fn crates(home: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path that the compiler writes: it replaces the last prefix that fits.
    fn shown(path: &str, folders: &[(PathBuf, &str)]) -> String {
        let fits = folders.iter().rev().find_map(|(from, to)| {
            Some(format!("{to}/{}", Path::new(path).strip_prefix(from).ok()?.display()))
        });
        fits.unwrap_or(path.to_owned())
    }

    #[test]
    fn no_path_names_a_folder_of_this_machine() {
        let registry = [PathBuf::from("/home/a/.cargo/registry/src/mirror-1f")];
        let compiler = Path::new("/home/a/.rustup/toolchains/stable");
        let folders =
            replaced(Path::new("/home/a/giveway"), Path::new("/home/a/.cargo"), &registry, compiler);
        for (path, expected) in [
            ("/home/a/giveway/crates/cli/src/main.rs", "/giveway/crates/cli/src/main.rs"),
            ("/home/a/.cargo/registry/src/mirror-1f/zstd-1.0/src/lib.rs", "/crates/zstd-1.0/src/lib.rs"),
            ("/home/a/.cargo/git/checkouts/b/lib.rs", "/cargo/git/checkouts/b/lib.rs"),
            ("/home/a/.rustup/toolchains/stable/lib/rustlib/src/a.rs", "/rust/lib/rustlib/src/a.rs"),
        ] {
            assert_eq!(shown(path, &folders), expected);
        }
    }
}
